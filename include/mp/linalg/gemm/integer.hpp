// SPDX-License-Identifier: MIT
/// \file
/// Exact matrix products of 8-bit integers.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp {

/// An 8-bit integer as an operand.
template <class Value>
concept int8_operand = std::same_as<std::remove_const_t<Value>, std::int8_t>;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Products of 8-bit integers are at most 2^14, so that float holds sums of as many exactly, in whatever order they are added.
inline constexpr std::ptrdiff_t exact_float_products = 1024;

/// Rows and columns of C whose sums a thread computes at a time: those that a tile_output takes.
inline constexpr std::ptrdiff_t integer_tile_rows = output_run;
inline constexpr std::ptrdiff_t integer_tile_columns = output_run;

/// Sums of a tile, row after row, integer_tile_columns apart, and what they are computed in. Modulo 2^32, as unsigned numbers.
struct integer_tile {
    std::vector<std::uint32_t> sums;
    std::vector<float> floats;
    gemm_workspace packed;

    /// sums = a b, by products of float that are exact.
    void multiply(instruction_set isa, matrix_view<const std::int8_t> a, matrix_view<const std::int8_t> b) {
        constexpr std::ptrdiff_t stride = integer_tile_columns;
        const auto size = static_cast<std::size_t>(a.rows * stride);
        sums.assign(size, 0);
        floats.resize(size);
        for (std::ptrdiff_t k = 0; k < a.columns; k += exact_float_products) {
            const std::ptrdiff_t count = (std::min)(exact_float_products, a.columns - k);
            gemm_of_views(
                cpu{.instructions = isa}, 1.0F, a.block(0, k, a.rows, count), b.block(k, 0, count, b.columns),
                0.0F, matrix_view<float>{floats.data(), a.rows, b.columns, stride, storage_order::row_major},
                identity_epilogue{}, &packed);
            for (std::ptrdiff_t i = 0; i < a.rows; ++i) {
                std::uint32_t* const to = sums.data() + i * stride;
                const float* const from = floats.data() + i * stride;
                for (std::ptrdiff_t j = 0; j < b.columns; ++j)
                    to[j] += static_cast<std::uint32_t>(static_cast<std::int32_t>(from[j]));
            }
        }
    }
};

/// Calls finish(tile, row, column, rows, columns) for the tiles of a b, on several threads.
template <class Finish>
void multiply_integers(const cpu& exec, instruction_set isa, matrix_view<const std::int8_t> a,
                       matrix_view<const std::int8_t> b, Finish finish) {
    for_each_tile<integer_tile>(exec, a.rows, b.columns, integer_tile_rows, integer_tile_columns,
                                [&](integer_tile& tile, std::ptrdiff_t row, std::ptrdiff_t column,
                                    std::ptrdiff_t rows, std::ptrdiff_t columns) {
                                    tile.multiply(isa, a.block(row, 0, rows, a.columns),
                                                  b.block(0, column, b.rows, columns));
                                    finish(tile, row, column, rows, columns);
                                });
}

/// alpha * sum + beta * c in 32 bits, where c is not read if beta is zero.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr std::int32_t scale_integer(std::int32_t alpha, std::uint32_t sum,
                                                                     std::int32_t beta, std::int32_t c) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(alpha) * sum +
                                     static_cast<std::uint32_t>(beta) * static_cast<std::uint32_t>(c));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The matrix product c = alpha * a b + beta * c of 8-bit integers in 32 bits, exact, and modulo 2^32 where it does not fit (from
/// 131072 products on): what the matrix instructions of GPUs give.
///
/// Shapes, storage orders, threads and errors are those of mp::gemm of other types, into whose kernels it goes: sums of up to 1024
/// products are exact in float. beta == 0 means that c is not read, alpha == 0 that a and b are not read. (Into a c of floats,
/// mp::gemm takes std::int8_t, too; there sums of more products than 1024 are rounded on the way.)
///
///     mp::gemm(mp::cpu{}, 1, mp::row_major(a, m, k), mp::row_major(b, k, n), 0, mp::row_major(c, m, n));
template <int8_operand A, int8_operand B>
void gemm(cpu exec, std::int32_t alpha, matrix_view<A> a, matrix_view<B> b, std::int32_t beta,
          matrix_view<std::int32_t> c) {
    constexpr std::string_view function = "mp::gemm";
    detail::check_threads(function, exec);
    detail::check_product(function, detail::extent_of(a), detail::extent_of(b), detail::extent_of(c));
    const instruction_set isa = detail::isa_of(function, exec);
    if (c.rows == 0 || c.columns == 0) return;
    const std::ptrdiff_t k = alpha == 0 ? 0 : a.columns;
    detail::multiply_integers(
        exec, isa, a.block(0, 0, a.rows, k), b.block(0, 0, k, b.columns),
        [&](const detail::integer_tile& tile, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
            std::ptrdiff_t columns) {
            for (std::ptrdiff_t i = 0; i < rows; ++i) {
                for (std::ptrdiff_t j = 0; j < columns; ++j) {
                    std::int32_t& to = c(row + i, column + j);
                    const std::uint32_t sum =
                        tile.sums[static_cast<std::size_t>(i * detail::integer_tile_columns + j)];
                    to = detail::scale_integer(alpha, sum, beta, beta == 0 ? 0 : to);
                }
            }
        });
}

}}  // namespace mp
