// SPDX-License-Identifier: MIT
/// \file
/// Exact dot products of numbers of the library, floats and doubles.
#pragma once

#include <mp/frontends/check/exact_value.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <string>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A sum of products of numbers of two formats, exact for up to 2^60 terms: a fixed-point number wide enough
/// for the largest and the smallest product, in two's complement (Kulisch's accumulator).
template <class FormatA, class FormatB>
class exact_sum_of_products {
public:
    void add(storage_of<FormatA> a, storage_of<FormatB> b) {
        const category kind_a = categorize<FormatA>(a);
        const category kind_b = categorize<FormatB>(b);
        const bool negative = is_negative<FormatA>(a) != is_negative<FormatB>(b);
        if (kind_a == category::finite && kind_b == category::finite) {
            const exact_value x = unpack<FormatA>(a);
            const exact_value y = unpack<FormatB>(b);
            const auto product = static_cast<wide>(x.significand) * y.significand;
            add_at(negative, product, x.exponent + y.exponent - last_exponent);
            return;
        }
        const bool zero = kind_a == category::zero || kind_b == category::zero;
        const bool infinite = kind_a == category::infinite || kind_b == category::infinite;
        if (kind_a == category::nan || kind_b == category::nan || (zero && infinite)) {
            nan_ = true;
        } else if (infinite) {
            (negative ? minus_infinity_ : plus_infinity_) = true;
        }
    }

    exact_fraction value() const {
        exact_fraction result;
        if (nan_ || (plus_infinity_ && minus_infinity_)) return {category::nan};
        if (plus_infinity_ || minus_infinity_) return {category::infinite, minus_infinity_};
        const bool negative = words_[count - 1] >> 63 != 0;
        std::array<std::uint64_t, count> magnitude = words_;
        if (negative) {
            std::uint64_t carry = 1;
            for (std::uint64_t& word : magnitude) {
                word = ~word + carry;
                carry = carry != 0 && word == 0 ? 1 : 0;
            }
        }
        big_integer numerator;
        boost::multiprecision::import_bits(numerator, magnitude.begin(), magnitude.end(), 64, false);
        return make_fraction(negative, std::move(numerator), 1, last_exponent);
    }

private:
    using wide = uint128;

    static constexpr int last_exponent =
        layout_of<FormatA>::quantum_exponent + layout_of<FormatB>::quantum_exponent;
    static constexpr int top_exponent =
        layout_of<FormatA>::max_exponent + layout_of<FormatB>::max_exponent + 2;
    /// 64 bits above the largest product hold the sum of 2^60 of them and the sign; one word more lets a
    /// product of three words start in the last word that it can reach.
    static constexpr int bits = top_exponent - last_exponent + 64;
    static constexpr std::size_t count = static_cast<std::size_t>(bits) / 64 + 3;

    void add_at(bool negative, wide product, int position) {
        const auto first = static_cast<std::size_t>(position / 64);
        const int shift = position % 64;
        const wide low = product << shift;
        const std::uint64_t high = shift == 0 ? 0 : static_cast<std::uint64_t>(product >> (128 - shift));
        const std::uint64_t parts[] = {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(low >> 64),
                                       high};
        std::uint64_t carry = 0;
        for (std::size_t i = 0; first + i < count; ++i) {
            if (i >= 3 && carry == 0) break;
            const std::uint64_t part = i < 3 ? parts[i] : 0;
            std::uint64_t& word = words_[first + i];
            const wide result =
                negative ? static_cast<wide>(word) - part - carry : static_cast<wide>(word) + part + carry;
            word = static_cast<std::uint64_t>(result);
            carry = static_cast<std::uint64_t>(result >> 64) & 1;
        }
    }

    std::array<std::uint64_t, count> words_{};
    bool nan_ = false;
    bool plus_infinity_ = false;
    bool minus_infinity_ = false;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The exact sum of a[i] * b[i] as a Boost rational: no rounding anywhere, whatever cancels.
///
/// a and b are random-access ranges of numbers of the library, float or double, not necessarily of one type.
/// Costs about 10 ns a term. Throws argument_error when the lengths differ, and when a NaN or an infinity
/// among the terms leaves no finite sum.
template <std::ranges::random_access_range A, std::ranges::random_access_range B>
    requires number<std::ranges::range_value_t<A>> && number<std::ranges::range_value_t<B>>
[[nodiscard]] boost::multiprecision::cpp_rational exact_dot(const A& a, const B& b) {
    namespace bmp = boost::multiprecision;
    const auto length = std::ranges::distance(a);
    if (length != std::ranges::distance(b)) {
        detail::throw_argument("mp::exact_dot", "b.size()", std::ranges::distance(b),
                               "must equal a.size(), which is " + std::to_string(length));
    }
    detail::exact_sum_of_products<detail::format_of_t<std::ranges::range_value_t<A>>,
                                  detail::format_of_t<std::ranges::range_value_t<B>>>
        sum;
    const auto first_a = std::ranges::begin(a);
    const auto first_b = std::ranges::begin(b);
    for (std::ranges::range_difference_t<A> i = 0; i < length; ++i) {
        sum.add(detail::bits_of(first_a[i]), detail::bits_of(first_b[i]));
    }
    const detail::exact_fraction value = sum.value();
    if (value.kind == detail::category::zero) return 0;
    if (value.kind != detail::category::finite) {
        detail::throw_argument("mp::exact_dot", "the sum",
                               value.kind == detail::category::nan ? "NaN" : "infinite", "must be finite");
    }
    const bmp::cpp_int scale(
        detail::integer_power_of_two(static_cast<std::uint64_t>(std::abs(value.exponent))));
    // Numerator and denominator at once: Boost 1.81 returns 1 for the rational 1 divided by an integer.
    const bmp::cpp_int numerator(value.numerator);
    const bmp::cpp_rational result = value.exponent < 0 ? bmp::cpp_rational(numerator, scale)
                                                        : bmp::cpp_rational(bmp::cpp_int(numerator * scale));
    return value.negative ? bmp::cpp_rational(-result) : result;
}

}}  // namespace mp
