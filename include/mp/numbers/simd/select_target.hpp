// SPDX-License-Identifier: MIT
/// \file
/// The values of mp::instruction_set for the preprocessor, and the choice of a kernel among them.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>

#include <type_traits>

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

/// The lowest and the highest target for which kernels are compiled.
#if MP_X86_TARGETS && !defined(MP_STATIC_TARGET)
#define MP_LOWEST_TARGET MP_TARGET_PORTABLE
#define MP_BEST_TARGET MP_TARGET_AMX
#elif MP_X86_TARGETS && defined(__AVX512F__) && defined(__AVX512CD__) && defined(__AVX512BW__) && \
    defined(__AVX512DQ__) && defined(__AVX512VL__)
#define MP_LOWEST_TARGET MP_TARGET_AVX512
#if !defined(__AVX512BF16__)
#define MP_BEST_TARGET MP_TARGET_AVX512
#elif !defined(__AVX512FP16__)
#define MP_BEST_TARGET MP_TARGET_AVX512_BF16
#elif !defined(__AMX_TILE__) || !defined(__AMX_INT8__) || !defined(__AMX_BF16__)
#define MP_BEST_TARGET MP_TARGET_AVX512_FP16
#else
#define MP_BEST_TARGET MP_TARGET_AMX
#endif
#elif MP_X86_TARGETS
#define MP_LOWEST_TARGET MP_TARGET_AVX2
#define MP_BEST_TARGET MP_TARGET_AVX2
#elif MP_NEON_TARGET
#if defined(MP_STATIC_TARGET)
#define MP_LOWEST_TARGET MP_TARGET_NEON
#else
#define MP_LOWEST_TARGET MP_TARGET_PORTABLE
#endif
#define MP_BEST_TARGET MP_TARGET_NEON
#else
#define MP_LOWEST_TARGET MP_TARGET_PORTABLE
#define MP_BEST_TARGET MP_TARGET_PORTABLE
#endif

/// The function of this name, which may have template arguments, from the namespace of the highest target
/// that `isa` includes, or `portable` where there is none. All have the same type. Under MP_STATIC_TARGET the
/// one from the only namespace that there is; `portable` is not evaluated, and so not compiled.
///
///     const auto kernel = MP_SELECT_TARGET(isa, &narrow_portable<Format>, narrow_array<Format>);
///     kernel(from, to, count);
#if MP_LOWEST_TARGET == MP_TARGET_AVX512
#define MP_SELECT_TARGET(isa, portable, ...) \
    (static_cast<void>(isa),                 \
     static_cast<std::decay_t<decltype(portable)>>(&::mp::detail::avx512::__VA_ARGS__))
#elif MP_LOWEST_TARGET == MP_TARGET_AVX2
#define MP_SELECT_TARGET(isa, portable, ...) \
    (static_cast<void>(isa), static_cast<std::decay_t<decltype(portable)>>(&::mp::detail::avx2::__VA_ARGS__))
#elif MP_LOWEST_TARGET == MP_TARGET_NEON
#define MP_SELECT_TARGET(isa, portable, ...) \
    (static_cast<void>(isa), static_cast<std::decay_t<decltype(portable)>>(&::mp::detail::neon::__VA_ARGS__))
#elif MP_X86_TARGETS
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
