// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM on GPUs, also of 8-bit matrices with scales of blocks of k.
#pragma once

#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm/block_scales.hpp>
#include <mp/device/gpu/gemm/grouped_kernel.hpp>
#include <mp/device/gpu/gemm/groups.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warpgroup_product.hpp>
#include <mp/device/gpu/gemm_scaled.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/grouped.hpp>
#include <mp/linalg/gemm/grouped_scaled.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Throws for a device without the instructions, and gives its properties.
template <gpu_gemm_kernel Asked, class A, class B, class Epilogue, class Executor>
gpu_properties check_grouped_device(std::string_view function, const Executor& exec) {
    static_assert(gpu_gemm_pair<A, B> && !std::is_same_v<std::remove_const_t<A>, float>,
                  "mp: products of groups on a GPU take what its tensor cores do: a and b both of half, "
                  "bfloat16 or tfloat32, or of "
                  "8 bits");
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp: the epilogue of a product on a GPU is copied to the device byte by byte");
    static_assert(Asked != gpu_gemm_kernel::simt && Asked != gpu_gemm_kernel::wmma,
                  "mp: products of groups on a GPU are multiplied by mma or wgmma");
    const gpu_properties gpu = properties_of(exec);
    if (Asked == gpu_gemm_kernel::wgmma && !gpu.has_warpgroups) {
        throw_argument(function, "Kernel", name_of(Asked),
                       "must be one that a device of capability " + error_text(gpu.capability) +
                           " has for operands of this type");
    }
    const int least = least_capability<std::remove_const_t<A>>(gpu_gemm_kernel::mma);
    if (gpu.capability < least) {
        throw_argument(function, "exec's capability", gpu.capability,
                       "must be at least " + error_text(least) +
                           ", from which on mma.sync multiplies operands of this type");
    }
    return gpu;
}

/// Whether wgmma takes the operands of a product of groups. Of the layouts that it could take these are what mixtures of
/// experts have: rows of A along k for groups of rows; for groups of k, which begin and end anywhere, both operands across k. Where
/// they are of whole blocks, their 8 bits run along k.
template <class Groups, class A, class B, class Output, class Epilogue>
[[nodiscard]] bool warpgroups_take_groups(const product_problem<A, B, Output, Epilogue>& problem) {
    const bool layout = Groups::has_tails ? !problem.a.k_major && !problem.b.k_major : problem.a.k_major;
    return layout && warpgroups_take(problem.a) && warpgroups_take(problem.b);
}

/// Throws unless it does.
template <class Groups, class A, class B, class Output, class Epilogue>
void check_warpgroup_groups(std::string_view function,
                            const product_problem<A, B, Output, Epilogue>& problem) {
    const auto check = [&](std::string_view name, const auto& operand, bool has_layout) {
        check_warpgroup_operand(function, name, operand);
        if (has_layout && operand.k_major == Groups::has_tails) {
            throw_argument(function, name,
                           std::string_view(Groups::has_tails ? "vectors along k" : "vectors across k"),
                           Groups::has_tails ? "must have vectors that run across k, for wgmma of groups of k"
                                             : "must be row_major, for wgmma of groups of rows");
        }
    };
    check(problem.c.swapped ? "b" : "a", problem.a, true);
    check(problem.c.swapped ? "a" : "b", problem.b, Groups::has_tails);
}

/// Launches the kernel of wgmma.
template <class Executor, class A, class B, class Output, class Epilogue, class Groups, class Scales>
void launch_warpgroup_groups(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                             const product_problem<A, B, Output, Epilogue>& problem, const Groups& groups,
                             const Scales& scales) {
    const auto run = [&]<class Tile, bool AKMajor, bool BKMajor>() {
        // Of groups along k few rows are rare.
        if constexpr (!is_ping_pong<Tile> && !(is_swapped<Tile> && Groups::along_k)) {
            launch_warpgroup_tile<AKMajor, BKMajor, Tile>(function, exec, plan, problem, scales, groups);
        }
    };
    warpgroup_tiles<A>::call_for(plan, [&]<class Tile>() {
        if constexpr (Groups::has_tails) {
            run.template operator()<Tile, false, false>();
        } else if constexpr (sizeof(A) == 2) {
            problem.b.k_major ? run.template operator()<Tile, true, true>()
                              : run.template operator()<Tile, true, false>();
        } else {
            run.template operator()<Tile, true, true>();
        }
    });
}

/// Whether wgmma is among the kernels of a call.
template <gpu_gemm_kernel Asked, class Executor, class A, class Groups>
inline constexpr bool may_group_by_warpgroups =
    (sizeof(A) == 2 || !Groups::has_tails) && has_kernel<Executor, A, Asked>(gpu_gemm_kernel::wgmma);

/// The kernel and the tile of a product of `count` groups with `rows` rows on average.
template <gpu_gemm_kernel Asked, class Executor, class Groups, class A, class B, class Output, class Epilogue>
[[nodiscard]] gpu_gemm_plan plan_groups(const gpu_properties& gpu,
                                        const product_problem<A, B, Output, Epilogue>& problem,
                                        std::ptrdiff_t count, std::ptrdiff_t rows) {
    const operand_layouts layouts{warpgroups_take_groups<Groups>(problem), !Groups::along_k};
    auto kernel = gpu_gemm_kernel::mma;
    if constexpr (may_group_by_warpgroups<Asked, Executor, A, Groups>) {
        kernel = resolve_kernel<A, Asked>(gpu, layouts, rows, problem.c.columns, count);
    }
    const tile_choice tile = choose_tile<A>(gpu, kernel, rows, problem.c.columns, count, layouts).tile;
    return {.kernel = kernel,
            .tile_rows = tile.rows,
            .tile_columns = tile.columns,
            .tile_k = tile_k_of<A>(kernel),
            .batch = count,
            .gpu = gpu,
            .cluster_blocks = tile.cluster_blocks,
            .swapped = tile.swapped};
}

/// Launches the kernel for groups of `rows` rows on average.
template <gpu_gemm_kernel Asked, class Executor, class A, class B, class Output, class Epilogue, class Groups,
          class Scales = no_scales>
void launch_groups(std::string_view function, const Executor& exec, const gpu_properties& gpu,
                   const product_problem<A, B, Output, Epilogue>& problem, const Groups& groups,
                   std::ptrdiff_t rows, const Scales& scales = {}) {
    static_assert(sizeof(A) == 2 || !Groups::has_tails || Asked != gpu_gemm_kernel::wgmma,
                  "mp::gemm_grouped_k: wgmma multiplies groups of k of 16 bits only");
    const gpu_gemm_plan plan = plan_groups<Asked, Executor, Groups>(gpu, problem, groups.count, rows);
    if constexpr (may_group_by_warpgroups<Asked, Executor, A, Groups>) {
        if (plan.kernel == gpu_gemm_kernel::wgmma) {
            if (problem.c.has_product) check_warpgroup_groups<Groups>(function, problem);
            return launch_warpgroup_groups(function, exec, plan, problem, groups, scales);
        }
    }
    if constexpr (Asked != gpu_gemm_kernel::wgmma) {
        const auto run = [&]<class Tile>() {
            with_layouts(problem, [&]<bool AKMajor, bool BKMajor>() {
                constexpr bool has_scales = Scales::scales_per_vector != 0;
                using policy = std::conditional_t<has_scales, scaled_mma_policy<Tile, A, B, AKMajor, BKMajor>,
                                                  mma_policy<Tile, A, B, AKMajor, BKMajor>>;
                using product = multistage_gemm_kernel<policy, Output, Epilogue, Scales>;
                using kernel_type = grouped_gemm_kernel<product, Groups>;
                const kernel_type it{problem, groups, scales};
                launch(function, exec,
                       simt::launch_size{it.blocks(), kernel_type::shared_bytes(gpu.capability)}, it);
            });
        };
        if constexpr (Scales::scales_per_vector != 0) {
            with_scaled_tile(plan, run);
        } else {
            mma_tiles<A>::call_for(plan, run);
        }
    }
}

/// Rows of the groups of a batch on average, for which a tile is chosen: as many as are expected, or where that is zero all.
[[nodiscard]] inline std::ptrdiff_t check_expected_rows(std::string_view function, std::ptrdiff_t expected,
                                                        std::ptrdiff_t rows) {
    if (expected < 0) throw_argument(function, "expected_rows", expected, "must not be negative");
    return expected == 0 ? rows : (std::min)(expected, rows);
}

/// Throws for a C whose rows are not what a kernel goes along.
inline void check_row_major_groups(std::string_view function, std::string_view name, storage_order order) {
    if (order == storage_order::row_major) return;
    throw_argument(function, name, std::string_view("column_major"),
                   "must be row_major: on GPUs groups are of its rows");
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// mp::gemm_grouped_m on a GPU: offsets, too, are in device memory, so that nothing waits for the host. One kernel, whose blocks
/// find their group by themselves; each group has the bits of mp::gemm on a GPU. Offsets that decrease or lie outside of a are
/// taken for the nearest that do not. c is row-major.
///
/// mma.sync multiplies (from sm_80 on, numbers of 8 bits from sm_89), or, as mp::gemm chooses, wgmma in code for sm_90a, where
/// lines are aligned to 16 bytes and a is row-major. Tiles are chosen for the rows that groups have on average; for up to 64 wgmma
/// computes the transpose of c, as mp::gemm does for few rows. Both give the same bits for 16 bits and tfloat32. For 8-bit operands
/// wgmma accumulates differently, so it has to be requested:
///
///     mp::gemm_grouped_m<mp::gpu_gemm_kernel::prefer_wgmma>(stream, 1, x, weights, offsets, 0, y);
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_grouped_m(const Executor& exec, float alpha, matrix_view<A> a, matrix_batch<B> b,
                    std::span<const std::int32_t> offsets, float beta, matrix_view<C> c,
                    Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_grouped_m";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_row_groups(function, offsets, a, b, c);
    detail::check_row_major_groups(function, "c.order", c.order);
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a},
                              detail::product_input{"b", b, groups});
    if (c.rows == 0 || c.columns == 0 || groups == 0) return;
    detail::launch_groups<Kernel>(
        function, exec, gpu,
        detail::make_product_problem(alpha, a, b.first, beta, c, epilogue, {0, b.stride, 0}, false),
        detail::row_groups{offsets.data(), groups}, detail::tile_count(c.rows, groups));
}

/// mp::gemm_masked on a GPU: counts, too, are in device memory. See mp::gemm_grouped_m for the rest.
///
/// Nothing but the device knows the counts. `expected_rows`, those of a group on average, is what the tile is chosen for; zero: all
/// rows of the matrices. Results do not depend on it. Throws argument_error where it is negative.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_masked(const Executor& exec, float alpha, matrix_batch<A> a, matrix_batch<B> b,
                 std::span<const std::int32_t> counts, float beta, matrix_batch<C> c, Epilogue epilogue = {},
                 std::ptrdiff_t expected_rows = 0) {
    constexpr std::string_view function = "mp::gemm_masked";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const auto groups = static_cast<std::ptrdiff_t>(counts.size());
    if (groups == 0) return;
    detail::check_masked_groups(function, counts, a, b, c);
    detail::check_row_major_groups(function, "c.first.order", c.first.order);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a, groups},
                                    detail::product_input{"b", b, groups});
    const std::ptrdiff_t rows = detail::check_expected_rows(function, expected_rows, c.first.rows);
    if (c.first.rows == 0 || c.first.columns == 0) return;
    detail::launch_groups<Kernel>(
        function, exec, gpu,
        detail::make_product_problem(alpha, a.first, b.first, beta, c.first, epilogue,
                                     {a.stride, b.stride, c.stride}, false),
        detail::masked_groups{counts.data(), groups}, rows);
}

/// mp::gemm_grouped_k on a GPU: offsets, too, are in device memory. See mp::gemm_grouped_m for the rest; c has any order. wgmma
/// takes 16 bits, where tokens are rows in memory: a is column-major and b row-major.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_grouped_k(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b,
                    std::span<const std::int32_t> offsets, float beta, matrix_batch<C> c,
                    Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_grouped_k";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_k_groups(function, offsets, a, b, c);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a},
                                    detail::product_input{"b", b});
    if (c.first.rows == 0 || c.first.columns == 0 || groups == 0) return;
    detail::with_row_major_output(
        alpha, a, b, beta, c.first, epilogue, {0, 0, c.stride}, [&](const auto& problem) {
            detail::launch_groups<Kernel>(function, exec, gpu, problem,
                                          detail::k_groups{offsets.data(), groups}, problem.c.rows);
        });
}

/// mp::gemm_scaled_grouped_m on a GPU: offsets, scales and matrices are in device memory. The kernels are those of
/// mp::gemm_grouped_m for 8 bits, the bits of each group those of mp::gemm_scaled on a GPU: wgmma has to be asked for.
///
///     mp::gemm_scaled_grouped_m<mp::gpu_gemm_kernel::prefer_wgmma>(stream, 1, x, x_scales, w, w_scales, offsets, 0, y);
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled_grouped_m(const Executor& exec, float alpha, matrix_view<A> a,
                           const k_block_scales& a_scales, matrix_batch<B> b,
                           const k_block_scales_batch& b_scales, std::span<const std::int32_t> offsets,
                           float beta, matrix_view<C> c, Epilogue epilogue = {}) {
    static_assert(sizeof(A) == 1 && sizeof(B) == 1,
                  "mp::gemm_scaled_grouped_m on a GPU: a and b must have 8 bits");
    constexpr std::string_view function = "mp::gemm_scaled_grouped_m";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_row_groups(function, offsets, a, b, c);
    detail::check_scaled_row_groups(function, groups, a, a_scales, b, b_scales, c);
    detail::check_row_major_groups(function, "c.order", c.order);
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a},
                              detail::product_input{"b", b, groups},
                              detail::product_input{"a_scales.values", a_scales},
                              detail::product_input{"b_scales.values", b_scales, groups});
    if (c.rows == 0 || c.columns == 0 || groups == 0) return;
    detail::launch_groups<Kernel>(
        function, exec, gpu,
        detail::make_product_problem(alpha, a, b.first, beta, c, epilogue, {0, b.stride, 0}, false),
        detail::row_groups{offsets.data(), groups}, detail::tile_count(c.rows, groups),
        detail::block_scales{detail::k_scales_of_a(a_scales, c.rows),
                             detail::k_scales_of_b(b_scales.first, c.columns), 0, b_scales.stride});
}

/// mp::gemm_scaled_masked on a GPU: counts, too, are in device memory, and the tile is chosen for `expected_rows`: see
/// mp::gemm_masked. See mp::gemm_scaled_grouped_m for the rest.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled_masked(const Executor& exec, float alpha, matrix_batch<A> a,
                        const k_block_scales_batch& a_scales, matrix_batch<B> b,
                        const k_block_scales_batch& b_scales, std::span<const std::int32_t> counts,
                        float beta, matrix_batch<C> c, Epilogue epilogue = {},
                        std::ptrdiff_t expected_rows = 0) {
    static_assert(sizeof(A) == 1 && sizeof(B) == 1,
                  "mp::gemm_scaled_masked on a GPU: a and b must have 8 bits");
    constexpr std::string_view function = "mp::gemm_scaled_masked";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const auto groups = static_cast<std::ptrdiff_t>(counts.size());
    if (groups == 0) return;
    detail::check_masked_groups(function, counts, a, b, c);
    detail::check_scaled_batch(function, groups, a, a_scales, b, b_scales, c);
    detail::check_row_major_groups(function, "c.first.order", c.first.order);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a, groups},
                                    detail::product_input{"b", b, groups},
                                    detail::product_input{"a_scales.values", a_scales, groups},
                                    detail::product_input{"b_scales.values", b_scales, groups});
    const std::ptrdiff_t rows = detail::check_expected_rows(function, expected_rows, c.first.rows);
    if (c.first.rows == 0 || c.first.columns == 0) return;
    detail::launch_groups<Kernel>(
        function, exec, gpu,
        detail::make_product_problem(alpha, a.first, b.first, beta, c.first, epilogue,
                                     {a.stride, b.stride, c.stride}, false),
        detail::masked_groups{counts.data(), groups}, rows,
        detail::block_scales{detail::k_scales_of_a(a_scales.first, c.first.rows),
                             detail::k_scales_of_b(b_scales.first, c.first.columns), a_scales.stride,
                             b_scales.stride});
}

/// mp::gemm_scaled_grouped_k on a GPU. The offsets are in device memory and are not checked on the host: if an offset lies
/// within a block of 128 along k, c of the groups that begin or end there becomes NaN. See mp::gemm_scaled_grouped_m for
/// the rest; c has any order. wgmma takes a row-major and b column-major.
///
///     mp::gemm_scaled_grouped_k<mp::gpu_gemm_kernel::prefer_wgmma>(stream, 1, xt, xt_scales, mp::transposed(dyt), dyt_scales,
///                                                                  offsets, 1, gradients);
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled_grouped_k(const Executor& exec, float alpha, matrix_view<A> a,
                           const k_block_scales& a_scales, matrix_view<B> b, const k_block_scales& b_scales,
                           std::span<const std::int32_t> offsets, float beta, matrix_batch<C> c,
                           Epilogue epilogue = {}) {
    static_assert(sizeof(A) == 1 && sizeof(B) == 1,
                  "mp::gemm_scaled_grouped_k on a GPU: a and b must have 8 bits");
    constexpr std::string_view function = "mp::gemm_scaled_grouped_k";
    const gpu_properties gpu = detail::check_grouped_device<Kernel, A, B, Epilogue>(function, exec);
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_k_groups(function, offsets, a, b, c);
    detail::check_scaled_k_groups(function, groups, a, a_scales, b, b_scales, c);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a},
                                    detail::product_input{"b", b},
                                    detail::product_input{"a_scales.values", a_scales},
                                    detail::product_input{"b_scales.values", b_scales});
    if (c.first.rows == 0 || c.first.columns == 0 || groups == 0) return;
    const detail::k_block_groups of_k{offsets.data(), groups};
    const detail::block_scales scales{detail::k_scales_of_a(a_scales, a.rows),
                                      detail::k_scales_of_b(b_scales, b.columns)};
    detail::with_row_major_output(
        alpha, a, b, beta, c.first, epilogue, {0, 0, c.stride}, [&](const auto& problem) {
            detail::launch_groups<Kernel>(function, exec, gpu, problem, of_k, problem.c.rows,
                                          problem.c.swapped ? scales.exchanged() : scales);
        });
}

}}  // namespace mp
