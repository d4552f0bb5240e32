// SPDX-License-Identifier: MIT
/// \file
/// The name of the instruction set that the compiler was told to use, for programs whose sources are compiled
/// with different ones.
///
/// A linker keeps one copy of an inline function, whichever source it came from. If one source was compiled
/// with -march=haswell and another without, the copy may hold instructions that the processor of the second
/// does not have. So everything that has code lives in an inline namespace of this name, and each source has
/// its own:
///
///     namespace mp::detail { inline namespace MP_ISA_NAMESPACE { ... }}
///
/// (in this spelling: tools that read sources as text, such as ctags, miss what `a::inline b {` encloses)
///
/// Outside of it, and the same in all sources, are the types that such sources hand to each other (numbers,
/// views, executors, options, reports), and what holds state of the program. Types inside, such as optimizers
/// and scalers, cannot be handed from a source of one instruction set to one of another: the linker says so.
///
/// The name lists what compilers use without being asked by name. It also says where kernels are compiled for
/// one target alone (MP_STATIC_TARGET), where the library has a compiled part (MP_COMPILED), and where exceptions are
/// off, since errors are reported in another way then.
#pragma once

#define MP_ISA_JOIN_(a, b, c, d, e, f, g, h, i, j, k, l) isa_##a##b##c##d##e##f##g##h##i##j##k##l
#define MP_ISA_JOIN(a, b, c, d, e, f, g, h, i, j, k, l) MP_ISA_JOIN_(a, b, c, d, e, f, g, h, i, j, k, l)
#define MP_ISA_GENERATION_(a, b) a##b
#define MP_ISA_GENERATION(a, b) MP_ISA_GENERATION_(a, b)

#if defined(__CUDACC__)
// Host and device code must agree on the names of kernels, and see different macros.
#define MP_ISA_VECTORS cuda
#elif defined(__AVX512F__)
#define MP_ISA_VECTORS avx512
#elif defined(__AVX2__)
#define MP_ISA_VECTORS avx2
#elif defined(__AVX__)
#define MP_ISA_VECTORS avx
#elif defined(__SSE4_2__)
#define MP_ISA_VECTORS sse42
#elif defined(__SSE4_1__)
#define MP_ISA_VECTORS sse41
#elif defined(__SSSE3__)
#define MP_ISA_VECTORS ssse3
#elif defined(__SSE3__)
#define MP_ISA_VECTORS sse3
#elif defined(__SSE2__)
#define MP_ISA_VECTORS sse2
#elif defined(__ARM_FEATURE_SVE2)
#define MP_ISA_VECTORS sve2
#elif defined(__ARM_FEATURE_SVE)
#define MP_ISA_VECTORS sve
#elif defined(__ARM_NEON)
#define MP_ISA_VECTORS neon
#elif defined(__riscv_vector)
#define MP_ISA_VECTORS rvv
#elif defined(__s390x__) && defined(__ARCH__)
#define MP_ISA_VECTORS MP_ISA_GENERATION(z, __ARCH__)
#elif defined(_ARCH_PWR10)
#define MP_ISA_VECTORS pwr10
#elif defined(_ARCH_PWR9)
#define MP_ISA_VECTORS pwr9
#else
#define MP_ISA_VECTORS scalar
#endif

#if (defined(__AVX512FP16__) || defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC) || defined(__riscv_zfh)) && \
    !defined(__CUDACC__)
#define MP_ISA_FLOAT16 _float16
#else
#define MP_ISA_FLOAT16
#endif
#if (defined(__AVX512BF16__) || defined(__ARM_FEATURE_BF16)) && !defined(__CUDACC__)
#define MP_ISA_BFLOAT16 _bf16
#else
#define MP_ISA_BFLOAT16
#endif
#if (defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)) && \
    !defined(__CUDACC__)
#define MP_ISA_DOT _dot
#else
#define MP_ISA_DOT
#endif
#if (defined(__AVX512VBMI2__) || defined(__AVX512BITALG__) || defined(__ARM_FEATURE_MATMUL_INT8)) && \
    !defined(__CUDACC__)
#define MP_ISA_BYTES _bytes
#else
#define MP_ISA_BYTES
#endif
#if defined(__F16C__) && !defined(__CUDACC__)
#define MP_ISA_F16C _f16c
#else
#define MP_ISA_F16C
#endif
#if (defined(__FMA__) || defined(__ARM_FEATURE_FMA)) && !defined(__CUDACC__)
#define MP_ISA_FMA _fma
#else
#define MP_ISA_FMA
#endif
#if (defined(__BMI2__) || defined(__riscv_zbb)) && !defined(__CUDACC__)
#define MP_ISA_BITS _bits
#else
#define MP_ISA_BITS
#endif
#if (defined(__POPCNT__) || defined(__LZCNT__)) && !defined(__CUDACC__)
#define MP_ISA_COUNTS _counts
#else
#define MP_ISA_COUNTS
#endif
#if defined(MP_STATIC_TARGET) && !defined(__CUDACC__)
#define MP_ISA_CHOICE _static
#else
#define MP_ISA_CHOICE
#endif
#if !defined(__cpp_exceptions)
#define MP_ISA_ERRORS _noexcept
#else
#define MP_ISA_ERRORS
#endif
// Where there is a compiled part, a function may be one thing in it and a call of that outside of it.
#if defined(MP_COMPILED_SOURCE)
#define MP_ISA_FORM _compiled
#elif defined(MP_COMPILED)
#define MP_ISA_FORM _linked
#else
#define MP_ISA_FORM
#endif

#define MP_ISA_NAMESPACE                                                                                \
    MP_ISA_JOIN(MP_ISA_VECTORS, MP_ISA_FLOAT16, MP_ISA_BFLOAT16, MP_ISA_DOT, MP_ISA_BYTES, MP_ISA_F16C, \
                MP_ISA_FMA, MP_ISA_BITS, MP_ISA_COUNTS, MP_ISA_CHOICE, MP_ISA_ERRORS, MP_ISA_FORM)
