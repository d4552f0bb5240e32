// SPDX-License-Identifier: MIT
/// \file
/// Matrix products whose operands have a scale for each block of k, on the CPU.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adds the sums of one block of k to those of the blocks before it: total = fma(sum, a's scale * b's
/// scale, total), element by element. Lines of `sums` and `totals` are `stride` apart.
inline void add_scaled_block(float* totals, const float* sums, std::ptrdiff_t stride, std::ptrdiff_t rows,
                             std::ptrdiff_t columns, const k_scale_view& a, const k_scale_view& b,
                             std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t block) {
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const float row_scale = *a.at(row + r, block);
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            const float scale = float_multiply(row_scale, *b.at(column + j, block));
            float& total = totals[r * stride + j];
            total = float_multiply_add(sums[r * stride + j], scale, total);
        }
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The matrix product with scales of blocks of k:
///
///     c = epilogue(alpha * sum over t of s_a(i, t) * s_b(t, j) * (sum over the k of block t of a b)
///                  + beta * c)
///
/// where a block t is k_per_scale (128) elements of k, the last one perhaps fewer: see
/// k_block_scales. For 8-bit operands that were quantised in tiles of 1 x 128 and blocks of 128 x 128.
///
/// Shapes, storage orders, alpha, beta, the epilogue and what is not read are those of mp::gemm; scales are
/// not read either where alpha is 0.
///
/// Numerics: the sum over a block has the bits that mp::gemm of the executor gives for the block alone
/// (mp::cpu: ordered or fastest, as exec.products says). The product of the two scales is rounded to float,
/// and total = fma(sum of the block, that product, total) is taken once for each block, in ascending t from
/// +0. So scales that are powers of two change no rounding as long as nothing overflows or becomes subnormal.
///
/// Throws argument_error, before anything is written, for everything that mp::gemm refuses, for scales whose
/// shape does not fit or whose vectors_per_scale is no power of two, and for scales that overlap c.
/// Runs on exec.threads threads; takes 512 KiB a thread from the heap, besides the workspace of mp::gemm.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled(cpu exec, float alpha, matrix_view<A> a, const k_block_scales& a_scales, matrix_view<B> b,
                 const k_block_scales& b_scales, float beta, matrix_view<C> c, Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_scaled";
    constexpr std::ptrdiff_t tile = 256;
    detail::check_threads(function, exec);
    detail::check_scaled_product(function, detail::extent_of(a), a_scales, detail::extent_of(b), b_scales,
                                 detail::extent_of(c));
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a}, detail::product_input{"b", b},
                              detail::product_input{"a_scales.values", a_scales},
                              detail::product_input{"b_scales.values", b_scales});
    const instruction_set isa = detail::isa_of(function, exec);
    if (c.rows == 0 || c.columns == 0) return;
    const detail::tile_output output = detail::make_tile_output(isa, c, alpha, beta, epilogue);
    if (detail::same_value(alpha, 0.0F) || a.columns == 0) {
        return detail::finish_without_product(output, c.rows, c.columns);
    }
    const detail::k_scale_view rows_scales = detail::k_scales_of_a(a_scales, c.rows);
    const detail::k_scale_view columns_scales = detail::k_scales_of_b(b_scales, c.columns);
    cpu inner = exec;
    inner.threads = 1;
    struct tile_memory {
        gemm_workspace workspace;
        std::vector<float> sums = std::vector<float>(tile * tile);
        std::vector<float> totals = std::vector<float>(tile * tile);
    };
    detail::for_each_tile<tile_memory>(
        exec, c.rows, c.columns, tile, tile,
        [&](tile_memory& memory, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
            std::ptrdiff_t columns) {
            auto& [workspace, sums, totals] = memory;
            std::fill(totals.begin(), totals.end(), 0.0F);
            for (std::ptrdiff_t p = 0; p < a.columns; p += k_per_scale) {
                const std::ptrdiff_t k = (std::min)(k_per_scale, a.columns - p);
                gemm(inner, 1, a.block(row, p, rows, k), b.block(p, column, k, columns), 0,
                     row_major(sums.data(), rows, columns, tile), identity_epilogue{}, workspace);
                detail::add_scaled_block(totals.data(), sums.data(), tile, rows, columns, rows_scales,
                                         columns_scales, row, column, p / k_per_scale);
            }
            detail::finish_tile(output, totals.data(), tile, row, column, rows, columns);
        });
}

}}  // namespace mp
