// SPDX-License-Identifier: MIT
// pack_codes and unpack_codes of packed_codes.hpp on vectors, and the loops of mp::pack and mp::unpack.
//
// Neighbours are joined in lanes of twice the size by a shift, twice for 6 bits: 8 -> 12 in 16 -> 24 in 32.
// Then the bytes that are used move together.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

// NOLINTBEGIN(modernize-use-using): attributes of an alias would be those of the element
typedef std::uint8_t half_code_bytes __attribute__((vector_size(vector_bytes / 2)));
typedef std::uint16_t code_pairs __attribute__((vector_size(vector_bytes)));
// NOLINTEND(modernize-use-using)

/// 16 bytes, repeated over the vector.
MP_ALWAYS_INLINE bytes_of_uint32 repeat_16_bytes(const std::uint8_t (&pattern)[16]) {
    bytes_of_uint32 x;
    for (std::size_t i = 0; i < vector_bytes; i += 16) {
        std::memcpy(reinterpret_cast<unsigned char*>(&x) + i, pattern, 16);
    }
    return x;
}

/// `vector_bytes` codes to Width / 8 times as many bytes.
template <int Width>
MP_ALWAYS_INLINE void pack_vector(const std::uint8_t* codes, std::byte* to) {
    static_assert(Width == 4 || Width == 6);
    bytes_of_uint32 x;
    std::memcpy(&x, codes, sizeof x);
    const auto pairs = reinterpret_cast<code_pairs>(x);
    if constexpr (Width == 4) {
        const half_code_bytes packed =
            __builtin_convertvector((pairs | (pairs >> 4)) & std::uint16_t{0x00ff}, half_code_bytes);
        std::memcpy(to, &packed, sizeof packed);
    } else {
        const auto twelve = reinterpret_cast<vec<std::uint32_t>>((pairs & std::uint16_t{0x003f}) |
                                                                 ((pairs >> 2) & std::uint16_t{0x0fc0}));
        const vec<std::uint32_t> twenty_four = (twelve & 0x0000'0fffU) | ((twelve >> 4) & 0x00ff'f000U);
        constexpr std::uint8_t used[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 128, 128, 128, 128};
        const auto y = reinterpret_cast<vec<std::uint32_t>>(
            shuffle_bytes(reinterpret_cast<bytes_of_uint32>(twenty_four), repeat_16_bytes(used)));
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
        const vec<std::uint32_t> z =
            __builtin_shufflevector(y, y, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
#elif MP_TARGET_NUMBER == MP_TARGET_NEON
        const vec<std::uint32_t> z = y;
#else
        const vec<std::uint32_t> z = __builtin_shufflevector(y, y, 0, 1, 2, 4, 5, 6, 3, 7);
#endif
        std::memcpy(to, &z, vector_bytes * 6 / 8);
    }
}

/// The reverse. For 6 bits it reads `vector_bytes` bytes, more than it needs.
template <int Width>
MP_ALWAYS_INLINE void unpack_vector(const std::byte* from, std::uint8_t* codes) {
    static_assert(Width == 4 || Width == 6);
    if constexpr (Width == 4) {
        code_pairs pairs;
#if MP_TARGET_NUMBER == MP_TARGET_NEON
        half_code_bytes packed;
        std::memcpy(&packed, from, sizeof packed);
        __asm__("uxtl %0.8h, %1.8b" : "=w"(pairs) : "w"(packed));
#else
        __asm__("vpmovzxbw %1, %0"
                : "=v"(pairs)
                : "m"(*reinterpret_cast<const std::byte(*)[vector_bytes / 2]>(from)));
#endif
        const code_pairs apart = (pairs | (pairs << 4)) & std::uint16_t{0x0f0f};
        std::memcpy(codes, &apart, sizeof apart);
    } else {
        vec<std::uint32_t> x;
        std::memcpy(&x, from, sizeof x);
#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
        const vec<std::uint32_t> y =
            __builtin_shufflevector(x, x, 0, 1, 2, 12, 3, 4, 5, 13, 6, 7, 8, 14, 9, 10, 11, 15);
#elif MP_TARGET_NUMBER == MP_TARGET_NEON
        const vec<std::uint32_t> y = x;
#else
        const vec<std::uint32_t> y = __builtin_shufflevector(x, x, 0, 1, 2, 6, 3, 4, 5, 7);
#endif
        constexpr std::uint8_t apart[16] = {0, 1, 2, 128, 3, 4, 5, 128, 6, 7, 8, 128, 9, 10, 11, 128};
        const auto twenty_four = reinterpret_cast<vec<std::uint32_t>>(
            shuffle_bytes(reinterpret_cast<bytes_of_uint32>(y), repeat_16_bytes(apart)));
        const vec<std::uint32_t> twelve = (twenty_four & 0x0000'0fffU) | ((twenty_four << 4) & 0x0fff'0000U);
        const vec<std::uint32_t> six = (twelve & 0x003f'003fU) | ((twelve << 2) & 0x3f00'3f00U);
        std::memcpy(codes, &six, sizeof six);
    }
}

/// pack_codes.
template <int Width>
MP_ALWAYS_INLINE void pack_code_vectors(const std::uint8_t* codes, std::byte* to, std::size_t count) {
    if constexpr (Width == 8) {
        std::memcpy(to, codes, count);
    } else {
        constexpr std::size_t step = vector_bytes * Width / 8;
        for (; count >= vector_bytes; count -= vector_bytes, codes += vector_bytes, to += step) {
            pack_vector<Width>(codes, to);
        }
        if (count != 0) pack_codes<Width>(codes, to, count);
    }
}

/// unpack_codes, but it may write as many as `vector_bytes` - 1 codes more.
template <int Width>
MP_ALWAYS_INLINE void unpack_code_vectors(const std::byte* from, std::uint8_t* codes, std::size_t count) {
    if constexpr (Width == 8) {
        std::memcpy(codes, from, count);
    } else {
        constexpr std::size_t step = vector_bytes * Width / 8;
        constexpr std::size_t read = Width == 4 ? step : vector_bytes;
        std::size_t left = count / 8 * Width + (count % 8 * Width + 7) / 8;
        while (left >= read) {
            unpack_vector<Width>(from, codes);
            from += step;
            codes += vector_bytes;
            left -= step;
        }
        if (left == 0) return;
        // Fewer bytes than two steps: a vector, and what is left over.
        std::byte last[2 * vector_bytes] = {};
        std::memcpy(last, from, left);
        unpack_vector<Width>(last, codes);
        if (left > step) unpack_vector<Width>(last + step, codes + vector_bytes);
    }
}

/// mp::pack to nearest even, from numbers that vectors read, to a stream that begins at a byte.
template <class From, class To>
void pack_numbers(const From* from, std::byte* to, std::size_t count) {
    using format = typename To::format;
    constexpr int width = layout_of<format>::width;
    const default_floating_point_modes modes;
    std::uint8_t codes[codes_at_a_time];
    while (count != 0) {
        const std::size_t part = count < codes_at_a_time ? count : codes_at_a_time;
        std::size_t i = 0;
        for (; i + lanes <= part; i += lanes) {
            store(codes + i, narrow_to_bytes(narrow_codes<format>(load_numbers(from + i))));
        }
        if (i != part) {
            store(codes + i, narrow_to_bytes(narrow_codes<format>(load_first_numbers(from + i, part - i))));
        }
        pack_code_vectors<width>(codes, to, part);
        from += part;
        to += part / 8 * width;
        count -= part;
    }
}

/// mp::unpack to nearest even.
template <class From, class To>
void unpack_numbers(const std::byte* from, To* to, std::size_t count) {
    using format = typename From::format;
    constexpr int width = layout_of<format>::width;
    const default_floating_point_modes modes;
    std::uint8_t codes[codes_at_a_time + vector_bytes];
    while (count != 0) {
        const std::size_t part = count < codes_at_a_time ? count : codes_at_a_time;
        unpack_code_vectors<width>(from, codes, part);
        std::size_t i = 0;
        for (; i + lanes <= part; i += lanes) {
            store_numbers(to + i, widen_codes<format>(widen(load(codes + i))));
        }
        if (i != part) {
            store_first_numbers(to + i, widen_codes<format>(widen(load(codes + i))), part - i);
        }
        from += part / 8 * width;
        to += part;
        count -= part;
    }
}

}}}  // namespace mp::detail::MP_TARGET
