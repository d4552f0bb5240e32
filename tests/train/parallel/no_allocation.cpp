// SPDX-License-Identifier: MIT
// Ranks take nothing from the heap after the first steps, beyond what the library that carries messages takes; and
// they end with an error where there is no memory.
#include "address_sanitizer.hpp"
#include "count_allocations.hpp"

#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#if defined(MP_ADDRESS_SANITIZER)
#include <sanitizer/lsan_interface.h>
#endif

namespace {

/// What is allocated while it lives may be lost.
struct leaks_expected {
    leaks_expected(const leaks_expected&) = delete;
    leaks_expected& operator=(const leaks_expected&) = delete;
#if defined(MP_ADDRESS_SANITIZER)
    leaks_expected() { __lsan_disable(); }
    ~leaks_expected() { __lsan_enable(); }
#else
    leaks_expected() {}
    ~leaks_expected() {}
#endif
};

/// Two ranks, of which the other one always does what this one does.
struct mirrored_ranks {
    struct request {};
    [[nodiscard]] int rank() const { return 0; }
    [[nodiscard]] int size() const { return 2; }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return mp::default_rank_timeout; }
    void max(std::span<std::uint64_t> /*values*/) {}
    void sum(std::span<std::uint64_t> values) {
        for (std::uint64_t& it : values) it *= 2;
    }
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        const auto part = from.first(cuts[1]);
        std::copy(part.begin(), part.end(), to.begin());
        std::copy(part.begin(), part.end(), to.begin() + static_cast<std::ptrdiff_t>(cuts[1]));
        return {};
    }
    request start_gather(std::span<std::byte> /*all*/, std::span<const std::size_t> /*cuts*/) { return {}; }
    bool finished(request& /*it*/) { return true; }
    void wait(request& /*it*/) {}
    void broadcast(std::span<std::byte> /*bytes*/, int /*root*/) {}
};
static_assert(mp::communicator<mirrored_ranks>);

/// Ranks of a library whose calls do not end, and which may write to their memory at any time.
struct unending_ranks : mirrored_ranks {
    bool starts = true;
    bool ends = false;
    std::span<std::byte> written{};
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return std::chrono::milliseconds(1); }
    request start_exchange(std::span<const std::byte> /*from*/, std::span<std::byte> to,
                           std::span<const std::size_t> /*cuts*/) {
        written = to;
        if (!starts) throw mp::rank_error("a part was started");
        return {};
    }
    bool finished(request& /*it*/) { return false; }
    [[nodiscard]] bool ends_calls_with_rank() const noexcept { return ends; }
};
static_assert(mp::communicator<unending_ranks>);

/// Destroys a reduction while a call is open. Returns how many of its allocations are not freed.
template <class Ranks>
long kept_after_failure(Ranks& ranks) {
    mp::parameter_store<float> store;
    store.add_vector("a", 100);
    store.build(1);
    const long before = live_allocations;
    long allocated = 0;
    bool failed = false;
    {
        mp::gradient_reduction reduction(mp::cpu{}, ranks, {}, store);
        static_cast<void>(reduction.backward(1.0F));
        try {
            reduction.finish();
        } catch (const mp::rank_error&) {
            failed = true;
        }
        allocated = allocations;
    }
    const long after = live_allocations;
    CHECK(failed);
    CHECK(allocations == allocated);
    return after - before;
}

void train(mp::wire_format wire, bool shares) {
    mp::host_workspace workspace;
    const mp::cpu exec{.workspace = &workspace};
    mp::parameter_store<mp::half> store;
    mp::layers::mlp<mp::half> net(store, "net", 64, 300);
    store.build(1);
    mirrored_ranks ranks;
    mp::gradient_reduction reduction(exec, ranks,
                                     {.wire = wire, .bucket_bytes = 20'000, .share_only = shares}, store);
    auto optimizer = mp::shard<mp::adamw<mp::half>>(exec, reduction, store);
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F});
    mp::tensor<mp::half> x(8, 64), dx(8, 64);
    std::fill(x.values().begin(), x.values().end(), mp::half(0.5F));
    for (int step = 0; step < 8; ++step) {
        const long before = allocations;
        mp::training_iteration iteration(scaler, optimizer);
        {
            const auto overlap = reduction.backward(iteration.current_scale());
            const auto y = net.forward(exec, x.view());
            net.backward(exec, y, dx.view(), false);
        }
        reduction.finish();
        iteration.clip_global_gradient_norm(1.0);
        CHECK(iteration.finish());
        if (step >= 3) CHECK(allocations == before);
    }
    CHECK(reduction.statistics().buckets_early > 0);
}

}  // namespace

TEST_CASE("a step on ranks allocates nothing, in every wire format, whole and shared") {
    using enum mp::wire_format;
    for (const auto wire : {as_stored, float32, bfloat16, half, mxfp8}) {
        CAPTURE(mp::name_of(wire));
        train(wire, false);
        train(wire, true);
    }
}

TEST_CASE(
    "memory of calls that have not ended is kept, without an allocation, unless it is not touched any more") {
    for (const bool starts : {true, false}) {
        CAPTURE(starts);
        unending_ranks ranks;
        ranks.starts = starts;
        {
            const leaks_expected expected;
            CHECK(kept_after_failure(ranks) == 5);  // a list, and two buffers that are shared
            std::fill(ranks.written.begin(), ranks.written.end(), std::byte{1});
            mp::any_communicator any(ranks);
            CHECK(kept_after_failure(any) >= 5);
            std::fill(ranks.written.begin(), ranks.written.end(), std::byte{1});
        }
        ranks.ends = true;
        CHECK(kept_after_failure(ranks) == 0);
        const long before = live_allocations;
        {
            mp::any_communicator any(ranks);
            static_cast<void>(kept_after_failure(any));
        }
        const long after = live_allocations;
        CHECK(after == before);
    }
}

TEST_CASE("an allocation that fails, whichever it is, ends all ranks with an error") {
    // What two ranks do: constructors, buckets of several sizes, all kinds of calls.
    const auto work = [](auto& self) {
        mp::any_communicator ranks(self);
        mp::parameter_store<float> store;
        for (const char* name : {"a", "b", "c"}) store.add_vector(name, 100);
        store.build(1);
        mp::broadcast_weights(ranks, store);
        mp::gradient_reduction reduction(mp::cpu{}, ranks, {.bucket_bytes = 1, .share_only = true}, store);
        auto optimizer = mp::shard<mp::sgd<float>>(mp::cpu{}, reduction, store);
        for (int step = 0; step < 2; ++step) {
            static_cast<void>(reduction.backward(1.0F));
            reduction.finish();
            static_cast<void>(optimizer.unscale_gradients(1.0F));
            optimizer.step();
        }
        mp::require_same_weights(ranks, store);
    };
    long failed = 0;
    bool ended = false;
    for (long n = 0; !ended; ++n) {
        ended = true;
        allocations_before_failure = n;
        try {
            mp::run_loopback(2, work, std::chrono::seconds(5));
        } catch (const std::bad_alloc&) {
            ended = false;
            ++failed;
        }
        // Else it is not reached, since n allocations were enough.
        if (ended) CHECK(allocations_before_failure.exchange(-1) >= 0);
    }
    CHECK(failed > 100);
}

TEST_CASE(
    "a call of ranks that are threads, for which there was no memory, is not made, and may be made again") {
    std::atomic<int> failed = 0;
    for (long n = 0; n < 8; ++n) {
        std::atomic<bool> other_is_ready = false;
        std::atomic<bool> is_tried = false;
        std::atomic<std::uint64_t> sums = 0;
        std::vector<std::byte> all(2 * 64);
        const std::vector<std::size_t> cuts{0, 64, 128};
        mp::run_loopback(
            2,
            [&](auto& self) {
                std::vector<std::byte> mine = all;
                std::vector<std::uint64_t> values(20, static_cast<std::uint64_t>(self.rank()) + 1);
                // The first call is in vain on rank 0, and only then rank 1 makes it.
                const auto vainly = [&](auto call) {
                    allocations_before_failure = n;
                    try {
                        call();
                    } catch (const std::bad_alloc&) {
                        ++failed;
                        allocations_before_failure = -1;
                        return true;
                    }
                    allocations_before_failure = -1;
                    return false;
                };
                if (self.rank() == 1) other_is_ready = true;  // and allocates nothing
                while (self.rank() == 1 ? !is_tried : !other_is_ready) {
                }
                auto gather = mp::loopback_communicator::request{};
                const auto start = [&] { gather = self.start_gather(mine, cuts); };
                if (self.rank() == 1 || vainly(start)) start();
                is_tried = true;
                self.wait(gather);
                self.sum(values);
                sums += values[19];
            },
            std::chrono::seconds(5));
        CHECK(sums == 6);
    }
    CHECK(failed >= 4);
}
