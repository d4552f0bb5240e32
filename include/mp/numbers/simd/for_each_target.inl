// SPDX-License-Identifier: MIT
/// \file
/// Includes the file that MP_KERNEL_FILE names once for each instruction set for which the compiler can make
/// code, whatever its own target is. Has no include guard, since it serves many files:
///
///     #define MP_KERNEL_FILE <mp/arrays/convert/kernels/convert_arrays.inl>
///     #include <mp/numbers/simd/for_each_target.inl>
///
/// The file puts its functions into namespace mp::detail::MP_TARGET, in which they may use the vectors of
/// <mp/numbers/simd/vec.hpp>, and which `MP_SELECT_TARGET` of <mp/numbers/simd/select_target.hpp> picks when the program runs.
/// MP_TARGET_NUMBER says which of MP_TARGET_NEON, MP_TARGET_AVX2, ... it is. A file that has something to gain from more than
/// AVX-512 defines MP_HIGHEST_TARGET before as the highest instruction set that it is to be compiled for, at
/// most AVX512_FP16: the tiles of AMX are reached through assembly, for which the compiler need not know
/// them.
///
/// This is the way by which functions for several targets can share their source: a template does not pass
/// its own target on to what it calls, and neither compiler inlines a function into one with fewer
/// instructions. Functions outside of these files are inlined into them, since those want less.

#if !defined(MP_KERNEL_FILE)
#error "define MP_KERNEL_FILE before including <mp/numbers/simd/for_each_target.inl>"
#endif
#if !defined(MP_HIGHEST_TARGET)
#define MP_HIGHEST_TARGET MP_TARGET_AVX512
#endif

#if MP_X86_TARGETS

// Without its minimum width, clang cuts 64-byte vectors in halves on targets where it thinks that 32
// bytes run faster.
#define MP_TARGET_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define MP_BEGIN_TARGET(features) \
    MP_TARGET_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define MP_BEGIN_WIDE_TARGET(features)                                                                  \
    MP_TARGET_PRAGMA(clang attribute push(__attribute__((target(features), __min_vector_width__(512))), \
                                          apply_to = function))
#define MP_END_TARGET MP_TARGET_PRAGMA(clang attribute pop)
// A file may have nothing for one of them.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpragma-clang-attribute"
#else
#define MP_BEGIN_TARGET(features) MP_TARGET_PRAGMA(GCC push_options) MP_TARGET_PRAGMA(GCC target(features))
#define MP_BEGIN_WIDE_TARGET(features) \
    MP_BEGIN_TARGET(features) MP_TARGET_PRAGMA(GCC target("prefer-vector-width=512"))
#define MP_END_TARGET MP_TARGET_PRAGMA(GCC pop_options)
#endif

#if MP_LOWEST_TARGET <= MP_TARGET_AVX2
MP_BEGIN_TARGET("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#define MP_TARGET avx2
#define MP_TARGET_NUMBER MP_TARGET_AVX2
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
MP_END_TARGET
#endif

#if MP_BEST_TARGET >= MP_TARGET_AVX512
MP_BEGIN_WIDE_TARGET("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512cd,avx512bw,avx512dq,avx512vl")
#define MP_TARGET avx512
#define MP_TARGET_NUMBER MP_TARGET_AVX512
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
MP_END_TARGET
#endif

#if MP_BEST_TARGET >= MP_TARGET_AVX512_BF16 && MP_HIGHEST_TARGET >= MP_TARGET_AVX512_BF16
MP_BEGIN_WIDE_TARGET(
    "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512cd,avx512bw,avx512dq,avx512vl,avx512bf16")
#define MP_TARGET avx512_bf16
#define MP_TARGET_NUMBER MP_TARGET_AVX512_BF16
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
MP_END_TARGET
#endif

#if MP_BEST_TARGET >= MP_TARGET_AVX512_FP16 && MP_HIGHEST_TARGET >= MP_TARGET_AVX512_FP16
MP_BEGIN_WIDE_TARGET(
    "avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,avx512f,avx512cd,avx512bw,avx512dq,avx512vl,avx512bf16,avx512fp16")
#define MP_TARGET avx512_fp16
#define MP_TARGET_NUMBER MP_TARGET_AVX512_FP16
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
MP_END_TARGET
#endif

#undef MP_TARGET_PRAGMA
#undef MP_BEGIN_TARGET
#undef MP_BEGIN_WIDE_TARGET
#undef MP_END_TARGET
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

// NEON, which every processor has: the target of the program.
#elif MP_NEON_TARGET
#define MP_TARGET neon
#define MP_TARGET_NUMBER MP_TARGET_NEON
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
#endif
#undef MP_KERNEL_FILE
#undef MP_HIGHEST_TARGET
