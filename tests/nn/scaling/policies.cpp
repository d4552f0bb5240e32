// SPDX-License-Identifier: MIT
// How the scale moves: event traces against literal tables and against an interpreter of the written rules
// that shares no code with the library.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The rules of GradScaler.update in words: an overflow multiplies by the back-off factor and restarts the
/// count; the iteration that completes the interval multiplies by the growth factor unless the float product
/// is infinite, and restarts the count; any other counts. Products in double, kept as float.
struct interpreter {
    double growth;
    double backoff;
    long interval;
    float scale;
    long count = 0;

    void run(bool overflow) {
        volatile double product = 0.0;
        if (overflow) {
            product = double(scale) * backoff;
            scale = float(product);
            count = 0;
            return;
        }
        count = count + 1;
        if (count != interval) return;
        count = 0;
        product = double(scale) * growth;
        if (product > 3.0e38 && std::isinf(float(product))) return;
        scale = float(product);
    }
};

/// Runs a trace ('c' clean, 'i' infinity, 'n' NaN) through policy and interpreter and compares every state.
void compare(const mp::pytorch_policy& policy, std::string_view trace) {
    interpreter expected{policy.growth_factor, policy.backoff_factor, policy.growth_interval,
                         policy.initial_scale};
    mp::scale_state state = mp::initial_scale_state(policy);
    for (std::size_t i = 0; i < trace.size(); ++i) {
        CAPTURE(i);
        const float before = state.scale;
        const mp::gradient_observation seen{trace[i] == 'i' ? 3U : 0U, trace[i] == 'n' ? 1U : 0U};
        const mp::scale_change change = mp::update_scale(policy, state, seen);
        expected.run(trace[i] != 'c');
        REQUIRE(state.scale == expected.scale);
        REQUIRE(state.growth.tracker == expected.count);
        REQUIRE(change.before == before);
        REQUIRE(change.after == state.scale);
        if (state.scale > before) REQUIRE(change.kind == mp::scale_change_kind::grown);
        if (trace[i] != 'c') {
            REQUIRE(change.kind == (state.scale > std::ldexp(1.0F, -128) ? mp::scale_change_kind::backed_off
                                                                         : mp::scale_change_kind::vanished));
        }
    }
}

constexpr mp::gradient_observation found(bool non_finite) {
    return {.infinities = non_finite ? 1U : 0U};
}

std::string repeated(std::string_view part, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += part;
    return text;
}

struct row {
    char event;
    float scale;
    int tracker;
    mp::scale_change_kind kind;
};

using kind = mp::scale_change_kind;

void check_table(const mp::pytorch_policy& policy, const std::vector<row>& rows) {
    mp::scale_state state = mp::initial_scale_state(policy);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CAPTURE(i);
        const mp::scale_change change = mp::update_scale(policy, state, found(rows[i].event != 'c'));
        CHECK(state.scale == rows[i].scale);
        CHECK(state.growth.tracker == rows[i].tracker);
        CHECK(change.kind == rows[i].kind);
    }
}

/// A policy of a user's own that tells NaNs from infinities, with state of its own.
struct patient_policy {
    struct state_type {
        float scale;
        int nan_count;
    };
    state_type initial_state() const { return {256.0F, 0}; }
    void validate() const {}
    void validate(const state_type&) const {}
    mp::scale_change update(state_type& state, const mp::gradient_observation& seen) const {
        const float before = state.scale;
        if (seen.nans != 0) ++state.nan_count;
        if (seen.infinities != 0) state.scale /= 4.0F;
        return {before, state.scale, before == state.scale ? kind::unchanged : kind::backed_off};
    }
};

}  // namespace

static_assert(mp::scale_policy<mp::pytorch_policy> && mp::scale_policy<mp::static_policy> &&
              mp::scale_policy<patient_policy>);
static_assert(std::is_trivially_copyable_v<mp::scale_state> && sizeof(mp::scale_state) <= 24);

TEST_CASE("the defaults are those of GradScaler") {
    const mp::pytorch_policy policy;
    CHECK(policy.initial_scale == 65536.0F);
    CHECK(policy.growth_factor == 2.0);
    CHECK(policy.backoff_factor == 0.5);
    CHECK(policy.growth_interval == 2000);
    CHECK(mp::initial_scale_state(policy) == mp::scale_state{65536.0F, {0}});
}

TEST_CASE("literal trace: growth falls on every third clean iteration and an overflow restarts the count") {
    check_table({.initial_scale = 8.0F, .growth_interval = 3}, {{'c', 8.0F, 1, kind::unchanged},
                                                                {'c', 8.0F, 2, kind::unchanged},
                                                                {'c', 16.0F, 0, kind::grown},
                                                                {'c', 16.0F, 1, kind::unchanged},
                                                                {'x', 8.0F, 0, kind::backed_off},
                                                                {'x', 4.0F, 0, kind::backed_off},
                                                                {'c', 4.0F, 1, kind::unchanged},
                                                                {'c', 4.0F, 2, kind::unchanged},
                                                                {'x', 2.0F, 0, kind::backed_off},
                                                                {'c', 2.0F, 1, kind::unchanged},
                                                                {'c', 2.0F, 2, kind::unchanged},
                                                                {'c', 4.0F, 0, kind::grown}});
}

TEST_CASE("literal trace: a growth that would be infinite is refused and restarts the count all the same") {
    check_table({.initial_scale = 0x1p126F, .growth_interval = 2}, {{'c', 0x1p126F, 1, kind::unchanged},
                                                                    {'c', 0x1p127F, 0, kind::grown},
                                                                    {'c', 0x1p127F, 1, kind::unchanged},
                                                                    {'c', 0x1p127F, 0, kind::growth_refused},
                                                                    {'c', 0x1p127F, 1, kind::unchanged},
                                                                    {'x', 0x1p126F, 0, kind::backed_off}});
    // The largest float can still be reached by a factor that rounds to it, but not passed.
    const float largest = std::numeric_limits<float>::max();
    check_table({.initial_scale = 0x1.fffffcp127F, .growth_factor = 1.0 + 0x1p-24, .growth_interval = 1},
                {{'c', largest, 0, kind::grown}, {'c', largest, 0, kind::growth_refused}});
}

TEST_CASE("literal trace: a growth product just below the midpoint to infinity rounds to the largest float") {
    // 0x1.fffffep127 (1 + 2^-26) lies below the midpoint 0x1.ffffffp127 and is the largest float; the scale
    // is unchanged, yet this is a growth and not a refusal.
    const float largest = std::numeric_limits<float>::max();
    check_table({.initial_scale = largest, .growth_factor = 1.0 + 0x1p-26, .growth_interval = 1},
                {{'c', largest, 0, kind::grown}});
    check_table({.initial_scale = largest, .growth_factor = 1.0 + 0x1p-24, .growth_interval = 1},
                {{'c', largest, 0, kind::growth_refused}});
}

TEST_CASE(
    "literal trace: backing off goes through the subnormal scales to zero and says when it is too small") {
    check_table({.initial_scale = 0x1p-126F}, {{'x', 0x1p-127F, 0, kind::backed_off},
                                               {'x', 0x1p-128F, 0, kind::vanished},
                                               {'x', 0x1p-129F, 0, kind::vanished}});
    mp::pytorch_policy policy;
    mp::scale_state state{0x1p-149F, {5}};
    CHECK(mp::update_scale(policy, state, found(true)) == mp::scale_change{0x1p-149F, 0.0F, kind::vanished});
    CHECK(mp::update_scale(policy, state, found(true)) == mp::scale_change{0.0F, 0.0F, kind::vanished});
    CHECK(state == mp::scale_state{0.0F, {0}, {}, 2});
}

TEST_CASE("traces agree with the interpreter") {
    const mp::pytorch_policy quick{.initial_scale = 1024.0F, .growth_interval = 4};
    SUBCASE("clean run over several growths") {
        compare(quick, repeated("c", 40));
    }
    SUBCASE("alternating") {
        compare(quick, repeated("ci", 20));
    }
    SUBCASE("bursts of infinities") {
        compare(quick, repeated("iiicccccc", 9));
    }
    SUBCASE("NaN backs off like infinity") {
        compare(quick, repeated("nccccccni", 9));
    }
    SUBCASE("an overflow on the very iteration that would have grown") {
        compare(quick, repeated("ccci", 9));
    }
    SUBCASE("interval of one") {
        compare({.initial_scale = 1.0F, .growth_interval = 1}, repeated("cccci", 50));
    }
    SUBCASE("growth into the ceiling of float and back") {
        compare({.initial_scale = 0x1p120F, .growth_interval = 1},
                repeated("c", 20) + repeated("i", 3) + "cccccc");
    }
    SUBCASE("all the way down to zero") {
        compare({.initial_scale = 1.0F}, repeated("i", 160));
    }
    SUBCASE("factors whose products round") {
        compare({.initial_scale = 3.3F, .growth_factor = 1.1, .backoff_factor = 0.7, .growth_interval = 2},
                repeated("cccciccn", 60));
    }
    SUBCASE("the defaults over a long run") {
        compare({}, repeated("c", 6001) + "i" + repeated("c", 1999) + "i" + repeated("c", 4000));
    }
}

TEST_CASE("lowering the interval below the count reached delays growth until the next overflow") {
    mp::pytorch_policy policy{.initial_scale = 4.0F, .growth_interval = 100};
    mp::scale_state state = mp::initial_scale_state(policy);
    for (int i = 0; i < 10; ++i) mp::update_scale(policy, state, found(false));
    policy.growth_interval = 5;
    for (int i = 0; i < 50; ++i) mp::update_scale(policy, state, found(false));
    CHECK(state == mp::scale_state{4.0F, {60}});
    mp::update_scale(policy, state, found(true));
    for (int i = 0; i < 5; ++i) mp::update_scale(policy, state, found(false));
    CHECK(state == mp::scale_state{4.0F, {0}});
}

TEST_CASE("the count stays at the largest integer rather than overflow") {
    mp::pytorch_policy policy{.initial_scale = 4.0F, .growth_interval = 5};
    mp::scale_state state{4.0F, {std::numeric_limits<std::int32_t>::max()}};
    CHECK(mp::update_scale(policy, state, found(false)).kind == kind::unchanged);
    CHECK(state.growth.tracker == std::numeric_limits<std::int32_t>::max());
}

TEST_CASE("the update is a constant expression, as it has to be for device code") {
    constexpr auto last = [] {
        mp::pytorch_policy policy{.initial_scale = 2.0F, .growth_interval = 2};
        mp::scale_state state = mp::initial_scale_state(policy);
        for (int i = 0; i < 4; ++i) mp::update_scale(policy, state, {});
        mp::update_scale(policy, state, {.infinities = 1});
        return state;
    }();
    static_assert(last == mp::scale_state{4.0F, {0}, {}, 1});
    static_assert(mp::inverse_of_scale(65536.0F) == 0x1p-16F);
}

TEST_CASE("the inverse of a scale is rounded once and infinite where a float cannot hold it") {
    for (const float scale : {1.0F, 3.0F, 65536.0F, 0.1F, 1e-38F, 0x1p-127F, 0x1.000008p-128F, 3.4e38F}) {
        CHECK(mp::inverse_of_scale(scale) == static_cast<float>(1.0 / static_cast<double>(scale)));
    }
    for (const float scale : {0.0F, 0x1p-149F, 0x1p-129F, 0x1p-128F}) {
        CHECK(mp::inverse_of_scale(scale) == infinity);
    }
}

TEST_CASE("a static policy never moves the scale and may apply steps with bad values") {
    const mp::static_policy policy{.initial_scale = 128.0F};
    mp::static_policy::state_type state = mp::initial_scale_state(policy);
    for (const bool bad : {false, true, true, false}) {
        CHECK(mp::update_scale(policy, state, found(bad)) ==
              mp::scale_change{128.0F, 128.0F, kind::unchanged});
    }
    CHECK(state == mp::static_policy::state_type{128.0F});
    CHECK(mp::skips_step(policy, {.nans = 1}));
    CHECK_FALSE(mp::skips_step(policy, {}));
    CHECK_FALSE(mp::skips_step(mp::static_policy{.skip_non_finite = false}, {.infinities = 1}));
}

TEST_CASE("a policy of one's own sees infinities and NaNs apart") {
    const patient_policy policy;
    patient_policy::state_type state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.nans = 7});
    mp::update_scale(policy, state, {.infinities = 1});
    CHECK(state.nan_count == 1);
    CHECK(state.scale == 64.0F);
}

TEST_CASE("parameters out of range are refused by name and value") {
    using policy = mp::pytorch_policy;
    const auto refusal = [](const policy& it) {
        return thrown<mp::argument_error>([&] { mp::dynamic_loss_scaler scaler(it); });
    };
    CHECK(refusal({.initial_scale = 0.0F}) ==
          "mp::standard_scale_policy: initial_scale is 0; it must be finite and greater than 0");
    CHECK(holds(refusal({.initial_scale = -1.0F}), "initial_scale is -1;"));
    CHECK(holds(refusal({.initial_scale = not_a_number}), "initial_scale is nan;"));
    CHECK(holds(refusal({.initial_scale = infinity}), "initial_scale is inf;"));
    CHECK(holds(refusal({.initial_scale = 0x1p-128F}), "must be greater than 2^-128"));
    CHECK(refusal({.initial_scale = 0x1.000008p-128F}) == "(nothing was thrown)");
    CHECK(refusal({.growth_factor = 1.0}) ==
          "mp::standard_scale_policy: growth_factor is 1; it must be finite and greater than 1");
    CHECK(holds(refusal({.growth_factor = not_a_number}), "growth_factor is nan;"));
    CHECK(holds(refusal({.growth_factor = infinity}), "growth_factor is inf;"));
    CHECK(refusal({.backoff_factor = 0.0}) ==
          "mp::standard_scale_policy: backoff_factor is 0; it must be greater than 0 and less than 1");
    CHECK(holds(refusal({.backoff_factor = 1.0}), "backoff_factor is 1;"));
    CHECK(holds(refusal({.backoff_factor = -0.5}), "backoff_factor is -0.5;"));
    CHECK(holds(refusal({.backoff_factor = not_a_number}), "backoff_factor is nan;"));
    CHECK(refusal({.growth_interval = 0}) ==
          "mp::standard_scale_policy: growth_interval is 0; it must be at least 1");
    CHECK(holds(refusal({.growth_interval = -3}), "growth_interval is -3;"));
    CHECK(thrown<mp::argument_error>([] { mp::static_loss_scaler scaler({.initial_scale = -2.0F}); }) ==
          "mp::static_policy: initial_scale is -2; it must be finite and greater than 0");
}
