// SPDX-License-Identifier: MIT
/// \file
/// Conversion of whole arrays on a CUDA device.
#pragma once

#include <mp/cuda/compiler.hpp>

#include <mp/convert/convert.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/cuda/convert_chunks.hpp>
#include <mp/cuda/launch.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/detail/contiguous.hpp>
#include <mp/format/operations.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace mp {
namespace detail {

template <class From, class To, bool Nearest>
__global__ void __launch_bounds__(elementwise_threads)
    convert_kernel(const From* from, To* to, chunk_split split, projection p) {
    convert_share(std::size_t{blockIdx.x} * blockDim.x + threadIdx.x, std::size_t{gridDim.x} * blockDim.x,
                  from, to, split, element_conversion<To, From, Nearest>{p});
}

}  // namespace detail

/// Converts an array of numbers in device memory to another type, element by element: the bits of mp::convert
/// on a CPU, NaN included.
///
/// `from` and `to` are device_buffers or spans of device memory, of any number types, with the same number of
/// elements, aligned as their type is. Wherever both are at the begin of 16 bytes for the same element, all
/// but a few elements at the ends move in 16-byte accesses. Throws argument_error, with nothing enqueued, if
/// the sizes differ, a range is null but not empty or the ranges overlap, and cuda_error when the launch
/// fails.
///
///     mp::convert(stream, master_weights, half_weights);
template <detail::number_range Source, detail::writable_number_range Target>
void convert(cuda_stream exec, const Source& from, Target&& to, projection p = {}) {
    using from_type = std::remove_cv_t<detail::contiguous_element<const Source>>;
    using to_type = detail::contiguous_element<Target>;
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_arrays("mp::convert", source, target);
    if (source.empty()) return;
    constexpr int count = detail::chunk_count<from_type, to_type>;
    const detail::chunk_split split = detail::split_into_chunks(source.data(), target.data(), source.size());
    const unsigned blocks = detail::elementwise_blocks<count>(split);
    const auto kernel = p == projection{} ? &detail::convert_kernel<from_type, to_type, true>
                                          : &detail::convert_kernel<from_type, to_type, false>;
    detail::launch("mp::convert", exec, blocks, detail::elementwise_threads, kernel, source.data(),
                   target.data(), split, p);
}

}  // namespace mp
