// SPDX-License-Identifier: MIT
/// \file
/// Launching warpgroup_gemm_kernel.
#pragma once

#include <mp/error.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/warpgroup_kernel.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/simt/kernel_traits.hpp>
#include <mp/simt/tensor_map.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mp::detail {

/// Throws unless TMA and wgmma take the factor.
template <class Value>
void check_warpgroup_factor(std::string_view function, std::string_view name,
                            const factor_lines<Value>& factor) {
    if (factor.alignment != 16) {
        throw_argument(function, std::string(name) + "'s alignment", factor.alignment,
                       "must be 16 bytes at the begin of every line for wgmma");
    }
    if (sizeof(Value) != 2 && !factor.depth_contiguous) {
        throw_argument(
            function, name, std::string_view("lines across the depth"),
            "must have lines that run along the depth, for wgmma of elements that have not 16 bits");
    }
    constexpr std::ptrdiff_t most = 0x7FFF'0000;
    if (factor.lines > most || factor.length > most) {
        throw_argument(function, std::string(name) + "'s size", std::max(factor.lines, factor.length),
                       "must be below 2^31 - 2^16 for wgmma");
    }
}

template <bool ADepthContiguous, bool BDepthContiguous, int ClusterBlocks, class Executor, class A, class B,
          class Output, class Epilogue>
void launch_warpgroups(const Executor& exec, const gpu_properties& gpu,
                       const product_problem<A, B, Output, Epilogue>& problem) {
    constexpr int columns = sizeof(A) == 1 ? 128 : 256;
    using kernel = warpgroup_gemm_kernel<A, B, ADepthContiguous, BDepthContiguous, columns, ClusterBlocks,
                                         Output, Epilogue>;
    kernel it{{}, {}, problem.c, problem.depth};
    if (problem.c.has_product) {
        it.a_map = make_tensor_map(exec, kernel::a_stage::template tiles<kernel::rows>(problem.a));
        it.b_map = make_tensor_map(exec, kernel::b_stage::template tiles<kernel::b_part>(problem.b));
    }
    const std::ptrdiff_t tiles =
        tile_count(problem.c.rows, kernel::rows * ClusterBlocks) * tile_count(problem.c.columns, columns);
    const std::ptrdiff_t clusters = std::max(1, gpu.multiprocessors / ClusterBlocks);
    launch("mp::gemm", exec,
           simt::launch_size{std::min(tiles, clusters) * ClusterBlocks, kernel::shared_bytes}, it);
}

/// A product by wgmma and TMA.
template <class Executor, class A, class B, class Output, class Epilogue>
void run_warpgroups(const Executor& exec, const gpu_properties& gpu,
                    const product_problem<A, B, Output, Epilogue>& problem) {
    constexpr std::string_view function = "mp::gemm";
    if (problem.c.has_product) {
        check_warpgroup_factor(function, problem.c.swapped ? "b" : "a", problem.a);
        check_warpgroup_factor(function, problem.c.swapped ? "a" : "b", problem.b);
    }
    with_layouts(problem, [&]<bool ADepthContiguous, bool BDepthContiguous>() {
        if constexpr (sizeof(A) == 2 || (ADepthContiguous && BDepthContiguous)) {
            if (problem.c.rows > 128) {
                launch_warpgroups<ADepthContiguous, BDepthContiguous, 2>(exec, gpu, problem);
            } else {
                launch_warpgroups<ADepthContiguous, BDepthContiguous, 1>(exec, gpu, problem);
            }
        } else if (!problem.c.has_product) {
            launch_warpgroups<true, true, 1>(exec, gpu, problem);
        }
    });
}

}  // namespace mp::detail
