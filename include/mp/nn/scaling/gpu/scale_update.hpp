// SPDX-License-Identifier: MIT
/// \file
/// Moving a loss scale that lives on a GPU.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// One thread of it works, on memory that nobody else touches meanwhile.
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
