// SPDX-License-Identifier: MIT
// Requests of communicators: made by default, moved, copied, ended, and of another communicator.
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// Ends calls of this communicator in all ways. `other` is of the same type, on this rank.
template <class Ranks>
void check_requests(Ranks& ranks, Ranks& other, const std::string& name) {
    const auto refused = [&](auto call, const std::string& function) {
        CHECK(thrown<mp::state_error>(call) ==
              name + "::" + function +
                  ": the request is of a call that has ended, or of another communicator");
    };
    using request = typename Ranks::request;
    request none;
    CHECK(ranks.finished(none));
    ranks.wait(none);
    request moved_from = std::move(none);
    CHECK(ranks.finished(none));  // NOLINT(bugprone-use-after-move)
    ranks.wait(moved_from);

    const auto size = static_cast<std::size_t>(ranks.size());
    std::vector<std::byte> all(size);
    std::vector<std::size_t> cuts(size + 1);
    for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i] = i;
    for (int round = 0; round < 3; ++round) {
        const auto self = static_cast<std::size_t>(ranks.rank());
        all.assign(size, std::byte{});
        all[self] = std::byte{7};
        request call = ranks.start_gather(all, cuts);
        const request copy = call;
        ranks.wait(call);
        CHECK(all[size - 1] == std::byte{7});
        ranks.wait(call);  // as if made by default
        CHECK(ranks.finished(call));
        request ended = copy;
        refused([&] { ranks.wait(ended); }, name == "mp::loopback_communicator" ? "finished" : "wait");
        refused([&] { static_cast<void>(ranks.finished(ended)); }, "finished");
        // Another call now has the place of the first.
        request next = ranks.start_gather(all, cuts);
        refused([&] { static_cast<void>(ranks.finished(ended)); }, "finished");
        request foreign = next;
        refused([&] { static_cast<void>(other.finished(foreign)); }, "finished");
        request moved = std::move(next);
        while (!ranks.finished(moved)) {
        }
        CHECK(ranks.finished(moved));
    }
}

}  // namespace

TEST_CASE("requests that have ended are refused by name, and others made by default have ended") {
    mp::run_loopback(2, [&](auto& self) {
        mp::run_loopback(1, [&](auto& other) { check_requests(self, other, "mp::loopback_communicator"); });
    });
    mp::run_loopback(2, [&](auto& self) {
        mp::any_communicator ranks(self), other(self);
        check_requests(ranks, other, "mp::any_communicator");
    });
    mp::single_rank alone;
    mp::single_rank::request none;
    CHECK(alone.finished(none));
    alone.wait(none);
}

TEST_CASE("a reduction says which of its functions came too early, with one rank and with two") {
    const auto check = [](auto& ranks) {
        mp::parameter_store<float> store;
        store.add_vector("w", 5);
        store.build(1);
        mp::gradient_reduction reduction(mp::cpu{}, ranks, {}, store);
        const auto refused = [&](auto call, const char* text) {
            CHECK(holds(thrown<mp::state_error>(call), text));
        };
        refused([&] { reduction.finish(); }, "mp::gradient_reduction::finish: there is no pass to reduce");
        {
            const auto pass = reduction.backward(1.0F);
            refused([&] { static_cast<void>(reduction.backward(1.0F)); },
                    "mp::gradient_reduction::backward: ");
        }
        reduction.finish();
        refused([&] { reduction.finish(); }, "mp::gradient_reduction::finish: there is no pass to reduce");
    };
    mp::single_rank alone;
    check(alone);
    mp::run_loopback(2, [&](auto& self) { check(self); });
}
