// SPDX-License-Identifier: MIT
/// \file
/// Threads for ops: in the processor's default modes, and for ops that consist of independent tasks, each of
/// which is a matrix product or more.
#pragma once

#include <mp/arrays/array/staging_buffer.hpp>
#include <mp/base/parallel.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Between sums that are added to the same memory: compilers that may reassociate them keep their order.
MP_ALWAYS_INLINE void keep_order() {
#if defined(__GNUC__)
    __asm__ volatile("" : : : "memory");
#endif
}

/// run_chunk_of() in the default modes of float arithmetic.
template <class Work>
void run_arithmetic_of(const void* work, std::size_t begin, std::size_t end) {
    const default_floating_point_modes modes;
    run_chunk_of<Work>(work, begin, end);
}

/// parallel_arithmetic of work without its type, so that a source has it once, and each work once.
MP_NEVER_INLINE inline void run_arithmetic(const cpu& exec, std::size_t count, std::size_t grain,
                                           chunk_function run, const void* work) {
    const std::size_t chunks = chunks_of(exec, count, grain);
    if (chunks == 1) {
        run(work, 0, count);
    } else if (chunks != 0) {
        run_chunks(exec.pool, chunks, count, run, work);
    }
}

/// parallel_for with the default modes of float arithmetic in every task: threads may have been started in
/// others.
template <class Function>
void parallel_arithmetic(const cpu& exec, std::size_t count, std::size_t grain, Function&& f) {
    run_arithmetic(exec, count, grain, &run_arithmetic_of<std::remove_reference_t<Function>>,
                   std::addressof(f));
}

/// The executors of the tasks of an op: with one thread, and the workspace of that thread.
class task_executors {
public:
    explicit task_executors(const cpu& exec)
        : outer_(exec), threads_(static_cast<std::size_t>((std::max)(exec.threads, 1))) {
        if (threads_ == 1 || exec.workspace == nullptr) return;
        for (std::size_t i = 0; i < threads_; ++i) static_cast<void>(exec.workspace->for_thread(i));
    }
    /// For one task of a parallel_for, of which there are at most outer.threads.
    [[nodiscard]] cpu take() {
        cpu inner = outer_;
        inner.threads = 1;
        if (threads_ > 1 && outer_.workspace != nullptr) {
            inner.workspace = outer_.workspace->for_thread(taken_.fetch_add(1, std::memory_order_relaxed));
        }
        return inner;
    }

private:
    cpu outer_;
    std::size_t threads_;
    std::atomic<std::size_t> taken_ = 0;
};

/// Calls f(executor, begin, end) on ranges that cover `count` tasks: on several threads where there is a
/// task for each of them, and with one thread for f; else once, with all threads for f. Instructions and
/// accumulation are those of exec. A task is `work`
/// multiplications. The results do not depend on the number of threads if f writes to different places for
/// different tasks, and the products that it calls have that property.
template <class Function>
void for_each_task(cpu exec, std::ptrdiff_t count, std::ptrdiff_t work, Function f) {
    if (count == 0) return;
    if (count < threads_of(exec)) {
        f(exec, std::ptrdiff_t{0}, count);
        return;
    }
    task_executors inner(exec);
    constexpr std::ptrdiff_t work_of_a_thread = 65536;  // some ten microseconds, as a thread costs
    parallel_arithmetic(exec, static_cast<std::size_t>(count),
                        static_cast<std::size_t>(1 + work_of_a_thread / (std::max<std::ptrdiff_t>)(work, 1)),
                        [&](std::size_t begin, std::size_t end) {
                            f(inner.take(), static_cast<std::ptrdiff_t>(begin),
                              static_cast<std::ptrdiff_t>(end));
                        });
}

/// Uninitialised memory of one size for each thread of an op, from the executor's workspace, until the op ends,
/// or from the heap. Tasks of a parallel_for over exec take theirs:
///
///     thread_buffers<float> buffers(exec, columns);
///     parallel_arithmetic(exec, rows, grain, [&](std::size_t begin, std::size_t end) {
///         float* const row = buffers.take();
template <class Element>
class thread_buffers {
public:
    thread_buffers(const cpu& exec, std::size_t size)
        : size_((size + line - 1) / line * line),
          all_(exec, size_ * static_cast<std::size_t>((std::max)(exec.threads, 1))) {}
    /// As there is no more than a task for a thread, at most exec.threads times.
    [[nodiscard]] Element* take() {
        return all_.data() + size_ * taken_.fetch_add(1, std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t line = 64;  // elements: threads share no cache line
    std::size_t size_;
    staging_buffer<Element> all_;
    std::atomic<std::size_t> taken_ = 0;
};

}}  // namespace mp::detail
