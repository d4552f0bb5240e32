// SPDX-License-Identifier: MIT
// Ranks as threads of one program, and optimizers that count their steps.
#pragma once

#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace thread_ranks {

/// Where the ranks of a run meet: each brings values, and takes those of all away.
class meeting {
public:
    explicit meeting(std::ptrdiff_t ranks) : barrier_(ranks) {}

    template <class Combine>
    void combine(std::span<std::uint64_t> values, Combine combine) {
        {
            const std::lock_guard lock(mutex_);
            if (arrived_++ == 0)
                all_.assign(values.begin(), values.end());
            else if (all_.size() != values.size())
                mismatch_ = true;
            else {
                for (std::size_t i = 0; i < values.size(); ++i) all_[i] = combine(all_[i], values[i]);
            }
        }
        barrier_.arrive_and_wait();
        if (!mismatch_) std::copy(all_.begin(), all_.end(), values.begin());
        arrived_ = 0;
        barrier_.arrive_and_wait();
    }
    /// A rank that ends no longer keeps the others waiting.
    void leave() { barrier_.arrive_and_drop(); }
    [[nodiscard]] bool mismatch() const { return mismatch_; }

private:
    std::barrier<> barrier_;
    std::mutex mutex_;
    std::vector<std::uint64_t> all_;
    std::atomic<std::size_t> arrived_ = 0;
    std::atomic<bool> mismatch_ = false;
};

struct thread_reducer {
    meeting* place = nullptr;
    int calls = 0;
    int fails_after = -1;  ///< further calls that succeed; -1 for any number

    void max(std::span<std::uint64_t> values) {
        fail_if_due();
        ++calls;
        place->combine(values, [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; });
    }
    void sum(std::span<std::uint64_t> values) {
        fail_if_due();
        ++calls;
        place->combine(values, [](std::uint64_t a, std::uint64_t b) { return a + b; });
    }

private:
    void fail_if_due() {
        if (fails_after == 0) throw std::runtime_error("the network is down");
        if (fails_after > 0) --fails_after;
    }
};
static_assert(mp::rank_reducer<thread_reducer>);
static_assert(!mp::rank_reducer<meeting>);

/// Runs function(rank, reducer) in a thread for every rank.
template <class Function>
void as_ranks(int ranks, Function function) {
    meeting place(ranks);
    std::vector<int> calls(static_cast<std::size_t>(ranks));
    std::vector<std::string> errors(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            thread_reducer reducer{&place};
            try {
                function(rank, reducer);
            } catch (const std::exception& error) {
                errors[static_cast<std::size_t>(rank)] = error.what();
            }
            calls[static_cast<std::size_t>(rank)] = reducer.calls;
            place.leave();
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_FALSE(place.mismatch());
    for (const std::string& error : errors) CHECK(error == "");
    for (const int count : calls) CHECK(count == calls[0]);
}

/// What became of one optimizer of one rank.
struct plain_optimizer {
    std::vector<float> gradient = {};
    int steps = 0;

    mp::gradient_report unscale_gradients(float inverse_scale) {
        mp::gradient_report report;
        report.add(0, gradient.size(), mp::unscale_and_check(mp::cpu{}, gradient, inverse_scale));
        return report;
    }
    void step() { ++steps; }
    void skip_step() {}
};
struct fast_optimizer : plain_optimizer {
    mp::gradient_report check_gradients(float inverse_scale) {
        mp::gradient_report report;
        report.add(0, gradient.size(), mp::check_finite(mp::cpu{}, gradient, inverse_scale));
        return report;
    }
    using plain_optimizer::step;
    void step(float) { ++steps; }
};
static_assert(mp::fused_optimizer<fast_optimizer> && !mp::fused_optimizer<plain_optimizer>);

}  // namespace thread_ranks
