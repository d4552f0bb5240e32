// SPDX-License-Identifier: MIT
/// \file
/// A loss scale that lives in the memory of a device, and what is done to it there. Nothing here needs a
/// CUDA compiler: the functions are the ones that the kernels run, and the tests run them on the host.
#pragma once

#include <mp/config.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/error.hpp>
#include <mp/format/device.hpp>
#include <mp/scaling/optimizer_protocol.hpp>
#include <mp/scaling/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

namespace detail {

// A place is the number of an array and the index in it, in one integer whose order is the order of places.
inline constexpr int place_index_bits = 44;
inline constexpr unsigned long long no_place = ~0ull;
inline constexpr std::size_t most_gradient_arrays = std::size_t{1} << (64 - place_index_bits);
inline constexpr std::size_t most_gradient_values = std::size_t{1} << place_index_bits;

[[nodiscard]] MP_HOST_DEVICE constexpr unsigned long long gradient_place(unsigned long long parameter,
                                                                         unsigned long long index) {
    return (parameter << place_index_bits) | index;
}

/// Throws unless the places of `size` values in array `parameter` fit, with room for the one that is none.
inline void check_gradient_place(std::string_view function, std::size_t parameter, std::size_t size) {
    if (parameter >= most_gradient_arrays) {
        throw_argument(function, "parameter", parameter, "must be less than 2^20");
    }
    if (size >= most_gradient_values) {
        throw_argument(function, "gradients.size()", size, "must be less than 2^44");
    }
}

}  // namespace detail

/// What was found in gradients on a device since the report was last reset. It is zero-initialised but for
/// `first`, so start from device_gradient_report{}.
struct device_gradient_report {
    unsigned long long checked = 0;               ///< gradient values looked at
    unsigned long long infinities = 0;            ///< values that are plus or minus infinity
    unsigned long long nans = 0;                  ///< values that are NaN
    unsigned long long first = detail::no_place;  ///< the first place of either; see first_parameter

    /// True if there is any infinity or NaN: what PyTorch calls found_inf.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool found() const { return infinities != 0 || nans != 0; }

    /// The part that a scale policy decides on.
    [[nodiscard]] MP_HOST_DEVICE constexpr gradient_observation observation() const {
        return {infinities, nans};
    }

    /// The lowest number of an array with an infinity or NaN; no_index if there is none.
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t first_parameter() const {
        return first == detail::no_place ? static_cast<std::size_t>(-1)
                                         : static_cast<std::size_t>(first >> detail::place_index_bits);
    }
    /// The lowest index of an infinity or NaN in that array; no_index if there is none.
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t first_element() const {
        return first == detail::no_place
                   ? static_cast<std::size_t>(-1)
                   : static_cast<std::size_t>(first & (detail::most_gradient_values - 1));
    }

    /// The same in the words of the host's scalers.
    [[nodiscard]] constexpr gradient_report on_host() const {
        return {checked, infinities, nans, first_parameter(), first_element()};
    }

    friend constexpr bool operator==(const device_gradient_report&, const device_gradient_report&) = default;
};

/// Everything about a loss scale that the kernels of an iteration read and write, so that the host need not
/// take part: what to multiply the loss by, what to multiply the gradients by, what was found in them, and
/// what the last update did. Trivially copyable: put make_device_loss_scale's result into device memory, and
/// copy it back when there is something to log.
///
/// An iteration: the loss kernel multiplies by `state.scale`; mp::unscale_and_check for every gradient; each
/// optimizer kernel looks at `skips(policy)` and does nothing if it is true; mp::update_scale once.
template <scale_policy Policy>
struct device_loss_scale {
    scale_state_of<Policy> state = {};     ///< the policy's state; state.scale multiplies the loss
    float inverse_scale = 1.0F;            ///< inverse_of_scale(state.scale)
    scale_change change = {};              ///< what the last update did to the scale
    device_gradient_report seen = {};      ///< what was found since the last update
    device_gradient_report previous = {};  ///< what the last update acted on
    unsigned long long updates = 0;        ///< updates that had gradients to judge by
    unsigned long long skipped = 0;        ///< those of them whose gradients made the policy skip the step

    /// Whether an optimizer must leave everything as it is in this iteration.
    [[nodiscard]] MP_HOST_DEVICE constexpr bool skips(const Policy& policy) const {
        return seen.checked == 0 || skips_step(policy, seen.observation());
    }
};

/// The loss scale with which a training run begins. Throws argument_error if a parameter of the policy is out
/// of range.
template <scale_policy Policy>
[[nodiscard]] device_loss_scale<Policy> make_device_loss_scale(const Policy& policy) {
    policy.validate();
    device_loss_scale<Policy> result;
    result.state = initial_scale_state(policy);
    result.inverse_scale = inverse_of_scale(result.state.scale);
    return result;
}

/// The loss scale with which a run continues from a saved state, such as loss_scaler::state().state. Throws
/// argument_error if a parameter of the policy or the state is out of range.
template <scale_policy Policy>
[[nodiscard]] device_loss_scale<Policy> make_device_loss_scale(const Policy& policy,
                                                               const scale_state_of<Policy>& state) {
    device_loss_scale<Policy> result = make_device_loss_scale(policy);
    validate_scale_state(policy, state);
    result.state = state;
    result.inverse_scale = inverse_of_scale(state.scale);
    return result;
}

namespace detail {

/// Ends an iteration, as loss_scaler::update does: with the same function of the policy, so with the same
/// bits. Without gradients the state stays as it is.
template <scale_policy Policy>
MP_HOST_DEVICE constexpr void end_iteration(const Policy& policy, device_loss_scale<Policy>& scale) {
    if (scale.seen.checked == 0) {
        scale.change = {scale.state.scale, scale.state.scale, scale_change_kind::no_gradients};
    } else {
        ++scale.updates;
        if (skips_step(policy, scale.seen.observation())) ++scale.skipped;
        scale.change = update_scale(policy, scale.state, scale.seen.observation());
        scale.inverse_scale = inverse_of_scale(scale.state.scale);
    }
    scale.previous = scale.seen;
    scale.seen = device_gradient_report{};
}

/// What one thread found.
struct unscale_findings {
    unsigned long long infinities = 0;
    unsigned long long nans = 0;
    unsigned long long first = no_place;
};

/// One thread's share of unscale_and_check.
template <class Gradient>
MP_HOST_DEVICE MP_ALWAYS_INLINE void unscale_share(std::size_t thread, std::size_t threads,
                                                   const Gradient* gradients, float* unscaled,
                                                   chunk_split split, float inverse_scale,
                                                   unsigned long long parameter, unscale_findings& found) {
    const bool multiply = inverse_scale != 1.0F;
    transform_share(thread, threads, gradients, unscaled, split, [&](Gradient gradient, std::size_t index) {
        float value = static_cast<float>(gradient);
        if (multiply) value = float_multiply(value, inverse_scale);
        const std::uint32_t magnitude = bit_cast<std::uint32_t>(value) & 0x7fffffffU;
        if (magnitude >= 0x7f800000U) {
            if (magnitude == 0x7f800000U) {
                ++found.infinities;
            } else {
                ++found.nans;
            }
            const unsigned long long place = gradient_place(parameter, index);
            if (place < found.first) found.first = place;
        }
        return value;
    });
}

}  // namespace detail
}  // namespace mp
