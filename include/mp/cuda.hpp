// SPDX-License-Identifier: MIT
/// \file
/// CUDA: the executor mp::cuda_stream and the algorithms that run on it.
#pragma once

#if !defined(__CUDACC__)
#error "mp/cuda.hpp is for files compiled as CUDA, for example by nvcc; the rest of mp is in mp/mp.hpp"
#else

#include <mp/cuda/device_buffer.hpp>
#include <mp/cuda/error.hpp>
#include <mp/cuda/graph.hpp>
#include <mp/cuda/launch_kernel.hpp>
#include <mp/cuda/properties.hpp>
#include <mp/cuda/stream.hpp>
#include <mp/cuda/tensor_map.hpp>
#include <mp/cuda/workspace.hpp>
#include <mp/gpu.hpp>

#endif
