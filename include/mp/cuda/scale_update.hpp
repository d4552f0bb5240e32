// SPDX-License-Identifier: MIT
/// \file
/// Moving a loss scale that lives on a CUDA device.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/cuda/device_loss_scale.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/scaling/policy.hpp>
#include <mp/scaling/unscale.hpp>

#include <cstddef>

namespace mp {
namespace detail {

template <class Rules, class DeviceLossScale>
__global__ void update_scale_kernel(Rules rules, DeviceLossScale* scale) {
    end_iteration(rules, *scale);
}

}  // namespace detail

/// Ends an iteration on the device: the policy moves the scale by what was found since the last update, by
/// the very function that the host's loss_scaler calls, the inverse scale follows, an event is written, and
/// the findings are moved to `previous` and reset. Without gradients since the last update the scale and its
/// counters stay, and so they do where loss_scaler::update throws scale_error; the kind of the change tells.
///
/// \param exec    the stream; the kernels that read and write the scale must be ordered before and after
/// \param policy  its rules are copied into the launch, and so into a captured graph
/// \param scale   one device_loss_scale in device memory
/// \throws argument_error  a parameter of the policy is out of range, or scale is null
/// \throws cuda_error  the launch failed
template <scale_policy Policy, std::size_t Events>
void update_scale(cuda_stream exec, const Policy& policy, device_loss_scale<Policy, Events>* scale) {
    policy.validate();
    detail::require_memory("mp::update_scale", "scale", scale, 1);
    using rules = detail::rules_type<Policy>;
    detail::launch("mp::update_scale", exec, 1, 1,
                   &detail::update_scale_kernel<rules, device_loss_scale<Policy, Events>>,
                   detail::rules_of(policy), scale);
}

}  // namespace mp
