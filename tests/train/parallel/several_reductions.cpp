// SPDX-License-Identifier: MIT
// Several reductions on one communicator: in any order of their passes, and an error where that cannot work.
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "nn/scaling/thrown.hpp"
#include "two_models.hpp"

using namespace two_models;
using namespace std::chrono_literals;

TEST_CASE(
    "two reductions on one communicator keep their gradients apart in every order of the ranks' passes") {
    using enum ranks_differ;
    for (const ranks_differ differ : {not_at_all, in_time, in_order}) {
        for (const int in_flight : {1, 4}) {
            for (const bool compare_sent : {false, true}) {
                CAPTURE(in_flight);
                const setting how{.differ = differ, .in_flight = in_flight, .compare_sent = compare_sent};
                std::atomic<std::size_t> wrong = 0;
                for (const int ranks : {2, 3}) {
                    mp::run_loopback(ranks, [&](auto& self) { wrong += wrong_gradients(self, how); }, 10s);
                }
                CHECK(wrong == 0);
            }
        }
    }
    for (const mp::wire_format wire : {mp::wire_format::bfloat16, mp::wire_format::half}) {
        std::atomic<std::size_t> wrong = 0;
        mp::run_loopback(
            2,
            [&](auto& self) {
                mp::any_communicator ranks(self);
                wrong += wrong_gradients(ranks, {.differ = in_order, .wire = wire});
            },
            10s);
        CHECK(wrong == 0);
    }
}

TEST_CASE("a sharded optimizer and a checkpoint keep apart from gradients on their way") {
    const std::string path = (std::filesystem::temp_directory_path() / "mp_several_reductions").string();
    using enum ranks_differ;
    for (const ranks_differ differ : {not_at_all, in_time, in_order}) {
        std::atomic<std::size_t> wrong = 0;
        mp::run_loopback(2, [&](auto& self) { wrong += wrong_with_shares(self, differ, path); }, 10s);
        CHECK(wrong == 0);
    }
    std::filesystem::remove(path);
}

TEST_CASE("reductions and optimizers that are made in another order on another rank are an error on all") {
    std::atomic<int> told = 0;
    const auto refused = [&](auto make, const char* text) {
        told = 0;
        static_cast<void>(thrown<mp::rank_error>([&] {
            mp::run_loopback(2, [&](auto& self) {
                if (holds(thrown<mp::rank_error>([&] { make(self); }), text)) ++told;
            });
        }));
        CHECK(told == 2);
    };
    // Of the same sizes, and even of the same names.
    refused(
        [](auto& self) {
            model a("a", 0, 1), b("b", 0, 1);
            model& first = self.rank() == 0 ? a : b;
            const mp::gradient_reduction one(mp::cpu{}, self, {}, first.store);
        },
        "the checksum of the name of parameters[0]");
    refused(
        [](auto& self) {
            model a("a", 0, 1);
            if (self.rank() == 1) static_cast<void>(self.open_channel());
            const mp::gradient_reduction one(mp::cpu{}, self, {}, a.store);
        },
        "the number of its channel, which counts the reductions and sharded optimizers of the communicator, "
        "is ");
    refused(
        [](auto& self) {
            model a("a", 0, 1), b("b", 0, 1);
            mp::gradient_reduction both(mp::cpu{}, self, {.share_only = true}, a.store, b.store);
            static_cast<void>(
                mp::shard<mp::sgd<float>>(mp::cpu{}, both, self.rank() == 0 ? a.store : b.store));
        },
        "mp::sharded_optimizer: the ranks differ: the checksum of the names and sizes of its parameters");
}

namespace {

/// A communicator without channels.
struct plain_ranks {
    mp::loopback_communicator& all;
    using request = mp::loopback_communicator::request;
    [[nodiscard]] int rank() const { return all.rank(); }
    [[nodiscard]] int size() const { return all.size(); }
    [[nodiscard]] std::chrono::nanoseconds timeout() const { return all.timeout(); }
    void(max)(std::span<std::uint64_t> values) { (all.max)(values); }
    void sum(std::span<std::uint64_t> values) { all.sum(values); }
    request start_exchange(std::span<const std::byte> from, std::span<std::byte> to,
                           std::span<const std::size_t> cuts) {
        return all.start_exchange(from, to, cuts);
    }
    request start_gather(std::span<std::byte> bytes, std::span<const std::size_t> cuts) {
        return all.start_gather(bytes, cuts);
    }
    bool finished(request& call) { return all.finished(call); }
    void wait(request& call) { all.wait(call); }
    void broadcast(std::span<std::byte> bytes, int root) { all.broadcast(bytes, root); }
};
static_assert(mp::communicator<plain_ranks> && !mp::channelled_communicator<plain_ranks>);

}  // namespace

TEST_CASE("without channels one reduction at a time works, and passes in another order are an error on all") {
    std::atomic<std::size_t> wrong = 0;
    std::atomic<int> told = 0;
    mp::run_loopback(2, [&](auto& self) {
        plain_ranks plain{self};
        mp::any_communicator ranks(plain);
        // Of the same names and sizes.
        model a("a", self.rank(), 1), b("a", self.rank(), 8);
        mp::gradient_reduction of_a(mp::cpu{}, ranks, {}, a.store), of_b(mp::cpu{}, ranks, {}, b.store);
        const auto reduce = [&](auto& reduction, model& of) {
            const auto overlap = reduction.backward(1.0F);
            for (int i = matrices - 1; i >= 0; --i) of.write(i);
            reduction.finish();
        };
        reduce(of_a, a);
        reduce(of_b, b);
        wrong += a.wrong(1.5F) + b.wrong(12.0F);
        const std::string text = thrown<mp::rank_error>([&] {
            if (self.rank() == 0) reduce(of_a, a);
            if (self.rank() == 1) reduce(of_b, b);
        });
        if (holds(text, "sends the gradients of another reduction")) ++told;
    });
    CHECK(wrong == 0);
    CHECK(told == 2);
}

TEST_CASE("a store that is named twice is refused, as is memory that two parameters share") {
    mp::single_rank alone;
    model a("a", 0, 1);
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { const mp::gradient_reduction twice(mp::cpu{}, alone, {}, a.store, a.store); }),
                "mp::gradient_reduction: parameters is 'a"));
    auto some = a.store.parameters();
    some.resize(2);
    some[1].gradient = some[0].gradient.first(3);
    some[1].weights = some[1].weights.first(3);
    CHECK(holds(
        thrown<mp::argument_error>([&] { const mp::gradient_reduction shared(mp::cpu{}, alone, {}, some); }),
        "overlap"));
}

TEST_CASE("a time-out names the ranks that did not come and the call that they have not made") {
    std::atomic<int> told = 0;
    mp::run_loopback(
        4,
        [&](auto& self) {
            model a("a", self.rank(), 1);
            mp::gradient_reduction reduction(mp::cpu{}, self, {}, a.store);
            if (self.rank() % 2 == 1) {
                std::this_thread::sleep_for(400ms);
                return;
            }
            static_cast<void>(reduction.backward(1.0F));
            const std::string text = thrown<mp::rank_timeout>([&] { reduction.finish(); });
            if (holds(text,
                      "ranks 1, 3 have not made exchange number 0 on channel 1, of bucket 0, with the "
                      "gradient of 'a"))
                ++told;
            std::uint64_t value = 1;
            const std::string of_max = thrown<mp::rank_timeout>([&] { self.max(std::span(&value, 1)); });
            if (holds(of_max, "have not made max number ")) ++told;
        },
        50ms);
    CHECK(told == 4);
}
