// SPDX-License-Identifier: MIT
/// \file
/// Splitting a range of work over threads: those of the executor's pool, which are there already. Without one,
/// threads live for one call, so they cost nothing while nothing runs, and a call costs some ten microseconds
/// a thread; where the including project is compiled with OpenMP, its threads are used instead.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Throws argument_error in the name of `function` when the executor asks for fewer than one thread.
inline void check_threads(std::string_view function, cpu exec) {
    if (exec.threads < 1) {
        throw_argument(function, "exec.threads", exec.threads, "must be at least 1");
    }
}

/// How many threads the executor has for one call.
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

/// The work of a thread, without its type: run(work, begin, end).
using piece_function = void (*)(const void* work, std::size_t begin, std::size_t end);

/// A range in pieces of nearly equal size.
class divided_range {
public:
    divided_range(std::size_t pieces, std::size_t count, piece_function function, const void* work)
        : run_(function), work_(work), share_(count / pieces), larger_(count % pieces), failed_(pieces) {}

    void run(std::size_t piece) noexcept {
        const std::size_t begin = piece * share_ + (std::min)(piece, larger_);
        std::exception_ptr failure =
            exception_of([&] { run_(work_, begin, begin + share_ + (piece < larger_ ? 1 : 0)); });
        if (failure) keep(piece, std::move(failure));
    }
    static void run_piece(const void* self, std::size_t piece) noexcept {
        const_cast<divided_range*>(static_cast<const divided_range*>(self))->run(piece);
    }
    /// When all pieces are done.
    void rethrow() const {
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void keep(std::size_t piece, std::exception_ptr failure) noexcept {
        while (locked_.test_and_set(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
        if (piece < failed_) {
            failed_ = piece;
            std::swap(failure_, failure);
        }
        failure = nullptr;  // counts its references before the others go on
        locked_.clear(std::memory_order_release);
    }

    piece_function run_;
    const void* work_;
    std::size_t share_;
    std::size_t larger_;  // the first `larger_` pieces take one more
    std::atomic_flag locked_;
    std::size_t failed_;
    std::exception_ptr failure_;
};

/// parallel_for with more than one piece.
inline void run_pieces(thread_executor* pool, std::size_t pieces, std::size_t count, piece_function run,
                       const void* work) {
    divided_range range(pieces, count, run, work);
    if (pool != nullptr) {
        pool->run(pieces, &divided_range::run_piece, &range);
        range.rethrow();
        return;
    }
#if defined(_OPENMP)
#pragma omp parallel for num_threads(static_cast<int>(pieces)) schedule(static, 1)
    for (std::size_t piece = 0; piece < pieces; ++piece) range.run(piece);
#else
    std::vector<std::thread> threads;
    threads.reserve(pieces - 1);
    std::size_t next = 0;
    // Where the system has no more threads or memory to give, the rest runs here.
    static_cast<void>(exception_of([&] {
        for (; next < pieces - 1; ++next) {
            threads.emplace_back(&divided_range::run_piece, &range, next);
        }
    }));
    for (; next < pieces; ++next) {
        range.run(next);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
#endif
    range.rethrow();
}

/// Calls f(begin, end) on contiguous pieces that cover [0, count) without overlap, each piece on its own
/// thread, of which the calling thread is one; a pool may run several on one. There are at most
/// threads_of(exec) pieces, and none smaller than grain_of(exec, grain) unless it is the only one, so that
/// little work runs inline and starts no thread. With count == 0, f is not called.
///
/// Returns when every piece is done. When pieces throw, the exception of the first of them (in the order of
/// the range, not of time) reaches the caller; the other pieces still run to their end. A thread that the
/// system refuses to start has its piece run by the caller. `f` is called concurrently through one reference.
/// Threads that are started inherit the floating-point modes of the caller, others have their own.
template <class Function>
void parallel_for(cpu exec, std::size_t count, std::size_t grain, Function&& f) {
    if (count == 0) {
        return;
    }
    const std::size_t smallest = (std::max)(grain_of(exec, grain), std::size_t{1});
    // A pool is not asked where there is nothing to divide.
    const bool divides = exec.threads > 1 && count / smallest > 1;
    const std::size_t pieces =
        divides ? (std::min)(count / smallest, static_cast<std::size_t>(threads_of(exec))) : 1;
    if (pieces == 1) {
        f(std::size_t{0}, count);
        return;
    }
    using work = std::remove_reference_t<Function>;
    run_pieces(
        exec.pool, pieces, count,
        [](const void* it, std::size_t begin, std::size_t end) {
            (*const_cast<work*>(static_cast<const work*>(it)))(begin, end);
        },
        std::addressof(f));
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
