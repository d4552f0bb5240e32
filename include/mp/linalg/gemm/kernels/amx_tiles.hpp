// SPDX-License-Identifier: MIT
/// \file
/// The kernel of the matrix product for AMX: 32 x 32 sums in four tiles of 16 x 16, fed from two tiles of 16
/// rows of A by 32 steps of k and two of 32 steps by 16 columns of B.
///
/// tdpbf16ps adds to each sum, for 32 steps at a time: the sum of the products of the even steps plus that of
/// the odd ones, both begun at zero and formed by fused multiply-adds in ascending order; rounding to nearest
/// even, subnormal operands and results taken for zero (Intel 64 and IA-32 Architectures Software Developer's
/// Manual, volume 2, TDPBF16PS).
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>
#include <cstdint>

#if MP_BEST_TARGET >= MP_TARGET_AMX
namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace amx {

/// Eight tiles of 16 rows of 64 bytes.
struct alignas(64) tile_configuration {
    std::uint8_t palette = 1;
    std::uint8_t start_row = 0;
    std::uint8_t reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

inline void begin_tiles() {
    static constexpr tile_configuration configuration;
    __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
}
inline void end_tiles() {
    __asm__ volatile("tilerelease");
}

/// 32 rows by 32 columns, or the upper 16 rows alone. The tile registers are named here, since compilers do
/// not hand them out: 0 to 3 are the sums, 4 and 5 hold A, 6 and 7 hold B.
template <int Rows>
void multiply_tiles(const tile_product& p) {
    static_assert(Rows == 16 || Rows == 32);
    const std::ptrdiff_t tile_bytes = p.tile_stride * static_cast<std::ptrdiff_t>(sizeof(float));
    // In variables, since the assembly below may write any memory for all that the compiler knows.
    const std::ptrdiff_t a_row = p.a_row;
    const std::ptrdiff_t a_tile = p.a_tile;
    const std::ptrdiff_t b_step = p.b_step;
    const std::ptrdiff_t k = p.k;
    const auto* a = static_cast<const std::byte*>(p.a);
    const auto* b = static_cast<const std::byte*>(p.b);
    float* const lower = p.tile + 16 * p.tile_stride;
    if (p.resume) {
        __asm__ volatile(
            "tileloadd (%0,%1,1), %%tmm0\n\t"
            "tileloadd 64(%0,%1,1), %%tmm1"
            :
            : "r"(p.tile), "r"(tile_bytes)
            : "memory");
        if constexpr (Rows == 32) {
            __asm__ volatile(
                "tileloadd (%0,%1,1), %%tmm2\n\t"
                "tileloadd 64(%0,%1,1), %%tmm3"
                :
                : "r"(lower), "r"(tile_bytes)
                : "memory");
        }
    } else {
        __asm__ volatile("tilezero %tmm0\n\ttilezero %tmm1\n\ttilezero %tmm2\n\ttilezero %tmm3");
    }
    for (std::ptrdiff_t step = 0; step < k; step += 32) {
        if constexpr (Rows == 32) {
            __asm__ volatile(
                "tileloadd (%0,%2,1), %%tmm4\n\t"
                "tileloadd (%3,%4,1), %%tmm6\n\t"
                "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                "tileloadd 64(%3,%4,1), %%tmm7\n\t"
                "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
                "tileloadd (%1,%2,1), %%tmm5\n\t"
                "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
                "tdpbf16ps %%tmm7, %%tmm5, %%tmm3"
                :
                : "r"(a), "r"(a + 16 * a_row), "r"(a_row), "r"(b), "r"(b_step)
                : "memory");
        } else {
            __asm__ volatile(
                "tileloadd (%0,%1,1), %%tmm4\n\t"
                "tileloadd (%2,%3,1), %%tmm6\n\t"
                "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
                "tileloadd 64(%2,%3,1), %%tmm7\n\t"
                "tdpbf16ps %%tmm7, %%tmm4, %%tmm1"
                :
                : "r"(a), "r"(a_row), "r"(b), "r"(b_step)
                : "memory");
        }
        a += a_tile;
        b += 16 * b_step;
    }
    __asm__ volatile(
        "tilestored %%tmm0, (%0,%1,1)\n\t"
        "tilestored %%tmm1, 64(%0,%1,1)"
        :
        : "r"(p.tile), "r"(tile_bytes)
        : "memory");
    if constexpr (Rows == 32) {
        __asm__ volatile(
            "tilestored %%tmm2, (%0,%1,1)\n\t"
            "tilestored %%tmm3, 64(%0,%1,1)"
            :
            : "r"(lower), "r"(tile_bytes)
            : "memory");
    }
}

inline constexpr product_kernel bfloat16_tile_kernel = {
    "cpu.bf16.amx.32x32",
    32,
    32,
    32,
    1024,
    32,
    panel_element::bfloat16_vnni2,
    panel_element::bfloat16_vnni2,
    a_layout::tiles,
    true,
    true,
    {{16, &multiply_tiles<16>}, {32, &multiply_tiles<32>}},
    &begin_tiles,
    &end_tiles};

}}}  // namespace mp::detail::amx
#endif
