// SPDX-License-Identifier: MIT
// Memory, included by x86_vectors.inl: stores past the caches, and parts of vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

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
    __asm__("vmovntps %1, %0" : "=m"(target) : "v"(x));
}

#if MP_TARGET_NUMBER >= MP_TARGET_AVX512
MP_ALWAYS_INLINE std::uint16_t first_lanes(std::size_t count) {
    return static_cast<std::uint16_t>((1U << count) - 1);
}
/// The first `count` < lanes elements, the rest zero; memory behind them is not touched.
MP_ALWAYS_INLINE vec<float> load_partial(const float* from, std::size_t count) {
    vec<float> x;
    __asm__("vmovups (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(first_lanes(count)) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint32_t> load_partial(const std::uint32_t* from, std::size_t count) {
    vec<std::uint32_t> x;
    __asm__("vmovdqu32 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(first_lanes(count)) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint16_t> load_partial(const std::uint16_t* from, std::size_t count) {
    vec<std::uint16_t> x;
    __asm__("vmovdqu16 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(first_lanes(count)) : "memory");
    return x;
}
MP_ALWAYS_INLINE vec<std::uint8_t> load_partial(const std::uint8_t* from, std::size_t count) {
    vec<std::uint8_t> x;
    __asm__("vmovdqu8 (%1), %0 %{%2%}%{z%}" : "=v"(x) : "r"(from), "Yk"(first_lanes(count)) : "memory");
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
    __asm__ volatile("vmovups %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(first_lanes(count)) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint32_t* to, vec<std::uint32_t> x, std::size_t count) {
    __asm__ volatile("vmovdqu32 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(first_lanes(count)) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint16_t* to, vec<std::uint16_t> x, std::size_t count) {
    __asm__ volatile("vmovdqu16 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(first_lanes(count)) : "memory");
}
MP_ALWAYS_INLINE void store_partial(std::uint8_t* to, vec<std::uint8_t> x, std::size_t count) {
    __asm__ volatile("vmovdqu8 %0, (%1) %{%2%}" : : "v"(x), "r"(to), "Yk"(first_lanes(count)) : "memory");
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

}}}  // namespace mp::detail::MP_TARGET
