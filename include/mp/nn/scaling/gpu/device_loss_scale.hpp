// SPDX-License-Identifier: MIT
/// \file
/// A loss scale that lives on a device: its state, what was found in gradients, the last events, and the step
/// from one iteration to the next. Host and device; see update_scale below and unscale.hpp for the kernels.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_event.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace mp {

/// Events that a device_loss_scale keeps unless told otherwise; some 11 KB.
inline constexpr std::size_t default_device_events = 64;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a policy itself decides which steps are skipped.
template <class Rules>
concept decides_skips = requires(const Rules rules, gradient_observation seen) { rules.skips(seen); };

/// Room for the last `Capacity` events; the one of iteration i is at i modulo Capacity.
template <std::size_t Capacity>
struct device_event_ring {
    scale_event entries[Capacity] = {};

    MP_HOST_DEVICE constexpr void put(const scale_event& event) {
        entries[event.iteration % Capacity] = event;
    }
    [[nodiscard]] const scale_event& of_iteration(std::uint64_t iteration) const {
        return entries[iteration % Capacity];
    }
};
template <>
struct device_event_ring<0> {
    MP_HOST_DEVICE constexpr void put(const scale_event&) {}
};

}}  // namespace mp::detail

namespace mp {

/// Everything about a loss scale that the kernels of an iteration read and write, so that the host need not
/// take part: what to multiply the loss by, what to multiply the gradients by, what was found in them, what
/// the updates did, and the last events. Trivially copyable: put make_device_loss_scale's result into device
/// memory, and copy it back when there is something to log.
///
/// An iteration: the loss kernel multiplies by `current_scale()`; mp::unscale_and_check for every gradient;
/// each optimizer kernel looks at `skips(policy)` and does nothing if it is true; mp::update_scale once.
/// For policies that look at measurements, mp::convert_and_observe makes the reduced gradients.
///
/// The state moves with the bits of loss_scaler, and the events are its events, for one optimizer without
/// names. Where loss_scaler::update throws scale_error, the device counts on: see `failed`.
///
/// \tparam Events  how many events to keep; 0 for none
template <scale_policy Policy, std::size_t Events = default_device_events>
struct device_loss_scale {
    static_assert(
        !checks_scaled_gradients<Policy>,
        "mp::device_loss_scale: on devices infinities are looked for in gradients without the scale; take "
        "mp::standard_scale_policy");

    scale_state_of<Policy> state = {};     ///< the policy's state; its scale may be a double
    float inverse_scale = 1.0F;            ///< inverse_of_scale(current_scale())
    scale_change change = {};              ///< what the last update did to the scale
    device_gradient_report seen = {};      ///< what was found since the last update
    device_gradient_report previous = {};  ///< what the last update acted on
    unsigned long long iterations = 0;     ///< updates
    unsigned long long updates = 0;        ///< those of them that had gradients to judge by
    unsigned long long skipped = 0;        ///< those of them whose gradients made the policy skip the step
    /// Updates at which the policy refused to go on, scale_change_kind::failed: the state stayed as it was.
    /// Nothing stops the device, so look at this now and then.
    unsigned long long failed = 0;
    detail::device_event_ring<Events> ring = {};  ///< see events()

    /// The factor of the loss.
    [[nodiscard]] MP_HOST_DEVICE constexpr float current_scale() const {
        return detail::scale_as_float(state.scale);
    }

    /// Whether an optimizer must leave everything as it is in this iteration.
    ///
    /// \param policy  the policy, or the rules that it stands for
    template <class Rules>
        requires std::same_as<Rules, Policy> || std::same_as<Rules, detail::rules_type<Policy>>
    [[nodiscard]] MP_HOST_DEVICE constexpr bool skips(const Rules& policy) const {
        if (seen.checked == 0 || seen.exceeds_limit()) return true;
        // Rules that leave it to us are not asked for, since for some policies only the host knows them.
        if constexpr (detail::decides_skips<detail::rules_type<Policy>>) {
            return skips_step(policy, seen.observation());
        } else {
            static_cast<void>(policy);
            return seen.found();
        }
    }

    /// The last events, at most `Events`, oldest first. On the host, of a copy. More than that have happened
    /// if `iterations` is greater than the size of this.
    [[nodiscard]] std::vector<scale_event> events() const {
        std::vector<scale_event> result;
        if constexpr (Events != 0) {
            const std::uint64_t count = (std::min<std::uint64_t>)(iterations, Events);
            result.reserve(static_cast<std::size_t>(count));
            for (std::uint64_t i = iterations - count; i != iterations; ++i) {
                result.push_back(ring.of_iteration(i));
            }
        }
        return result;
    }
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The loss scale with which a training run begins. Throws argument_error if a parameter of the policy is out
/// of range.
///
///     auto scale = mp::make_device_loss_scale(policy);          // keeps 64 events
///     auto without_log = mp::make_device_loss_scale<0>(policy);
template <std::size_t Events = default_device_events, scale_policy Policy>
[[nodiscard]] device_loss_scale<Policy, Events> make_device_loss_scale(const Policy& policy) {
    static_assert(std::is_trivially_copyable_v<device_loss_scale<Policy, Events>>);
    policy.validate();
    device_loss_scale<Policy, Events> result;
    result.state = initial_scale_state(policy);
    result.inverse_scale = inverse_of_scale(result.current_scale());
    return result;
}

/// The loss scale with which a run continues from a saved state, such as loss_scaler::state().state. Throws
/// argument_error if a parameter of the policy or the state is out of range.
template <std::size_t Events = default_device_events, scale_policy Policy>
[[nodiscard]] device_loss_scale<Policy, Events> make_device_loss_scale(const Policy& policy,
                                                                       const scale_state_of<Policy>& state) {
    device_loss_scale<Policy, Events> result = make_device_loss_scale<Events>(policy);
    validate_scale_state(policy, state);
    result.state = state;
    result.inverse_scale = inverse_of_scale(result.current_scale());
    return result;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Ends an iteration, as loss_scaler::update does: with the same function of the policy, so with the same
/// bits. Without gradients the state stays as it is, and so it does if the policy refuses to go on.
///
/// \param rules  what rules_of made of the policy on the host: some policies compute theirs there
template <scale_policy Policy, std::size_t Events>
MP_HOST_DEVICE constexpr void end_iteration(const rules_type<Policy>& rules,
                                            device_loss_scale<Policy, Events>& scale) {
    scale_event event;
    event.iteration = scale.iterations;
    event.seen = scale.seen.observation();
    if (scale.seen.first_parameter() != no_index) {
        event.parameter = scale.seen.first_parameter();
        event.element = scale.seen.first_element();
    }
    if (scale.seen.checked == 0) {
        const float kept = scale.current_scale();
        event.change = {kept, kept, scale_change_kind::no_gradients};
    } else {
        ++scale.updates;
        if (scale.skips(rules)) {
            ++scale.skipped;
            event.skipped = 1;
        } else {
            event.applied = 1;
        }
        scale_state_of<Policy> next = scale.state;
        event.change = update_scale(rules, next, event.seen);
        if (event.change.kind == scale_change_kind::failed) {
            ++scale.failed;
        } else {
            scale.state = next;
            scale.inverse_scale = inverse_of_scale(scale.current_scale());
        }
    }
    scale.change = event.change;
    scale.ring.put(event);
    ++scale.iterations;
    scale.previous = scale.seen;
    scale.seen = device_gradient_report{};
}

/// Executed by one thread, on memory that no other thread accesses meanwhile.
template <class Rules, class DeviceLossScale>
struct update_scale_kernel {
    static constexpr int threads = 32;
    Rules rules;
    DeviceLossScale* scale;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() == 0) end_iteration(rules, *scale);
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Ends an iteration on the device: the policy moves the scale by what was found since the last update, by
/// the very function that the host's loss_scaler calls, the inverse scale follows, an event is written, and
/// the findings are moved to `previous` and reset. Without gradients since the last update the scale and its
/// counters stay, and so they do where loss_scaler::update throws scale_error; the kind of the change tells.
///
/// \param exec    mp::cuda_stream or mp::simulated_gpu; the kernels that read and write the scale must be
///                ordered before and after
/// \param policy  its rules are copied into the launch, and so into a captured graph
/// \param scale   one device_loss_scale in device memory
/// \throws argument_error  a parameter of the policy is out of range, or scale is null
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, scale_policy Policy, std::size_t Events>
void update_scale(const Executor& exec, const Policy& policy, device_loss_scale<Policy, Events>* scale) {
    policy.validate();
    detail::require_memory("mp::update_scale", "scale", scale, 1);
    using rules = detail::rules_type<Policy>;
    launch("mp::update_scale", exec, simt::launch_size{},
           detail::update_scale_kernel<rules, device_loss_scale<Policy, Events>>{detail::rules_of(policy),
                                                                                 scale});
}

}}  // namespace mp
