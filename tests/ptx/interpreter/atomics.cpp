// SPDX-License-Identifier: MIT
// atom and red: one lane after the other.
#include "lane_functions.hpp"
#include "memory_access.hpp"
#include "numbers.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptx {

namespace {

enum class update {
    add,
    minimum,
    maximum,
    bit_and,
    bit_or,
    bit_xor,
    exchange,
    compare,
    increment,
    decrement
};

template <class T>
T updated(update what, T old, T b, T c) {
    switch (what) {
        case update::add:
            return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                                  static_cast<std::make_unsigned_t<T>>(b));
        case update::minimum:
            return std::min(old, b);
        case update::maximum:
            return std::max(old, b);
        case update::bit_and:
            return old & b;
        case update::bit_or:
            return old | b;
        case update::bit_xor:
            return old ^ b;
        case update::exchange:
            return b;
        case update::compare:
            return old == b ? c : old;
        case update::increment:
            return old >= b ? T{0} : static_cast<T>(old + 1);
        case update::decrement:
            return old == 0 || old > b ? b : static_cast<T>(old - 1);
    }
    return old;
}

/// o: result, address, b, c. detail: space, update, what it orders (1: acquires, 2: releases).
template <class T>
void atomic(warp& w, const instruction& i, lane_mask m) {
    const auto in = static_cast<space>(i.detail[0]);
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        std::byte* const at = reach<sizeof(T)>(w, lane, in, address_of(w, i, 1, lane), access::update, true);
        order_by(w, lane, at, {true, true, (i.detail[2] & 1) != 0, (i.detail[2] & 2) != 0});
        T old;
        std::memcpy(&old, at, sizeof old);
        const auto b = static_cast<T>(read_lane(w, i.o[2], lane));
        const auto c = i.o[3].is_used() ? static_cast<T>(read_lane(w, i.o[3], lane)) : T{};
        const T now = updated(static_cast<update>(i.detail[1]), old, b, c);
        std::memcpy(at, &now, sizeof now);
        write_lane(w, i.o[0], lane, static_cast<std::make_unsigned_t<T>>(old));
    }
}
/// Sums of floats; those of 32 bits in global memory are flushed.
template <class Float, class Word>
void atomic_sum(warp& w, const instruction& i, lane_mask m) {
    const auto in = static_cast<space>(i.detail[0]);
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        std::byte* const at =
            reach<sizeof(Word)>(w, lane, in, address_of(w, i, 1, lane), access::update, true);
        order_by(w, lane, at, {true, true, (i.detail[2] & 1) != 0, (i.detail[2] & 2) != 0});
        Float old;
        std::memcpy(&old, at, sizeof old);
        const Float now = old + std::bit_cast<Float>(static_cast<Word>(read_lane(w, i.o[2], lane)));
        std::memcpy(at, &now, sizeof now);
        write_lane(w, i.o[0], lane, std::bit_cast<Word>(old));
    }
}

void decode(decoder& d, instruction& to, bool has_result) {
    static constexpr std::string_view names[] = {"add", "min",  "max", "and", "or",
                                                 "xor", "exch", "cas", "inc", "dec"};
    const std::string_view order = d.one_of({"relaxed", "acquire", "release", "acq_rel"});
    d.one_of({"cta", "cluster", "gpu", "sys"});
    d.option("noftz");
    const space said = d.space_option();
    std::int32_t what = -1;
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(std::size(names)); ++k) {
        if (d.option(names[k])) what = k;
    }
    if (what < 0) d.fail("an operation is missing");
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    std::size_t next = 0;
    if (has_result) to.o[0] = d.value(next++, bytes);
    to.detail = {static_cast<std::int32_t>(d.address(next, to, 1, said)), what,
                 (order == "acquire" || order == "acq_rel" ? 1 : 0) |
                     (order == "release" || order == "acq_rel" ? 2 : 0),
                 0};
    to.o[2] = d.value(next + 1, bytes);
    if (static_cast<update>(what) == update::compare) to.o[3] = d.value(next + 2, bytes);
    if (type[0] == 'f') {
        if (static_cast<update>(what) != update::add) return;
        if (type == "f32") to.run = &atomic_sum<float, std::uint32_t>;
        if (type == "f64") to.run = &atomic_sum<double, std::uint64_t>;
        return;
    }
    to.run = for_integer(type, []<class T> { return &atomic<T>; });
}

}  // namespace

void add_atomic_instructions(instruction_table& table) {
    table["atom"] = [](decoder& d, instruction& to) { decode(d, to, true); };
    table["red"] = [](decoder& d, instruction& to) { decode(d, to, false); };
}

}  // namespace ptx
