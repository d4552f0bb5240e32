// SPDX-License-Identifier: MIT
/// \file
/// Comparisons, classes, properties of formats and neighbours of IEEE P3109 4.0, sections 4.12 to 4.16, and
/// the measure of approximate operations of section 4.4.
#pragma once

#include <mp/numbers/format/descriptor.hpp>
#include <mp/numbers/format/manipulation.hpp>
#include <mp/numbers/format/p3109/real_functions.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace mp::p3109_operations {

/// What Class(x) tells of a number (4.13.1).
enum class number_class : unsigned char {
    nan,
    negative_infinity,
    negative_normal,
    negative_subnormal,
    zero,
    positive_subnormal,
    positive_normal,
    positive_infinity
};

}  // namespace mp::p3109_operations

namespace mp::p3109_operations { inline namespace MP_ISA_NAMESPACE {

// --- comparisons of numbers of any formats by their exact values (4.12); false if either is NaN

/// x < y.
template <number X, number Y>
[[nodiscard]] constexpr bool compare_less(X x, Y y) noexcept {
    const auto a = detail::decode(x);
    const auto b = detail::decode(y);
    return !a.is_nan() && !b.is_nan() && detail::compare_reals(a, b) < 0;
}
/// x <= y.
template <number X, number Y>
[[nodiscard]] constexpr bool compare_less_equal(X x, Y y) noexcept {
    const auto a = detail::decode(x);
    const auto b = detail::decode(y);
    return !a.is_nan() && !b.is_nan() && detail::compare_reals(a, b) <= 0;
}
/// x == y.
template <number X, number Y>
[[nodiscard]] constexpr bool compare_equal(X x, Y y) noexcept {
    return p3109_operations::compare_less_equal(x, y) && p3109_operations::compare_less_equal(y, x);
}
/// x > y.
template <number X, number Y>
[[nodiscard]] constexpr bool compare_greater(X x, Y y) noexcept {
    return p3109_operations::compare_less(y, x);
}
/// x >= y.
template <number X, number Y>
[[nodiscard]] constexpr bool compare_greater_equal(X x, Y y) noexcept {
    return p3109_operations::compare_less_equal(y, x);
}
/// x <= y in the order in which NaN comes before all numbers (4.12.1).
template <number X, number Y>
[[nodiscard]] constexpr bool total_order(X x, Y y) noexcept {
    return detail::decode(x).is_nan() || p3109_operations::compare_less_equal(x, y);
}

// --- classes (4.13)

/// Whether x is zero.
template <number X>
[[nodiscard]] constexpr bool is_zero(X x) noexcept {
    return detail::decode(x).is_zero();
}
/// Whether x is one.
template <number X>
[[nodiscard]] constexpr bool is_one(X x) noexcept {
    const auto a = detail::decode(x);
    return !a.is_nan() && detail::compare_reals(a, detail::real_integer(1)) == 0;
}
/// Whether x is NaN.
template <number X>
[[nodiscard]] constexpr bool is_nan(X x) noexcept {
    return detail::decode(x).is_nan();
}
/// Whether x is an infinity.
template <number X>
[[nodiscard]] constexpr bool is_infinite(X x) noexcept {
    return detail::decode(x).is_infinite();
}
/// Whether x is neither infinite nor NaN.
template <number X>
[[nodiscard]] constexpr bool is_finite(X x) noexcept {
    return detail::decode(x).is_finite();
}
/// Whether x is below zero, minus infinity included; never for NaN, whatever its code.
template <number X>
[[nodiscard]] constexpr bool is_sign_minus(X x) noexcept {
    return detail::decode(x).is_negative();
}
/// Whether x is finite, not zero and not subnormal.
template <number X>
[[nodiscard]] constexpr bool is_normal(X x) noexcept {
    return isnormal(x);
}
/// Whether x is subnormal; zero is not.
template <number X>
[[nodiscard]] constexpr bool is_subnormal(X x) noexcept {
    return !p3109_operations::is_nan(x) && mp::is_subnormal(x);
}
/// The class of x (Class, 4.13.1).
template <number X>
[[nodiscard]] constexpr number_class classify(X x) noexcept {
    if (p3109_operations::is_nan(x)) return number_class::nan;
    if (p3109_operations::is_zero(x)) return number_class::zero;
    const bool negative = p3109_operations::is_sign_minus(x);
    if (p3109_operations::is_infinite(x))
        return negative ? number_class::negative_infinity : number_class::positive_infinity;
    if (p3109_operations::is_normal(x))
        return negative ? number_class::negative_normal : number_class::positive_normal;
    return negative ? number_class::negative_subnormal : number_class::positive_subnormal;
}

// --- properties of the format of a type (4.14)

/// Bits of a number.
template <number T>
[[nodiscard]] constexpr int bitwidth_of() noexcept {
    return layout_of<detail::format_of_t<T>>::width;
}
/// Bits of a significand, the leading one included.
template <number T>
[[nodiscard]] constexpr int precision_of() noexcept {
    return layout_of<detail::format_of_t<T>>::precision;
}
/// Whether there are negative numbers.
template <number T>
[[nodiscard]] constexpr signedness signedness_of() noexcept {
    return detail::format_of_t<T>::is_signed ? signedness::is_signed : signedness::is_unsigned;
}
/// Whether there are infinities.
template <number T>
[[nodiscard]] constexpr domain domain_of() noexcept {
    return detail::format_of_t<T>::has_infinity ? domain::extended : domain::finite;
}
/// Bits of the exponent field.
template <number T>
[[nodiscard]] constexpr int exponent_bitwidth_of() noexcept {
    return detail::format_of_t<T>::exponent_bits;
}
/// Bits of the trailing significand.
template <number T>
[[nodiscard]] constexpr int trailing_significand_bitwidth_of() noexcept {
    return detail::format_of_t<T>::fraction_bits;
}
/// What the exponent field is less the exponent.
template <number T>
[[nodiscard]] constexpr int exponent_bias_of() noexcept {
    return detail::format_of_t<T>::bias;
}
/// The largest finite number.
template <number T>
[[nodiscard]] constexpr T max_finite_of() noexcept {
    return detail::number_from_bits<T>(layout_of<detail::format_of_t<T>>::max_finite_code);
}
/// The smallest finite number: the largest one with a minus sign, or zero in a format without signs.
template <number T>
[[nodiscard]] constexpr T min_finite_of() noexcept {
    using layout = layout_of<detail::format_of_t<T>>;
    using storage = typename layout::storage;
    return detail::number_from_bits<T>(
        layout::is_signed ? static_cast<storage>(layout::max_finite_code | layout::sign_mask) : storage{0});
}
/// The smallest positive number; the infinity of a format that has no other one.
template <number T>
[[nodiscard]] constexpr T min_positive_of() noexcept {
    return detail::number_from_bits<T>(1);
}
/// The largest subnormal number, or NaN if there is none.
template <number T>
[[nodiscard]] constexpr T max_subnormal_of() noexcept {
    using layout = layout_of<detail::format_of_t<T>>;
    using storage = typename layout::storage;
    constexpr std::uint64_t below_normal = std::uint64_t{layout::min_normal_code} - 1;
    constexpr std::uint64_t code =
        below_normal < layout::max_finite_code ? below_normal : std::uint64_t{layout::max_finite_code};
    return detail::number_from_bits<T>(code == 0 ? layout::nan_code : static_cast<storage>(code));
}
/// The smallest positive normal number, or NaN if there is none.
template <number T>
[[nodiscard]] constexpr T min_normal_of() noexcept {
    using layout = layout_of<detail::format_of_t<T>>;
    return detail::number_from_bits<T>(
        layout::min_normal_code <= layout::max_finite_code ? layout::min_normal_code : layout::nan_code);
}

// --- neighbours (4.16)

/// The smallest number that is greater than x; NaN if there is none, unlike nextup().
template <number X>
    requires reduced<X>
[[nodiscard]] constexpr X next_greater_than(X x) noexcept {
    const X next = nextup(x);
    const bool none =
        p3109_operations::is_nan(x) || (!p3109_operations::is_zero(x) && next.bits() == x.bits());
    return none ? X::from_bits(detail::pack_nan<typename X::format>()) : next;
}
/// The largest number that is less than x; NaN if there is none, unlike nextdown().
template <number X>
    requires reduced<X>
[[nodiscard]] constexpr X next_less_than(X x) noexcept {
    const X next = nextdown(x);
    const bool none = p3109_operations::is_nan(x) || next.bits() == x.bits();
    return none ? X::from_bits(detail::pack_nan<typename X::format>()) : next;
}

}}  // namespace mp::p3109_operations

namespace mp::p3109_operations {

/// The kappa of an approximate operation (4.4): NaN if it has NaN for numbers or numbers for NaN, else
/// infinity if it has other infinities, else the largest number of values between its finite results and the
/// defined ones.
///
///     kappa_measure kappa;
///     for (...) kappa.add(exp<binary8>(x), my_exp(x));
class kappa_measure {
public:
    /// Takes the defined result of some operands and the approximate one into account.
    template <number T>
    constexpr void add(T defined, T approximate) noexcept {
        using detail::category;
        const auto a = detail::decode(defined);
        const auto b = detail::decode(approximate);
        matches_nans_ = matches_nans_ && a.is_nan() == b.is_nan();
        if (a.is_nan() || b.is_nan()) return;
        const bool infinite = a.is_infinite() || b.is_infinite();
        if (infinite) {
            matches_infinities_ =
                matches_infinities_ && a.kind == b.kind && a.is_negative() == b.is_negative();
            return;
        }
        const std::int64_t distance = place_of(defined) - place_of(approximate);
        steps_ = (std::max)(steps_, distance < 0 ? -distance : distance);
    }
    /// Kappa of all results so far.
    [[nodiscard]] constexpr double value() const noexcept {
        if (!matches_nans_) return std::numeric_limits<double>::quiet_NaN();
        if (!matches_infinities_) return std::numeric_limits<double>::infinity();
        return static_cast<double>(steps_);
    }

private:
    /// The place of a finite number among those of its format, counted from zero.
    template <class T>
    static constexpr std::int64_t place_of(T x) noexcept {
        using layout = layout_of<detail::format_of_t<T>>;
        const auto magnitude = static_cast<std::int64_t>(detail::bits_of(x) & layout::magnitude_mask);
        return signbit(x) ? -magnitude : magnitude;
    }

    std::int64_t steps_ = 0;
    bool matches_nans_ = true;
    bool matches_infinities_ = true;
};

}  // namespace mp::p3109_operations
