// SPDX-License-Identifier: MIT
// Instructions that are a function of each lane by itself.
#pragma once

#include "decoder.hpp"
#include "machine.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace ptx {

/// A value in the word that holds it, with zeros in front.
template <class T>
constexpr lane_word<T> as_word(T value) {
    return static_cast<lane_word<T>>(static_cast<std::make_unsigned_t<T>>(value));
}

template <class Op, class T>
void map_one(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    for_lanes(m, [=](int lane) { to[lane] = as_word(static_cast<T>(Op::apply(static_cast<T>(a[lane])))); });
}
template <class Op, class T>
void map_two(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    const auto* const b = words<lane_word<T>>(w, i.o[2]);
    for_lanes(m, [=](int lane) {
        to[lane] = as_word(static_cast<T>(Op::apply(static_cast<T>(a[lane]), static_cast<T>(b[lane]))));
    });
}
template <class Op, class T>
void map_three(warp& w, const instruction& i, lane_mask m) {
    auto* const to = words<lane_word<T>>(w, i.o[0]);
    const auto* const a = words<lane_word<T>>(w, i.o[1]);
    const auto* const b = words<lane_word<T>>(w, i.o[2]);
    const auto* const c = words<lane_word<T>>(w, i.o[3]);
    for_lanes(m, [=](int lane) {
        to[lane] = as_word(static_cast<T>(
            Op::apply(static_cast<T>(a[lane]), static_cast<T>(b[lane]), static_cast<T>(c[lane]))));
    });
}

/// f<T>() for the type of an integer; null for other types.
template <class Function>
action for_integer(std::string_view type, Function f) {
    if (type == "u16" || type == "b16") return f.template operator()<std::uint16_t>();
    if (type == "s16") return f.template operator()<std::int16_t>();
    if (type == "u32" || type == "b32") return f.template operator()<std::uint32_t>();
    if (type == "s32") return f.template operator()<std::int32_t>();
    if (type == "u64" || type == "b64") return f.template operator()<std::uint64_t>();
    if (type == "s64") return f.template operator()<std::int64_t>();
    return nullptr;
}

}  // namespace ptx
