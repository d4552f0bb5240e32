// SPDX-License-Identifier: MIT
/// \file
/// Measuring gradients on a CUDA device while they are rounded to a reduced format.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/convert/convert.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/cuda/device_gradient_report.hpp>
#include <mp/cuda/device_loss_scale.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/scaling/unscale.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp {
namespace detail {

/// Adds what the threads of a warp measured to the report. All lanes must come here.
__device__ inline void add_to_report(device_gradient_report& report, measured_values seen,
                                     float inverse_scale) {
    constexpr unsigned everyone = 0xffffffffu;
    for (int distance = 16; distance != 0; distance /= 2) {
        seen.zeros += __shfl_xor_sync(everyone, seen.zeros, distance);
        seen.flushed += __shfl_xor_sync(everyone, seen.flushed, distance);
        seen.subnormals += __shfl_xor_sync(everyone, seen.subnormals, distance);
        seen.overflows += __shfl_xor_sync(everyone, seen.overflows, distance);
        seen.large += __shfl_xor_sync(everyone, seen.large, distance);
        const std::uint32_t other = __shfl_xor_sync(everyone, seen.largest, distance);
        seen.largest = other > seen.largest ? other : seen.largest;
    }
    if (threadIdx.x % 32 != 0) return;
    if (seen.zeros != 0) atomicAdd(&report.zeros, seen.zeros);
    if (seen.flushed != 0) atomicAdd(&report.flushed, seen.flushed);
    if (seen.subnormals != 0) atomicAdd(&report.subnormals, seen.subnormals);
    if (seen.overflows != 0) atomicAdd(&report.overflows, seen.overflows);
    if (seen.large != 0) atomicAdd(&report.large, seen.large);
    if (seen.largest != 0) atomicMax(&report.largest_bits, largest_bits_of(seen.largest, inverse_scale));
}

template <class From, class To>
__global__ void __launch_bounds__(elementwise_threads)
    observe_kernel(const From* from, To* to, chunk_split split, const float* inverse_scale,
                   device_gradient_report* report, std::uint32_t edge) {
    const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    measured_values seen;
    observe_share(thread, std::size_t{gridDim.x} * blockDim.x, from, to, split, edge, seen);
    if (thread == 0) atomicAdd(&report->values, static_cast<unsigned long long>(split.size));
    add_to_report(*report, seen, *inverse_scale);
}

/// Enough to fill a device, and few enough that their additions to one report do not queue.
inline constexpr unsigned most_observing_blocks = 2048;

}  // namespace detail

/// Rounds scaled gradients to a reduced format, as mp::convert does, and adds to a report in device memory
/// what becomes of them: how many were zero, became zero, became subnormal or overflowed, how many are large,
/// and the largest magnitude. One pass, nothing that the host waits for, and counts that do not depend on
/// the order in which threads run.
///
/// Infinities and NaNs are counted among the values and nothing else; unscale_and_check finds them. A value
/// that becomes infinite (or NaN, in formats without infinity) overflows, and is not large besides.
///
/// \param exec           the stream
/// \param from           device_buffer or span of device memory, of float or of a reduced format
/// \param to             the same of a reduced format, of the same size, without overlap
/// \param inverse_scale  one float in device memory: the largest magnitude is multiplied by it
/// \param report         one report in device memory; never reset here
/// \param edge           magnitudes above it, before unscaling, are large; see histogram_policy
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, null inverse scale or
///                         report, or an edge that is negative or NaN
/// \throws cuda_error  the launch failed
template <detail::gradient_range Source, detail::writable_number_range Target>
    requires reduced<detail::contiguous_element<Target>>
void convert_and_observe(cuda_stream exec, const Source& from, Target&& to, const float* inverse_scale,
                         device_gradient_report* report,
                         double edge = std::numeric_limits<double>::infinity()) {
    using from_type = detail::element_value<const Source>;
    using to_type = detail::contiguous_element<Target>;
    const std::span<const from_type> source = detail::as_span(from);
    const std::span<to_type> target = detail::as_span(to);
    constexpr std::string_view function = "mp::convert_and_observe";
    detail::check_arrays(function, source, target);
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    const std::uint32_t edge_bits = detail::edge_bits(function, edge);
    if (source.empty()) return;
    const detail::chunk_split split = detail::split_into_chunks(source.data(), target.data(), source.size());
    const unsigned blocks =
        std::min(detail::elementwise_blocks<detail::chunk_count<from_type, to_type>>(split),
                 detail::most_observing_blocks);
    detail::launch(function, exec, blocks, detail::elementwise_threads,
                   &detail::observe_kernel<from_type, to_type>, source.data(), target.data(), split,
                   inverse_scale, report, edge_bits);
}

/// The same with the inverse scale and the report of a device_loss_scale in device memory.
template <detail::gradient_range Source, detail::writable_number_range Target, scale_policy Policy,
          std::size_t Events>
    requires reduced<detail::contiguous_element<Target>>
void convert_and_observe(cuda_stream exec, const Source& from, Target&& to,
                         device_loss_scale<Policy, Events>* scale,
                         double edge = std::numeric_limits<double>::infinity()) {
    detail::require_memory("mp::convert_and_observe", "scale", scale, 1);
    convert_and_observe(exec, from, to, &scale->inverse_scale, &scale->seen, edge);
}

}  // namespace mp
