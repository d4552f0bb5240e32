// SPDX-License-Identifier: MIT
// Global memory of kernels under test, watched in some of the schedules.
#pragma once

#include <mp/simt.hpp>

namespace gpu_test {

/// The executor with races through global memory looked for, and what lies beside memory that the library
/// allocates: in one of four schedules, since it takes twice the time.
template <mp::arch Arch>
[[nodiscard]] mp::simulated_gpu<Arch> watched(mp::simulated_gpu<Arch> exec) {
    static mp::simt::memory_checker checker;
    if (exec.seed % 4 == 1 && exec.threads == 1) exec.checker = &checker;
    return exec;
}

}  // namespace gpu_test
