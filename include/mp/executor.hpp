// SPDX-License-Identifier: MIT
/// \file
/// Executors: where a bulk algorithm runs. Every bulk algorithm takes one as its first argument, as the
/// standard's parallel algorithms take an execution policy. mp::cuda_stream is in <mp/cuda.hpp>.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace mp {

class workspace;

/// In which order, and with how many roundings, a matrix product adds its terms on the CPU.
enum class accumulation : unsigned char {
    /// As the fastest instructions of the processor do, some of which add pairs of products before the
    /// accumulator and take subnormal numbers for zero. The same bits for any number of threads, but not on
    /// every processor; see mp::gemm.
    fastest,
    /// One fused multiply-add after the other, in ascending order of the terms: the same bits on every
    /// processor. Costs nothing for operands of float and half, and on processors without dot products of
    /// bfloat16.
    ordered,
};

/// Threads that a program has already, for mp::cpu::pool: mp::thread_pool in <mp/thread_pool.hpp>, those of
/// OpenMP and oneTBB in <mp/frontends/interop/openmp.hpp> and <mp/frontends/interop/tbb.hpp>, or your own:
///
///     class my_threads final : public mp::thread_executor {
///     public:
///         int threads() const noexcept override { return scheduler_.workers(); }
///         void run(std::size_t tasks, task function, const void* work) override {
///             scheduler_.for_each(tasks, [=](std::size_t i) { function(work, i); });
///         }
///         ...
///     };
///     my_threads mine;
///     mp::gemm(mp::cpu{.threads = mine.threads(), .pool = &mine}, 1, a, b, 0, c);
class thread_executor {
public:
    /// Runs task `index` of the work. No exception leaves it.
    using task = void (*)(const void* work, std::size_t index) noexcept;

    thread_executor() = default;
    virtual ~thread_executor() = default;
    thread_executor(const thread_executor&) = delete;
    thread_executor& operator=(const thread_executor&) = delete;

    /// Number of tasks that may run at once, the calling thread included; at least 1. Work is not divided
    /// further.
    [[nodiscard]] virtual int threads() const noexcept = 0;

    /// Calls function(work, i) exactly once for each i in [0, tasks), in any order, on any threads, one after
    /// the other or at the same time, and returns when all are done; what they have written is seen then. May
    /// be called from inside a task, and then must not wait for a thread that waits for this one: running
    /// all of them on the calling thread is right. An exception, out of memory say, may leave it only while
    /// no task is running.
    virtual void run(std::size_t tasks, task function, const void* work) = 0;
};

/// Runs on the calling thread and, with threads > 1, on that many threads in all. Results never depend on
/// the number of threads, or on whose they are.
///
///     mp::convert(mp::cpu{}, from, to);               // on this thread, with its best instructions
///     mp::convert(mp::cpu{.threads = 8}, from, to);   // started for this call
///     mp::convert(mp::cpu{.threads = pool.threads(), .pool = &pool}, from, to);  // an mp::thread_pool
///     mp::convert(mp::cpu{.instructions = mp::instruction_set::avx2}, from, to);
///
/// Instructions that the processor lacks are refused with an argument_error by every algorithm that is
/// given them. See also mp::best_instruction_set in <mp/numbers/simd/processor.hpp>.
struct cpu {
    int threads = 1;
    instruction_set instructions = instruction_set::best;
    accumulation products = accumulation::fastest;
    /// Workspace of ops; null for the heap. See <mp/workspace.hpp>.
    mp::workspace* workspace = nullptr;
    /// Whose threads run the work, at most pool->threads() of them; null for threads that are started for
    /// each call, or OpenMP's where the including project, or the compiled part that it links, is compiled with it.
    /// It must outlive objects that keep the executor, such as optimizers.
    thread_executor* pool = nullptr;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Executor>
struct is_gpu_executor : std::false_type {};

/// The memory of a GPU executor, for code that knows no toolkit. Specialised beside the executor with
/// - `static void copy_to_host(exec, void* to, const void* from, std::size_t bytes)`, which waits;
/// - `static void copy_to_device(exec, void* to, const void* from, std::size_t bytes)`, which has read the
///   host's memory when it returns;
/// - `static std::shared_ptr<void> allocate(exec, std::size_t bytes)`: memory that kernels of the executor
///   may use until the last copy of the pointer is gone; null where there is none;
/// - `static void clear(exec, void* to, std::size_t bytes)`, enqueued: zeros;
/// - `static bool can_keep(exec)`: false while kernels are captured, to run again when casts are stale;
/// - `static const void* queue(exec)`: what orders its kernels;
/// - `static std::shared_ptr<void> allocate_pinned(exec, std::size_t bytes)`: memory of the host, null where
///   there is none, from which `copy_pinned(exec, void* to, const void* from, std::size_t bytes)` copies
///   while the host goes on; `mark`, which `record(exec, mark&)` puts behind what is enqueued, and
///   `wait(const mark&)`, which waits until the device has passed it.
template <class Executor>
struct executor_memory;

}}  // namespace mp::detail

namespace mp {

/// mp::cuda_stream (where <mp/cuda.hpp> is included) or mp::simulated_gpu<arch>. With the first an algorithm
/// enqueues kernels and returns, with the second it runs the same kernels on the host.
template <class Executor>
concept gpu_executor = detail::is_gpu_executor<std::remove_cvref_t<Executor>>::value;

/// Executors of ops.
template <class Executor>
concept executor = std::same_as<std::remove_cvref_t<Executor>, cpu> || gpu_executor<Executor>;

}  // namespace mp
