// SPDX-License-Identifier: MIT
/// \file
/// The loss of a classifier on a GPU: softmax and cross entropy in one, the loss and its gradient in one
/// pass, also with the loss scale that lives on the device.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/error.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/autocast/dispatch.hpp>
#include <mp/nn/ops/arguments.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/loss_factors.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/nn/ops/softmax_cross_entropy/arguments.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>
#include <mp/numbers/rules/row_statistics.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The label of rows that do not count, if there is one.
template <class Label>
struct ignored_label {
    Label label{};
    bool exists = false;

    explicit ignored_label(const ops::cross_entropy_options& options) {
        // What no label can be is none.
        if (!options.ignore_index.has_value() || !std::in_range<Label>(*options.ignore_index)) return;
        label = static_cast<Label>(*options.ignore_index);
        exists = true;
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool is(Label of_row) const {
        return exists && of_row == label;
    }
};

/// What smoothed labels multiply by and subtract, in floats.
struct smoothed_labels {
    float smoothing;       ///< 0 for labels as they are
    float rest;            ///< 1 less that
    float of_label;        ///< the probability of the label
    float of_not_label;    ///< 1 less that
    float of_other_class;  ///< and of any other class

    smoothed_labels(const ops::cross_entropy_options& options, std::ptrdiff_t classes)
        : smoothing(static_cast<float>(options.label_smoothing)), rest(float_subtract(1.0F, smoothing)) {
        const label_probabilities expected(static_cast<double>(smoothing), classes);
        of_label = static_cast<float>(expected.label);
        of_not_label = static_cast<float>(expected.not_label);
        of_other_class = static_cast<float>(expected.others);
    }
};

/// The mean over a row of largest - element. All threads of a group call it for the same row. Elements are
/// taken times 2^-32, which is exact up to what is negligible beside a logarithm, so that nothing
/// overflows.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE float mean_distance(Thread thread, const row_matrix<Value>& x,
                                                 std::ptrdiff_t row, std::ptrdiff_t columns, float largest) {
    const float reference = float_multiply(largest, 0x1p-32F);
    float_float sum{};
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns, largest);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            sum = sum + exact_sum(reference, -float_multiply(values.values[i], 0x1p-32F));
        }
    }
    const float_float total = Group::reduce(thread, sum, add_pairs{});
    return float_multiply(float_divide(total.value(), static_cast<float>(columns)), 0x1p32F);
}

/// The losses of the rows, and their gradients where they are wanted. Scale is void, or a loss scale that
/// lives on the device.
template <class Group, class Logit, class Label, class Gradient, class Scale>
struct cross_entropy_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Logit, Gradient>;
    row_matrix<const Logit> logits;
    const Label* labels;
    float* losses;                         ///< null where they are not wanted
    ops::softmax_statistics* statistics;   ///< beside losses, or null
    const ops::softmax_statistics* saved;  ///< for gradients alone, or null
    row_matrix<Gradient> dlogits;          ///< without data where they are not wanted
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    float factor;                 ///< of the gradients
    const float* counted_factor;  ///< it, where the device has counted the rows, else null
    const Scale* scale;
    ignored_label<Label> ignored;
    smoothed_labels expected;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr bool exact = shows_float_rounding<Gradient>;
        float scaled_factor = counted_factor == nullptr ? factor : thread.load(counted_factor);
        if constexpr (!std::is_void_v<Scale>) {
            scaled_factor = float_multiply(scaled_factor, scale->current_scale());
        }
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            const Label its_label = thread.load(labels + row);
            if (ignored.is(its_label)) {
                if (losses != nullptr && Group::rank(thread) == 0) store_results(thread, row, 0.0F, {});
                if (dlogits.data != nullptr) write_zeros(thread, row);
                continue;
            }
            const softmax_sum total = sum_of_row<exact>(thread, row);
            // As an unsigned number, a negative label is too large as well.
            const auto label = as<std::uint64_t>(its_label);
            const bool defined = total.defined && label < static_cast<std::uint64_t>(columns);
            float distance_of_all = 0;
            if (losses != nullptr && expected.smoothing > 0.0F) {
                distance_of_all = mean_distance<Group, width>(thread, logits, row, columns, total.largest);
            }
            if (losses != nullptr && Group::rank(thread) == 0) {
                const float logarithm = total.defined ? float_logarithm(total.sum) : float_quiet_nan();
                float loss = float_quiet_nan();
                if (defined) {
                    const float logit = static_cast<float>(thread.load(
                        logits.data + (row * logits.row_stride +
                                       static_cast<std::ptrdiff_t>(label) * logits.column_stride)));
                    const float_float distance = exact_distance(logit, total.largest);
                    loss = float_subtract(float_subtract(logarithm, distance.low), distance.high);
                    if (expected.smoothing > 0.0F) {
                        const float of_all = float_add(logarithm, distance_of_all);
                        loss = float_add(float_multiply(expected.rest, loss),
                                         float_multiply(expected.smoothing, of_all));
                    }
                }
                store_results(thread, row, loss, statistics_of(total));
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
                    result = float_subtract(result, is_label ? expected.of_label : expected.of_other_class);
                    // From the sum of the others, since 1 - p would lose its digits.
                    if (is_label && values.values[i] == total.largest) {
                        result = float_subtract(expected.of_not_label, product(total.others(), inverse));
                    }
                    values.values[i] = defined ? float_multiply(result, scaled_factor) : float_quiet_nan();
                }
                store_row_floats(thread, dlogits, row, c, columns, values);
            }
        }
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <bool Exact, class Thread>
    [[nodiscard]] MP_HOST_DEVICE softmax_sum sum_of_row(Thread thread, std::ptrdiff_t row) const {
        if (saved == nullptr) {
            softmax_sum total = sum_of_exponentials<Group, width, Exact>(thread, logits, row, columns);
            find_others<Group, width>(thread, logits, row, columns, total);
            return total;
        }
        const ops::softmax_statistics of_row = thread.load(saved + row);
        return {of_row.max, exact_sum(1.0F, of_row.others),
                is_float_finite(of_row.max) && is_float_finite(of_row.others)};
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static ops::softmax_statistics statistics_of(
        const softmax_sum& total) {
        if (!total.defined) return {float_quiet_nan(), float_quiet_nan()};
        return {total.largest, total.others()};
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void store_results(Thread thread, std::ptrdiff_t row, float loss,
                                      const ops::softmax_statistics& of_row) const {
        thread.store(losses + row, loss);
        if (statistics != nullptr) thread.store(statistics + row, of_row);
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void write_zeros(Thread thread, std::ptrdiff_t row) const {
        for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
            store_row_floats(thread, dlogits, row, c, columns, row_floats<width>{});
        }
    }
};

/// For the reductions of blocks.
struct add_row_counts {
    MP_HOST_DEVICE std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a + b; }
};

/// How many rows count. All threads of a block call it, and get it.
MP_ANY_EXECUTION_SPACE
template <int Threads, class Thread, class Label>
[[nodiscard]] MP_HOST_DEVICE std::int64_t counted_rows(Thread thread, const Label* labels,
                                                       const ignored_label<Label>& ignored,
                                                       std::ptrdiff_t rows) {
    std::int64_t count = 0;
    for (std::ptrdiff_t row = thread.index(); row < rows; row += Threads) {
        count += ignored.is(thread.load(labels + row)) ? 0 : 1;
    }
    return gpu::block_reduce<Threads>(thread, count, add_row_counts{}, simt::shared_pointer<std::int64_t>{});
}

/// What gradients are multiplied by, as the host computes it where every row counts.
template <class Label>
struct counted_factor_kernel {
    static constexpr int threads = row_threads;
    const Label* labels;
    float* result;
    std::ptrdiff_t rows;
    double factor;  ///< of the sum of the losses
    ignored_label<Label> ignored;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::int64_t count = counted_rows<threads>(thread, labels, ignored, rows);
        if (thread.index() != 0) return;
        // Where no row counts, none is multiplied.
        const double quotient = double_divide(factor, static_cast<double>(count > 0 ? count : 1));
        thread.store(result, float_from_double(quotient));
    }
};

/// The mean of the losses of the rows that count times the weight, by one block.
template <class Loss, class Label>
struct mean_loss_kernel {
    static constexpr int threads = row_threads;
    const float* losses;
    const Label* labels;
    Loss* mean;
    std::ptrdiff_t rows;
    float weight;
    ignored_label<Label> ignored;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        float_float sum{};
        for (std::ptrdiff_t row = thread.index(); row < rows; row += threads) {
            sum = sum + thread.load(losses + row);
        }
        sum = gpu::block_reduce<threads>(thread, sum, add_pairs{}, simt::shared_pointer<float_float>{});
        const std::int64_t count =
            ignored.exists ? counted_rows<threads>(thread, labels, ignored, rows) : rows;
        if (thread.index() != 0) return;
        const float result = float_divide(sum.value(), static_cast<float>(count));
        thread.store(mean,
                     static_cast<Loss>(count == 0 ? float_quiet_nan() : float_multiply(result, weight)));
    }
};

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
    launch_rows(name, exec, logits.rows, logits.columns, [&]<class Group>(Group) {
        return cross_entropy_kernel<Group, Logit, Label, Gradient, Scale>{
            rows_of<width>(logits),
            labels.data(),
            results.losses.empty() ? nullptr : results.losses.data(),
            results.statistics.empty() ? nullptr : results.statistics.data(),
            saved.empty() ? nullptr : saved.data(),
            rows_of<width>(dlogits),
            logits.rows,
            logits.columns,
            static_cast<float>(factor),
            counted_factor,
            factors.scale,
            ignored,
            smoothed_labels(options, logits.columns)};
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
