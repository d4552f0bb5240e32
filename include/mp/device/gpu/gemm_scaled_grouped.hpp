// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM of 8-bit matrices with scales of blocks of k, on GPUs.
#pragma once

#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm/block_scales.hpp>
#include <mp/device/gpu/gemm/groups.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm_grouped.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/grouped_scaled.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

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
