// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "oracle/exact.hpp"

namespace oracle {

/// A signed integer of 64 * Words bits in two's complement, least significant word first.
template <int Words>
struct fixed_point {
    std::array<std::uint64_t, Words> word{};

    friend constexpr fixed_point operator+(const fixed_point& left, const fixed_point& right) {
        fixed_point sum;
        std::uint64_t carry = 0;
        for (std::size_t i = 0; i < Words; ++i) {
            const std::uint64_t partial = left.word[i] + carry;
            carry = partial < carry ? 1 : 0;
            sum.word[i] = partial + right.word[i];
            carry += sum.word[i] < partial ? 1 : 0;
        }
        return sum;
    }

    friend constexpr fixed_point operator-(const fixed_point& value) {
        fixed_point inverted;
        for (std::size_t i = 0; i < Words; ++i) inverted.word[i] = ~value.word[i];
        return inverted + fixed_point{{1}};
    }

    friend constexpr bool operator<=(const fixed_point& left, const fixed_point& right) {
        constexpr std::size_t top = Words - 1;
        if (left.word[top] != right.word[top]) {
            return static_cast<std::int64_t>(left.word[top]) < static_cast<std::int64_t>(right.word[top]);
        }
        for (std::size_t i = top; i-- > 0;) {
            if (left.word[i] != right.word[i]) return left.word[i] < right.word[i];
        }
        return true;
    }

    constexpr bool is_zero() const {
        for (std::size_t i = 0; i < Words; ++i) {
            if (word[i] != 0) return false;
        }
        return true;
    }
};

/// Which real numbers round to a magnitude code: those between two bounds, each of which may belong or not.
/// A bound is significand * 2^exponent.
struct magnitude_interval {
    std::uint32_t low = 0;
    std::int16_t low_exponent = 0;
    bool low_belongs = false;
    bool empty = true;
    std::uint32_t high = 0;
    std::int16_t high_exponent = 0;
    bool high_belongs = false;
    bool unbounded = false;
};

/// Judges results of + - * / of formats of 16 bits and fewer for one projection, fast enough for all 2^32
/// pairs.
///
/// In a given mode every code owns an interval of the real numbers. The intervals are written down once, from
/// the definition of the mode, and a result is right if the exact value lies in the interval of the returned
/// code. That needs two comparisons of integers and no rounding at all. Sums are compared in fixed point wide
/// enough for the whole format (`Words` 64-bit words: one for half and the 8-bit formats, five for bfloat16),
/// products and quotients by their integer significands.
template <int Words>
class interval_oracle {
public:
    interval_oracle(const format& f, mode rounding, saturate saturation)
        : format_(f),
          rounding_(rounding),
          saturation_(saturation),
          sign_(static_cast<std::uint32_t>(sign_bit(f))) {
        const int span = (1 << f.exponent_bits) + f.fraction_bits + 4;
        if (span > 64 * Words)
            throw std::domain_error("oracle::interval_oracle: not enough words for the format");
        describe_operands();
        describe_intervals();
        describe_sums();
    }

    /// Whether `result` is a right answer to a + b.
    bool admits_sum(std::uint32_t a, std::uint32_t b, std::uint32_t result) const {
        if (!ordinary_[a] || !ordinary_[b]) return admits(add(format_, a, b), result);
        const fixed_point<Words> sum = value_[a] + value_[b];
        if (sum.is_zero()) {
            const bool same_sign = ((a ^ b) & sign_) == 0;
            const bool negative = same_sign ? (a & sign_) != 0 : rounding_ == mode::downward;
            return result == (negative ? sign_ : 0);
        }
        const std::uint32_t sum_sign = static_cast<std::int64_t>(sum.word[Words - 1]) < 0 ? sign_ : 0;
        const std::uint32_t owner = owner_code(result, sum_sign);
        if (((owner ^ sum_sign) & sign_) != 0) return false;
        return sum_low_[owner] <= sum && sum <= sum_high_[owner];
    }

    bool admits_difference(std::uint32_t a, std::uint32_t b, std::uint32_t result) const {
        return admits_sum(a, b ^ sign_, result);
    }

    /// Whether `result` is a right answer to a * b.
    bool admits_product(std::uint32_t a, std::uint32_t b, std::uint32_t result) const {
        if (!positive_[a] || !positive_[b]) return admits(multiply(format_, a, b), result);
        const operand& left = operand_[a];
        const operand& right = operand_[b];
        const std::uint32_t sign = (a ^ b) & sign_;
        const std::uint32_t owner = owner_code(result, sign);
        if (((owner ^ sign) & sign_) != 0) return false;
        const magnitude_interval& own = interval_[owner];
        const std::uint64_t exact = std::uint64_t{left.significand} * right.significand;
        const int exponent = left.exponent + right.exponent;
        return above_low(own, exact, exponent, 1, 0) && below_high(own, exact, exponent, 1, 0);
    }

    /// Whether `result` is a right answer to a / b.
    bool admits_quotient(std::uint32_t a, std::uint32_t b, std::uint32_t result) const {
        if (!positive_[a] || !positive_[b]) return admits(divide(format_, a, b), result);
        const operand& left = operand_[a];
        const operand& right = operand_[b];
        const std::uint32_t sign = (a ^ b) & sign_;
        const std::uint32_t owner = owner_code(result, sign);
        if (((owner ^ sign) & sign_) != 0) return false;
        const magnitude_interval& own = interval_[owner];
        return above_low(own, left.significand, left.exponent, right.significand, right.exponent) &&
               below_high(own, left.significand, left.exponent, right.significand, right.exponent);
    }

    /// Whether `result` is a right answer to the conversion of a float, given by its bits: for a NaN that is
    /// the quiet NaN with the same sign and leading payload.
    bool admits_conversion(std::uint32_t single, std::uint32_t result) const {
        const std::uint32_t magnitude = single & 0x7fffffff;
        if (magnitude > 0x7f800000) return result == converted_nan(binary32, single, format_);
        if (magnitude == 0 || magnitude == 0x7f800000)
            return admits(convert(binary32, single, format_), result);
        const std::uint32_t field = magnitude >> 23;
        const std::uint64_t significand = field == 0 ? magnitude : (magnitude & 0x7fffff) | 0x800000;
        const int exponent = (field == 0 ? 1 : static_cast<int>(field)) - 150;
        const std::uint32_t sign = (single >> 31) != 0 ? sign_ : 0;
        const std::uint32_t owner = owner_code(result, sign);
        if (((owner ^ sign) & sign_) != 0) return false;
        const magnitude_interval& own = interval_[owner];
        return above_low(own, significand, exponent, 1, 0) && below_high(own, significand, exponent, 1, 0);
    }

private:
    struct operand {
        std::uint32_t significand = 0;
        int exponent = 0;
    };

    bool admits(const exact_result& exact, std::uint32_t result) const {
        return matches(format_, finish(format_, exact, rounding_, saturation_), result);
    }

    /// The code whose interval must contain the exact result. In a format without infinity the NaNs stand for
    /// overflow of either sign, so the sign of the exact result is given to them.
    std::uint32_t owner_code(std::uint32_t result, std::uint32_t sign) const {
        return nan_is_overflow_ && (result & ~sign_) == overflow_code_ ? overflow_code_ | sign : result;
    }

    /// Compares x * 2^p with y * 2^q for 1 <= x, y < 2^24, exactly: an exponent gap above 40 decides alone.
    static std::strong_ordering compare_scaled(std::uint64_t x, int p, std::uint64_t y, int q) {
        const int gap = p - q;
        const int left_shift = gap > 40 ? 40 : gap > 0 ? gap : 0;
        const int right_shift = gap < -40 ? 40 : gap < 0 ? -gap : 0;
        return x << left_shift <=> y << right_shift;
    }

    /// Whether numerator / denominator reaches the lower bound of an interval.
    static bool above_low(const magnitude_interval& own, std::uint64_t numerator, int numerator_exponent,
                          std::uint64_t denominator, int denominator_exponent) {
        if (own.empty) return false;
        if (own.low == 0) return true;
        const auto order = compare_scaled(numerator, numerator_exponent, own.low * denominator,
                                          own.low_exponent + denominator_exponent);
        return order > 0 || (order == 0 && own.low_belongs);
    }

    static bool below_high(const magnitude_interval& own, std::uint64_t numerator, int numerator_exponent,
                           std::uint64_t denominator, int denominator_exponent) {
        if (own.unbounded) return true;
        if (own.high == 0) return false;
        const auto order = compare_scaled(numerator, numerator_exponent, own.high * denominator,
                                          own.high_exponent + denominator_exponent);
        return order < 0 || (order == 0 && own.high_belongs);
    }

    void describe_operands() {
        const std::size_t count = std::size_t{2} * sign_;
        operand_.resize(count);
        ordinary_.resize(count);
        positive_.resize(count);
        for (std::uint32_t code = 0; code < count; ++code) {
            const dyadic value = value_of_magnitude(format_, magnitude_code(format_, code));
            operand_[code] = {static_cast<std::uint32_t>(value.significand.low_bits()), value.exponent};
            ordinary_[code] = is_finite(format_, code);
            positive_[code] = ordinary_[code] && !is_zero(format_, code);
        }
    }

    static void set_low(magnitude_interval& own, const dyadic& bound, bool belongs) {
        own.empty = false;
        own.low = static_cast<std::uint32_t>(bound.significand.low_bits());
        own.low_exponent = static_cast<std::int16_t>(bound.exponent);
        own.low_belongs = belongs;
    }

    static void set_high(magnitude_interval& own, const dyadic& bound, bool belongs) {
        own.high = static_cast<std::uint32_t>(bound.significand.low_bits());
        own.high_exponent = static_cast<std::int16_t>(bound.exponent);
        own.high_belongs = belongs;
    }

    /// The positive reals that round to the magnitude code in this mode, for results of one sign.
    magnitude_interval interval_of(std::uint32_t code, bool negative) const {
        const std::uint32_t last = overflow_code_ - 1;
        const bool away =
            (rounding_ == mode::upward && !negative) || (rounding_ == mode::downward && negative);
        const bool nearest = rounding_ == mode::nearest_even || rounding_ == mode::nearest_away;
        const bool can_overflow = nearest || away;
        magnitude_interval own;
        if (code > overflow_code_) return own;
        if (code == overflow_code_ && (saturation_ != saturate::none || !can_overflow)) return own;

        const dyadic value = value_of_magnitude(format_, code);
        const dyadic below = code == 0 ? dyadic{} : value_of_magnitude(format_, code - 1);
        const dyadic above = value_of_magnitude(format_, code + 1);
        if (nearest) {
            const bool even = code % 2 == 0;
            const bool ties_away = rounding_ == mode::nearest_away;
            set_low(own, code == 0 ? dyadic{} : middle_above(format_, code - 1), ties_away || even);
            set_high(own, middle_above(format_, code), !ties_away && even);
        } else if (rounding_ == mode::to_odd) {
            const bool odd = code % 2 == 1;
            set_low(own, odd ? below : value, !odd);
            set_high(own, odd ? above : value, !odd);
        } else if (away) {
            set_low(own, below, false);
            set_high(own, value, true);
        } else {
            set_low(own, value, true);
            set_high(own, above, false);
        }
        // Everything above the range belongs to infinity, or to the largest finite number where that takes it
        // all.
        const bool last_takes_all = saturation_ != saturate::none || !can_overflow;
        own.unbounded = code == (last_takes_all ? last : overflow_code_);
        return own;
    }

    void describe_intervals() {
        overflow_code_ = static_cast<std::uint32_t>(max_finite_code(format_)) + 1;
        nan_is_overflow_ = !format_.has_infinity;
        interval_.resize(std::size_t{2} * sign_);
        for (std::uint32_t code = 0; code < sign_; ++code) {
            interval_[code] = interval_of(code, false);
            interval_[code | sign_] = interval_of(code, true);
        }
    }

    /// A bound in units of half the smallest step.
    fixed_point<Words> fixed(const dyadic& magnitude) const {
        const int shift = magnitude.exponent - smallest_exponent();
        const std::uint64_t bits = magnitude.significand.low_bits();
        fixed_point<Words> result;
        if (bits == 0) return result;
        const std::size_t word = static_cast<std::size_t>(shift / 64);
        result.word[word] = bits << (shift % 64);
        if (shift % 64 > 40) result.word[word + 1] = bits >> (64 - shift % 64);
        return result;
    }

    int smallest_exponent() const { return -format_.bias - format_.fraction_bits; }

    /// Sums of two numbers are multiples of the smallest step, that is even in units of half a step, so an
    /// excluded bound is the same as an included one a unit further inside.
    void describe_sums() {
        const std::size_t count = std::size_t{2} * sign_;
        value_.resize(count);
        sum_low_.resize(count);
        sum_high_.resize(count);
        fixed_point<Words> largest;
        largest.word.fill(~std::uint64_t{0});
        largest.word[Words - 1] = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        const fixed_point<Words> one{{1}};
        for (std::uint32_t code = 0; code < count; ++code) {
            const bool negative = (code & sign_) != 0;
            if (ordinary_[code]) {
                value_[code] = fixed(value_of_magnitude(format_, magnitude_code(format_, code)));
                if (negative) value_[code] = -value_[code];
            }
            const magnitude_interval& own = interval_[code];
            if (own.empty) {
                sum_low_[code] = largest;
                sum_high_[code] = -largest;
                continue;
            }
            fixed_point<Words> low = fixed({own.low, own.low_exponent});
            if (!own.low_belongs) low = low + one;
            fixed_point<Words> high = largest;
            if (!own.unbounded) {
                high = fixed({own.high, own.high_exponent});
                if (!own.high_belongs) high = high + -one;
            }
            sum_low_[code] = negative ? -high : low;
            sum_high_[code] = negative ? -low : high;
        }
    }

    format format_;
    mode rounding_;
    saturate saturation_;
    std::uint32_t sign_ = 0;
    std::uint32_t overflow_code_ = 0;
    bool nan_is_overflow_ = false;
    std::vector<operand> operand_;
    std::vector<std::uint8_t> ordinary_;
    std::vector<std::uint8_t> positive_;
    std::vector<magnitude_interval> interval_;
    std::vector<fixed_point<Words>> value_;
    std::vector<fixed_point<Words>> sum_low_;
    std::vector<fixed_point<Words>> sum_high_;
};

}  // namespace oracle
