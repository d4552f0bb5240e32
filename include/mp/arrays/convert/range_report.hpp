// SPDX-License-Identifier: MIT
/// \file
/// Effects of a conversion to a format on an array's values: how many flush to zero, overflow, lose bits as
/// subnormals, and how their exponents are spread. On its own, or while the array is converted.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/arrays/convert/kernels/packed_codes.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/base/parallel.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Magnitude codes of floats at which the class of a value in some format changes, each the smallest one.
struct range_thresholds {
    std::uint32_t nonzero;   ///< that does not become zero
    std::uint32_t normal;    ///< that becomes a normal number
    std::uint32_t overflow;  ///< that is too large
};

/// Counts of floats; zeros are below all thresholds, infinities and NaNs above.
struct range_counts {
    std::uint64_t below_nonzero = 0;
    std::uint64_t below_normal = 0;
    std::uint64_t overflows = 0;
    std::uint64_t nans = 0;
    std::uint32_t largest = 0;          ///< the largest finite magnitude code
    std::uint64_t fields[256] = {};     ///< by the exponent field
    std::uint64_t subnormals[23] = {};  ///< by the highest bit of the fraction, with an exponent field of 0
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/range_counts.inl>
#include <mp/numbers/simd/for_each_target.inl>

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
    [[nodiscard]] constexpr double flushed_fraction() const noexcept {
        const std::uint64_t nonzero = count - zeros - infinities - nans;
        if (nonzero == 0) return 0;
        const auto share = [&] { return static_cast<double>(flushed) / static_cast<double>(nonzero); };
        return __builtin_is_constant_evaluated() ? share() : detail::in_default_modes(share);
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
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"  // all members are equal, numbers too
#endif
    friend constexpr bool operator==(const range_report&, const range_report&) = default;
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
        constexpr double half_ulp = power_of_two<double>(layout::max_exponent - layout::fraction_bits - 1);
        constexpr double limit = static_cast<double>(Target::from_bits(layout::max_finite_code)) + half_ulp;
        return finite_magnitude(x) >= limit;
    }
}

/// Classes of results of finite values that are not zero. Ordered by magnitude.
enum class range_class { flushed, subnormal, normal, overflow };
template <reduced Target, number Source>
constexpr range_class classify_in(Source x) noexcept {
    using layout = layout_of<typename Target::format>;
    // Rounded without bound: a value is too large when even truncation, which saturates, differs from
    // nearest.
    const Target rounded = round_to<Target>(x);
    const auto code = rounded.bits() & layout::magnitude_mask;
    // First, since in formats without a minus zero the NaN of an overflow has the magnitude of zero.
    if (!isfinite(rounded) || beyond_range<Target>(x)) return range_class::overflow;
    if (code == 0) return range_class::flushed;
    return code < layout::hidden_bit ? range_class::subnormal : range_class::normal;
}

/// Adds one value to a report on the target format.
template <reduced Target, number Source>
constexpr void report_one(range_report& report, Source x) noexcept {
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

    switch (classify_in<Target>(x)) {
        case range_class::flushed:
            ++report.flushed;
            break;
        case range_class::subnormal:
            ++report.subnormals;
            break;
        case range_class::normal:
            break;
        case range_class::overflow:
            ++report.overflows;
            break;
    }
}

/// A report on some values, one after the other.
template <reduced Target, number Source>
void report_portable(range_report& report, const Source* values, std::size_t count) noexcept {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < count; ++i) {
        report_one<Target>(report, values[i]);
        const double magnitude = finite_magnitude(values[i]);
        if (magnitude > report.largest_magnitude) report.largest_magnitude = magnitude;
    }
}

/// The magnitude codes of floats at which fates change, from the definition of these.
template <reduced Target>
constexpr range_thresholds thresholds_of() noexcept {
    constexpr std::uint32_t infinity = 0x7f80'0000;
    const auto smallest_with = [](range_class wanted) {
        std::uint32_t below = 0;  // of a lesser class, or zero
        std::uint32_t found = infinity;
        while (found - below > 1) {
            const std::uint32_t middle = below + (found - below) / 2;
            (classify_in<Target>(bit_cast<float>(middle)) < wanted ? below : found) = middle;
        }
        return found;
    };
    return {smallest_with(range_class::subnormal), smallest_with(range_class::normal),
            smallest_with(range_class::overflow)};
}

/// Adds what vectors counted to a report.
inline void add_counts(range_report& report, const range_counts& counts, std::size_t count) noexcept {
    std::uint64_t subnormals = 0;
    const auto exponent_bin = [&](int exponent) -> std::uint64_t& {
        return report.exponents[static_cast<std::size_t>(exponent - range_report::min_exponent)];
    };
    for (int i = 0; i < 23; ++i) {
        subnormals += counts.subnormals[i];
        exponent_bin(i - 149) += counts.subnormals[i];
    }
    for (int field = 1; field < 255; ++field) exponent_bin(field - 127) += counts.fields[field];
    const std::uint64_t zeros = counts.fields[0] - subnormals;
    report.count += count;
    report.zeros += zeros;
    report.flushed += counts.below_nonzero - zeros;
    report.subnormals += counts.below_normal - counts.below_nonzero;
    report.overflows += counts.overflows - counts.fields[255];
    report.infinities += counts.fields[255] - counts.nans;
    report.nans += counts.nans;
    const double largest = widen<double, formats::binary32>(counts.largest);
    if (largest > report.largest_magnitude) report.largest_magnitude = largest;
}

/// Adds some values to a report, with the instructions of a set.
template <reduced Target, number Source>
void report_values(instruction_set isa, range_report& report, const Source* values,
                   std::size_t count) noexcept {
    if constexpr (has_number_vectors<Source> && has_number_vectors<Target>) {
        using kernel_type = void (*)(const Source*, std::size_t, range_thresholds, range_counts*);
        const auto kernel = MP_SELECT_TARGET(isa, kernel_type{nullptr}, count_range<Source>);
        if (kernel != nullptr) {
            constexpr range_thresholds thresholds = thresholds_of<Target>();
            range_counts counts;
            kernel(values, count, thresholds, &counts);
            add_counts(report, counts, count);
            return;
        }
    }
    static_cast<void>(isa);
    report_portable<Target>(report, values, count);
}

/// The sum of the reports that f(report, begin, end) adds to, for parts of `count` values.
template <class Function>
range_report report_parts(cpu exec, std::size_t count, Function f) {
    constexpr std::size_t grain = 1 << 15;
    const auto chunks = static_cast<std::size_t>(threads_of(exec));
    const std::size_t chunk_size = (count + chunks - 1) / chunks;
    std::vector<range_report> parts(chunk_size < grain_of(exec, grain) ? 1 : chunks);
    if (parts.size() == 1) {
        f(parts[0], std::size_t{0}, count);
        return parts[0];
    }
    parallel_for(exec, chunks, 1, [&](std::size_t first, std::size_t last) {
        for (std::size_t chunk = first; chunk < last; ++chunk) {
            const std::size_t begin = (std::min)(chunk * chunk_size, count);
            f(parts[chunk], begin, (std::min)(begin + chunk_size, count));
        }
    });
    range_report total;
    for (const range_report& part : parts) total += part;
    return total;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Looks once over an array of numbers and reports what the target format would do to them.
///
/// `values` is a contiguous range of any number type. Counts depend neither on exec.threads nor on
/// exec.instructions. Throws argument_error if the range is null but not empty, exec.threads is less than
/// one, or the processor lacks exec.instructions.
///
///     const mp::range_report report = mp::report_range<mp::half>(mp::cpu{}, gradients);
///     double lost = report.flushed_fraction();
template <reduced Target, detail::number_range Range>
[[nodiscard]] range_report report_range(cpu exec, const Range& values) {
    using number = std::remove_cv_t<detail::contiguous_element<const Range>>;
    const std::span source = detail::as_span(values);
    detail::check_threads("mp::report_range", exec);
    if (source.data() == nullptr && !source.empty()) {
        detail::throw_argument("mp::report_range", "values.data()", "null",
                               "must point to values.size() elements");
    }
    const instruction_set isa = detail::isa_of("mp::report_range", exec);
    return detail::report_parts(
        exec, source.size(), [&](range_report& report, std::size_t begin, std::size_t end) {
            detail::report_values<Target, number>(isa, report, source.data() + begin, end - begin);
        });
}

/// Converts an array of numbers as mp::convert does, and reports on it as mp::report_range does for the type
/// of `to`, reading the source from memory once: it goes through the caches in chunks.
///
/// The report is about the source, and about rounding to nearest even whatever `p` says; so with a saturating
/// projection it tells how many values were clamped. Errors as for mp::convert, with nothing written; in the
/// name of mp::convert_and_report.
///
///     std::vector<mp::float8_e4m3fn> small(gradients.size());
///     const mp::range_report report = mp::convert_and_report(mp::cpu{}, gradients, small,
///                                                            {.saturate = mp::saturation::finite});
///     if (report.overflows != 0) ...
template <detail::number_range Source, detail::writable_number_range To>
    requires reduced<detail::contiguous_element<To>>
range_report convert_and_report(cpu exec, const Source& from, To&& to, projection p = {}) {
    using number = std::remove_cv_t<detail::contiguous_element<const Source>>;
    using target_type = detail::contiguous_element<To>;
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_threads("mp::convert_and_report", exec);
    detail::check_arrays("mp::convert_and_report", source, target);
    const instruction_set isa = detail::isa_of("mp::convert_and_report", exec);
    return detail::report_parts(
        exec, source.size(), [&](range_report& report, std::size_t begin, std::size_t end) {
            // Small enough for the second read to be from the cache, large enough to count in.
            constexpr std::size_t chunk = 1 << 15;
            for (; begin < end; begin += chunk) {
                const std::size_t size = (std::min)(chunk, end - begin);
                detail::report_values<target_type, number>(isa, report, source.data() + begin, size);
                mp::convert(cpu{.instructions = isa}, source.subspan(begin, size),
                            target.subspan(begin, size), p);
            }
        });
}

}}  // namespace mp
