// SPDX-License-Identifier: MIT
// Ranks that do not go together: other policies or scales, reducers that throw, ranks that do not come.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/training_iteration.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thread_ranks.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

using namespace thread_ranks;

constexpr const char* nothing = "(nothing was thrown)";

/// What the ranks' calls of set_reducer throw; `make(rank)` returns the scaler of a rank.
template <class Make>
std::vector<std::string> refusals(int ranks, Make make) {
    std::vector<std::string> messages(static_cast<std::size_t>(ranks));
    as_ranks(ranks, [&](int rank, thread_reducer& reducer) {
        auto scaler = make(rank);
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        messages[static_cast<std::size_t>(rank)] =
            thrown<mp::rank_error>([&] { scaler.set_reducer(reducer); });
        // Refused, it decides alone: nobody is asked.
        const int calls = reducer.calls;
        plain_optimizer optimizer{{1.0F}};
        scaler.step(optimizer);
        if (messages[static_cast<std::size_t>(rank)] != nothing && reducer.calls != calls) {
            throw std::runtime_error("the reducer is in use");
        }
    });
    return messages;
}

/// A policy that names nothing.
struct quiet_policy {
    struct state_type {
        float scale;
    };
    float first = 8.0F;
    state_type initial_state() const { return {first}; }
    void validate() const {}
    void validate(const state_type&) const {}
    mp::scale_change update(state_type&, bool) const { return {}; }
};
static_assert(mp::scale_policy<quiet_policy> && !mp::savable_policy<quiet_policy>);

/// The same with two types of scalers.
template <class First, class Second>
std::pair<std::string, std::string> refusals_of_two(First first, Second second) {
    std::pair<std::string, std::string> messages;
    as_ranks(2, [&](int rank, thread_reducer& reducer) {
        if (rank == 0) {
            mp::loss_scaler<First> scaler(first);
            static_cast<void>(scaler.current_scale());  // as a backward pass does
            messages.first = thrown<mp::rank_error>([&] { scaler.set_reducer(reducer); });
        } else {
            mp::loss_scaler<Second> scaler(second);
            static_cast<void>(scaler.current_scale());  // as a backward pass does
            messages.second = thrown<mp::rank_error>([&] { scaler.set_reducer(reducer); });
        }
    });
    return messages;
}

}  // namespace

TEST_CASE("ranks with other parameters or scales are told so on every rank, and by which") {
    const auto parameters = refusals(3, [](int rank) {
        return mp::dynamic_loss_scaler({.backoff_factor = 0.25, .growth_interval = rank == 1 ? 100 : 2000});
    });
    CHECK(parameters[0] ==
          "mp::loss_scaler::set_reducer: the scalers of the ranks differ: policy.growth_interval is 2000 on "
          "this rank, and from 100 to 2000 on all");
    CHECK(parameters[1] ==
          "mp::loss_scaler::set_reducer: the scalers of the ranks differ: policy.growth_interval is 100 on "
          "this rank, and from 100 to 2000 on all");
    CHECK(parameters[2] == parameters[0]);

    const auto scales = refusals(2, [](int rank) {
        mp::dynamic_loss_scaler scaler;
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        if (rank == 1) scaler.update(0.1F);
        return scaler;
    });
    CHECK(holds(scales[0], "differ: state.scale is 65536 on this rank, and from 0.1 to 65536 on all"));
    CHECK(holds(scales[1], "differ: state.scale is 0.1 on this rank, and from 0.1 to 65536 on all"));

    const auto several = refusals(2, [](int rank) {
        mp::dynamic_policy<> policy;
        if (rank == 0) policy.floor = {-0.0, mp::limit_action::fail};
        policy.guards_infinity = rank == 0;
        return mp::loss_scaler(policy);
    });
    CHECK(holds(several[1],
                "policy.floor is 0 on this rank, and from -0 to 0 on all; policy.floor_action is 0 "
                "on this rank, and from 0 to 2 on all; policy.guards_infinity is false on"));

    const auto wide = refusals(2, [](int rank) {
        return mp::loss_scaler(mp::deepspeed_policy{.loss_scale_window = rank == 0 ? 7 : 1LL << 40});
    });
    CHECK(holds(wide[0], "policy.loss_scale_window is 7 on this rank, and from 7 to 1099511627776 on all"));

    const auto unnamed =
        refusals(2, [](int rank) { return mp::loss_scaler(quiet_policy{rank == 0 ? 8.0F : 4.0F}); });
    CHECK(holds(unnamed[1], "state.scale is 4 on this rank, and from 4 to 8 on all"));
}

TEST_CASE("ranks with other policies, or disabled scalers, are told so on every rank") {
    const auto policies = refusals_of_two(mp::pytorch_policy{}, mp::keras_policy{});
    CHECK(policies.first ==
          "mp::loss_scaler::set_reducer: the ranks have different scale policies; on this rank it is "
          "'pytorch'");
    CHECK(
        policies.second ==
        "mp::loss_scaler::set_reducer: the ranks have different scale policies; on this rank it is 'keras'");
    // The names of the parts tell such policies apart.
    const auto parts = refusals_of_two(mp::dynamic_policy<>{}, mp::dynamic_policy<mp::growth_on_underflow>{});
    CHECK(holds(parts.first, "different scale policies; on this rank it is 'dynamic'"));
    CHECK(parts.first == parts.second);
    const auto unnamed = refusals_of_two(quiet_policy{65536.0F}, mp::dynamic_policy<>{});
    CHECK(holds(unnamed.first, "different scale policies; on this rank it is one without a name"));
    CHECK(holds(unnamed.second, "different scale policies"));

    const auto disabled = refusals(3, [](int rank) { return mp::dynamic_loss_scaler({}, rank != 2); });
    CHECK(holds(disabled[0], "the scaler is enabled on this rank, and disabled on others"));
    CHECK(holds(disabled[2], "the scaler is disabled on this rank, and enabled on others"));
}

TEST_CASE("scalers that are the same are taken, wherever they are in a run") {
    for (const std::string& message : refusals(4, [](int) {
             mp::loss_scaler<mp::logmax_policy> scaler;
             static_cast<void>(scaler.current_scale());  // as a backward pass does
             plain_optimizer optimizer{{1.0F}};
             for (int i = 0; i < 5; ++i) {
                 scaler.step(optimizer);
                 scaler.update();
             }
             return scaler;
         })) {
        CHECK(message == nothing);
    }
}

TEST_CASE(
    "what changes a scaler by hand is compared as well, and nothing is changed on any rank if it differs") {
    std::vector<std::string> messages(2);
    std::vector<int> wrong(2);
    as_ranks(2, [&](int rank, thread_reducer& reducer) {
        const auto place = static_cast<std::size_t>(rank);
        mp::dynamic_loss_scaler scaler;
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        scaler.set_reducer(reducer);
        const auto before = scaler.state();
        auto other = before;
        other.state.growth.tracker = rank;
        messages[place] = thrown<mp::rank_error>([&] { scaler.restore(other); });
        const auto refused = [&](auto function) {
            if (thrown<mp::rank_error>(function) == nothing || scaler.state() != before) ++wrong[place];
        };
        refused([&] { scaler.set_growth_interval(100 + rank); });
        refused([&] { scaler.set_growth_factor(2.5 + rank); });
        refused([&] { scaler.set_backoff_factor(0.25 + 0.25 * rank); });
        refused([&] { scaler.set_policy({.initial_scale = 8.0F + static_cast<float>(rank)}); });
        refused([&] { scaler.update(8.0F + static_cast<float>(rank)); });
        scaler.set_growth_interval(100);
        scaler.update(8.0F);
        if (scaler.policy().growth_interval != 100 || scaler.current_scale() != 8.0F) ++wrong[place];
    });
    CHECK(holds(messages[0],
                "mp::loss_scaler::restore: the scalers of the ranks differ: state.growth_tracker "
                "is 0 on this rank, and from 0 to 1 on all"));
    CHECK(wrong == std::vector<int>{0, 0});
}

TEST_CASE("after a reducer has thrown nothing goes on until the iteration is abandoned") {
    meeting alone(1);
    const auto refusal = [](auto function) { return thrown<mp::state_error>(function); };
    // The call whose agreement fails: unscale, the step of either kind of optimizer, record, update.
    for (int which = 0; which < 5; ++which) {
        CAPTURE(which);
        thread_reducer reducer{&alone};
        mp::dynamic_loss_scaler scaler;
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        scaler.set_reducer(reducer);
        fast_optimizer fused{{{1.0F}}};
        plain_optimizer plain{{1.0F}};
        plain_optimizer before{{1.0F}};
        scaler.step(before);
        const auto state = scaler.state();
        reducer.fails_after = 0;
        CHECK(thrown<std::runtime_error>([&] {
                  switch (which) {
                      case 0:
                          scaler.unscale(plain);
                          break;
                      case 1:
                          scaler.step(plain);
                          break;
                      case 2:
                          scaler.step(fused);
                          break;
                      case 3:
                          scaler.record({}, 1);
                          break;
                      default:
                          scaler.update();
                          break;
                  }
              }) == "the network is down");
        reducer.fails_after = -1;
        const int calls = reducer.calls;
        CHECK(refusal([&] { scaler.step(plain); }) ==
              "mp::loss_scaler::step: the reducer threw, so the ranks do not agree on this iteration; call "
              "abandon_iteration on all of them, and run the batch again or end");
        CHECK(holds(refusal([&] { scaler.step(fused); }), "mp::loss_scaler::step: the reducer threw"));
        CHECK(holds(refusal([&] { scaler.unscale(plain); }), "mp::loss_scaler::unscale: the reducer threw"));
        CHECK(holds(refusal([&] { scaler.record({}, 1); }), "mp::loss_scaler::record: the reducer threw"));
        CHECK(holds(refusal([&] { scaler.update(); }), "mp::loss_scaler::update: the reducer threw"));
        CHECK(refusal([&] { mp::training_iteration iteration(scaler, plain); }) != nothing);
        CHECK(reducer.calls == calls);
        CHECK(plain.steps + fused.steps == 0);
        CHECK(scaler.state() == state);
        CHECK(scaler.iterations() == 0);

        scaler.abandon_iteration();
        plain.gradient = fused.gradient = {1.0F};
        CHECK(scaler.step(plain));
        CHECK(scaler.step(fused));
        scaler.update();
        CHECK(scaler.iterations() == 1);
    }
}

TEST_CASE("a scope whose reducer throws leaves scale, counters and weights as they were") {
    meeting alone(1);
    thread_reducer reducer{&alone};
    mp::dynamic_loss_scaler scaler;
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    scaler.set_reducer(reducer);
    plain_optimizer optimizer{{1.0F}};
    const auto state = scaler.state();
    {
        mp::training_iteration iteration(scaler, optimizer);
        reducer.fails_after = 0;
        CHECK(thrown<std::runtime_error>([&] { iteration.unscale(); }) == "the network is down");
        reducer.fails_after = -1;
        CHECK(thrown<mp::state_error>([&] { iteration.finish(); }) != nothing);
    }
    CHECK(scaler.state() == state);
    CHECK(optimizer.steps == 0);
    optimizer.gradient = {1.0F};
    mp::training_iteration again(scaler, optimizer);
    CHECK(again.finish());
}

TEST_CASE("waiting for ranks ends with an error when the time is over, and at once when they come") {
    using namespace std::chrono_literals;
    int asked = 0;
    mp::detail::wait_for_ranks("f", 1h, "", [&] { return ++asked == 3; });
    CHECK(asked == 3);
    // A message of many pieces, of which each look moves one, does not wait for a thread that sleeps.
    auto start = std::chrono::steady_clock::now();
    asked = 0;
    mp::detail::wait_for_ranks("f", 1h, "", [&] { return ++asked == 4000; });
    CHECK(std::chrono::steady_clock::now() - start < 15s);  // 20 if it slept 5 ms each time
    start = std::chrono::steady_clock::now();
    const std::string message =
        thrown<mp::rank_timeout>([&] { mp::detail::wait_for_ranks("f", 20ms, "end", [] { return false; }); });
    CHECK(std::chrono::steady_clock::now() - start >= 20ms);
    CHECK(message.starts_with("f: after 0.0"));
    CHECK(message.ends_with(" seconds not all ranks have made this call; end"));
    CHECK(thrown<mp::argument_error>([] { mp::detail::require_timeout("f", 0s); }) ==
          "f: timeout is 0; it must be a positive number of nanoseconds");
}
