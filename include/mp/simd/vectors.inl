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

namespace mp::detail::MP_TARGET {

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

/// a b + c, rounded once.
MP_ALWAYS_INLINE floats fused_multiply_add(floats a, floats b, floats c) {
#if MP_TARGET_LEVEL >= MP_LEVEL_AVX512
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(c) : "x"(a), "x"(b));
#endif
    return c;
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

/// The same number of wider and narrower integers; narrowing keeps the low bits.
MP_ALWAYS_INLINE words widen(halfwords x) {
    return __builtin_convertvector(x, words);
}
MP_ALWAYS_INLINE words widen(bytes x) {
    return __builtin_convertvector(x, words);
}
MP_ALWAYS_INLINE halfwords narrow_to_halfwords(words x) {
    return __builtin_convertvector(x, halfwords);
}
MP_ALWAYS_INLINE bytes narrow_to_bytes(words x) {
    return __builtin_convertvector(x, bytes);
}

}  // namespace mp::detail::MP_TARGET
