// SPDX-License-Identifier: MIT
/// \file
/// Some rows of B at a time, each multiplied by an element of A and added to a row of sums: for products with
/// few rows, whose time goes into reading B. See row_runs.inl.
#pragma once

#include <mp/linalg/gemm/packing.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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
