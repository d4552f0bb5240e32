// SPDX-License-Identifier: MIT
/// \file
/// Clipping gradients on a GPU where they lie, by a factor that the device has found itself.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The values of an item that clipping changes: those without a scale of a gpu_gradient, or the item itself.
template <class Item>
auto clipped_values(const Item& item) {
    if constexpr (requires { item.unscaled; }) {
        return as_span(item.unscaled);
    } else {
        return as_span(item);
    }
}

template <class Item>
using clipped_value = typename decltype(clipped_values(std::declval<const Item&>()))::element_type;

/// A contiguous range of such items.
template <class List>
concept clipped_list = contiguous<List> && requires(const std::remove_cv_t<contiguous_element<List>>& item) {
    clipped_values(item);
    requires exact_in_float<clipped_value<std::remove_cv_t<contiguous_element<List>>>>;
    requires !std::is_const_v<clipped_value<std::remove_cv_t<contiguous_element<List>>>>;
};

template <class Value, class Skip>
struct clip_work : tensor_work {
    struct arrays {
        Value* from;
    };
    static constexpr int count = chunk_count<Value, Value>;

    Skip skip;
    const float* clip_factor;

    struct thread_data : loads_one_array<Value> {
        bool active;
        float factor;

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t index, const chunk<Value, Count>& values,
                                                    int) const {
            chunk<Value, Count> results;
            for (int i = 0; i < Count; ++i) {
                results.values[i] = Value(float_multiply(static_cast<float>(values.values[i]), factor));
            }
            thread.store(chunk_at<Count>(tensor.arrays.from + index), results);
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread& thread) const {
        const float factor = thread.load(clip_factor);
        return {{}, !same_value(factor, 1.0F) && !skip(), factor};
    }
};

template <class Executor, class List, class Skip>
void run_clip(const Executor& exec, const List& gradients, const Skip& skip, const float* clip_factor) {
    using value = clipped_value<std::remove_cv_t<contiguous_element<const List>>>;
    constexpr std::string_view function = "mp::clip_gradients";
    const auto list = as_span(gradients);
    require_memory(function, "clip_factor", clip_factor, 1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::span<value> values = clipped_values(list[i]);
        require_memory(function, tensor_text("gradients", i, "data()"), values.data(), values.size());
        check_tensor_size(function, tensor_text("gradients", i, "size()"), values.size());
    }
    using work = clip_work<value, Skip>;
    run_over_tensors(function, exec, work{{}, skip, clip_factor}, list.size(),
                     [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                         const std::span<value> values = clipped_values(list[i]);
                         arrays = {values.data()};
                         size = values.size();
                     });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies gradients where they lie by the clip factor that gradient_norm has left in device memory: for
/// those who look at clipped gradients or have an optimizer of their own, since adamw_step and sgd_step take
/// the factor along. One pass over a list of tensors, a launch for every hundred of them, and nothing that
/// the host waits for: it may be captured into a graph.
///
/// Where the factor is 1, which it is for gradients that are not too long and for those with an infinity or
/// NaN, and where the report has found one, no gradient is loaded and nothing is stored. Otherwise each float
/// has the bits of optimizer_base::clip_gradient_norm on a CPU, the product rounded once and subnormal
/// results kept; numbers of a reduced format are multiplied as floats and then rounded to nearest even.
///
///     mp::unscale_and_check(stream, list, scale.data());
///     mp::gradient_norm(stream, list, &scale.data()->inverse_scale, workspace.span(), norm.data(), 1.0);
///     mp::clip_gradients(stream, list, &norm.data()->clip_factor, &scale.data()->seen);
///
/// \param exec         mp::cuda_stream or mp::simulated_gpu
/// \param gradients    contiguous range of gpu_gradient, whose `unscaled` is clipped, or of spans of device
///                     memory of float or a reduced format; the host's, and read before this returns
/// \param clip_factor  one float in device memory; see device_gradient_norm
/// \param report       one report in device memory; null: there is always a step
/// \throws argument_error  a gradient is null but not empty or too large; clip_factor is null
/// \throws cuda_error  a launch failed
template <gpu_executor Executor, detail::clipped_list List>
void clip_gradients(const Executor& exec, const List& gradients, const float* clip_factor,
                    const device_gradient_report* report = nullptr) {
    detail::run_clip(exec, gradients, detail::skip_by_report{report}, clip_factor);
}

/// Overload for steps that the policy of a device_loss_scale decides about: nothing is touched where it skips
/// the step.
template <gpu_executor Executor, detail::clipped_list List, scale_policy Policy, std::size_t Events>
void clip_gradients(const Executor& exec, const List& gradients, const Policy& policy,
                    const device_loss_scale<Policy, Events>* scale, const float* clip_factor) {
    detail::require_memory("mp::clip_gradients", "scale", scale, 1);
    policy.validate();
    detail::run_clip(exec, gradients, detail::skip_by_policy<Policy, Events>{detail::rules_of(policy), scale},
                     clip_factor);
}

}}  // namespace mp
