// SPDX-License-Identifier: MIT
/// \file
/// The executor that runs GPU kernels on the host.
#pragma once

#include <mp/linalg/tensor_core/arch.hpp>

#include <cstddef>
#include <cstdint>

namespace mp {

class workspace;

namespace simt {
class access_statistics;
class launch_recorder;
class memory_checker;
}

/// Runs the very kernels that mp::cuda_stream runs, on the host: each thread of the GPU is a fiber, tensor
/// cores follow the exact model of the architecture (mp::block_fma), and whatever a device leaves undefined
/// ends in an mp::kernel_error. Made for tests of kernels, yours too (mp::simt::launch); it is some thousand
/// times slower than a GPU. Who wants the bits of a GPU's matrix product quickly takes mp::emulated.
///
///     mp::gemm(mp::simulated_gpu<mp::arch::sm_90>{.seed = 7}, 1, a, b, 0, c);
///
/// Detected are: lanes of a warp at different operations; barriers at which not all threads arrive; shared
/// memory that is read before anybody wrote it, before the copy into it was waited for, or with nothing
/// between the threads that orders the accesses (whatever order they ran in); addresses out of bounds or
/// misaligned; missing fences of asynchronous units. Global memory is ordinary memory of the program:
/// AddressSanitizer watches it, and a simt::memory_checker finds races, also between blocks, and what lies
/// outside. What is not noticed: how fast it would be.
template <arch Arch>
struct simulated_gpu {
    static constexpr arch architecture = Arch;

    /// Seed of the schedule: 0 runs blocks, warps and lanes in order, any other number selects another order.
    std::uint64_t seed = 0;
    /// Threads of the host, each of which runs blocks. The results of kernels that add up in global memory by
    /// floating-point atomics may depend on it.
    int threads = 1;
    /// Counts bank conflicts and sectors if it is not null. Requires threads == 1.
    simt::access_statistics* statistics = nullptr;
    /// Multiprocessors of the GPU, by which algorithms divide their work; zero for the largest device of the
    /// architecture. It decides which kernel or how many blocks are taken, not how the host runs them.
    int multiprocessors = 0;
    /// Stack of each GPU thread.
    std::size_t stack_bytes = std::size_t{256} << 10;
    /// Workspace memory of ops, as on a device. See <mp/workspace.hpp>.
    mp::workspace* workspace = nullptr;
    /// With which mp::replayed_step captures steps; null where nothing is captured.
    simt::launch_recorder* recorder = nullptr;
    /// What watches global memory; null for nothing. Only with one thread. See
    /// <mp/device/simt/memory_checker.hpp>.
    simt::memory_checker* checker = nullptr;
    /// Whether two threads may write the same value to the same place in no order. (CUDA's memory model calls
    /// that a race, too; devices then have the value.)
    bool equal_writes = false;
};

}  // namespace mp
