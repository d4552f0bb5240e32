// SPDX-License-Identifier: MIT
// Comparisons, whose results are predicates or words.
#include "lane_functions.hpp"
#include "numbers.hpp"

#include <bit>
#include <cstdint>
#include <string_view>

namespace ptx {

namespace {

enum class relation { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

constexpr std::string_view relation_names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

/// Of numbers; comparisons with a NaN are false, but for those that end in u.
template <relation R, class T>
bool holds(T a, T b) {
    const bool unordered = a != a || b != b;
    if constexpr (R == relation::eq) return a == b;
    if constexpr (R == relation::ne) return !unordered && a != b;
    if constexpr (R == relation::lt) return a < b;
    if constexpr (R == relation::le) return a <= b;
    if constexpr (R == relation::gt) return a > b;
    if constexpr (R == relation::ge) return a >= b;
    if constexpr (R == relation::equ) return unordered || a == b;
    if constexpr (R == relation::neu) return unordered || a != b;
    if constexpr (R == relation::ltu) return unordered || a < b;
    if constexpr (R == relation::leu) return unordered || a <= b;
    if constexpr (R == relation::gtu) return unordered || a > b;
    if constexpr (R == relation::geu) return unordered || a >= b;
    if constexpr (R == relation::num) return !unordered;
    return unordered;
}

/// How to read the word of a lane as a value of which there is an order.
template <class T>
struct as_integer {
    using word = lane_word<T>;
    static T read(word bits, bool) { return static_cast<T>(bits); }
};
struct as_f32 {
    using word = std::uint32_t;
    static float read(word bits, bool flush) {
        if (flush && (bits & 0x7F80'0000U) == 0) return 0.0F;
        return std::bit_cast<float>(bits);
    }
};
struct as_f64 {
    using word = std::uint64_t;
    static double read(word bits, bool) { return std::bit_cast<double>(bits); }
};
template <const float_format& Format>
struct as_half {
    using word = std::uint32_t;
    static float read(word bits, bool) { return static_cast<float>(to_double(bits & 0xFFFFU, Format)); }
};

template <class Reader, relation R>
void compare(warp& w, const instruction& i, lane_mask m) {
    const auto* const a = words<typename Reader::word>(w, i.o[2]);
    const auto* const b = words<typename Reader::word>(w, i.o[3]);
    const bool flush = i.detail[0] != 0;
    lane_mask result = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) {
        result |= lane_mask{holds<R>(Reader::read(a[lane], flush), Reader::read(b[lane], flush))} << lane;
    }
    lane_mask other = ~result;
    if (i.detail[1] != 0) {
        const lane_mask with = read_predicate(w, i.o[4]);
        const auto combine = [&](lane_mask x) {
            return i.detail[1] == 1 ? x & with : i.detail[1] == 2 ? x | with : x ^ with;
        };
        result = combine(result);
        other = combine(other);
    }
    write_predicate(w, i.o[0], m, result);
    write_predicate(w, i.o[1], m, other);
}

template <class Reader, std::size_t... Index>
action with_relation(std::size_t index, std::index_sequence<Index...>) {
    static constexpr action table[] = {&compare<Reader, static_cast<relation>(Index)>...};
    return table[index];
}
template <class Reader>
action with_relation(std::size_t index) {
    return with_relation<Reader>(index, std::make_index_sequence<std::size(relation_names)>());
}

std::size_t take_relation(decoder& d) {
    for (std::size_t i = 0; i < std::size(relation_names); ++i) {
        if (d.option(relation_names[i])) return i;
    }
    // Unsigned comparisons have names of their own.
    if (d.option("lo")) return static_cast<std::size_t>(relation::lt);
    if (d.option("ls")) return static_cast<std::size_t>(relation::le);
    if (d.option("hi")) return static_cast<std::size_t>(relation::gt);
    if (d.option("hs")) return static_cast<std::size_t>(relation::ge);
    d.fail("a comparison is missing");
}

action comparison_for(std::string_view type, std::size_t r) {
    if (type == "f32") return with_relation<as_f32>(r);
    if (type == "f64") return with_relation<as_f64>(r);
    if (type == "f16") return with_relation<as_half<binary16>>(r);
    if (type == "bf16") return with_relation<as_half<bfloat16>>(r);
    return for_integer(type, [r]<class T>() -> action { return with_relation<as_integer<T>>(r); });
}

void decode_compare(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    const std::size_t r = take_relation(d);
    to.detail[0] = d.option("ftz") ? 1 : 0;
    const std::string_view combine = d.one_of({"and", "or", "xor"});
    const term& result = d.at(0);
    const std::size_t bytes = bytes_of_type(type);
    to.o[0] = d.predicate(result);
    if (!result.beside.empty()) to.o[1] = d.predicate_named(result.beside);
    to.o[2] = d.value(1, bytes);
    to.o[3] = d.value(2, bytes);
    if (!combine.empty()) {
        to.detail[1] = combine == "and" ? 1 : combine == "or" ? 2 : 3;
        to.o[4] = d.predicate(3);
    }
    to.run = comparison_for(type, r);
}

// --- set: ones or zeros in a word, of each half for packed numbers

bool holds_now(relation r, float a, float b) {
    switch (r) {
        case relation::eq:
            return holds<relation::eq>(a, b);
        case relation::ne:
            return holds<relation::ne>(a, b);
        case relation::lt:
            return holds<relation::lt>(a, b);
        case relation::le:
            return holds<relation::le>(a, b);
        case relation::gt:
            return holds<relation::gt>(a, b);
        case relation::ge:
            return holds<relation::ge>(a, b);
        case relation::equ:
            return holds<relation::equ>(a, b);
        case relation::neu:
            return holds<relation::neu>(a, b);
        case relation::ltu:
            return holds<relation::ltu>(a, b);
        case relation::leu:
            return holds<relation::leu>(a, b);
        case relation::gtu:
            return holds<relation::gtu>(a, b);
        case relation::geu:
            return holds<relation::geu>(a, b);
        case relation::num:
            return holds<relation::num>(a, b);
        default:
            return holds<relation::nan>(a, b);
    }
}
void set_pair(warp& w, const instruction& i, lane_mask m) {
    const float_format& format = i.detail[0] != 0 ? bfloat16 : binary16;
    const auto r = static_cast<relation>(i.detail[1]);
    for_lanes(m, [&](int lane) {
        const std::uint64_t a = read_lane(w, i.o[1], lane), b = read_lane(w, i.o[2], lane);
        std::uint64_t result = 0;
        for (const int shift : {0, 16}) {
            const auto x = static_cast<float>(to_double(a >> shift & 0xFFFFU, format));
            const auto y = static_cast<float>(to_double(b >> shift & 0xFFFFU, format));
            if (holds_now(r, x, y)) result |= std::uint64_t{0xFFFF} << shift;
        }
        write_lane(w, i.o[0], lane, result);
    });
}
void decode_set(decoder& d, instruction& to) {
    const std::string_view from = d.type();
    const std::string_view result = d.type();
    const std::size_t r = take_relation(d);
    if ((from == "f16x2" || from == "bf16x2") && (result == "u32" || result == "s32")) {
        to.detail = {from == "bf16x2" ? 1 : 0, static_cast<std::int32_t>(r), 0, 0};
        to.o = {d.value(0, 4), d.value(1, 4), d.value(2, 4)};
        to.run = &set_pair;
    }
}

}  // namespace

void add_comparison_instructions(instruction_table& table) {
    table["setp"] = &decode_compare;
    table["set"] = &decode_set;
}

}  // namespace ptx
