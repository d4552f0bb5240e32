// SPDX-License-Identifier: MIT
/// \file
/// Moving a loss scale that lives on a CUDA device.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/cuda/device_loss_scale.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/scaling/policy.hpp>

namespace mp {
namespace detail {

template <scale_policy Policy>
__global__ void update_scale_kernel(Policy policy, device_loss_scale<Policy>* scale) {
    end_iteration(policy, *scale);
}

}  // namespace detail

/// Ends an iteration on the device: the policy moves the scale by what was found since the last update, by
/// the very function that the host's loss_scaler calls, the inverse scale follows, and the findings are moved
/// to `previous` and reset. Without gradients since the last update the scale and its counters stay.
///
/// \param exec    the stream; the kernels that read and write the scale must be ordered before and after
/// \param policy  copied into the launch, and so into a captured graph
/// \param scale   one device_loss_scale in device memory
/// \throws argument_error  a parameter of the policy is out of range, or scale is null
/// \throws cuda_error  the launch failed
template <scale_policy Policy>
void update_scale(cuda_stream exec, const Policy& policy, device_loss_scale<Policy>* scale) {
    policy.validate();
    detail::require_memory("mp::update_scale", "scale", scale, 1);
    detail::launch("mp::update_scale", exec, 1, 1, &detail::update_scale_kernel<Policy>, policy, scale);
}

}  // namespace mp
