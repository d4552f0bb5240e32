// SPDX-License-Identifier: MIT
// Weights of a reduced format without a master copy: what stochastic rounding and compensation promise.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

using bfloat16_alone = mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
using half_alone = mp::sgd<mp::half, mp::half, mp::half>;

double mean_of(const std::vector<mp::bfloat16>& values) {
    double sum = 0.0;
    for (const mp::bfloat16 value : values) sum += static_cast<double>(static_cast<float>(value));
    return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("random bits are words of Philox4x32-10 by the documented counter") {
    // From an implementation in Python of the generator and the definition.
    CHECK(mp::random_rounding_bits({0, 0, 1, 0}, 0) == 0x2dce73e5U);
    CHECK(mp::random_rounding_bits({0x0123456789abcdef, 7, 1000, 2}, 1000003) == 0x2930995fU);
    CHECK(mp::random_rounding_bits({5, 1, 2, 1}, 0x123456789a) == 0x1307b827U);
    CHECK(mp::random_rounding_bits({5, 1, (std::uint64_t{1} << 32) + 2, 0}, 77) == 0xcb8da469U);
}

TEST_CASE_TEMPLATE(
    "stochastic rounding of every kind of value is that of the scalar function on every instruction set",
    Value, mp::bfloat16, mp::half) {
    // A rate of one and a weight of minus zero: the new weight is the rounded gradient with its sign turned.
    std::vector<float> gradient;
    using layout = mp::layout_of<typename Value::format>;
    for (std::uint32_t code = 0; code < 0x10000; code += 7) {
        const auto bits = std::bit_cast<std::uint32_t>(
            static_cast<float>(Value::from_bits(static_cast<std::uint16_t>(code))));
        constexpr std::uint32_t unit = std::uint32_t{1} << (23 - layout::fraction_bits);
        for (const std::uint32_t offset : {0U, 1U, unit / 2, unit / 2 - 1, unit - 1, unit / 3}) {
            gradient.push_back(std::bit_cast<float>(bits + offset));
        }
    }
    for (std::uint32_t i = 0; i < 40000; ++i) gradient.push_back(std::bit_cast<float>(i * 0x9e3779b9U));
    for (std::uint32_t i = 0; i < 4000; ++i)
        gradient.push_back(std::bit_cast<float>(0x33000000U + i * 3001U));
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        CAPTURE(isa);
        std::vector<Value> weights(gradient.size(), Value::from_bits(0x8000));
        mp::sgd<Value, float, Value> optimizer(
            mp::cpu{1, static_cast<mp::instruction_set>(isa)}, {{"", weights, gradient}},
            {.learning_rate = 1.0, .low_precision_update = mp::weight_update::stochastic, .seed = 17});
        optimizer.step();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            const std::uint32_t turned = std::bit_cast<std::uint32_t>(gradient[i]) ^ 0x80000000U;
            const float value = std::bit_cast<float>(turned);
            const bool nan = (turned & 0x7fffffffU) > 0x7f800000U;
            const auto random = mp::random_rounding_bits({17, 0, 1, 0}, i);
            const Value expected = mp::round_to<Value>(value, mp::stochastic(random));
            const Value infinity = Value::from_bits(static_cast<std::uint16_t>(layout::infinity_code));
            // A NaN does not turn its sign in a subtraction, and minus zero less a number has the number's.
            wrong += nan ? ((weights[i].bits() & 0x7fffU) > infinity.bits() ? 0U : 1U)
                         : (weights[i].bits() != expected.bits() && gradient[i] != 0.0F ? 1U : 0U);
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("the mean over seeds of a stochastic update is the unrounded one") {
    // 1 - 2^-13 lies a 32nd of the way from 1 to the next number of bfloat16 below, 1 - 2^-8.
    constexpr std::size_t count = 1000;
    std::vector<mp::bfloat16> gradient(count, mp::bfloat16(1.0F));
    double sum = 0.0;
    constexpr int seeds = 400;
    for (int seed = 0; seed < seeds; ++seed) {
        std::vector<mp::bfloat16> weights(count, mp::bfloat16(1.0F));
        bfloat16_alone optimizer({{"", weights, gradient}},
                                 {.learning_rate = 0x1p-13,
                                  .low_precision_update = mp::weight_update::stochastic,
                                  .seed = static_cast<std::uint64_t>(seed)});
        optimizer.step();
        for (const mp::bfloat16 weight : weights) {
            const float value = static_cast<float>(weight);
            REQUIRE((value == 1.0F || value == 1.0F - 0x1p-8F));
        }
        sum += mean_of(weights);
    }
    // Standard deviation of one weight sqrt(p (1 - p)) 2^-8 with p = 1/32; five of them for the mean.
    const double deviation = std::sqrt(31.0) / 32.0 * 0x1p-8 / std::sqrt(double{seeds} * count);
    CHECK(std::fabs(sum / seeds - (1.0 - 0x1p-13)) < 5.0 * deviation);
}

TEST_CASE("elements, parameters and updates have random bits of their own") {
    constexpr std::size_t count = 4096;
    std::vector<mp::bfloat16> gradient(count, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> more_gradient = gradient;
    const auto run = [&](std::uint64_t seed, int steps) {
        std::vector<mp::bfloat16> weights(count, mp::bfloat16(1.0F));
        std::vector<mp::bfloat16> more = weights;
        bfloat16_alone optimizer(
            {{"", weights, gradient}, {"", more, more_gradient}},
            {.learning_rate = 0x1p-9, .low_precision_update = mp::weight_update::stochastic, .seed = seed});
        for (int i = 0; i < steps; ++i) optimizer.step();
        std::string up;
        for (const auto* part : {&weights, &more}) {
            for (const mp::bfloat16 weight : *part) up += static_cast<float>(weight) < 1.0F ? '1' : '0';
        }
        return up;
    };
    const auto agreement = [](const std::string& a, const std::string& b) {
        double same = 0.0;
        for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i] ? 1.0 : 0.0;
        return same / static_cast<double>(a.size());
    };
    const std::string first = run(1, 1);
    CHECK(first == run(1, 1));
    // Half goes down each time, independently: half agrees.
    CHECK(std::fabs(agreement(first, run(2, 1)) - 0.5) < 0.03);
    CHECK(std::fabs(agreement(first.substr(0, count), first.substr(count)) - 0.5) < 0.04);
    CHECK(std::fabs(agreement(first.substr(0, count - 1), first.substr(1, count - 1)) - 0.5) < 0.04);
    CHECK(std::fabs(agreement(first.substr(0, count - 64), first.substr(64, count - 64)) - 0.5) < 0.04);
    // After two updates with bits of their own a quarter is still at one; with the same bits, half would be.
    const std::string second = run(1, 2);
    double still = 0.0;
    for (const char c : second) still += c == '0' ? 1.0 : 0.0;
    CHECK(std::fabs(still / static_cast<double>(second.size()) - 0.25) < 0.03);
}

TEST_CASE("over ten thousand steps plain rounding stalls, and the other two follow a float master") {
    constexpr std::size_t count = 512;
    constexpr int steps = 10000;
    std::vector<mp::bfloat16> gradient(count);
    std::vector<mp::bfloat16> plain(count, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> random = plain;
    std::vector<mp::bfloat16> kahan = plain;
    std::vector<mp::bfloat16> copy = plain;
    std::vector<mp::bfloat16> gradients[4] = {gradient, gradient, gradient, gradient};
    const auto options = [](mp::weight_update how) {
        return mp::sgd_options{.learning_rate = 0x1p-14, .low_precision_update = how, .seed = 9};
    };
    bfloat16_alone plain_optimizer({{"", plain, gradients[0]}}, options(mp::weight_update::nearest));
    bfloat16_alone random_optimizer({{"", random, gradients[1]}}, options(mp::weight_update::stochastic));
    bfloat16_alone kahan_optimizer({{"", kahan, gradients[2]}}, options(mp::weight_update::kahan));
    mp::sgd<mp::bfloat16> with_master({{"", copy, gradients[3]}}, options(mp::weight_update::nearest));
    double worst_kahan = 0.0;
    for (int step = 0; step < steps; ++step) {
        for (std::size_t i = 0; i < count; ++i) {
            // One of four directions, all smaller than what a weight around one can take in.
            const float size =
                0.25F + static_cast<float>((i * 31 + static_cast<std::size_t>(step) * 7) % 64) / 64;
            for (auto& g : gradients) g[i] = mp::bfloat16(i % 2 == 0 ? size : -size);
        }
        plain_optimizer.step();
        random_optimizer.step();
        kahan_optimizer.step();
        with_master.step();
    }
    double random_bias = 0.0;
    double worst_random = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
        const double master = static_cast<double>(with_master.master_weights(0)[i]);
        CHECK(static_cast<float>(plain[i]) == 1.0F);
        REQUIRE(std::fabs(master - 1.0) > 0.4);
        const double whole =
            static_cast<double>(static_cast<float>(kahan[i])) +
            static_cast<double>(static_cast<float>(kahan_optimizer.weight_compensation(0)[i]));
        worst_kahan = tests::larger_error(worst_kahan, std::fabs(whole - master));
        const double error = static_cast<double>(static_cast<float>(random[i])) - master;
        random_bias += error / count;
        worst_random = tests::larger_error(worst_random, std::fabs(error));
    }
    MESSAGE("kahan " << worst_kahan << ", stochastic " << worst_random << ", its mean " << random_bias);
    // Weights below 2 have compensations up to 2^-8, and each step errs by at most 2^-17: 0.076 if all errors
    // had one sign.
    CHECK(worst_kahan < 0.02);
    // Each step adds a variance of at most 2^-7 |update|; |updates| sum to some 0.47.
    const double deviation = std::sqrt(0.47 * 0x1p-7);
    CHECK(worst_random < 5.0 * deviation);
    CHECK(std::fabs(random_bias) < 5.0 * deviation / std::sqrt(double{count}));
}

TEST_CASE("half with compensation keeps updates of 2^-20 of the weight") {
    std::vector<mp::half> weights(3, mp::half(1.0F));
    std::vector<mp::half> gradient(3, mp::half(1.0F));
    half_alone optimizer({{"", weights, gradient}},
                         {.learning_rate = 0x1p-20, .low_precision_update = mp::weight_update::kahan});
    for (int step = 0; step < 3 * 1024; ++step) optimizer.step();
    for (const mp::half weight : weights) CHECK(static_cast<float>(weight) == 1.0F - 3 * 0x1p-10F);
}

TEST_CASE("the mean square of Adam decays in bfloat16 if it is rounded stochastically, else not") {
    using adam_alone = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    constexpr std::size_t count = 2000;
    for (const auto how : {mp::weight_update::nearest, mp::weight_update::stochastic}) {
        std::vector<mp::bfloat16> weights(count, mp::bfloat16(1.0F));
        std::vector<mp::bfloat16> gradient(count, mp::bfloat16(1.0F));
        adam_alone optimizer({{"", weights, gradient}}, {.low_precision_update = how, .seed = 2});
        optimizer.step();
        for (mp::bfloat16& value : gradient) value = mp::bfloat16(0.0F);
        for (int i = 0; i < 1000; ++i) optimizer.step();
        const auto square = optimizer.gradient_mean_square(0);
        const double mean = mean_of({square.begin(), square.end()});
        if (how == mp::weight_update::nearest) {
            CHECK(mean == doctest::Approx(1e-3).epsilon(0.01));
        } else {
            CHECK(mean == doctest::Approx(1e-3 * std::pow(0.999, 1000)).epsilon(0.05));
        }
    }
}

TEST_CASE("compensations count as memory and are forgotten when weights are loaded") {
    std::vector<mp::bfloat16> weights(10, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> gradient(10, mp::bfloat16(1.0F));
    bfloat16_alone optimizer({{"", weights, gradient}},
                             {.learning_rate = 0x1p-12, .low_precision_update = mp::weight_update::kahan});
    CHECK(optimizer.bytes_per_parameter() == 2 + 2 + 2);
    optimizer.step();
    CHECK(static_cast<float>(weights[0]) == 1.0F);
    CHECK(static_cast<float>(optimizer.weight_compensation(0)[0]) == -0x1p-12F);
    optimizer.reload_master_weights();
    CHECK(static_cast<float>(optimizer.weight_compensation(0)[0]) == 0.0F);
    bfloat16_alone plain({{"", weights, gradient}}, {});
    CHECK(plain.weight_compensation(0).empty());
}

TEST_CASE("where nothing can stall there is no choice of how to update") {
    std::vector<mp::half> weights(2);
    std::vector<mp::half> gradient(2);
    std::vector<float> single(2);
    std::vector<float> single_gradient(2);
    CHECK(thrown<mp::argument_error>([&] {
              mp::sgd<mp::half> optimizer({{"", weights, gradient}},
                                          {.low_precision_update = mp::weight_update::stochastic});
          }) ==
          "mp::sgd: low_precision_update is 'stochastic'; it must be nearest, for there is a master copy");
    CHECK(thrown<mp::argument_error>([&] {
              mp::adamw<float> optimizer({{"", single, single_gradient}},
                                         {.low_precision_update = mp::weight_update::kahan});
          }) == "mp::adamw: low_precision_update is 'kahan'; it must be nearest, for the weights are float");
    if (!mp::processor_has(mp::instruction_set::avx2)) {
        CHECK(holds(thrown<mp::argument_error>([&] {
                        mp::sgd<float> optimizer(mp::cpu{1, mp::instruction_set::avx2},
                                                 {{"", single, single_gradient}});
                    }),
                    "mp::sgd: exec.instructions is 'avx2'"));
    }
}
