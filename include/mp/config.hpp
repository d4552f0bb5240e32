// SPDX-License-Identifier: MIT
/// \file
/// Version, and every feature switch of the library in one place. None of them changes a result: a switch
/// only chooses by which instructions the same bits are computed.
#pragma once

#include <mp/base/isa_namespace.hpp>

/// Semantic version of the library (before 1.0 a minor version may change the interface); the build files read it from
/// here. MP_VERSION is one number, to compare: 200 is 0.2.0.
#define MP_VERSION_MAJOR 0
#define MP_VERSION_MINOR 2
#define MP_VERSION_PATCH 0
#define MP_VERSION (MP_VERSION_MAJOR * 10000 + MP_VERSION_MINOR * 100 + MP_VERSION_PATCH)

/// 1 where the compiler has integers of 128 bits; elsewhere, and with MP_NO_INT128, two words do the same.
#if defined(__SIZEOF_INT128__) && !defined(MP_NO_INT128)
#define MP_HAS_INT128 1
#else
#define MP_HAS_INT128 0
#endif

/// Marks a function that may be called from the host and, when nvcc compiles it, from device code.
#if defined(__CUDACC__)
#define MP_HOST_DEVICE __host__ __device__
#else
#define MP_HOST_DEVICE
#endif

/// Before an MP_HOST_DEVICE function whose body calls functions that a template argument brings along:
/// whether they run on the host, the device or both is the argument's business, and nvcc does not warn.
#if defined(__NVCC__)
#define MP_ANY_EXECUTION_SPACE _Pragma("nv_exec_check_disable")
#else
#define MP_ANY_EXECUTION_SPACE
#endif

/// 1 while nvcc compiles the device side of a function.
#if defined(__CUDA_ARCH__)
#define MP_DEVICE_CODE 1
#else
#define MP_DEVICE_CODE 0
#endif

/// 1 where errors are thrown. 0 under -fno-exceptions, where the function that MP_ERROR_HANDLER names gets
/// the message of an error and ends the program. All sources of a program that include the library agree on
/// that.
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define MP_HAS_EXCEPTIONS 1
#else
#define MP_HAS_EXCEPTIONS 0
#endif

/// Define MP_ERROR_HANDLER as the name of a function in the global namespace to be told of errors where there
/// are no exceptions (where there are, it is not called). The library declares it, and the program defines
/// it:
///
///     // g++ -fno-exceptions -DMP_ERROR_HANDLER=my_error_handler ...
///     void my_error_handler(const char* message) noexcept { ...; std::abort(); }
///
/// It must not return. Several threads may call it at once. Without it, the message goes to stderr and the
/// program ends by std::abort. All sources of a program that include the library name the same handler.

/// 1 where casts that a region keeps are compared with their buffers whenever they are used again, so that a
/// buffer_version::changed() that was forgotten ends in a state_error instead of in stale weights: by itself in
/// debug builds (without NDEBUG). Costs what keeping casts saves. Define it as 0 or 1 to choose; see
/// autocast::cast_cache for a choice at run time.
#if !defined(MP_CHECK_KEPT_CASTS)
#if defined(NDEBUG)
#define MP_CHECK_KEPT_CASTS 0
#else
#define MP_CHECK_KEPT_CASTS 1
#endif
#endif

/// Define MP_COMPILED in all sources of a program that links with the library's compiled part (in CMake,
/// mp::compiled does): functions marked MP_CORE_FUNCTION are then compiled once, in the one source that defines
/// MP_COMPILED_SOURCE as well and includes <mp/compiled.hpp>, in place of in every source that uses them. The
/// results are the same.
///
/// What crosses the border lives in MP_CORE_NAMESPACE, which is MP_LINKED_NAMESPACE then. That does not name the
/// instruction set that a source is compiled for, so that sources for any of them link with one compiled part; but it
/// names the version of the library, and whether errors are exceptions, in which the two must agree. Products that nvcc
/// compiles for sources of other compilers (<mp/cuda_gemm.hpp>) are in it always.
#define MP_CORE_VERSION_(major, minor, patch, errors) compiled_##major##_##minor##_##patch##errors
#define MP_CORE_VERSION(major, minor, patch, errors) MP_CORE_VERSION_(major, minor, patch, errors)
#define MP_LINKED_NAMESPACE \
    MP_CORE_VERSION(MP_VERSION_MAJOR, MP_VERSION_MINOR, MP_VERSION_PATCH, MP_ISA_ERRORS)
#if defined(MP_COMPILED)
#if defined(MP_COMPILED_SOURCE)
// Several sources may share the work, see <mp/compiled.hpp>, and each then has what it uses.
#define MP_CORE_BODIES 1
#if defined(__clang__)
// Of inline constructors and destructors clang leaves out those of complete objects, unless they are weak.
#define MP_CORE_FUNCTION __attribute__((used, weak)) inline
#else
#define MP_CORE_FUNCTION __attribute__((used)) inline
#endif
#else
#define MP_CORE_BODIES 0
#define MP_CORE_FUNCTION
#endif
#define MP_CORE_NAMESPACE MP_LINKED_NAMESPACE
#else
#define MP_CORE_BODIES 1
#define MP_CORE_FUNCTION inline
#define MP_CORE_NAMESPACE MP_ISA_NAMESPACE
#endif

/// Define MP_NO_HARDWARE_PATHS to compute everything with the integer core: slower, the same bits.
/// It is on by itself where float expressions are evaluated in a wider type: the proofs of the short cuts
/// need IEEE binary32. Options that let compilers approximate float arithmetic do no harm, see
/// <mp/base/opt_barrier.hpp>.
#if defined(MP_NO_HARDWARE_PATHS) || \
    (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16)
#define MP_HARDWARE_FLOAT 0
#else
#define MP_HARDWARE_FLOAT 1
#endif

/// 1 where floats and doubles are calculated by the x87 unit, as by default for 32-bit x86: with 64 bits of
/// precision and a wider range, whatever the type.
#if defined(__GNUC__) && (defined(__i386__) || defined(__x86_64__)) && defined(__FLT_EVAL_METHOD__) && \
    __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 1 && __FLT_EVAL_METHOD__ != 16
#define MP_X87_ARITHMETIC 1
#else
#define MP_X87_ARITHMETIC 0
#endif

/// 1 where the target has the F16C conversions between binary16 and binary32.
#if !defined(MP_NO_HARDWARE_PATHS) && defined(__F16C__) && defined(__GNUC__) && !defined(__CUDACC__)
#define MP_HARDWARE_F16C 1
#else
#define MP_HARDWARE_F16C 0
#endif

/// 1 where the target calculates in binary16 (AVX512-FP16), whose instructions round once and honour
/// subnormals whatever the environment says.
#if MP_HARDWARE_FLOAT && defined(__AVX512FP16__) && defined(__FLT16_MAX__) && !defined(__CUDACC__)
#define MP_HARDWARE_BINARY16 1
#else
#define MP_HARDWARE_BINARY16 0
#endif

/// 1 where the compiler has the types _Float16, __bf16 and __float128. Not under nvcc, whose device code
/// lacks them. g++ 12 for ARM has the macros of _Float16, but not the type in C++.
#if defined(__FLT16_MAX__) && !defined(__CUDACC__) && \
    (defined(__clang__) || !defined(__GNUC__) || __GNUC__ >= 13 || defined(__x86_64__) || defined(__i386__))
#define MP_HAS_COMPILER_BINARY16 1
#else
#define MP_HAS_COMPILER_BINARY16 0
#endif
#if defined(__BFLT16_DIG__) && !defined(__CUDACC__)
#define MP_HAS_COMPILER_BFLOAT16 1
#else
#define MP_HAS_COMPILER_BFLOAT16 0
#endif
#if defined(__SIZEOF_FLOAT128__) && !defined(__CUDACC__)
#define MP_HAS_COMPILER_BINARY128 1
#else
#define MP_HAS_COMPILER_BINARY128 0
#endif

/// Define MP_STATIC_TARGET to compile each kernel for one instruction set: the highest one of
/// mp::instruction_set that the compiler was told to use (-march). By default kernels are compiled for several,
/// whatever -march is, and one is chosen when the program runs. For programs that run only on the processors
/// of their -march: they compile in two thirds of the time into two thirds of the code, and run as on a
/// processor that has no more than that. An executor that names another instruction set is rejected with an
/// argument_error, and an MP_ISA that does is ignored with a line on stderr. Has no effect under nvcc.

/// 1 where kernels are compiled for instruction sets of x86-64, by default for several of them, to be chosen when
/// the program runs: with the vector types and the function targets of g++ and clang. nvcc's front end has neither.
#if !defined(MP_NO_HARDWARE_PATHS) && defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) &&    \
    (!defined(__FLT_EVAL_METHOD__) || __FLT_EVAL_METHOD__ == 0 || __FLT_EVAL_METHOD__ == 16) &&              \
    (!defined(MP_STATIC_TARGET) ||                                                                           \
     (defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && defined(__BMI__) && defined(__BMI2__) && \
      defined(__LZCNT__) && defined(__POPCNT__)))
#define MP_X86_TARGETS 1
#else
#define MP_X86_TARGETS 0
#endif

/// 1 where kernels are compiled for NEON: little-endian 64-bit ARM, all of whose processors have it.
#if !defined(MP_NO_HARDWARE_PATHS) && defined(__aarch64__) && defined(__ARM_NEON) && \
    !defined(__AARCH64EB__) && defined(__GNUC__) && !defined(__CUDACC__)
#define MP_NEON_TARGET 1
#else
#define MP_NEON_TARGET 0
#endif

/// 1 where there are kernels for instruction sets besides the portable ones.
#define MP_SIMD_TARGETS (MP_X86_TARGETS || MP_NEON_TARGET)

/// Unrolls the loop that follows in device code, wholly or by a factor.
#if MP_DEVICE_CODE
#define MP_UNROLL _Pragma("unroll")
#define MP_PRAGMA(text) _Pragma(#text)
#define MP_UNROLL_BY(count) MP_PRAGMA(unroll count)
#else
#define MP_UNROLL
#define MP_UNROLL_BY(count)
#endif

/// The branch-free parts of a hot function are worth inlining into loops whatever its size.
#if defined(__CUDACC__)
#define MP_ALWAYS_INLINE __forceinline__
#elif defined(__GNUC__)
#define MP_ALWAYS_INLINE __attribute__((always_inline)) inline
#else
#define MP_ALWAYS_INLINE inline
#endif

/// For the parts of GPU kernels. Devices want all of a kernel in one piece; on hosts, which simulate it, a part that
/// many kernels share is compiled once.
#if defined(__CUDACC__)
#define MP_KERNEL_INLINE __forceinline__
#else
#define MP_KERNEL_INLINE inline
#endif

/// After the parameters of a lambda that is to be inlined wherever it is called.
#if defined(__GNUC__) && !defined(__CUDACC__)
#define MP_INLINED_LAMBDA __attribute__((always_inline))
#else
#define MP_INLINED_LAMBDA
#endif

/// Declares that objects of a class are equal if all members are, without clang's warning where these are
/// floating-point numbers.
#if defined(__clang__)
#define MP_MEMBERWISE_EQUALITY(type)                                                                   \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wfloat-equal\"") friend bool \
    operator==(const type&, const type&) = default _Pragma("clang diagnostic pop")
#else
#define MP_MEMBERWISE_EQUALITY(type) friend bool operator==(const type&, const type&) = default
#endif

/// The rare part of a hot function, of which inlining would only make the rest slower.
#if defined(__GNUC__)
#define MP_NEVER_INLINE __attribute__((noinline))
#else
#define MP_NEVER_INLINE
#endif
