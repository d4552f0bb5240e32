// SPDX-License-Identifier: MIT
/// \file
/// Unscaling gradients on a GPU, with infinities and NaNs found and counted there.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp {

/// A gradient in device memory as the backward pass leaves it, and where it goes without its scale.
///
/// \tparam Gradient  float or a reduced format
template <class Gradient>
struct gpu_gradient {
    std::span<const Gradient> gradient = {};  ///< still scaled
    std::span<float> unscaled = {};           ///< as many values, or none: the gradient is only looked at
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The element type of the gradient of an item of a list.
template <class Item>
using gradient_of_item = std::remove_cvref_t<decltype(std::declval<const Item&>().gradient[0])>;

/// A contiguous range of items that have a span `gradient`: gpu_gradient, gpu_parameter, or your own.
template <class List>
concept gradient_list = contiguous<List> && requires(const std::remove_cv_t<contiguous_element<List>>& item) {
    { item.gradient.size() } -> std::convertible_to<std::size_t>;
    requires exact_in_float<gradient_of_item<std::remove_cv_t<contiguous_element<List>>>>;
};

template <gradient_list List>
using list_gradient = gradient_of_item<std::remove_cv_t<contiguous_element<List>>>;

template <class Gradient>
struct unscale_work : tensor_work {
    struct arrays {
        const Gradient* from;
        float* unscaled;
    };
    static constexpr int count = chunk_count<Gradient, float>;

    const float* inverse_scale;
    device_gradient_report* report;
    unsigned long long first_parameter;
    device_gradient_limit limit = {};

    struct thread_data : loads_one_array<Gradient> {
        bool active;
        float inverse_scale;
        float largest;
        unsigned long long first_parameter;
        unscale_findings found;

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t index, const chunk<Gradient, Count>& gradient,
                                                    int) {
            chunk<float, Count> result;
            for (int i = 0; i < Count; ++i) {
                result.values[i] = unscaled_value(gradient.values[i], inverse_scale);
            }
            if (tensor.arrays.unscaled != nullptr) {
                thread.store(chunk_at<Count>(tensor.arrays.unscaled + index), result);
            }
            found.look_at(result.values, first_parameter + tensor.number, index, largest);
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from, of.unscaled);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread& thread) const {
        return {{},
                true,
                inverse_scale == nullptr ? 1.0F : thread.load(inverse_scale),
                limit.largest(thread),
                first_parameter,
                {}};
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void end(const Thread& thread, const thread_data& mine,
                            unsigned long long elements) const {
        if (thread.block() == 0 && thread.index() == 0) thread.atomic_add(&report->checked, elements);
        add_to_report(thread, report, &report->excess, mine.found);
    }
};

/// Checks what all functions over lists of gradients check of each of them.
template <class Gradient>
void check_listed_gradient(std::string_view function, std::size_t index, std::size_t first_parameter,
                           std::span<const Gradient> gradient) {
    require_memory(function, tensor_text("gradients", index, "gradient.data()"), gradient.data(),
                   gradient.size());
    check_tensor_size(function, tensor_text("gradients", index, "gradient.size()"), gradient.size());
    check_gradient_location(function, first_parameter + index, gradient.size());
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies gradients in device memory by an inverse loss scale in device memory, and adds the infinities
/// and NaNs among the results to a report in device memory: one pass, and nothing that the host waits for.
///
/// unscaled[i] = float(gradients[i]) * *inverse_scale, rounded once, with the bits of
/// mp::unscale_and_check on a CPU (payloads of NaNs apart); with an inverse scale of exactly 1 the bits are
/// copied. The results are checked, bad ones included in what is written. Subnormal results survive nvcc's
/// -ftz=true. The report's counts and its first location do not depend on the order in which threads run; the
/// calls that share a report may run in several streams. Where both arrays are at the beginning of 16 bytes
/// for the same element, all but a few elements at the ends move in accesses of 16 bytes of the wider type.
///
/// \param exec           mp::cuda_stream or mp::simulated_gpu
/// \param gradients      device_buffer or span of device memory, of float or of a reduced format
/// \param unscaled       the same of float, of the same size; the same memory as `gradients` if that is
///                       float, and otherwise without overlap
/// \param inverse_scale  one float in device memory, greater than 0; see device_loss_scale
/// \param report         one report in device memory; never reset here
/// \param parameter      number of this array for the report's first location, less than 2^20
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, null inverse scale or
///                         report, or a number or size that a location cannot hold
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, detail::gradient_range Gradients, detail::writable_float_range Unscaled>
void unscale_and_check(const Executor& exec, const Gradients& gradients, Unscaled&& unscaled,
                       const float* inverse_scale, device_gradient_report* report,
                       std::size_t parameter = 0) {
    using gradient = detail::element_value<const Gradients>;
    const std::span<const gradient> in = detail::as_span(gradients);
    const std::span<float> out = detail::as_span(unscaled);
    constexpr std::string_view function = "mp::unscale_and_check";
    static_cast<void>(detail::check_unscale_arrays(function, in, out));
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    detail::check_gradient_location(function, parameter, in.size());
    detail::check_tensor_size(function, "gradients.size()", in.size());
    using work = detail::unscale_work<gradient>;
    detail::run_over_tensors(function, exec, work{{}, inverse_scale, report, parameter}, 1,
                             [&](std::size_t, typename work::arrays& arrays, std::size_t& size) {
                                 arrays = {in.data(), out.data()};
                                 size = in.size();
                             });
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory.
template <gpu_executor Executor, detail::gradient_range Gradients, detail::writable_float_range Unscaled,
          scale_policy Policy, std::size_t Events>
void unscale_and_check(const Executor& exec, const Gradients& gradients, Unscaled&& unscaled,
                       device_loss_scale<Policy, Events>* scale, std::size_t parameter = 0) {
    detail::require_memory("mp::unscale_and_check", "scale", scale, 1);
    unscale_and_check(exec, gradients, unscaled, &scale->inverse_scale, &scale->seen, parameter);
}

/// Overload for a list of gradients of different sizes, in one launch for every hundred of them: the report
/// has the number of a gradient in the list as its first parameter, plus `first_parameter`. Gradients without
/// room for results are only looked at; see check_gradients.
///
///     const std::vector<mp::gpu_gradient<mp::half>> list{{w1.scaled, w1.gradient}, {w2.scaled,
///     w2.gradient}}; mp::unscale_and_check(stream, list, scale.data());
///
/// The list is the host's, and read before this returns. Arrays may not overlap, except for `unscaled` with a
/// float `gradient` of the same item where they are the same memory.
template <gpu_executor Executor, detail::contiguous List>
    requires requires(const List& list) { detail::as_span(list)[0].unscaled; } &&
             detail::gradient_list<const List>
void unscale_and_check(const Executor& exec, const List& gradients, const float* inverse_scale,
                       device_gradient_report* report, std::size_t first_parameter = 0) {
    using gradient = detail::list_gradient<const List>;
    constexpr std::string_view function = "mp::unscale_and_check";
    const auto list = detail::as_span(gradients);
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::span<const gradient> in = list[i].gradient;
        detail::check_listed_gradient(function, i, first_parameter, in);
        if (list[i].unscaled.empty()) continue;
        static_cast<void>(detail::check_unscale_arrays(function, in, std::span<float>(list[i].unscaled)));
    }
    using work = detail::unscale_work<gradient>;
    detail::run_over_tensors(function, exec, work{{}, inverse_scale, report, first_parameter}, list.size(),
                             [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                                 arrays = {list[i].gradient.data(), list[i].unscaled.data()};
                                 size = list[i].gradient.size();
                             });
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory.
template <gpu_executor Executor, detail::contiguous List, scale_policy Policy, std::size_t Events>
    requires requires(const List& list) { detail::as_span(list)[0].unscaled; } &&
             detail::gradient_list<const List>
void unscale_and_check(const Executor& exec, const List& gradients, device_loss_scale<Policy, Events>* scale,
                       std::size_t first_parameter = 0) {
    detail::require_memory("mp::unscale_and_check", "scale", scale, 1);
    unscale_and_check(exec, gradients, &scale->inverse_scale, &scale->seen, first_parameter);
}

/// The report that unscale_and_check would give on a list, without writing anything: for optimizers that take
/// the scale out themselves, such as adamw_step.
///
/// \param gradients      contiguous range of gpu_gradient, gpu_parameter or anything else with a span
///                       `gradient` of device memory
/// \param inverse_scale  one float in device memory, or null for 1
/// \param limit          finite gradients above it have the step skipped: the gradient_limit() of an optimizer
template <gpu_executor Executor, detail::gradient_list List>
void check_gradients(const Executor& exec, const List& gradients, const float* inverse_scale,
                     device_gradient_report* report, std::size_t first_parameter = 0,
                     const device_gradient_limit& limit = {}) {
    using gradient = detail::list_gradient<const List>;
    constexpr std::string_view function = "mp::check_gradients";
    const auto list = detail::as_span(gradients);
    detail::require_memory(function, "report", report, 1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        detail::check_listed_gradient(function, i, first_parameter,
                                      std::span<const gradient>(list[i].gradient));
    }
    using work = detail::unscale_work<gradient>;
    detail::run_over_tensors(function, exec, work{{}, inverse_scale, report, first_parameter, limit},
                             list.size(),
                             [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                                 arrays = {list[i].gradient.data(), nullptr};
                                 size = list[i].gradient.size();
                             });
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory.
template <gpu_executor Executor, detail::gradient_list List, scale_policy Policy, std::size_t Events>
void check_gradients(const Executor& exec, const List& gradients, device_loss_scale<Policy, Events>* scale,
                     std::size_t first_parameter = 0, const device_gradient_limit& limit = {}) {
    detail::require_memory("mp::check_gradients", "scale", scale, 1);
    check_gradients(exec, gradients, &scale->inverse_scale, &scale->seen, first_parameter, limit);
}

}}  // namespace mp
