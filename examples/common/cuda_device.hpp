// SPDX-License-Identifier: MIT
/// \file
/// The CUDA device that --device cuda means.
#pragma once

#include <mp/cuda.hpp>

#include <string>

#include "user_error.hpp"

namespace examples {

/// Name of the current CUDA device. Throws user_error where there is none that works.
inline std::string cuda_device_name() {
    try {
        int count = 0;
        mp::check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
        const mp::gpu_properties properties = mp::properties_of(mp::cuda_stream{});
        cudaDeviceProp described{};
        mp::check_cuda(cudaGetDeviceProperties(&described, properties.device), "cudaGetDeviceProperties");
        return described.name;
    } catch (const mp::cuda_error& problem) {
        throw user_error("--device cuda: " + std::string(problem.what()));
    }
}

}  // namespace examples
