// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier on a GPU: softmax and cross entropy in one, the loss and its gradient in one
/// pass, also with the loss scale that lives on the device.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu_kernels.hpp>
#include <mp/nn/ops/softmax_cross_entropy/options.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// What gradients are multiplied by: the factors of the call, and the loss scale in device memory, if Scale
/// is not void.
template <class Scale = void>
struct device_loss_factors {
    ops::loss_factors factors;
    const Scale* scale = nullptr;

    /// The factors of the call alone, also from those without a scale on the device.
    device_loss_factors(const ops::loss_factors& of_call, const Scale* on_device = nullptr)
        : factors(of_call), scale(on_device) {}
};

template <class Scale>
void check_loss_factors(std::string_view function, const device_loss_factors<Scale>& factors) {
    check_loss_factors(function, factors.factors);
    if constexpr (!std::is_void_v<Scale>) {
        if (factors.scale == nullptr) {
            throw_argument(function, "scale", "null", "must be a device_loss_scale in device memory");
        }
    }
}

/// Enqueues the losses of the rows and their statistics where `results` has memory for them, and gradients
/// where `dlogits` has data: from saved statistics where there are any.
template <class Executor, class Logit, class Label, class Gradient, class Scale>
void launch_cross_entropy(const Executor& exec, matrix_view<const Logit> logits,
                          std::span<const Label> labels, const row_results<float>& results,
                          std::span<const ops::softmax_statistics> saved, matrix_view<Gradient> dlogits,
                          const device_loss_factors<Scale>& factors,
                          const ops::cross_entropy_options& options) {
    constexpr int width = row_chunk<Logit, Gradient>;
    constexpr std::string_view name = "mp::ops::softmax_cross_entropy";
    const double of_sum =
        static_cast<double>(factors.factors.weight) * static_cast<double>(factors.factors.scale);
    const double factor = of_sum / static_cast<double>(logits.rows);
    const ignored_label<Label> ignored(options);
    float* counted_factor = nullptr;
    if (ignored.exists && dlogits.data != nullptr) {
        counted_factor = take_workspace<float>(name, exec, 1);
        launch(name, exec,
               simt::launch_size{.shared_bytes = gpu::block_group<row_threads>::shared_bytes(row_threads)},
               counted_factor_kernel<Label>{labels.data(), counted_factor, logits.rows, of_sum, ignored});
    }
    with_row_group(logits.columns, [&](auto group) {
        using group_type = decltype(group);
        launch(name, exec, row_launch<group_type>(logits.rows),
               cross_entropy_kernel<group_type, Logit, Label, Gradient, Scale>{
                   rows_of<width>(logits), labels.data(),
                   results.losses.empty() ? nullptr : results.losses.data(),
                   results.statistics.empty() ? nullptr : results.statistics.data(),
                   saved.empty() ? nullptr : saved.data(), rows_of<width>(dlogits), logits.rows,
                   logits.columns, static_cast<float>(factor), counted_factor, factors.scale, ignored,
                   smoothed_labels(options, logits.columns)});
    });
}

/// Enqueues their mean.
template <class Executor, class Label, class Loss>
void launch_mean_loss(const Executor& exec, std::span<const float> losses, std::span<const Label> labels,
                      std::span<Loss> loss, float weight, const ops::cross_entropy_options& options) {
    launch("mp::ops::softmax_cross_entropy", exec,
           simt::launch_size{.shared_bytes = gpu::block_group<row_threads>::shared_bytes(row_threads)},
           mean_loss_kernel<Loss, Label>{losses.data(), labels.data(), loss.data(),
                                         static_cast<std::ptrdiff_t>(losses.size()), weight,
                                         ignored_label<Label>(options)});
}

/// cross_entropy_gradient() of the CPU, enqueued; Factors are those of the call, or with a scale on the
/// device.
template <gpu_executor Executor, class Logit, class Label, class Gradient, class Factors>
void cross_entropy_gradient(cross_entropy_rows, const Executor& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const Factors& factors, const ops::cross_entropy_options& options,
                            std::span<const ops::softmax_statistics> statistics) {
    launch_cross_entropy(exec, logits, labels, {}, statistics, dlogits, device_loss_factors(factors),
                         options);
}

/// cross_entropy_to() of the CPU, enqueued.
template <gpu_executor Executor, class Logit, class Label, class Loss>
void cross_entropy_to(cross_entropy_rows, const Executor& exec, matrix_view<const Logit> logits,
                      std::span<const Label> labels, std::span<Loss> loss, const row_results<float>& rows,
                      const ops::loss_factors& factors, const ops::cross_entropy_options& options) {
    launch_cross_entropy(exec, logits, labels, rows, {}, matrix_view<Logit>{}, device_loss_factors<>(factors),
                         options);
    launch_mean_loss<Executor, Label, Loss>(exec, rows.losses, labels, loss, factors.weight, options);
}
template <gpu_executor Executor, class Logit, class Label, class Loss, class Gradient, class Factors>
void cross_entropy_to(cross_entropy_rows, const Executor& exec, matrix_view<const Logit> logits,
                      std::span<const Label> labels, std::span<Loss> loss, const row_results<float>& rows,
                      const Factors& factors, const ops::cross_entropy_options& options,
                      matrix_view<Gradient> dlogits) {
    const device_loss_factors on_device(factors);
    launch_cross_entropy(exec, logits, labels, rows, {}, dlogits, on_device, options);
    launch_mean_loss<Executor, Label, Loss>(exec, rows.losses, labels, loss, on_device.factors.weight,
                                            options);
}

}}  // namespace mp::detail

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// softmax_cross_entropy_backward() with the loss scale that lives on the device: weight / batch, rounded to
/// float, times scale->current_scale(), rounded again; so powers of two give the bits of {.scale = ...}. The
/// host need not know the scale, and the launch can be captured into a graph. Throws argument_error for a
/// null scale, too.
///
///     mp::ops::softmax_cross_entropy_backward(stream, logits, labels, dlogits, scale.data(), 1.0F,
///                                             {.ignore_index = -100});
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels,
          matrix_result Gradient, scale_policy Scale, std::size_t Events>
void softmax_cross_entropy_backward(const Executor& exec, matrix_view<Logit> logits, const Labels& labels,
                                    const Gradient& dlogits, const device_loss_scale<Scale, Events>* scale,
                                    float weight = 1.0F, const cross_entropy_options& options = {},
                                    std::span<const softmax_statistics> statistics = {}) {
    autocast::call<Policy>(
        softmax_cross_entropy_backward_op{}, exec, detail::input_view(logits), detail::input_view(labels),
        detail::output_view(dlogits),
        detail::device_loss_factors<device_loss_scale<Scale, Events>>({.weight = weight}, scale), options,
        statistics);
}

/// softmax_cross_entropy_with_gradient() with the loss scale that lives on the device, as
/// softmax_cross_entropy_backward has it.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, dlogits,
///                                                  scale.data());
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels,
          matrix_result Gradient, scale_policy Scale, std::size_t Events>
void softmax_cross_entropy_with_gradient(const Executor& exec, matrix_view<Logit> logits,
                                         const Labels& labels, float* loss, std::span<float> row_losses,
                                         const Gradient& dlogits,
                                         const device_loss_scale<Scale, Events>* scale, float weight = 1.0F,
                                         const cross_entropy_options& options = {}) {
    autocast::call<Policy>(
        softmax_cross_entropy_with_gradient_op{}, exec, detail::input_view(logits),
        detail::input_view(labels), autocast::out(std::span<float>(loss, 1)),
        detail::row_results<float>{row_losses}, detail::output_view(dlogits),
        detail::device_loss_factors<device_loss_scale<Scale, Events>>({.weight = weight}, scale), options);
}

}}  // namespace mp::ops
