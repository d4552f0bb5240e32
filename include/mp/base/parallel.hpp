// SPDX-License-Identifier: MIT
/// \file
/// Splits a range of work over threads: those of the executor's pool, which exist already. Without a pool, threads
/// live for one call, so they cost nothing while nothing runs, and a call costs some ten microseconds a thread; where
/// the including project, or the compiled part that it links, is compiled with OpenMP, its threads are used instead.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>

#if MP_CORE_BODIES
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The work of a thread, without its type: run(work, begin, end).
using chunk_function = void (*)(const void* work, std::size_t begin, std::size_t end);

/// Runs work on more than one chunk of [0, count), as parallel_for() does.
MP_CORE_FUNCTION void run_chunks(thread_executor* pool, std::size_t chunks, std::size_t count,
                                 chunk_function run, const void* work);

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Number of threads of the executor for one call.
inline int threads_of(cpu exec) noexcept {
    return exec.pool == nullptr ? exec.threads
                                : (std::min)(exec.threads, (std::max)(exec.pool->threads(), 1));
}

/// The least work that is worth a thread, where `grain` is that of a thread that is made for the call.
template <class Work>
constexpr Work grain_of(cpu exec, Work grain) noexcept {
    constexpr Work cheaper = 4;
    return exec.pool == nullptr ? grain : grain / cheaper;
}

/// Into how many chunks parallel_for divides a range.
inline std::size_t chunks_of(const cpu& exec, std::size_t count, std::size_t grain) {
    const std::size_t smallest = (std::max)(grain_of(exec, grain), std::size_t{1});
    // Without a call of the pool where there is nothing to divide.
    if (exec.threads <= 1 || count / smallest <= 1) return count == 0 ? 0 : 1;
    return (std::min)(count / smallest, static_cast<std::size_t>(threads_of(exec)));
}

/// The chunk_function of work that is called with the chunk.
template <class Work>
void run_chunk_of(const void* work, std::size_t begin, std::size_t end) {
    (*const_cast<Work*>(static_cast<const Work*>(work)))(begin, end);
}

/// Calls f(begin, end) on contiguous chunks that cover [0, count) without overlap, each chunk on its own
/// thread, of which the calling thread is one; a pool may run several on one. There are at most
/// threads_of(exec) chunks, and none smaller than grain_of(exec, grain) unless it is the only one, so that
/// little work runs inline and starts no thread. With count == 0, f is not called.
///
/// Returns when every chunk is done. When chunks throw, the exception of the first of them (in the order of
/// the range, not of time) reaches the caller; the other chunks still run to their end. A thread that the
/// system refuses to start has its chunk run by the caller. `f` is called concurrently through one reference.
/// Threads that are started inherit the floating-point modes of the caller, others have their own.
template <class Function>
void parallel_for(cpu exec, std::size_t count, std::size_t grain, Function&& f) {
    const std::size_t chunks = chunks_of(exec, count, grain);
    if (chunks == 1) {
        f(std::size_t{0}, count);
    } else if (chunks != 0) {
        run_chunks(exec.pool, chunks, count, &run_chunk_of<std::remove_reference_t<Function>>,
                   std::addressof(f));
    }
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// A range in chunks of nearly equal size.
class divided_range {
public:
    divided_range(std::size_t chunks, std::size_t count, chunk_function function, const void* work)
        : run_(function),
          work_(work),
          chunk_size_(count / chunks),
          larger_(count % chunks),
          failed_(chunks) {}

    void run(std::size_t chunk) noexcept {
        const std::size_t begin = chunk * chunk_size_ + (std::min)(chunk, larger_);
        std::exception_ptr failure =
            exception_of([&] { run_(work_, begin, begin + chunk_size_ + (chunk < larger_ ? 1 : 0)); });
        if (failure) keep(chunk, std::move(failure));
    }
    static void run_chunk(const void* self, std::size_t chunk) noexcept {
        const_cast<divided_range*>(static_cast<const divided_range*>(self))->run(chunk);
    }
    /// When all chunks are done.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void keep(std::size_t chunk, std::exception_ptr failure) noexcept {
        while (locked_.test_and_set(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
        if (chunk < failed_) {
            failed_ = chunk;
            std::swap(failure_, failure);
        }
        failure = nullptr;  // counts its references before the others go on
        locked_.clear(std::memory_order_release);
    }

    chunk_function run_;
    const void* work_;
    std::size_t chunk_size_;
    std::size_t larger_;  // the first `larger_` chunks take one more
    std::atomic_flag locked_;
    std::size_t failed_;
    std::exception_ptr failure_;
};

MP_CORE_FUNCTION void run_chunks(thread_executor* pool, std::size_t chunks, std::size_t count,
                                 chunk_function run, const void* work) {
    divided_range range(chunks, count, run, work);
    if (pool != nullptr) {
        pool->run(chunks, &divided_range::run_chunk, &range);
        range.rethrow();
        return;
    }
#if defined(_OPENMP)
#pragma omp parallel for num_threads(static_cast<int>(chunks)) schedule(static, 1)
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) range.run(chunk);
#else
    std::vector<std::thread> threads;
    threads.reserve(chunks - 1);
    std::size_t next = 0;
    // Where the system has no more threads or memory to give, the rest runs here.
    static_cast<void>(exception_of([&] {
        for (; next < chunks - 1; ++next) {
            threads.emplace_back(&divided_range::run_chunk, &range, next);
        }
    }));
    for (; next < chunks; ++next) {
        range.run(next);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
#endif
    range.rethrow();
}

}}  // namespace mp::detail
#endif
