// SPDX-License-Identifier: MIT
// Loads and stores.
#include "lane_functions.hpp"
#include "memory_access.hpp"

#include <cstdint>
#include <cstring>

namespace ptx {

namespace {

/// detail: space, how strong (1: volatile or relaxed, 2: it orders other accesses, too). The elements are in `list`.
template <class Element, std::size_t Count>
void load(warp& w, const instruction& i, lane_mask m) {
    const auto in = static_cast<space>(i.detail[0]);
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const std::byte* const from = reach<sizeof(Element) * Count>(w, lane, in, address_of(w, i, 1, lane),
                                                                     access::read, i.detail[1] != 0);
        if (i.detail[1] != 0) order_by(w, lane, from, {true, false, i.detail[1] == 2, false});
        for (std::size_t k = 0; k < Count; ++k) {
            Element value;
            std::memcpy(&value, from + k * sizeof value, sizeof value);
            if constexpr (std::is_signed_v<Element>) {
                write_lane(w, i.list[k], lane, static_cast<std::uint64_t>(std::int64_t{value}));
            } else {
                write_lane(w, i.list[k], lane, std::uint64_t{value});
            }
        }
    }
}
template <class Element, std::size_t Count>
void store(warp& w, const instruction& i, lane_mask m) {
    const auto in = static_cast<space>(i.detail[0]);
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        std::byte* const to = reach<sizeof(Element) * Count>(w, lane, in, address_of(w, i, 0, lane),
                                                             access::write, i.detail[1] != 0);
        if (i.detail[1] != 0) order_by(w, lane, to, {false, true, false, i.detail[1] == 2});
        for (std::size_t k = 0; k < Count; ++k) {
            const auto value = static_cast<Element>(read_lane(w, i.list[k], lane));
            std::memcpy(to + k * sizeof value, &value, sizeof value);
        }
    }
}

template <class Element>
action load_of(std::size_t count) {
    if (count == 1) return &load<Element, 1>;
    if (count == 2) return &load<Element, 2>;
    if constexpr (sizeof(Element) <= 4) {
        if (count == 4) return &load<Element, 4>;
    }
    return nullptr;
}
template <class Element>
action store_of(std::size_t count) {
    if (count == 1) return &store<Element, 1>;
    if (count == 2) return &store<Element, 2>;
    if constexpr (sizeof(Element) <= 4) {
        if (count == 4) return &store<Element, 4>;
    }
    return nullptr;
}

/// Words that say how an access is ordered and cached, which here nothing is. Tells how strong it is.
std::int32_t take_qualifiers(decoder& d) {
    const std::string_view order = d.one_of({"weak", "volatile", "relaxed", "acquire", "release"});
    d.one_of({"cta", "cluster", "gpu", "sys"});
    d.option("nc");
    d.one_of({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
    d.one_of(
        {"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"});
    d.one_of({"L2::64B", "L2::128B", "L2::256B"});
    return order == "acquire" || order == "release" ? 2 : order == "volatile" || order == "relaxed" ? 1 : 0;
}

/// The elements of a load or a store, of any width.
std::vector<operand> take_elements(decoder& d, std::size_t index, std::size_t count, std::size_t bytes) {
    std::vector<operand> list = d.elements(index, bytes);
    if (list.size() != count) d.fail("another number of elements");
    for (const operand& it : list) {
        if (it.is_used() && it.bytes < bytes) d.fail("a register is too small");
    }
    return list;
}

std::size_t take_count(decoder& d) {
    const std::string_view word = d.one_of({"v2", "v4"});
    return word.empty() ? 1 : word == "v2" ? 2 : 4;
}

void decode_load(decoder& d, instruction& to) {
    to.detail[1] = take_qualifiers(d);
    const space said = d.space_option();
    const std::size_t count = take_count(d);
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.list = take_elements(d, 0, count, bytes);
    to.detail[0] = static_cast<std::int32_t>(d.address(1, to, 1, said));
    const bool is_signed = type[0] == 's';
    if (bytes == 1) to.run = is_signed ? load_of<std::int8_t>(count) : load_of<std::uint8_t>(count);
    if (bytes == 2) to.run = is_signed ? load_of<std::int16_t>(count) : load_of<std::uint16_t>(count);
    if (bytes == 4) to.run = is_signed ? load_of<std::int32_t>(count) : load_of<std::uint32_t>(count);
    if (bytes == 8) to.run = load_of<std::uint64_t>(count);
}

void decode_store(decoder& d, instruction& to) {
    to.detail[1] = take_qualifiers(d);
    const space said = d.space_option();
    const std::size_t count = take_count(d);
    const std::size_t bytes = bytes_of_type(d.type());
    to.detail[0] = static_cast<std::int32_t>(d.address(0, to, 0, said));
    to.list = take_elements(d, 1, count, bytes);
    if (bytes == 1) to.run = store_of<std::uint8_t>(count);
    if (bytes == 2) to.run = store_of<std::uint16_t>(count);
    if (bytes == 4) to.run = store_of<std::uint32_t>(count);
    if (bytes == 8) to.run = store_of<std::uint64_t>(count);
}

void decode_prefetch(decoder& d, instruction& to) {
    const space said = d.space_option();
    while (!d.next_word().empty()) {
    }
    d.address(0, to, 0, said);
    to.run = [](warp&, const instruction&, lane_mask) {};
}

}  // namespace

void add_memory_instructions(instruction_table& table) {
    table["ld"] = &decode_load;
    table["ldu"] = &decode_load;
    table["st"] = &decode_store;
    table["prefetch"] = &decode_prefetch;
}

}  // namespace ptx
