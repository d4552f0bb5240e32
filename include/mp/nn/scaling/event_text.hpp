// SPDX-License-Identifier: MIT
/// \file
/// Events of a scaler as readable lines.
#pragma once

#include <mp/config.hpp>
#include <mp/nn/scaling/scale_event.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#if MP_CORE_BODIES
#include <mp/arrays/io/csv.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/number_text.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/scale_change_names.hpp>
#endif

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// One line about an iteration, without an end of line, such as
/// "iteration 1832: 65536 -> 32768 backed off, 3 infinities, first in 'layer4.weight'[17]".
/// Control characters in a name are written as `\xNN`.
[[nodiscard]] MP_CORE_FUNCTION std::string to_string(const scale_event& event);

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Returns events as lines, those of `older` first; after `dropped` that are not kept.
[[nodiscard]] MP_CORE_FUNCTION std::string event_lines(std::uint64_t dropped,
                                                       std::span<const scale_event> older,
                                                       std::span<const scale_event> newer);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// By bits, so that NaN is the same scale as NaN.
constexpr bool same_scale(float a, float b) noexcept {
    return bit_cast<std::uint32_t>(a) == bit_cast<std::uint32_t>(b);
}

/// Whether an iteration was clean and nothing became of it, so that a line for many of them says all.
constexpr bool is_quiet(const scale_event& event) noexcept {
    return event.change.kind == scale_change_kind::unchanged && !event.seen.non_finite() &&
           event.skipped == 0 && same_scale(event.change.before, event.change.after);
}

inline std::string flushed_words(std::uint64_t flushed, std::uint64_t values) {
    return flushed == 0 ? std::string()
                        : ", " + error_text(flushed) + " of " + error_text(values) + " values flushed";
}

/// The line of several quiet iterations in a row.
class quiet_run {
public:
    [[nodiscard]] bool continues_with(const scale_event& event) const noexcept {
        return count_ != 0 && event.iteration == last_ + 1 && same_scale(event.change.before, scale_);
    }
    void add(const scale_event& event) noexcept {
        if (count_ == 0) {
            first_ = event.iteration;
            scale_ = event.change.before;
        }
        last_ = event.iteration;
        flushed_ += event.seen.flushed;
        values_ += event.seen.values;
        ++count_;
    }
    /// Appends the line, if there is anything to say, and begins anew.
    void end(std::string& to) {
        if (count_ == 1) to += "iteration " + error_text(first_);
        if (count_ > 1) to += "iterations " + error_text(first_) + " to " + error_text(last_);
        if (count_ != 0)
            to += ": " + error_text(scale_) + " unchanged" + flushed_words(flushed_, values_) + "\n";
        *this = {};
    }

private:
    std::uint64_t count_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t last_ = 0;
    std::uint64_t flushed_ = 0;
    std::uint64_t values_ = 0;
    float scale_ = 0.0F;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string to_string(const scale_event& event) {
    std::string line = "iteration " + detail::error_text(event.iteration) + ": ";
    line += detail::error_text(event.change.before);
    if (!detail::same_scale(event.change.before, event.change.after)) {
        line += " -> " + detail::error_text(event.change.after);
    }
    line += " " + detail::scale_change_words(event.change.kind);
    if (event.seen.infinities != 0) {
        line += ", " + detail::counted(event.seen.infinities, "infinity", "infinities");
    }
    if (event.seen.nans != 0) line += ", " + detail::counted(event.seen.nans, "NaN", "NaNs");
    // That a step with infinities or NaNs was skipped goes without saying; that only some were, or none, not.
    if (event.applied != 0 && (event.skipped != 0 || event.seen.non_finite())) {
        line += ", " + detail::counted(event.applied, "optimizer", "optimizers") + " stepped";
        if (event.skipped != 0) line += " and " + detail::error_text(event.skipped) + " skipped";
    }
    if (event.applied == 0 && event.skipped != 0 && !event.seen.non_finite()) {
        line += ", " + detail::counted(event.skipped, "optimizer", "optimizers") +
                " skipped: gradients too large for its states or weights";
    }
    line += detail::flushed_words(event.seen.flushed, event.seen.values);
    if (event.parameter != ~0ULL) {
        line += ", first in ";
        line += event.parameter_name.empty() ? "parameter " + detail::error_text(event.parameter)
                                             : "'" + detail::printable(event.parameter_name.view()) + "'";
        if (event.element != ~0ULL) line += "[" + detail::error_text(event.element) + "]";
    }
    return line;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION std::string event_lines(std::uint64_t dropped, std::span<const scale_event> older,
                                         std::span<const scale_event> newer) {
    std::string text;
    if (dropped != 0) {
        text += "(" + counted(dropped, "earlier iteration is", "earlier iterations are") + " not kept)\n";
    }
    quiet_run run;
    for (const std::span<const scale_event> part : {older, newer}) {
        for (const scale_event& event : part) {
            const bool quiet = is_quiet(event);
            if (!quiet || !run.continues_with(event)) run.end(text);
            if (quiet) {
                run.add(event);
            } else {
                text += to_string(event) + "\n";
            }
        }
    }
    run.end(text);
    return text;
}

}}  // namespace mp::detail
#endif
