// SPDX-License-Identifier: MIT
/// \file
/// A matrix product as its kernel sees it: how the factors and C lie in memory, and how C is divided among
/// blocks. Host and device; needs no CUDA compiler.
#pragma once

#include <mp/config.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail {

inline constexpr int warp_size = 32;

/// Rows and columns of the square blocks that tensor cores multiply, and their depth.
inline constexpr int fragment_size = 16;

/// Elements of a factor that are fetched together: 16 bytes.
inline constexpr int factor_chunk = 8;

/// The part of C that one block computes, the depth of one step, and the part of each warp.
template <int Rows, int Columns, int Depth, int WarpRows, int WarpColumns>
struct gemm_tile {
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int depth = Depth;
    static constexpr int warp_rows = WarpRows;
    static constexpr int warp_columns = WarpColumns;
    static constexpr int warps_across = Columns / WarpColumns;
    static constexpr int threads = Rows / WarpRows * warps_across * warp_size;

    static_assert(Rows % WarpRows == 0 && Columns % WarpColumns == 0 && WarpRows % fragment_size == 0 &&
                  WarpColumns % fragment_size == 0 && Depth % fragment_size == 0);
};

/// A factor as it lies in memory: lines of contiguous elements. In A these are rows or columns, in B too.
template <class Value>
struct factor_lines {
    const Value* data;
    std::ptrdiff_t stride;  ///< elements from one line to the next
    std::ptrdiff_t lines;
    std::ptrdiff_t length;  ///< elements of a line
    bool aligned;           ///< every line begins at a multiple of 16 bytes
    bool depth_contiguous;  ///< lines run along the depth: rows of A, columns of B
};

/// C, row after row, and what is done with it. Columns of a column-major C are the rows of its transpose,
/// which is the product of the transposed factors in reverse order.
template <class Output, class Epilogue>
struct product_output {
    Output* data;
    std::ptrdiff_t stride;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    bool aligned;      ///< every row begins at a multiple of 16 bytes
    bool swapped;      ///< the rows are columns to the epilogue
    bool has_product;  ///< false if the factors are not read: alpha is 0, or there is no depth
    float alpha;
    float beta;
    Epilogue epilogue;
};

template <class Input, class Output, class Epilogue>
struct product_problem {
    factor_lines<Input> a;
    factor_lines<Input> b;
    product_output<Output, Epilogue> c;
    std::ptrdiff_t depth;
    std::ptrdiff_t first_tile;  ///< the tile of block 0
};

/// Where a tile lies in C.
struct tile_place {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
};

/// Tiles are numbered down groups of 8 tile rows, so that tiles of neighbouring numbers, which run at the
/// same time, share rows of A and columns of B in the cache.
[[nodiscard]] MP_HOST_DEVICE constexpr tile_place place_of_tile(std::ptrdiff_t number,
                                                                std::ptrdiff_t tile_rows,
                                                                std::ptrdiff_t tile_columns) {
    constexpr std::ptrdiff_t group = 8;
    const std::ptrdiff_t group_tiles = group * tile_columns;
    const std::ptrdiff_t first_row = number / group_tiles * group;
    const std::ptrdiff_t height = tile_rows - first_row < group ? tile_rows - first_row : group;
    const std::ptrdiff_t inside = number % group_tiles;
    return {first_row + inside % height, inside / height};
}

/// Tiles of a size that it takes to cover a length, the last one perhaps in part.
[[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t tile_count(std::ptrdiff_t length, std::ptrdiff_t size) {
    return length / size + (length % size != 0 ? 1 : 0);
}

/// For products that fill the device, and for those that would not with tiles of that size.
using large_gemm_tile = gemm_tile<128, 128, 32, 64, 32>;
using small_gemm_tile = gemm_tile<64, 64, 32, 32, 32>;

/// Large tiles of a C from which on they are worth it: enough for every multiprocessor of a large device.
inline constexpr std::ptrdiff_t enough_large_tiles = 128;

[[nodiscard]] constexpr bool prefers_large_tile(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    return tile_count(rows, large_gemm_tile::rows) * tile_count(columns, large_gemm_tile::columns) >=
           enough_large_tiles;
}

/// The factor as lines in memory. Chunks of 16 bytes are used where every line begins at one.
template <class Value>
factor_lines<std::remove_const_t<Value>> lines_of(matrix_view<Value> view, storage_order depth_contiguous) {
    const bool row_major = view.order == storage_order::row_major;
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 && view.leading_dimension % factor_chunk == 0;
    return {view.data,
            view.leading_dimension,
            row_major ? view.rows : view.columns,
            row_major ? view.columns : view.rows,
            aligned,
            view.order == depth_contiguous};
}

/// The problem with C in row-major order: a column-major C is the row-major product of the transposed factors
/// in reverse order.
template <class Input, class Output, class Epilogue>
product_problem<Input, Output, Epilogue> make_product_problem(float alpha, matrix_view<const Input> a,
                                                              matrix_view<const Input> b, float beta,
                                                              matrix_view<Output> c,
                                                              const Epilogue& epilogue) {
    const bool swapped = c.order == storage_order::column_major;
    if (swapped) {
        const matrix_view<const Input> first = transposed(b);
        b = transposed(a);
        a = first;
        c = transposed(c);
    }
    const bool aligned = reinterpret_cast<std::uintptr_t>(c.data) % 16 == 0 &&
                         (c.leading_dimension * static_cast<std::ptrdiff_t>(sizeof(Output))) % 16 == 0;
    const bool has_product = alpha != 0.0F && a.columns != 0;
    return {lines_of(a, storage_order::row_major),
            lines_of(b, storage_order::column_major),
            {c.data, c.leading_dimension, c.rows, c.columns, aligned, swapped, has_product, alpha, beta,
             epilogue},
            a.columns,
            0};
}

/// Calls f<ADepthContiguous, BDepthContiguous>() with the flags of a problem.
template <class Problem, class Function>
void with_layouts(const Problem& problem, Function f) {
    if (problem.a.depth_contiguous) {
        problem.b.depth_contiguous ? f.template operator()<true, true>()
                                   : f.template operator()<true, false>();
    } else {
        problem.b.depth_contiguous ? f.template operator()<false, true>()
                                   : f.template operator()<false, false>();
    }
}

}  // namespace mp::detail
