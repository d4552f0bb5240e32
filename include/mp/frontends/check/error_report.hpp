// SPDX-License-Identifier: MIT
/// \file
/// How far two numbers are apart, in units in the last place (ulp), and the error of an array of computed numbers
/// against exact references, in one summary.
#pragma once

#include <mp/arrays/analysis/error_histogram.hpp>
#include <mp/base/number_text.hpp>
#include <mp/frontends/check/exact_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>

namespace mp {

/// Errors of an array of computed numbers against references.
///
/// The distances are taken over the elements whose computed value and reference are both finite; all are zero
/// when there are none. Relative errors leave out elements whose reference is zero.
struct error_summary {
    /// Name of the format of the computed numbers, whose ulp is meant.
    std::string format;
    /// Number of elements.
    std::size_t count = 0;
    /// Elements that equal their reference exactly (NaN for NaN and infinity for infinity included).
    std::size_t exact = 0;
    /// Elements that are what the reference rounds to in nearest-even; the exact ones are among them.
    std::size_t correctly_rounded = 0;
    /// Elements that are not finite, or whose reference is not, and that are not what the reference rounds
    /// to.
    std::size_t not_finite_mismatches = 0;

    double max_ulp = 0;
    double mean_ulp = 0;
    double max_relative = 0;
    double mean_relative = 0;
    double max_absolute = 0;
    double mean_absolute = 0;

    /// The distances in ulps and the relative errors by their size: quantiles, and what mp::report::error_page() draws.
    error_histogram ulps;
    error_histogram relative;

    /// The element with the largest distance in ulps, the first of several; with a not-finite mismatch, the
    /// first of those. Its computed value and its reference, rounded to double.
    std::size_t worst_index = 0;
    double worst_computed = 0;
    double worst_reference = 0;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The exponent of one ulp of Format at |x|: the weight of the last bit of the numbers in x's binade. Below
/// the smallest normal number it is the smallest subnormal, beyond the largest number that of the last
/// binade.
template <class Format>
int ulp_exponent(const exact_fraction& x) {
    using layout = layout_of<Format>;
    if (x.kind != category::finite) return layout::quantum_exponent;
    const std::int64_t rough = rough_log2(x);
    if (rough < layout::min_exponent) return layout::quantum_exponent;
    if (rough > layout::max_exponent) return layout::max_exponent - layout::fraction_bits;
    // rough is floor(log2 |x|) or one more, and within a few thousand now.
    const std::int64_t shift = rough - x.exponent;
    const bool reached = shift >= 0 ? x.numerator >= (x.denominator << static_cast<unsigned>(shift))
                                    : (x.numerator << static_cast<unsigned>(-shift)) >= x.denominator;
    const auto binade = static_cast<int>(reached ? rough : rough - 1);
    return (std::max)(binade, layout::min_exponent) - layout::fraction_bits;
}

/// Beyond 2^4000 and below 2^-4000 all values are alike in the eyes of every format; clamping them there
/// keeps the integers small.
inline exact_fraction clamped(exact_fraction x) {
    if (x.kind != category::finite) return x;
    const std::int64_t log2 = rough_log2(x);
    if (log2 > 4000 || log2 < -4000) {
        x.numerator = 1;
        x.denominator = 1;
        x.exponent = log2 > 0 ? 4000 : -4000;
    }
    return x;
}

struct distances {
    double absolute = 0;
    double relative = 0;  // zero when the reference is zero
    double ulp = 0;
};

/// The distances of finite x from a finite reference.
template <class Format>
distances distances_between(const exact_fraction& x, const exact_fraction& reference) {
    distances result;
    const exact_fraction nearest = clamped(reference);
    exact_fraction gap = difference(x, nearest);
    result.absolute = magnitude_to_double(gap);
    if (gap.kind == category::zero) return result;
    exact_fraction in_ulps = gap;
    in_ulps.exponent -= ulp_exponent<Format>(reference);
    result.ulp = magnitude_to_double(in_ulps);
    if (reference.kind == category::finite) {
        gap.numerator *= nearest.denominator;
        gap.denominator *= nearest.numerator;
        gap.exponent -= nearest.exponent;
        result.relative = magnitude_to_double(gap);
    }
    return result;
}

/// Whether x, which is not finite or whose reference is not, is what the reference rounds to; any NaN will
/// do.
template <number Value>
bool agrees_outside_range(Value x, const exact_fraction& reference) {
    const Value expected = number_from_bits<Value>(round_fraction<format_of_t<Value>>(reference, {}));
    return isnan(expected) ? isnan(x) : bits_of(expected) == bits_of(x);
}

/// Gathers an error_summary element by element.
template <number Value>
class error_accumulator {
public:
    error_accumulator() { summary_.format = format_of_t<Value>::name; }

    void add(Value computed, const exact_fraction& reference) {
        const std::size_t index = summary_.count++;
        const bool finite_reference = reference.kind == category::zero || reference.kind == category::finite;
        const bool rounded = agrees_outside_range(computed, reference);
        if (!isfinite(computed) || !finite_reference) {
            if (rounded) {
                ++summary_.correctly_rounded;
                const bool both_special = !isfinite(computed) && !finite_reference;
                if (both_special) ++summary_.exact;
            } else if (summary_.not_finite_mismatches++ == 0) {
                worst(index, computed, reference);
            }
            return;
        }
        const distances d = distances_between<format_of_t<Value>>(to_fraction(computed), reference);
        ++compared_;
        summary_.ulps.add(d.ulp);
        if (!(d.absolute > 0) && !(d.ulp > 0)) ++summary_.exact;
        if (rounded || !(d.ulp > 0)) ++summary_.correctly_rounded;
        if (d.ulp > summary_.max_ulp) {
            summary_.max_ulp = d.ulp;
            if (summary_.not_finite_mismatches == 0) worst(index, computed, reference);
        }
        summary_.max_absolute = (std::max)(summary_.max_absolute, d.absolute);
        sum_ulp_ += d.ulp;
        sum_absolute_ += d.absolute;
        if (reference.kind == category::finite) {
            ++with_relative_;
            summary_.max_relative = (std::max)(summary_.max_relative, d.relative);
            sum_relative_ += d.relative;
            summary_.relative.add(d.relative);
        }
    }

    error_summary finish() const {
        error_summary result = summary_;
        if (compared_ != 0) {
            result.mean_ulp = sum_ulp_ / static_cast<double>(compared_);
            result.mean_absolute = sum_absolute_ / static_cast<double>(compared_);
        }
        if (with_relative_ != 0) result.mean_relative = sum_relative_ / static_cast<double>(with_relative_);
        return result;
    }

private:
    void worst(std::size_t index, Value computed, const exact_fraction& reference) {
        summary_.worst_index = index;
        summary_.worst_computed = static_cast<double>(computed);
        summary_.worst_reference = to_double_signed(reference);
    }

    error_summary summary_;
    std::size_t compared_ = 0;
    std::size_t with_relative_ = 0;
    double sum_ulp_ = 0;
    double sum_absolute_ = 0;
    double sum_relative_ = 0;
};

inline std::string report_line(const char* what, double max, double mean) {
    char buffer[96];
    std::snprintf(buffer, sizeof buffer, "  %-16s max %-12.6g mean %.6g\n", what, max, mean);
    return buffer;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The distance of a computed x from its exact reference, in ulps of x's format at the reference.
///
/// An ulp is the gap between the numbers of the format in the binade that holds the reference; among
/// subnormal numbers and at zero it is the smallest subnormal. A correctly rounded x is at most 0.5 away, or
/// 1 in a directed mode. The difference is exact, and rounded only in the returned double (about 1e-15
/// relative).
///
/// If x or the reference is not finite the distance is 0 when x is what the reference rounds to in
/// nearest-even (NaN for NaN, infinity for infinity or for a reference too large for the format), and
/// infinite otherwise.
template <number Value, reference_number Reference>
[[nodiscard]] double ulp_distance(Value x, const Reference& reference) {
    const detail::exact_fraction exact = detail::to_fraction(reference);
    const bool reference_is_finite =
        exact.kind == detail::category::zero || exact.kind == detail::category::finite;
    if (!isfinite(x) || !reference_is_finite) {
        return detail::agrees_outside_range(x, exact) ? 0 : std::numeric_limits<double>::infinity();
    }
    return detail::distances_between<detail::format_of_t<Value>>(detail::to_fraction(x), exact).ulp;
}

/// How many steps from one number of the format to the next lead from a to b. Zeros of both signs are the
/// same place; infinity is one step after the largest finite number. Two NaNs are 0 apart, a NaN and a number
/// the largest std::uint64_t.
template <number Value>
[[nodiscard]] constexpr std::uint64_t ulps_between(Value a, Value b) noexcept {
    using layout = layout_of<detail::format_of_t<Value>>;
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? 0 : ~std::uint64_t{0};
    const std::uint64_t steps_a = detail::bits_of(a) & layout::magnitude_mask;
    const std::uint64_t steps_b = detail::bits_of(b) & layout::magnitude_mask;
    if (signbit(a) != signbit(b)) return steps_a + steps_b;
    return steps_a > steps_b ? steps_a - steps_b : steps_b - steps_a;
}

/// Compares an array of computed numbers with their references, element by element.
///
/// `computed` is a range of half, bfloat16, float, double or any other number of the library; `references` is
/// a range of Boost numbers, or of wider built-in numbers whose values are taken as exact. Differences are
/// exact, whatever the type of the references. Throws argument_error when the lengths differ.
///
///     std::vector<mp::half> y = ...;
///     std::vector<mp::reference_real> exact = ...;
///     std::cout << to_string(mp::error_report(y, exact));
template <std::ranges::input_range Computed, std::ranges::input_range References>
    requires number<std::ranges::range_value_t<Computed>> &&
             reference_number<std::ranges::range_value_t<References>>
[[nodiscard]] error_summary error_report(const Computed& computed, const References& references) {
    const auto length = static_cast<std::size_t>(std::ranges::distance(computed));
    const auto reference_length = static_cast<std::size_t>(std::ranges::distance(references));
    if (length != reference_length) {
        detail::throw_argument("mp::error_report", "references.size()", reference_length,
                               "must equal computed.size(), which is " + std::to_string(length));
    }
    detail::error_accumulator<std::ranges::range_value_t<Computed>> errors;
    auto reference = std::ranges::begin(references);
    for (const auto x : computed) errors.add(x, detail::to_fraction(*reference++));
    return errors.finish();
}

/// The summary as a few readable lines.
[[nodiscard]] inline std::string to_string(const error_summary& s) {
    std::string text = std::to_string(s.count) + " values of " + s.format + ": " + std::to_string(s.exact) +
                       " exact, " + std::to_string(s.correctly_rounded) + " correctly rounded, " +
                       std::to_string(s.not_finite_mismatches) + " not-finite mismatches\n";
    text += detail::report_line("error in ulps", s.max_ulp, s.mean_ulp);
    if (s.max_ulp > 0) {
        text += "  half of them within " + detail::short_text(s.ulps.quantile(0.5)) + " ulps, 99% within " +
                detail::short_text(s.ulps.quantile(0.99)) + ", 99.9% within " +
                detail::short_text(s.ulps.quantile(0.999)) + "\n";
    }
    text += detail::report_line("relative error", s.max_relative, s.mean_relative);
    text += detail::report_line("absolute error", s.max_absolute, s.mean_absolute);
    if (s.max_ulp > 0 || s.not_finite_mismatches > 0) {
        text += "  worst at index " + std::to_string(s.worst_index) + ": " +
                detail::short_text(s.worst_computed) + " instead of " +
                detail::short_text(s.worst_reference) + "\n";
    }
    return text;
}

/// The histograms as lines of measure,from,to,count, for other programs; measure is ulps or relative.
[[nodiscard]] inline std::string to_csv(const error_summary& s) {
    std::string text = "measure,from,to,count\n";
    const auto append = [&](std::string_view measure, const error_histogram& errors) {
        const std::string lines = to_csv(errors);
        for (std::size_t at = lines.find('\n') + 1; at < lines.size();) {
            const std::size_t end = lines.find('\n', at) + 1;
            text.append(measure).append(",").append(lines, at, end - at);
            at = end;
        }
    };
    append("ulps", s.ulps);
    append("relative", s.relative);
    return text;
}

}}  // namespace mp
