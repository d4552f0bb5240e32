// SPDX-License-Identifier: MIT
/// \file
/// The layout of the fragments of warp-level matrix instructions: which lane holds which elements.
/// Kernels and the host backend both read it here; the tests show that each is one to one.
///
/// The instructions m16n8k8 (tf32), m16n8k16 (half, bfloat16) and m16n8k32 (8 bits) are one thing for all
/// types: A has 16 rows of 32 bytes, B 8 columns of 32 bytes, and a register holds 4 neighbouring bytes of
/// one. (Parallel Thread Execution ISA, "Matrix Fragments for mma.m16n8k16", and its siblings.)
#pragma once

#include <mp/config.hpp>
#include <mp/tfloat32.hpp>

#include <cstdint>
#include <type_traits>

namespace mp::simt {

/// Rows of A and C, columns of B and C, and bytes along k of one matrix instruction of a warp.
inline constexpr int mma_rows = 16;
inline constexpr int mma_columns = 8;
inline constexpr int mma_k_bytes = 32;

/// Elements of a type along k of one matrix instruction.
template <class Input>
inline constexpr int mma_k = mma_k_bytes / static_cast<int>(sizeof(Input));

/// The type of sums of products: integers of 32 bits for those of 8, floats for everything else.
template <class Input>
using mma_sum = std::conditional_t<std::is_same_v<Input, std::int8_t>, std::int32_t, float>;

/// Elements of a type along k of a fragment of nvcuda::wmma, whose sums are 16 x 16.
template <class Input>
inline constexpr int wmma_k = std::is_same_v<Input, tfloat32> ? 8 : 16;

/// A coordinate in a matrix: its row of A (column of B), and where along k, in bytes; for C row and
/// column.
struct fragment_coordinate {
    int row;
    int position;

    friend constexpr bool operator==(fragment_coordinate, fragment_coordinate) = default;
};

}  // namespace mp::simt

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// Coordinate of the four bytes of register 0 to 3 of A.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate mma_a_coordinate(int lane, int number) {
    return {lane / 4 + number % 2 * 8, lane % 4 * 4 + number / 2 * 16};
}
/// Coordinate of the four bytes of register 0 or 1 of B.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate mma_b_coordinate(int lane, int number) {
    return {lane / 4, lane % 4 * 4 + number * 16};
}
/// Coordinate of accumulator 0 to 3 of C.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate mma_c_coordinate(int lane, int number) {
    return {lane / 4 + number / 2 * 8, lane % 4 * 2 + number % 2};
}

/// load_matrix reads matrices of 8 rows of 16 bytes; row r of matrix m is where lane 8 m + r points. Register
/// m of a lane gets 4 bytes of matrix m: from this row and byte.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate loaded_coordinate(int lane) {
    return {lane / 4, lane % 4 * 4};
}
/// The same transposed, for elements of 2 bytes: the register gets element lane / 4 of two neighbouring rows,
/// of which this is the first one.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate loaded_transposed_coordinate(int lane) {
    return {lane % 4 * 2, lane / 4 * 2};
}

}}  // namespace mp::simt
