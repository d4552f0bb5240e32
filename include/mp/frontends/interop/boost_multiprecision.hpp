// SPDX-License-Identifier: MIT
/// \file
/// Explicit conversions between the numbers of this library and those of Boost.Multiprecision, both ways and
/// in their usual spelling, each exact or rounded once.
///
///     using boost::multiprecision::cpp_rational;
///     cpp_rational exact(mp::half{0.1f});               // 819/8192
///     mp::bfloat16 b{cpp_rational(1, 3)};               // rounded once, to nearest even
///     auto up = mp::round_to_format<mp::half>(exact, {.round = mp::rounding::upward});
///
/// To Boost: integers are truncated toward zero, rationals and binary numbers of enough bits are exact,
/// decimal and short binary ones are rounded as their own conversion from a longer number does. NaN and
/// infinities need a type that has them; argument_error otherwise.
///
/// Include this before the first conversion between the two libraries is compiled.
#pragma once

#include <mp/frontends/check/exact_value.hpp>

namespace mp::detail {

template <class Backend, boost::multiprecision::expression_template_option Option>
struct foreign_conversion<boost::multiprecision::number<Backend, Option>> {
    using foreign = boost::multiprecision::number<Backend, Option>;
    static constexpr bool is_known = boost::multiprecision::number_category<foreign>::value ==
                                         boost::multiprecision::number_kind_integer ||
                                     boost::multiprecision::number_category<foreign>::value ==
                                         boost::multiprecision::number_kind_rational ||
                                     boost::multiprecision::number_category<foreign>::value ==
                                         boost::multiprecision::number_kind_floating_point;

    template <class Number>
    static Number to(const foreign& x) {
        return round_to_format<Number>(x);
    }

    template <class Number>
    static foreign from(Number x) {
        constexpr int kind = boost::multiprecision::number_category<foreign>::value;
        if constexpr (kind == boost::multiprecision::number_kind_integer) {
            if (!isfinite(x)) return to_exact<foreign>(x);  // which throws
            return to_exact<foreign>(trunc(x));
        } else if constexpr (kind == boost::multiprecision::number_kind_rational) {
            return to_exact<foreign>(x);
        } else {
            // A double holds every number of up to 32 bits that has a name, and all binary ones take it in.
            // Any other number goes through a Boost number that holds it.
            if constexpr (exactly_representable_in<typename Number::format, double>) {
                return foreign(static_cast<double>(x));
            } else {
                return foreign(to_exact<reference_real>(x));
            }
        }
    }
};

}  // namespace mp::detail
