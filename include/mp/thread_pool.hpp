// SPDX-License-Identifier: MIT
/// \file
/// Threads that live as long as their owner, for mp::cpu.
#pragma once

#include <mp/base/durations.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>

#include <cstddef>
#include <memory>

#if MP_CORE_BODIES
#include <mp/error.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

class pool_threads;

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// Threads that are started once and wait between calls. A call allocates nothing and costs a microsecond or
/// some while they are awake, and what it takes to wake them when they have gone to sleep. The calling thread
/// takes its share of the tasks, and all of those that no other thread has begun, so that a call waits for no
/// thread that is not at work for it.
///
///     mp::thread_pool pool;                                           // one for each processor
///     const mp::cpu exec{.threads = pool.threads(), .pool = &pool};
///     mp::gemm(exec, 1, a, b, 0, c);
///
/// Serves one call at a time: one that comes from another thread in the meantime, or from inside a task,
/// runs on its calling thread alone. Must not be destroyed while a call is running.
///
/// After fork(), the child has none of the threads: its calls run on their calling thread alone, and its copy of the
/// pool ends without waiting for anybody, whether the pool slept or was at work. A child that was made inside of a
/// task must not return from it.
class thread_pool final : public thread_executor {
public:
    /// \param threads  how many may run at once, the calling one included; 0 for one for each processor.
    ///                 Where the system refuses some of them, there are fewer: see threads()
    /// \param spin     how long threads look for work before they sleep, and callers for the end of the last
    ///                 tasks. Not at all where there are more threads than processors
    /// \throws argument_error  a negative number of threads
    explicit thread_pool(int threads = 0, std::chrono::nanoseconds spin = std::chrono::microseconds(50));
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    ~thread_pool() override;

    /// Those that were started, and the calling one.
    [[nodiscard]] int threads() const noexcept override;

    void run(std::size_t tasks, task function, const void* work) override;

private:
    [[nodiscard]] bool is_forked() const noexcept;

    long process_;
    std::unique_ptr<detail::pool_threads> threads_;
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// For a processor that waits in a loop.
inline void pause_spinning() noexcept {
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__)) && !defined(__CUDACC__)
    __builtin_ia32_pause();
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(__CUDACC__)
    __asm__ volatile("isb" : : : "memory");
#else
    std::this_thread::yield();
#endif
}

/// Waits for at most `time` until done() is true, without sleeping. Returns whether it is.
template <class Done>
bool spin_until(std::chrono::nanoseconds time, Done done) noexcept {
    if (done()) return true;
    if (time <= std::chrono::nanoseconds::zero()) return false;
    const auto begin = std::chrono::steady_clock::now();
    constexpr int looks = 32;  // between two looks at the clock
    do {
        for (int i = 0; i < looks; ++i) {
            pause_spinning();
            if (done()) return true;
        }
        // Whoever is waited for may want this very processor.
        std::this_thread::yield();
    } while (std::chrono::steady_clock::now() - begin < time);
    return false;
}

/// The process that calls; 0 where there is no fork().
inline long current_process() noexcept {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(::getpid());
#else
    return 0;
#endif
}

/// The threads of a pool, and what they share with those that call it.
class pool_threads {
public:
    pool_threads(unsigned wanted, std::chrono::nanoseconds spin) : spin_(spin) {
        static_cast<void>(exception_of([&] {
            workers_.reserve(wanted - 1);
            while (workers_.size() + 1 < wanted) workers_.emplace_back([this] { serve(); });
        }));
    }
    pool_threads(const pool_threads&) = delete;
    pool_threads& operator=(const pool_threads&) = delete;
    ~pool_threads() {
        {
            const std::lock_guard lock(mutex_);
            stops_ = true;
        }
        wake_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

    [[nodiscard]] std::size_t workers() const noexcept { return workers_.size(); }

    /// Runs tasks on the threads and the calling one. Returns false, with nothing done, while another call does.
    bool run(std::size_t tasks, thread_executor::task function, const void* work) {
        if (busy_.test_and_set(std::memory_order_acquire)) return false;
        function_ = function;
        work_ = work;
        unfinished_.store(tasks, std::memory_order_relaxed);
        // Here or in await_work() one sees the other: no worker goes to sleep without having seen the work.
        unclaimed_.store(tasks, std::memory_order_seq_cst);
        const std::size_t sleeping = sleepers_.load(std::memory_order_seq_cst);
        if (sleeping != 0) wake((std::min)(sleeping, tasks - 1));
        run_unclaimed();
        await_end();
        busy_.clear(std::memory_order_release);
        return true;
    }

private:
    using task = thread_executor::task;

    void wake(std::size_t count) {
        // A worker that has looked for work in vain is inside wait() once the lock is free.
        {
            const std::lock_guard lock(mutex_);
        }
        if (count == workers_.size()) {
            wake_.notify_all();
        } else {
            for (; count != 0; --count) wake_.notify_one();
        }
    }

    /// A task that is claimed keeps the call from ending, so that function_ and work_ stay what they are.
    void run_unclaimed() noexcept {
        std::size_t left = unclaimed_.load(std::memory_order_relaxed);
        while (left != 0) {
            if (!unclaimed_.compare_exchange_weak(left, left - 1, std::memory_order_acquire,
                                                  std::memory_order_relaxed)) {
                continue;
            }
            function_(work_, left - 1);
            if (unfinished_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
                caller_sleeps_.load(std::memory_order_seq_cst)) {
                {
                    const std::lock_guard lock(mutex_);
                }
                end_.notify_one();
            }
            left = unclaimed_.load(std::memory_order_relaxed);
        }
    }

    void await_end() {
        const auto ended = [this] { return unfinished_.load(std::memory_order_seq_cst) == 0; };
        if (spin_until(spin_, ended)) return;
        std::unique_lock lock(mutex_);
        caller_sleeps_.store(true, std::memory_order_seq_cst);
        end_.wait(lock, ended);
        caller_sleeps_.store(false, std::memory_order_relaxed);
    }

    /// A worker's life.
    void serve() noexcept {
        while (await_work()) run_unclaimed();
    }

    /// False when the pool ends.
    bool await_work() {
        const auto called = [this] { return unclaimed_.load(std::memory_order_seq_cst) != 0 || stops_; };
        if (!spin_until(spin_, called)) {
            std::unique_lock lock(mutex_);
            sleepers_.fetch_add(1, std::memory_order_seq_cst);
            wake_.wait(lock, called);
            sleepers_.fetch_sub(1, std::memory_order_relaxed);
        }
        return !stops_;
    }

    static constexpr std::size_t cache_line = 64;

    // What workers look at while they wait, and what comes with it.
    alignas(cache_line) std::atomic<std::size_t> unclaimed_{0};
    task function_ = nullptr;
    const void* work_ = nullptr;
    // What changes with every task.
    alignas(cache_line) std::atomic<std::size_t> unfinished_{0};
    std::atomic<bool> caller_sleeps_{false};
    // The rest.
    alignas(cache_line) std::atomic_flag busy_;
    std::atomic<std::size_t> sleepers_{0};
    std::atomic<bool> stops_{false};
    std::chrono::nanoseconds spin_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::condition_variable end_;
    std::vector<std::thread> workers_;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION thread_pool::thread_pool(int threads, std::chrono::nanoseconds spin)
    : process_(detail::current_process()) {
    if (threads < 0) {
        detail::throw_argument("mp::thread_pool", "threads", threads, "must not be negative");
    }
    const unsigned processors = (std::max)(std::thread::hardware_concurrency(), 1U);
    const unsigned wanted = threads == 0 ? processors : static_cast<unsigned>(threads);
    threads_ = std::make_unique<detail::pool_threads>(
        wanted, wanted <= processors ? spin : std::chrono::nanoseconds::zero());
}

MP_CORE_FUNCTION thread_pool::~thread_pool() {
    // In a forked child locks may be held, and threads awaited, by threads that are not there.
    if (is_forked()) static_cast<void>(threads_.release());
}

MP_CORE_FUNCTION int thread_pool::threads() const noexcept {
    return static_cast<int>(threads_->workers()) + 1;
}

MP_CORE_FUNCTION void thread_pool::run(std::size_t tasks, task function, const void* work) {
    const bool is_alone = tasks < 2 || threads_->workers() == 0 || is_forked();
    if (!is_alone && threads_->run(tasks, function, work)) return;
    for (std::size_t i = 0; i < tasks; ++i) function(work, i);
}

MP_CORE_FUNCTION bool thread_pool::is_forked() const noexcept {
    return detail::current_process() != process_;
}

}}  // namespace mp
#endif
