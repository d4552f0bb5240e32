// SPDX-License-Identifier: MIT
// Lanes among each other, included by x86_vectors.inl: sums and masks of them, and vectors put together of parts of others.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

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
    __asm__("vpshufb %1, %0, %0" : "+v"(x) : "v"(indices));
    return x;
}

// Wider and narrower integers, as instructions: of __builtin_convertvector g++ 12 makes much more. Narrowing
// takes words that fit.
MP_ALWAYS_INLINE vec<std::uint32_t> widen(vec<std::uint16_t> x) {
    vec<std::uint32_t> wide;
    __asm__("vpmovzxwd %1, %0" : "=v"(wide) : "v"(x));
    return wide;
}
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
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
    __asm__("vpackusdw %2, %1, %0" : "=v"(low) : "v"(x[0]), "v"(x[1]));
    __asm__("vpackusdw %2, %1, %0" : "=v"(high) : "v"(x[2]), "v"(x[3]));
    __asm__("vpackuswb %1, %0, %0" : "+v"(low) : "v"(high));
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    low = __builtin_shufflevector(low, low, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#else
    low = __builtin_shufflevector(low, low, 0, 4, 1, 5, 2, 6, 3, 7);
#endif
    std::memcpy(to, &low, sizeof low);
}

/// 2 * lanes bytes from memory.
MP_ALWAYS_INLINE uint16_lanes load_bytes_as_uint16(const std::uint8_t* from) {
    uint16_lanes wide;
    const auto& bytes = *reinterpret_cast<const unsigned char(*)[2 * lanes]>(from);
    __asm__("vpmovzxbw %1, %0" : "=v"(wide) : "m"(bytes));
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

/// Loads the 16-byte quarters of a vector from addresses that are `stride` bytes apart.
MP_ALWAYS_INLINE vec<float> load_quarters(const std::byte* from, std::ptrdiff_t stride) {
    using quarter = const unsigned char(*)[16];
    vec<float> x;
    __asm__("vmovups %1, %x0" : "=v"(x) : "m"(*reinterpret_cast<quarter>(from)));
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
    __asm__("vinsertf32x4 $1, %1, %0, %0" : "+v"(x) : "m"(*reinterpret_cast<quarter>(from + stride)));
    __asm__("vinsertf32x4 $2, %1, %0, %0" : "+v"(x) : "m"(*reinterpret_cast<quarter>(from + 2 * stride)));
    __asm__("vinsertf32x4 $3, %1, %0, %0" : "+v"(x) : "m"(*reinterpret_cast<quarter>(from + 3 * stride)));
#else
    __asm__("vinsertf128 $1, %1, %0, %0" : "+x"(x) : "m"(*reinterpret_cast<quarter>(from + stride)));
#endif
    return x;
}

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
    __asm__("vpunpcklbw %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}
MP_ALWAYS_INLINE bytes_of_uint32 interleave_upper_bytes(bytes_of_uint32 a, bytes_of_uint32 b) {
    __asm__("vpunpckhbw %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

}}}  // namespace mp::detail::MP_TARGET
