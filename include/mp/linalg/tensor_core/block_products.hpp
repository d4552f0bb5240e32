// SPDX-License-Identifier: MIT
/// \file
/// The inner loops of an emulated product and what they work on.
#pragma once

#include <mp/base/opt_barrier.hpp>
#include <mp/config.hpp>
#include <mp/linalg/tensor_core/panels.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// One block of one row of A and one panel of B.
struct block_operands {
    const float* a;
    const std::int16_t* a_exponents;
    int a_base;
    const float* b;
    const std::int16_t* b_exponents;
    const std::int32_t* b_bases;
};

/// A row of A and a panel of B over several blocks, and who does again what the loops cannot do.
struct panel_task {
    const operand_panels* a;
    const operand_panels* b;
    block_rule rule;
    std::ptrdiff_t blocks;
    /// The bits of one block by block_fma_bits; column is one of the panel's.
    std::uint32_t (*slow)(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                          std::ptrdiff_t block, std::uint32_t addend);
    const void* context;
};

using panel_function = void (*)(const panel_task& task, std::ptrdiff_t panel, std::ptrdiff_t rows,
                                std::ptrdiff_t columns, float* sums, std::ptrdiff_t sums_stride);

}}  // namespace mp::detail

#define MP_TARGET every_processor
#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#include <mp/linalg/tensor_core/kernels/panel_products.inl>
#undef MP_TARGET
#undef MP_TARGET_NUMBER

#define MP_KERNEL_FILE <mp/linalg/tensor_core/kernels/panel_products.inl>
#include <mp/numbers/simd/for_each_target.inl>
