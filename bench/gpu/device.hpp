// SPDX-License-Identifier: MIT
/// \file
/// bench::gpu::device is a CUDA device where the program is compiled as CUDA, else the simulated one.
#pragma once

#if defined(__CUDACC__)
#include "cuda_device.hpp"
#else
#include "simulated_device.hpp"
#endif
