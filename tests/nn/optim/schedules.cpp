// SPDX-License-Identifier: MIT
// Schedules against their definitions in long double, and against values of torch.optim.lr_scheduler.
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

/// The largest difference from a formula over the steps 0 to last.
template <class Schedule, class Formula>
double worst(const Schedule& schedule, std::uint64_t last, Formula formula) {
    static_assert(mp::learning_rate_schedule<Schedule>);
    long double result = 0;
    for (std::uint64_t step = 0; step <= last; ++step) {
        const long double expected = formula(static_cast<long double>(step));
        result = std::max(result, std::fabs(static_cast<long double>(schedule.at(step)) - expected));
    }
    return static_cast<double>(result);
}

const long double pi = std::acos(-1.0L);

}  // namespace

TEST_CASE("the cosine is right to the last bits, and exact at its ends and in the middle") {
    CHECK(mp::detail::half_cosine(0.0) == 1.0);
    CHECK(mp::detail::half_cosine(0.5) == 0.0);
    CHECK(mp::detail::half_cosine(1.0) == -1.0);
    long double largest = 0;
    for (int i = 0; i <= 100000; ++i) {
        const double t = i / 100000.0;
        largest = std::max(largest, std::fabs(static_cast<long double>(mp::detail::half_cosine(t)) -
                                              std::cos(pi * static_cast<long double>(t))));
    }
    CHECK(static_cast<double>(largest) < 0x1p-51);
}

TEST_CASE("schedules follow their formulas, and stay where they end") {
    CHECK(worst(mp::linear_warmup{.steps = 10, .first_factor = 0.25}, 30,
                [](long double s) { return s >= 10 ? 1.0L : 0.25L + 0.75L * s / 10; }) < 1e-15);
    CHECK(worst(mp::cosine_decay{.steps = 1000, .final_factor = 0.1}, 1500, [](long double s) {
              return s >= 1000 ? 0.1L : 0.1L + 0.9L * (1 + std::cos(pi * s / 1000)) / 2;
          }) < 1e-15);
    CHECK(worst(mp::polynomial_decay{.steps = 100, .power = 3, .final_factor = 0.01}, 150, [](long double s) {
              return s >= 100 ? 0.01L : 0.01L + 0.99L * (1 - s / 100) * (1 - s / 100) * (1 - s / 100);
          }) < 1e-15);
    CHECK(worst(mp::step_decay{.every = 7, .factor = 0.5}, 40,
                [](long double s) { return std::pow(0.5L, std::floor(s / 7)); }) < 1e-15);
    CHECK(worst(mp::milestone_decay{.milestones = {20, 5}, .factor = 0.1}, 40, [](long double s) {
              return s >= 20 ? 0.01L : s >= 5 ? 0.1L : 1.0L;
          }) < 1e-15);
    CHECK(worst(mp::warmup_then{mp::linear_warmup{.steps = 4}, mp::cosine_decay{.steps = 6}}, 20,
                [](long double s) {
                    return s < 4 ? s / 4 : s >= 10 ? 0.0L : (1 + std::cos(pi * (s - 4) / 6)) / 2;
                }) < 1e-15);
    // Of no steps.
    CHECK(mp::linear_warmup{}.at(0) == 1.0);
    CHECK(mp::cosine_decay{.final_factor = 0.5}.at(0) == 0.5);
    CHECK(mp::step_decay{.every = 0}.at(99) == 1.0);
    constexpr std::uint64_t far = std::numeric_limits<std::uint64_t>::max();
    CHECK(mp::cosine_decay{.steps = 10}.at(far) == 0.0);
    CHECK(mp::one_cycle{.steps = 10}.at(far) == 1.0 / 25.0 / 1e4);
}

TEST_CASE("one cycle has the rates of torch's OneCycleLR") {
    // torch 2.15: OneCycleLR(optimizer, max_lr=1.0, total_steps=12), get_last_lr() before every step.
    const double expected[] = {0.040000000000000036, 0.3497896542195831,  0.8792851591221287,
                               0.9944154354509117,   0.9330129698414117,  0.811745653949763,
                               0.6473789976951033,   0.46263710266697505, 0.28306099820869923,
                               0.1334775301888306,   0.03456698742539522, 4e-06};
    const mp::one_cycle cycle{.steps = 12};
    for (std::uint64_t step = 0; step < 12; ++step) {
        CHECK(cycle.at(step) == doctest::Approx(expected[step]).epsilon(1e-12));
    }
}

TEST_CASE("layers before the last one learn more slowly") {
    const auto groups =
        mp::layerwise_groups(mp::adamw_options{.learning_rate = 1.0, .weight_decay = 0.5}, 3, 0.5);
    REQUIRE(groups.size() == 3);
    CHECK(groups[0].learning_rate == 0.25);
    CHECK(groups[1].learning_rate == 0.5);
    CHECK(groups[2].learning_rate == 1.0);
    CHECK(groups[0].weight_decay == 0.5);
    CHECK_THROWS_AS(static_cast<void>(mp::layerwise_groups(mp::adamw_options{}, 3, 0.0)), mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::layerwise_groups(mp::adamw_options{}, 3, 1.5)), mp::argument_error);
}
