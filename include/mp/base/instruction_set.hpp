// SPDX-License-Identifier: MIT
/// \file
/// The instruction sets for which kernels are compiled.
#pragma once

#include <mp/config.hpp>

#include <string_view>

namespace mp {

/// Instruction sets that kernels may use. Those of x86-64 include the ones before them, down to avx2, and all
/// include portable: x86-64 has portable < avx2 < ... < amx, 64-bit ARM portable < neon (see includes).
///
/// The library compiles its kernels for several of them into one program, whatever processor the compiler was
/// told to aim at, and picks one when the program runs. A kernel that has no version for one of them runs in
/// the next lower one. MP_STATIC_TARGET limits a program to the processor that the compiler was told to aim at; see
/// <mp/config.hpp>. Results do not depend on the choice, except where a function's documentation says so
/// (products with mp::accumulation::fastest).
enum class instruction_set : unsigned char {
    portable,     ///< what the compiler was told to use, on any processor
    neon,         ///< 64-bit ARM: the vectors (Advanced SIMD) that all its processors have
    avx2,         ///< x86-64 with AVX2, FMA, F16C and BMI: Haswell, Zen and later
    avx512,       ///< with AVX-512 F, CD, BW, DQ and VL: Skylake-X, Zen 4 and later
    avx512_bf16,  ///< with AVX512_BF16: Cooper Lake, Zen 4 and later
    avx512_fp16,  ///< with AVX512_FP16: Sapphire Rapids and later
    amx,          ///< with the tiles AMX-TILE, AMX-INT8 and AMX-BF16, where the system lets programs use them
    best,         ///< the highest of these that the processor has, or what the environment variable MP_ISA
                  ///< names
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The name of an instruction set, as MP_ISA takes it: "avx2".
[[nodiscard]] constexpr std::string_view name_of(instruction_set isa) noexcept {
    switch (isa) {
        case instruction_set::portable:
            return "portable";
        case instruction_set::neon:
            return "neon";
        case instruction_set::avx2:
            return "avx2";
        case instruction_set::avx512:
            return "avx512";
        case instruction_set::avx512_bf16:
            return "avx512_bf16";
        case instruction_set::avx512_fp16:
            return "avx512_fp16";
        case instruction_set::amx:
            return "amx";
        case instruction_set::best:
            break;
    }
    return "best";
}

/// Whether a processor that has `most` has `isa`; neither is best.
[[nodiscard]] constexpr bool includes(instruction_set most, instruction_set isa) noexcept {
    if (isa == instruction_set::neon) return most == instruction_set::neon;
    return isa <= most;
}

}}  // namespace mp
