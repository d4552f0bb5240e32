// SPDX-License-Identifier: MIT
// Counts, fields and permutations of bits.
#include "lane_functions.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ptx {

namespace {

template <class T>
using bits_of = std::make_unsigned_t<T>;

/// Functions of a word of 32 or 64 bits whose result has 32.
template <class Function>
action counting(std::string_view type, Function) {
    return for_integer(type, []<class T>() -> action {
        return [](warp& w, const instruction& i, lane_mask m) {
            const auto* const a = words<lane_word<T>>(w, i.o[1]);
            auto* const to = words<std::uint32_t>(w, i.o[0]);
            for_lanes(
                m, [&](int lane) { to[lane] = Function::apply(static_cast<T>(a[lane]), i.detail[0] != 0); });
        };
    });
}
struct population {
    template <class T>
    static std::uint32_t apply(T a, bool) {
        return static_cast<std::uint32_t>(std::popcount(bits_of<T>(a)));
    }
};
struct leading_zeros {
    template <class T>
    static std::uint32_t apply(T a, bool) {
        return static_cast<std::uint32_t>(std::countl_zero(bits_of<T>(a)));
    }
};
/// The highest bit that differs from the sign, or by how much to shift it to the front.
struct find_bit {
    template <class T>
    static std::uint32_t apply(T a, bool shift_amount) {
        auto bits = static_cast<bits_of<T>>(a);
        if constexpr (std::is_signed_v<T>) {
            if (a < 0) bits = static_cast<bits_of<T>>(~bits);
        }
        if (bits == 0) return ~0U;
        const int zeros = std::countl_zero(bits);
        return static_cast<std::uint32_t>(shift_amount ? zeros : static_cast<int>(8 * sizeof(T)) - 1 - zeros);
    }
};
template <class Function>
void decode_count(decoder& d, instruction& to) {
    to.detail[0] = d.option("shiftamt") ? 1 : 0;
    const std::string_view type = d.type();
    to.o[0] = d.value(0, 4);
    to.o[1] = d.value(1, bytes_of_type(type));
    to.run = counting(type, Function{});
}

/// Bit fields: position and length are the low bytes of words of 32 bits.
template <class T>
void extract(warp& w, const instruction& i, lane_mask m) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    for_lanes(m, [&](int lane) {
        const std::uint32_t at = words<std::uint32_t>(w, i.o[2])[lane] & 255U;
        const std::uint32_t length = words<std::uint32_t>(w, i.o[3])[lane] & 255U;
        const auto value = static_cast<bits_of<T>>(a[lane]);
        const std::uint32_t last = std::min(at + length - 1, width - 1);
        const bool fill = std::is_signed_v<T> && length != 0 && (value >> last & 1U) != 0;
        bits_of<T> result = 0;
        for (std::uint32_t bit = 0; bit < width; ++bit) {
            const bool set = bit < length && at + bit < width ? (value >> (at + bit) & 1U) != 0 : fill;
            result = static_cast<bits_of<T>>(result | bits_of<T>{set} << bit);
        }
        to[lane] = result;
    });
}
void decode_extract(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, 4), d.value(3, 4)};
    to.run = for_integer(type, []<class T> { return &extract<T>; });
}
template <class T>
void insert(warp& w, const instruction& i, lane_mask m) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    const auto* const b = words<lane_word<T>>(w, i.o[2]);
    for_lanes(m, [&](int lane) {
        const std::uint32_t at = words<std::uint32_t>(w, i.o[3])[lane] & 255U;
        const std::uint32_t length = words<std::uint32_t>(w, i.o[4])[lane] & 255U;
        T result = static_cast<T>(b[lane]);
        for (std::uint32_t bit = 0; bit < length && at + bit < width; ++bit) {
            const T mask = static_cast<T>(T{1} << (at + bit));
            result = static_cast<T>((result & ~mask) | ((a[lane] >> bit & 1U) != 0 ? mask : T{0}));
        }
        to[lane] = as_word(result);
    });
}
void decode_insert(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes), d.value(3, 4), d.value(4, 4)};
    to.run = for_integer(type, []<class T> { return &insert<std::make_unsigned_t<T>>; });
}

/// Bytes of a and b (numbers 0 to 7), chosen by four digits; a digit with its highest bit copies the sign instead.
struct permute {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t choice) {
        const std::uint64_t both = std::uint64_t{b} << 32 | a;
        std::uint32_t result = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const std::uint32_t digit = choice >> (4 * i) & 15U;
            auto byte = static_cast<std::uint32_t>(both >> (8 * (digit & 7U)) & 255U);
            if ((digit & 8U) != 0) byte = (byte & 128U) != 0 ? 255U : 0U;
            result |= byte << (8 * i);
        }
        return result;
    }
};
void decode_permute(decoder& d, instruction& to) {
    if (d.type() != "b32") d.fail("expected .b32");
    to.o = {d.value(0, 4), d.value(1, 4), d.value(2, 4), d.value(3, 4)};
    to.run = &map_three<permute, std::uint32_t>;
}
/// A funnel shift: the pair b:a by c, of which the high word (left) or the low one (right) remains.
template <bool Left, bool Wraps>
struct funnel {
    static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
        const std::uint32_t by = Wraps ? c & 31U : std::min(c, 32U);
        const std::uint64_t pair = std::uint64_t{b} << 32 | a;
        return static_cast<std::uint32_t>(Left ? pair << by >> 32 : pair >> by);
    }
};
void decode_funnel(decoder& d, instruction& to) {
    const bool left = d.one_of({"l", "r"}) == "l";
    const bool wraps = d.one_of({"wrap", "clamp"}) == "wrap";
    if (d.type() != "b32") d.fail("expected .b32");
    to.o = {d.value(0, 4), d.value(1, 4), d.value(2, 4), d.value(3, 4)};
    if (left)
        to.run = wraps ? &map_three<funnel<true, true>, std::uint32_t>
                       : &map_three<funnel<true, false>, std::uint32_t>;
    else
        to.run = wraps ? &map_three<funnel<false, true>, std::uint32_t>
                       : &map_three<funnel<false, false>, std::uint32_t>;
}
/// Any function of three bits, as the table of its results.
void look_up(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        const auto a = static_cast<std::uint32_t>(read_lane(w, i.o[1], lane));
        const auto b = static_cast<std::uint32_t>(read_lane(w, i.o[2], lane));
        const auto c = static_cast<std::uint32_t>(read_lane(w, i.o[3], lane));
        std::uint32_t result = 0;
        for (int row = 0; row < 8; ++row) {
            if ((i.value >> row & 1) == 0) continue;
            result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
        }
        write_lane(w, i.o[0], lane, result);
    });
}
void decode_look_up(decoder& d, instruction& to) {
    if (d.type() != "b32") d.fail("expected .b32");
    to.o = {d.value(0, 4), d.value(1, 4), d.value(2, 4), d.value(3, 4)};
    to.value = d.integer(4);
    to.run = &look_up;
}

}  // namespace

void add_bit_instructions(instruction_table& table) {
    table["popc"] = &decode_count<population>;
    table["clz"] = &decode_count<leading_zeros>;
    table["bfind"] = &decode_count<find_bit>;
    table["bfe"] = &decode_extract;
    table["bfi"] = &decode_insert;
    table["prmt"] = &decode_permute;
    table["shf"] = &decode_funnel;
    table["lop3"] = &decode_look_up;
}

}  // namespace ptx
