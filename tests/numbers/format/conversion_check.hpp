// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include "oracle/library.hpp"

namespace oracle {

/// A conversion of the library as what becomes of codes: hundreds of pairs of formats share the comparison.
struct code_conversion {
    const format& from;
    const format& to;
    std::uint64_t (*round)(std::uint64_t code, mp::projection p);
    std::uint64_t (*cast)(std::uint64_t code);
    bool same_type;  ///< so that a cast is a copy and does not touch the bits
};

inline void compare_conversion(const code_conversion& conversion, disagreements& wrong, std::uint64_t code) {
    const format& from = conversion.from;
    const format& to = conversion.to;
    const exact_result exact = convert(from, code, to);
    compare_codes(wrong, to, exact, [&](mp::projection p) { return conversion.round(code, p); },
                  {"from", code});
    const outcome expected = finish(to, exact, mode::nearest_even, saturate::none);
    const std::uint64_t cast = conversion.cast(code);
    if (!matches(to, expected, cast)) wrong.add("cast from", code);
    if (!is_nan(from, code)) return;
    const bool payload = from.nans == nan_codes::ieee && to.nans == nan_codes::ieee;
    const bool has_nan = to.nans != nan_codes::none;
    const bool keeps_sign = keeps_nan_sign(from, to);
    const std::uint64_t quieted = conversion.same_type ? conversion.round(code, {}) : cast;
    for (const saturate s : saturations) {
        for (const std::uint64_t nan :
             {quieted, conversion.round(code, library_projection(mode::upward, s))}) {
            const bool right = payload
                                   ? nan == converted_nan(from, code, to)
                                   : matches(to, {has_nan, some_nan_code(to)}, nan) &&
                                         (to.nans == nan_codes::negative_zero ||
                                          is_negative(to, nan) == (keeps_sign && is_negative(from, code)));
            if (!right) wrong.add("NaN from", code, "gives", nan);
        }
    }
}

template <class To, class From>
inline constexpr code_conversion conversion_between = {
    format_of<From>, format_of<To>,
    [](std::uint64_t code, mp::projection p) {
        return code_of<To>(mp::round_to<To>(value_of<From>(code), p));
    },
    [](std::uint64_t code) { return code_of(static_cast<To>(value_of<From>(code))); },
    std::is_same_v<To, From>};

/// Compares the conversion of one code, in every projection and by a cast, with the oracle.
template <class To, class From>
void compare_conversion(disagreements& wrong, std::uint64_t code) {
    compare_conversion(conversion_between<To, From>, wrong, code);
}

}  // namespace oracle
