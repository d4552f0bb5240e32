// SPDX-License-Identifier: MIT
/// \file
/// The closed extended reals of IEEE P3109, over which its operations are defined: every number is decoded to one, an
/// operation makes another one of it, and that is projected to the format of the result, once; and their functions:
/// sections 4.10 and 4.11, and exact sums and products of many, in integers whose size follows from the formats. Signs, roots, products with sums, minima
/// and maxima are exact, or have 63 bits and more and are sticky; elementary functions are by the evaluations of
/// math/ and their exact cases.
#pragma once

#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/math/hyperbolic.hpp>
#include <mp/numbers/format/math/inverse_trigonometric.hpp>
#include <mp/numbers/format/math/power.hpp>
#include <mp/numbers/format/math/trigonometric.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A closed extended real: zero, which has no sign, a finite number, an infinity, or NaN.
///
/// Finite numbers are exact unless their significand is sticky. Those of operands have at most 24 bits, with
/// a scale factor 48, and products of two such 96: so that add_exact() always has 16 bits to spare.
struct extended_real {
    category kind = category::zero;
    exact_number<uint128> value{false, 0, 0};  ///< of infinities only the sign

    [[nodiscard]] constexpr bool is_nan() const { return kind == category::nan; }
    [[nodiscard]] constexpr bool is_zero() const { return kind == category::zero; }
    [[nodiscard]] constexpr bool is_infinite() const { return kind == category::infinite; }
    [[nodiscard]] constexpr bool is_finite() const { return kind <= category::finite; }
    [[nodiscard]] constexpr bool is_negative() const {
        return (kind == category::finite || kind == category::infinite) && value.negative;
    }
    /// The same with this sign; zero and NaN have none.
    [[nodiscard]] constexpr extended_real with_sign(bool negative) const {
        extended_real result = *this;
        result.value.negative = negative;
        return result;
    }
};

constexpr extended_real real_nan() {
    return {category::nan, {false, 0, 0}};
}
constexpr extended_real real_infinity(bool negative = false) {
    return {category::infinite, {negative, 0, 0}};
}
/// A finite number; zero if its significand is zero and nothing follows.
constexpr extended_real as_real(const exact_number<uint128>& x) {
    return {x.significand == 0 ? category::zero : category::finite, x};
}
constexpr extended_real as_real(const exact_value& x) {
    return as_real(widened<uint128>(x));
}
constexpr extended_real real_integer(int x, int exponent = 0) {
    return as_real(exact_value{x < 0, exponent, static_cast<std::uint64_t>(x < 0 ? -x : x)});
}

/// Numbers that the operations of P3109 take and return.
template <class T>
concept p3109_operand = number<T> && layout_of<format_of_t<T>>::precision <= 24;

/// The format with P3109's overflow, which the report also has for binary32 and other external formats.
template <class Format>
struct projected_format : Format {
    static constexpr bool follows_p3109 = true;
};

/// The value of a number (P3109, 4.7.2). Minus zero is zero.
template <p3109_operand T>
constexpr extended_real decode(T x) {
    using format = format_of_t<T>;
    const auto bits = bits_of(x);
    const category kind = categorize<format>(bits);
    if (kind == category::finite) return as_real(unpack<format>(bits));
    if (kind == category::infinite) return real_infinity(mp::detail::is_negative<format>(bits));
    return {kind, {false, 0, 0}};
}

/// The number of a format that a value rounds and saturates to (P3109, 4.7.3). A zero is never negative.
template <p3109_operand T>
constexpr T project(const extended_real& x, const projection& p) {
    using format = projected_format<format_of_t<T>>;
    switch (x.kind) {
        case category::zero:
            return number_from_bits<T>(pack_zero<format>(false, p));
        case category::infinite:
            return number_from_bits<T>(pack_infinity<format>(x.value.negative, p));
        case category::nan:
            return number_from_bits<T>(pack_nan<format>(false, p));
        case category::finite:
            break;
    }
    const auto bits = round_and_pack<format>(to_64_bits(x.value), p);
    if (layout_of<format>::has_signed_zero && bits == layout_of<format>::sign_mask)
        return number_from_bits<T>(0);
    return number_from_bits<T>(bits);
}

// --- order

/// -1, 0 or 1 as the magnitude of a is less than, equal to or greater than that of b; neither is NaN.
constexpr int compare_magnitudes(const extended_real& a, const extended_real& b) {
    if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
    if (a.kind != category::finite) return 0;
    const exact_number<uint128> x = normalized(a.value, 0);
    const exact_number<uint128> y = normalized(b.value, 0);
    if (x.exponent != y.exponent) return x.exponent < y.exponent ? -1 : 1;
    return x.significand == y.significand ? 0 : x.significand < y.significand ? -1 : 1;
}
/// The same for the numbers themselves.
constexpr int compare_reals(const extended_real& a, const extended_real& b) {
    const bool negative = a.is_negative();
    if (negative != b.is_negative()) return negative ? -1 : 1;
    return negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

// --- + - * /

constexpr extended_real real_negative(const extended_real& x) {
    return x.with_sign(!x.value.negative);
}

/// x + y (P3109, 4.10.3).
constexpr extended_real real_sum(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    if (x.is_infinite() && y.is_infinite() && x.is_negative() != y.is_negative()) return real_nan();
    if (x.is_infinite() || y.is_zero()) return x;
    if (y.is_infinite() || x.is_zero()) return y;
    return as_real(add_exact(x.value, y.value));
}

/// x y for factors whose significands have together at most 128 bits (P3109, 4.10.4).
constexpr extended_real real_product(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    const bool negative = x.is_negative() != y.is_negative();
    if (x.is_infinite() || y.is_infinite())
        return x.is_zero() || y.is_zero() ? real_nan() : real_infinity(negative);
    if (x.is_zero() || y.is_zero()) return {};
    return as_real(exact_number<uint128>{negative, x.value.exponent + y.value.exponent,
                                         x.value.significand * y.value.significand});
}

/// x / y for a divisor of at most 48 bits, so that the quotient has 78 (P3109, 4.10.5).
constexpr extended_real real_quotient(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan() || y.is_zero()) return real_nan();
    if (x.is_infinite()) {
        return y.is_infinite() ? real_nan() : real_infinity(x.is_negative() != y.is_negative());
    }
    if (x.is_zero() || y.is_infinite()) return {};
    const exact_number<uint128> dividend = normalized(x.value, 0);
    const uint128 quotient = dividend.significand / y.value.significand;
    const bool rest = quotient * y.value.significand != dividend.significand;
    return as_real(exact_number<uint128>{x.is_negative() != y.is_negative(),
                                         dividend.exponent - y.value.exponent, quotient,
                                         x.value.sticky || rest});
}

/// x + y + z (P3109, 4.10.7).
constexpr extended_real real_sum_of_three(const extended_real& x, const extended_real& y,
                                          const extended_real& z) {
    if (!x.is_finite() || !y.is_finite() || !z.is_finite()) return real_sum(real_sum(x, y), z);
    return as_real(sum_of_three(x.value, y.value, z.value));
}

constexpr extended_real real_identity(const extended_real& x) {
    return x;
}
constexpr extended_real real_magnitude(const extended_real& x) {
    return x.with_sign(false);
}
constexpr extended_real real_copy_sign(const extended_real& x, const extended_real& y) {
    return y.is_nan() ? y : x.with_sign(y.is_negative());
}
constexpr extended_real real_difference(const extended_real& x, const extended_real& y) {
    return real_sum(x, real_negative(y));
}
constexpr extended_real real_product_sum(const extended_real& x, const extended_real& y,
                                         const extended_real& z) {
    return real_sum(real_product(x, y), z);
}
constexpr extended_real real_reciprocal(const extended_real& x) {
    return real_quotient(real_integer(1), x);
}

constexpr extended_real real_root(const extended_real& x) {
    if (x.is_nan() || x.is_negative()) return real_nan();
    if (x.kind != category::finite) return x;
    return as_real(sqrt_exact<uint128>(to_64_bits(x.value)));
}

/// floor(2^n / x) has 127 or 128 bits with the n chosen here, and the whole part of its root is that of the
/// root of 2^n / x.
constexpr extended_real real_reciprocal_root(const extended_real& x) {
    if (x.is_nan() || x.is_zero() || x.is_negative()) return real_nan();
    if (x.is_infinite()) return {};
    const exact_value argument = without_trailing_zeros(to_64_bits(x.value));
    const uint128 divisor = argument.significand;
    uint128 quotient = divisor == 1 ? 1 : 0;
    uint128 rest = divisor == 1 ? 0 : 1;
    int n = 0;
    for (; (quotient >> 126) == 0 || (n + argument.exponent) % 2 != 0; ++n) {
        rest <<= 1;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient |= 1;
        }
    }
    const std::uint64_t root = square_root(quotient);
    const bool exact = rest == 0 && static_cast<uint128>(root) * root == quotient;
    return as_real(exact_value{false, -(n + argument.exponent) / 2, root, !exact});
}

constexpr extended_real real_hypotenuse(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) return real_nan();
    if (x.is_infinite() || y.is_infinite()) return real_infinity();
    if (x.is_zero()) return real_magnitude(y);
    if (y.is_zero()) return real_magnitude(x);
    return as_real(hypot_of(to_64_bits(x.value), to_64_bits(y.value)));
}

/// What a minimum or maximum does with NaN, and with infinities beside finite numbers.
enum class extremum_rule : unsigned char { propagate, number, finite };

/// The minima and maxima of 4.11: by magnitude, and where those are equal by value, if ByMagnitude.
template <bool Smaller, bool ByMagnitude, extremum_rule Rule>
constexpr extended_real real_extremum(const extended_real& x, const extended_real& y) {
    if (x.is_nan() || y.is_nan()) {
        if (Rule == extremum_rule::propagate) return real_nan();
        return x.is_nan() ? y : x;
    }
    if (Rule == extremum_rule::finite && x.is_finite() != y.is_finite()) return x.is_finite() ? x : y;
    int order = ByMagnitude ? compare_magnitudes(x, y) : 0;
    if (order == 0) order = compare_reals(x, y);
    return (order < 0) == Smaller ? x : y;
}

inline constexpr auto real_minimum = real_extremum<true, false, extremum_rule::propagate>;
inline constexpr auto real_maximum = real_extremum<false, false, extremum_rule::propagate>;
inline constexpr auto real_minimum_number = real_extremum<true, false, extremum_rule::number>;
inline constexpr auto real_maximum_number = real_extremum<false, false, extremum_rule::number>;
inline constexpr auto real_minimum_magnitude = real_extremum<true, true, extremum_rule::propagate>;
inline constexpr auto real_maximum_magnitude = real_extremum<false, true, extremum_rule::propagate>;
inline constexpr auto real_minimum_magnitude_number = real_extremum<true, true, extremum_rule::number>;
inline constexpr auto real_maximum_magnitude_number = real_extremum<false, true, extremum_rule::number>;
inline constexpr auto real_minimum_finite = real_extremum<true, false, extremum_rule::finite>;
inline constexpr auto real_maximum_finite = real_extremum<false, false, extremum_rule::finite>;

/// x limited to [lo, hi]; NaN if that is empty, or the interval of an infinity that bounds the wrong side.
constexpr extended_real real_clamp(const extended_real& x, const extended_real& lo, const extended_real& hi) {
    if (x.is_nan() || lo.is_nan() || hi.is_nan() || compare_reals(lo, hi) > 0) return real_nan();
    if (compare_reals(x, lo) <= 0) return lo;
    return compare_reals(x, hi) >= 0 ? hi : x;
}

constexpr approximation approximate(const extended_real& x) {
    return approximate(to_64_bits(x.value));
}

/// A special result of a function of x.
constexpr extended_real real_special(special result, bool negative) {
    switch (result) {
        case special::zero:
        case special::signed_zero:
            return {};
        case special::one:
        case special::signed_one:
            return real_integer(negative && result == special::signed_one ? -1 : 1);
        case special::minus_one:
            return real_integer(-1);
        case special::two:
            return real_integer(2);
        case special::signed_half:
            return real_integer(negative ? -1 : 1, -1);
        case special::signed_half_pi:
            return as_real(inexact(with_sign(approximate_half_pi(), negative)));
        case special::infinity:
        case special::pole:
            return real_infinity();
        case special::minus_pole:
            return real_infinity(true);
        case special::signed_infinity:
        case special::signed_pole:
            return real_infinity(negative);
        case special::number:
        case special::two_sided_pole:
        case special::invalid:
            break;
    }
    return real_nan();
}

constexpr extended_real as_real(const function_value& x) {
    return x.kind == special::number ? as_real(x.value) : real_special(x.kind, x.value.negative);
}

/// The value of a math_function.
template <class Function>
constexpr extended_real real_function(const extended_real& x) {
    if (x.is_nan()) return x;
    const bool negative = x.is_negative();
    if (x.is_infinite()) {
        return real_special(negative ? Function::at_minus_infinity : Function::at_infinity, negative);
    }
    if (x.is_zero() && Function::at_zero != special::number) return real_special(Function::at_zero, false);
    return as_real(function_value(Function{}(to_64_bits(x.value))));
}

inline constexpr auto real_exp = real_function<evaluate_exp>;
inline constexpr auto real_exp2 = real_function<evaluate_exp2>;
inline constexpr auto real_exp_minus_one = real_function<evaluate_expm1>;
inline constexpr auto real_log = real_function<evaluate_log>;
inline constexpr auto real_log2 = real_function<evaluate_log2>;
inline constexpr auto real_log_one_plus = real_function<evaluate_log1p>;
inline constexpr auto real_sine = real_function<evaluate_trigonometric<trigonometric::sine>>;
inline constexpr auto real_cosine = real_function<evaluate_trigonometric<trigonometric::cosine>>;
inline constexpr auto real_tangent = real_function<evaluate_trigonometric<trigonometric::tangent>>;
inline constexpr auto real_sine_pi = real_function<evaluate_half_turns<trigonometric::sine>>;
inline constexpr auto real_cosine_pi = real_function<evaluate_half_turns<trigonometric::cosine>>;
inline constexpr auto real_tangent_pi = real_function<evaluate_half_turns<trigonometric::tangent>>;
inline constexpr auto real_arc_sine = real_function<evaluate_asin>;
inline constexpr auto real_arc_sine_pi = real_function<evaluate_asinpi>;
inline constexpr auto real_arc_cosine_pi = real_function<evaluate_acospi>;
inline constexpr auto real_sinh = real_function<evaluate_sinh>;
inline constexpr auto real_cosh = real_function<evaluate_cosh>;
inline constexpr auto real_tanh = real_function<evaluate_tanh>;
inline constexpr auto real_arc_sinh = real_function<evaluate_asinh>;
inline constexpr auto real_arc_cosh = real_function<evaluate_acosh>;
inline constexpr auto real_arc_tanh = real_function<evaluate_atanh>;

/// log(1 + e^x), which for x > 0 is x + log(1 + e^-x). It is irrational everywhere: a logarithm r of 1 + e^x
/// that is algebraic would make e^0 + e^x - e^r = 0 (Lindemann and Weierstrass).
MP_HOST_DEVICE constexpr approximation softplus_of(const approximation& x) {
    if (x.significand == 0) return approximate_ln2();
    const approximation rest = log1p_of(exp_of(with_sign(x, true)));
    return x.negative ? rest : x + rest;
}
inline constexpr auto real_softplus =
    real_function<math_function<softplus_of, special::number, special::zero, special::infinity>>;

/// acos_of(), of negative x as a quarter turn and the angle whose sine is -x.
MP_HOST_DEVICE constexpr function_value arc_cosine_of(const approximation& x) {
    if (!x.negative || x.top() >= 0) return acos_of(x);
    return approximate_half_pi() + approximate(asin_of(x.magnitude()).value);
}
inline constexpr auto real_arc_cosine =
    real_function<math_function<arc_cosine_of, special::number, special::invalid, special::invalid>>;

/// Whole eighths of a turn, exact as half turns.
constexpr extended_real real_eighths(int eighths, bool negative, bool half_turns) {
    if (eighths == 0) return {};
    if (half_turns) return real_integer(negative ? -eighths : eighths, -2);
    return as_real(inexact(with_sign(approximate_pi() * approximate(eighths).scaled(-2), negative)));
}

/// The angle of the point (x, y) in the plane; NaN for zero and for two infinities. On the left of everything
/// it is pi, below the axis too.
template <bool HalfTurns>
constexpr extended_real real_arc_tangent2(const extended_real& y, const extended_real& x) {
    if (y.is_nan() || x.is_nan() || (y.kind == x.kind && y.kind != category::finite)) return real_nan();
    const bool negative = y.is_negative();
    const bool left = x.is_negative();
    if (y.is_zero() || x.is_infinite()) return real_eighths(left ? 4 : 0, false, HalfTurns);
    if (x.is_zero() || y.is_infinite()) return real_eighths(2, negative, HalfTurns);
    if (compare_magnitudes(y, x) == 0) return real_eighths(left ? 3 : 1, negative, HalfTurns);
    const approximation b = approximate(y).magnitude();
    const approximation a = approximate(x).magnitude();
    approximation angle = HalfTurns ? first_quadrant_half_turns(b, a) : first_quadrant_angle(b, a);
    if (left) angle = (HalfTurns ? approximate_one() : approximate_pi()) - angle;
    return as_real(inexact(with_sign(angle, negative)));
}
template <bool HalfTurns>
constexpr extended_real real_arc_tangent(const extended_real& x) {
    if (x.is_nan() || x.is_zero()) return x;
    return real_arc_tangent2<HalfTurns>(x, real_integer(1));
}

/// The leading 64 bits of an integer of several words, the lowest first, times 2^exponent; sticky if there
/// are more.
template <std::size_t Words>
constexpr extended_real leading_bits(const std::uint64_t (&word)[Words], bool negative, int exponent) {
    std::size_t top = Words - 1;
    while (top > 0 && word[top] == 0) --top;
    const auto at = static_cast<int>(top);
    if (top == 0) return as_real(exact_value{negative, exponent, word[0]});
    const int shift = leading_zeros(word[top]);
    const std::uint64_t below = shift == 0 ? 0 : word[top - 1] >> (64 - shift);
    bool rest = (word[top - 1] << shift) != 0;
    for (std::size_t i = 0; i + 1 < top; ++i) rest = rest || word[i] != 0;
    return as_real(exact_value{negative, exponent + 64 * at - shift, word[top] << shift | below, rest});
}

/// The sum of `Count` products of an element of each of the formats, and of a scale factor that all have in
/// common: a fixed-point number in two's complement, whose lowest bit is the product of the quanta.
template <std::size_t Count, class... Elements>
class real_accumulator {
    static_assert(Count >= 1 && Count <= (std::size_t{1} << 20),
                  "mp: blocks of P3109 have 1 to 2^20 elements");

    static constexpr int lowest_exponent = (layout_of<format_of_t<Elements>>::quantum_exponent + ...);
    /// Products of elements, 48 bits of scale factors, 20 of a count, a sign.
    static constexpr int bits =
        ((layout_of<format_of_t<Elements>>::max_exponent + 1) + ...) - lowest_exponent + 48 + 20 + 1;
    static constexpr std::size_t words = static_cast<std::size_t>(bits) / 64 + 3;

public:
    /// The scale factor is that of all terms.
    explicit constexpr real_accumulator(const extended_real& scale)
        : exponent_(lowest_exponent + scale.value.exponent) {}

    /// Adds a term with its scale factor.
    constexpr void add(const extended_real& x) {
        if (x.kind != category::finite) {
            special_ = real_sum(special_, x);
            return;
        }
        const int position = x.value.exponent - exponent_;
        const int shift = position % 64;
        const std::uint64_t low = static_cast<std::uint64_t>(x.value.significand);
        const std::uint64_t high = static_cast<std::uint64_t>(x.value.significand >> 64);
        const auto carried = [&](std::uint64_t y) { return shift == 0 ? 0 : y >> (64 - shift); };
        const std::uint64_t term[3]{low << shift, high << shift | carried(low), carried(high)};
        bool carry = x.value.negative;
        for (std::size_t i = static_cast<std::size_t>(position) / 64, k = 0; i < words; ++i, ++k) {
            if (k >= 3 && carry == x.value.negative) break;  // nothing more to add or to take away
            const std::uint64_t digit = k < 3 ? term[k] : 0;
            const std::uint64_t summand = x.value.negative ? ~digit : digit;
            const std::uint64_t partial = word_[i] + summand;
            const std::uint64_t sum = partial + (carry ? 1 : 0);
            carry = partial < summand || sum < partial;
            word_[i] = sum;
        }
    }

    /// The sum.
    [[nodiscard]] constexpr extended_real result() const {
        if (!special_.is_zero()) return special_;
        const bool negative = word_[words - 1] >> 63 != 0;
        std::uint64_t magnitude[words]{};
        bool carry = negative;
        for (std::size_t i = 0; i < words; ++i) {
            magnitude[i] = (negative ? ~word_[i] : word_[i]) + (carry ? 1 : 0);
            carry = carry && magnitude[i] == 0;
        }
        return leading_bits(magnitude, negative, exponent_);
    }

private:
    std::uint64_t word_[words]{};
    int exponent_;
    extended_real special_;  ///< the sum of infinities and NaNs
};

/// The product of up to `Count` exact numbers of at most 48 bits.
template <std::size_t Count>
class real_factors {
    static_assert(Count >= 1 && Count <= (std::size_t{1} << 13),
                  "mp: products of P3109 have 1 to 2^13 factors");

public:
    constexpr void multiply(const extended_real& x) {
        special_ =
            real_product(special_, x.kind == category::finite ? real_integer(x.is_negative() ? -1 : 1) : x);
        if (x.kind != category::finite) return;
        const auto factor = static_cast<std::uint64_t>(x.value.significand);
        std::uint64_t carry = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const uint128 product = static_cast<uint128>(word_[i]) * factor + carry;
            word_[i] = static_cast<std::uint64_t>(product);
            carry = static_cast<std::uint64_t>(product >> 64);
        }
        if (carry != 0) word_[size_++] = carry;
        exponent_ += x.value.exponent;
    }

    /// The product.
    [[nodiscard]] constexpr extended_real result() const {
        if (special_.kind != category::finite) return special_;
        return leading_bits(word_, special_.is_negative(), exponent_);
    }

private:
    std::uint64_t word_[Count * 48 / 64 + 2]{1};
    std::size_t size_ = 1;
    int exponent_ = 0;
    extended_real special_ = real_integer(1);  ///< 1 or -1, or what an infinity, a NaN or a zero makes of it
};

}}  // namespace mp::detail
