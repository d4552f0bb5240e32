// SPDX-License-Identifier: MIT
/// \file
/// What algorithms for GPUs take as their first argument: a stream of a CUDA device, or the simulated GPU.
#pragma once

#include <mp/simt/simulated_gpu.hpp>
#include <mp/tensor_core/arch.hpp>

#include <type_traits>

namespace mp {

namespace detail::inline MP_ISA_NAMESPACE {

template <class Executor>
struct is_gpu_executor : std::false_type {};
template <arch Arch>
struct is_gpu_executor<simulated_gpu<Arch>> : std::true_type {};

}  // namespace detail::inline MP_ISA_NAMESPACE

/// mp::cuda_stream (where <mp/cuda.hpp> is included) or mp::simulated_gpu<arch>. With the first an algorithm
/// enqueues kernels and returns, with the second it runs the same kernels on the host. Kernels are launched
/// by the unqualified call launch("mp::function", exec, simt::launch_size{...}, kernel), which finds
/// mp::simt::launch by its arguments.
template <class Executor>
concept gpu_executor = detail::is_gpu_executor<std::remove_cvref_t<Executor>>::value;

}  // namespace mp
