// SPDX-License-Identifier: MIT
// Conversions from every format to every format, float and double included, in every projection.
#include <doctest/doctest.h>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "numbers/format/conversion_check.hpp"
#include "oracle/library.hpp"

TEST_CASE_TEMPLATE_DEFINE("all codes of 16 bits and fewer convert to all formats, float and double included",
                          From, all_codes) {
    const oracle::format& f = oracle::format_of<From>;
    oracle::disagreements wrong;
    const std::uint64_t step = code_count(f) > 65536 ? 17 : 1;
    for (std::uint64_t code = 0; code < code_count(f); code += step) {
        std::apply([&](auto... to) { (oracle::compare_conversion<decltype(to), From>(wrong, code), ...); },
                   oracle::all_formats{});
        oracle::compare_conversion<float, From>(wrong, code);
        oracle::compare_conversion<double, From>(wrong, code);
        const From x = oracle::value_of<From>(code);
        const long double wide = static_cast<long double>(x);
        if (mp::isnan(x)) {
            if (wide == wide) wrong.add("long double from", code);
        } else if (wide != static_cast<double>(x) ||
                   std::signbit(wide) != (mp::signbit(x) && !mp::isnan(x))) {
            wrong.add("long double from", code);
        }
        // Implicit, and in arithmetic with a float.
        const float narrow = x;
        if (oracle::code_of(narrow) != oracle::code_of(mp::round_to<float>(x))) wrong.add("implicit", code);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(all_codes, oracle::all_formats);
