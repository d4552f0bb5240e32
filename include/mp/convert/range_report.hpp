// SPDX-License-Identifier: MIT
/// \file
/// What would become of an array's values in a format: how many flush to zero, overflow, lose bits as
/// subnormals, and how their exponents are spread.
#pragma once

#include <mp/convert/number_range.hpp>
#include <mp/detail/parallel.hpp>
#include <mp/format/operations.hpp>

#include <array>
#include <cstdint>

namespace mp {

/// Counts of one pass over an array, for a target format, under nearest-even rounding.
struct range_report {
    /// Exponents that the histogram tells apart; it covers all of float, and doubles beyond it land in the
    /// first or the last bin.
    static constexpr int min_exponent = -160;
    static constexpr int max_exponent = 159;

    std::uint64_t count = 0;       ///< elements looked at
    std::uint64_t zeros = 0;       ///< exact zeros, of both signs
    std::uint64_t flushed = 0;     ///< finite and not zero, but zero in the target format
    std::uint64_t subnormals = 0;  ///< subnormal in the target format
    std::uint64_t overflows = 0;   ///< finite, but beyond the largest finite number of the target format
    std::uint64_t infinities = 0;  ///< already infinite
    std::uint64_t nans = 0;        ///< already NaN
    double largest_magnitude = 0;  ///< the largest finite magnitude (amax); 0 if there is none
    /// exponents[e - min_exponent] counts the finite non-zero values with 2^e <= |x| < 2^(e + 1).
    std::array<std::uint64_t, max_exponent - min_exponent + 1> exponents{};

    /// Values in [2^e, 2^(e + 1)) in magnitude; 0 outside of the histogram.
    [[nodiscard]] constexpr std::uint64_t with_exponent(int e) const noexcept {
        return e < min_exponent || e > max_exponent ? 0
                                                    : exponents[static_cast<std::size_t>(e - min_exponent)];
    }
    /// Share of the non-zero finite values that flush to zero; 0 if there are none.
    [[nodiscard]] constexpr double flushed_share() const noexcept {
        const std::uint64_t nonzero = count - zeros - infinities - nans;
        return nonzero == 0 ? 0 : static_cast<double>(flushed) / static_cast<double>(nonzero);
    }
    /// Adds the counts of another part of the same data.
    constexpr range_report& operator+=(const range_report& other) noexcept {
        count += other.count;
        zeros += other.zeros;
        flushed += other.flushed;
        subnormals += other.subnormals;
        overflows += other.overflows;
        infinities += other.infinities;
        nans += other.nans;
        if (other.largest_magnitude > largest_magnitude) largest_magnitude = other.largest_magnitude;
        for (std::size_t i = 0; i < exponents.size(); ++i) exponents[i] += other.exponents[i];
        return *this;
    }
    friend constexpr bool operator==(const range_report&, const range_report&) = default;
};

namespace detail {

/// The finite magnitude of a value, 0 for infinities and NaNs.
template <number Source>
constexpr double finite_magnitude(Source x) noexcept {
    if (!isfinite(x)) return 0;
    const double value = static_cast<double>(x);
    return value < 0 ? -value : value;
}

/// Whether a finite value rounds beyond the largest finite number of a format that has no code to show it:
/// the last code has only one bits, so that the tie half a unit above it would go up.
template <reduced Target, number Source>
constexpr bool beyond_range(Source x) noexcept {
    using layout = layout_of<typename Target::format>;
    if constexpr (layout::has_infinity || layout::has_nan) {
        return false;
    } else {
        constexpr double half_unit = power_of_two<double>(layout::max_exponent - layout::fraction_bits - 1);
        constexpr double limit = static_cast<double>(Target::from_bits(layout::max_finite_code)) + half_unit;
        return finite_magnitude(x) >= limit;
    }
}

/// Adds one value to a report on the target format.
template <reduced Target, number Source>
constexpr void report_one(range_report& report, Source x) noexcept {
    using layout = layout_of<typename Target::format>;
    using source = format_of_t<Source>;
    const auto bits = bits_of(x);
    ++report.count;
    switch (categorize<source>(bits)) {
        case category::zero:
            ++report.zeros;
            return;
        case category::infinite:
            ++report.infinities;
            return;
        case category::nan:
            ++report.nans;
            return;
        case category::finite:
            break;
    }
    const exact_value value = unpack<source>(bits);
    int exponent = value.exponent + 63 - leading_zeros(value.significand);
    if (exponent < range_report::min_exponent) exponent = range_report::min_exponent;
    if (exponent > range_report::max_exponent) exponent = range_report::max_exponent;
    ++report.exponents[static_cast<std::size_t>(exponent - range_report::min_exponent)];

    // Rounded without bound: a value is too large when even truncation, which saturates, differs from
    // nearest.
    const Target rounded = round_to<Target>(x);
    const auto code = rounded.bits() & layout::magnitude_mask;
    // First, since in formats without a minus zero the NaN of an overflow has the magnitude of zero.
    if (!isfinite(rounded) || beyond_range<Target>(x)) {
        ++report.overflows;
    } else if (code == 0) {
        ++report.flushed;
    } else if (code < layout::hidden_bit) {
        ++report.subnormals;
    }
}

}  // namespace detail

/// Looks once over an array of numbers and reports what the target format would do to them.
///
/// `values` is a contiguous range of any number type. Counts do not depend on exec.threads. Throws
/// argument_error if the range is null but not empty, or exec.threads is less than one.
///
///     const mp::range_report report = mp::report_range<mp::half>(mp::cpu{}, gradients);
///     double lost = report.flushed_share();
template <reduced Target, detail::number_range Range>
[[nodiscard]] range_report report_range(cpu exec, const Range& values) {
    const std::span source = detail::as_span(values);
    detail::check_threads("mp::report_range", exec);
    if (source.data() == nullptr && !source.empty()) {
        detail::throw_argument("mp::report_range", "values.data()", "null",
                               "must point to values.size() elements");
    }
    constexpr std::size_t grain = 1 << 15;
    const std::size_t pieces = static_cast<std::size_t>(exec.threads);
    const std::size_t share = (source.size() + pieces - 1) / pieces;
    std::vector<range_report> parts(pieces);
    detail::parallel_for(exec, pieces, share < grain ? pieces : 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t piece = first; piece < last; ++piece) {
            const std::size_t begin = std::min(piece * share, source.size());
            const std::size_t end = std::min(begin + share, source.size());
            for (std::size_t i = begin; i < end; ++i) {
                detail::report_one<Target>(parts[piece], source[i]);
                const double magnitude = detail::finite_magnitude(source[i]);
                if (magnitude > parts[piece].largest_magnitude) parts[piece].largest_magnitude = magnitude;
            }
        }
    });
    range_report total;
    for (const range_report& part : parts) total += part;
    return total;
}

}  // namespace mp
