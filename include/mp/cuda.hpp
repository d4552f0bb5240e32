// SPDX-License-Identifier: MIT
/// \file
/// CUDA: the executor mp::cuda_stream and the algorithms that run on it.
#pragma once

#if !defined(__CUDACC__)
#error "mp/cuda.hpp is for files compiled as CUDA, for example by nvcc; the rest of mp is in mp/mp.hpp"
#else

#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/graph.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/cuda/properties.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/cuda/tensor_map.hpp>
#include <mp/device/cuda/workspace.hpp>
#include <mp/gpu.hpp>

#endif
