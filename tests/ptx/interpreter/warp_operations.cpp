// SPDX-License-Identifier: MIT
// Shuffles, votes and matches.
#include "collective.hpp"

#include <array>
#include <cstdint>
#include <string_view>

namespace ptx {

namespace {

enum class shuffle_mode { up, down, butterfly, index };

/// o: result, its predicate, a, b, c; the mask of members is list[0].
bool shuffle(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.list[0], m)), g)) return false;
    std::array<std::uint32_t, warp_lanes> values{};
    for (int lane = 0; lane < warp_lanes; ++lane)
        values[static_cast<std::size_t>(lane)] = words<std::uint32_t>(w, i.o[2])[lane];
    lane_mask inside = 0;
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        const auto b = static_cast<int>(read_lane(w, i.o[3], lane) & 31U);
        const auto c = static_cast<std::uint32_t>(read_lane(w, i.o[4], lane));
        const int clamp = static_cast<int>(c & 31U), segment = static_cast<int>(c >> 8 & 31U);
        const int highest = (lane & segment) | (clamp & ~segment);
        const int lowest = lane & segment;
        int from = lane;
        bool is_inside = false;
        switch (static_cast<shuffle_mode>(i.detail[0])) {
            case shuffle_mode::up:
                from = lane - b;
                is_inside = from >= highest;
                break;
            case shuffle_mode::down:
                from = lane + b;
                is_inside = from <= highest;
                break;
            case shuffle_mode::butterfly:
                from = lane ^ b;
                is_inside = from <= highest;
                break;
            case shuffle_mode::index:
                from = lowest | (b & ~segment);
                is_inside = from <= highest;
                break;
        }
        if (!is_inside) from = lane;
        if ((m >> from & 1U) == 0)
            w.fail(lane, "reads from lane " + std::to_string(from) + ", which takes no part");
        if (is_inside) inside |= lane_mask{1} << lane;
        write_lane(w, i.o[0], lane, values[static_cast<std::size_t>(from)]);
    }
    write_predicate(w, i.o[1], m, inside);
    return true;
}
void decode_shuffle(decoder& d, instruction& to) {
    if (!d.option("sync")) d.fail("expected .sync");
    const std::string_view mode = d.one_of({"up", "down", "bfly", "idx"});
    if (mode.empty() || d.type() != "b32") d.fail("expected a mode and .b32");
    to.detail[0] = static_cast<std::int32_t>(mode == "up"     ? shuffle_mode::up
                                             : mode == "down" ? shuffle_mode::down
                                             : mode == "bfly" ? shuffle_mode::butterfly
                                                              : shuffle_mode::index);
    to.o[0] = d.value(0, 4);
    if (!d.at(0).beside.empty()) to.o[1] = d.predicate_named(d.at(0).beside);
    to.o[2] = d.value(1, 4);
    to.o[3] = d.value(2, 4);
    to.o[4] = d.value(3, 4);
    to.list.push_back(d.value(4, 4));
    to.try_run = &shuffle;
}

enum class vote_mode { all, any, same, ballot };

bool vote(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.o[2], m)), g)) return false;
    const lane_mask votes = read_predicate(w, i.o[1]) & m;
    switch (static_cast<vote_mode>(i.detail[0])) {
        case vote_mode::all:
            write_predicate(w, i.o[0], m, votes == m ? m : 0);
            break;
        case vote_mode::any:
            write_predicate(w, i.o[0], m, votes != 0 ? m : 0);
            break;
        case vote_mode::same:
            write_predicate(w, i.o[0], m, votes == 0 || votes == m ? m : 0);
            break;
        case vote_mode::ballot:
            for (lane_mask left = m; left != 0; left &= left - 1)
                write_lane(w, i.o[0], std::countr_zero(left), votes);
            break;
    }
    return true;
}
void decode_vote(decoder& d, instruction& to) {
    if (!d.option("sync")) d.fail("expected .sync");
    const std::string_view mode = d.one_of({"all", "any", "uni", "ballot"});
    if (mode.empty()) d.fail("a mode is missing");
    const bool ballot = mode == "ballot";
    if (d.type() != (ballot ? "b32" : "pred")) d.fail("expected another type");
    to.detail[0] = static_cast<std::int32_t>(ballot          ? vote_mode::ballot
                                             : mode == "all" ? vote_mode::all
                                             : mode == "any" ? vote_mode::any
                                                             : vote_mode::same);
    to.o[0] = ballot ? d.value(0, 4) : d.predicate(0);
    to.o[1] = d.predicate(1);
    to.o[2] = d.value(2, 4);
    to.try_run = &vote;
}

/// Which lanes have the same value (any), or whether all have (all).
bool match(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.o[3], m)), g)) return false;
    std::array<std::uint64_t, warp_lanes> values{};
    for (int lane = 0; lane < warp_lanes; ++lane)
        values[static_cast<std::size_t>(lane)] = read_lane(w, i.o[2], lane);
    bool all = true;
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        lane_mask same = 0;
        for (lane_mask other = m; other != 0; other &= other - 1) {
            const int it = std::countr_zero(other);
            if (values[static_cast<std::size_t>(it)] == values[static_cast<std::size_t>(lane)])
                same |= lane_mask{1} << it;
        }
        all = all && same == m;
        if (i.detail[0] == 0) write_lane(w, i.o[0], lane, same);
    }
    if (i.detail[0] != 0) {
        for (lane_mask left = m; left != 0; left &= left - 1)
            write_lane(w, i.o[0], std::countr_zero(left), all ? m : 0);
        write_predicate(w, i.o[1], m, all ? m : 0);
    }
    return true;
}
void decode_match(decoder& d, instruction& to) {
    if (!d.option("sync")) d.fail("expected .sync");
    to.detail[0] = d.one_of({"all", "any"}) == "all" ? 1 : 0;
    const std::size_t bytes = bytes_of_type(d.type());
    to.o[0] = d.value(0, 4);
    if (!d.at(0).beside.empty()) to.o[1] = d.predicate_named(d.at(0).beside);
    to.o[2] = d.value(1, bytes);
    to.o[3] = d.value(2, 4);
    to.try_run = &match;
}

bool reduce(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.o[2], m)), g)) return false;
    std::uint32_t result = 0;
    bool first = true;
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const auto x = static_cast<std::uint32_t>(read_lane(w, i.o[1], std::countr_zero(left)));
        const auto s = [](std::uint32_t bits) { return static_cast<std::int32_t>(bits); };
        if (first)
            result = x;
        else if (i.detail[0] == 0)
            result += x;
        else if (i.detail[0] == 1)
            result = i.detail[1] != 0 ? (s(x) < s(result) ? x : result) : std::min(x, result);
        else if (i.detail[0] == 2)
            result = i.detail[1] != 0 ? (s(x) > s(result) ? x : result) : std::max(x, result);
        else if (i.detail[0] == 3)
            result &= x;
        else if (i.detail[0] == 4)
            result |= x;
        else
            result ^= x;
        first = false;
    }
    for (lane_mask left = m; left != 0; left &= left - 1)
        write_lane(w, i.o[0], std::countr_zero(left), result);
    return true;
}
void decode_reduce(decoder& d, instruction& to) {
    if (!d.option("sync")) d.fail("expected .sync");
    const std::string_view what = d.one_of({"add", "min", "max", "and", "or", "xor"});
    to.detail[0] = what == "add"   ? 0
                   : what == "min" ? 1
                   : what == "max" ? 2
                   : what == "and" ? 3
                   : what == "or"  ? 4
                                   : 5;
    to.detail[1] = d.type() == "s32" ? 1 : 0;
    to.o = {d.value(0, 4), d.value(1, 4), d.value(2, 4)};
    to.try_run = &reduce;
}

/// The lanes that happen to be here.
void active(warp& w, const instruction& i, lane_mask m) {
    for_lanes(m, [&](int lane) { write_lane(w, i.o[0], lane, m); });
}
/// The first lane here is elected.
bool elect(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.o[2], m)), g)) return false;
    const int lane = std::countr_zero(m);
    for_lanes(m, [&](int it) { write_lane(w, i.o[0], it, static_cast<std::uint64_t>(lane)); });
    write_predicate(w, i.o[1], m, lane_mask{1} << lane);
    return true;
}

}  // namespace

void add_warp_instructions(instruction_table& table) {
    table["shfl"] = &decode_shuffle;
    table["vote"] = &decode_vote;
    table["vote/pred"] = &decode_vote;
    table["match"] = &decode_match;
    table["redux"] = &decode_reduce;
    table["activemask"] = [](decoder& d, instruction& to) {
        d.type();
        to.o[0] = d.value(0, 4);
        to.run = &active;
    };
    table["elect"] = [](decoder& d, instruction& to) {
        d.option("sync");
        to.o[0] = d.any_value(d.at(0), 4);
        to.o[1] = d.predicate_named(d.at(0).beside);
        to.o[2] = d.value(1, 4);
        to.try_run = &elect;
    };
}

}  // namespace ptx
