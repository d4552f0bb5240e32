// SPDX-License-Identifier: MIT
/// \file
/// Measuring gradients on a GPU while they are rounded to a reduced format.
#pragma once

#include <mp/arrays/convert/convert.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adds what the threads of a warp measured to the report.
MP_ANY_EXECUTION_SPACE
template <class Thread>
MP_HOST_DEVICE void add_to_report(const Thread& thread, device_gradient_report* report, measured_values seen,
                                  float inverse_scale) {
    for (int distance = 16; distance != 0; distance /= 2) {
        seen.zeros += thread.shuffle_xor(seen.zeros, distance);
        seen.flushed += thread.shuffle_xor(seen.flushed, distance);
        seen.subnormals += thread.shuffle_xor(seen.subnormals, distance);
        seen.overflows += thread.shuffle_xor(seen.overflows, distance);
        seen.large += thread.shuffle_xor(seen.large, distance);
        const std::uint32_t other = thread.shuffle_xor(seen.largest, distance);
        seen.largest = other > seen.largest ? other : seen.largest;
    }
    if (thread.lane() != 0) return;
    if (seen.zeros != 0) thread.atomic_add(&report->zeros, seen.zeros);
    if (seen.flushed != 0) thread.atomic_add(&report->flushed, seen.flushed);
    if (seen.subnormals != 0) thread.atomic_add(&report->subnormals, seen.subnormals);
    if (seen.overflows != 0) thread.atomic_add(&report->overflows, seen.overflows);
    if (seen.large != 0) thread.atomic_add(&report->large, seen.large);
    if (seen.largest != 0) {
        thread.atomic_max(&report->largest_bits, largest_bits_of(seen.largest, inverse_scale));
    }
}

template <class From, class To>
struct observe_work : tensor_work {
    struct arrays {
        const From* from;
        To* to;
    };
    static constexpr int count = chunk_count<From, To>;
    /// Enough to fill a device, and few enough that their additions to one report do not queue.
    static constexpr std::uint32_t most_blocks = 2048;

    const float* inverse_scale;
    device_gradient_report* report;
    std::uint32_t edge;

    struct thread_data : loads_one_array<From> {
        bool active;
        std::uint32_t edge;
        measured_values seen;

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t index, const chunk<From, Count>& from, int) {
            chunk<To, Count> result;
            for (int i = 0; i < Count; ++i) {
                const float value = static_cast<float>(from.values[i]);
                result.values[i] = To(value);
                measure(value, result.values[i], edge, seen);
            }
            thread.store(chunk_at<Count>(tensor.arrays.to + index), result);
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from, of.to);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread&) const {
        return {{}, true, edge, {}};
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void end(const Thread& thread, const thread_data& mine,
                            unsigned long long elements) const {
        if (thread.block() == 0 && thread.index() == 0) thread.atomic_add(&report->values, elements);
        add_to_report(thread, report, mine.seen, thread.load(inverse_scale));
    }
};

template <class Item>
struct observe_work_of;
template <exact_in_float From, reduced To>
struct observe_work_of<gpu_conversion<From, To>> {
    using type = observe_work<From, To>;
};

/// A contiguous range of gpu_conversion from gradients to a reduced format.
template <class List>
concept conversion_list = contiguous<List> && requires {
    typename observe_work_of<std::remove_cv_t<contiguous_element<List>>>::type;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Rounds scaled gradients to a reduced format, as mp::convert does, and adds to a report in device memory
/// what becomes of them: how many were zero, became zero, became subnormal or overflowed, how many are large,
/// and the largest magnitude. One pass, nothing that the host waits for, and counts that do not depend on
/// the order in which threads run.
///
/// Infinities and NaNs are counted among the values and nothing else; unscale_and_check finds them. A value
/// that becomes infinite (or NaN, in formats without infinity) overflows, and is not large besides.
///
/// \param exec           mp::cuda_stream or mp::simulated_gpu
/// \param from           device_buffer or span of device memory, of float or of a reduced format
/// \param to             the same of a reduced format, of the same size, without overlap
/// \param inverse_scale  one float in device memory: the largest magnitude is multiplied by it
/// \param report         one report in device memory; never reset here
/// \param edge           magnitudes above it, before unscaling, are large; see histogram_policy
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, null inverse scale or
///                         report, or an edge that is negative or NaN
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, detail::gradient_range Source, detail::writable_number_range Target>
    requires reduced<detail::contiguous_element<Target>>
void convert_and_observe(const Executor& exec, const Source& from, Target&& to, const float* inverse_scale,
                         device_gradient_report* report,
                         double edge = std::numeric_limits<double>::infinity()) {
    using from_type = detail::element_value<const Source>;
    using to_type = detail::contiguous_element<Target>;
    const std::span<const from_type> source = detail::as_span(from);
    const std::span<to_type> target = detail::as_span(to);
    constexpr std::string_view function = "mp::convert_and_observe";
    detail::check_arrays(function, source, target);
    detail::check_tensor_size(function, "from.size()", source.size());
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    using work = detail::observe_work<from_type, to_type>;
    const work what{{}, inverse_scale, report, detail::edge_bits(function, edge)};
    detail::run_over_tensors(function, exec, what, 1,
                             [&](std::size_t, typename work::arrays& arrays, std::size_t& size) {
                                 arrays = {source.data(), target.data()};
                                 size = source.size();
                             });
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory.
template <gpu_executor Executor, detail::gradient_range Source, detail::writable_number_range Target,
          scale_policy Policy, std::size_t Events>
    requires reduced<detail::contiguous_element<Target>>
void convert_and_observe(const Executor& exec, const Source& from, Target&& to,
                         device_loss_scale<Policy, Events>* scale,
                         double edge = std::numeric_limits<double>::infinity()) {
    detail::require_memory("mp::convert_and_observe", "scale", scale, 1);
    convert_and_observe(exec, from, to, &scale->inverse_scale, &scale->seen, edge);
}

/// Overload for a list of arrays of different sizes, in one launch for every hundred of them.
///
///     const std::vector<mp::gpu_conversion<float, mp::half>> list{{dw1, half_dw1}, {dw2, half_dw2}};
///     mp::convert_and_observe(stream, list, scale.data());
template <gpu_executor Executor, detail::conversion_list List>
void convert_and_observe(const Executor& exec, const List& arrays, const float* inverse_scale,
                         device_gradient_report* report,
                         double edge = std::numeric_limits<double>::infinity()) {
    constexpr std::string_view function = "mp::convert_and_observe";
    const auto list = detail::as_span(arrays);
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        detail::check_arrays(function, list[i].from, list[i].to);
        detail::check_tensor_size(function, detail::tensor_text("arrays", i, "from.size()"),
                                  list[i].from.size());
    }
    using work =
        typename detail::observe_work_of<std::remove_cv_t<detail::contiguous_element<const List>>>::type;
    const work what{{}, inverse_scale, report, detail::edge_bits(function, edge)};
    detail::run_over_tensors(function, exec, what, list.size(),
                             [&](std::size_t i, typename work::arrays& pointers, std::size_t& size) {
                                 pointers = {list[i].from.data(), list[i].to.data()};
                                 size = list[i].from.size();
                             });
}

/// Overload with the inverse scale and the report of a device_loss_scale in device memory.
template <gpu_executor Executor, detail::conversion_list List, scale_policy Policy, std::size_t Events>
void convert_and_observe(const Executor& exec, const List& arrays, device_loss_scale<Policy, Events>* scale,
                         double edge = std::numeric_limits<double>::infinity()) {
    detail::require_memory("mp::convert_and_observe", "scale", scale, 1);
    convert_and_observe(exec, arrays, &scale->inverse_scale, &scale->seen, edge);
}

}}  // namespace mp
