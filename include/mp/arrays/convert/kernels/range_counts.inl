// SPDX-License-Identifier: MIT
// One pass over an array for a range report: comparisons in vectors, and the exponent fields, which go
// through a buffer of bytes in the innermost cache, counted one by one. Neighbours are counted in different
// tables, so that no counter waits for the one before it.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Counters of one vector, a lane each; a comparison that holds is -1.
struct lane_counts {
    vec<std::int32_t> below_nonzero;
    vec<std::int32_t> below_normal;
    vec<std::int32_t> overflows;
    vec<std::int32_t> nans;
    vec<std::int32_t> largest;
    vec<std::uint32_t>
        smallest;  ///< one less than the smallest magnitude that is not zero; for zeros it is very large
};

MP_ALWAYS_INLINE void count_lanes(lane_counts& counts, vec<std::uint32_t> magnitude, range_thresholds at) {
    const auto code = reinterpret_cast<vec<std::int32_t>>(magnitude);
    constexpr std::int32_t infinity = 0x7f80'0000;
    counts.below_nonzero -= code < static_cast<std::int32_t>(at.nonzero);
    counts.below_normal -= code < static_cast<std::int32_t>(at.normal);
    counts.overflows -= code >= static_cast<std::int32_t>(at.overflow);
    counts.nans -= code > infinity;
    const vec<std::int32_t> finite = code < infinity ? code : vec<std::int32_t>{};
    counts.largest = finite > counts.largest ? finite : counts.largest;
    const vec<std::uint32_t> less_one = magnitude - 1U;
    counts.smallest = less_one < counts.smallest ? less_one : counts.smallest;
}

MP_ALWAYS_INLINE std::uint64_t count_of_lanes(vec<std::int32_t> x) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < lanes; ++i) sum += static_cast<std::uint32_t>(x[i]);
    return sum;
}

/// The counts of report_range, for `count` numbers of a format whose values are floats.
template <class Value>
void count_range(const Value* from, std::size_t count, range_thresholds at, range_counts* result) {
    constexpr std::size_t chunk = 1024;
    // No counter of 32 bits overflows.
    constexpr std::size_t section = std::size_t{1} << 24;
    constexpr std::size_t tables = 8;
    constexpr std::uint32_t smallest_normal = 0x0080'0000;
    const default_floating_point_modes modes;
    std::uint8_t fields[chunk];
    std::uint32_t magnitudes[lanes];
    while (count != 0) {
        const std::size_t of_section = count < section ? count : section;
        std::uint32_t by_field[tables][256] = {};
        lane_counts sum = {};
        sum.smallest = ~vec<std::uint32_t>{};
        for (std::size_t first = 0; first < of_section; first += chunk) {
            const std::size_t size = of_section - first < chunk ? of_section - first : chunk;
            std::size_t i = 0;
            vec<std::uint32_t> magnitude;
            for (; i + lanes <= size; i += lanes) {
                magnitude = as_uint32(load_numbers(from + first + i)) & 0x7fff'ffffU;
                count_lanes(sum, magnitude, at);
                store(fields + i, narrow_to_bytes(magnitude >> 23));
            }
            if (i != size) {
                magnitude = as_uint32(load_first_numbers(from + first + i, size - i)) & 0x7fff'ffffU;
                count_lanes(sum, magnitude, at);
                store(fields + i, narrow_to_bytes(magnitude >> 23));
            }
            for (i = 0; i + tables <= size; i += tables) {
                std::uint64_t eight = 0;
                std::memcpy(&eight, fields + i, sizeof eight);
                for (std::size_t k = 0; k < tables; ++k) ++by_field[k][(eight >> (8 * k)) & 0xff];
            }
            for (; i < size; ++i) ++by_field[0][fields[i]];

            bool has_subnormals = false;
            for (std::size_t k = 0; k < lanes; ++k) has_subnormals |= sum.smallest[k] < smallest_normal - 1;
            if (!has_subnormals) continue;
            for (i = 0; i < size; i += lanes) {
                const vec<float> x = i + lanes <= size ? load_numbers(from + first + i)
                                                       : load_first_numbers(from + first + i, size - i);
                store(magnitudes, as_uint32(x) & 0x7fff'ffffU);
                for (const std::uint32_t code : magnitudes) {
                    if (code - 1 < smallest_normal - 1)
                        ++result->subnormals[63 - leading_zeros(std::uint64_t{code})];
                }
            }
            sum.smallest = ~vec<std::uint32_t>{};
        }
        // The zeros that fill up the last vector.
        const std::size_t zeros = (lanes - of_section % lanes) % lanes;
        result->below_nonzero += count_of_lanes(sum.below_nonzero) - zeros;
        result->below_normal += count_of_lanes(sum.below_normal) - zeros;
        result->overflows += count_of_lanes(sum.overflows);
        result->nans += count_of_lanes(sum.nans);
        for (std::size_t k = 0; k < lanes; ++k) {
            const auto code = static_cast<std::uint32_t>(sum.largest[k]);
            result->largest = code > result->largest ? code : result->largest;
        }
        for (std::size_t f = 0; f < 256; ++f) {
            for (std::size_t k = 0; k < tables; ++k) result->fields[f] += by_field[k][f];
        }
        from += of_section;
        count -= of_section;
    }
}

}}}  // namespace mp::detail::MP_TARGET
