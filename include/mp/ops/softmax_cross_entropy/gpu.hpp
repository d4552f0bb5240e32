// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier on a GPU: softmax and cross entropy in one, the loss and its gradient in one
/// pass.
#pragma once

#include <mp/autocast/dispatch.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/gpu/device_loss_scale.hpp>
#include <mp/gpu/row_access.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/arguments.hpp>
#include <mp/ops/gpu_casts.hpp>
#include <mp/ops/loss_factors.hpp>
#include <mp/ops/softmax/gpu.hpp>
#include <mp/ops/softmax/gpu_sum.hpp>
#include <mp/ops/softmax_cross_entropy.hpp>
#include <mp/rules/float_functions.hpp>
#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <array>
#include <concepts>
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
                    const float_float distance = exact_distance(logit, total.largest);
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
            const float_float inverse = reciprocal(total.sum);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, logits, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float_float distance = exact_distance(values.values[i], total.largest);
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
template <class Loss>
struct mean_loss_kernel {
    static constexpr int threads = row_threads;
    const float* losses;
    Loss* mean;
    std::ptrdiff_t rows;
    float weight;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        float_float sum{};
        for (std::ptrdiff_t row = thread.index(); row < rows; row += threads) {
            sum = sum + thread.load(losses + row);
        }
        sum = gpu::block_reduce<threads>(thread, sum, add_pairs{}, simt::shared_pointer<float_float>{});
        if (thread.index() != 0) return;
        const float result = float_divide(sum.value(), static_cast<float>(rows));
        thread.store(mean, static_cast<Loss>(float_multiply(result, weight)));
    }
};

/// What gradients are multiplied by: the factors of the call, and the loss scale in device memory, if Scale
/// is not void.
template <class Scale = void>
struct device_loss_factors {
    ops::loss_factors factors;
    const Scale* scale = nullptr;
};

/// Device memory for the losses of the rows; autocast leaves it alone.
struct row_losses {
    std::span<float> memory;
};

/// Enqueues the losses of the rows where `losses` is not null, and gradients where `dlogits` has data.
template <class Executor, class Logit, class Label, class Gradient, class Scale>
void launch_cross_entropy(const Executor& exec, matrix_view<const Logit> logits,
                          std::span<const Label> labels, float* losses, matrix_view<Gradient> dlogits,
                          const device_loss_factors<Scale>& factors) {
    constexpr int width = row_chunk<Logit, Gradient>;
    const double factor = static_cast<double>(factors.factors.weight) *
                          static_cast<double>(factors.factors.scale) / static_cast<double>(logits.rows);
    with_row_group(logits.columns, [&](auto group) {
        using group_type = decltype(group);
        launch("mp::ops::softmax_cross_entropy", exec, row_launch<group_type>(logits.rows),
               cross_entropy_kernel<group_type, Logit, Label, Gradient, Scale>{
                   rows_of<width>(logits), labels.data(), losses, rows_of<width>(dlogits), logits.rows,
                   logits.columns, static_cast<float>(factor), factors.scale});
    });
}

/// Enqueues their mean.
template <class Executor, class Loss>
void launch_mean_loss(const Executor& exec, std::span<const float> losses, std::span<Loss> loss,
                      float weight) {
    launch("mp::ops::softmax_cross_entropy", exec,
           simt::launch_size{.shared_bytes = gpu::block_group<row_threads>::shared_bytes(row_threads)},
           mean_loss_kernel<Loss>{losses.data(), loss.data(), static_cast<std::ptrdiff_t>(losses.size()),
                                  weight});
}

/// cross_entropy_gradient() of the CPU, enqueued.
template <gpu_executor Executor, class Logit, class Label, class Gradient>
void cross_entropy_gradient(cross_entropy_rows, const Executor& exec, matrix_view<const Logit> logits,
                            std::span<const Label> labels, matrix_view<Gradient> dlogits,
                            const ops::loss_factors& factors) {
    launch_cross_entropy(exec, logits, labels, nullptr, dlogits, device_loss_factors<>{factors});
}

template <class Scale>
void check_device_factors(std::string_view function, const device_loss_factors<Scale>& factors) {
    check_loss_factors(function, factors.factors);
    if constexpr (!std::is_void_v<Scale>) {
        if (factors.scale == nullptr) {
            throw_argument(function, "scale", "null", "must be a device_loss_scale in device memory");
        }
    }
}

/// Checks where the losses go.
inline void check_losses(std::string_view function, const named_operand& loss, const named_operand& losses,
                         const named_operand& logits) {
    if (loss.extent.address == 0) {
        throw_argument(function, "loss", "null", "must be a float in device memory");
    }
    check_size(function, losses, logits.extent.rows, "logits.rows");
    check_separate(function, losses, logits);
}

template <class Label>
void check_logits_and_labels(std::string_view function, const gpu_executor auto& exec,
                             const named_operand& logits, std::span<const Label> labels) {
    check_logits(function, logits);
    check_labels(function, exec, logits, labels);
}
inline void check_dlogits(std::string_view function, const named_operand& dlogits,
                          const named_operand& logits) {
    check_shape(function, dlogits, logits.extent.rows, "logits.rows", logits.extent.columns,
                "logits.columns");
    check_separate_or_same(function, dlogits, logits);
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::ops::inline MP_ISA_NAMESPACE {

/// Tag of softmax_cross_entropy() on a GPU, whose loss stays there.
struct softmax_cross_entropy_on_device_op {
    static constexpr std::string_view name = "softmax_cross_entropy";
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 6> argument_names = {"exec", "logits",     "labels",
                                                                       "loss", "row_losses", "factors"};
    static constexpr auto category = softmax_cross_entropy_op::category;
    static constexpr bool computes_in_float = true;

    template <class Label>
    static void validate(const auto& exec, const auto& logits, std::span<const Label> labels,
                         const auto& loss, const detail::row_losses& rows, const loss_factors& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy";
        const auto input = detail::named("logits", logits);
        detail::check_logits_and_labels(function, exec, input, labels);
        detail::check_loss_factors(function, factors);
        detail::check_losses(function, detail::named("loss", loss), detail::named("row_losses", rows.memory),
                             input);
    }

    template <gpu_executor Executor, element Logit, std::integral Label, element Loss>
    void operator()(const Executor& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                    std::span<Loss> loss, const detail::row_losses& rows, const loss_factors& factors) const {
        detail::launch_cross_entropy(exec, logits, labels, rows.memory.data(), matrix_view<Logit>{},
                                     detail::device_loss_factors<>{factors});
        detail::launch_mean_loss<Executor, Loss>(exec, rows.memory, loss, factors.weight);
    }
};

/// The mean cross entropy of softmax(logits) and labels on a GPU, as softmax_cross_entropy() on the CPU, into
/// *loss; the losses of the rows go into row_losses, of logits.rows floats. All of it is device memory, and
/// what is written overlaps nothing.
///
/// A row's loss has an error of 2^-21 of itself or 2^-21, whichever is larger; the mean is the exact one of
/// the rows' losses, rounded, and in the same order whatever the device. Labels cannot be checked before the
/// launch: a row whose label is no column has the loss NaN, and then so is the mean. Layouts are as for
/// softmax(). Other errors are those of softmax_cross_entropy() on the CPU, and a null loss or row_losses of
/// another size.
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels>
void softmax_cross_entropy(const Executor& exec, matrix_view<Logit> logits, const Labels& labels, float* loss,
                           std::span<float> row_losses, const loss_factors& factors = {}) {
    autocast::call<Policy>(softmax_cross_entropy_on_device_op{}, exec, detail::input_view(logits),
                           detail::input_view(labels), autocast::out(std::span<float>(loss, 1)),
                           detail::row_losses{row_losses}, factors);
}

/// Tag of softmax_cross_entropy_backward() with a loss scale in device memory.
struct softmax_cross_entropy_backward_on_device_op {
    static constexpr std::string_view name = "softmax_cross_entropy_backward";
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 5> argument_names = {"exec", "logits", "labels", "dlogits",
                                                                       "scale"};
    static constexpr auto category = softmax_cross_entropy_op::category;
    static constexpr bool computes_in_float = true;

    template <class Label, class Scale>
    static void validate(const auto& exec, const auto& logits, std::span<const Label> labels,
                         const auto& dlogits, const detail::device_loss_factors<Scale>& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy_backward";
        const auto input = detail::named("logits", logits);
        detail::check_logits_and_labels(function, exec, input, labels);
        detail::check_device_factors(function, factors);
        detail::check_dlogits(function, detail::named("dlogits", dlogits), input);
    }

    template <gpu_executor Executor, element Logit, std::integral Label, element Gradient, class Scale>
    void operator()(const Executor& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                    matrix_view<Gradient> dlogits, const detail::device_loss_factors<Scale>& factors) const {
        detail::launch_cross_entropy(exec, logits, labels, nullptr, dlogits, factors);
    }
};

/// softmax_cross_entropy_backward() with the loss scale that lives on the device: weight / batch, rounded to
/// float, times scale->current_scale(), rounded again; so powers of two give the bits of {.scale = ...}. The
/// host need not know the scale, and the launch can be captured into a graph. Throws argument_error for a
/// null scale, too.
///
///     mp::ops::softmax_cross_entropy_backward(stream, logits, labels, dlogits, scale.data());
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels,
          element Gradient, scale_policy Scale, std::size_t Events>
void softmax_cross_entropy_backward(const Executor& exec, matrix_view<Logit> logits, const Labels& labels,
                                    matrix_view<Gradient> dlogits,
                                    const device_loss_scale<Scale, Events>* scale, float weight = 1.0F) {
    autocast::call<Policy>(
        softmax_cross_entropy_backward_on_device_op{}, exec, detail::input_view(logits),
        detail::input_view(labels), detail::output_view(dlogits),
        detail::device_loss_factors<device_loss_scale<Scale, Events>>{{.weight = weight}, scale});
}

/// Tag of softmax_cross_entropy_with_gradient().
struct softmax_cross_entropy_with_gradient_op {
    static constexpr std::string_view name = "softmax_cross_entropy_with_gradient";
    using forward_op = softmax_cross_entropy_op;
    static constexpr std::array<std::string_view, 7> argument_names = {
        "exec", "logits", "labels", "loss", "row_losses", "dlogits", "factors"};
    static constexpr auto category = softmax_cross_entropy_op::category;
    static constexpr bool computes_in_float = true;

    template <class Label, class Scale>
    static void validate(const auto& exec, const auto& logits, std::span<const Label> labels,
                         const auto& loss, const detail::row_losses& rows, const auto& dlogits,
                         const detail::device_loss_factors<Scale>& factors) {
        constexpr std::string_view function = "mp::ops::softmax_cross_entropy_with_gradient";
        const auto input = detail::named("logits", logits);
        const auto losses = detail::named("row_losses", rows.memory);
        const auto result = detail::named("dlogits", dlogits);
        detail::check_logits_and_labels(function, exec, input, labels);
        detail::check_device_factors(function, factors);
        detail::check_losses(function, detail::named("loss", loss), losses, input);
        detail::check_dlogits(function, result, input);
        detail::check_separate(function, result, losses);
    }

    template <gpu_executor Executor, element Logit, std::integral Label, element Loss, element Gradient,
              class Scale>
    void operator()(const Executor& exec, matrix_view<const Logit> logits, std::span<const Label> labels,
                    std::span<Loss> loss, const detail::row_losses& rows, matrix_view<Gradient> dlogits,
                    const detail::device_loss_factors<Scale>& factors) const {
        detail::launch_cross_entropy(exec, logits, labels, rows.memory.data(), dlogits, factors);
        detail::launch_mean_loss<Executor, Loss>(exec, rows.memory, loss, factors.factors.weight);
    }
};

/// Both in one pass over the logits: *loss, the losses of the rows and dlogits, with the bits of
/// softmax_cross_entropy_backward() on this executor, and of softmax_cross_entropy() where dlogits has the
/// format of the logits. The loss carries no scale.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, logits,
///                                                  {.scale = 1024});  // over the logits
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels,
          element Gradient>
void softmax_cross_entropy_with_gradient(const Executor& exec, matrix_view<Logit> logits,
                                         const Labels& labels, float* loss, std::span<float> row_losses,
                                         matrix_view<Gradient> dlogits, const loss_factors& factors = {}) {
    autocast::call<Policy>(softmax_cross_entropy_with_gradient_op{}, exec, detail::input_view(logits),
                           detail::input_view(labels), autocast::out(std::span<float>(loss, 1)),
                           detail::row_losses{row_losses}, detail::output_view(dlogits),
                           detail::device_loss_factors<>{factors});
}

/// The same with the loss scale that lives on the device, as softmax_cross_entropy_backward has it.
///
///     mp::ops::softmax_cross_entropy_with_gradient(stream, logits, labels, loss, row_losses, dlogits,
///                                                  scale.data());
template <class Policy = autocast::by_region, gpu_executor Executor, element Logit, detail::contiguous Labels,
          element Gradient, scale_policy Scale, std::size_t Events>
void softmax_cross_entropy_with_gradient(const Executor& exec, matrix_view<Logit> logits,
                                         const Labels& labels, float* loss, std::span<float> row_losses,
                                         matrix_view<Gradient> dlogits,
                                         const device_loss_scale<Scale, Events>* scale, float weight = 1.0F) {
    autocast::call<Policy>(
        softmax_cross_entropy_with_gradient_op{}, exec, detail::input_view(logits),
        detail::input_view(labels), autocast::out(std::span<float>(loss, 1)), detail::row_losses{row_losses},
        detail::output_view(dlogits),
        detail::device_loss_factors<device_loss_scale<Scale, Events>>{{.weight = weight}, scale});
}

}  // namespace mp::ops::inline MP_ISA_NAMESPACE
