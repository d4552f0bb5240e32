// SPDX-License-Identifier: MIT
// The vectors of one instruction set, included by <mp/numbers/simd/vec.hpp> for each of them.
//
// Plain vector types of the compiler: + - * & | ^ << >> == < ?: work lane by lane, on all compilers alike.
// What has no operator is an instruction written out, because the names of the compilers' functions for them
// differ and <immintrin.h> would cost every user half a second.
//
// Under the targets in which these functions are compiled, compilers may make one fused operation of a
// product and a sum, and -ffast-math lets them do more. `opt_barrier(x)` ends that: what is behind it sees x
// as it would be stored. Wherever the bits matter, a product that is added to something goes through it.
//
// Operands "v" are in the registers that the target has, of which those past the 16th are AVX-512's; "x" keeps
// them out where an instruction of AVX2 has no encoding with them.

#include <mp/numbers/simd/vector_types.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// One value in all lanes.
MP_ALWAYS_INLINE vec<float> broadcast(float x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    return vec<float>{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
    return vec<float>{x, x, x, x, x, x, x, x};
#endif
}

/// The value in every lane, opaque to the optimiser, so that it is rounded as if it were stored.
MP_ALWAYS_INLINE vec<float> opt_barrier(vec<float> x) {
    __asm__("" : "+v"(x));
    return x;
}

MP_ALWAYS_INLINE doubles opt_barrier(doubles x) {
    __asm__("" : "+v"(x));
    return x;
}

/// The products of the lower halves of the lanes.
MP_ALWAYS_INLINE uint64_lanes multiply_low_halves(uint64_lanes a, uint64_lanes b) {
    uint64_lanes result;
    __asm__("vpmuludq %2, %1, %0" : "=v"(result) : "v"(a), "v"(b));
    return result;
}

/// Half of a vector of floats as doubles, and back, each rounded to float; a NaN becomes quiet and keeps sign
/// and payload. As instructions: of __builtin_convertvector g++ 12 makes four.
MP_ALWAYS_INLINE doubles widen_half(half_floats x) {
    doubles wide;
    __asm__("vcvtps2pd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE half_floats narrow_to_half(doubles x) {
    half_floats result;
    __asm__("vcvtpd2ps %1, %0" : "=v"(result) : "v"(x));
    return result;
}
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
MP_ALWAYS_INLINE half_floats low_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
MP_ALWAYS_INLINE half_floats high_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
MP_ALWAYS_INLINE vec<float> join_halves(half_floats low, half_floats high) {
    vec<float> joined;
    __asm__("vinsertf64x4 $1, %2, %g1, %0" : "=v"(joined) : "v"(low), "v"(high));
    return joined;
}
#else
MP_ALWAYS_INLINE half_floats low_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3);
}
MP_ALWAYS_INLINE half_floats high_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 4, 5, 6, 7);
}
MP_ALWAYS_INLINE vec<float> join_halves(half_floats low, half_floats high) {
    vec<float> joined;
    __asm__("vinsertf128 $1, %2, %t1, %0" : "=x"(joined) : "x"(low), "x"(high));
    return joined;
}
#endif

/// a b + c, rounded once.
MP_ALWAYS_INLINE vec<float> fused_multiply_add(vec<float> a, vec<float> b, vec<float> c) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

/// One number as the first operand of products with vectors.
MP_ALWAYS_INLINE vec<float> broadcast_element(float a) {
    return broadcast(a);
}

/// a b + c, rounded once and made in the place of a.
MP_ALWAYS_INLINE vec<float> multiply_add(vec<float> a, vec<float> b, vec<float> c) {
    __asm__("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
    return a;
}

/// The smaller ones, as numbers without sign.
MP_ALWAYS_INLINE vec<std::uint32_t>(min)(vec<std::uint32_t> a, vec<std::uint32_t> b) {
    __asm__("vpminud %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

/// The smaller and the larger ones, as numbers with a sign.
MP_ALWAYS_INLINE vec<std::int32_t>(min)(vec<std::int32_t> a, vec<std::int32_t> b) {
    __asm__("vpminsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE vec<std::int32_t>(max)(vec<std::int32_t> a, vec<std::int32_t> b) {
    __asm__("vpmaxsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
/// The largest lane.
MP_ALWAYS_INLINE std::int32_t reduce_max(vec<std::int32_t> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    x = (max)(x, __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    x = (max)(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    x = (max)(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
    x = (max)(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
#else
    x = (max)(x, __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = (max)(x, __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = (max)(x, __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
#endif
    return x[0];
}

/// The larger ones; b where one of them is NaN, or both are zero.
MP_ALWAYS_INLINE vec<float> larger_or_second(vec<float> a, vec<float> b) {
    __asm__("vmaxps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));
    return a;
}

/// The smaller ones; b where one of them is NaN, or both are zero.
MP_ALWAYS_INLINE vec<float> smaller_or_second(vec<float> a, vec<float> b) {
    __asm__("vminps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));
    return a;
}

/// x where d is above the limit, which has a negative sign, or NaN; else 0. As instructions, since compilers
/// that believe there is no NaN may turn the comparison around.
MP_ALWAYS_INLINE vec<float> zero_unless_above(float limit, vec<float> d, vec<float> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    std::uint16_t is_above;
    __asm__("vcmpnleps %2, %1, %0" : "=Yk"(is_above) : "v"(d), "v"(broadcast(limit)));
    __asm__("vmovaps %1, %0 %{%2%}%{z%}" : "=v"(x) : "v"(x), "Yk"(is_above));
#else
    vec<float> is_above;
    __asm__("vcmpnleps %2, %1, %0" : "=x"(is_above) : "x"(d), "x"(broadcast(limit)));
    x = as_float(as_uint32(x) & as_uint32(is_above));
#endif
    return x;
}

/// The square root, correctly rounded.
MP_ALWAYS_INLINE vec<float> sqrt(vec<float> x) {
    __asm__("vsqrtps %0, %0" : "+v"(x));
    return x;
}

/// NaNs made quiet, all else as it is: what adding minus zero does, without a comparison.
MP_ALWAYS_INLINE vec<float> quieted(vec<float> x) {
    const vec<float> minus_zero = as_float(vec<std::uint32_t>{} + 0x8000'0000U);
    __asm__("vaddps %1, %0, %0" : "+v"(x) : "v"(minus_zero));
    return x;
}

/// The same by an instruction that depends on no mode and raises nothing, where there is one.
MP_ALWAYS_INLINE vec<float> quieted_in_any_modes(vec<float> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    std::uint16_t is_signalling = 0;
    __asm__(
        "vfpclassps $0x80, %0, %1\n\t"
        "vpord %2, %0, %0%{%1%}"
        : "+v"(x), "=&Yk"(is_signalling)
        : "v"(vec<std::uint32_t>{} + 0x0040'0000U));
    return x;
#else
    return quieted(x);
#endif
}

MP_ALWAYS_INLINE doubles quieted(doubles x) {
    const auto minus_zero = reinterpret_cast<doubles>(uint64_lanes{} + 0x8000'0000'0000'0000U);
    __asm__("vaddpd %1, %0, %0" : "+v"(x) : "v"(minus_zero));
    return x;
}

/// binary16 codes to floats and back, to nearest even. Neither looks at the modes in which the processor
/// flushes binary16 subnormals, and both keep sign and leading payload of a NaN and make it quiet. Those of
/// AVX-512 depend on no mode at all and raise nothing: floats that are taken for zero become zero anyway.
MP_ALWAYS_INLINE vec<float> widen_binary16(vec<std::uint16_t> codes) {
    vec<float> x;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vcvtph2ps %{sae%}, %1, %0" : "=v"(x) : "v"(codes));
#else
    __asm__("vcvtph2ps %1, %0" : "=x"(x) : "x"(codes));
#endif
    return x;
}
/// The same from memory.
MP_ALWAYS_INLINE vec<float> load_binary16_as_float(const std::uint16_t* from) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    return widen_binary16(load(from));  // {sae} takes no memory
#else
    vec<float> x;
    __asm__("vcvtph2ps %1, %0" : "=x"(x) : "m"(*reinterpret_cast<const unsigned char(*)[2 * lanes]>(from)));
    return x;
#endif
}
MP_ALWAYS_INLINE vec<std::uint16_t> narrow_binary16(vec<float> x) {
    vec<std::uint16_t> codes;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vcvtps2ph $0, %{sae%}, %1, %0" : "=v"(codes) : "v"(x));
#else
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(codes) : "x"(x));
#endif
    return codes;
}

/// a / b, correctly rounded; under -ffast-math the operator may be a product with a reciprocal.
MP_ALWAYS_INLINE vec<float> div(vec<float> a, vec<float> b) {
    __asm__("vdivps %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

MP_ALWAYS_INLINE doubles div(doubles a, doubles b) {
    __asm__("vdivpd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

// Of single doubles, in the encoding of the target: an instruction of SSE among those of AVX waits for both
// (double_add and its kin are in the encoding of the program, which may be that of SSE).
MP_ALWAYS_INLINE double add(double a, double b) {
    __asm__("vaddsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE double sub(double a, double b) {
    __asm__("vsubsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE double mul(double a, double b) {
    __asm__("vmulsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE double div(double a, double b) {
    __asm__("vdivsd %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE double sqrt(double x) {
    __asm__("vsqrtsd %0, %0, %0" : "+v"(x));
    return x;
}

}}}  // namespace mp::detail::MP_TARGET

#include <mp/numbers/simd/x86_lanes.inl>
#include <mp/numbers/simd/x86_memory.inl>
