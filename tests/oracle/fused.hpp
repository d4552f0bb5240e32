// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "oracle/interval.hpp"

namespace oracle {

/// Judges fused multiply-adds of formats of 16 bits and fewer for one rounding mode without saturation, by
/// the same idea as interval_oracle: the exact a * b + c, in fixed point wide enough for every product
/// (`Words` 64-bit words: two for half, nine for bfloat16), must lie between the bounds of the numbers that
/// round to the returned code. Bounds are middles between neighbours, or neighbours themselves, from the
/// definition of the mode.
template <int Words>
class fused_oracle {
public:
    fused_oracle(const format& f, mode rounding) : format_(f), rounding_(rounding) {}

    bool admits(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t result) const {
        const bool ordinary = is_finite(format_, a) && is_finite(format_, b) && is_finite(format_, c);
        if (!ordinary)
            return matches(format_, finish(format_, fma(format_, a, b, c), rounding_, saturate::none),
                           result);
        const bool product_negative = is_negative(format_, a) != is_negative(format_, b);
        const bool product_zero = is_zero(format_, a) || is_zero(format_, b);
        fixed sum = term(c);
        if (!product_zero) sum = sum + product(a, b, product_negative);
        if (sum.is_zero()) {
            const bool negative =
                product_negative == is_negative(format_, c) ? product_negative : rounding_ == mode::downward;
            return result == signed_code(format_, negative, 0);
        }
        if (format_.has_infinity && is_nan(format_, result)) return false;
        const bool negative = static_cast<std::int64_t>(sum.word[Words - 1]) < 0;
        const fixed magnitude = negative ? -sum : sum;
        // Overflow is infinity, or NaN without a sign that would tell anything.
        std::uint64_t code = magnitude_code(format_, result);
        const bool overflow = !is_finite(format_, result);
        if (overflow) code = max_finite_code(format_) + 1;
        if ((!overflow || format_.has_infinity) && is_negative(format_, result) != negative) return false;
        return lies_in_interval(magnitude, code, negative);
    }

private:
    using fixed = fixed_point<Words>;

    /// The exponent of the lowest bit: a quarter of the square of the smallest number.
    int lowest_exponent() const { return 2 * (1 - format_.bias - format_.fraction_bits) - 2; }

    /// significand * 2^exponent, for significands of up to 48 bits.
    fixed place_at(std::uint64_t significand, int exponent) const {
        const int shift = exponent - lowest_exponent();
        fixed result;
        const auto word = static_cast<std::size_t>(shift / 64);
        result.word[word] = significand << (shift % 64);
        if (shift % 64 > 16 && word + 1 < Words) result.word[word + 1] = significand >> (64 - shift % 64);
        return result;
    }
    fixed place_at(const dyadic& x) const { return place_at(x.significand.low_bits(), x.exponent); }

    std::uint64_t significand_of(std::uint64_t code) const {
        const std::uint64_t fraction = code & ((std::uint64_t{1} << format_.fraction_bits) - 1);
        return exponent_field(code) == 0 ? fraction : fraction | (std::uint64_t{1} << format_.fraction_bits);
    }
    int exponent_field(std::uint64_t code) const {
        return static_cast<int>(magnitude_code(format_, code) >> format_.fraction_bits);
    }
    int exponent_of(std::uint64_t code) const {
        const int field = exponent_field(code);
        return (field == 0 ? 1 : field) - format_.bias - format_.fraction_bits;
    }

    fixed term(std::uint64_t code) const {
        const fixed x = place_at(significand_of(code), exponent_of(code));
        return is_negative(format_, code) ? -x : x;
    }
    fixed product(std::uint64_t a, std::uint64_t b, bool negative) const {
        const fixed x = place_at(significand_of(a) * significand_of(b), exponent_of(a) + exponent_of(b));
        return negative ? -x : x;
    }

    /// The number with this magnitude code, or the middle between it and the next one.
    fixed number(std::uint64_t code) const { return place_at(significand_of(code), exponent_of(code)); }
    fixed middle(std::uint64_t code) const {
        return place_at(2 * significand_of(code) + 1, exponent_of(code) - 1);
    }

    static bool before(const fixed& x, const fixed& y) { return !(y <= x); }

    bool lies_in_interval(const fixed& x, std::uint64_t code, bool negative) const {
        const std::uint64_t beyond = max_finite_code(format_) + 1;
        const bool away =
            (rounding_ == mode::upward && !negative) || (rounding_ == mode::downward && negative);
        const bool even = code % 2 == 0;
        switch (rounding_) {
            case mode::nearest_even:
            case mode::nearest_away: {
                const bool ties_away = rounding_ == mode::nearest_away;
                const bool low_belongs = ties_away || even;
                const bool high_belongs = !ties_away && even;
                if (code > 0) {
                    const fixed low = middle(code - 1);
                    if (before(x, low) || (!low_belongs && x <= low)) return false;
                }
                if (code == beyond) return true;
                const fixed high = middle(code);
                return before(x, high) || (high_belongs && x <= high);
            }
            case mode::toward_zero:
            case mode::upward:
            case mode::downward:
                if (away)
                    return (code == 0 || before(number(code - 1), x)) &&
                           (code == beyond || x <= number(code));
                if (code == beyond) return false;
                return number(code) <= x && (code + 1 == beyond || before(x, number(code + 1)));
            case mode::to_odd:
                if (code == beyond) return false;
                // What is too large stays at the largest number, whatever its parity.
                if (code + 1 == beyond) return even ? number(code) <= x : before(number(code - 1), x);
                if (even) return x <= number(code) && number(code) <= x;
                return before(number(code - 1), x) && before(x, number(code + 1));
        }
        return false;
    }

    format format_;
    mode rounding_;
};

}  // namespace oracle
