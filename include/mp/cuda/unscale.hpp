// SPDX-License-Identifier: MIT
/// \file
/// Unscaling gradients on a CUDA device, with infinities and NaNs found and counted there.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/cuda/chunks.hpp>
#include <mp/cuda/device_gradient_report.hpp>
#include <mp/cuda/device_loss_scale.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/error.hpp>
#include <mp/scaling/unscale.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace mp {
namespace detail {

/// Adds what the threads of a warp found to the report. All lanes must come here. Infinities and NaNs are
/// rare, so usually this is one vote.
__device__ inline void add_to_report(device_gradient_report& report, const unscale_findings& found) {
    constexpr unsigned everyone = 0xffffffffu;
    if (__any_sync(everyone, found.infinities + found.nans != 0) == 0) return;
    unsigned long long infinities = found.infinities;
    unsigned long long nans = found.nans;
    unsigned long long first = found.first;
    for (int distance = 16; distance != 0; distance /= 2) {
        infinities += __shfl_xor_sync(everyone, infinities, distance);
        nans += __shfl_xor_sync(everyone, nans, distance);
        const unsigned long long other = __shfl_xor_sync(everyone, first, distance);
        first = other < first ? other : first;
    }
    if (threadIdx.x % 32 == 0) {
        if (infinities != 0) atomicAdd(&report.infinities, infinities);
        if (nans != 0) atomicAdd(&report.nans, nans);
        atomicMin(&report.first, first);
    }
}

template <class Gradient>
__global__ void __launch_bounds__(elementwise_threads)
    unscale_kernel(const Gradient* gradients, float* unscaled, chunk_split split, const float* inverse_scale,
                   device_gradient_report* report, unsigned long long parameter) {
    const std::size_t thread = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    unscale_findings found;
    unscale_share(thread, std::size_t{gridDim.x} * blockDim.x, gradients, unscaled, split, *inverse_scale,
                  parameter, found);
    if (thread == 0) atomicAdd(&report->checked, static_cast<unsigned long long>(split.size));
    add_to_report(*report, found);
}

}  // namespace detail

/// Multiplies gradients in device memory by an inverse loss scale in device memory, and adds the infinities
/// and NaNs among the results to a report in device memory: one pass, and nothing that the host waits for.
///
/// unscaled[i] = float(gradients[i]) * *inverse_scale, rounded once, with the bits of
/// mp::unscale_and_check on a CPU (payloads of NaNs apart); with an inverse scale of exactly 1 the bits are
/// copied. The results are checked, bad ones included in what is written. Subnormal results survive nvcc's
/// -ftz=true. The report's counts and its first place do not depend on the order in which threads run; the
/// calls that share a report may run in several streams.
///
/// \param exec           the stream
/// \param gradients      device_buffer or span of device memory, of float or of a reduced format
/// \param unscaled       the same of float, of the same size; the same memory as `gradients` if that is
///                       float, and otherwise without overlap
/// \param inverse_scale  one float in device memory, greater than 0; see device_loss_scale
/// \param report         one report in device memory; never reset here
/// \param parameter      number of this array for the report's first place, less than 2^20
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, null inverse scale or
///                         report, or a number or size that a place cannot hold
/// \throws cuda_error  the launch failed
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled>
void unscale_and_check(cuda_stream exec, const Gradients& gradients, Unscaled&& unscaled,
                       const float* inverse_scale, device_gradient_report* report,
                       std::size_t parameter = 0) {
    using gradient = detail::element_value<const Gradients>;
    const std::span<const gradient> in = detail::as_span(gradients);
    const std::span<float> out = detail::as_span(unscaled);
    constexpr std::string_view function = "mp::unscale_and_check";
    static_cast<void>(detail::check_unscale_arrays(function, in, out));
    detail::require_memory(function, "inverse_scale", inverse_scale, 1);
    detail::require_memory(function, "report", report, 1);
    detail::check_gradient_place(function, parameter, in.size());
    if (in.empty()) return;
    const detail::chunk_split split = detail::split_into_chunks(in.data(), out.data(), in.size());
    const unsigned blocks = detail::elementwise_blocks<detail::chunk_count<gradient, float>>(split);
    detail::launch(function, exec, blocks, detail::elementwise_threads, &detail::unscale_kernel<gradient>,
                   in.data(), out.data(), split, inverse_scale, report, parameter);
}

/// The same with the inverse scale and the report of a device_loss_scale in device memory.
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled, scale_policy Policy,
          std::size_t Events>
void unscale_and_check(cuda_stream exec, const Gradients& gradients, Unscaled&& unscaled,
                       device_loss_scale<Policy, Events>* scale, std::size_t parameter = 0) {
    detail::require_memory("mp::unscale_and_check", "scale", scale, 1);
    unscale_and_check(exec, gradients, unscaled, &scale->inverse_scale, &scale->seen, parameter);
}

}  // namespace mp
