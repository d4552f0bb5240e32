// SPDX-License-Identifier: MIT
/// \file
/// What a step under loss scaling did, and why.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mp {

/// Result of a step.
enum class step_status : unsigned char {
    applied,           ///< the optimizer stepped
    skipped_infinity,  ///< skipped: there was an infinity, so the scale is too large (NaNs may follow from
                       ///< it)
    skipped_nan,       ///< skipped: there were NaNs and no infinity, which no smaller scale may cure
    /// Skipped, and the scale is at the floor already or the policy refuses to lower it further: the
    /// gradients overflow for another reason than the scale.
    skipped_at_floor,
    /// Skipped: finite gradients are so large that the step, or its repetition, would take a state or a weight out of
    /// the range of its format, from which some would never come back. The scale stays: it is not the reason.
    skipped_too_large,
    no_gradients  ///< the optimizer has no gradient values at all; nothing was done
};

/// The outcome of loss_scaler::step.
struct step_result {
    step_status status = step_status::applied;
    float scale = 1.0F;  ///< the scale that the gradients carried
    /// The scale that update will set if no other optimizer changes the picture.
    float scale_after = 1.0F;
    std::uint64_t infinities = 0;  ///< infinite values among the unscaled gradients
    std::uint64_t nans = 0;        ///< NaNs among them
    std::uint64_t too_large = 0;   ///< finite values that are too large for the states or the weights
    std::uint64_t flushed = 0;     ///< values that became zero in the reduced format, if observed
    std::uint64_t subnormals = 0;  ///< values that are subnormal in the reduced format, if observed
    std::uint64_t overflows = 0;   ///< finite values beyond the reduced format, if observed
    bool found_elsewhere = false;  ///< such a value is (also) in the gradients of another rank
    std::size_t parameter_index = no_index;  ///< the first parameter with a bad value, or no_index
    /// Its name if the optimizer gives names; refers to the optimizer's own text, so it lives as long.
    std::string_view parameter_name = {};
    std::size_t element_index = no_index;  ///< the first bad element of that parameter, or no_index

    /// True if the optimizer stepped: the moment for a learning rate schedule to advance.
    [[nodiscard]] constexpr explicit operator bool() const { return status == step_status::applied; }
};

}  // namespace mp

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// One line about a step for a log, such as
/// "skipped, 2 infinities and 0 NaNs at scale 65536, the first in 'conv1.weight'[17]".
MP_CORE_FUNCTION std::string to_string(const step_result& result);

#if MP_CORE_BODIES
MP_CORE_FUNCTION std::string to_string(const step_result& result) {
    std::string text;
    switch (result.status) {
        case step_status::applied:
            text = "applied";
            break;
        case step_status::skipped_infinity:
        case step_status::skipped_nan:
        case step_status::skipped_too_large:
            text = "skipped";
            break;
        case step_status::skipped_at_floor:
            text = "skipped at the floor";
            break;
        case step_status::no_gradients:
            return "no gradients";
    }
    if (result.infinities != 0 || result.nans != 0) {
        text += ", " + detail::error_text(result.infinities) +
                (result.infinities == 1 ? " infinity and " : " infinities and ") +
                detail::error_text(result.nans) + (result.nans == 1 ? " NaN" : " NaNs");
    }
    if (result.too_large != 0) {
        text += ", " + detail::error_text(result.too_large) +
                (result.too_large == 1 ? " gradient" : " gradients") +
                " too large for the states or the weights";
    }
    if (result.found_elsewhere) text += ", found by another rank";
    if (result.flushed != 0) text += ", " + detail::error_text(result.flushed) + " flushed";
    if (result.subnormals != 0) text += ", " + detail::error_text(result.subnormals) + " subnormal";
    if (result.overflows != 0) text += ", " + detail::error_text(result.overflows) + " overflowed";
    text += " at scale " + detail::error_text(result.scale);
    // A change of the scale is news; that it stays is not.
    if (result.scale_after < result.scale || result.scale_after > result.scale) {
        text += " (next " + detail::error_text(result.scale_after) + ")";
    }
    if (result.parameter_index != no_index) {
        text += ", the first in ";
        text += result.parameter_name.empty() ? "parameter " + detail::error_text(result.parameter_index)
                                              : detail::error_text(result.parameter_name);
        text += "[" + detail::error_text(result.element_index) + "]";
    }
    return text;
}
#endif

}}  // namespace mp
