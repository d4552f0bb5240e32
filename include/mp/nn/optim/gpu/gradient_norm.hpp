// SPDX-License-Identifier: MIT
/// \file
/// The Euclidean norm of all gradients of a list on a GPU, the factor that clips them to a largest norm, and clipping where
/// they lie.
#pragma once

#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/nn/scaling/gradient_clipping.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp {

/// The norm of gradients, and what clipping multiplies them by: in device memory, for adamw_step and
/// sgd_step.
struct device_gradient_norm {
    double norm = 0;                ///< before clipping
    unsigned long long excess = 0;  ///< of device_gradient_report, between the kernels of a norm
    float clip_factor = 1;  ///< float(max_norm / (norm + 1e-6)), at most 1; 1 if the norm is not finite
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The sums of the squares of blocks of 4096 values, as square_sums has them on the CPU: four threads have a
/// block, each of them four of its sixteen lanes, which lie together in memory.
template <class Gradient>
struct square_sums_kernel {
    static constexpr int threads = 128;
    static constexpr int threads_of_block = 4;
    static constexpr int lanes_of_thread = static_cast<int>(square_lanes) / threads_of_block;
    static constexpr int blocks_at_a_time = threads / threads_of_block;
    /// Rows of sixteen values that a thread loads its lanes of before it looks at the first one.
    static constexpr int in_flight = 8;

    struct entry {
        const Gradient* gradient;
        std::uint64_t size;
        std::uint32_t number;
        std::uint32_t first_block;
    };
    static constexpr std::size_t capacity = (4096 - 112) / sizeof(entry);

    const float* inverse_scale;
    device_gradient_report* report;  // or null
    unsigned long long* excess;      // of the report before clipping
    double* sums;
    std::uint64_t elements;
    unsigned long long first_parameter;
    std::uint32_t tensors;
    std::uint32_t blocks;
    device_gradient_limit limit;
    entry list[capacity];

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const float inverse = inverse_scale == nullptr ? 1.0F : thread.load(inverse_scale);
        const auto number = static_cast<std::uint32_t>(thread.block()) * blocks_at_a_time +
                            static_cast<std::uint32_t>(thread.index() / threads_of_block);
        const int quarter = thread.index() % threads_of_block;
        double lanes[lanes_of_thread] = {};
        unscale_findings found;
        const float largest = report == nullptr ? 0.0F : limit.largest(thread);
        if (number < blocks) add_squares(thread, number, quarter, inverse, largest, lanes, found);
        // Lane l and lane l + 8, then l + 4, l + 2 and l + 1.
        MP_UNROLL
        for (int distance = threads_of_block / 2; distance != 0; distance /= 2) {
            for (double& lane : lanes) lane = opt_barrier(lane + thread.shuffle_xor(lane, distance));
        }
        const double even = opt_barrier(lanes[0] + lanes[2]);
        const double odd = opt_barrier(lanes[1] + lanes[3]);
        if (number < blocks && quarter == 0) thread.store(sums + number, opt_barrier(even + odd));
        if (report == nullptr) return;
        if (thread.block() == 0 && thread.index() == 0) {
            const unsigned long long checked = elements;
            thread.atomic_add(&report->checked, checked);
        }
        add_to_report(thread, report, excess, found);
    }

private:
    /// Adds this thread's lanes of a block, in ascending order.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void add_squares(const Thread& thread, std::uint32_t number, int quarter,
                                                     float inverse, float largest,
                                                     double (&lanes)[lanes_of_thread],
                                                     unscale_findings& found) const {
        const entry& tensor = entry_at<&entry::first_block>(list, tensors, number);
        const std::size_t begin = std::size_t{number - tensor.first_block} * parameter_layout::chunk;
        const std::size_t left = tensor.size - begin;
        const int count = left < parameter_layout::chunk ? static_cast<int>(left)
                                                         : static_cast<int>(parameter_layout::chunk);
        const bool aligned =
            reinterpret_cast<std::uintptr_t>(tensor.gradient) % alignof(chunk<Gradient, lanes_of_thread>) ==
            0;
        const Gradient* const from = tensor.gradient + begin;
        constexpr int row = static_cast<int>(square_lanes);
        for (int first = quarter * lanes_of_thread; first < count; first += in_flight * row) {
            chunk<Gradient, lanes_of_thread> loaded[in_flight] = {};
            MP_UNROLL
            for (int i = 0; i < in_flight; ++i) {
                const int at = first + i * row;
                if (aligned && at + lanes_of_thread <= count) {
                    loaded[i] = thread.load(chunk_at<lanes_of_thread>(from + at));
                } else {
                    for (int j = 0; j < lanes_of_thread; ++j) {
                        if (at + j < count) loaded[i].values[j] = thread.load(from + at + j);
                    }
                }
            }
            MP_UNROLL
            for (int i = 0; i < in_flight; ++i) {
                float values[lanes_of_thread];
                for (int j = 0; j < lanes_of_thread; ++j) {
                    // Past the end there are zeros, which change no sum of squares.
                    const Gradient value = loaded[i].values[j];
                    values[j] = first + i * row + j < count ? unscaled_value(value, inverse) : 0.0F;
                    const double wide = static_cast<double>(values[j]);
                    lanes[j] = opt_barrier(lanes[j] + wide * wide);  // the square is exact
                }
                if (report != nullptr) {
                    found.look_at(values, first_parameter + tensor.number,
                                  begin + static_cast<std::size_t>(first + i * row), largest);
                }
            }
        }
    }
};

/// The sum of the blocks, in the order of sum_of_blocks, and what follows from it.
struct gradient_norm_kernel {
    static constexpr int threads = static_cast<int>(block_lanes);
    static constexpr int in_flight = 8;

    const double* sums;
    std::uint64_t blocks;
    double max_norm;
    device_gradient_norm* result;
    device_gradient_report* report;  // or null

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const simt::shared_pointer<double> lanes{};
        const int lane = thread.index();
        double sum = 0.0;
        for (std::uint64_t at = static_cast<std::uint64_t>(lane); at < blocks; at += in_flight * threads) {
            double loaded[in_flight] = {};
            MP_UNROLL
            for (int i = 0; i < in_flight; ++i) {
                const std::uint64_t number = at + static_cast<std::uint64_t>(i) * threads;
                if (number < blocks) loaded[i] = thread.load(sums + number);
            }
            for (const double value : loaded) sum = opt_barrier(sum + value);
        }
        thread.store(lanes + lane, sum);
        thread.sync_block();
        for (int width = threads / 2; width != 0; width /= 2) {
            if (lane < width) {
                const double low = thread.load(lanes + lane);
                thread.store(lanes + lane, opt_barrier(low + thread.load(lanes + (lane + width))));
            }
            thread.sync_block();
        }
        if (lane != 0) return;
        const double norm = double_sqrt(thread.load(lanes));
        thread.store(&result->norm, norm);
        const float factor = clip_factor(norm, max_norm);
        thread.store(&result->clip_factor, factor);
        if (report != nullptr) add_clipped_excess(thread, report, &result->excess, factor);
    }
};

/// One norm of several lists, as training_iteration of the host has it, and its factor for each of them.
template <std::size_t Count>
struct global_norm_kernel {
    static constexpr int threads = 32;
    device_gradient_norm* norms[Count];
    double max_norm;
    device_gradient_report* report;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        double squares = 0.0;
        for (device_gradient_norm* const it : norms) {
            const double norm = thread.load(&it->norm);
            squares = double_add(squares, double_multiply(norm, norm));
        }
        const float factor = clip_factor(double_sqrt(squares), max_norm);
        for (device_gradient_norm* const it : norms) {
            thread.store(&it->clip_factor, factor);
            add_clipped_excess(thread, report, &it->excess, factor);
        }
    }
};

[[nodiscard]] inline std::size_t square_blocks(std::size_t size) {
    return (size + parameter_layout::chunk - 1) / parameter_layout::chunk;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// How many doubles of device memory gradient_norm needs for a list: one for every 4096 values of a gradient.
template <detail::gradient_list List>
[[nodiscard]] std::size_t gradient_norm_workspace(const List& gradients) {
    std::size_t blocks = 0;
    for (const auto& item : detail::as_span(gradients)) blocks += detail::square_blocks(item.gradient.size());
    return blocks;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Body of gradient_norm. Unless it `clips`, what is in excess remains in the result for global_norm_kernel.
template <gpu_executor Executor, gradient_list List>
void run_gradient_norm(const Executor& exec, const List& gradients, const float* inverse_scale,
                       std::span<double> workspace, device_gradient_norm* result, double max_norm,
                       device_gradient_report* report, std::size_t first_parameter,
                       const device_gradient_limit& limit, bool clips) {
    using gradient = list_gradient<const List>;
    using kernel = square_sums_kernel<gradient>;
    static_assert(simt::kernel<kernel>, "mp: the table of tensors goes to the device with the launch");
    constexpr std::string_view function = "mp::gradient_norm";
    const auto list = as_span(gradients);
    for (std::size_t i = 0; i < list.size(); ++i) {
        check_listed_gradient(function, i, first_parameter, std::span<const gradient>(list[i].gradient));
    }
    const std::size_t needed = gradient_norm_workspace(gradients);
    if (workspace.size() < needed) {
        throw_argument(function, "workspace.size()", workspace.size(),
                       "must be at least gradient_norm_workspace(gradients), which is " + error_text(needed));
    }
    require_memory(function, "workspace.data()", workspace.data(), needed);
    require_memory(function, "result", result, 1);
    require_limit(function, "max_norm", max_norm);
    kernel parameters{};
    parameters.inverse_scale = inverse_scale;
    parameters.report = report;
    parameters.excess = &result->excess;
    parameters.limit = limit;
    parameters.sums = workspace.data();
    parameters.first_parameter = first_parameter;
    const auto flush = [&] {
        if (parameters.tensors == 0) return;
        const std::size_t groups = (parameters.blocks + std::size_t{kernel::blocks_at_a_time} - 1) /
                                   std::size_t{kernel::blocks_at_a_time};
        launch(function, exec, simt::launch_size{.blocks = static_cast<std::ptrdiff_t>(groups)}, parameters);
        parameters.sums += parameters.blocks;
        parameters.elements = 0;
        parameters.tensors = 0;
        parameters.blocks = 0;
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
        const std::span<const gradient> values = list[i].gradient;
        if (values.empty()) continue;
        const std::size_t blocks = square_blocks(values.size());
        if (parameters.tensors == kernel::capacity || parameters.blocks + blocks > (std::size_t{1} << 30)) {
            flush();
        }
        parameters.list[parameters.tensors] = {values.data(), values.size(), static_cast<std::uint32_t>(i),
                                               parameters.blocks};
        ++parameters.tensors;
        parameters.blocks += static_cast<std::uint32_t>(blocks);
        parameters.elements += values.size();
    }
    flush();
    launch(function, exec, simt::launch_size{.blocks = 1, .shared_bytes = block_lanes * sizeof(double)},
           gradient_norm_kernel{workspace.data(), needed, max_norm, result, clips ? report : nullptr});
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The Euclidean norm of all gradients of a list together, without their scale, and the factor that scales
/// them down to `max_norm`, as clip_gradient_norm of the CPU's optimizers has them: both have its bits,
/// whatever the schedule, as long as the list has the same gradients in the same order. Nothing is multiplied
/// here: adamw_step and sgd_step take the factor along.
///
///     mp::gradient_norm(stream, parameters, &scale->inverse_scale, workspace.span(), norm.data(), 1.0);
///     mp::adamw_step(stream, parameters, options, optimizer.data(), policy, scale.data(),
///                    &norm.data()->clip_factor);
///
/// Values are gradients times *inverse_scale, rounded to float. Their squares are exact in double, and they
/// are added in double in the order of <mp/nn/optim/kernels/square_sums.hpp>, in which n values take part in at
/// most 268 + n / 2^20 additions one after the other: that number times 2^-54 bounds the relative error of
/// the norm, far below the rounding of the factor to float. Nothing overflows. If the norm is not finite, a
/// gradient was not, and the factor is 1.
///
/// \param exec           mp::cuda_stream or mp::simulated_gpu
/// \param gradients      contiguous range of gpu_parameter, gpu_gradient or anything else with a span
///                       `gradient` of device memory; the host's, and read before this returns
/// \param inverse_scale  one float in device memory, or null for 1
/// \param workspace      device memory for at least gradient_norm_workspace(gradients) doubles; scratch
/// \param result         one in device memory
/// \param max_norm       greater than 0; infinity only measures
/// \param report         one report in device memory to which the infinities and NaNs are added in the same
///                       pass, as check_gradients does; or null
/// \param first_parameter  number of the first gradient, for the report
/// \param limit          finite gradients above it, once clipped, have the step skipped: the gradient_limit() of
///                       an optimizer
/// \throws argument_error  a gradient is null or too large; the workspace is too small; result is null;
///                         max_norm is NaN or not positive
/// \throws cuda_error  a launch failed
template <gpu_executor Executor, detail::gradient_list List>
void gradient_norm(const Executor& exec, const List& gradients, const float* inverse_scale,
                   std::span<double> workspace, device_gradient_norm* result,
                   double max_norm = std::numeric_limits<double>::infinity(),
                   device_gradient_report* report = nullptr, std::size_t first_parameter = 0,
                   const device_gradient_limit& limit = {}) {
    detail::run_gradient_norm(exec, gradients, inverse_scale, workspace, result, max_norm, report,
                              first_parameter, limit, true);
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory: the norm and the
/// check for infinities and NaNs in one pass.
template <gpu_executor Executor, detail::gradient_list List, scale_policy Policy, std::size_t Events>
void gradient_norm(const Executor& exec, const List& gradients, device_loss_scale<Policy, Events>* scale,
                   std::span<double> workspace, device_gradient_norm* result,
                   double max_norm = std::numeric_limits<double>::infinity(), std::size_t first_parameter = 0,
                   const device_gradient_limit& limit = {}) {
    detail::require_memory("mp::gradient_norm", "scale", scale, 1);
    gradient_norm(exec, gradients, &scale->inverse_scale, workspace, result, max_norm, &scale->seen,
                  first_parameter, limit);
}

}}  // namespace mp

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
