// SPDX-License-Identifier: MIT
/// \file
/// Kernels of products with few rows, whose time goes into reading B, once and from where it lies: tiles of dot products
/// along contiguous k, for contiguous columns (dot_tiles.inl); and some rows of B at a time, each multiplied by an element of A
/// and added to a row of sums (row_runs.inl).
#pragma once

#include <mp/linalg/gemm/packing.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A dot product is accumulated in n partial sums, of which the i-th has the k with k mod n = i, and which are
/// added by a pairwise tree: i and i + n / 2, and so on. The order is the same for vectors of any length. A single
/// row has more of them, which hide the latency of additions. By pairs of bfloat16, the i-th sum has every n-th pair.
inline constexpr std::ptrdiff_t sums_of_row = 32;
inline constexpr std::ptrdiff_t sums_of_rows = 16;
/// Columns of B whose products are computed at a time.
inline constexpr std::ptrdiff_t dot_group = 16;

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The sums of the rows of A with some columns of B over a block of k.
struct dot_group_task {
    std::ptrdiff_t k;
    const void* a;            ///< of the kernel's type, with zeros up to a multiple of its sums
    std::ptrdiff_t a_row;     ///< elements from one row to the next
    std::ptrdiff_t rows;      ///< a multiple of the kernel's
    const std::byte* b;       ///< the first column
    std::ptrdiff_t b_column;  ///< bytes from one column to the next
    std::ptrdiff_t columns;   ///< at most dot_group
    float* sums;              ///< of the products of a row with dot_group columns, one after the other
    std::ptrdiff_t ahead;     ///< bytes from an element of B to the one that is fetched meanwhile
    bool resume;              ///< whether the sums go on, or start at zero
};

/// A kernel for a type of B.
struct dot_kernel {
    std::ptrdiff_t rows;     ///< of a tile
    std::ptrdiff_t columns;  ///< of a tile
    std::ptrdiff_t sums;     ///< of a product
    std::ptrdiff_t k_block;  ///< of which the rows of A and a tile's columns stay in the nearest cache
    std::ptrdiff_t a_size;   ///< bytes of an element of A
    void (*multiply)(const dot_group_task&);
    /// Adds up the sums of dot_group products.
    void (*add_up)(const float* sums, float* to);
};

/// Those for a type of B. The first two, for one row, give the same bits.
struct dot_kernels {
    /// Bytes of a B that stays in a cache.
    static constexpr std::ptrdiff_t cached = 8 << 20;
    /// The most bytes of a row of A that stay in the nearest cache, beside what is fetched of B.
    static constexpr std::ptrdiff_t most_kept = 24 << 10;

    dot_kernel of_column;   ///< takes one column after the other: the best order for memory
    dot_kernel of_columns;  ///< takes some columns side by side, and so reads A less often
    dot_kernel of_rows;

    [[nodiscard]] MP_ALWAYS_INLINE const dot_kernel& operator()(std::ptrdiff_t rows, std::ptrdiff_t k,
                                                                std::ptrdiff_t b_bytes) const {
        if (rows > 1) return of_rows;
        return b_bytes > cached && k * of_column.a_size <= most_kept ? of_column : of_columns;
    }
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/dot_tiles.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// sums[r][c] (+)= the sum of a[r][k] b[k][c] over some k, one fused multiply-add after the other.
struct row_runs_task {
    std::ptrdiff_t k;
    const float* a;        ///< rows of zeros up to a multiple of the kernel's
    std::ptrdiff_t a_row;  ///< floats from one row to the next
    std::ptrdiff_t rows;   ///< a multiple of the kernel's
    const std::byte* b;    ///< rows
    std::ptrdiff_t b_row;  ///< bytes from one row to the next
    std::ptrdiff_t columns;
    float* sums;             ///< rows with room for whole vectors
    std::ptrdiff_t sum_row;  ///< floats from one row to the next
    bool resume;             ///< whether the sums go on, or start at zero
};

/// A kernel for a type of B.
struct row_runs_kernel {
    std::ptrdiff_t rows;
    void (*add)(const row_runs_task&);
};

struct row_runs_kernels {
    row_runs_kernel of_row;
    row_runs_kernel of_rows;
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/row_runs.inl>
#include <mp/numbers/simd/for_each_target.inl>
