// SPDX-License-Identifier: MIT
// The policies that look at the distribution of gradients, beside interpreters of the systems they come from.
#include <doctest/doctest.h>
#include <mp/loss_scaling.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

using kind = mp::scale_change_kind;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// OpenSeq2Seq's LogMaxScaler, written from its rules. Parameters are numbers of Python's; they and what is
/// computed from them alone are double until they meet a tensor of float.
struct logmax_interpreter {
    double scale_min = 1.0;
    double scale_max = 16384.0;
    double beta1 = 0.99;
    double beta2 = 0.999;
    double overflow_std_dev = 3.09;
    double non_finite = 65536.0;  ///< there 2 to the power of log_max, which is 16
    float scale = 1.0F;
    float x_hat = 0.0F;
    float slow_x_hat = 0.0F;
    float xsquared_hat = 0.0F;
    float b1_correction = 1.0F;
    float b2_correction = 1.0F;

    /// old * beta + x * (1 - beta), each product a float.
    static float average(float old, double beta, float x) {
        volatile const float kept = static_cast<float>(beta) * old;
        volatile const float added = static_cast<float>(1.0 - beta) * x;
        return kept + added;
    }

    void update(bool has_inf_or_nan, double amax) {
        const float x = static_cast<float>(has_inf_or_nan ? non_finite : std::log(amax) / std::log(2.0));
        volatile const float square = x * x;
        x_hat = average(x_hat, beta1, x);
        slow_x_hat = average(slow_x_hat, beta2, x);
        xsquared_hat = average(xsquared_hat, beta2, square);
        b1_correction *= static_cast<float>(beta1);
        b2_correction *= static_cast<float>(beta2);
        const float mu = x_hat / (1.0F - b1_correction);
        const float slow_mu = slow_x_hat / (1.0F - b2_correction);
        const float e_xsquared = xsquared_hat / (1.0F - b2_correction);
        volatile const float slow_mu_squared = slow_mu * slow_mu;
        const float sigma = std::sqrt(std::max(e_xsquared - slow_mu_squared, 0.0F));
        volatile const float distance = sigma * static_cast<float>(overflow_std_dev);
        const float proposed = std::pow(2.0F, 16.0F - (distance + mu));
        scale = std::clamp(proposed, static_cast<float>(scale_min), static_cast<float>(scale_max));
    }
};

/// Whether a number is the expected one up to what another order of float operations may do.
bool close(float number, float expected, float tolerance) {
    return std::abs(number - expected) <= tolerance * std::max(std::abs(expected), 1e-3F);
}

struct gradient {
    double largest;
    bool non_finite = false;
};

/// Empty if policy and interpreter agree after every iteration.
std::string difference(const mp::logmax_policy& policy, logmax_interpreter system,
                       const std::vector<gradient>& gradients) {
    policy.validate();
    mp::logmax_policy::state_type state = mp::initial_scale_state(policy);
    if (state.scale != system.scale) return "the initial scale";
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        const auto at = [&](const char* what) { return what + (" at " + std::to_string(i)); };
        const float before = state.scale;
        const mp::gradient_observation seen{.infinities = gradients[i].non_finite ? 2U : 0U,
                                            .largest = gradients[i].largest};
        const mp::scale_change change = mp::update_scale(policy, state, seen);
        system.update(gradients[i].non_finite, gradients[i].largest);
        if (!close(state.mean, system.x_hat, 1e-5F)) return at("mean");
        if (!close(state.slow_mean, system.slow_x_hat, 1e-5F)) return at("slow mean");
        if (!close(state.slow_square, system.xsquared_hat, 1e-5F)) return at("slow square");
        if (!close(state.weight, system.b1_correction, 1e-5F)) return at("weight");
        if (!close(state.slow_weight, system.b2_correction, 1e-5F)) return at("slow weight");
        // The deviation is what is left of a difference of squares, so the last places of those show.
        if (!close(state.scale, system.scale, 2e-3F)) return at("scale");
        const kind expected = state.scale > before   ? kind::grown
                              : state.scale < before ? kind::backed_off
                                                     : kind::unchanged;
        if (change != mp::scale_change{before, state.scale, expected}) return at("change");
        if (mp::skips_step(policy, seen) != gradients[i].non_finite) return at("skip");
    }
    return "";
}

/// Gradients whose largest magnitude has a logarithm around `center`, now and then an infinity.
std::vector<gradient> random_gradients(std::uint32_t seed, int count, double center, double spread,
                                       std::uint32_t rarity) {
    std::mt19937 random(seed);
    std::vector<gradient> all;
    for (int i = 0; i < count; ++i) {
        const double uniform = static_cast<double>(random()) / 4294967296.0 - 0.5;
        all.push_back({std::exp2(center + spread * uniform), rarity != 0 && random() % rarity == 0});
    }
    return all;
}

}  // namespace

TEST_CASE("logmax_policy and OpenSeq2Seq's LogMax go the same way") {
    const mp::logmax_policy policy;
    const mp::logmax_policy as_there{.non_finite_log = 65536.0F};
    const logmax_interpreter system;
    CHECK(difference(policy, system, random_gradients(1, 3000, 5.0, 6.0, 0)) == "");
    CHECK(difference(policy, system, random_gradients(2, 3000, 9.0, 3.0, 0)) == "");
    CHECK(difference(policy, system, random_gradients(3, 3000, 0.0, 20.0, 0)) == "");
    CHECK(difference(as_there, system, random_gradients(4, 20000, 5.0, 6.0, 9000)) == "");
    logmax_interpreter as_meant;
    as_meant.non_finite = 16.0;
    CHECK(difference(policy, as_meant, random_gradients(5, 3000, 5.0, 6.0, 100)) == "");
    CHECK(difference(policy, as_meant, random_gradients(6, 3000, 9.0, 3.0, 10)) == "");
    std::vector<gradient> alternating;
    for (int i = 0; i < 500; ++i) {
        alternating.push_back({0x1p3});
        alternating.push_back({0x1p9});
    }
    CHECK(difference(policy, system, alternating) == "");
    for (int i = 0; i < 300; ++i) alternating.push_back({0x1p-20});
    CHECK(difference(policy, system, alternating) == "");
}

TEST_CASE("logmax_policy follows other parameters") {
    const mp::logmax_policy policy{
        .floor = 4.0F, .ceiling = 500.0F, .beta1 = 0.9, .beta2 = 0.95, .deviations = 1.5F};
    const logmax_interpreter system{
        .scale_min = 4.0, .scale_max = 500.0, .beta1 = 0.9, .beta2 = 0.95, .overflow_std_dev = 1.5};
    CHECK(difference(policy, system, random_gradients(7, 3000, 8.0, 8.0, 0)) == "");
}

TEST_CASE("literal: the rounding of 1 - beta shows in the deviation, as it does there") {
    // The mean is 10, so without a deviation the scale would be 2^(16 - 10). But 1 - 0.9999 is formed in
    // double for the averages and in float for their correction. Their ratio is r = 0.00010000000 /
    // 0.00010001659 = 0.999834, and the deviation 10 sqrt(r (1 - r)) = 0.12881. Times 3.09 that is 0.39801,
    // and 2^(6 - 0.39801) = 48.570.
    mp::logmax_policy policy{.beta2 = 0.9999};
    auto state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.largest = 1024.0});
    CHECK(state.mean == doctest::Approx(0.1).epsilon(1e-6));
    CHECK(state.slow_mean == doctest::Approx(0.001).epsilon(1e-6));
    CHECK(state.slow_square == doctest::Approx(0.01).epsilon(1e-6));
    CHECK(state.weight == 0.99F);
    CHECK(state.slow_weight == 0.9999F);
    CHECK(state.scale == doctest::Approx(48.570).epsilon(1e-3));
    // Without deviations the largest gradient lands on the target.
    policy.deviations = 0.0F;
    policy.target = 12.0F;
    state = mp::initial_scale_state(policy);
    for (int i = 0; i < 100; ++i) mp::update_scale(policy, state, {.largest = 1024.0});
    CHECK(state.scale == doctest::Approx(4.0).epsilon(1e-4));
}

TEST_CASE("logmax_policy leaves everything as it is for gradients that are zero everywhere") {
    const mp::logmax_policy policy;
    auto state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.largest = 3.0});
    const auto before = state;
    CHECK(mp::update_scale(policy, state, {.largest = 0.0}) ==
          mp::scale_change{before.scale, before.scale, kind::unchanged});
    CHECK(state == before);
}

TEST_CASE("logmax_policy takes an infinite magnitude, an infinity and a NaN for non_finite_log") {
    const mp::logmax_policy policy;
    auto by_largest = mp::initial_scale_state(policy);
    auto by_infinity = by_largest;
    auto by_nan = by_largest;
    auto by_value = by_largest;
    mp::update_scale(policy, by_largest, {.largest = double(infinity)});
    mp::update_scale(policy, by_infinity, {.infinities = 1, .largest = 5.0});
    mp::update_scale(policy, by_nan, {.nans = 1});
    mp::update_scale(policy, by_value, {.largest = 65536.0});
    CHECK(by_largest == by_value);
    CHECK(by_infinity == by_value);
    CHECK(by_nan == by_value);
}

TEST_CASE("logmax_policy stays within its limits for the smallest and the largest gradients") {
    mp::logmax_policy policy;
    auto state = mp::initial_scale_state(policy);
    for (int i = 0; i < 50; ++i) mp::update_scale(policy, state, {.largest = 0x1p-1074});
    CHECK(state.scale == 16384.0F);
    state = mp::initial_scale_state(policy);
    for (int i = 0; i < 50; ++i) mp::update_scale(policy, state, {.largest = 0x1p1023});
    CHECK(state.scale == 1.0F);
    policy = {.floor = 0x1p-127F, .ceiling = std::numeric_limits<float>::max(), .deviations = 0.0F};
    state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.largest = 0x1p-111});
    CHECK(state.scale == doctest::Approx(0x1p127).epsilon(1e-3));
    state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.largest = 0x1p-113});
    CHECK(state.scale == std::numeric_limits<float>::max());
    state = mp::initial_scale_state(policy);
    mp::update_scale(policy, state, {.largest = 0x1p150});
    CHECK(state.scale == 0x1p-127F);
}

TEST_CASE("logmax_policy refuses parameters and states out of range by name and value") {
    using policy = mp::logmax_policy;
    const auto refusal = [](const policy& it) { return thrown<mp::argument_error>([&] { it.validate(); }); };
    CHECK(refusal({}) == "(nothing was thrown)");
    CHECK(refusal({.initial_scale = 0.0F}) ==
          "mp::logmax_policy: initial_scale is 0; it must be finite and greater than 0");
    CHECK(holds(refusal({.floor = 0x1p-128F}), "floor is 2.938736e-39; it must be greater than 2^-128"));
    CHECK(holds(refusal({.ceiling = infinity}), "ceiling is inf;"));
    CHECK(refusal({.floor = 8.0F, .ceiling = 4.0F}) ==
          "mp::logmax_policy: ceiling is 4; it must be at least the floor, which is 8");
    CHECK(holds(refusal({.target = infinity}), "target is inf; it must be finite"));
    CHECK(holds(refusal({.non_finite_log = not_a_number}), "non_finite_log is nan; it must be finite"));
    for (const double bad :
         {0.0, 1.0, -0.5, 2.0, double(not_a_number), double(infinity), 1.0 - 0x1p-30, 0x1p-200}) {
        CHECK(holds(refusal({.beta1 = bad}), "mp::logmax_policy: beta1 is "));
        CHECK(holds(refusal({.beta2 = bad}), "mp::logmax_policy: beta2 is "));
    }
    CHECK(holds(refusal({.beta1 = 2.0}), "must be greater than 0 and less than 1"));
    CHECK(holds(refusal({.deviations = -1.0F}), "deviations is -1; it must not be negative"));
    CHECK(holds(refusal({.deviations = infinity}), "deviations is inf; it must be finite"));

    using state = policy::state_type;
    const auto state_refusal = [](const state& it) {
        return thrown<mp::argument_error>([&] { mp::validate_scale_state(policy{}, it); });
    };
    CHECK(state_refusal({}) == "(nothing was thrown)");
    CHECK(holds(state_refusal({.scale = 0.0F}), "state.scale is 0;"));
    CHECK(holds(state_refusal({.mean = infinity}), "state.mean is inf;"));
    CHECK(holds(state_refusal({.slow_mean = not_a_number}), "state.slow_mean is nan;"));
    CHECK(holds(state_refusal({.slow_square = infinity}), "state.slow_square is inf;"));
    CHECK(holds(state_refusal({.weight = 1.5F}), "state.weight is 1.5; it must be in [0, 1]"));
    CHECK(holds(state_refusal({.weight = not_a_number}), "state.weight is nan;"));
    CHECK(holds(state_refusal({.slow_weight = -0.5F}), "state.slow_weight is -0.5; it must be in [0, 1]"));
}

namespace {

/// PopART's update of the loss scale, written from its rules: two bins summed over `period` iterations; up if
/// the upper one has no more than a share of both, which is compared as upper > f * lower, f = t / (1 - t),
/// in float.
struct popart_interpreter {
    float t = 1e-7F;
    int period = 1;
    float loss_scale = 1.0F;
    int since_update = 0;
    std::uint64_t lower_bin = 0;
    std::uint64_t upper_bin = 0;

    void update(std::uint64_t below, std::uint64_t above) {
        lower_bin += below;
        upper_bin += above;
        since_update = since_update + 1;
        if (since_update != period) return;
        const float f = t / (1.0F - t);
        volatile const float bound = f * static_cast<float>(lower_bin);
        loss_scale *= static_cast<float>(upper_bin) > bound ? 0.5F : 2.0F;
        since_update = 0;
        lower_bin = 0;
        upper_bin = 0;
    }
};

}  // namespace

TEST_CASE("histogram_policy and PopART's update go the same way") {
    std::mt19937 random(31);
    for (const int period : {1, 2, 5, 100}) {
        for (const float share : {0.0F, 1e-7F, 0.01F, 0.5F, 0.9F}) {
            CAPTURE(period);
            CAPTURE(share);
            const mp::histogram_policy policy{
                .initial_scale = 64.0F, .update_period = period, .upper_share = share};
            policy.validate();
            popart_interpreter system{.t = share, .period = period, .loss_scale = 64.0F};
            auto state = mp::initial_scale_state(policy);
            int lowered = 0;
            int raised = 0;
            for (int i = 0; i < 3000; ++i) {
                const std::uint64_t below = random() % 100000000;
                // Around the share, so that both happen, and now and then none.
                const auto typical =
                    static_cast<std::uint64_t>(double(share) / (1.0 - double(share)) * double(below));
                const std::uint64_t above = random() % 4 == 0 ? 0 : typical + random() % 3;
                const std::uint64_t infinities = std::min<std::uint64_t>(above, random() % 3);
                const std::uint64_t nans = std::min<std::uint64_t>(above - infinities, random() % 2);
                const mp::gradient_observation seen{.infinities = infinities,
                                                    .nans = nans,
                                                    .values = below + above,
                                                    .large = above - infinities - nans};
                const float before = state.scale;
                const mp::scale_change change = mp::update_scale(policy, state, seen);
                system.update(below, above);
                REQUIRE(state.scale == system.loss_scale);
                REQUIRE(state.iterations == system.since_update);
                REQUIRE(state.lower == system.lower_bin);
                REQUIRE(state.upper == system.upper_bin);
                REQUIRE(change.before == before);
                REQUIRE(change.after == state.scale);
                lowered += state.scale < before;
                raised += state.scale > before;
                const bool vanished = state.scale < before && state.scale <= 0x1p-128F;
                REQUIRE(change.kind == (state.iterations != 0  ? kind::unchanged
                                        : vanished             ? kind::vanished
                                        : state.scale < before ? kind::backed_off
                                        : state.scale > before ? kind::grown
                                                               : change.kind));
            }
            CHECK(lowered + raised > 0);
        }
    }
}

TEST_CASE("literal: histogram_policy halves above the share, doubles at it and below") {
    // A quarter: upper > lower / 3.
    const mp::histogram_policy policy{.initial_scale = 8.0F, .upper_share = 0.25F};
    auto state = mp::initial_scale_state(policy);
    CHECK(mp::update_scale(policy, state, {.values = 400, .large = 101}).after == 4.0F);
    CHECK(mp::update_scale(policy, state, {.values = 400, .large = 99}).after == 8.0F);
    CHECK(mp::update_scale(policy, state, {.values = 400, .large = 0}).after == 16.0F);
    // Infinities and NaNs count as large.
    CHECK(mp::update_scale(policy, state, {.infinities = 60, .nans = 40, .values = 400, .large = 1}).after ==
          8.0F);
    CHECK(mp::update_scale(policy, state, {.infinities = 60, .nans = 39, .values = 400}).after == 16.0F);
    // More of them than were measured leave nothing below the edge.
    CHECK(mp::update_scale(policy, state, {.infinities = 5, .values = 3}).after == 8.0F);
    // Where nothing was measured nothing was large.
    CHECK(mp::update_scale(policy, state, {}).after == 16.0F);
    // Half: as many as below is at the share.
    const mp::histogram_policy half{.initial_scale = 8.0F, .upper_share = 0.5F};
    state = mp::initial_scale_state(half);
    CHECK(mp::update_scale(half, state, {.values = 200, .large = 100}).kind == kind::grown);
    CHECK(mp::update_scale(half, state, {.values = 200, .large = 101}).kind == kind::backed_off);
}

TEST_CASE("literal: histogram_policy sums over a period and begins anew") {
    const mp::histogram_policy policy{.initial_scale = 8.0F, .update_period = 3, .upper_share = 0.25F};
    auto state = mp::initial_scale_state(policy);
    const std::vector<std::uint64_t> large{300, 0, 1, 300, 0, 0, 0, 0, 0};
    const std::vector<float> expected{8, 8, 4, 4, 4, 8, 8, 8, 16};  // 301 of 1200, 300 of 1200, none
    for (std::size_t i = 0; i < large.size(); ++i) {
        CAPTURE(i);
        mp::update_scale(policy, state, {.values = 400, .large = large[i]});
        CHECK(state.scale == expected[i]);
    }
}

TEST_CASE("histogram_policy goes to infinity and to zero, as the original has no limits") {
    const mp::histogram_policy policy{.initial_scale = 0x1p127F};
    auto state = mp::initial_scale_state(policy);
    CHECK(mp::update_scale(policy, state, {}) == mp::scale_change{0x1p127F, infinity, kind::grown});
    CHECK(mp::update_scale(policy, state, {.infinities = 1, .values = 1}).after == infinity);
    state = {0x1p-127F};
    CHECK(mp::update_scale(policy, state, {.values = 1, .large = 1}) ==
          mp::scale_change{0x1p-127F, 0x1p-128F, kind::vanished});
}

TEST_CASE("histogram_policy applies every step unless told otherwise, and names its edge") {
    CHECK_FALSE(mp::skips_step(mp::histogram_policy{}, {.infinities = 1}));
    CHECK(mp::skips_step(mp::histogram_policy{.skip_non_finite = true}, {.nans = 1}));
    CHECK_FALSE(mp::skips_step(mp::histogram_policy{.skip_non_finite = true}, {}));
    CHECK(mp::histogram_policy{}.histogram_edge(65504.0) == 8188.0);
    CHECK(mp::histogram_policy{.edge = 0.5F}.histogram_edge(448.0) == 224.0);
}

TEST_CASE("histogram_policy refuses parameters and states out of range by name and value") {
    using policy = mp::histogram_policy;
    const auto refusal = [](const policy& it) { return thrown<mp::argument_error>([&] { it.validate(); }); };
    CHECK(refusal({}) == "(nothing was thrown)");
    CHECK(holds(refusal({.initial_scale = infinity}), "mp::histogram_policy: initial_scale is inf;"));
    CHECK(refusal({.update_period = 0}) == "mp::histogram_policy: update_period is 0; it must be at least 1");
    for (const float bad : {0.0F, 1.0F, -1.0F, infinity, not_a_number}) {
        CHECK(holds(refusal({.edge = bad}), "it must be greater than 0 and less than 1"));
    }
    for (const float bad : {-0.1F, 1.0F, infinity, not_a_number}) {
        CHECK(holds(refusal({.upper_share = bad}), "it must be at least 0 and less than 1"));
    }
    CHECK(refusal({.upper_share = 0.0F}) == "(nothing was thrown)");
    using state = policy::state_type;
    const auto state_refusal = [](const state& it) {
        return thrown<mp::argument_error>([&] { mp::validate_scale_state(policy{}, it); });
    };
    CHECK(state_refusal({}) == "(nothing was thrown)");
    CHECK(holds(state_refusal({.scale = not_a_number}), "state.scale is nan;"));
    CHECK(holds(state_refusal({.iterations = -1}), "state.iterations is -1; it must be at least 0"));
}
