// SPDX-License-Identifier: MIT

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// A square of lanes x lanes, and its transposition: interleaving row i with row i + lanes / 2 rotates the
/// bits of the place (row, lane) by one, so that after log2(lanes) rounds rows and lanes have changed places.
struct vec_square {
    vec<float> row[lanes];

    /// row[k] = load(k), and store(k, row[k]), written out, as rows that an index chooses would go through memory.
    template <class Load>
    MP_ALWAYS_INLINE void load_rows(Load load) {
        load_rows(load, all{});
    }
    template <class Store>
    MP_ALWAYS_INLINE void store_rows(Store store) const {
        store_rows(store, all{});
    }

    MP_ALWAYS_INLINE void transpose() {
        interleave(all{});
        interleave(all{});
        if constexpr (lanes >= 8) interleave(all{});
        if constexpr (lanes >= 16) interleave(all{});
    }

private:
    using all = std::make_integer_sequence<int, static_cast<int>(lanes)>;

    template <class Load, int... K>
    MP_ALWAYS_INLINE void load_rows(Load load, std::integer_sequence<int, K...> /*all*/) {
        ((row[K] = load(K)), ...);
    }
    template <class Store, int... K>
    MP_ALWAYS_INLINE void store_rows(Store store, std::integer_sequence<int, K...> /*all*/) const {
        (store(K, row[K]), ...);
    }
    template <int... Index>
    MP_ALWAYS_INLINE void interleave(std::integer_sequence<int, Index...> /*half*/) {
        constexpr int half = static_cast<int>(lanes) / 2;
        const vec<float> mixed[lanes] = {(Index % 2 == 0
                                              ? interleave_lower(row[Index / 2], row[Index / 2 + half])
                                              : interleave_upper(row[Index / 2], row[Index / 2 + half]))...};
        ((row[Index] = mixed[Index]), ...);
    }
};

/// Bytes in squares of 16 x 16, as many side by side as a vector has 16 bytes, transposed in the same way.
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
