// SPDX-License-Identifier: MIT
// The average of the weights against its recurrence in double, applied and taken back.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "larger_error.hpp"

namespace {

template <class Optimizer>
struct run {
    using weight = typename Optimizer::weight_type;
    std::vector<weight> w;
    std::vector<weight> dw;
    std::vector<weight> b = std::vector<weight>(3, weight(1.0F));
    std::vector<weight> db = std::vector<weight>(3, weight(0.5F));
    Optimizer optimizer;

    explicit run(std::size_t size)
        : w(size, weight(1.0F)), dw(size), optimizer({{"w", w, dw}, {"b", b, db}}, {.learning_rate = 0.1}) {}
    void step(unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal;
        for (weight& g : dw) g = static_cast<weight>(normal(random));
        optimizer.step();
    }
};

}  // namespace

TEST_CASE_TEMPLATE("an average follows its recurrence, with and without warmup, on any number of threads",
                   Optimizer, mp::sgd<float>, mp::sgd<mp::half>,
                   mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>) {
    for (const bool warmup : {false, true}) {
        run<Optimizer> r(20001);
        mp::weight_average one(r.optimizer, {.decay = 0.9, .warmup = warmup});
        mp::weight_average many(r.optimizer, {.decay = 0.9, .warmup = warmup}, mp::cpu{.threads = 3});
        std::vector<double> expected(r.w.size(), 1.0);
        for (unsigned t = 0; t < 20; ++t) {
            r.step(t);
            one.update();
            many.update();
            const double decay = warmup ? std::min(0.9, (1.0 + t) / (10.0 + t)) : 0.9;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                expected[i] =
                    decay * expected[i] +
                    (1 - decay) * static_cast<double>(static_cast<float>(r.optimizer.master_weights(0)[i]));
            }
        }
        double worst = 0.0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            worst =
                tests::larger_error(worst, std::fabs(expected[i] - static_cast<double>(one.values(0)[i])));
        }
        CHECK(worst < 1e-6);
        CHECK(std::equal(one.values().begin(), one.values().end(), many.values().begin()));
        CHECK(one.update_count() == 20);
        CHECK(one.values(1).size() == 3);
    }
}

TEST_CASE("an average arrives at weights that stay, whatever its decay") {
    // After n updates it is 2 - decay^n for weights that go from 1 to 2.
    for (const double decay : {0.0, 0.3, 0.5, 0.9, 0.999, 0.9999, 0.99999, 1.0 - 0x1p-18}) {
        CAPTURE(decay);
        run<mp::sgd<float>> r(1);
        mp::weight_average average(r.optimizer, {.decay = decay});
        r.w[0] = 2.0F;
        const auto constant = static_cast<std::uint64_t>(1 / (1 - decay));
        double worst = 0.0;
        for (int i = 1; i <= 20; ++i) {
            for (std::uint64_t n = 0; n < constant; ++n) average.update();
            const double expected = 2.0 - std::pow(decay, static_cast<double>(average.update_count()));
            worst =
                tests::larger_error(worst, std::fabs(static_cast<double>(average.values(0)[0]) - expected));
        }
        CHECK(worst < 2e-7);
        CHECK(average.values(0)[0] == 2.0F);
    }
}

TEST_CASE("an average of all weights in turn keeps what a float loses") {
    // Weights far apart: the last place of a float average is worth more than an update.
    std::mt19937 random(5);
    run<mp::sgd<float>> r(777);
    mp::weight_average average(r.optimizer, {.decay = 1.0 - 0x1p-24});
    std::vector<long double> expected(r.w.begin(), r.w.end());
    for (int t = 0; t < 2000; ++t) {
        for (std::size_t i = 0; i < r.w.size(); ++i) {
            r.w[i] = 1.0F + static_cast<float>(random() >> 8) * 0x1p-24F;
            expected[i] += 0x1p-24L * (static_cast<long double>(r.w[i]) - expected[i]);
        }
        average.update();
    }
    double worst = 0.0;
    for (std::size_t i = 0; i < r.w.size(); ++i) {
        const long double found = static_cast<long double>(average.values(0)[i]) + average.remainders()[i];
        worst = tests::larger_error(worst, static_cast<double>(std::fabs(found - expected[i])));
    }
    CHECK(worst < 0x1p-36);
}

TEST_CASE("an average is applied and taken back to the bit") {
    run<mp::sgd<mp::half>> r(5000);
    mp::weight_average average(r.optimizer);
    r.step(1);
    average.update();
    const std::vector<mp::half> before = r.w;
    {
        const auto applied = average.apply();
        CHECK(r.w != before);
        for (std::size_t i = 0; i < r.w.size(); i += 77) CHECK(r.w[i] == mp::half(average.values(0)[i]));
        CHECK_THROWS_AS(static_cast<void>(average.apply()), mp::state_error);
    }
    CHECK(r.w == before);
}

TEST_CASE("a run that goes on has the average of the run that was not interrupted") {
    run<mp::sgd<float>> whole(300);
    mp::weight_average average(whole.optimizer, {.warmup = true});
    for (unsigned t = 0; t < 2; ++t) {
        whole.step(t);
        average.update();
    }
    mp::weight_average second(whole.optimizer, {.warmup = true});
    second.restore(average.values(), average.remainders(), average.update_count());
    for (unsigned t = 2; t < 4; ++t) {
        whole.step(t);
        average.update();
        second.update();
    }
    CHECK(second.update_count() == 4);
    CHECK(std::equal(average.values().begin(), average.values().end(), second.values().begin()));
    CHECK(std::equal(average.remainders().begin(), average.remainders().end(), second.remainders().begin()));
    CHECK(std::ranges::any_of(second.remainders(), [](float low) { return low != 0.0F; }));
    CHECK_THROWS_AS(second.restore(std::span<const float>(), 1), mp::argument_error);
    CHECK_THROWS_AS(second.restore(average.values(), average.remainders().first(2), 1), mp::argument_error);
    CHECK(second.update_count() == 4);
    second.restore(average.values(), 1);
    CHECK(std::equal(average.values().begin(), average.values().end(), second.values().begin()));
    CHECK(std::ranges::all_of(second.remainders(), [](float low) { return low == 0.0F; }));
    using average_type = mp::weight_average<float, float, float, float>;
    CHECK_THROWS_AS(average_type(whole.optimizer, {.decay = 1.0}), mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(average.values(2)), mp::argument_error);
}
