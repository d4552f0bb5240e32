// SPDX-License-Identifier: MIT
/// \file
/// GPU kernels on the host: the warp-level vocabulary that they are written in, and the executor
/// mp::simulated_gpu. With nvcc, <mp/cuda.hpp> has the same vocabulary for devices.
#pragma once

#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/host/access_statistics.hpp>
#include <mp/device/simt/host/launch.hpp>
#include <mp/device/simt/host/wgmma_operations.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
