// SPDX-License-Identifier: MIT
/// \file
/// Replay of a recorded run with other scale policies: what they would have made of the same gradients.
///
///     const auto trace = mp::read_trace_csv(text);
///     const std::vector results{mp::replay(trace, mp::pytorch_policy{}, "pytorch"),
///                               mp::replay(trace, mp::deepspeed_policy{}, "deepspeed")};
///     std::puts(mp::replay_table(results).c_str());
///
/// Replay takes the gradients as given. In a run of its own a policy that skips other steps would soon see
/// other gradients; the comparison is good for as long as the loss of a step matters little.
#pragma once

#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/frontends/report/text_table.hpp>
#include <mp/nn/scaling/event_log.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/nn/scaling/trace.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mp {

/// Result of a policy on a trace.
struct replay_result {
    std::string name;
    scale_event_totals totals = {};      ///< of the steps that were replayed
    std::uint64_t longest_skip_run = 0;  ///< skipped steps in a row
    float first_scale = 1.0F;            ///< the scale of the first step
    float final_scale = 1.0F;            ///< the scale after the last step
    float smallest_scale = 1.0F;         ///< of all steps, and after the last
    float largest_scale = 1.0F;          ///< of all steps, and after the last
    bool underflow_known = false;        ///< whether the trace has exponents in a step that was applied
    double mean_underflow = 0.0;     ///< share of values other than zero that became zero, over the applied
                                     ///< steps with exponents
    double largest_underflow = 0.0;  ///< the largest share in one of them
    std::optional<std::uint64_t> failed_at = {};    ///< the step at which the policy refused to go on
    std::vector<std::uint64_t> skipped_steps = {};  ///< their numbers, in ascending order
    std::vector<float> scales = {};                 ///< the scale of each step that was replayed
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A number of values, as many as are known to be affected; where a threshold lies within a bin, the part of
/// it below the threshold as if the values were evenly spread in it.
inline std::uint64_t count_below(std::span<const exponent_count> exponents, double threshold) {
    std::uint64_t count = 0;
    for (const exponent_count& it : exponents) {
        const double low = std::ldexp(1.0, it.exponent);
        if (!(low < threshold)) break;
        const double part = (threshold - low) / low;
        if (part < 1.0) {
            count += (std::min)(
                static_cast<std::uint64_t>(std::llround(part * static_cast<double>(it.count))), it.count);
        } else {
            count += it.count;
        }
    }
    return count;
}

/// The observation of a scaler in a step at a scale.
///
/// \param edge  magnitudes of scaled gradients above it count as large
inline gradient_observation observation_at(const trace_step& step, float scale, const magnitude_range& range,
                                           double edge) {
    gradient_observation seen;
    seen.largest = step.largest;
    seen.nans = step.nan ? 1 : 0;
    seen.infinities = step.infinite ? 1 : 0;
    // With an infinite scale or inverse nothing finite comes back.
    if (is_non_finite(scale) || is_non_finite(inverse_of_scale(scale))) {
        seen.infinities = 1;
        return seen;
    }
    const double factor = static_cast<double>(scale);
    // Divided, not multiplied, so that the bounds of trace_recorder, which are such quotients, overflow
    // again.
    const bool overflows = step.largest > range.largest / factor;
    const bool large = step.largest > edge / factor;
    if (step.exponents.empty()) {
        seen.infinities += overflows ? 1 : 0;
        seen.large = large && !overflows ? 1 : 0;
        return seen;
    }
    std::uint64_t nonzero = 0;
    for (const exponent_count& it : step.exponents) nonzero += it.count;
    const std::uint64_t beyond = nonzero - count_below(step.exponents, range.largest / factor);
    seen.values = nonzero + step.zeros;
    seen.zeros = step.zeros;
    // The largest magnitude decides whether there are any: within a bin the counts only estimate.
    seen.overflows = overflows ? (std::max<std::uint64_t>)(beyond, 1) : 0;
    seen.infinities += seen.overflows;
    const std::uint64_t above = nonzero - count_below(step.exponents, edge / factor);
    seen.large = large ? (std::max<std::uint64_t>)(above, 1) : 0;
    seen.large -= (std::min)(seen.large, seen.overflows);
    seen.flushed = count_below(step.exponents, range.smallest_subnormal / 2 / factor);
    seen.subnormals = count_below(step.exponents, range.smallest_normal / factor) - seen.flushed;
    return seen;
}

struct no_listener {
    void operator()(const scale_event&) const noexcept {}
};

inline constexpr std::array<std::string_view, 12> replay_headings{
    "policy",      "skips",    "in a row", "growths",        "back-offs",         "first scale",
    "final scale", "smallest", "largest",  "mean underflow", "largest underflow", ""};

/// The cells of a result, below the headings; the last one is a failure.
inline std::vector<std::string> replay_cells(const replay_result& it) {
    const auto scale = [](float value) { return scale_text(static_cast<double>(value)); };
    const auto share = [&](double value) {
        return it.underflow_known ? percent_text(value) : std::string("-");
    };
    return {it.name,
            error_text(it.totals.skips),
            error_text(it.longest_skip_run),
            error_text(it.totals.growths),
            error_text(it.totals.backoffs),
            scale(it.first_scale),
            scale(it.final_scale),
            scale(it.smallest_scale),
            scale(it.largest_scale),
            share(it.mean_underflow),
            share(it.largest_underflow),
            it.failed_at ? "failed at step " + error_text(*it.failed_at) : ""};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Runs a policy over a trace. In each step at scale S
///  - there are infinities if the largest magnitude times S exceeds the largest number of the format, or the
///    trace says so (the margin of half a unit in the last place beyond it, which rounds back, is left out);
///  - there are NaNs if the trace says so;
///  - values flush to zero whose magnitude times S is below half the smallest subnormal: counted exactly from
///  the
///    exponents of the trace if S is a power of two, else in part estimated.
/// The policy sees that through mp::update_scale. Replay ends early if the policy fails.
///
/// \param trace     the steps
/// \param policy    any policy, with whatever parameters
/// \param name      for tables and pictures
/// \param range     of the format in which the gradients are to be; half by default
/// \param listener  is called with the scale_event of each step that was replayed, such as a scale_event_log
/// \throws argument_error  a step of the trace, the policy or the range makes no sense
template <scale_policy Policy, class Listener = const detail::no_listener>
[[nodiscard]] replay_result replay(std::span<const trace_step> trace, const Policy& policy,
                                   std::string_view name, const magnitude_range& range = {},
                                   Listener&& listener = {}) {
    policy.validate();
    validate_trace(trace);
    for (const double limit : {range.largest, range.smallest_normal, range.smallest_subnormal}) {
        if (detail::is_non_finite(limit) || !(limit > 0.0)) {
            detail::throw_argument("mp::replay", "range", limit,
                                   "must be finite and greater than 0 in each member");
        }
    }
    double edge = range.largest;
    if constexpr (requires { policy.histogram_edge(1.0); }) edge = policy.histogram_edge(range.largest);

    replay_result result;
    result.name = name;
    result.scales.reserve(trace.size());
    scale_state_of<Policy> state = initial_scale_state(policy);
    result.first_scale = detail::scale_as_float(state.scale);
    result.final_scale = result.smallest_scale = result.largest_scale = result.first_scale;
    std::uint64_t skip_run = 0;
    std::uint64_t measured_steps = 0;
    for (const trace_step& step : trace) {
        scale_event event;
        event.iteration = result.totals.iterations;
        const float scale = detail::scale_as_float(state.scale);
        event.seen = detail::observation_at(step, scale, range, edge);
        event.change = update_scale(policy, state, event.seen);
        if (event.change.kind == scale_change_kind::failed) {
            result.failed_at = event.iteration;
            break;
        }
        (skips_step(policy, event.seen) ? event.skipped : event.applied) = 1;
        result.totals += event;
        result.scales.push_back(scale);
        if (event.skipped != 0) result.skipped_steps.push_back(event.iteration);
        skip_run = event.skipped != 0 ? skip_run + 1 : 0;
        result.longest_skip_run = (std::max)(result.longest_skip_run, skip_run);
        if (event.applied != 0 && event.seen.values > event.seen.zeros) {
            const double share = static_cast<double>(event.seen.flushed) /
                                 static_cast<double>(event.seen.values - event.seen.zeros);
            ++measured_steps;
            result.mean_underflow += (share - result.mean_underflow) / static_cast<double>(measured_steps);
            result.largest_underflow = (std::max)(result.largest_underflow, share);
        }
        result.final_scale = event.change.after;
        result.smallest_scale = (std::min)(result.smallest_scale, event.change.after);
        result.largest_scale = (std::max)(result.largest_scale, event.change.after);
        listener(static_cast<const scale_event&>(event));
    }
    result.underflow_known = measured_steps != 0;
    return result;
}

/// The results side by side, in fixed-width characters with an end of line behind each line. Underflow is "-"
/// where the trace has no exponents.
[[nodiscard]] inline std::string replay_table(std::span<const replay_result> results) {
    std::vector<std::vector<std::string>> lines(1);
    for (const std::string_view heading : detail::replay_headings) lines[0].emplace_back(heading);
    for (const replay_result& it : results) lines.push_back(detail::replay_cells(it));
    const std::size_t last = lines[0].size() - 1;
    return detail::aligned_text(lines, [=](std::size_t column) { return column == 0 || column == last; });
}

}}  // namespace mp
