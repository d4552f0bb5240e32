// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier on a GPU: softmax and cross entropy in one, the loss and its gradient in one
/// pass.
#pragma once

#include <mp/detail/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/gpu/device_loss_scale.hpp>
#include <mp/gpu/row_access.hpp>
#include <mp/gpu/softmax.hpp>
#include <mp/gpu/softmax_sum.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/loss_factors.hpp>
#include <mp/ops/softmax_cross_entropy.hpp>
#include <mp/rules/float_functions.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The losses of the rows, and their gradients where they are wanted. Scale is void, or a loss scale that
/// lives on the device.
template <class Group, class Logit, class Label, class Gradient, class Scale>
struct cross_entropy_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Logit, Gradient>;
    row_matrix<const Logit> logits;
    const Label* labels;
    float* losses;                 ///< null where they are not wanted
    row_matrix<Gradient> dlogits;  ///< without data where they are not wanted
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    float factor;  ///< of the gradients
    const Scale* scale;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr bool exact = shows_float_rounding<Gradient>;
        float scaled_factor = factor;
        if constexpr (!std::is_void_v<Scale>) {
            scaled_factor = float_multiply(factor, scale->current_scale());
        }
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const softmax_sum total = sum_of_exponentials<Group, width, exact>(thread, logits, row, columns);
            // As an unsigned number, a negative label is too large as well.
            const auto label = static_cast<std::uint64_t>(thread.load(labels + row));
            const bool defined = total.defined && label < static_cast<std::uint64_t>(columns);
            if (losses != nullptr && Group::rank(thread) == 0) {
                float loss = float_quiet_nan();
                if (defined) {
                    const float logit = static_cast<float>(thread.load(
                        logits.data + (row * logits.row_stride +
                                       static_cast<std::ptrdiff_t>(label) * logits.column_stride)));
                    const double_float distance = exact_distance(logit, total.largest);
                    loss = float_subtract(float_subtract(float_logarithm(total.sum), distance.low),
                                          distance.high);
                }
                thread.store(losses + row, loss);
            }
            if (dlogits.data == nullptr) continue;
            // The row may be written over, so the loss has to be known before.
            if constexpr (Group::size > simt::warp_size) {
                thread.sync_block();
            } else {
                thread.sync_warp();
            }
            const double_float inverse = reciprocal(total.sum);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, logits, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const double_float distance = exact_distance(values.values[i], total.largest);
                    float result =
                        product(float_exponential(distance.high, exact ? distance.low : 0.0F), inverse);
                    const bool is_label = static_cast<std::uint64_t>(c + i) == label;
                    result = is_label ? float_subtract(result, 1.0F) : result;
                    values.values[i] = defined ? float_multiply(result, scaled_factor) : float_quiet_nan();
                }
                store_row_floats(thread, dlogits, row, c, columns, values);
            }
        }
    }
};

/// The mean of the losses times the weight, by one block.
struct mean_loss_kernel {
    static constexpr int threads = row_threads;
    const float* losses;
    float* mean;
    std::ptrdiff_t rows;
    float weight;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        double_float sum{};
        for (std::ptrdiff_t row = thread.index(); row < rows; row += threads) {
            sum = sum + thread.load(losses + row);
        }
        sum = gpu::block_reduce<threads>(thread, sum, add_pairs{}, simt::shared_pointer<double_float>{});
        if (thread.index() != 0) return;
        const float result = float_divide(sum.value(), static_cast<float>(rows));
        thread.store(mean, float_multiply(result, weight));
    }
};

/// The checks that need no labels: those lie in device memory.
template <class Logit, class Label>
void check_cross_entropy(std::string_view function, matrix_view<const Logit> logits,
                         std::span<const Label> labels, const ops::loss_factors& factors) {
    const auto input = named("logits", logits);
    check_logits(function, input);
    check_size(function, named("labels", labels), input.extent.rows, "logits.rows");
    check_loss_factors(function, factors);
}

template <class Executor, class Logit, class Label, class Gradient, class Scale = void>
void launch_cross_entropy(std::string_view function, Executor exec, matrix_view<const Logit> logits,
                          std::span<const Label> labels, float* losses, matrix_view<Gradient> dlogits,
                          const ops::loss_factors& factors, const Scale* scale = nullptr) {
    constexpr int width = row_chunk<Logit, Gradient>;
    const double factor = static_cast<double>(factors.weight) * static_cast<double>(factors.scale) /
                          static_cast<double>(logits.rows);
    with_row_group(logits.columns, [&](auto group) {
        using group_type = decltype(group);
        launch(function, exec, row_launch<group_type>(logits.rows),
               cross_entropy_kernel<group_type, Logit, Label, Gradient, Scale>{
                   rows_of<width>(logits), labels.data(), losses, rows_of<width>(dlogits), logits.rows,
                   logits.columns, static_cast<float>(factor), scale});
    });
}

/// Checks where the losses go, and enqueues their mean.
inline void check_loss(std::string_view function, const float* loss, std::span<float> row_losses,
                       std::ptrdiff_t rows, const named_operand& logits) {
    if (loss == nullptr) throw_argument(function, "loss", "null", "must be a float in device memory");
    const auto losses = named("row_losses", row_losses);
    check_size(function, losses, rows, "logits.rows");
    check_separate(function, losses, logits);
}
template <class Executor>
void launch_mean_loss(std::string_view function, Executor exec, std::span<const float> row_losses,
                      float* loss, float weight) {
    launch(function, exec,
           simt::launch_size{.shared_bytes = gpu::block_group<row_threads>::shared_bytes(row_threads)},
           mean_loss_kernel{row_losses.data(), loss, static_cast<std::ptrdiff_t>(row_losses.size()), weight});
}

/// The gradient, and the losses as well where `loss` is not null: what both functions below check and
/// enqueue.
template <class Executor, class Logit, class Label, class Gradient, class Scale = void>
void run_cross_entropy_backward(std::string_view function, Executor exec, matrix_view<const Logit> logits,
                                std::span<const Label> labels, float* loss, std::span<float> row_losses,
                                matrix_view<Gradient> dlogits, const ops::loss_factors& factors,
                                const Scale* scale = nullptr) {
    check_cross_entropy(function, logits, labels, factors);
    if constexpr (!std::is_void_v<Scale>) {
        if (scale == nullptr) {
            throw_argument(function, "scale", "null", "must be a device_loss_scale in device memory");
        }
    }
    const auto result = named("dlogits", dlogits);
    check_shape(function, result, logits.rows, "logits.rows", logits.columns, "logits.columns");
    check_separate_or_same(function, result, named("logits", logits));
    if (loss != nullptr) check_separate(function, result, named("row_losses", row_losses));
    launch_cross_entropy(function, exec, logits, labels, loss == nullptr ? nullptr : row_losses.data(),
                         dlogits, factors, scale);
    if (loss != nullptr) launch_mean_loss(function, exec, row_losses, loss, factors.weight);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// The mean cross entropy of softmax(logits) and labels on a GPU, as softmax_cross_entropy() on the CPU, into
/// *loss; the losses of the rows go into row_losses, of logits.rows floats. All of it is device memory, and
/// what is written overlaps nothing.
///
/// A row's loss has an error of 2^-21 of itself or 2^-21, whichever is larger; the mean is the exact one of
/// the rows' losses, rounded, and in the same order whatever the device. Labels cannot be checked before the
/// launch: a row whose label is no column has the loss NaN, and then so is the mean. Layouts are as for
/// softmax(). Other errors are those of softmax_cross_entropy() on the CPU, and a null loss or row_losses of
/// another size.
template <gpu_executor Executor, element Logit, detail::contiguous Labels>
void softmax_cross_entropy(Executor exec, matrix_view<Logit> logits, const Labels& labels, float* loss,
                           std::span<float> row_losses, const loss_factors& factors = {}) {
    constexpr std::string_view function = "mp::ops::softmax_cross_entropy";
    const auto in = detail::input_view(logits);
    const auto of_rows = detail::input_view(labels);
    detail::check_cross_entropy(function, in, of_rows, factors);
    detail::check_loss(function, loss, row_losses, logits.rows, detail::named("logits", in));
    detail::launch_cross_entropy(function, exec, in, of_rows, row_losses.data(),
                                 matrix_view<std::remove_const_t<Logit>>{}, factors);
    detail::launch_mean_loss(function, exec, row_losses, loss, factors.weight);
}

/// The gradient of softmax_cross_entropy() with respect to the logits, times the loss scale, on a GPU, as
/// softmax_cross_entropy_backward() on the CPU; dlogits may be logits.
///
/// Computed in float: with p = softmax(logits), the error is 2^-21 p weight scale / batch, and for the column
/// of the label 2^-21 weight scale / batch. A row whose label is no column is all NaN.
template <gpu_executor Executor, element Logit, detail::contiguous Labels, element Gradient>
void softmax_cross_entropy_backward(Executor exec, matrix_view<Logit> logits, const Labels& labels,
                                    matrix_view<Gradient> dlogits, const loss_factors& factors = {}) {
    detail::run_cross_entropy_backward("mp::ops::softmax_cross_entropy_backward", exec,
                                       detail::input_view(logits), detail::input_view(labels), nullptr, {},
                                       dlogits, factors);
}

/// The same with the loss scale that lives on the device: weight / batch, rounded to float, times
/// scale->current_scale(), rounded again; so powers of two give the bits of {.scale = ...} above. The host
/// need not know the scale, and the launch can be captured into a graph. Throws argument_error for a null
/// scale, too.
///
///     mp::ops::softmax_cross_entropy_backward(stream, logits, labels, dlogits, scale.data());
template <gpu_executor Executor, element Logit, detail::contiguous Labels, element Gradient,
          scale_policy Policy, std::size_t Events>
void softmax_cross_entropy_backward(Executor exec, matrix_view<Logit> logits, const Labels& labels,
                                    matrix_view<Gradient> dlogits,
                                    const device_loss_scale<Policy, Events>* scale, float weight = 1.0F) {
    detail::run_cross_entropy_backward("mp::ops::softmax_cross_entropy_backward", exec,
                                       detail::input_view(logits), detail::input_view(labels), nullptr, {},
                                       dlogits, {.weight = weight}, scale);
}

/// Both in one pass over the logits: *loss, the losses of the rows and dlogits, with the bits of
/// softmax_cross_entropy_backward() on this executor, and of softmax_cross_entropy() where dlogits has the
/// format of the logits. The loss carries no scale.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, logits,
///                                                  {.scale = 1024});  // over the logits
template <gpu_executor Executor, element Logit, detail::contiguous Labels, element Gradient>
void softmax_cross_entropy_with_gradient(Executor exec, matrix_view<Logit> logits, const Labels& labels,
                                         float* loss, std::span<float> row_losses,
                                         matrix_view<Gradient> dlogits, const loss_factors& factors = {}) {
    constexpr std::string_view function = "mp::ops::softmax_cross_entropy_with_gradient";
    const auto in = detail::input_view(logits);
    detail::check_loss(function, loss, row_losses, logits.rows, detail::named("logits", in));
    detail::run_cross_entropy_backward(function, exec, in, detail::input_view(labels), loss, row_losses,
                                       dlogits, factors);
}

/// The same with the loss scale that lives on the device, as softmax_cross_entropy_backward has it.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, dlogits,
///                                                  scale.data());
template <gpu_executor Executor, element Logit, detail::contiguous Labels, element Gradient,
          scale_policy Policy, std::size_t Events>
void softmax_cross_entropy_with_gradient(Executor exec, matrix_view<Logit> logits, const Labels& labels,
                                         float* loss, std::span<float> row_losses,
                                         matrix_view<Gradient> dlogits,
                                         const device_loss_scale<Policy, Events>* scale,
                                         float weight = 1.0F) {
    constexpr std::string_view function = "mp::ops::softmax_cross_entropy_with_gradient";
    const auto in = detail::input_view(logits);
    detail::check_loss(function, loss, row_losses, logits.rows, detail::named("logits", in));
    detail::run_cross_entropy_backward(function, exec, in, detail::input_view(labels), loss, row_losses,
                                       dlogits, {.weight = weight}, scale);
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
