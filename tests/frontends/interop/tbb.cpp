// SPDX-License-Identifier: MIT
// Built where oneTBB is.
#include <mp/frontends/interop/tbb.hpp>

#include <doctest/doctest.h>

#include "frontends/interop/thread_executors.hpp"

TEST_CASE("oneTBB's threads run each task once") {
    mp::tbb_executor pool;
    check_executor(pool);
    oneapi::tbb::task_arena arena(3);
    mp::tbb_executor in_arena(arena);
    CHECK(in_arena.threads() == 3);
    check_executor(in_arena);
}

TEST_CASE("tasks run where the surrounding tasks of oneTBB have been cancelled") {
    mp::tbb_executor pool;
    oneapi::tbb::task_group_context context;
    oneapi::tbb::parallel_for(
        0, 1,
        [&](int) {
            context.cancel_group_execution();
            check_executor(pool);
        },
        context);
}
