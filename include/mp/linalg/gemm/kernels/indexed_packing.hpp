// SPDX-License-Identifier: MIT
/// \file
/// Packing of operands whose elements lie where a list of offsets says. See indexed_packing.inl.
#pragma once

#include <mp/linalg/gemm/packing.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Element (i, j) is elements[offsets[i] + j / image * image_stride + j % image / run * run_stride + j % run], where
/// an image is `lines` runs: of the type that panels have, float, or the code of a half or bfloat16. A cache line
/// beyond the last element may be read.
struct indexed_operand {
    const void* elements;
    const std::ptrdiff_t* offsets;
    std::ptrdiff_t run;
    std::ptrdiff_t run_stride;
    std::ptrdiff_t lines;
    std::ptrdiff_t image_stride;
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/linalg/gemm/kernels/indexed_packing.inl>
#include <mp/numbers/simd/for_each_target.inl>
