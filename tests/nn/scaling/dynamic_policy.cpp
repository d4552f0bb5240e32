// SPDX-License-Identifier: MIT
// The parts of dynamic_policy that no preset shows: every action at every limit, NaNs, tolerated skips,
// growth on underflow, and what a state and a policy are made of.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "frontends/compat/preset_traces.hpp"

namespace {

using kind = mp::scale_change_kind;
using traces::table;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Doubles after every clean iteration, halves at every overflow.
mp::dynamic_policy<> quick(float scale) {
    mp::dynamic_policy<> policy;
    policy.initial_scale = scale;
    policy.growth.interval = 1;
    return policy;
}

/// Grows when more than a quarter of the values underflow in 3 iterations in a row, then rests after
/// overflows for 2.
mp::dynamic_policy<mp::growth_on_underflow> watchful() {
    mp::dynamic_policy<mp::growth_on_underflow> policy;
    policy.initial_scale = 8.0F;
    policy.growth = {4.0, 0.25, 3, 2};
    return policy;
}

/// `values` values, of which `zeros` are zero and `flushed` were flushed to zero.
mp::gradient_observation measured(std::uint64_t values, std::uint64_t zeros, std::uint64_t flushed) {
    return {.values = values, .zeros = zeros, .flushed = flushed};
}

/// The scales after each observation.
template <class Policy>
std::vector<double> scales(const Policy& policy, const std::vector<mp::gradient_observation>& observations) {
    policy.validate();
    auto state = mp::initial_scale_state(policy);
    std::vector<double> all;
    for (const mp::gradient_observation& seen : observations) {
        const mp::scale_change change = mp::update_scale(policy, state, seen);
        CHECK(change.after == static_cast<float>(state.scale));
        all.push_back(static_cast<double>(state.scale));
    }
    return all;
}

std::vector<mp::gradient_observation> times(int count, const mp::gradient_observation& seen) {
    return std::vector<mp::gradient_observation>(static_cast<std::size_t>(count), seen);
}

std::vector<mp::gradient_observation> operator+(std::vector<mp::gradient_observation> first,
                                                const std::vector<mp::gradient_observation>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

}  // namespace

TEST_CASE("literal tables: each action at the floor") {
    mp::dynamic_policy<> policy = quick(16.0F);
    policy.growth.interval = 2;
    policy.floor = {3.0, mp::limit_action::clamp};
    CHECK(table(policy, "iiiiccc") == "8- 4- 3_ 3_ 3 6+ 6");
    policy.floor.action = mp::limit_action::keep;
    CHECK(table(policy, "iiiiccc") == "8- 4- 4_ 4_ 4 8+ 8");
    policy.floor.action = mp::limit_action::fail;
    CHECK(table(policy, "iiiiccc") == "8- 4- 3_ 3! 3 6+ 6");
    policy.floor.action = mp::limit_action::disable;
    CHECK(table(policy, "iiiiccc") == "8- 4- 1d 1 1 1 1");
    // A floor of 0 is none: the scale goes down to 0, and stays there.
    policy.initial_scale = 0x1p-126F;
    policy.floor = {0.0, mp::limit_action::fail};
    CHECK(table(policy, traces::repeated("i", 25)).ends_with(" 1.40129846e-45v 0v 0v"));
}

TEST_CASE("literal tables: each action at the ceiling") {
    mp::dynamic_policy<> policy = quick(4.0F);
    policy.ceiling = {12.0, mp::limit_action::clamp};
    CHECK(table(policy, "cccic") == "8+ 12^ 12^ 6- 12+");
    policy.ceiling.action = mp::limit_action::keep;
    CHECK(table(policy, "cccic") == "8+ 8^ 8^ 4- 8+");
    policy.ceiling.action = mp::limit_action::fail;
    CHECK(table(policy, "cccic") == "8+ 8! 8! 4- 8+");
    policy.ceiling.action = mp::limit_action::disable;
    CHECK(table(policy, "cccic") == "8+ 1d 1 1 1");
    policy.ceiling = {16.0, mp::limit_action::fail};
    CHECK(table(policy, "ccc") == "8+ 16+ 16!");
}

TEST_CASE("a limit between two floats is the float that the scale becomes there") {
    // 0.3 lies below the float next to it, 0.7 above.
    mp::dynamic_policy<> policy = quick(1.0F);
    policy.floor = {0.3, mp::limit_action::fail};
    CHECK(table(policy, "iiii") == "0.5- 0.300000012_ 0.300000012! 0.300000012!");
    policy.floor = {0.7, mp::limit_action::fail};
    CHECK(table(policy, "iii") == "0.699999988_ 0.699999988! 0.699999988!");
    // Reached exactly, and by a growth that stops there.
    policy.initial_scale = 2.0F * 0.7F;
    policy.floor = {0.7, mp::limit_action::clamp};
    CHECK(table(policy, "ii") == "0.699999988- 0.699999988_");
    policy.initial_scale = 0.5F * 0.3F;
    policy.floor = {};
    policy.ceiling = {0.3};
    CHECK(table(policy, "cc") == "0.300000012+ 0.300000012^");
    policy.initial_scale = 0.5F * 0.7F;
    policy.ceiling = {0.7};
    CHECK(table(policy, "cc") == "0.699999988+ 0.699999988^");
}

TEST_CASE("a ceiling beyond the floats does not make the scale infinite") {
    mp::dynamic_policy<> policy = quick(0x1p127F);
    for (const mp::limit_action action : {mp::limit_action::clamp, mp::limit_action::keep}) {
        policy.ceiling = {1e39, action};
        CHECK(table(policy, "cc") == "1.70141183e+38= 1.70141183e+38=");
    }
}

TEST_CASE(
    "literal tables: a NaN without an infinity backs off, is kept or fails; an infinity always backs off") {
    mp::dynamic_policy<> policy = quick(16.0F);
    policy.growth.interval = 3;
    CHECK(table(policy, "ccnccnib") == "16 16 8- 8 8 4- 2- 1-");
    policy.nans = mp::nan_reaction::keep_scale;
    // Growth starts anew after a NaN.
    CHECK(table(policy, "ccncccib") == "16 16 16n 16 16 32+ 16- 8-");
    policy.nans = mp::nan_reaction::fail;
    // As if the iteration had not been: the third clean one grows.
    CHECK(table(policy, "ccncnib") == "16 16 16! 32+ 32! 16- 8-");
    // A NaN that is kept leaves hysteresis alone.
    mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget> budget;
    budget.initial_scale = 16.0F;
    budget.nans = mp::nan_reaction::keep_scale;
    CHECK(table(budget, "nnini") == "16n 16n 16a 16n 8-");
}

TEST_CASE("literal tables: more skips in a row than tolerated fail or switch scaling off") {
    mp::dynamic_policy<> policy = quick(64.0F);
    policy.growth.interval = 100;
    policy.skip_tolerance = 2;
    CHECK(table(policy, "iiciiiic") == "32- 16- 16 8- 4- 4! 4! 4");
    policy.skip_action = mp::limit_action::disable;
    CHECK(table(policy, "iiciiiic") == "32- 16- 16 8- 4- 1d 1 1");
    // NaNs and absorbed overflows are skips as well.
    policy.nans = mp::nan_reaction::keep_scale;
    CHECK(table(policy, "ninc") == "64n 32- 1d 1");
    policy.skip_tolerance = 0;
    CHECK(table(policy, "nnnnni") == "64n 64n 64n 64n 64n 32-");
    mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget> budget;
    budget.initial_scale = 16.0F;
    budget.hysteresis.allowance = 9;
    budget.skip_tolerance = 3;
    CHECK(table(budget, "iiii") == "16a 16a 16a 16!");
}

TEST_CASE("skips in a row are counted, and clean iterations begin anew") {
    mp::dynamic_policy<> policy = quick(64.0F);
    auto state = mp::initial_scale_state(policy);
    for (int i = 1; i <= 5; ++i) {
        mp::update_scale(policy, state, {.nans = 1});
        CHECK(state.skipped == i);
    }
    mp::update_scale(policy, state, {});
    CHECK(state.skipped == 0);
    state.skipped = std::numeric_limits<std::int32_t>::max();
    mp::update_scale(policy, state, {.infinities = 1});
    CHECK(state.skipped == std::numeric_limits<std::int32_t>::max());
}

TEST_CASE("a disabled scale stays 1, its state stays as it is, and bad steps are still skipped") {
    mp::dynamic_policy<> policy = quick(2.0F);
    policy.floor = {1.5, mp::limit_action::disable};
    auto state = mp::initial_scale_state(policy);
    CHECK(mp::update_scale(policy, state, {.infinities = 1}) == mp::scale_change{2.0F, 1.0F, kind::disabled});
    CHECK(state.disabled);
    const auto disabled = state;
    for (const char event : std::string("cinbccc")) {
        CHECK(mp::update_scale(policy, state, traces::seen(event)) ==
              mp::scale_change{1.0F, 1.0F, kind::unchanged});
        CHECK(state == disabled);
    }
    CHECK(mp::skips_step(policy, {.infinities = 1}));
    CHECK_FALSE(mp::skips_step(policy, {}));
    policy.validate(state);
}

TEST_CASE("failure_scale fails at the overflow that would leave the scale at or below it") {
    mp::dynamic_policy<> policy = quick(8.0F);
    policy.failure_scale = 2.0;
    CHECK(table(policy, "iic") == "4- 4! 8+");
    policy.failure_scale = 1.9;
    CHECK(table(policy, "iii") == "4- 2- 2!");
    policy.floor = {2.0};
    CHECK(table(policy, "iii") == "4- 2- 2_");
    mp::dynamic_policy<mp::growth_after_clean_run, mp::hysteresis_budget> budget;
    budget.initial_scale = 8.0F;
    budget.failure_scale = 8.0;
    CHECK(table(budget, "ci") == "8 8!");
}

TEST_CASE("guards_infinity decides whether a growth to infinity is refused, in float and in double") {
    mp::dynamic_policy<> policy = quick(0x1p127F);
    CHECK(table(policy, "cci") == "1.70141183e+38= 1.70141183e+38= 8.50705917e+37-");
    policy.guards_infinity = false;
    CHECK(table(policy, "cci") == "inf+ inf+ inf-");
    mp::dynamic_policy<mp::growth_after_clean_run, mp::no_hysteresis, double> wide;
    wide.initial_scale = 0x1p1022;
    wide.growth.interval = 1;
    CHECK(table(wide, "cci") == "8.98846567e+307+ 8.98846567e+307= 4.49423284e+307-");
    wide.guards_infinity = false;
    CHECK(table(wide, "cci") == "8.98846567e+307+ inf+ inf-");
    // In double the scale goes on where the float that the loss is multiplied by is infinite, and comes back.
    wide.initial_scale = 0x1p127;
    auto state = mp::initial_scale_state(wide);
    CHECK(mp::update_scale(wide, state, {}) ==
          mp::scale_change{0x1p127F, std::numeric_limits<float>::infinity(), kind::grown});
    CHECK(state.scale == 0x1p128);
    CHECK(mp::update_scale(wide, state, {.infinities = 1}) ==
          mp::scale_change{std::numeric_limits<float>::infinity(), 0x1p127F, kind::backed_off});
}

TEST_CASE("a back-off divides where the system divides, and multiplies where it multiplies") {
    int different = 0;
    for (int i = 1; i <= 200; ++i) {
        const float scale = 1.0F + static_cast<float>(i) / 7.0F;
        mp::dynamic_policy<> policy = quick(scale);
        policy.backoff = {1.0, 3.0};
        auto state = mp::initial_scale_state(policy);
        mp::update_scale(policy, state, {.infinities = 1});
        REQUIRE(state.scale == scale / 3.0F);  // one rounding of float division
        policy.backoff = {0.1, 1.0};
        state = mp::initial_scale_state(policy);
        mp::update_scale(policy, state, {.infinities = 1});
        REQUIRE(state.scale == static_cast<float>(static_cast<double>(scale) * 0.1));

        mp::dynamic_policy<mp::growth_by_window, mp::no_hysteresis, double> wide;
        wide.initial_scale = static_cast<double>(scale);
        wide.backoff = {1.0, 10.0};
        auto wide_state = mp::initial_scale_state(wide);
        mp::update_scale(wide, wide_state, {.infinities = 1});
        REQUIRE(wide_state.scale == wide.initial_scale / 10.0);
        different += wide_state.scale != wide.initial_scale * 0.1;
    }
    CHECK(different > 20);  // so the check above tells division from multiplication
}

TEST_CASE("growth on underflow waits for a share of flushed values in some iterations in a row") {
    const auto policy = watchful();
    const auto bad = times(1, measured(100, 20, 21));  // 21 of 80: more than a quarter
    const auto good = times(1, measured(100, 20, 20));
    CHECK(scales(policy, bad + bad + bad + bad + bad + bad) == std::vector<double>{8, 8, 32, 32, 32, 128});
    CHECK(scales(policy, bad + bad + good + bad + bad + bad) == std::vector<double>{8, 8, 8, 8, 8, 32});
    // Exactly the share is not more.
    CHECK(scales(policy, times(9, good[0])) == std::vector<double>(9, 8.0));
    // Of values that are all zero nothing was flushed.
    CHECK(scales(policy, times(9, measured(50, 50, 0))) == std::vector<double>(9, 8.0));
}

TEST_CASE("iterations in which nothing was measured count for growth on underflow neither way") {
    const auto policy = watchful();
    const auto bad = times(1, measured(10, 0, 9));
    const auto nothing = times(1, {});
    CHECK(scales(policy, times(50, {})) == std::vector<double>(50, 8.0));
    CHECK(scales(policy, bad + nothing + bad + nothing + nothing + bad) ==
          std::vector<double>{8, 8, 8, 8, 8, 32});
}

TEST_CASE("growth on underflow rests after an overflow and then counts from nothing") {
    const auto policy = watchful();
    const auto bad = times(1, measured(10, 0, 9));
    const auto overflow = times(1, {.infinities = 1, .values = 10, .flushed = 9});
    CHECK(scales(policy, bad + bad + overflow + times(6, bad[0])) ==
          std::vector<double>{8, 8, 4, 4, 4, 4, 4, 16, 16});
    // Another overflow begins the rest anew.
    CHECK(scales(policy, overflow + bad + overflow + times(5, bad[0])) ==
          std::vector<double>{4, 4, 2, 2, 2, 2, 2, 8});
    auto restless = policy;
    restless.growth.rest = 0;
    CHECK(scales(restless, bad + bad + overflow + times(3, bad[0])) ==
          std::vector<double>{8, 8, 4, 4, 4, 16});
}

TEST_CASE("a share of 0 grows on any flushed value") {
    auto policy = watchful();
    policy.growth.share = 0.0;
    policy.growth.patience = 1;
    CHECK(scales(policy, {measured(1000, 0, 1), measured(1000, 0, 0), measured(1000, 1000, 0)}) ==
          std::vector<double>{32, 32, 32});
}

TEST_CASE(
    "lowering the interval during a run: a rule of `at least` grows at once, the others at the next run") {
    for (const bool at_least : {false, true}) {
        mp::dynamic_policy<> policy = quick(4.0F);
        policy.growth = {2.0, 100, at_least};
        auto state = mp::initial_scale_state(policy);
        for (int i = 0; i < 10; ++i) mp::update_scale(policy, state, {});
        CHECK(state.growth.tracker == 10);
        policy.growth.interval = 5;
        mp::update_scale(policy, state, {});
        CHECK(state.scale == (at_least ? 8.0F : 4.0F));
        CHECK(state.growth.tracker == (at_least ? 0 : 11));
    }
    mp::dynamic_policy<> policy = quick(4.0F);
    policy.growth = {2.0, std::numeric_limits<std::int32_t>::max(), true};
    mp::dynamic_policy<>::state_type state{4.0F, {std::numeric_limits<std::int32_t>::max()}};
    CHECK(mp::update_scale(policy, state, {}).kind == kind::grown);
}

TEST_CASE("growth by window can come several iterations later") {
    mp::dynamic_policy<mp::growth_by_window> policy;
    policy.initial_scale = 8.0F;
    policy.growth = {2.0, 2, 3};
    CHECK(table(policy, "cccccccicccccc") == "8 8 8 8 16+ 16 32+ 16- 16 16 16 16 32+ 32");
}

TEST_CASE("the hysteresis counter stops before it overflows") {
    mp::hysteresis_budget rule;
    rule.counts_on = true;
    mp::hysteresis_budget::state_type state{-2147483646};
    CHECK(rule.overflow(state));
    CHECK(state.left == -2147483647);
    CHECK(rule.overflow(state));
    CHECK(state.left == -2147483647);
    rule.counts_on = false;
    state.left = 2;
    CHECK_FALSE(rule.overflow(state));
    CHECK(rule.overflow(state));
    CHECK(rule.overflow(state));
    CHECK(state.left == 1);
}

TEST_CASE("the share of overflows takes an iteration that changed the scale for 1000") {
    const mp::tolerated_overflow_share rule{0.01};
    mp::tolerated_overflow_share::state_type state{7, 7, 0};
    CHECK_FALSE(rule.overflow(state));  // 1 of 1000
    CHECK(state == mp::tolerated_overflow_share::state_type{8, 7, 1});
    CHECK(rule.overflow(state));  // 2 of 1
    CHECK(state == mp::tolerated_overflow_share::state_type{9, 8, 0});
}

TEST_CASE("an infinite ceiling and a floor of zero are none") {
    mp::dynamic_policy<> policy = quick(1.0F);
    CHECK(policy.ceiling.value == infinity);
    CHECK(policy.floor.value == 0.0);
    CHECK(table(policy, traces::repeated("c", 127)).substr(0, 8) == "2+ 4+ 8+");
    CHECK(table(policy, traces::repeated("i", 149)).find('_') == std::string::npos);
}
