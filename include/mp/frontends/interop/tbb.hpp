// SPDX-License-Identifier: MIT
/// \file
/// The threads of oneTBB for mp::cpu. Link with its library, in CMake TBB::tbb.
#pragma once

#include <mp/config.hpp>
#include <mp/executor.hpp>

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <cstddef>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Runs work as tasks of an arena of oneTBB. A thread that waits for the last tasks takes up nothing else
/// meanwhile, and tasks run to their end even where the surrounding tasks of oneTBB have been cancelled.
///
///     mp::tbb_executor threads;                        // or of an arena: threads(arena)
///     mp::gemm(mp::cpu{.threads = threads.threads(), .pool = &threads}, 1, a, b, 0, c);
class tbb_executor final : public thread_executor {
public:
    /// The arena that the calling thread is in.
    tbb_executor() = default;
    /// This arena, which must outlive the executor.
    explicit tbb_executor(oneapi::tbb::task_arena& arena) : arena_(&arena) {}

    [[nodiscard]] int threads() const noexcept override {
        return arena_ != nullptr ? arena_->max_concurrency()
                                 : oneapi::tbb::this_task_arena::max_concurrency();
    }

    void run(std::size_t tasks, task function, const void* work) override {
        const auto run_here = [=] {
            oneapi::tbb::this_task_arena::isolate([=] {
                oneapi::tbb::task_group_context context(oneapi::tbb::task_group_context::isolated);
                oneapi::tbb::parallel_for(
                    std::size_t{0}, tasks, [=](std::size_t i) { function(work, i); },
                    oneapi::tbb::simple_partitioner(), context);
            });
        };
        if (arena_ != nullptr) {
            arena_->execute(run_here);
        } else {
            run_here();
        }
    }

private:
    oneapi::tbb::task_arena* arena_ = nullptr;
};

}}  // namespace mp
