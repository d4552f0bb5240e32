// SPDX-License-Identifier: MIT
// Conversions of arrays between all pairs of formats, in three roundings, of all lengths up to several vectors, from and
// to any address.
#pragma once

#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>

#include "combinations.hpp"

#include <span>

namespace portability {

template <class... T>
struct type_list {};

using wide_types = type_list<float, double, mp::half, mp::bfloat16, mp::tfloat32, custom_float>;
using float8_types = type_list<mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3, mp::float8_e3m4,
                               mp::float8_e4m3b11fnuz, mp::float8_e4m3fnuz, mp::float8_e5m2fnuz>;
using narrow_types = type_list<mp::float8_e8m0fnu, mp::float6_e2m3fn, mp::float6_e3m2fn, mp::float4_e2m1fn>;

template <class From, class To>
void add_conversions(combinations& to, const std::string& name) {
    const std::vector<From>& source = supply<From>(true);
    constexpr mp::projection roundings[] = {
        {},
        {.round = mp::rounding::toward_zero},
        {.round = mp::rounding::upward, .saturate = mp::saturation::finite}};
    for (std::size_t i = 0; i < 72; ++i) {
        const std::size_t length = i < 71 ? i : 1000;
        const mp::cpu exec{1, i % 4 == 3 ? mp::instruction_set::portable : mp::instruction_set::best};
        std::vector<To> result(length + 20);
        const std::span<const From> from(source.data() + i * 83 + i % 13, length);
        const std::span<To> part(result.data() + i % 11, length);
        for (const mp::projection& rounding : roundings) {
            if (&rounding == roundings) {
                mp::convert(exec, from, part);
            } else {
                mp::convert(exec, from, part, rounding);
            }
            to.add(name, result);
        }
    }
}

template <class From, class... To>
void add_conversions_to(combinations& to, const char* kind, type_list<To...>) {
    (add_conversions<From, To>(to, "convert." + type_name<From>() + kind), ...);
}

/// Adds the conversions from these types to all.
template <class... From>
void add_conversions_from(combinations& to, type_list<From...>) {
    (add_conversions_to<From>(to, ".to_wide", wide_types{}), ...);
    (add_conversions_to<From>(to, ".to_float8", float8_types{}), ...);
    (add_conversions_to<From>(to, ".to_narrow", narrow_types{}), ...);
}

}  // namespace portability
