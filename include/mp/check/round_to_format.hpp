// SPDX-License-Identifier: MIT
/// \file
/// Rounds a Boost number of any width to any format in any projection, exactly once.
#pragma once

#include <mp/check/exact_value.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>

namespace mp {
namespace detail {

/// Whether the magnitude above a kept code goes to the next code: `tail` compares what was cut off with half
/// a unit, `exact` says that nothing was cut off.
constexpr bool rounds_away(projection p, bool negative, bool odd, bool exact, std::strong_ordering tail) {
    if (exact) return false;
    switch (p.round) {
        case rounding::nearest_even:
            return tail > 0 || (tail == 0 && odd);
        case rounding::nearest_away:
            return tail >= 0;
        case rounding::toward_zero:
            return false;
        case rounding::upward:
            return !negative;
        case rounding::downward:
            return negative;
        case rounding::to_odd:
            return !odd;
    }
    return false;
}

/// The magnitude code of a value that is infinite, or too large and not to be cut down by its rounding mode.
template <class Format>
constexpr std::uint64_t code_beyond_range(bool infinite, saturation s) {
    using layout = layout_of<Format>;
    if (s == saturation::finite || (s == saturation::propagate && !infinite)) return layout::max_finite_code;
    if (layout::has_infinity) return layout::infinity_code;
    return layout::has_nan ? layout::nan_code : layout::max_finite_code;
}

/// The number of a format that an exact value rounds to, as bits.
///
/// With the quantum q of the value's binade (of the lowest binade for subnormal numbers), k = floor(|x| / q)
/// is found by integer division, and the remainder tells on which side of k + 1/2 the value lies. Nothing is
/// rounded before: rounding to the format's precision first and to its subnormal numbers or range afterwards
/// would round twice.
template <class Format>
storage_of<Format> round_fraction(const exact_fraction& x, projection p) {
    using layout = layout_of<Format>;
    switch (x.kind) {
        case category::zero:
            return join<Format>(x.negative, 0);
        case category::nan:
            return join<Format>(x.negative, layout::nan_code);
        case category::infinite:
            return join<Format>(x.negative, code_beyond_range<Format>(true, p.saturate));
        case category::finite:
            break;
    }

    const std::int64_t log2 = rough_log2(x);
    std::uint64_t code = 0;  // the largest finite magnitude code whose value is not above |x|
    bool exact = false;
    std::strong_ordering tail = std::strong_ordering::less;
    bool beyond = false;  // |x| is at least the first number that the format would have after its largest one
    if (log2 - 1 > layout::max_exponent) {
        beyond = true;
    } else if (log2 + 1 < layout::quantum_exponent) {
        tail = std::strong_ordering::less;  // below half of the smallest subnormal number
    } else {
        std::int64_t last =
            std::max<std::int64_t>(log2 - 1 - layout::fraction_bits, layout::quantum_exponent);
        std::uint64_t kept = 0;
        for (;; ++last) {
            const std::int64_t shift = x.exponent - last;
            const big_integer numerator =
                shift >= 0 ? x.numerator << static_cast<unsigned>(shift) : x.numerator;
            const big_integer denominator =
                shift >= 0 ? x.denominator : x.denominator << static_cast<unsigned>(-shift);
            big_integer quotient;
            big_integer remainder;
            divide_qr(numerator, denominator, quotient, remainder);
            kept = static_cast<std::uint64_t>(quotient);
            exact = remainder == 0;
            const int side = big_integer(remainder << 1).compare(denominator);
            tail = side <=> 0;
            // log2 may be one too small; then there is one bit too many, and the next larger quantum is
            // right.
            if (kept >> layout::precision == 0) break;
        }
        const bool subnormal = kept < layout::hidden_bit;
        const auto field =
            subnormal ? std::uint64_t{0} : static_cast<std::uint64_t>(last - layout::quantum_exponent + 1);
        const std::uint64_t fraction = subnormal ? kept : kept - layout::hidden_bit;
        code = field << layout::fraction_bits | fraction;
        beyond = code > layout::max_finite_code;
    }
    if (beyond) {
        code = layout::max_finite_code;
        exact = false;
        tail = std::strong_ordering::greater;
    }

    const bool away = rounds_away(p, x.negative, code % 2 != 0, exact, tail);
    if (code == layout::max_finite_code && away) {
        // Rounding to odd stays in range even where the largest code is even.
        if (p.round == rounding::to_odd) return join<Format>(x.negative, layout::max_finite_code);
        return join<Format>(x.negative, code_beyond_range<Format>(false, p.saturate));
    }
    return join<Format>(x.negative, code + (away ? 1 : 0));
}

template <number To>
To from_code(storage_of<format_of_t<To>> bits) {
    if constexpr (reduced<To>) {
        return To::from_bits(bits);
    } else {
        return bit_cast<To>(bits);
    }
}

}  // namespace detail

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
    return detail::from_code<To>(detail::round_fraction<detail::format_of_t<To>>(detail::to_fraction(x), p));
}

/// The same for an unevaluated expression of Boost numbers, such as a * b + c; it is evaluated in its own
/// type.
template <number To, class Tag, class A1, class A2, class A3, class A4>
[[nodiscard]] To round_to_format(const boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>& x,
                                 projection p = {}) {
    using value = typename boost::multiprecision::detail::expression<Tag, A1, A2, A3, A4>::result_type;
    return round_to_format<To>(value(x), p);
}

}  // namespace mp
