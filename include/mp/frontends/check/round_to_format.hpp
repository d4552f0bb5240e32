// SPDX-License-Identifier: MIT
/// \file
/// Rounds a Boost number of any width to any format in any projection, exactly once.
#pragma once

#include <mp/frontends/check/exact_value.hpp>

#include <algorithm>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A finite value to 63 bits or more, with what is left over as sticky: all that rounding to any format
/// needs.
inline exact_value to_exact_value(const exact_fraction& x) {
    const auto bits = [](const big_integer& n) { return static_cast<std::int64_t>(msb(n)) + 1; };
    // 64 more bits above than below the fraction bar give a quotient of 64 or 65 bits; one less, of 63 or 64.
    const std::int64_t shift = 63 - (bits(x.numerator) - bits(x.denominator));
    const big_integer above = shift > 0 ? x.numerator << static_cast<unsigned>(shift) : x.numerator;
    const big_integer below = shift < 0 ? x.denominator << static_cast<unsigned>(-shift) : x.denominator;
    big_integer quotient;
    big_integer remainder;
    divide_qr(above, below, quotient, remainder);
    // Far beyond every format, and far from the limits of int.
    const std::int64_t exponent = std::clamp<std::int64_t>(x.exponent - shift, -100000, 100000);
    return {x.negative, static_cast<int>(exponent), static_cast<std::uint64_t>(quotient), remainder != 0};
}

/// The number of a format that an exact value rounds to, as bits.
template <class Format>
storage_of<Format> round_fraction(const exact_fraction& x, const projection& p) {
    switch (x.kind) {
        case category::zero:
            return pack_zero<Format>(x.negative, p);
        case category::nan:
            return pack_nan<Format>(x.negative, p);
        case category::infinite:
            return pack_infinity<Format>(x.negative, p);
        case category::finite:
            break;
    }
    return round_and_pack<Format>(to_exact_value(x), p);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Rounds x to the format of `To` once, as the projection says, with gradual underflow.
///
/// x is a Boost integer, rational or real number of any width and either radix (cpp_int, cpp_rational,
/// cpp_bin_float, cpp_dec_float, and the wrappers of GMP and MPFR), a long double, or a number of the
/// library. The result is exact for the value that x has: a cpp_bin_float of too few bits has already been
/// rounded once by itself, and no conversion can undo that. For sums and fused products of half 113 bits hold
/// every exact result, for bfloat16 and float take cpp_rational or 640 bits.
///
/// Infinities and NaN follow the projection as in mp::round_to; the payload of NaN is dropped. A zero keeps
/// its sign if it has one. Mind that the sign of an exact zero from x - x is a matter of the rounding mode
/// (minus for downward, plus otherwise), which an exact number cannot know.
///
///     cpp_rational third(1, 3);
///     mp::round_to_format<mp::half>(third, {.round = mp::rounding::upward});
template <number To, reference_number From>
[[nodiscard]] To round_to_format(const From& x, projection p = {}) {
    return detail::number_from_bits<To>(
        detail::round_fraction<detail::format_of_t<To>>(detail::to_fraction(x), p));
}

/// Overload for an unevaluated expression of Boost numbers, such as a * b + c; it is evaluated in its own
/// type.
template <number To, class Tag, class A1, class A2, class A3, class A4>
[[nodiscard]] To round_to_format(const boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>& x,
                                 projection p = {}) {
    using value = typename boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>::result_type;
    return round_to_format<To>(value(x), p);
}

}}  // namespace mp
