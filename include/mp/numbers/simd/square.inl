// SPDX-License-Identifier: MIT

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Words A, B, C and D of each 16 bytes of x and y, of which those of y are 4 and up.
template <int A, int B, int C, int D, int... Index>
MP_ALWAYS_INLINE vec<float> shuffle_words(vec<float> x, vec<float> y,
                                          std::integer_sequence<int, Index...> /*lanes*/) {
    constexpr int of[] = {A, B, C, D};
    constexpr int in_y = static_cast<int>(lanes) - 4;
    return __builtin_shufflevector(x, y, (of[Index % 4] + (of[Index % 4] < 4 ? 0 : in_y) + Index / 4 * 4)...);
}

/// Calls store(word i of `lanes` lines, `stride` bytes apart) for words of some 16 bytes of each. row[r][q] has the q-th
/// 16 bytes of lines r, r + 4 ...; words change places within these. The folds keep registers at every -O level.
template <class Store, int... Quarter>
MP_ALWAYS_INLINE void transpose_quarters(const std::byte* from, std::ptrdiff_t stride, Store store,
                                         std::integer_sequence<int, Quarter...> /*quarters*/) {
    constexpr std::make_integer_sequence<int, static_cast<int>(lanes)> all{};
    vec<float> row[4][sizeof...(Quarter)];
    const auto load_lines = [&](vec<float>* to, const std::byte* line) MP_INLINED_LAMBDA {
        // One pointer, from which the others are one, two and three strides away.
        __asm__("" : "+r"(line));
        ((to[Quarter] = load_quarters(line + 16 * Quarter, 4 * stride)), ...);
    };
    // Each line as a whole, since lines may share their places in the cache.
    load_lines(row[0], from);
    load_lines(row[1], from + stride);
    load_lines(row[2], from + 2 * stride);
    load_lines(row[3], from + 3 * stride);
    const auto store_quarter = [&](int q) MP_INLINED_LAMBDA {
        const vec<float> lower = shuffle_words<0, 4, 1, 5>(row[0][q], row[1][q], all);
        const vec<float> other = shuffle_words<0, 4, 1, 5>(row[2][q], row[3][q], all);
        const vec<float> upper = shuffle_words<2, 6, 3, 7>(row[0][q], row[1][q], all);
        const vec<float> last = shuffle_words<2, 6, 3, 7>(row[2][q], row[3][q], all);
        store(shuffle_words<0, 1, 4, 5>(lower, other, all));
        store(shuffle_words<2, 3, 6, 7>(lower, other, all));
        store(shuffle_words<0, 1, 4, 5>(upper, last, all));
        store(shuffle_words<2, 3, 6, 7>(upper, last, all));
    };
    (store_quarter(Quarter), ...);
}

/// Transposes `lanes` lines of words of 32 bits, `stride` bytes apart: word i of each goes to line i of `count`, which
/// lie `to_stride` bytes apart. Reads multiples of 16 bytes.
MP_NEVER_INLINE inline void transpose_words(const void* from, std::ptrdiff_t stride, std::ptrdiff_t count,
                                            void* to, std::ptrdiff_t to_stride) {
    const auto* lines = static_cast<const std::byte*>(from);
    auto* target = static_cast<std::byte*>(to);
    const auto store_line = [&](vec<float> line) MP_INLINED_LAMBDA {
        std::memcpy(target, &line, sizeof line);
        target += to_stride;
    };
    constexpr auto width = static_cast<std::ptrdiff_t>(lanes);
    constexpr std::make_integer_sequence<int, static_cast<int>(lanes / 4)> quarters{};
    for (; count >= width; count -= width, lines += vector_bytes) {
        transpose_quarters(lines, stride, store_line, quarters);
    }
    for (; count > 0; count -= 4, lines += 16) {
        std::ptrdiff_t left = count;
        const auto store_left = [&](vec<float> x) MP_INLINED_LAMBDA { left-- > 0 ? store_line(x) : void(); };
        transpose_quarters(lines, stride, store_left, std::integer_sequence<int, 0>{});
    }
}

/// Bytes in squares of 16 x 16, as many side by side as a vector has 16 bytes, and their transposition: interleaving row i
/// with row i + 8 rotates the bits of the place (row, byte) by one, so that four rounds change rows and bytes.
struct byte_squares {
    bytes_of_uint32 row[16];

    /// Row k from `from` + k stride.
    MP_ALWAYS_INLINE void load_rows(const std::uint8_t* from, std::size_t stride) {
        load_rows(from, stride, all_rows{});
    }
    MP_ALWAYS_INLINE void transpose() {
        interleave(all_rows{});
        interleave(all_rows{});
        interleave(all_rows{});
        interleave(all_rows{});
    }
    /// Row k of square q to `to` + (16 q + k) stride.
    MP_ALWAYS_INLINE void store_rows(std::uint8_t* to, std::size_t stride) const {
        store_square<0>(to, stride, all_rows{});
        if constexpr (vector_bytes >= 32) store_square<1>(to + 16 * stride, stride, all_rows{});
        if constexpr (vector_bytes >= 64) store_square<2>(to + 32 * stride, stride, all_rows{});
        if constexpr (vector_bytes >= 64) store_square<3>(to + 48 * stride, stride, all_rows{});
    }

private:
    using all_rows = std::make_integer_sequence<int, 16>;

    template <int... K>
    MP_ALWAYS_INLINE void load_rows(const std::uint8_t* from, std::size_t stride,
                                    std::integer_sequence<int, K...> /*all*/) {
        (std::memcpy(&row[K], from + K * stride, sizeof row[K]), ...);
    }
    template <int... K>
    MP_ALWAYS_INLINE void interleave(std::integer_sequence<int, K...> /*all*/) {
        const bytes_of_uint32 mixed[16] = {(K % 2 == 0
                                                ? interleave_lower_bytes(row[K / 2], row[K / 2 + 8])
                                                : interleave_upper_bytes(row[K / 2], row[K / 2 + 8]))...};
        ((row[K] = mixed[K]), ...);
    }
    template <int Square, int... K>
    MP_ALWAYS_INLINE void store_square(std::uint8_t* to, std::size_t stride,
                                       std::integer_sequence<int, K...> /*all*/) const {
        const auto store_row = [&](bytes_of_uint32 x, std::size_t k) MP_INLINED_LAMBDA {
            const auto words = reinterpret_cast<uint64_lanes>(x);
            const auto bytes = __builtin_shufflevector(words, words, 2 * Square, 2 * Square + 1);
            std::memcpy(to + k * stride, &bytes, sizeof bytes);
        };
        (store_row(row[K], K), ...);
    }
};

}}}  // namespace mp::detail::MP_TARGET
