// SPDX-License-Identifier: MIT
/// \file
/// Splitting a range of work over threads. Threads live for one call: the library keeps no pool, so it costs
/// nothing while nothing runs, and a call costs some ten microseconds a thread. Where the including project
/// is compiled with OpenMP, its threads are used instead, which wait between calls and allocate nothing.
#pragma once

#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Throws argument_error in the name of `function` when the executor asks for fewer than one thread.
inline void check_threads(std::string_view function, cpu exec) {
    if (exec.threads < 1) {
        throw_argument(function, "exec.threads", exec.threads, "must be at least 1");
    }
}

/// The work of a thread, without its type: run(work, begin, end).
using piece_function = void (*)(const void* work, std::size_t begin, std::size_t end);

/// parallel_for with more than one piece.
inline void run_pieces(std::size_t pieces, std::size_t count, piece_function run, const void* work) {
    const std::size_t share = count / pieces;
    const std::size_t larger = count % pieces;  // the first `larger` pieces take one more
    std::vector<std::exception_ptr> failures(pieces);
    const auto run_piece = [&](std::size_t piece) noexcept {
        const std::size_t begin = piece * share + (std::min)(piece, larger);
        failures[piece] = exception_of([&] { run(work, begin, begin + share + (piece < larger ? 1 : 0)); });
    };
#if defined(_OPENMP)
#pragma omp parallel for num_threads(static_cast<int>(pieces)) schedule(static, 1)
    for (std::size_t piece = 0; piece < pieces; ++piece) run_piece(piece);
#else
    std::vector<std::thread> threads;
    threads.reserve(pieces - 1);
    std::size_t next = 0;
    // Where the system has no more threads or memory to give, the rest runs here.
    static_cast<void>(exception_of([&] {
        for (; next < pieces - 1; ++next) {
            threads.emplace_back(run_piece, next);
        }
    }));
    for (; next < pieces; ++next) {
        run_piece(next);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
#endif
    for (const std::exception_ptr& failure : failures) {
        if (failure) {
            std::rethrow_exception(failure);
        }
    }
}

/// Calls f(begin, end) on contiguous pieces that cover [0, count) without overlap, each piece on its own
/// thread; the calling thread takes the last one. There are at most exec.threads pieces, and none smaller
/// than `grain` unless it is the only one, so that little work runs inline and starts no thread. With count
/// == 0, f is not called.
///
/// Returns when every piece is done. When pieces throw, the exception of the first of them (in the order of
/// the range, not of time) reaches the caller; the other pieces still run to their end. A thread that the
/// system refuses to start has its piece run by the caller. `f` is called concurrently through one reference.
/// Threads inherit the floating-point modes of the caller, or have those of OpenMP's threads.
template <class Function>
void parallel_for(cpu exec, std::size_t count, std::size_t grain, Function&& f) {
    if (count == 0) {
        return;
    }
    const std::size_t allowed = static_cast<std::size_t>((std::max)(exec.threads, 1));
    const std::size_t pieces =
        std::clamp(count / (std::max)(grain, std::size_t{1}), std::size_t{1}, (std::min)(allowed, count));
    if (pieces == 1) {
        f(std::size_t{0}, count);
        return;
    }
    using work = std::remove_reference_t<Function>;
    run_pieces(
        pieces, count,
        [](const void* it, std::size_t begin, std::size_t end) {
            (*const_cast<work*>(static_cast<const work*>(it)))(begin, end);
        },
        std::addressof(f));
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
