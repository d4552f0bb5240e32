// SPDX-License-Identifier: MIT
/// \file
/// Keeps a compiler's algebra away from floating-point values.
#pragma once

#include <mp/config.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x, hidden from the optimiser: behind it the compiler knows neither the value nor where it came from.
///
/// -ffast-math and its parts (-fassociative-math, -freciprocal-math, -fno-signed-zeros, -ffinite-math-only,
/// -ffp-contract=fast) rewrite expressions whose operations they see together: x - x becomes 0, (a + b) - a
/// becomes b, a / b becomes a * (1 / b). No macro tells which of them are on, and with clang none tells any,
/// so an operation that must be IEEE's has its operands and its result pass through here. It costs no
/// instruction where values live in floating-point registers; elsewhere a store and a load, which on x87
/// rounds to the type.
template <class T>
MP_HOST_DEVICE MP_ALWAYS_INLINE T opt_barrier(T x) noexcept {
#if MP_DEVICE_CODE || !defined(__GNUC__)
    return x;
#else
#if defined(__SSE2__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#elif defined(__s390x__) || defined(__riscv_flen)
    __asm__("" : "+f"(x));
#else
    __asm__("" : "+m"(x));
#endif
    return x;
#endif
}

}}  // namespace mp::detail
