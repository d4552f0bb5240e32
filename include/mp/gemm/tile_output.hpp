// SPDX-License-Identifier: MIT
/// \file
/// From a tile of float accumulators to the memory of C: alpha and beta, the epilogue, one rounding.
#pragma once

#include <mp/convert/bulk.hpp>
#include <mp/gemm/epilogue.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail {

/// C and what is done to it, without its types. The product is computed with C in row-major order: a
/// column-major C is the row-major output of the transposed product, and `finish` then swaps row and column
/// for the epilogue.
struct tile_output {
    void* data;
    std::ptrdiff_t row_stride;
    float alpha;
    float beta;
    const void* epilogue;
    /// Writes the rows x columns elements of C at (row, column) from the tile of accumulators, whose rows are
    /// tile_stride floats apart and at most most_tile_columns long. The tile is scratch afterwards. Without
    /// accumulators (alpha == 0, or no depth) the tile is not read.
    void (*finish)(const tile_output& output, float* tile, std::ptrdiff_t tile_stride, bool has_accumulators,
                   std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows, std::ptrdiff_t columns);
};

// The two steps are functions of their own, so that no compiler can fuse the last operation of one with the
// first of the other: then the bits of C would depend on what was inlined where.

/// The most columns that a tile has.
inline constexpr std::ptrdiff_t most_tile_columns = 256;

/// tile = alpha * tile + beta * c. With both terms, the products are exact in double and the sum is rounded
/// to double and then to float, so that here, too, fused operations change nothing. A double C is first
/// rounded to float. With beta == 0, c is not read.
template <class Value>
#if defined(__GNUC__)
__attribute__((noinline))
#endif
void scale_and_add(float* tile, std::ptrdiff_t tile_stride, bool has_accumulators, float alpha, float beta,
                   const Value* c, std::ptrdiff_t c_stride, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    float kept[most_tile_columns];
    for (std::ptrdiff_t r = 0; r < rows; ++r, tile += tile_stride, c += c_stride) {
        if (beta == 0.0F) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) tile[j] = has_accumulators ? alpha * tile[j] : 0.0F;
            continue;
        }
        if constexpr (reduced<Value>) {
            widen_to_float(c, kept, static_cast<std::size_t>(columns));
        } else {
            for (std::ptrdiff_t j = 0; j < columns; ++j) kept[j] = static_cast<float>(c[j]);
        }
        if (!has_accumulators) {
            for (std::ptrdiff_t j = 0; j < columns; ++j) tile[j] = beta * kept[j];
        } else {
            for (std::ptrdiff_t j = 0; j < columns; ++j) {
                const double product = static_cast<double>(alpha) * static_cast<double>(tile[j]);
                tile[j] =
                    static_cast<float>(product + static_cast<double>(beta) * static_cast<double>(kept[j]));
            }
        }
    }
}

/// c = epilogue(tile), each element rounded once to the type of C, nearest-even.
template <class Value, class Epilogue, bool Swapped>
#if defined(__GNUC__)
__attribute__((noinline))
#endif
void store_tile(float* tile, std::ptrdiff_t tile_stride, const Epilogue& epilogue, Value* c,
                std::ptrdiff_t c_stride, std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows,
                std::ptrdiff_t columns) {
    for (std::ptrdiff_t r = 0; r < rows; ++r, tile += tile_stride, c += c_stride) {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            float value = 0;
            if constexpr (Swapped) {
                value = epilogue(tile[j], column + j, row + r);
            } else {
                value = epilogue(tile[j], row + r, column + j);
            }
            if constexpr (reduced<Value>) {
                tile[j] = value;
            } else {
                c[j] = static_cast<Value>(value);
            }
        }
        if constexpr (reduced<Value>) convert_nearest(tile, c, static_cast<std::size_t>(columns));
    }
}

template <class Value, class Epilogue, bool Swapped>
void finish_tile(const tile_output& output, float* tile, std::ptrdiff_t tile_stride, bool has_accumulators,
                 std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    Value* c = static_cast<Value*>(output.data) + row * output.row_stride + column;
    if (!has_accumulators || output.alpha != 1.0F || output.beta != 0.0F) {
        scale_and_add<Value>(tile, tile_stride, has_accumulators, output.alpha, output.beta, c,
                             output.row_stride, rows, columns);
    }
    store_tile<Value, Epilogue, Swapped>(tile, tile_stride, *static_cast<const Epilogue*>(output.epilogue), c,
                                         output.row_stride, row, column, rows, columns);
}

template <class Value, class Epilogue>
tile_output make_tile_output(Value* data, std::ptrdiff_t row_stride, bool swapped, float alpha, float beta,
                             const Epilogue& epilogue) {
    return {data,      row_stride,
            alpha,     beta,
            &epilogue, swapped ? &finish_tile<Value, Epilogue, true> : &finish_tile<Value, Epilogue, false>};
}

}  // namespace mp::detail
