// SPDX-License-Identifier: MIT
/// \file
/// Launching warp_specialized_gemm_kernel.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/device/gpu/gemm/cluster_work.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warp_output.hpp>
#include <mp/device/gpu/gemm/warp_specialized_kernel.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether TMA and wgmma take an operand.
template <class Value>
[[nodiscard]] bool warpgroups_take(const operand_vectors<Value>& operand) {
    constexpr std::ptrdiff_t most = 0x7FFF'0000;
    return operand.alignment == 16 && (sizeof(Value) == 2 || operand.k_major) && operand.vectors <= most &&
           operand.length <= most && operand.batch_stride >= 0;
}

/// Throws unless they do.
template <class Value>
void check_warpgroup_operand(std::string_view function, std::string_view name,
                             const operand_vectors<Value>& operand) {
    if (warpgroups_take(operand)) return;
    if (operand.alignment != 16) {
        throw_argument(function, std::string(name) + "'s alignment", operand.alignment,
                       "must be 16 bytes at the beginning of every vector for wgmma");
    }
    if (sizeof(Value) != 2 && !operand.k_major) {
        throw_argument(function, name, std::string_view("vectors across k"),
                       "must have vectors that run along k, for wgmma of elements that have not 16 bits");
    }
    if (operand.batch_stride < 0) {
        throw_argument(function, std::string(name) + ".stride", operand.batch_stride,
                       "must not be negative for wgmma");
    }
    throw_argument(function, std::string(name) + "'s size", (std::max)(operand.vectors, operand.length),
                   "must be below 2^31 - 2^16 for wgmma");
}

/// Whether they take the operands of a product of row-major or column-major C.
template <class A, class B>
[[nodiscard]] bool warpgroups_take(matrix_view<A> a, matrix_view<B> b, const batch_strides& strides) {
    return warpgroups_take(vectors_of(a, storage_order::row_major, strides.a)) &&
           warpgroups_take(vectors_of(b, storage_order::column_major, strides.b));
}

template <class Kernel, class Executor, class A, class B, class Output, class Epilogue, class Scales,
          class Groups = no_groups>
void launch_warpgroups(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                       const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales,
                       const Groups& groups = {}) {
    using operands = typename Kernel::operands;
    Kernel it{{},
              {},
              {},
              problem.c,
              problem.k,
              plan.batch,
              problem.splits,
              problem.sums,
              problem.a.batch_stride != 0 ? 1 : 0,
              problem.b.batch_stride != 0 ? 1 : 0,
              false,
              plan.ping_pong,
              scales,
              groups};
    if (it.work_count() >= Kernel::most_work) {
        throw_argument(function, "the number of c's tiles", it.work_count(), "must be below 2^31 for wgmma");
    }
    if constexpr (std::is_same_v<Groups, no_groups>) {
        // What one column of tiles, or one row, takes from memory is not read again.
        using hint = simt::cache_hint;
        const bool a_is_streamed = it.tiles_across() == 1 && (plan.batch == 1 || it.a_matrices == 1);
        const bool b_is_streamed = it.tiles_down() == 1 && (plan.batch == 1 || it.b_matrices == 1);
        if (plan.cache_hints && a_is_streamed != b_is_streamed) {
            it.a_hint = a_is_streamed ? hint::evict_first : hint::evict_last;
            it.b_hint = b_is_streamed ? hint::evict_first : hint::evict_last;
        }
    }
    if (problem.c.has_product) {
        it.a_map = make_tensor_map(exec, operands::a_stage::tiles(problem.a, it.tile_rows(), plan.batch));
        it.b_map = make_tensor_map(exec, operands::b_stage::tiles(problem.b, operands::b_part, plan.batch));
        // The transpose of C, which nobody maps, is written by threads.
        if constexpr (!Kernel::swapped) {
            const auto map_output = [&](const auto& c, std::ptrdiff_t matrices) {
                using tile = stored_tile<std::remove_pointer_t<decltype(c.data)>>;
                it.maps_c = same_value(c.beta, 0.0F) && tile::takes(c, matrices);
                if (it.maps_c) it.c_map = make_tensor_map(exec, tile::tiles(c, matrices));
            };
            if (problem.splits != 1) {
                auto slices = sums_of_slice(problem.sums, problem.c.rows, problem.c.columns, 0);
                slices.batch_stride = problem.c.rows * problem.c.columns;
                map_output(slices, problem.splits * plan.batch);
            } else if constexpr (Kernel::ends_in_registers) {
                map_output(problem.c, Groups::shares_c ? 1 : plan.batch);
            }
        }
    }
    const std::ptrdiff_t clusters =
        (std::max)(1, plan.gpu.multiprocessors * Kernel::resident_blocks / Kernel::cluster_blocks);
    launch(function, exec,
           simt::launch_size{(std::min)(it.work_count(), clusters) * Kernel::cluster_blocks,
                             Kernel::shared_bytes},
           it);
}

/// Launches the kernel of a tile for operands that lie along k or not: that of the tile, or for few rows that of the product
/// with swapped operands.
template <bool AKMajor, bool BKMajor, class Tile, class Executor, class A, class B, class Output,
          class Epilogue, class Scales, class Groups = no_groups>
void launch_warpgroup_tile(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                           const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales,
                           const Groups& groups = {}) {
    if constexpr (!is_swapped<Tile>) {
        using kernel =
            warp_specialized_gemm_kernel<A, B, AKMajor, BKMajor, Tile::columns, Tile::cluster_blocks, Output,
                                         Epilogue, Scales, false, Groups>;
        static_assert(Tile::ping_pong ? kernel::has_ping_pong : kernel::rows == Tile::rows);
        launch_warpgroups<kernel>(function, exec, plan, problem, scales, groups);
    } else if constexpr (AKMajor) {
        using kernel = warp_specialized_gemm_kernel<B, A, BKMajor, true, Tile::rows, 1, Output, Epilogue,
                                                    Scales, true, Groups>;
        static_assert(kernel::rows == Tile::columns);
        const product_problem<B, A, Output, Epilogue> exchanged{problem.b, problem.a,      problem.c,
                                                                problem.k, problem.splits, problem.sums};
        launch_warpgroups<kernel>(function, exec, plan, exchanged, scales.exchanged(), groups);
    }
}

/// A product by wgmma and TMA: the large tiles in clusters of two, the others by single blocks, so that there
/// are two kernels for each layout; and those with swapped operands, for rows of A that run along k.
template <class Executor, class A, class B, class Output, class Epilogue, class Scales>
void run_warpgroups(std::string_view function, const Executor& exec, gpu_gemm_plan plan,
                    const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales) {
    if (problem.c.has_product) {
        check_warpgroup_operand(function, problem.c.swapped ? "b" : "a", problem.a);
        check_warpgroup_operand(function, problem.c.swapped ? "a" : "b", problem.b);
    }
    if (plan.swapped && (problem.c.swapped || !problem.a.k_major)) {
        // Rows of a column-major C are wgmma's columns as it is. Any layout has the tile that follows.
        plan.swapped = false;
        plan.tile_rows = plan.tile_columns = 128;
    }
    with_layouts(problem, [&]<bool AKMajor, bool BKMajor>() {
        // Only operands of 16 bits may be MN-major: see check_warpgroup_operand.
        constexpr bool a_along_k = AKMajor || sizeof(A) != 2;
        constexpr bool b_along_k = BKMajor || sizeof(A) != 2;
        warpgroup_tiles<A>::call_for(plan, [&]<class Tile>() {
            launch_warpgroup_tile<a_along_k, b_along_k, Tile>(function, exec, plan, problem, scales);
        });
    });
}

}}  // namespace mp::detail
