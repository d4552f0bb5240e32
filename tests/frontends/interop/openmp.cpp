// SPDX-License-Identifier: MIT
// Built with -fopenmp where the compiler knows it.
#include <mp/frontends/interop/openmp.hpp>

#include <doctest/doctest.h>

#include "frontends/interop/thread_executors.hpp"

TEST_CASE("OpenMP's threads run each task once") {
    mp::openmp_executor pool;
    check_executor(pool);
    // From a region of the caller's.
#pragma omp parallel num_threads(2)
    {
#pragma omp single
        check_executor(pool);
    }
}
