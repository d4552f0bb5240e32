// SPDX-License-Identifier: MIT
/// \file
/// The kernels behind <mp/cuda_gemm.hpp>, for sources that nvcc compiles:
///
///     #include <mp/compiled_cuda.hpp>
///     template struct mp::compiled_product<mp::cuda_stream, mp::half, mp::half, float>;
///
/// In CMake, linking with mp::compiled_cuda has the usual types compiled.
#pragma once

#if !defined(__CUDACC__)
#error "mp/compiled_cuda.hpp is for files compiled as CUDA, for example by nvcc; calls need mp/cuda_gemm.hpp"
#else

#include <mp/bfloat16.hpp>
#include <mp/cuda_gemm.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/cuda/properties.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/cuda/tensor_map.hpp>
#include <mp/device/gpu/compiled_product_kernels.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#endif
