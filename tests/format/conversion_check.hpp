// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>

#include "oracle/library.hpp"

namespace oracle {

/// Compares the conversion of one code, in every projection and by a cast, with the oracle.
template <class To, class From>
void compare_conversion(disagreements& wrong, std::uint64_t code) {
    const format& from = format_of<From>;
    const format& to = format_of<To>;
    const From x = value_of<From>(code);
    const exact_result exact = convert(from, code, to);
    compare_in_every_projection<To>(
        wrong, exact, [&](mp::projection p) { return mp::round_to<To>(x, p); }, "from", code);
    const outcome expected = finish(to, exact, mode::nearest_even, saturate::none);
    if (!matches(to, expected, code_of(static_cast<To>(x)))) wrong.add("cast from", code);
    if (is_nan(from, code)) {
        // A cast to the same type is a copy and does not touch the bits.
        const To cast = std::is_same_v<To, From> ? mp::round_to<To>(x) : static_cast<To>(x);
        const bool payload = from.nans == nan_codes::ieee && to.nans == nan_codes::ieee;
        const bool has_nan = to.nans != nan_codes::none;
        const bool keeps_sign = keeps_nan_sign(from, to);
        for (const saturate s : saturations) {
            const auto p = library_projection(mode::upward, s);
            for (const std::uint64_t nan : {code_of(cast), code_of(mp::round_to<To>(x, p))}) {
                const bool right =
                    payload ? nan == converted_nan(from, code, to)
                            : matches(to, {has_nan, some_nan_code(to)}, nan) &&
                                  (to.nans == nan_codes::negative_zero ||
                                   is_negative(to, nan) == (keeps_sign && is_negative(from, code)));
                if (!right) wrong.add("NaN from", code, "gives", nan);
            }
        }
    }
}

}  // namespace oracle
