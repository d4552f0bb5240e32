// SPDX-License-Identifier: MIT
/// \file
/// Steps of AdamW and SGD on a GPU as functions of a list of parameters.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/nn/optim/adamw_options.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/gpu/update_work.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/sgd_options.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/policy.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Bodies of the steps below: skipped by a report, and by the policy of a loss scale.
template <class Executor, class List, class Options>
void step_list(const Executor& exec, const List& parameters, const Options& options,
               device_optimizer<Options>* optimizer, const gpu_gradient_state& gradients) {
    using parameter = std::remove_cv_t<contiguous_element<const List>>;
    run_step(exec, std::span<const parameter>(as_span(parameters)), options, optimizer,
             skip_by_report{gradients.report}, gradients.inverse_scale, gradients.clip_factor);
}
template <class Executor, class List, class Options, class Policy, std::size_t Events>
void step_list(const Executor& exec, const List& parameters, const Options& options,
               device_optimizer<Options>* optimizer, const Policy& policy,
               const device_loss_scale<Policy, Events>* scale, const float* clip_factor) {
    using parameter = std::remove_cv_t<contiguous_element<const List>>;
    require_memory(optimizer_traits<Options>::gpu_step, "scale", scale, 1);
    policy.validate();
    run_step(exec, std::span<const parameter>(as_span(parameters)), options, optimizer,
             skip_by_policy<Policy, Events>{rules_of(policy), scale}, &scale->inverse_scale, clip_factor);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Updates all parameters of a list that have a gradient, as mp::adamw does on a CPU: the stored values have
/// the same bits (except for payloads of NaNs, and as long as all parameters have had as many updates).
/// One launch that decides, counts and calculates the coefficients, and one pass over the arrays for some
/// sixty parameters: it reads gradient, master copy and state, multiplies the gradient by the inverse scale
/// and then by the clip factor, each product rounded to float, and writes master copy, state and weights.
/// With half weights and gradients, float masters and state these are 28 bytes an element.
///
/// If the report has found an infinity, a NaN or a gradient above its limit, nothing is written and the step does
/// not count. Nothing waits, nothing is allocated, and everything may be captured into a graph: the learning
/// rate is that in device memory, the other options are copied into the launches.
///
///     mp::check_gradients(stream, parameters, scale.data());
///     mp::adamw_step(stream, parameters, options, optimizer.data(), policy, scale.data());
///     mp::update_scale(stream, policy, scale.data());
///
/// \param exec        mp::cuda_stream or mp::simulated_gpu
/// \param parameters  contiguous range of gpu_parameter of one type; the host's, and read before this
///                    returns. For several types, make several lists, with a device_optimizer each
/// \param options     see adamw_options; the learning rate is that of `optimizer`. With
///                    weight_update::stochastic random bits belong to the index in the list
/// \param optimizer   one in device memory; the kernels that read and write it must be ordered
/// \param gradients   what is known about the gradients
/// \throws argument_error  an option is out of range; an array is null or has another size than the weights;
///                         optimizer is null
/// \throws cuda_error  a launch failed
template <gpu_executor Executor, detail::parameter_list List>
void adamw_step(const Executor& exec, const List& parameters, const adamw_options& options,
                device_optimizer<adamw_options>* optimizer, const gpu_gradient_state& gradients = {}) {
    detail::step_list(exec, parameters, options, optimizer, gradients);
}

/// Overload with the inverse scale of a device_loss_scale, whose policy decides whether the step is skipped.
///
/// \param clip_factor  one float in device memory, or null
template <gpu_executor Executor, detail::parameter_list List, scale_policy Policy, std::size_t Events>
void adamw_step(const Executor& exec, const List& parameters, const adamw_options& options,
                device_optimizer<adamw_options>* optimizer, const Policy& policy,
                const device_loss_scale<Policy, Events>* scale, const float* clip_factor = nullptr) {
    detail::step_list(exec, parameters, options, optimizer, policy, scale, clip_factor);
}

/// Updates all parameters of a list that have a gradient, as mp::sgd does on a CPU; see adamw_step for the arguments.
/// With half weights and gradients, float masters and momentum it moves 20 bytes an element.
template <gpu_executor Executor, detail::parameter_list List>
void sgd_step(const Executor& exec, const List& parameters, const sgd_options& options,
              device_optimizer<sgd_options>* optimizer, const gpu_gradient_state& gradients = {}) {
    detail::step_list(exec, parameters, options, optimizer, gradients);
}
template <gpu_executor Executor, detail::parameter_list List, scale_policy Policy, std::size_t Events>
void sgd_step(const Executor& exec, const List& parameters, const sgd_options& options,
              device_optimizer<sgd_options>* optimizer, const Policy& policy,
              const device_loss_scale<Policy, Events>* scale, const float* clip_factor = nullptr) {
    detail::step_list(exec, parameters, options, optimizer, policy, scale, clip_factor);
}

}}  // namespace mp
