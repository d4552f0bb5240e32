// SPDX-License-Identifier: MIT
/// \file
/// Scales of blocks of a matrix product's k: what mp::gemm_scaled takes beside its operands.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace mp {

/// Neighbouring elements of k that share a scale in mp::gemm_scaled: as many as the sums of 8-bit
/// products of tensor cores are kept for before they go to a float.
inline constexpr std::ptrdiff_t k_per_scale = 128;

/// The scales of one operand of mp::gemm_scaled: by what its elements have to be multiplied, one number for
/// `vectors_per_scale` neighbouring rows of a (columns of b) and k_per_scale of k.
///
/// `values` lies the way its operand does: a(i, k) is scaled by values(i / vectors_per_scale, k / 128), and
/// b(k, j) by values(k / 128, j / vectors_per_scale). So for a of m x k it is a matrix of
/// ceil(m / vectors_per_scale) x ceil(k / 128), for b of k x n one of ceil(k / 128) x ceil(n /
/// vectors_per_scale), in any storage order. `vectors_per_scale` is a power of two: 1 for the tiles of 1 x 128
/// that activations have, 128 for the blocks of 128 x 128 that weights have.
///
///     // Activations m x k with scales of m x k / 128, weights n x k with scales of n / 128 x k / 128.
///     mp::gemm_scaled(stream, 1, mp::row_major(x, m, k), {mp::row_major(x_scales, m, k / 128)},
///                     mp::transposed(mp::row_major(w, n, k)),
///                     {mp::transposed(mp::row_major(w_scales, n / 128, k / 128)), 128}, 0, c);
struct k_block_scales {
    matrix_view<const float> values;
    std::ptrdiff_t vectors_per_scale = 1;
};

/// The scales of the matrices of a batch: those of each lie `stride` floats behind those of the one before.
struct k_block_scales_batch {
    k_block_scales first;
    std::ptrdiff_t stride = 0;

    /// The scales of matrix number `index`; not checked.
    [[nodiscard]] constexpr k_block_scales operator[](std::ptrdiff_t index) const {
        k_block_scales scales = first;
        scales.values.data += index * stride;
        return scales;
    }
};

namespace detail { inline namespace MP_ISA_NAMESPACE {

/// Scales as products read them: whichever operand they are of, a vector is a row of a or a column of b.
struct k_scale_view {
    const float* data;
    std::ptrdiff_t vector_stride;  ///< elements from one group of vectors to the next
    std::ptrdiff_t k_stride;       ///< elements from one block of k to the next
    std::ptrdiff_t vectors;        ///< of the operand
    int shift;                     ///< 1 << shift vectors share a scale

    [[nodiscard]] MP_HOST_DEVICE const float* at(std::ptrdiff_t vector, std::ptrdiff_t block) const {
        return data + ((vector >> shift) * vector_stride + block * k_stride);
    }
};

/// The scales of an operand: a row of them for each group of its rows (columns).
inline k_scale_view k_scale_view_of(const k_block_scales& scales, std::ptrdiff_t vectors) {
    int shift = 0;
    while (std::ptrdiff_t{1} << shift < scales.vectors_per_scale) ++shift;
    return {scales.values.data, scales.values.row_stride(), scales.values.column_stride(), vectors, shift};
}
inline k_scale_view k_scales_of_a(const k_block_scales& scales, std::ptrdiff_t rows) {
    return k_scale_view_of(scales, rows);
}
inline k_scale_view k_scales_of_b(const k_block_scales& scales, std::ptrdiff_t columns) {
    return k_scale_view_of({transposed(scales.values), scales.vectors_per_scale}, columns);
}

/// Checks the scales of one operand.
inline void check_k_scales(std::string_view function, const std::string& name, const k_block_scales& scales,
                           const view_extent& c) {
    const std::ptrdiff_t vectors = scales.vectors_per_scale;
    if (vectors < 1 || (vectors & (vectors - 1)) != 0) {
        throw_argument(function, name + ".vectors_per_scale", vectors,
                       "must be a power of two, such as 1 or 128");
    }
    check_view(function, name + ".values", extent_of(scales.values));
    check_no_overlap(function, c, name + ".values", extent_of(scales.values));
}

/// Checks everything about the matrices of a product with scales.
inline void check_scaled_product(std::string_view function, const view_extent& a,
                                 const k_block_scales& a_scales, const view_extent& b,
                                 const k_block_scales& b_scales, const view_extent& c) {
    check_product(function, a, b, c);
    check_k_scales(function, "a_scales", a_scales, c);
    check_k_scales(function, "b_scales", b_scales, c);
    const auto up = [](std::ptrdiff_t size, std::ptrdiff_t by) {
        return size / by + (size % by != 0 ? 1 : 0);
    };
    const std::ptrdiff_t blocks = up(a.columns, k_per_scale);
    check_equal_sizes(function, "a_scales.values.rows", a_scales.values.rows,
                      "a.rows / a_scales.vectors_per_scale, rounded up",
                      up(a.rows, a_scales.vectors_per_scale));
    check_equal_sizes(function, "a_scales.values.columns", a_scales.values.columns,
                      "a.columns / 128, rounded up", blocks);
    check_equal_sizes(function, "b_scales.values.rows", b_scales.values.rows, "b.rows / 128, rounded up",
                      blocks);
    check_equal_sizes(function, "b_scales.values.columns", b_scales.values.columns,
                      "b.columns / b_scales.vectors_per_scale, rounded up",
                      up(b.columns, b_scales.vectors_per_scale));
}

}}  // namespace detail
}  // namespace mp
