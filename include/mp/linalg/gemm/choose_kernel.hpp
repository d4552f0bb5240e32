// SPDX-License-Identifier: MIT
/// \file
/// Selects the kernel of a matrix product.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/kernels/register_tiles.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether vdpbf16ps does more than fused multiply-adds of floats in the same time. On AMD's processors it
/// does twice as much; on Sapphire Rapids it was measured to do 0.6 of it.
inline bool bfloat16_dot_is_fast(instruction_set isa) {
    return isa == instruction_set::avx512_bf16 || (isa > instruction_set::avx512_bf16 && is_amd_processor());
}

/// With no more rows, bfloat16 has nothing to gain from it.
inline constexpr std::ptrdiff_t most_rows_without_dots = 4;

/// The kernel for instruction_set::portable.
inline const product_kernel* portable_kernel(accumulation order, const operand_facts& a,
                                             const operand_facts& b) {
    const bool fuse = order == accumulation::ordered && !has_exact_products(a, b);
    return fuse ? &portable::fused_kernel : &portable::float_kernel;
}

/// Selects the kernel for the types of two operands and m rows. `isa` is one that the processor
/// has. Which of the kernels for binary16 it is makes no difference to the bits: with few rows the time goes
/// into reading B, which is then left narrow, and with many it pays to widen it once.
inline const product_kernel& choose_kernel(instruction_set isa, accumulation order, const operand_facts& a,
                                           const operand_facts& b, std::ptrdiff_t rows) {
    const bool pairs = b.panel == panel_element::bfloat16_vnni2;
#if MP_BEST_TARGET >= MP_TARGET_AVX512_BF16
    if (pairs && a.is_exact_in_bfloat16 && order == accumulation::fastest && rows > most_rows_without_dots) {
        if (isa >= instruction_set::amx) return amx::bfloat16_tile_kernel;
        if (bfloat16_dot_is_fast(isa)) return avx512_bf16::bfloat16_dot_kernel;
    }
#endif
    constexpr std::ptrdiff_t skinny_rows = 48;
    if (pairs) return *MP_SELECT_TARGET(isa, portable_kernel(order, a, b), bfloat16_kernel);
    if (b.panel == panel_element::binary16 && rows <= skinny_rows)
        return *MP_SELECT_TARGET(isa, portable_kernel(order, a, b), binary16_kernel);
    return *MP_SELECT_TARGET(isa, portable_kernel(order, a, b), float_kernel);
}

}}  // namespace mp::detail
