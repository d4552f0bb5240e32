// SPDX-License-Identifier: MIT
// Sums and products of several words: the carry of each lane is kept from one instruction to the next.
#include "lane_functions.hpp"

#include <cstdint>

namespace ptx {

namespace {

/// a + b, or a - b, with the carry where `reads`, and the new one where `writes`.
template <class T>
void add_with_carry(warp& w, const instruction& i, lane_mask m) {
    const bool reads = i.detail[0] != 0, writes = i.detail[1] != 0, subtracts = i.detail[2] != 0;
    auto* const to = words<T>(w, i.o[0]);
    const auto* const x = words<T>(w, i.o[1]);
    const auto* const y = words<T>(w, i.o[2]);
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        const lane_mask bit = lane_mask{1} << lane;
        // A difference is a + ~b + 1, so that the carry is set where nothing is borrowed: nvcc's divisions of 128 bits
        // read it by addc behind subc.
        const bool carries = reads ? (w.carry & bit) != 0 : subtracts;
        const T in = carries ? 1 : 0;
        const T a = x[lane], b = static_cast<T>(subtracts ? ~y[lane] : y[lane]);
        const T result = a + b + in;
        const bool out = result < a || (result == a && in != 0);
        to[lane] = result;
        if (writes) w.carry = (w.carry & ~bit) | (out ? bit : 0);
    }
}
void decode_sum(decoder& d, instruction& to, bool reads, bool subtracts) {
    to.detail = {reads ? 1 : 0, d.option("cc") ? 1 : 0, subtracts ? 1 : 0, 0};
    const std::size_t bytes = bytes_of_type(d.type());
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes)};
    if (bytes == 4) to.run = &add_with_carry<std::uint32_t>;
    if (bytes == 8) to.run = &add_with_carry<std::uint64_t>;
}

/// Half of a product, plus c.
template <class T, bool Signed>
void multiply_add_with_carry(warp& w, const instruction& i, lane_mask m) {
    __extension__ using wide_signed = __int128;
    __extension__ using wide_unsigned = unsigned __int128;
    const bool reads = i.detail[0] != 0, writes = i.detail[1] != 0, is_high = i.detail[2] != 0;
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        const lane_mask bit = lane_mask{1} << lane;
        const auto a = static_cast<T>(read_lane(w, i.o[1], lane)),
                   b = static_cast<T>(read_lane(w, i.o[2], lane));
        const auto c = static_cast<T>(read_lane(w, i.o[3], lane));
        wide_unsigned product = wide_unsigned{a} * b;
        if constexpr (Signed) {
            using narrow = std::make_signed_t<T>;
            product =
                static_cast<wide_unsigned>(wide_signed{static_cast<narrow>(a)} * static_cast<narrow>(b));
        }
        const T part = static_cast<T>(is_high ? product >> (8 * sizeof(T)) : product);
        const T in = reads && (w.carry & bit) != 0 ? 1 : 0;
        const T result = part + c + in;
        const bool out = result < part || (result == part && in != 0);
        write_lane(w, i.o[0], lane, result);
        if (writes) w.carry = (w.carry & ~bit) | (out ? bit : 0);
    }
}
void decode_product(decoder& d, instruction& to, bool reads) {
    const bool is_high = d.one_of({"hi", "lo"}) == "hi";
    to.detail = {reads ? 1 : 0, d.option("cc") ? 1 : 0, is_high ? 1 : 0, 0};
    const std::string_view type = d.type();
    const std::size_t bytes = bytes_of_type(type);
    to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, bytes), d.value(3, bytes)};
    if (type == "u32") to.run = &multiply_add_with_carry<std::uint32_t, false>;
    if (type == "s32") to.run = &multiply_add_with_carry<std::uint32_t, true>;
    if (type == "u64") to.run = &multiply_add_with_carry<std::uint64_t, false>;
    if (type == "s64") to.run = &multiply_add_with_carry<std::uint64_t, true>;
}

template <bool Reads, bool Subtracts>
void sum(decoder& d, instruction& to) {
    decode_sum(d, to, Reads, Subtracts);
}
template <bool Reads>
void product(decoder& d, instruction& to) {
    decode_product(d, to, Reads);
}

}  // namespace

void add_carry_instructions(instruction_table& table) {
    table["add/carry"] = &sum<false, false>;
    table["addc"] = &sum<true, false>;
    table["sub/carry"] = &sum<false, true>;
    table["subc"] = &sum<true, true>;
    table["mad/carry"] = &product<false>;
    table["madc"] = &product<true>;
}

}  // namespace ptx
