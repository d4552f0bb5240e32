// SPDX-License-Identifier: MIT
/// \file
/// The threads of OpenMP for mp::cpu. Compile with -fopenmp, in CMake OpenMP::OpenMP_CXX.
///
/// Where all sources that use mp are compiled so, its threads are used without this. It is for programs in which
/// only some are.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>

#include <omp.h>

#include <algorithm>
#include <cstddef>

#if !defined(_OPENMP)
#error "<mp/frontends/interop/openmp.hpp> needs OpenMP: -fopenmp"
#endif

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Runs work on OpenMP's threads; inside a parallel region, as OpenMP's rules for nested regions say.
///
///     mp::openmp_executor threads;
///     mp::gemm(mp::cpu{.threads = threads.threads(), .pool = &threads}, 1, a, b, 0, c);
class openmp_executor final : public thread_executor {
public:
    /// What OMP_NUM_THREADS or omp_set_num_threads() allows the calling thread.
    [[nodiscard]] int threads() const noexcept override { return (std::max)(omp_get_max_threads(), 1); }

    void run(std::size_t tasks, task function, const void* work) override {
        if (tasks == 0) return;
        const auto team = static_cast<int>((std::min)(tasks, static_cast<std::size_t>(threads())));
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
        for (std::size_t i = 0; i < tasks; ++i) function(work, i);
    }
};

}}  // namespace mp
