// SPDX-License-Identifier: MIT
/// \file
/// What a training run's gradients were like, step by step: what replay.hpp feeds to policies, so that they
/// can be compared without training again.
#pragma once

#include <mp/arrays/io/csv.hpp>
#include <mp/base/argument_checks.hpp>
#include <mp/config.hpp>
#include <mp/half.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The magnitudes that a reduced format tells apart from zero and from infinity.
struct magnitude_range {
    double largest = 65504.0;             ///< the largest finite number
    double smallest_normal = 0x1p-14;     ///< the smallest number with a full significand
    double smallest_subnormal = 0x1p-24;  ///< the smallest number above zero

    /// That of a format of this library, or of float; for example magnitude_range::of<mp::float8_e5m2>().
    template <class Number>
    [[nodiscard]] static constexpr magnitude_range of() {
        using limits = std::numeric_limits<Number>;
        return {static_cast<double>((limits::max)()), static_cast<double>((limits::min)()),
                static_cast<double>(limits::denorm_min())};
    }

    friend constexpr bool operator==(const magnitude_range&, const magnitude_range&) = default;
};

/// Number of gradient values with a magnitude in [2^exponent, 2^(exponent + 1)).
struct exponent_count {
    std::int32_t exponent = 0;
    std::uint64_t count = 0;

    friend constexpr bool operator==(const exponent_count&, const exponent_count&) = default;
};

/// One step: all gradients as they are without a scale, best measured in float or double before they were
/// rounded to a reduced format.
struct trace_step {
    double largest = 0.0;  ///< the largest finite magnitude; finite, not negative
    /// The recorded run overflowed in this step, so that the true largest magnitude is only known to be at
    /// least `largest`. Replay takes it for `largest`: a smaller scale is assumed to have been small enough.
    bool at_least = false;
    bool infinite = false;    ///< there was an infinity that no scale would have avoided
    bool nan = false;         ///< there was a NaN that no scale would have avoided
    std::uint64_t zeros = 0;  ///< values that were exactly zero, if the exponents were counted
    /// Counts by exponent, each exponent once and in ascending order from -1100 to 1100; empty if they were
    /// not counted. Then nothing is known about underflow.
    std::vector<exponent_count> exponents = {};

    MP_MEMBERWISE_EQUALITY(trace_step);
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::int32_t largest_trace_exponent = 1100;

/// The error in the numbers of a step; empty if there is none.
inline std::string_view fault_of(const trace_step& step) {
    if (is_non_finite(step.largest) || step.largest < 0.0)
        return "must have a largest magnitude that is finite and not negative";
    std::uint64_t sum = step.zeros;
    std::int32_t previous = -largest_trace_exponent - 1;
    for (const exponent_count& it : step.exponents) {
        if (it.exponent <= previous)
            return "must have exponents from -1100 on, each once and in ascending order";
        if (it.exponent > largest_trace_exponent) return "must have exponents up to 1100";
        if (it.count > ~sum) return "must count fewer than 2^64 values";
        sum += it.count;
        previous = it.exponent;
    }
    return {};
}

inline constexpr std::array<std::string_view, 6> trace_columns{"largest", "at_least", "infinite",
                                                               "nan",     "zeros",    "exponents"};

/// The counts in a cell such as "-20:7 -19:130".
inline std::vector<exponent_count> read_exponents(const csv_reader& reader, std::size_t column) {
    constexpr std::string_view expected = "must be pairs exponent:count with spaces between them";
    std::vector<exponent_count> counts;
    std::string_view text = reader.cell(column);
    while (!text.empty()) {
        exponent_count it;
        const char* const end = text.data() + text.size();
        const auto [colon, error] = std::from_chars(text.data(), end, it.exponent);
        if (error != std::errc{} || colon == end || *colon != ':') reader.refuse(column, expected);
        const auto [rest, count_error] = std::from_chars(colon + 1, end, it.count);
        if (count_error != std::errc{}) reader.refuse(column, expected);
        counts.push_back(it);
        text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
        if (text.empty()) break;
        if (text.front() != ' ' || text.size() == 1) reader.refuse(column, expected);
        text.remove_prefix(1);
    }
    return counts;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Throws argument_error, naming the step by its index, unless all steps are as trace_step says.
inline void validate_trace(std::span<const trace_step> trace) {
    for (std::size_t i = 0; i < trace.size(); ++i) {
        const std::string_view fault = detail::fault_of(trace[i]);
        if (!fault.empty())
            detail::throw_joined<argument_error>(
                {"mp::validate_trace: step ", detail::error_text(i), " ", fault});
    }
}

/// A trace as a table, one line a step, after a line with the names of the columns:
///
///     largest,at_least,infinite,nan,zeros,exponents
///     0.0123,0,0,0,512,-20:7 -19:130 -7:1
///
/// The flags are 0 or 1. `exponents` has pairs exponent:count with spaces between them.
[[nodiscard]] inline std::string write_trace_csv(std::span<const trace_step> trace) {
    std::string text = "largest,at_least,infinite,nan,zeros,exponents\n";
    for (const trace_step& step : trace) {
        detail::append_csv_number(text, step.largest);
        for (const bool flag : {step.at_least, step.infinite, step.nan}) text += flag ? ",1" : ",0";
        text += ',';
        detail::append_csv_number(text, step.zeros);
        char separator = ',';
        if (step.exponents.empty()) text += separator;
        for (const exponent_count& it : step.exponents) {
            text += separator;
            detail::append_csv_number(text, it.exponent);
            text += ':';
            detail::append_csv_number(text, it.count);
            separator = ' ';
        }
        text += '\n';
    }
    return text;
}

/// Reads what write_trace_csv writes. The columns may be in any order, and all but `largest` may be left out:
/// a table with the largest magnitude of each step is a trace. In `largest`, inf and nan stand for a step
/// with an infinity or a NaN that no scale would have avoided, as tools write them that take the maximum of
/// all values.
///
/// \throws argument_error  naming line and column: there are unknown columns, or a cell is not what it should
/// be
[[nodiscard]] inline std::vector<trace_step> read_trace_csv(std::string_view text) {
    constexpr std::string_view function = "mp::read_trace_csv";
    detail::csv_reader reader(function, text);
    reader.read_header();
    constexpr std::size_t absent = ~std::size_t{0};
    std::array<std::size_t, detail::trace_columns.size()> columns{};
    columns.fill(absent);
    for (std::size_t i = 0; i < reader.names().size(); ++i) {
        const auto* const known =
            std::find(detail::trace_columns.begin(), detail::trace_columns.end(), reader.names()[i]);
        const auto index = static_cast<std::size_t>(known - detail::trace_columns.begin());
        if (known == detail::trace_columns.end() || columns[index] != absent) {
            detail::throw_argument(
                function, "line 1, column " + detail::error_text(i + 1), detail::printable(reader.names()[i]),
                "must be one of largest, at_least, infinite, nan, zeros and exponents, each once");
        }
        columns[index] = i;
    }
    if (columns[0] == absent)
        detail::throw_joined<argument_error>({function, ": line 1 must name a column largest"});

    std::vector<trace_step> trace;
    while (reader.next()) {
        trace_step step;
        const auto flag = [&](std::size_t index, bool& to) {
            const std::size_t column = columns[index];
            if (column == absent) return;
            const std::string_view cell = reader.cell(column);
            if (cell != "0" && cell != "1") reader.refuse(column, "must be 0 or 1");
            to = cell == "1";
        };
        flag(1, step.at_least);
        flag(2, step.infinite);
        flag(3, step.nan);
        constexpr std::string_view expected = "must be a finite number that is not negative, inf or nan";
        step.largest = reader.number<double>(columns[0], expected);
        if (detail::is_nan(step.largest)) {
            step.nan = true;
            step.largest = 0.0;
        } else if (step.largest < 0.0) {
            reader.refuse(columns[0], expected);
        } else if (detail::is_non_finite(step.largest)) {
            step.infinite = true;
            step.largest = 0.0;
        }
        if (columns[4] != absent) {
            step.zeros =
                reader.number<std::uint64_t>(columns[4], "must be a whole number from 0 to 2^64 - 1");
        }
        if (columns[5] != absent) {
            step.exponents = detail::read_exponents(reader, columns[5]);
            const std::string_view fault = detail::fault_of(step);
            if (!fault.empty()) reader.refuse(columns[5], fault);
        }
        trace.push_back(std::move(step));
    }
    return trace;
}

/// Makes a trace of a run. It is a listener; for the magnitudes, tell the scaler what the gradients are like:
///
///     mp::trace_recorder recorder;
///     scaler.set_listener(recorder);
///     ...
///     scaler.step(optimizer);
///     scaler.observe({.largest = largest_unscaled_gradient});
///     recorder.count_exponents(mp::report_range<mp::half>(mp::cpu{}, unscaled_gradients));  // for underflow
///     scaler.update();
///     ...
///     write(file, mp::write_trace_csv(recorder.trace()));
///
/// A step with infinities at the scale of the recorded run becomes one whose largest magnitude is at least
/// what overflows at that scale (see trace_step::at_least); NaNs beside infinities are taken to follow from
/// them. A step with NaNs alone has a NaN at every scale. Iterations without gradients are left out.
///
/// Not synchronised. Memory grows with the run: 64 bytes a step, and 16 bytes for each exponent that is
/// counted.
class trace_recorder {
public:
    /// \param range           of the format in which the recorded run has its gradients
    /// \param expected_steps  memory is reserved for that many; argument_error if they cannot be addressed
    explicit trace_recorder(const magnitude_range& range = {}, std::size_t expected_steps = 0)
        : range_(range) {
        trace_.reserve(detail::addressable("mp::trace_recorder", "expected_steps", expected_steps,
                                           8 * sizeof(trace_step)));
    }

    /// As a listener: ends a step.
    void operator()(const scale_event& event) {
        if (event.change.kind == scale_change_kind::no_gradients) {
            pending_ = {};
            return;
        }
        record(event.seen, event.change.before);
    }

    /// By hand: ends a step that saw this at this scale.
    void record(const gradient_observation& seen, float scale) {
        trace_step step = std::exchange(pending_, {});
        if (!detail::is_non_finite(seen.largest) && seen.largest > step.largest) step.largest = seen.largest;
        if (seen.infinities != 0) {
            // The next double, so that the recorded scale overflows in replay as well.
            const double bound = std::nextafter(range_.largest / static_cast<double>(scale), HUGE_VAL);
            const bool usable =
                scale > 0.0F && !detail::is_non_finite(scale) && !detail::is_non_finite(bound);
            if (!usable) {
                step.infinite = true;
            } else if (step.largest < bound) {
                step.largest = bound;
                step.at_least = true;
            }
        } else {
            step.nan = seen.nans != 0;
            const bool measured =
                seen.largest > 0.0 || seen.values != 0 || !step.exponents.empty() || step.largest > 0.0;
            if (!measured && !step.nan) ++unmeasured_;
        }
        trace_.push_back(std::move(step));
    }

    /// Ends a step that is known already. Throws argument_error if its numbers make no sense.
    void record(const trace_step& step) {
        validate_trace(std::span<const trace_step>(&step, 1));
        trace_.push_back(step);
    }

    /// Adds the exponents of unscaled gradients to the step in progress; any number of times. `report` is an
    /// mp::range_report, or anything with its members min_exponent, exponents, zeros and largest_magnitude.
    template <class Report>
        requires requires(const Report& report) {
            { report.largest_magnitude } -> std::convertible_to<double>;
            report.exponents[0] + report.zeros;
            Report::min_exponent;
        }
    void count_exponents(const Report& report) {
        std::vector<exponent_count> merged;
        auto old = pending_.exponents.begin();
        std::int32_t exponent = Report::min_exponent;
        for (const std::uint64_t count : report.exponents) {
            if (count != 0) {
                while (old != pending_.exponents.end() && old->exponent < exponent) merged.push_back(*old++);
                const bool same = old != pending_.exponents.end() && old->exponent == exponent;
                merged.push_back({exponent, count + (same ? (old++)->count : 0)});
            }
            ++exponent;
        }
        merged.insert(merged.end(), old, pending_.exponents.end());
        pending_.exponents = std::move(merged);
        pending_.zeros += report.zeros;
        if (report.largest_magnitude > pending_.largest) pending_.largest = report.largest_magnitude;
    }

    [[nodiscard]] const std::vector<trace_step>& trace() const noexcept { return trace_; }

    /// Clean steps for which nobody measured a magnitude. Replay takes their gradients for zero, so that they
    /// overflow at no scale: with many of them a trace says little.
    [[nodiscard]] std::uint64_t unmeasured() const noexcept { return unmeasured_; }

    /// Forgets all steps.
    void clear() noexcept {
        trace_.clear();
        pending_ = {};
        unmeasured_ = 0;
    }

private:
    magnitude_range range_;
    trace_step pending_;
    std::vector<trace_step> trace_;
    std::uint64_t unmeasured_ = 0;
};

}}  // namespace mp
