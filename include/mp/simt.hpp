// SPDX-License-Identifier: MIT
/// \file
/// GPU kernels on the host: the warp-level vocabulary that they are written in, and the executor
/// mp::simulated_gpu. With nvcc, <mp/cuda.hpp> has the same vocabulary for devices.
#pragma once

#include <mp/simt/gpu_executor.hpp>
#include <mp/simt/host/access_statistics.hpp>
#include <mp/simt/host/launch.hpp>
#include <mp/simt/host/simulated_thread.hpp>
#include <mp/simt/kernel_error.hpp>
#include <mp/simt/kernel_traits.hpp>
#include <mp/simt/launch_recorder.hpp>
#include <mp/simt/launch_shape.hpp>
#include <mp/simt/memory_checker.hpp>
#include <mp/simt/shared_pointer.hpp>
#include <mp/simt/simulated_gpu.hpp>
#include <mp/simt/simulated_graph.hpp>
