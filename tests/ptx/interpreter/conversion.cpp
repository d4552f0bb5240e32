// SPDX-License-Identifier: MIT
// cvt in all its forms: every value is taken apart exactly, and rounded once.
#include "lane_functions.hpp"
#include "numbers.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace ptx {

namespace {

/// A type as cvt names it.
struct number_type {
    bool is_float = false;
    bool is_signed = false;
    int bits = 0;
    int lanes = 1;
    const float_format* format = nullptr;
};

number_type type_named(decoder& d, std::string_view name) {
    struct named {
        std::string_view name;
        const float_format& format;
        int bits, lanes;
    };
    static const named floats[] = {
        {"f16", binary16, 16, 1},    {"bf16", bfloat16, 16, 1}, {"f32", binary32, 32, 1},
        {"f64", binary64, 64, 1},    {"tf32", tf32, 32, 1},     {"f16x2", binary16, 16, 2},
        {"bf16x2", bfloat16, 16, 2}, {"e4m3x2", e4m3, 8, 2},    {"e5m2x2", e5m2, 8, 2},
        {"e2m3x2", e2m3, 8, 2},      {"e3m2x2", e3m2, 8, 2},    {"e2m1x2", e2m1, 4, 2}};
    for (const named& it : floats) {
        if (name == it.name) return {true, true, it.bits, it.lanes, &it.format};
    }
    if (name.starts_with("u") || name.starts_with("s")) {
        return {false, name[0] == 's', static_cast<int>(8 * bytes_of_type(name)), 1, nullptr};
    }
    d.fail("type ." + std::string(name) + " is not known");
}

struct conversion {
    number_type from, to;
    round_mode mode = round_mode::nearest_even;
    bool to_integral = false, finite = false, flushes = false, clamps = false, relu = false;
};

/// Conversions of a program are few, and instructions hold their number.
std::vector<conversion>& conversions() {
    static std::vector<conversion> list;
    return list;
}

exact_number read_value(std::uint64_t bits, const conversion& c) {
    if (!c.from.is_float) {
        const int unused = 64 - c.from.bits;
        const std::uint64_t low = bits << unused >> unused;
        const bool negative = c.from.is_signed && (low >> (c.from.bits - 1) & 1U) != 0;
        const std::uint64_t extended =
            negative && unused > 0 ? low | ~std::uint64_t{0} << (c.from.bits % 64) : low;
        return from_integer(negative, negative ? std::uint64_t{0} - extended : low);
    }
    if (c.from.format == &tf32) bits >>= 13;
    exact_number n = decompose(bits & (c.from.format->sign_bit() * 2 - 1), *c.from.format);
    if (c.flushes && c.from.bits == 32 && n.kind == exact_number::finite && (bits & 0x7F80'0000U) == 0)
        n.digits = 0;
    return n;
}

std::uint64_t write_integer(const exact_number& n, const conversion& c) {
    const number_type& to = c.to;
    if (n.kind == exact_number::not_a_number) {
        // Zero, but for conversions that 64 bits take part in.
        if (c.from.bits < 64 && to.bits < 64) return 0;
        return std::uint64_t{1} << (to.bits - 1);
    }
    if (to.is_signed) return static_cast<std::uint64_t>(round_to_signed(n, c.mode, to.bits));
    return round_to_unsigned(n, c.mode, to.bits);
}

std::uint64_t write_float(exact_number n, const conversion& c) {
    const float_format& format = *c.to.format;
    if (c.to_integral && n.kind == exact_number::finite && n.exponent < 0) {
        n.digits = cut_digits(n, -n.exponent, c.mode);
        n.exponent = 0;
    }
    if (c.clamps && n.kind == exact_number::not_a_number) return 0;
    if (c.relu && n.negative && n.kind != exact_number::not_a_number) return 0;
    std::uint64_t bits = round_to(n, format, c.mode, c.finite);
    if (c.clamps) {
        if (n.negative) return 0;
        const exact_number one{exact_number::finite, false, 1, 0, false};
        const std::uint64_t limit = round_to(one, format, round_mode::nearest_even);
        bits = std::min(bits, limit);
    }
    if (c.flushes && c.to.bits == 32 && (bits & format.exponent_mask()) == 0) bits &= format.sign_bit();
    if (c.to.format == &tf32) return n.kind == exact_number::not_a_number ? 0x7FFF'FFFFU : bits << 13;
    return bits;
}

std::uint64_t convert(std::uint64_t bits, const conversion& c) {
    const exact_number n = read_value(bits, c);
    return c.to.is_float ? write_float(n, c) : write_integer(n, c);
}

void convert_one(warp& w, const instruction& i, lane_mask m) {
    const conversion& c = conversions()[static_cast<std::size_t>(i.detail[0])];
    for_lanes(m, [&](int lane) { write_lane(w, i.o[0], lane, convert(read_lane(w, i.o[1], lane), c)); });
}
/// d = {a, b}, a in the high half.
void convert_two(warp& w, const instruction& i, lane_mask m) {
    const conversion& c = conversions()[static_cast<std::size_t>(i.detail[0])];
    for_lanes(m, [&](int lane) {
        const std::uint64_t high = convert(read_lane(w, i.o[1], lane), c),
                            low = convert(read_lane(w, i.o[2], lane), c);
        write_lane(w, i.o[0], lane, high << c.to.bits | low);
    });
}
void convert_pair(warp& w, const instruction& i, lane_mask m) {
    const conversion& c = conversions()[static_cast<std::size_t>(i.detail[0])];
    const std::uint64_t mask = (std::uint64_t{1} << c.from.bits) - 1;
    for_lanes(m, [&](int lane) {
        const std::uint64_t pair = read_lane(w, i.o[1], lane);
        const std::uint64_t high = convert(pair >> c.from.bits & mask, c), low = convert(pair & mask, c);
        write_lane(w, i.o[0], lane, high << c.to.bits | low);
    });
}

// --- what occurs everywhere, without being taken apart

template <class To, class From>
void convert_integer(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        const auto value = static_cast<To>(static_cast<From>(read_lane(w, i.o[1], lane)));
        write_lane(w, i.o[0], lane, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
    });
}
template <class To, class From>
void widen(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<lane_word<To>>(w, i.o[0]);
    const auto* const from = words<lane_word<From>>(w, i.o[1]);
    for_lanes(m, [=](int lane) { to[lane] = as_word(static_cast<To>(static_cast<From>(from[lane]))); });
}
template <class From>
action integer_from(std::string_view to) {
    if (to == "u8") return &convert_integer<std::uint8_t, From>;
    if (to == "s8") return &convert_integer<std::int8_t, From>;
    return for_integer(to, []<class To>() -> action { return &convert_integer<To, From>; });
}
action integer_conversion(std::string_view to, std::string_view from, std::size_t to_bytes,
                          std::size_t from_bytes) {
    if (to == "u64" && from == "u32" && to_bytes == 8 && from_bytes == 4)
        return &widen<std::uint64_t, std::uint32_t>;
    if (to == "s64" && from == "s32" && to_bytes == 8 && from_bytes == 4)
        return &widen<std::int64_t, std::int32_t>;
    if (to == "u32" && from == "u64" && to_bytes == 4 && from_bytes == 8)
        return &widen<std::uint32_t, std::uint64_t>;
    if (from == "u8") return integer_from<std::uint8_t>(to);
    if (from == "s8") return integer_from<std::int8_t>(to);
    return for_integer(from, [to]<class From>() -> action { return integer_from<From>(to); });
}

/// All values of a format of 16 bits as floats.
template <const float_format& Format>
const std::vector<std::uint32_t>& table_of() {
    static const std::vector<std::uint32_t> table = [] {
        std::vector<std::uint32_t> result(65536);
        for (std::uint32_t bits = 0; bits < 65536; ++bits) {
            result[bits] = static_cast<std::uint32_t>(
                round_to(decompose(bits, Format), binary32, round_mode::nearest_even));
        }
        return result;
    }();
    return table;
}
template <const float_format& Format>
void half_to_float(warp& w, const instruction& i, lane_mask m) {
    const std::uint32_t* const table = table_of<Format>().data();
    auto* const to = words<std::uint32_t>(w, i.o[0]);
    const auto* const from = words<std::uint32_t>(w, i.o[1]);
    for_lanes(m, [=](int lane) { to[lane] = table[from[lane] & 0xFFFFU]; });
}
void float_to_double(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<std::uint64_t>(w, i.o[0]);
    const auto* const from = words<std::uint32_t>(w, i.o[1]);
    for_lanes(m, [=](int lane) {
        const double x = double{std::bit_cast<float>(from[lane])};
        to[lane] = x != x ? binary64.canonical_nan() : std::bit_cast<std::uint64_t>(x);
    });
}

void decode_conversion(decoder& d, instruction& to) {
    const std::string_view from_name = d.type(), to_name = d.type();
    conversion c;
    c.from = type_named(d, from_name);
    c.to = type_named(d, to_name);
    const std::string_view mode = d.one_of({"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"});
    if (mode.starts_with("rz")) c.mode = round_mode::toward_zero;
    if (mode.starts_with("rm")) c.mode = round_mode::downward;
    if (mode.starts_with("rp")) c.mode = round_mode::upward;
    if (mode == "rna") c.mode = round_mode::nearest_away;
    c.to_integral = mode.size() == 3 && mode.ends_with("i");
    c.flushes = d.option("ftz");
    c.clamps = d.option("sat");
    c.relu = d.option("relu");
    c.finite = d.option("satfinite");
    const bool narrows =
        c.from.is_float && c.to.is_float && c.to.format->fraction_bits < c.from.format->fraction_bits;
    if (narrows && mode.empty()) d.fail("a rounding is missing");
    if (c.from.is_float && !c.to.is_float && !c.to_integral) d.fail("a rounding to integers is missing");
    if (!c.from.is_float && !c.to.is_float) {
        if (c.clamps) {
            // An exact value that is rounded to an integer stops at the limits.
            c.mode = round_mode::toward_zero;
        } else {
            to.o = {d.any_value(d.at(0), 8), d.any_value(d.at(1), 8)};
            to.run = integer_conversion(to_name, from_name, to.o[0].bytes, to.o[1].bytes);
            return;
        }
    }
    to.o[0] = d.any_value(d.at(0), 8);
    to.o[1] = d.any_value(d.at(1), static_cast<std::size_t>(c.from.bits * c.from.lanes) / 8);
    if (c.to.lanes == 2 && c.from.lanes == 1) {
        to.o[2] = d.any_value(d.at(2), 4);
        to.run = &convert_two;
    } else if (c.to.lanes == 2) {
        to.run = &convert_pair;
    } else {
        const bool plain = mode.empty() && !c.flushes && !c.clamps;
        if (plain && to_name == "f32" && from_name == "f16")
            to.run = &half_to_float<binary16>;
        else if (plain && to_name == "f32" && from_name == "bf16")
            to.run = &half_to_float<bfloat16>;
        else if (plain && to_name == "f64" && from_name == "f32")
            to.run = &float_to_double;
        else
            to.run = &convert_one;
    }
    to.detail[0] = static_cast<std::int32_t>(conversions().size());
    conversions().push_back(c);
}

}  // namespace

void add_conversion_instructions(instruction_table& table) {
    table["cvt"] = &decode_conversion;
}

}  // namespace ptx
