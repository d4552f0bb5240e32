// SPDX-License-Identifier: MIT
// What only the vectors of instruction sets can do, as functions that the baseline can call. See
// target_vectors.cpp.

namespace mp::detail::MP_TARGET {

/// results[o] gets the bits of operation o of every element; `count` is a multiple of 16. See word_operations.
inline void apply_to_words(const std::uint32_t* a, const std::uint32_t* b, std::size_t count,
                           std::uint32_t* const* results) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; i += lanes) {
        const vec<std::uint32_t> x = load(a + i);
        const vec<std::uint32_t> y = load(b + i);
        std::size_t o = 0;
        const auto put = [&](vec<std::uint32_t> value) MP_INLINED_LAMBDA { store(results[o++] + i, value); };
        put(as_uint32(larger_or_second(as_float(x), as_float(y))));
        put(as_uint32(smaller_or_second(as_float(x), as_float(y))));
        put(as_uint32(quieted(as_float(x))));
        put(as_uint32(fused_multiply_add(as_float(x), as_float(y), as_float(x))));
        put(widen(narrow_binary16(as_float(x))));
        put(as_uint32(widen_binary16(narrow_to_uint16(x & 0xffffU))));
        put(widen(narrow_to_uint16(x & 0xffffU)));
        put(widen(narrow_to_bytes(x & 0xffU)));
        put((min)(x, y));
    }
}

/// One vector of what moves between lanes.
inline void move_lanes(const std::uint32_t* a, const std::uint32_t* b, const std::uint8_t* places,
                       simd_test::lane_moves* moves) {
    const default_floating_point_modes modes;
    const vec<std::uint32_t> x = load(a);
    const vec<std::uint32_t> y = load(b);
    const auto x2 = reinterpret_cast<uint64_lanes>(x);
    const auto y2 = reinterpret_cast<uint64_lanes>(y);
    const auto put = [](auto& to, auto from) MP_INLINED_LAMBDA { std::memcpy(&to, &from, sizeof from); };
    moves->lane_count = lanes;
    moves->mask = movemask(x);
    moves->has_sign = any_sign(x2);
    moves->has_common_bits = have_common_bits(x, y & 0x1000'0000U);
    put(moves->lower, interleave_lower(x, y));
    put(moves->upper, interleave_upper(x, y));
    put(moves->low, low_halves(x2, y2));
    put(moves->products, multiply_low_halves(x2, y2));
    put(moves->lower_longwords, interleave_lower(x2, y2));
    put(moves->upper_longwords, interleave_upper(x2, y2));
    put(moves->quieted_doubles, quieted(reinterpret_cast<doubles>(x2)));
    put(moves->quotients, div(reinterpret_cast<doubles>(x2), reinterpret_cast<doubles>(y2)));
    bytes_of_uint32 order;
    std::memcpy(&order, places, sizeof order);
    put(moves->shuffled, shuffle_bytes(reinterpret_cast<bytes_of_uint32>(x), order));
}

/// Copies the first n < lanes elements by a vector, whose lanes go to `all`.
template <class Element>
void copy_first_elements(std::size_t n, const Element* from, Element* to, Element* all) {
    const auto x = load_partial(from, n);
    store_partial(to, x, n);
    store(all, x);
}

inline std::size_t lanes_of_target() {
    return lanes;
}

}  // namespace mp::detail::MP_TARGET
