// SPDX-License-Identifier: MIT
// What the vectors of all instruction sets have in common, included by x86_vectors.inl, neon_vectors.inl
// and portable_vectors.hpp: the vector types of the compiler, and memory.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

#if MP_TARGET_NUMBER <= MP_TARGET_NEON
inline constexpr std::size_t vector_bytes = 16;
#elif MP_TARGET_NUMBER >= MP_TARGET_AVX512
inline constexpr std::size_t vector_bytes = 64;
#else
inline constexpr std::size_t vector_bytes = 32;
#endif
/// Elements of a vec<T>, whatever their size.
inline constexpr std::size_t lanes = vector_bytes / sizeof(float);

/// As many T as there are lanes, in the vector types of the compiler.
template <class T>
struct vec_of;
// NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
template <>
struct vec_of<float> {
    typedef float type __attribute__((vector_size(vector_bytes)));
};
template <>
struct vec_of<std::uint32_t> {
    typedef std::uint32_t type __attribute__((vector_size(vector_bytes)));
};
template <>
struct vec_of<std::int32_t> {
    typedef std::int32_t type __attribute__((vector_size(vector_bytes)));
};
template <>
struct vec_of<std::uint16_t> {
    typedef std::uint16_t type __attribute__((vector_size(vector_bytes / 2)));
};
template <>
struct vec_of<std::uint8_t> {
    typedef std::uint8_t type __attribute__((vector_size(vector_bytes / 4)));
};
typedef std::uint8_t bytes_of_uint32 __attribute__((vector_size(vector_bytes)));
/// As many 16-bit integers as fill a register: two vec<std::uint16_t>.
typedef std::uint16_t uint16_lanes __attribute__((vector_size(vector_bytes)));
/// Registers of half as many lanes: doubles, integers of 64 bits, and the floats that doubles are made of.
typedef double doubles __attribute__((vector_size(vector_bytes)));
typedef std::uint64_t uint64_lanes __attribute__((vector_size(vector_bytes)));
typedef float half_floats __attribute__((vector_size(vector_bytes / 2)));
// NOLINTEND(modernize-use-using)
template <class T>
using vec = typename vec_of<T>::type;

MP_ALWAYS_INLINE vec<std::uint32_t> broadcast(std::uint32_t x) {
    return vec<std::uint32_t>{} + x;
}
MP_ALWAYS_INLINE vec<float> as_float(vec<std::uint32_t> x) {
    return reinterpret_cast<vec<float>>(x);
}
MP_ALWAYS_INLINE vec<std::uint32_t> as_uint32(vec<float> x) {
    return reinterpret_cast<vec<std::uint32_t>>(x);
}
MP_ALWAYS_INLINE vec<std::uint32_t> as_uint32(vec<std::int32_t> x) {
    return reinterpret_cast<vec<std::uint32_t>>(x);
}

/// From and to memory of any alignment.
template <class T>
MP_ALWAYS_INLINE vec<T> load(const T* from) {
    vec<T> x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
template <class T>
MP_ALWAYS_INLINE void store(T* to, vec<T> x) {
    std::memcpy(to, &x, sizeof x);
}

#if MP_TARGET_NUMBER <= MP_TARGET_NEON
// Vectors of 16 bytes.
/// One value in all lanes.
MP_ALWAYS_INLINE vec<float> broadcast(float x) {
    return vec<float>{x, x, x, x};
}
MP_ALWAYS_INLINE half_floats low_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 0, 1);
}
MP_ALWAYS_INLINE half_floats high_half(vec<float> x) {
    return __builtin_shufflevector(x, x, 2, 3);
}
MP_ALWAYS_INLINE vec<float> join_halves(half_floats low, half_floats high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3);
}
/// x where d is above the limit, which has a negative sign, or NaN; else 0.
MP_ALWAYS_INLINE vec<float> zero_unless_above(float limit, vec<float> d, vec<float> x) {
    const auto first = bit_cast<std::uint32_t>(limit);
    return as_uint32(d) - first <= 0xFF80'0000U - first ? vec<float>{} : x;
}
/// The sum of the lanes.
MP_ALWAYS_INLINE double reduce_add(doubles x) {
    return double_add(x[0], x[1]);
}
// Of single doubles.
MP_ALWAYS_INLINE double add(double a, double b) {
    return double_add(a, b);
}
MP_ALWAYS_INLINE double sub(double a, double b) {
    return double_subtract(a, b);
}
MP_ALWAYS_INLINE double mul(double a, double b) {
    return double_multiply(a, b);
}
MP_ALWAYS_INLINE double div(double a, double b) {
    return double_divide(a, b);
}
MP_ALWAYS_INLINE double sqrt(double x) {
    return double_sqrt(x);
}
#endif

/// Copies fewer than 2 * Chunk bytes, without the call that memcpy of an unknown length is.
template <std::size_t Chunk>
MP_ALWAYS_INLINE void copy_few(void* to, const void* from, std::size_t size) {
    if constexpr (Chunk == 0) {
        return;
    } else {
        if (size < Chunk) {
            copy_few<Chunk / 2>(to, from, size);
            return;
        }
        // Two chunks that may overlap.
        unsigned char first[Chunk];
        unsigned char last[Chunk];
        std::memcpy(first, from, Chunk);
        std::memcpy(last, static_cast<const unsigned char*>(from) + (size - Chunk), Chunk);
        std::memcpy(to, first, Chunk);
        std::memcpy(static_cast<unsigned char*>(to) + (size - Chunk), last, Chunk);
    }
}

}}}  // namespace mp::detail::MP_TARGET
