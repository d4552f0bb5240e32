// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM of 8-bit matrices with scales of blocks of k.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/batched.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_runs.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/grouped.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/linalg/gemm/scaled.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks the scales of an m-grouped product. A group may start at any row of a, so a_scales has one vector per row.
template <class A, class B, class C>
void check_scaled_row_groups(std::string_view function, std::ptrdiff_t groups, matrix_view<A> a,
                             const k_block_scales& a_scales, const matrix_batch<B>& b,
                             const k_block_scales_batch& b_scales, matrix_view<C> c) {
    if (a_scales.vectors_per_scale != 1) {
        throw_argument(function, "a_scales.vectors_per_scale", a_scales.vectors_per_scale,
                       "must be 1, since groups begin at any row");
    }
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        check_scaled_product(function, extent_of(a), a_scales, extent_of(b[g]), b_scales[g], extent_of(c));
    }
}

/// Checks the scales of a k-grouped product.
template <class A, class B, class C>
void check_scaled_k_groups(std::string_view function, std::ptrdiff_t groups, matrix_view<A> a,
                           const k_block_scales& a_scales, matrix_view<B> b, const k_block_scales& b_scales,
                           const matrix_batch<C>& c) {
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        check_scaled_product(function, extent_of(a), a_scales, extent_of(b), b_scales, extent_of(c[g]));
    }
}

/// Throws unless groups of k begin and end at multiples of the scale block, or at the end of k. Not for arrays of
/// devices.
inline void check_group_blocks(std::string_view function, std::span<const std::int32_t> offsets,
                               std::ptrdiff_t k) {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        if (offsets[i] % k_per_scale == 0 || offsets[i] == k) continue;
        throw_argument(function, "offsets[" + std::to_string(i) + "]", offsets[i],
                       "must be a multiple of 128, or all of k, which is " + error_text(k));
    }
}

/// Checks the scales of a batch of products.
template <class A, class B, class C>
void check_scaled_batch(std::string_view function, std::ptrdiff_t count, const matrix_batch<A>& a,
                        const k_block_scales_batch& a_scales, const matrix_batch<B>& b,
                        const k_block_scales_batch& b_scales, const matrix_batch<C>& c) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        check_scaled_product(function, extent_of(a[i]), a_scales[i], extent_of(b[i]), b_scales[i],
                             extent_of(c[i]));
    }
}

/// The first rows of an operand's scales.
[[nodiscard]] inline k_block_scales first_rows(const k_block_scales& scales, std::ptrdiff_t rows) {
    const std::ptrdiff_t groups =
        rows / scales.vectors_per_scale + (rows % scales.vectors_per_scale != 0 ? 1 : 0);
    return {scales.values.block(0, 0, groups, scales.values.columns), scales.vectors_per_scale};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// mp::gemm_grouped_m of 8-bit matrices with scales: each group has the bits of mp::gemm_scaled. Each row of a has its scales
/// (a_scales.vectors_per_scale is 1); those of b's matrices lie as far apart as b_scales.stride says.
///
///     // Tokens with scales of 1 x 128, weights of 8 experts, out x in each, with scales of 128 x 128.
///     mp::gemm_scaled_grouped_m(exec, 1, x, {mp::row_major(x_scales, tokens, in / 128)},
///                               mp::matrix_batch{mp::transposed(mp::row_major(w, out, in)), out * in},
///                               {{mp::transposed(mp::row_major(w_scales, out / 128, in / 128)), 128},
///                                out / 128 * (in / 128)},
///                               offsets, 0, y);
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_scaled_grouped_m(const Executor& exec, float alpha, matrix_view<A> a,
                           const k_block_scales& a_scales, matrix_batch<B> b,
                           const k_block_scales_batch& b_scales, std::span<const std::int32_t> offsets,
                           float beta, matrix_view<C> c, Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_scaled_grouped_m";
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_row_groups(function, offsets, a, b, c);
    detail::check_scaled_row_groups(function, groups, a, a_scales, b, b_scales, c);
    detail::check_group_bounds(function, offsets, "a.rows", a.rows);
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a},
                              detail::product_input{"b", b, groups},
                              detail::product_input{"a_scales.values", a_scales},
                              detail::product_input{"b_scales.values", b_scales, groups});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t first = offsets[static_cast<std::size_t>(g)];
        const std::ptrdiff_t rows = offsets[static_cast<std::size_t>(g) + 1] - first;
        if (rows == 0) continue;
        gemm_scaled(exec, alpha, a.block(first, 0, rows, a.columns),
                    {a_scales.values.block(first, 0, rows, a_scales.values.columns)}, b[g], b_scales[g], beta,
                    c.block(first, 0, rows, c.columns),
                    detail::epilogue_from_row<Epilogue>{&epilogue, first});
    }
}

/// mp::gemm_masked of 8-bit matrices with scales, which lie in batches, too.
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_scaled_masked(const Executor& exec, float alpha, matrix_batch<A> a,
                        const k_block_scales_batch& a_scales, matrix_batch<B> b,
                        const k_block_scales_batch& b_scales, std::span<const std::int32_t> counts,
                        float beta, matrix_batch<C> c, Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_scaled_masked";
    const auto groups = static_cast<std::ptrdiff_t>(counts.size());
    if (groups == 0) return;
    detail::check_masked_groups(function, counts, a, b, c);
    detail::check_scaled_batch(function, groups, a, a_scales, b, b_scales, c);
    detail::check_group_counts(function, counts, a.first.rows);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a, groups},
                                    detail::product_input{"b", b, groups},
                                    detail::product_input{"a_scales.values", a_scales, groups},
                                    detail::product_input{"b_scales.values", b_scales, groups});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t rows = counts[static_cast<std::size_t>(g)];
        if (rows == 0) continue;
        gemm_scaled(exec, alpha, a[g].block(0, 0, rows, a.first.columns),
                    detail::first_rows(a_scales[g], rows), b[g], b_scales[g], beta,
                    c[g].block(0, 0, rows, c.first.columns),
                    detail::epilogue_from_row<Epilogue>{&epilogue, 0});
    }
}

/// mp::gemm_grouped_k of 8-bit matrices with scales: each group has the bits of mp::gemm_scaled. Groups are of whole blocks of 128
/// of k, which share scales; only what is left at the end of k may be less. What gives the gradients of the weights of a mixture of
/// experts whose inputs and gradients were quantised along their tokens.
template <class Executor, gemm_input A, gemm_input B, gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_executor<Executor>)
void gemm_scaled_grouped_k(const Executor& exec, float alpha, matrix_view<A> a,
                           const k_block_scales& a_scales, matrix_view<B> b, const k_block_scales& b_scales,
                           std::span<const std::int32_t> offsets, float beta, matrix_batch<C> c,
                           Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_scaled_grouped_k";
    const std::ptrdiff_t groups = detail::check_group_offsets(function, offsets);
    detail::check_k_groups(function, offsets, a, b, c);
    detail::check_scaled_k_groups(function, groups, a, a_scales, b, b_scales, c);
    detail::check_group_bounds(function, offsets, "a.columns", a.columns);
    detail::check_group_blocks(function, offsets, a.columns);
    detail::validate_batch_epilogue(epilogue, groups, c, detail::product_input{"a", a},
                                    detail::product_input{"b", b},
                                    detail::product_input{"a_scales.values", a_scales},
                                    detail::product_input{"b_scales.values", b_scales});
    for (std::ptrdiff_t g = 0; g < groups; ++g) {
        const std::ptrdiff_t first = offsets[static_cast<std::size_t>(g)];
        const std::ptrdiff_t k = offsets[static_cast<std::size_t>(g) + 1] - first;
        const std::ptrdiff_t block = k == 0 ? 0 : first / k_per_scale;
        const std::ptrdiff_t blocks = (k + k_per_scale - 1) / k_per_scale;
        const auto& of_a = a_scales.values;
        const auto& of_b = b_scales.values;
        gemm_scaled(exec, alpha, a.block(0, first, a.rows, k),
                    {of_a.block(0, block, of_a.rows, blocks), a_scales.vectors_per_scale},
                    b.block(first, 0, k, b.columns),
                    {of_b.block(block, 0, blocks, of_b.columns), b_scales.vectors_per_scale}, beta, c[g],
                    epilogue);
    }
}

}}  // namespace mp
