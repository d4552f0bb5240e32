// SPDX-License-Identifier: MIT
// Gradients whose type knows whether they are scaled, and sums over different scales. What must not compile
// is in compile_fail/.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "oracle/random.hpp"

namespace {
constexpr float infinity = std::numeric_limits<float>::infinity();
}

// A view and a scale: nothing that is not in the arguments of a hand-written loop.
static_assert(sizeof(mp::unscaled_gradient<float>) == sizeof(std::span<float>));
static_assert(std::is_trivially_copyable_v<mp::unscaled_gradient<float>> &&
              std::is_trivially_copyable_v<mp::scaled_gradient<mp::half>>);
static_assert(!std::is_convertible_v<mp::scaled_gradient<float>, mp::unscaled_gradient<float>> &&
              !std::is_convertible_v<std::span<float>, mp::unscaled_gradient<float>>);

TEST_CASE("unscaling a gradient gives the bits of unscaling the range by hand") {
    oracle::random_bits random(11);
    std::vector<mp::half> gradient(3000);
    for (auto& g : gradient) g = mp::half::from_bits(static_cast<std::uint16_t>(random.next() & 0x7bff));
    gradient[1234] = std::numeric_limits<mp::half>::infinity();
    std::vector<float> expected(gradient.size());
    std::vector<float> actual(gradient.size());
    const auto by_hand = mp::unscale_and_check(mp::cpu{}, gradient, expected, mp::inverse_of_scale(1024.0F));
    const mp::scaled_gradient scaled(gradient, 1024.0F);
    const auto [clean, report] = mp::unscale_and_check(mp::cpu{}, scaled, actual);
    CHECK(report == by_hand);
    CHECK(report.first_index == 1234);
    CHECK(actual == expected);
    CHECK(clean.values().data() == actual.data());
}

TEST_CASE("clipping scales to the limit and leaves what is below it or not finite") {
    std::vector<float> values{3.0F, -4.0F};
    const mp::unscaled_gradient gradient(values);
    CHECK(mp::clip_gradient_norm(gradient, 10.0) == 5.0);
    CHECK(values == std::vector<float>{3.0F, -4.0F});
    CHECK(mp::clip_gradient_norm(gradient, 1.0) == 5.0);
    CHECK(std::hypot(values[0], values[1]) == doctest::Approx(1.0).epsilon(1e-5));
    values[0] = infinity;
    const std::vector<float> before = values;
    CHECK(mp::clip_gradient_norm(gradient, 1.0) == std::numeric_limits<double>::infinity());
    CHECK(values == before);
    CHECK(holds(thrown<mp::argument_error>([&] { mp::clip_gradient_norm(gradient, 0.0); }), "max_norm is 0"));
}

TEST_CASE("a scale that no gradient can carry is refused") {
    std::vector<float> values(3);
    for (const float scale : {0.0F, -1.0F, infinity, std::numeric_limits<float>::quiet_NaN(), 0x1p-130F}) {
        CHECK_THROWS_AS(mp::scaled_gradient(values, scale), mp::argument_error);
    }
}

TEST_CASE("unscaled gradients add up") {
    std::vector<float> sum{1.0F, 2.0F};
    const std::vector<mp::half> more{mp::half(0.5F), mp::half(-2.0F)};
    mp::add_gradient(mp::unscaled_gradient(sum), mp::unscaled_gradient(more));
    CHECK(sum == std::vector<float>{1.5F, 0.0F});
    std::vector<float> other(3);
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { mp::add_gradient(mp::unscaled_gradient(sum), mp::unscaled_gradient(other)); }),
                "gradient.size() is 3; it must equal sum.size(), which is 2"));
}

TEST_CASE("gradients at different scales that are powers of two add up as if there were no scale") {
    oracle::random_bits random(12);
    constexpr std::size_t size = 5000;
    mp::gradient_accumulator sum(size);
    std::vector<float> expected(size, 0.0F);
    std::vector<mp::half> gradient(size);
    for (const float scale : {1024.0F, 4096.0F, 256.0F, 256.0F}) {
        for (std::size_t i = 0; i < size; ++i) {
            gradient[i] = mp::half::from_bits(static_cast<std::uint16_t>(random.next() & 0xb7ff));
            expected[i] += static_cast<float>(gradient[i]) / scale;
        }
        CHECK_FALSE(sum.add(mp::cpu{.threads = 2}, mp::scaled_gradient(gradient, scale)).found());
        CHECK(sum.scale() == scale);
    }
    CHECK(sum.count() == 4);
    const auto [clean, report] = sum.unscale(mp::cpu{});
    CHECK_FALSE(report.found());
    for (std::size_t i = 0; i < size; ++i) REQUIRE(clean.values()[i] == expected[i]);
    CHECK(sum.count() == 0);
    CHECK(sum.scale() == 1.0F);
}

TEST_CASE("the first gradient is copied to the bit and infinities are found where they are") {
    mp::gradient_accumulator sum(4);
    std::vector<float> gradient{-0.0F, 1.0F, infinity, -2.0F};
    const auto report = sum.add(mp::cpu{}, mp::scaled_gradient(gradient, 2.0F));
    CHECK(report.infinities == 1);
    CHECK(report.first_index == 2);
    CHECK(std::signbit(sum.gradient().values_with_scale()[0]));
    sum.reset();
    CHECK(sum.count() == 0);
    gradient.resize(3);
    CHECK(holds(thrown<mp::argument_error>([&] { sum.add(mp::cpu{}, mp::scaled_gradient(gradient, 2.0F)); }),
                "gradient.size() is 3; it must equal the size of the sum, which is 4"));
}

TEST_CASE("an optimizer steps by gradients that were accumulated at different scales") {
    std::vector<mp::half> weights(2, mp::half(1.0F));
    std::vector<mp::half> gradient(2);
    mp::sgd<mp::half> optimizer({{"weights", weights, gradient}}, {.learning_rate = 1.0});
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 8.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    mp::gradient_accumulator sum(2);
    gradient = {mp::half(4.0F), mp::half(8.0F)};
    sum.add(mp::cpu{}, mp::scaled_gradient(gradient, 16.0F));  // 0.25, 0.5
    gradient = {mp::half(2.0F), mp::half(-1.0F)};
    sum.add(mp::cpu{}, mp::scaled_gradient(gradient, 8.0F));  // 0.25, -0.125
    const mp::scaled_gradient<float> sums[] = {sum.gradient()};
    const auto report = scaler.unscale(optimizer, std::span<const mp::scaled_gradient<float>>(sums));
    CHECK(report.checked == 2);
    CHECK(scaler.step(optimizer));
    scaler.update();
    CHECK(static_cast<float>(weights[0]) == 0.5F);
    CHECK(static_cast<float>(weights[1]) == 0.625F);
    const std::vector<mp::scaled_gradient<float>> none;
    CHECK(holds(thrown<mp::argument_error>(
                    [&] { scaler.unscale(optimizer, std::span<const mp::scaled_gradient<float>>(none)); }),
                "gradients.size() is 0; it must equal the number of parameters, which is 1"));
}

TEST_CASE("what was observed reaches the policy, the result of step and the event") {
    using policy = mp::dynamic_policy<mp::growth_on_underflow>;
    policy underflow_driven;
    underflow_driven.initial_scale = 2.0F;
    underflow_driven.growth = {2.0, 0.1, 2, 0};
    mp::loss_scaler<policy> scaler(underflow_driven);
    std::vector<float> weights(3, 1.0F);
    std::vector<float> gradient(3, 1.0F);
    mp::sgd<float> optimizer({{"weights", weights, gradient}}, {});
    struct {
        int calls = 0;
        void operator()(const mp::scale_event& event) {
            CHECK(event.seen.flushed == 1);
            CHECK(event.seen.values == 4);
            ++calls;
        }
    } listener;
    scaler.set_listener(listener);
    // In half, 2^-26 becomes zero, 2^-20 is subnormal and 2^17 overflows.
    const std::vector<float> before_rounding{0x1p-26F, 0x1p-20F, 0x1p17F, 0.0F};
    for (int i = 0; i < 2; ++i) {
        scaler.observe(mp::observe_gradients<mp::half>(
            mp::cpu{}, mp::scaled_gradient(before_rounding, scaler.current_scale()), 1000.0));
        const auto result = scaler.step(optimizer);
        CHECK(result.flushed == 1);
        CHECK(result.subnormals == 1);
        CHECK(result.overflows == 1);
        CHECK(scaler.update().kind ==
              (i == 0 ? mp::scale_change_kind::unchanged : mp::scale_change_kind::grown));
        CHECK(scaler.last_event().seen.zeros == 1);
        CHECK(scaler.last_event().seen.large == 1);
        CHECK(scaler.last_event().seen.largest == 0x1p16);
    }
    CHECK(listener.calls == 2);
    CHECK(scaler.current_scale() == 4.0F);
}

TEST_CASE("two losses with scalers of their own: an overflow of one backs off only its own scale") {
    mp::loss_scaler first(mp::pytorch_policy{.initial_scale = 16.0F, .growth_interval = 2});
    mp::loss_scaler second(mp::pytorch_policy{.initial_scale = 4.0F, .growth_interval = 2});
    std::vector<float> weights(2, 1.0F);
    std::vector<float> gradient(2);
    for (int iteration = 0; iteration < 3; ++iteration) {
        mp::gradient_accumulator sum(2);
        const bool overflows = iteration == 1;
        gradient = {16.0F, 32.0F};
        const bool first_applies =
            first.record(sum.add(mp::cpu{}, mp::scaled_gradient(gradient, first.current_scale())), 2);
        gradient = {overflows ? infinity : 4.0F, 0.0F};
        const mp::scaled_gradient from_second(gradient, second.current_scale());
        const bool second_applies = second.record(mp::check_finite(mp::cpu{}, gradient), 2);
        CHECK(first_applies);
        CHECK(second_applies == !overflows);
        if (second_applies) sum.add(mp::cpu{}, from_second);
        first.update();
        second.update();
    }
    CHECK(first.current_scale() == 32.0F);
    CHECK(second.current_scale() == 2.0F);
    CHECK(second.last_event().applied == 1);
    CHECK_THROWS_AS(first.update(), mp::state_error);
    // Without any values there is nothing to judge by.
    CHECK_FALSE(first.record({}, 0));
    CHECK(first.update().kind == mp::scale_change_kind::no_gradients);
}
