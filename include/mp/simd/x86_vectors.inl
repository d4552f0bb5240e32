// SPDX-License-Identifier: MIT
// The vectors of one instruction set, included by <mp/simd/vec.hpp> for each of them.
//
// Plain vector types of the compiler: + - * & | ^ << >> == < ?: work lane by lane, on all compilers alike.
// What has no operator is an instruction written out, because the names of the compilers' functions for them
// differ and <immintrin.h> would cost every user half a second.
//
// Under the targets in which these functions are compiled, compilers may make one fused operation of a
// product and a sum, and -ffast-math lets them do more. `opt_barrier(x)` ends that: what is behind it sees x
// as it would be stored. Wherever the bits matter, a product that is added to something goes through it.

#include <mp/simd/vector_types.inl>

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// One value in all lanes.
MP_ALWAYS_INLINE vec<float> broadcast(float x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    return vec<float>{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
    return vec<float>{x, x, x, x, x, x, x, x};
#endif
}
MP_ALWAYS_INLINE vec<std::uint32_t> broadcast(std::uint32_t x) {
    return vec<std::uint32_t>{} + x;
}

/// The value in every lane, opaque to the optimiser, so that it is rounded as if it were stored.
MP_ALWAYS_INLINE vec<float> opt_barrier(vec<float> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("" : "+v"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

MP_ALWAYS_INLINE doubles opt_barrier(doubles x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("" : "+v"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

/// The products of the lower halves of the lanes.
MP_ALWAYS_INLINE uint64_lanes multiply_low_halves(uint64_lanes a, uint64_lanes b) {
    uint64_lanes result;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpmuludq %2, %1, %0" : "=v"(result) : "v"(a), "v"(b));
#else
    __asm__("vpmuludq %2, %1, %0" : "=x"(result) : "x"(a), "x"(b));
#endif
    return result;
}

/// Half of a vector of floats as doubles, and back, each rounded to float; a NaN becomes quiet and keeps sign
/// and payload. As instructions: of __builtin_convertvector g++ 12 makes four.
MP_ALWAYS_INLINE doubles widen_half(half_floats x) {
    doubles wide;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vcvtps2pd %1, %0" : "=v"(wide) : "v"(x));
#else
    __asm__("vcvtps2pd %1, %0" : "=x"(wide) : "x"(x));
#endif
    return wide;
}
MP_ALWAYS_INLINE half_floats narrow_to_half(doubles x) {
    half_floats result;
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vcvtpd2ps %1, %0" : "=v"(result) : "v"(x));
#else
    __asm__("vcvtpd2ps %1, %0" : "=x"(result) : "x"(x));
#endif
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
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
#endif
    return c;
}

/// One number as the first operand of products with vectors.
MP_ALWAYS_INLINE vec<float> broadcast_element(float a) {
    return broadcast(a);
}

/// a b + c, rounded once and made in the place of a.
MP_ALWAYS_INLINE vec<float> multiply_add(vec<float> a, vec<float> b, vec<float> c) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
#else
    __asm__("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
#endif
    return a;
}

/// The smaller ones, as numbers without sign.
MP_ALWAYS_INLINE vec<std::uint32_t>(min)(vec<std::uint32_t> a, vec<std::uint32_t> b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpminud %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpminud %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

/// The smaller and the larger ones, as numbers with a sign.
MP_ALWAYS_INLINE vec<std::int32_t>(min)(vec<std::int32_t> a, vec<std::int32_t> b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpminsd %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpminsd %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}
MP_ALWAYS_INLINE vec<std::int32_t>(max)(vec<std::int32_t> a, vec<std::int32_t> b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpmaxsd %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpmaxsd %1, %0, %0" : "+x"(a) : "x"(b));
#endif
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
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vmaxps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));
#else
    __asm__("vmaxps %2, %1, %0" : "=x"(a) : "x"(a), "x"(b));
#endif
    return a;
}

/// The smaller ones; b where one of them is NaN, or both are zero.
MP_ALWAYS_INLINE vec<float> smaller_or_second(vec<float> a, vec<float> b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vminps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));
#else
    __asm__("vminps %2, %1, %0" : "=x"(a) : "x"(a), "x"(b));
#endif
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
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vsqrtps %0, %0" : "+v"(x));
#else
    __asm__("vsqrtps %0, %0" : "+x"(x));
#endif
    return x;
}

/// NaNs made quiet, all else as it is: what adding minus zero does, without a comparison.
MP_ALWAYS_INLINE vec<float> quieted(vec<float> x) {
    const vec<float> minus_zero = as_float(vec<std::uint32_t>{} + 0x8000'0000U);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vaddps %1, %0, %0" : "+v"(x) : "v"(minus_zero));
#else
    __asm__("vaddps %1, %0, %0" : "+x"(x) : "x"(minus_zero));
#endif
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
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vaddpd %1, %0, %0" : "+v"(x) : "v"(minus_zero));
#else
    __asm__("vaddpd %1, %0, %0" : "+x"(x) : "x"(minus_zero));
#endif
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
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vdivps %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vdivps %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

MP_ALWAYS_INLINE doubles div(doubles a, doubles b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vdivpd %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vdivpd %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

// Of single doubles, in the encoding of the target: an instruction of SSE among those of AVX waits for both
// (double_add and its kin are in the encoding of the program, which may be that of SSE).
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
#define MP_SINGLE_DOUBLE "v"
#else
#define MP_SINGLE_DOUBLE "x"
#endif
MP_ALWAYS_INLINE double add(double a, double b) {
    __asm__("vaddsd %1, %0, %0" : "+" MP_SINGLE_DOUBLE(a) : MP_SINGLE_DOUBLE(b));
    return a;
}
MP_ALWAYS_INLINE double sub(double a, double b) {
    __asm__("vsubsd %1, %0, %0" : "+" MP_SINGLE_DOUBLE(a) : MP_SINGLE_DOUBLE(b));
    return a;
}
MP_ALWAYS_INLINE double mul(double a, double b) {
    __asm__("vmulsd %1, %0, %0" : "+" MP_SINGLE_DOUBLE(a) : MP_SINGLE_DOUBLE(b));
    return a;
}
MP_ALWAYS_INLINE double div(double a, double b) {
    __asm__("vdivsd %1, %0, %0" : "+" MP_SINGLE_DOUBLE(a) : MP_SINGLE_DOUBLE(b));
    return a;
}
#undef MP_SINGLE_DOUBLE
MP_ALWAYS_INLINE double sqrt(double x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vsqrtsd %0, %0, %0" : "+v"(x));
#else
    __asm__("vsqrtsd %0, %0, %0" : "+x"(x));
#endif
    return x;
}

/// The sum of the lanes: of each of one half and the one that is as far in the other half, of these likewise.
MP_ALWAYS_INLINE double reduce_add(doubles x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    x = opt_barrier(x + __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = opt_barrier(x + __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    x = opt_barrier(x + __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6));
#else
    x = opt_barrier(x + __builtin_shufflevector(x, x, 2, 3, 0, 1));
    x = opt_barrier(x + __builtin_shufflevector(x, x, 1, 0, 3, 2));
#endif
    return x[0];
}

/// The same of floats.
MP_ALWAYS_INLINE float reduce_add(vec<float> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    x = opt_barrier(x + __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    const auto y = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    const auto y = x;
#endif
    auto sum = __builtin_shufflevector(y, y, 0, 1, 2, 3) + __builtin_shufflevector(y, y, 4, 5, 6, 7);
    __asm__("" : "+x"(sum));
    sum = sum + __builtin_shufflevector(sum, sum, 2, 3, 0, 1);
    __asm__("" : "+x"(sum));
    sum = sum + __builtin_shufflevector(sum, sum, 1, 0, 3, 2);
    __asm__("" : "+x"(sum));
    return sum[0];
}

/// movemask: one bit for every lane whose highest bit is set.
MP_ALWAYS_INLINE std::uint32_t movemask(vec<std::uint32_t> x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    std::uint16_t mask;
    __asm__("vpmovd2m %1, %0" : "=Yk"(mask) : "v"(x));
    return mask;
#else
    std::uint32_t mask;
    __asm__("vmovmskps %1, %0" : "=r"(mask) : "x"(x));
    return mask;
#endif
}

/// Whether the highest bit of any lane is set.
MP_ALWAYS_INLINE bool any_sign(uint64_lanes x) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    std::uint8_t signs = 0;
    __asm__("vpmovq2m %1, %0" : "=Yk"(signs) : "v"(x));
#else
    int signs = 0;
    __asm__("vmovmskpd %1, %0" : "=r"(signs) : "x"(x));
#endif
    return signs != 0;
}
/// Whether a & b has any bit.
MP_ALWAYS_INLINE bool have_common_bits(vec<std::uint32_t> a, vec<std::uint32_t> b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    std::uint16_t lanes_with_bits;
    __asm__("vptestmd %2, %1, %0" : "=Yk"(lanes_with_bits) : "v"(a), "v"(b));
    return lanes_with_bits != 0;
#else
    bool found;
    __asm__("vptest %2, %1" : "=@ccnz"(found) : "x"(a), "x"(b));
    return found;
#endif
}
/// Whether a comparison holds in some lane.
MP_ALWAYS_INLINE bool any(vec<std::int32_t> mask) {
    return movemask(reinterpret_cast<vec<std::uint32_t>>(mask)) != 0;
}

/// In each 16 bytes: byte i is the byte of x that byte i of `indices` names, or zero where that is 128.
MP_ALWAYS_INLINE bytes_of_uint32 shuffle_bytes(bytes_of_uint32 x, bytes_of_uint32 indices) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpshufb %1, %0, %0" : "+v"(x) : "v"(indices));
#else
    __asm__("vpshufb %1, %0, %0" : "+x"(x) : "x"(indices));
#endif
    return x;
}

// Wider and narrower integers, as instructions: of __builtin_convertvector g++ 12 makes much more. Narrowing
// takes words that fit.
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint16_t> x) {
    vec<std::uint32_t> wide;
    __asm__("vpmovzxwd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint8_t> x) {
    vec<std::uint32_t> wide;
    __asm__("vpmovzxbd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint16_t> widen_to_uint16(vec<std::uint8_t> x) {
    vec<std::uint16_t> wide;
    __asm__("vpmovzxbw %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint16_t> narrow_to_uint16(vec<std::uint32_t> x) {
    vec<std::uint16_t> narrowed;
    __asm__("vpmovdw %1, %0" : "=v"(narrowed) : "v"(x));
    return narrowed;
}
MP_ALWAYS_INLINE vec<std::uint8_t> narrow_to_bytes(vec<std::uint32_t> x) {
    vec<std::uint8_t> narrowed;
    __asm__("vpmovdb %1, %0" : "=v"(narrowed) : "v"(x));
    return narrowed;
}
#else
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint16_t> x) {
    vec<std::uint32_t> wide;
    __asm__("vpmovzxwd %1, %0" : "=x"(wide) : "x"(x));
    return wide;
}
/// Eight bytes in a register; clang takes no shorter vector for an operand.
typedef std::uint64_t register_of_bytes __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint8_t> x) {
    const register_of_bytes narrow = {reinterpret_cast<std::uint64_t>(x), 0};
    vec<std::uint32_t> wide;
    __asm__("vpmovzxbd %1, %0" : "=x"(wide) : "x"(narrow));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint16_t> widen_to_uint16(vec<std::uint8_t> x) {
    const register_of_bytes narrow = {reinterpret_cast<std::uint64_t>(x), 0};
    vec<std::uint16_t> wide;
    __asm__("vpmovzxbw %1, %0" : "=x"(wide) : "x"(narrow));
    return wide;
}
MP_ALWAYS_INLINE vec<std::uint16_t> narrow_to_uint16(vec<std::uint32_t> x) {
    const auto low = __builtin_shufflevector(x, x, 0, 1, 2, 3);
    const auto high = __builtin_shufflevector(x, x, 4, 5, 6, 7);
    vec<std::uint16_t> narrowed;
    __asm__("vpackusdw %2, %1, %0" : "=x"(narrowed) : "x"(low), "x"(high));
    return narrowed;
}
MP_ALWAYS_INLINE vec<std::uint8_t> narrow_to_bytes(vec<std::uint32_t> x) {
    const vec<std::uint16_t> narrowed = narrow_to_uint16(x);
    register_of_bytes result;
    __asm__("vpackuswb %1, %1, %0" : "=x"(result) : "x"(narrowed));
    return reinterpret_cast<vec<std::uint8_t>>(result[0]);
}
#endif

/// Words below 256 from four vectors as bytes, into memory.
MP_ALWAYS_INLINE void store_low_bytes(std::uint8_t* to, const vec<std::uint32_t> (&x)[4]) {
    vec<std::uint32_t> low, high;
    // In each 16 bytes those of the four vectors stand one after the other.
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpackusdw %2, %1, %0" : "=v"(low) : "v"(x[0]), "v"(x[1]));
    __asm__("vpackusdw %2, %1, %0" : "=v"(high) : "v"(x[2]), "v"(x[3]));
    __asm__("vpackuswb %1, %0, %0" : "+v"(low) : "v"(high));
    low = __builtin_shufflevector(low, low, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#else
    __asm__("vpackusdw %2, %1, %0" : "=x"(low) : "x"(x[0]), "x"(x[1]));
    __asm__("vpackusdw %2, %1, %0" : "=x"(high) : "x"(x[2]), "x"(x[3]));
    __asm__("vpackuswb %1, %0, %0" : "+x"(low) : "x"(high));
    low = __builtin_shufflevector(low, low, 0, 4, 1, 5, 2, 6, 3, 7);
#endif
    std::memcpy(to, &low, sizeof low);
}

/// 2 * lanes bytes from memory.
MP_ALWAYS_INLINE uint16_lanes load_bytes_as_uint16(const std::uint8_t* from) {
    uint16_lanes wide;
    const auto& bytes = *reinterpret_cast<const unsigned char(*)[2 * lanes]>(from);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpmovzxbw %1, %0" : "=v"(wide) : "m"(bytes));
#else
    __asm__("vpmovzxbw %1, %0" : "=x"(wide) : "m"(bytes));
#endif
    return wide;
}

/// Halfwords as the upper halves of words.
MP_ALWAYS_INLINE vec<std::uint32_t> widen_to_upper(vec<std::uint16_t> x) {
    return widen(x) << 16;
}

/// The low halves of the lanes of two vectors.
MP_ALWAYS_INLINE vec<std::uint32_t> low_halves(uint64_lanes a, uint64_lanes b) {
    const auto x = reinterpret_cast<vec<std::uint32_t>>(a);
    const auto y = reinterpret_cast<vec<std::uint32_t>>(b);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#else
    return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14);
#endif
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
/// The upper halves of two vectors of words.
MP_ALWAYS_INLINE uint16_lanes upper_halves(vec<std::uint32_t> low, vec<std::uint32_t> high) {
    const auto a = reinterpret_cast<uint16_lanes>(low);
    const auto b = reinterpret_cast<uint16_lanes>(high);
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35,
                                   37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63);
}
#endif

/// The lanes of two vectors in turn: of their lower and of their upper halves.
template <class Vector>
MP_ALWAYS_INLINE Vector interleave_lower(Vector a, Vector b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    } else {
        return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    }
#else
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 0, 4, 1, 5);
    } else {
        return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    }
#endif
}
template <class Vector>
MP_ALWAYS_INLINE Vector interleave_upper(Vector a, Vector b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else {
        return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#else
    if constexpr (sizeof a[0] == 8) {
        return __builtin_shufflevector(a, b, 2, 6, 3, 7);
    } else {
        return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
#endif
}

/// In each 16 bytes, those of two vectors in turn: of their lower and of their upper halves.
MP_ALWAYS_INLINE bytes_of_uint32 interleave_lower_bytes(bytes_of_uint32 a, bytes_of_uint32 b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpunpcklbw %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpunpcklbw %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}
MP_ALWAYS_INLINE bytes_of_uint32 interleave_upper_bytes(bytes_of_uint32 a, bytes_of_uint32 b) {
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vpunpckhbw %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpunpckhbw %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

/// Copies whole cache lines to memory that begins at one, with stores that go around the caches and do not read
/// what they overwrite; others see them after finish_streaming().
MP_ALWAYS_INLINE void stream_lines(void* to, const void* from, std::size_t size) noexcept {
    typedef std::uint64_t chunk __attribute__((vector_size(16), may_alias));  // NOLINT(modernize-use-using)
    for (std::size_t i = 0; i < size; i += sizeof(chunk)) {
        chunk x;
        std::memcpy(&x, static_cast<const unsigned char*>(from) + i, sizeof x);
        __asm__("vmovntdq %1, %0"
                : "=m"(*reinterpret_cast<chunk*>(static_cast<unsigned char*>(to) + i))
                : "x"(x));
    }
}

/// Stores past the caches, where the address is a multiple of a vector's bytes.
MP_ALWAYS_INLINE void store_nontemporal(float* to, vec<float> x) {
    auto& target = *reinterpret_cast<unsigned char(*)[vector_bytes]>(to);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vmovntps %1, %0" : "=m"(target) : "v"(x));
#else
    __asm__("vmovntps %1, %0" : "=m"(target) : "x"(x));
#endif
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
/// The first `count` < lanes elements, the rest zero; memory behind them is not touched.
MP_ALWAYS_INLINE vec<float> load_partial(const float* from, std::size_t count) {
    vec<float> x;
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__("vmovups (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(mask) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint32_t> load_partial(const std::uint32_t* from, std::size_t count) {
    vec<std::uint32_t> x;
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__("vmovdqu32 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(mask) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint16_t> load_partial(const std::uint16_t* from, std::size_t count) {
    vec<std::uint16_t> x;
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__("vmovdqu16 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(mask) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint8_t> load_partial(const std::uint8_t* from, std::size_t count) {
    vec<std::uint8_t> x;
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__("vmovdqu8 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(mask) : "memory");
    return x;
}
/// The first `size` bytes of a whole vector's, the rest zero.
MP_ALWAYS_INLINE bytes_of_uint32 load_first_bytes(const void* from, std::size_t size) {
    bytes_of_uint32 x;
    __asm__("vmovdqu8 (%1), %0 %{%2%}%{z%}"
            : "=v"(x)
            : "r"(from), "Yk"((std::uint64_t{1} << size) - 1)
            : "memory");
    return x;
}
/// The first `count` < lanes elements into memory, which is not touched behind them.
MP_ALWAYS_INLINE void store_partial(float* to, vec<float> x, std::size_t count) {
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__ volatile("vmovups %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(mask) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint32_t* to, vec<std::uint32_t> x, std::size_t count) {
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__ volatile("vmovdqu32 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(mask) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint16_t* to, vec<std::uint16_t> x, std::size_t count) {
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__ volatile("vmovdqu16 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(mask) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint8_t* to, vec<std::uint8_t> x, std::size_t count) {
    const auto mask = static_cast<std::uint16_t>((1U << count) - 1);
    __asm__ volatile("vmovdqu8 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(mask) : "memory");
}
/// As many doubles as a register holds, at most.
MP_ALWAYS_INLINE doubles load_partial(const double* from, std::size_t count) {
    doubles x;
    const auto mask = static_cast<std::uint8_t>((1U << count) - 1U);
    __asm__("vmovupd (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(mask) : "memory");
    return x;
}
MP_ALWAYS_INLINE void store_partial(double* to, doubles x, std::size_t count) {
    const auto mask = static_cast<std::uint8_t>((1U << count) - 1U);
    __asm__ volatile("vmovupd %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(mask) : "memory");
}
/// The first n lanes, and `fill`.
MP_ALWAYS_INLINE doubles or_fill(doubles x, std::size_t n, double fill) {
    const uint64_lanes lane = {0, 1, 2, 3, 4, 5, 6, 7};
    return lane < n ? x : doubles{fill, fill, fill, fill, fill, fill, fill, fill};
}
#else
/// By mask, since what goes through memory would wait for its stores.
MP_ALWAYS_INLINE vec<std::int32_t> first_lanes(std::size_t n) {
    return vec<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<std::int32_t>(n);
}
MP_ALWAYS_INLINE vec<float> load_partial(const float* from, std::size_t n) {
    vec<float> x;
    __asm__("vmaskmovps (%1), %2, %0" : "=x"(x) : "r"(from), "x"(first_lanes(n)) : "memory");
    return x;
}
MP_ALWAYS_INLINE void store_partial(float* to, vec<float> x, std::size_t n) {
    __asm__ volatile("vmaskmovps %1, %2, (%0)" : : "r"(to), "x"(x), "x"(first_lanes(n)) : "memory");
}
MP_ALWAYS_INLINE doubles load_partial(const double* from, std::size_t n) {
    const auto mask = uint64_lanes{0, 1, 2, 3} < n;
    doubles x;
    __asm__("vmaskmovpd (%1), %2, %0" : "=x"(x) : "r"(from), "x"(mask) : "memory");
    return x;
}
MP_ALWAYS_INLINE void store_partial(double* to, doubles x, std::size_t n) {
    const auto mask = uint64_lanes{0, 1, 2, 3} < n;
    __asm__ volatile("vmaskmovpd %1, %2, (%0)" : : "r"(to), "x"(x), "x"(mask) : "memory");
}
MP_ALWAYS_INLINE doubles or_fill(doubles x, std::size_t n, double fill) {
    return uint64_lanes{0, 1, 2, 3} < n ? x : doubles{fill, fill, fill, fill};
}
MP_ALWAYS_INLINE vec<std::uint32_t> load_partial(const std::uint32_t* from, std::size_t n) {
    vec<std::uint32_t> x;
    __asm__("vpmaskmovd (%1), %2, %0" : "=x"(x) : "r"(from), "x"(first_lanes(n)) : "memory");
    return x;
}
MP_ALWAYS_INLINE void store_partial(std::uint32_t* to, vec<std::uint32_t> x, std::size_t n) {
    __asm__ volatile("vpmaskmovd %1, %2, (%0)" : : "r"(to), "x"(x), "x"(first_lanes(n)) : "memory");
}
/// The first `size` <= 8 bytes, the rest zero.
MP_ALWAYS_INLINE std::uint64_t load_few_bytes(const unsigned char* from, std::size_t size) {
    if (size >= 4) {  // two halves, which may overlap
        std::uint32_t low, high;
        std::memcpy(&low, from, 4);
        std::memcpy(&high, from + size - 4, 4);
        return low | std::uint64_t{high} << (8 * (size - 4));
    }
    if (size == 0) return 0;
    return from[0] | std::uint64_t{from[size / 2]} << (8 * (size / 2)) |
           std::uint64_t{from[size - 1]} << (8 * (size - 1));
}
MP_ALWAYS_INLINE void store_few_bytes(unsigned char* to, std::uint64_t x, std::size_t size) {
    if (size >= 4) {
        const auto low = static_cast<std::uint32_t>(x);
        const auto high = static_cast<std::uint32_t>(x >> (8 * (size - 4)));
        std::memcpy(to, &low, 4);
        std::memcpy(to + size - 4, &high, 4);
    } else if (size != 0) {
        to[0] = static_cast<unsigned char>(x);
        to[size / 2] = static_cast<unsigned char>(x >> (8 * (size / 2)));
        to[size - 1] = static_cast<unsigned char>(x >> (8 * (size - 1)));
    }
}
/// The first `size` < 16 bytes, the rest zero.
MP_ALWAYS_INLINE register_of_bytes load_first_of_register(const unsigned char* from, std::size_t size) {
    if (size < 8) return register_of_bytes{load_few_bytes(from, size), 0};
    std::uint64_t low = 0;
    std::memcpy(&low, from, 8);
    return register_of_bytes{low, load_few_bytes(from + 8, size - 8)};
}
/// The first `size` bytes of a whole vector's, the rest zero.
MP_ALWAYS_INLINE bytes_of_uint32 load_first_bytes(const void* from, std::size_t size) {
    const auto* const bytes = static_cast<const unsigned char*>(from);
    register_of_bytes low = {}, high = {};
    if (size < sizeof low) {
        low = load_first_of_register(bytes, size);
    } else {
        std::memcpy(&low, bytes, sizeof low);
        high = load_first_of_register(bytes + sizeof low, size - sizeof low);
    }
    return reinterpret_cast<bytes_of_uint32>(__builtin_shufflevector(low, high, 0, 1, 2, 3));
}
MP_ALWAYS_INLINE vec<std::uint16_t> load_partial(const std::uint16_t* from, std::size_t count) {
    return reinterpret_cast<vec<std::uint16_t>>(
        load_first_of_register(reinterpret_cast<const unsigned char*>(from), 2 * count));
}
MP_ALWAYS_INLINE void store_partial(std::uint16_t* to, vec<std::uint16_t> x, std::size_t count) {
    auto* const bytes = reinterpret_cast<unsigned char*>(to);
    const auto words = reinterpret_cast<register_of_bytes>(x);
    const std::size_t size = 2 * count;
    if (size < 8) return store_few_bytes(bytes, words[0], size);
    const std::uint64_t low = words[0];
    std::memcpy(bytes, &low, 8);
    store_few_bytes(bytes + 8, words[1], size - 8);
}
MP_ALWAYS_INLINE vec<std::uint8_t> load_partial(const std::uint8_t* from, std::size_t count) {
    return reinterpret_cast<vec<std::uint8_t>>(load_few_bytes(from, count));
}
MP_ALWAYS_INLINE void store_partial(std::uint8_t* to, vec<std::uint8_t> x, std::size_t count) {
    store_few_bytes(to, reinterpret_cast<std::uint64_t>(x), count);
}
#endif

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
