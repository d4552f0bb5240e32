// SPDX-License-Identifier: MIT
/// \file
/// Kernels of a few lines, written where they are tested.
#pragma once

#include <mp/simt.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace simt_test {

/// A function of a thread as a kernel.
template <int Threads, class Function, int ClusterBlocks = 1>
struct body {
    static constexpr int threads = Threads;
    static constexpr int cluster_blocks = ClusterBlocks;
    Function function;

    template <class Thread>
    void operator()(Thread thread) const {
        function(thread);
    }
};

/// Runs it on `Threads` threads of one block with 4 KiB of shared memory.
template <int Threads, mp::arch Arch = mp::arch::sm_80, class Function>
void run(Function function, std::uint64_t seed = 0, mp::simt::access_statistics* statistics = nullptr) {
    launch("test", mp::simulated_gpu<Arch>{.seed = seed, .statistics = statistics},
           mp::simt::launch_size{.shared_bytes = 4096}, body<Threads, Function>{function});
}

/// What such a run throws; the test fails where it throws nothing.
template <int Threads, mp::arch Arch = mp::arch::sm_80, class Function>
mp::kernel_error error_of(Function function, std::uint64_t seed = 0) {
    try {
        run<Threads, Arch>(function, seed);
    } catch (const mp::kernel_error& error) {
        return error;
    }
    throw std::logic_error("the kernel was expected to fail");
}

}  // namespace simt_test
