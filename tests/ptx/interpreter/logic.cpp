// SPDX-License-Identifier: MIT
// Moves, choices, and the arithmetic of predicates.
#include "lane_functions.hpp"

#include <cstdint>

namespace ptx {

namespace {

template <class Word>
void move(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<Word>(w, i.o[0]);
    const auto* const a = words<Word>(w, i.o[1]);
    for_lanes(m, [=](int lane) { to[lane] = a[lane]; });
}
void move_local_address(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        write_lane(w, i.o[0], lane, w.local_base + static_cast<std::uint64_t>(i.value));
    });
}
/// The first element is lowest.
void pack(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        std::uint64_t value = 0;
        for (std::size_t k = 0; k < i.list.size(); ++k) {
            value |= read_lane(w, i.list[k], lane) << (8 * static_cast<std::size_t>(i.value) * k);
        }
        write_lane(w, i.o[0], lane, value);
    });
}
void unpack(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        const std::uint64_t value = read_lane(w, i.o[1], lane);
        for (std::size_t k = 0; k < i.list.size(); ++k) {
            write_lane(w, i.list[k], lane, value >> (8 * static_cast<std::size_t>(i.value) * k));
        }
    });
}
void move_predicate(warp& w, const instruction& i, lane_mask m) {
    write_predicate(w, i.o[0], m, read_predicate(w, i.o[1]));
}

void decode_move(decoder& d, instruction& to) {
    const std::string_view type = d.type();
    if (type == "pred") {
        to.o[0] = d.predicate(0);
        to.o[1] = d.predicate(1);
        to.run = &move_predicate;
        return;
    }
    const std::size_t bytes = bytes_of_type(type);
    if (d.at(0).kind == term::vector || d.at(1).kind == term::vector) {
        const bool packs = d.at(1).kind == term::vector;
        const std::size_t count = d.at(packs ? 1 : 0).parts.size();
        to.value = static_cast<std::int64_t>(bytes / count);
        to.list = d.elements(packs ? 1 : 0, bytes / count);
        to.o[packs ? 0 : 1] = d.value(packs ? 0 : 1, bytes);
        to.run = packs ? &pack : &unpack;
        return;
    }
    to.o[0] = d.value(0, bytes);
    if (const auto* const local = d.find_local(d.at(1).text)) {
        to.value = static_cast<std::int64_t>(local->at);
        to.run = &move_local_address;
        return;
    }
    to.o[1] = d.value(1, bytes);
    to.run = bytes == 8 ? &move<std::uint64_t> : &move<std::uint32_t>;
}

/// Between a space and generic addresses: `value` is the window.
void convert_address(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        const std::uint64_t address = read_lane(w, i.o[1], lane) + static_cast<std::uint64_t>(i.value);
        write_lane(w, i.o[0], lane, address);
    });
}
void decode_convert_address(decoder& d, instruction& to) {
    const bool to_space = d.option("to");
    const space in = d.space_option();
    const std::string_view type = d.type();
    if (type != "u64" && type != "u32") d.fail("expected .u64");
    to.o[0] = d.any_value(d.at(0), 8);
    to.o[1] = d.any_value(d.at(1), 8);
    const std::uint64_t window = in == space::shared      ? shared_window
                                 : in == space::local     ? local_window
                                 : in == space::parameter ? parameter_window
                                                          : 0;
    to.value = static_cast<std::int64_t>(to_space ? std::uint64_t{0} - window : window);
    to.run = &convert_address;
}

template <class Word>
void choose(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<Word>(w, i.o[0]);
    const auto* const a = words<Word>(w, i.o[1]);
    const auto* const b = words<Word>(w, i.o[2]);
    const lane_mask p = read_predicate(w, i.o[3]);
    for_lanes(m, [=](int lane) { to[lane] = (p >> lane & 1U) != 0 ? a[lane] : b[lane]; });
}
void decode_choose(decoder& d, instruction& to) {
    const std::size_t bytes = bytes_of_type(d.type());
    to.o[0] = d.value(0, bytes);
    to.o[1] = d.value(1, bytes);
    to.o[2] = d.value(2, bytes);
    to.o[3] = d.predicate(3);
    to.run = bytes == 8 ? &choose<std::uint64_t> : &choose<std::uint32_t>;
}
/// By the sign of c: a where it is not negative (slct.f32 takes -0 for that, and NaN for less).
void choose_by_sign(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) {
        const auto c = static_cast<std::uint32_t>(read_lane(w, i.o[3], lane));
        const bool first =
            i.detail[0] != 0 ? std::bit_cast<float>(c) >= 0 : static_cast<std::int32_t>(c) >= 0;
        write_lane(w, i.o[0], lane, read_lane(w, i.o[first ? 1 : 2], lane));
    });
}
void decode_choose_by_sign(decoder& d, instruction& to) {
    to.detail[0] = d.type() == "f32" ? 1 : 0;
    const std::size_t bytes = bytes_of_type(d.type());
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes), d.value(3, 4)};
    to.run = &choose_by_sign;
}

template <class Op>
void combine_predicates(warp& w, const instruction& i, lane_mask m) {
    write_predicate(w, i.o[0], m, Op::apply(read_predicate(w, i.o[1]), read_predicate(w, i.o[2])));
}
template <class Op>
void decode_predicates(decoder& d, instruction& to) {
    d.type();
    to.o = {d.predicate(0), d.predicate(1), d.predicate(2)};
    to.run = &combine_predicates<Op>;
}
struct both {
    static lane_mask apply(lane_mask a, lane_mask b) { return a & b; }
};
struct either {
    static lane_mask apply(lane_mask a, lane_mask b) { return a | b; }
};
struct one {
    static lane_mask apply(lane_mask a, lane_mask b) { return a ^ b; }
};
void decode_not_predicate(decoder& d, instruction& to) {
    d.type();
    to.o = {d.predicate(0), d.predicate(1)};
    to.run = [](warp& w, const instruction& i, lane_mask m) {
        write_predicate(w, i.o[0], m, ~read_predicate(w, i.o[1]));
    };
}

void nothing(warp&, const instruction&, lane_mask) {}
void trap(warp& w, const instruction&, lane_mask m) {
    w.fail(std::countr_zero(m), "stops the kernel");
}

}  // namespace

void add_logic_instructions(instruction_table& table) {
    table["mov"] = &decode_move;
    table["cvta"] = &decode_convert_address;
    table["selp"] = &decode_choose;
    table["slct"] = &decode_choose_by_sign;
    table["and/pred"] = &decode_predicates<both>;
    table["or/pred"] = &decode_predicates<either>;
    table["xor/pred"] = &decode_predicates<one>;
    table["not/pred"] = &decode_not_predicate;
    table["nop"] = [](decoder&, instruction& to) { to.run = &nothing; };
    table["trap"] = [](decoder&, instruction& to) { to.run = &trap; };
}

}  // namespace ptx
