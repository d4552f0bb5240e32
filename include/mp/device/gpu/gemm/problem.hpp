// SPDX-License-Identifier: MIT
/// \file
/// A matrix product as its kernels see it: how the operands and C lie in memory, and how C is divided among
/// blocks of threads.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Numbers of 8 bits, whose sums in tensor cores have fewer bits than a float. Those of integers are exact.
template <class Input>
inline constexpr bool is_float8 = sizeof(Input) == 1 && !std::is_same_v<Input, std::int8_t>;

/// An operand as it lies in memory: vectors of contiguous elements. In A these are rows or columns, in B too.
template <class Value>
struct operand_vectors {
    const Value* data;
    std::ptrdiff_t stride;  ///< elements from one vector to the next
    std::ptrdiff_t vectors;
    std::ptrdiff_t length;        ///< elements of a vector
    std::ptrdiff_t batch_stride;  ///< elements from one matrix to the next
    int alignment;  ///< every row (column) is aligned to this many bytes: 16, 8, 4, or one element
    bool k_major;   ///< vectors run along k: rows of A, columns of B
};

/// C, row after row, and what is done with it. Columns of a column-major C are the rows of its transpose,
/// which is the product of the transposed operands in reverse order.
template <class Output, class Epilogue>
struct product_output {
    Output* data;
    std::ptrdiff_t stride;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t batch_stride;
    bool aligned;      ///< every row begins at a multiple of the bytes of a chunk: see output_chunk
    bool swapped;      ///< the rows are columns to the epilogue
    bool has_product;  ///< false if the operands are not read: alpha is 0, or k is 0
    float alpha;
    float beta;
    Epilogue epilogue;
};

template <class A, class B, class Output, class Epilogue>
struct product_problem {
    operand_vectors<A> a;
    operand_vectors<B> b;
    product_output<Output, Epilogue> c;
    std::ptrdiff_t k;
    /// Split-k: k is divided among this many thread blocks, each of which writes its sums into `sums`: see
    /// split_sums.
    std::ptrdiff_t splits;
    float* sums;
};

/// Coordinate of a tile of C.
struct tile_coordinate {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
};

/// Tiles are numbered down groups of 8 tile rows, so that tiles of neighbouring numbers, which run at the
/// same time, share rows of A and columns of B in the cache.
/// Numbers of 32 bits are divided ten times as fast on devices.
template <class Integer>
[[nodiscard]] MP_HOST_DEVICE constexpr tile_coordinate coordinate_of_tile(Integer number, Integer tile_rows,
                                                                          Integer tile_columns) {
    constexpr Integer group = 8;
    const Integer group_tiles = group * tile_columns;
    const Integer first_row = number / group_tiles * group;
    const Integer height = tile_rows - first_row < group ? tile_rows - first_row : group;
    const Integer inside = number % group_tiles;
    return {static_cast<std::ptrdiff_t>(first_row + inside % height),
            static_cast<std::ptrdiff_t>(inside / height)};
}

/// Tiles of a size that it takes to cover a length, the last one perhaps in part.
template <class Integer>
[[nodiscard]] MP_HOST_DEVICE constexpr Integer tile_count(Integer length,
                                                          std::type_identity_t<Integer> size) {
    return length / size + (length % size != 0 ? 1 : 0);
}

/// Granularity of split-k in bytes of k, the same for every kernel: all slices but the last are multiples of it.
inline constexpr int slice_k_bytes = 128;

/// Steps of one of `splits` slices of k, all but the last of them a multiple of `whole`.
[[nodiscard]] MP_HOST_DEVICE constexpr std::ptrdiff_t steps_of_slice(std::ptrdiff_t steps,
                                                                     std::ptrdiff_t splits,
                                                                     std::ptrdiff_t whole) {
    return tile_count(tile_count(steps, splits), whole) * whole;
}

/// `count` within 0 and `most`.
[[nodiscard]] MP_HOST_DEVICE constexpr int left_of(std::ptrdiff_t count, int most) {
    return count < 0 ? 0 : count < most ? static_cast<int>(count) : most;
}

/// Of 16, 8, 4 and the size of an element the largest number of bytes at whose multiples all vectors begin.
template <class Value>
[[nodiscard]] int vector_alignment(const Value* data, std::ptrdiff_t stride, std::ptrdiff_t batch_stride) {
    constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(Value));
    const auto together = reinterpret_cast<std::uintptr_t>(data) |
                          static_cast<std::uintptr_t>(stride * size) |
                          static_cast<std::uintptr_t>(batch_stride * size);
    for (const int alignment : {16, 8, 4}) {
        if (together % static_cast<std::uintptr_t>(alignment) == 0) return alignment;
    }
    return static_cast<int>(size);
}

template <class Value>
operand_vectors<std::remove_const_t<Value>> vectors_of(matrix_view<Value> view, storage_order k_major,
                                                       std::ptrdiff_t batch_stride) {
    const bool row_major = view.order == storage_order::row_major;
    return {view.data,
            view.leading_dimension,
            row_major ? view.rows : view.columns,
            row_major ? view.columns : view.rows,
            batch_stride,
            vector_alignment(view.data, view.leading_dimension, batch_stride),
            view.order == k_major};
}

/// The properties of a problem that the types of its matrices do not have.
struct batch_strides {
    std::ptrdiff_t a = 0;
    std::ptrdiff_t b = 0;
    std::ptrdiff_t c = 0;
};

/// The problem whose C is row-major already.
template <class A, class B, class Output, class Epilogue>
product_problem<std::remove_const_t<A>, std::remove_const_t<B>, Output, Epilogue> make_product_problem(
    float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<Output> c,
    const Epilogue& epilogue, const batch_strides& strides, bool swapped) {
    // Chunks of 8-bit elements have 8 bytes, the others 16.
    const bool aligned =
        vector_alignment(c.data, c.leading_dimension, strides.c) >= (sizeof(Output) == 1 ? 8 : 16);
    return {vectors_of(a, storage_order::row_major, strides.a),
            vectors_of(b, storage_order::column_major, strides.b),
            {c.data, c.leading_dimension, c.rows, c.columns, strides.c, aligned, swapped,
             !same_value(alpha, 0.0F) && a.columns != 0, alpha, beta, epilogue},
            a.columns,
            1,
            nullptr};
}

/// Calls f(problem) with the problem whose C is row-major. A column-major C is the row-major product of the transposed
/// operands in reverse order.
template <class A, class B, class Output, class Epilogue, class Function>
void with_row_major_output(float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<Output> c,
                           const Epilogue& epilogue, const batch_strides& strides, Function f) {
    if (c.order == storage_order::column_major) {
        f(make_product_problem(alpha, transposed(b), transposed(a), beta, transposed(c), epilogue,
                               {strides.b, strides.a, strides.c}, true));
    } else {
        f(make_product_problem(alpha, a, b, beta, c, epilogue, strides, false));
    }
}

/// Calls f<AKMajor, BKMajor>() with the flags of a problem.
template <class Problem, class Function>
void with_layouts(const Problem& problem, Function f) {
    if (problem.a.k_major) {
        problem.b.k_major ? f.template operator()<true, true>() : f.template operator()<true, false>();
    } else {
        problem.b.k_major ? f.template operator()<false, true>() : f.template operator()<false, false>();
    }
}

}}  // namespace mp::detail
