// SPDX-License-Identifier: MIT
// Scalers of several ranks, each in a thread of its own: with a reducer they decide the same whatever each of
// them sees, and without one they do not.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thread_ranks.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

using namespace thread_ranks;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// What the gradients of one optimizer look like on one rank in one iteration.
enum class content { none, clean, infinite, nan };

std::vector<float> gradient_of(content what) {
    switch (what) {
        case content::none:
            return {};
        case content::infinite:
            return {1.0F, infinity, infinity};
        case content::nan:
            return {not_a_number, 2.0F};
        case content::clean:
            break;
    }
    return {1.0F, 2.0F, 3.0F};
}

/// A script: the same for all ranks, who each play their own part of it.
struct script {
    int ranks;
    int optimizers;
    int iterations;
    std::vector<content> contents = {};
    std::vector<bool> unscaled_before = {};

    [[nodiscard]] content at(int iteration, int optimizer, int rank) const {
        const int index = (iteration * optimizers + optimizer) * ranks + rank;
        return contents[static_cast<std::size_t>(index)];
    }
    [[nodiscard]] bool unscales(int iteration, int optimizer) const {
        const int index = iteration * optimizers + optimizer;
        return unscaled_before[static_cast<std::size_t>(index)];
    }
    /// Whether any rank has this for one of its optimizers, or for the given one.
    [[nodiscard]] bool any(int iteration, content what, int only = -1) const {
        for (int optimizer = 0; optimizer < optimizers; ++optimizer) {
            if (only >= 0 && optimizer != only) continue;
            for (int rank = 0; rank < ranks; ++rank) {
                if (at(iteration, optimizer, rank) == what) return true;
            }
        }
        return false;
    }
};

script random_script(int ranks, int optimizers, int iterations, unsigned seed) {
    script result{ranks, optimizers, iterations};
    std::mt19937 random(seed);
    for (int iteration = 0; iteration < iterations; ++iteration) {
        const bool nobody = random() % 12 == 0;
        for (int optimizer = 0; optimizer < optimizers; ++optimizer) {
            result.unscaled_before.push_back(random() % 3 == 0);
            for (int rank = 0; rank < ranks; ++rank) {
                const auto die = random() % 40;
                result.contents.push_back(nobody || die < 8 ? content::none
                                          : die == 8        ? content::infinite
                                          : die == 9        ? content::nan
                                                            : content::clean);
            }
        }
    }
    return result;
}

/// What a rank must agree on with the others in one iteration.
struct decision {
    float scale = 0.0F;
    mp::scale_change change = {};
    std::vector<bool> stepped = {};
    std::uint32_t applied = 0;
    std::uint32_t skipped = 0;

    friend bool operator==(const decision&, const decision&) = default;
};

mp::gradient_observation measured_by(int rank, int iteration) {
    std::mt19937 random(static_cast<unsigned>(rank * 1000 + iteration));
    mp::gradient_observation seen;
    seen.values = 1000;
    seen.zeros = random() % 50;
    // The threshold of the test is 1 %, which a rank may pass alone while all together do not, and vice
    // versa.
    seen.flushed = random() % 20;
    seen.subnormals = random() % 7;
    seen.overflows = random() % 3;
    seen.large = random() % 2;
    seen.largest = static_cast<double>(random() % 1000) / 64.0;
    return seen;
}

/// Plays the part of one rank; the even optimizers are fused.
template <class Policy>
std::vector<decision> play(const script& all, int rank, const Policy& policy, thread_reducer* reducer,
                           bool observes = false) {
    mp::loss_scaler<Policy> scaler(policy);
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    if (reducer != nullptr) scaler.set_reducer(*reducer);
    std::vector<fast_optimizer> fused(static_cast<std::size_t>(all.optimizers));
    std::vector<plain_optimizer> plain(static_cast<std::size_t>(all.optimizers));
    std::vector<decision> decisions;
    for (int iteration = 0; iteration < all.iterations; ++iteration) {
        decision made;
        made.scale = scaler.current_scale();
        const auto drive = [&](auto& optimizer, int number) {
            optimizer.gradient = gradient_of(all.at(iteration, number, rank));
            if (all.unscales(iteration, number)) scaler.unscale(optimizer);
            const int before = optimizer.steps;
            const bool stepped = static_cast<bool>(scaler.step(optimizer));
            if (stepped != (optimizer.steps == before + 1))
                throw std::runtime_error("the step is reported wrongly");
            made.stepped.push_back(stepped);
        };
        for (int number = 0; number < all.optimizers; ++number) {
            const auto place = static_cast<std::size_t>(number);
            if (number % 2 == 0)
                drive(fused[place], number);
            else
                drive(plain[place], number);
        }
        if (observes) scaler.observe(measured_by(rank, iteration));
        made.change = scaler.update();
        made.applied = scaler.last_event().applied;
        made.skipped = scaler.last_event().skipped;
        decisions.push_back(made);
    }
    return decisions;
}

template <class Policy>
std::vector<std::vector<decision>> play_all(const script& all, const Policy& policy, bool observes = false) {
    std::vector<std::vector<decision>> made(static_cast<std::size_t>(all.ranks));
    as_ranks(all.ranks, [&](int rank, thread_reducer& reducer) {
        made[static_cast<std::size_t>(rank)] = play(all, rank, policy, &reducer, observes);
    });
    return made;
}

/// One optimizer on each of two or more ranks, one iteration from scale 1024.
decision after_one(std::vector<content> contents) {
    const int ranks = static_cast<int>(contents.size());
    const script all{ranks, 1, 1, std::move(contents), {false}};
    const auto made = play_all(all, mp::pytorch_policy{.initial_scale = 1024.0F, .growth_interval = 1});
    for (const auto& decisions : made) {
        REQUIRE(decisions.size() == 1);
        CHECK(decisions == made[0]);
    }
    return made[0][0];
}

}  // namespace

TEST_CASE("an infinity on one rank skips the step on all, and all back off") {
    for (const std::vector<content>& contents : {std::vector<content>{content::infinite, content::clean},
                                                 {content::clean, content::clean, content::infinite},
                                                 {content::none, content::infinite, content::clean}}) {
        const decision made = after_one(contents);
        CHECK(made.stepped == std::vector<bool>{false});
        CHECK(made.change == mp::scale_change{1024.0F, 512.0F, mp::scale_change_kind::backed_off});
        CHECK(made.skipped == 1);
    }
}

TEST_CASE("a rank without gradients goes with the others") {
    const decision made = after_one({content::none, content::clean, content::none});
    CHECK(made.stepped == std::vector<bool>{true});
    CHECK(made.change == mp::scale_change{1024.0F, 2048.0F, mp::scale_change_kind::grown});
    CHECK(made.applied == 1);
}

TEST_CASE("a rank steps with gradients of which another one has scaled the loss") {
    std::vector<int> steps(2);
    as_ranks(2, [&](int rank, thread_reducer& reducer) {
        mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F});
        scaler.set_reducer(reducer);
        const float loss = rank == 1 ? scaler.scale(1.0F) : 1024.0F;
        plain_optimizer optimizer{{loss}};
        scaler.step(optimizer);
        scaler.update();
        steps[static_cast<std::size_t>(rank)] = optimizer.steps;
    });
    CHECK(steps == std::vector<int>{1, 1});
}

TEST_CASE("if no rank has gradients, nothing is learnt") {
    const decision made = after_one({content::none, content::none, content::none});
    CHECK(made.stepped == std::vector<bool>{false});
    CHECK(made.change == mp::scale_change{1024.0F, 1024.0F, mp::scale_change_kind::no_gradients});
    CHECK(made.applied + made.skipped == 0);
}

TEST_CASE("a NaN on one rank and an infinity on another are both known to all") {
    // A policy that keeps the scale for NaNs alone tells whether a rank has heard of the infinity.
    mp::dynamic_policy<> policy;
    policy.nans = mp::nan_reaction::keep_scale;
    const auto last = [&](std::vector<content> contents) {
        const int ranks = static_cast<int>(contents.size());
        const auto made = play_all(script{ranks, 1, 1, std::move(contents), {false}}, policy);
        for (const auto& decisions : made) CHECK(decisions == made[0]);
        return made[0][0];
    };
    CHECK(last({content::nan, content::clean}).change.kind == mp::scale_change_kind::nan_kept);
    CHECK(last({content::clean, content::none, content::nan}).change.kind == mp::scale_change_kind::nan_kept);
    CHECK(last({content::nan, content::infinite}).change.kind == mp::scale_change_kind::backed_off);
    CHECK(last({content::nan, content::none, content::infinite}).change.kind ==
          mp::scale_change_kind::backed_off);
}

TEST_CASE("a rank says what it found itself and that others found something") {
    std::vector<mp::step_result> results(2);
    as_ranks(2, [&](int rank, thread_reducer& reducer) {
        mp::dynamic_loss_scaler scaler;
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        scaler.set_reducer(reducer);
        plain_optimizer optimizer{gradient_of(rank == 0 ? content::infinite : content::clean)};
        results[static_cast<std::size_t>(rank)] = scaler.step(optimizer);
    });
    CHECK(results[0].status == mp::step_status::skipped_infinity);
    CHECK(results[0].infinities == 2);
    CHECK(results[0].element_index == 1);
    CHECK_FALSE(results[0].found_elsewhere);
    CHECK(results[1].status == mp::step_status::skipped_infinity);
    CHECK(results[1].infinities == 0);
    CHECK(results[1].element_index == mp::no_index);
    CHECK(results[1].found_elsewhere);
}

TEST_CASE("over a long run every rank makes the decisions that the rules ask for") {
    for (const int ranks : {1, 2, 3, 5}) {
        for (const int optimizers : {1, 3}) {
            const script all =
                random_script(ranks, optimizers, 300, static_cast<unsigned>(ranks * 7 + optimizers));
            const auto made =
                play_all(all, mp::pytorch_policy{.initial_scale = 65536.0F, .growth_interval = 3});
            // The rules, over the contents of all ranks.
            float scale = 65536.0F;
            int clean = 0;
            for (int iteration = 0; iteration < all.iterations; ++iteration) {
                decision expected;
                expected.scale = scale;
                for (int optimizer = 0; optimizer < optimizers; ++optimizer) {
                    const bool bad = all.any(iteration, content::infinite, optimizer) ||
                                     all.any(iteration, content::nan, optimizer);
                    const bool some = bad || all.any(iteration, content::clean, optimizer);
                    expected.stepped.push_back(some && !bad);
                    expected.applied += some && !bad ? 1U : 0U;
                    expected.skipped += bad ? 1U : 0U;
                }
                auto kind = mp::scale_change_kind::no_gradients;
                if (expected.skipped != 0) {
                    kind = mp::scale_change_kind::backed_off;
                    scale /= 2.0F;
                    clean = 0;
                } else if (expected.applied != 0) {
                    kind = mp::scale_change_kind::unchanged;
                    if (++clean == 3) {
                        kind = mp::scale_change_kind::grown;
                        scale *= 2.0F;
                        clean = 0;
                    }
                }
                expected.change = {expected.scale, scale, kind};
                for (const auto& decisions : made) {
                    REQUIRE(decisions[static_cast<std::size_t>(iteration)] == expected);
                }
            }
        }
    }
}

TEST_CASE("what the ranks measured is added up, and the largest is the largest of all") {
    mp::gradient_observation expected;
    for (int rank = 0; rank < 4; ++rank) {
        const mp::gradient_observation mine = measured_by(rank, 0);
        expected.values += mine.values;
        expected.zeros += mine.zeros;
        expected.flushed += mine.flushed;
        expected.subnormals += mine.subnormals;
        expected.overflows += mine.overflows;
        expected.large += mine.large;
        expected.largest = std::max(expected.largest, mine.largest);
    }
    std::vector<mp::scale_event> events(4);
    as_ranks(4, [&](int rank, thread_reducer& reducer) {
        mp::dynamic_loss_scaler scaler;
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        scaler.set_reducer(reducer);
        plain_optimizer optimizer{{1.0F}};
        scaler.step(optimizer);
        scaler.observe(measured_by(rank, 0));
        scaler.update();
        events[static_cast<std::size_t>(rank)] = scaler.last_event();
    });
    for (const mp::scale_event& event : events) CHECK(event.seen == expected);
}

TEST_CASE("a policy that looks at measurements decides by those of all ranks") {
    // The rule is that of growth_on_underflow with a patience of 2, over the sums.
    mp::dynamic_policy<mp::growth_on_underflow> policy;
    policy.growth.share = 0.01;
    policy.growth.patience = 2;
    policy.growth.rest = 0;
    script all{3, 1, 200};
    all.contents.assign(600, content::clean);
    all.unscaled_before.assign(200, false);
    const auto made = play_all(all, policy, true);
    float scale = 65536.0F;
    int underflowing = 0;
    int grown = 0;
    for (int iteration = 0; iteration < 200; ++iteration) {
        double flushed = 0.0;
        double nonzero = 0.0;
        for (int rank = 0; rank < 3; ++rank) {
            const mp::gradient_observation mine = measured_by(rank, iteration);
            flushed += static_cast<double>(mine.flushed);
            nonzero += static_cast<double>(mine.values - mine.zeros);
        }
        const float before = scale;
        underflowing = flushed > 0.01 * nonzero ? underflowing + 1 : 0;
        if (underflowing == 2) {
            underflowing = 0;
            scale *= 2.0F;
            ++grown;
        }
        for (const auto& decisions : made) {
            REQUIRE(decisions[static_cast<std::size_t>(iteration)].change.before == before);
            REQUIRE(decisions[static_cast<std::size_t>(iteration)].change.after == scale);
        }
    }
    CHECK(grown > 10);
}

TEST_CASE("without a reducer the ranks diverge, each by what it sees itself") {
    const script all = random_script(3, 2, 100, 4);
    const mp::pytorch_policy policy{.growth_interval = 3};
    const auto first = play(all, 0, policy, nullptr);
    const auto second = play(all, 1, policy, nullptr);
    CHECK(first != second);
    CHECK(first.back().scale != second.back().scale);
    const auto together = play_all(all, policy);
    CHECK(together[0] == together[1]);
    CHECK(together[0] != first);
}

TEST_CASE("a reducer of one rank changes nothing") {
    const script all = random_script(1, 2, 200, 9);
    const mp::pytorch_policy policy{.growth_interval = 3};
    mp::single_rank alone;
    static_assert(mp::rank_reducer<mp::single_rank>);
    std::vector<mp::scale_event> events;
    for (const bool reduced : {false, true}) {
        mp::loss_scaler<mp::pytorch_policy> scaler(policy);
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        if (reduced) scaler.set_reducer(alone);
        plain_optimizer optimizer;
        for (int iteration = 0; iteration < all.iterations; ++iteration) {
            optimizer.gradient = gradient_of(all.at(iteration, 0, 0));
            scaler.step(optimizer);
            scaler.observe(measured_by(0, iteration));
            scaler.update();
            if (!reduced)
                events.push_back(scaler.last_event());
            else
                REQUIRE(events[static_cast<std::size_t>(iteration)] == scaler.last_event());
        }
    }
}

TEST_CASE("where the policy refuses to go on, it refuses on all ranks") {
    std::vector<std::string> messages(3);
    std::vector<float> scales(3);
    as_ranks(3, [&](int rank, thread_reducer& reducer) {
        mp::loss_scaler<mp::deepspeed_policy> scaler({.initial_scale = 1.0, .hysteresis = 1});
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        scaler.set_reducer(reducer);
        plain_optimizer optimizer{gradient_of(rank == 2 ? content::infinite : content::clean)};
        scaler.step(optimizer);
        const auto place = static_cast<std::size_t>(rank);
        messages[place] = thrown<mp::scale_error>([&] { scaler.update(); });
        // The iteration has not ended, and ends on all ranks.
        scaler.update(4.0F);
        optimizer.gradient = {1.0F};
        scaler.step(optimizer);
        scaler.update();
        scales[place] = scaler.current_scale();
    });
    for (const std::string& message : messages) CHECK(holds(message, "refuses to go on at scale 1"));
    CHECK(scales == std::vector<float>{4.0F, 4.0F, 4.0F});
}

TEST_CASE("a disabled scaler asks nobody, and clear_reducer decides alone again") {
    as_ranks(2, [&](int rank, thread_reducer& reducer) {
        mp::dynamic_loss_scaler off({}, false);
        off.set_reducer(reducer);
        int calls = reducer.calls;
        plain_optimizer optimizer{gradient_of(content::infinite)};
        off.step(optimizer);
        off.update();
        if (optimizer.steps != 1 || reducer.calls != calls) throw std::runtime_error("disabled");
        mp::dynamic_loss_scaler alone;
        static_cast<void>(alone.current_scale());  // as a backward pass does
        alone.set_reducer(reducer);
        alone.clear_reducer();
        calls = reducer.calls;
        optimizer.gradient = gradient_of(rank == 0 ? content::infinite : content::clean);
        const bool stepped = static_cast<bool>(alone.step(optimizer));
        alone.update();
        if (stepped != (rank == 1) || reducer.calls != calls) throw std::runtime_error("alone");
    });
}

TEST_CASE("a policy that counts infinities counts those of all ranks") {
    // Two infinities on one rank and none on the other: the histogram has to be the same on both.
    const script all = random_script(2, 2, 400, 31);
    mp::histogram_policy policy;
    policy.initial_scale = 1024.0F;
    policy.update_period = 3;
    policy.upper_share = 0.0005F;
    const auto made = play_all(all, policy, true);
    for (std::size_t i = 0; i < made[0].size(); ++i) REQUIRE(made[0][i] == made[1][i]);
}
