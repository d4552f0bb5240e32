// SPDX-License-Identifier: MIT
/// \file
/// Algorithms for GPUs. They run on mp::simulated_gpu with any compiler; <mp/cuda.hpp> adds mp::cuda_stream,
/// for devices, and needs nvcc.
#pragma once

#include <mp/gpu/gemm.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/simt.hpp>
