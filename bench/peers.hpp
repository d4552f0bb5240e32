// SPDX-License-Identifier: MIT
/// \file
/// The peers that benchmarks compare with, each present where MP_BENCH_HAS_<PEER> is 1.
#pragma once

#if MP_BENCH_HAS_EIGEN
#if defined(__GNUC__) && !defined(__clang__)
// The AVX-512 intrinsics of g++ 12 warn about their own deliberately undefined vectors when Eigen uses them.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <Eigen/Core>
#endif

#if MP_BENCH_HAS_FP16
#include <fp16.h>
#endif

#if MP_BENCH_HAS_HALF
#include <half.hpp>
#endif

#if MP_BENCH_HAS_SOFTFLOAT
extern "C" {
#include <softfloat.h>
}
#endif

// The compiler's own binary16, where the target has one.
#if defined(__FLT16_MAX__)
#define MP_BENCH_HAS_FLOAT16 1
#else
#define MP_BENCH_HAS_FLOAT16 0
#endif

namespace bench {

#if MP_BENCH_HAS_FLOAT16
__extension__ using native_half = _Float16;

/// Whether it is converted, and calculated with, by instructions rather than by calls.
#if defined(__F16C__)
inline constexpr bool native_half_converts = true;
#else
inline constexpr bool native_half_converts = false;
#endif
#endif

}  // namespace bench
