// SPDX-License-Identifier: MIT

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// A square of lanes x lanes, and its transposition: interleaving row i with row i + lanes / 2 rotates the
/// bits of the place (row, lane) by one, so that after log2(lanes) rounds rows and lanes have changed places.
struct vec_square {
    vec<float> row[lanes];

    MP_ALWAYS_INLINE void transpose() {
        using all = std::make_integer_sequence<int, static_cast<int>(lanes)>;
        interleave(all{});
        interleave(all{});
        if constexpr (lanes >= 8) interleave(all{});
        if constexpr (lanes >= 16) interleave(all{});
    }

private:
    template <int... Index>
    MP_ALWAYS_INLINE void interleave(std::integer_sequence<int, Index...> /*half*/) {
        constexpr int half = static_cast<int>(lanes) / 2;
        const vec<float> mixed[lanes] = {(Index % 2 == 0
                                              ? interleave_lower(row[Index / 2], row[Index / 2 + half])
                                              : interleave_upper(row[Index / 2], row[Index / 2 + half]))...};
        ((row[Index] = mixed[Index]), ...);
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
