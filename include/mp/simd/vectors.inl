// SPDX-License-Identifier: MIT
// The vectors of one instruction set, included by <mp/simd/vectors.hpp> for each of them.
//
// Plain vector types of the compiler: + - * & | ^ << >> == < ?: work lane by lane, on all compilers alike.
// What has no operator is an instruction written out, because the names of the compilers' functions for them
// differ and <immintrin.h> would cost every user half a second.
//
// Under the targets in which these functions are compiled, compilers may make one fused operation of a
// product and a sum, and -ffast-math lets them do more. `rounded(x)` ends that: what is behind it sees x as
// it would be stored. Wherever the bits matter, a product that is added to something goes through it.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
inline constexpr std::size_t vector_bytes = 64;
#else
inline constexpr std::size_t vector_bytes = 32;
#endif
/// Floats of a vector; what follows comes in vectors of so many elements, whatever their size.
inline constexpr std::size_t lanes = vector_bytes / sizeof(float);

// NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
typedef float floats __attribute__((vector_size(vector_bytes)));
typedef std::uint32_t words __attribute__((vector_size(vector_bytes)));
typedef std::int32_t ints __attribute__((vector_size(vector_bytes)));
typedef std::uint16_t halfwords __attribute__((vector_size(vector_bytes / 2)));
typedef std::uint8_t bytes __attribute__((vector_size(vector_bytes / 4)));
typedef std::uint8_t bytes_of_words __attribute__((vector_size(vector_bytes)));
/// Half as many lanes: as many doubles as a register holds, and the floats that they are made of.
typedef double doubles __attribute__((vector_size(vector_bytes)));
typedef std::uint64_t longwords __attribute__((vector_size(vector_bytes)));
typedef float half_floats __attribute__((vector_size(vector_bytes / 2)));
// NOLINTEND(modernize-use-using)

MP_ALWAYS_INLINE floats as_floats(words x) {
    return reinterpret_cast<floats>(x);
}
MP_ALWAYS_INLINE words as_words(floats x) {
    return reinterpret_cast<words>(x);
}
MP_ALWAYS_INLINE words as_words(ints x) {
    return reinterpret_cast<words>(x);
}

/// One value in all lanes.
MP_ALWAYS_INLINE floats all_lanes(float x) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    return floats{x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x};
#else
    return floats{x, x, x, x, x, x, x, x};
#endif
}
MP_ALWAYS_INLINE words all_lanes(std::uint32_t x) {
    return words{} + x;
}

/// From and to memory of any alignment.
MP_ALWAYS_INLINE floats load(const float* from) {
    floats x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_ALWAYS_INLINE words load(const std::uint32_t* from) {
    words x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_ALWAYS_INLINE halfwords load(const std::uint16_t* from) {
    halfwords x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_ALWAYS_INLINE bytes load(const std::uint8_t* from) {
    bytes x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
MP_ALWAYS_INLINE void store(float* to, floats x) {
    std::memcpy(to, &x, sizeof x);
}
MP_ALWAYS_INLINE void store(std::uint32_t* to, words x) {
    std::memcpy(to, &x, sizeof x);
}
MP_ALWAYS_INLINE void store(std::uint16_t* to, halfwords x) {
    std::memcpy(to, &x, sizeof x);
}

MP_ALWAYS_INLINE void store(std::uint8_t* to, bytes x) {
    std::memcpy(to, &x, sizeof x);
}

/// The value in every lane, as it would be stored: no compiler looks through it.
MP_ALWAYS_INLINE floats rounded(floats x) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("" : "+v"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

MP_ALWAYS_INLINE doubles rounded(doubles x) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("" : "+v"(x));
#else
    __asm__("" : "+x"(x));
#endif
    return x;
}

/// Half of a vector of floats as doubles, and back, each rounded to float; a NaN becomes quiet and keeps sign
/// and payload. As instructions: of __builtin_convertvector g++ 12 makes four.
MP_ALWAYS_INLINE doubles widen_half(half_floats x) {
    doubles wide;
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vcvtps2pd %1, %0" : "=v"(wide) : "v"(x));
#else
    __asm__("vcvtps2pd %1, %0" : "=x"(wide) : "x"(x));
#endif
    return wide;
}
MP_ALWAYS_INLINE half_floats narrow_to_half(doubles x) {
    half_floats result;
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vcvtpd2ps %1, %0" : "=v"(result) : "v"(x));
#else
    __asm__("vcvtpd2ps %1, %0" : "=x"(result) : "x"(x));
#endif
    return result;
}
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
MP_ALWAYS_INLINE half_floats low_half(floats x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7);
}
MP_ALWAYS_INLINE half_floats high_half(floats x) {
    return __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
}
MP_ALWAYS_INLINE floats join_halves(half_floats low, half_floats high) {
    floats joined;
    __asm__("vinsertf64x4 $1, %2, %g1, %0" : "=v"(joined) : "v"(low), "v"(high));
    return joined;
}
#else
MP_ALWAYS_INLINE half_floats low_half(floats x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3);
}
MP_ALWAYS_INLINE half_floats high_half(floats x) {
    return __builtin_shufflevector(x, x, 4, 5, 6, 7);
}
MP_ALWAYS_INLINE floats join_halves(half_floats low, half_floats high) {
    floats joined;
    __asm__("vinsertf128 $1, %2, %t1, %0" : "=x"(joined) : "x"(low), "x"(high));
    return joined;
}
#endif

/// a b + c, rounded once.
MP_ALWAYS_INLINE floats fused_multiply_add(floats a, floats b, floats c) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
#endif
    return c;
}

/// The same, made in the place of a.
MP_ALWAYS_INLINE floats multiply_add(floats a, floats b, floats c) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vfmadd213ps %2, %1, %0" : "+v"(a) : "v"(b), "v"(c));
#else
    __asm__("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
#endif
    return a;
}

/// The smaller ones, as numbers without sign.
MP_ALWAYS_INLINE words min(words a, words b) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vpminud %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vpminud %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

/// The larger ones; b where one of them is NaN, or both are zero.
MP_ALWAYS_INLINE floats larger_or_second(floats a, floats b) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vmaxps %2, %1, %0" : "=v"(a) : "v"(a), "v"(b));
#else
    __asm__("vmaxps %2, %1, %0" : "=x"(a) : "x"(a), "x"(b));
#endif
    return a;
}

/// The square root, correctly rounded.
MP_ALWAYS_INLINE floats square_root(floats x) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vsqrtps %0, %0" : "+v"(x));
#else
    __asm__("vsqrtps %0, %0" : "+x"(x));
#endif
    return x;
}

/// binary16 codes to floats and back, to nearest even. Neither looks at the modes in which the processor
/// flushes binary16 subnormals, and both keep sign and leading payload of a NaN and make it quiet.
MP_ALWAYS_INLINE floats widen_binary16(halfwords codes) {
    floats x;
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vcvtph2ps %1, %0" : "=v"(x) : "v"(codes));
#else
    __asm__("vcvtph2ps %1, %0" : "=x"(x) : "x"(codes));
#endif
    return x;
}
MP_ALWAYS_INLINE halfwords narrow_binary16(floats x) {
    halfwords codes;
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vcvtps2ph $0, %1, %0" : "=v"(codes) : "v"(x));
#else
    __asm__("vcvtps2ph $0, %1, %0" : "=x"(codes) : "x"(x));
#endif
    return codes;
}

/// a / b, correctly rounded; under -ffast-math the operator may be a product with a reciprocal.
MP_ALWAYS_INLINE floats quotient(floats a, floats b) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vdivps %1, %0, %0" : "+v"(a) : "v"(b));
#else
    __asm__("vdivps %1, %0, %0" : "+x"(a) : "x"(b));
#endif
    return a;
}

/// One bit for every lane whose highest bit is set.
MP_ALWAYS_INLINE std::uint32_t highest_bits(words x) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    std::uint16_t mask;
    __asm__("vpmovd2m %1, %0" : "=Yk"(mask) : "v"(x));
    return mask;
#else
    std::uint32_t mask;
    __asm__("vmovmskps %1, %0" : "=r"(mask) : "x"(x));
    return mask;
#endif
}

/// In each 16 bytes: byte i is the byte of x that byte i of `places` names, or zero where that is 128.
MP_ALWAYS_INLINE bytes_of_words shuffle_bytes(bytes_of_words x, bytes_of_words places) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vpshufb %1, %0, %0" : "+v"(x) : "v"(places));
#else
    __asm__("vpshufb %1, %0, %0" : "+x"(x) : "x"(places));
#endif
    return x;
}

// Wider and narrower integers, as instructions: of __builtin_convertvector g++ 12 makes much more. Narrowing
// takes words that fit.
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
MP_ALWAYS_INLINE words widen(halfwords x) {
    words wide;
    __asm__("vpmovzxwd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE words widen(bytes x) {
    words wide;
    __asm__("vpmovzxbd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
MP_ALWAYS_INLINE halfwords narrow_to_halfwords(words x) {
    halfwords narrowed;
    __asm__("vpmovdw %1, %0" : "=v"(narrowed) : "v"(x));
    return narrowed;
}
MP_ALWAYS_INLINE bytes narrow_to_bytes(words x) {
    bytes narrowed;
    __asm__("vpmovdb %1, %0" : "=v"(narrowed) : "v"(x));
    return narrowed;
}
#else
MP_ALWAYS_INLINE words widen(halfwords x) {
    words wide;
    __asm__("vpmovzxwd %1, %0" : "=x"(wide) : "x"(x));
    return wide;
}
/// Eight bytes in a register; clang takes no shorter vector for an operand.
typedef std::uint64_t register_of_bytes __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
MP_ALWAYS_INLINE words widen(bytes x) {
    const register_of_bytes narrow = {reinterpret_cast<std::uint64_t>(x), 0};
    words wide;
    __asm__("vpmovzxbd %1, %0" : "=x"(wide) : "x"(narrow));
    return wide;
}
MP_ALWAYS_INLINE halfwords narrow_to_halfwords(words x) {
    const auto low = __builtin_shufflevector(x, x, 0, 1, 2, 3);
    const auto high = __builtin_shufflevector(x, x, 4, 5, 6, 7);
    halfwords narrowed;
    __asm__("vpackusdw %2, %1, %0" : "=x"(narrowed) : "x"(low), "x"(high));
    return narrowed;
}
MP_ALWAYS_INLINE bytes narrow_to_bytes(words x) {
    const halfwords narrowed = narrow_to_halfwords(x);
    register_of_bytes result;
    __asm__("vpackuswb %1, %1, %0" : "=x"(result) : "x"(narrowed));
    return reinterpret_cast<bytes>(result[0]);
}
#endif

/// Stores past the caches, where the address is a multiple of a vector's bytes.
MP_ALWAYS_INLINE void store_past_caches(float* to, floats x) {
    auto& target = *reinterpret_cast<unsigned char(*)[vector_bytes]>(to);
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vmovntps %1, %0" : "=m"(target) : "v"(x));
#else
    __asm__("vmovntps %1, %0" : "=m"(target) : "x"(x));
#endif
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
