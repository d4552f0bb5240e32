// SPDX-License-Identifier: MIT
/// \file
/// The values of mp::instruction_set for the preprocessor, and the choice of a kernel among them.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>

#define MP_TARGET_PORTABLE 0
#define MP_TARGET_NEON 1
#define MP_TARGET_AVX2 2
#define MP_TARGET_AVX512 3
#define MP_TARGET_AVX512_BF16 4
#define MP_TARGET_AVX512_FP16 5
#define MP_TARGET_AMX 6

static_assert(MP_TARGET_PORTABLE == static_cast<int>(mp::instruction_set::portable) &&
              MP_TARGET_NEON == static_cast<int>(mp::instruction_set::neon) &&
              MP_TARGET_AVX2 == static_cast<int>(mp::instruction_set::avx2) &&
              MP_TARGET_AVX512 == static_cast<int>(mp::instruction_set::avx512) &&
              MP_TARGET_AVX512_BF16 == static_cast<int>(mp::instruction_set::avx512_bf16) &&
              MP_TARGET_AVX512_FP16 == static_cast<int>(mp::instruction_set::avx512_fp16) &&
              MP_TARGET_AMX == static_cast<int>(mp::instruction_set::amx));

/// The function of this name, which may have template arguments, from the namespace of the highest target
/// that `isa` includes, or `portable` where there is none. All have the same type. Defined where there are
/// targets.
///
///     const auto kernel = MP_SELECT_TARGET(isa, &narrow_portable<Format>, narrow_array<Format>);
///     kernel(from, to, count);
#if MP_X86_TARGETS
#define MP_SELECT_TARGET(isa, portable, ...)                                     \
    ((isa) >= ::mp::instruction_set::avx512 ? &::mp::detail::avx512::__VA_ARGS__ \
     : (isa) >= ::mp::instruction_set::avx2 ? &::mp::detail::avx2::__VA_ARGS__   \
                                            : (portable))
#elif MP_NEON_TARGET
#define MP_SELECT_TARGET(isa, portable, ...) \
    ((isa) == ::mp::instruction_set::neon ? &::mp::detail::neon::__VA_ARGS__ : (portable))
#else
// Both branches are the same; the condition uses isa.
#define MP_SELECT_TARGET(isa, portable, ...) ((isa) == ::mp::instruction_set{} ? (portable) : (portable))
#endif
