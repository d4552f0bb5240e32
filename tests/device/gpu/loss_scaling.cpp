// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/observe.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

TEST_CASE("a place names array and index, and orders by array first") {
    using mp::detail::gradient_location;
    CHECK(gradient_location(1, 0) > gradient_location(0, mp::detail::most_gradient_values - 1));
    CHECK(gradient_location(mp::detail::most_gradient_arrays - 1, mp::detail::most_gradient_values - 2) <
          mp::detail::no_location);
    mp::device_gradient_report report;
    CHECK(report.first_parameter() == mp::no_index);
    CHECK(report.first_element() == mp::no_index);
    report.first = gradient_location(1000000, 123456789012);
    CHECK(report.first_parameter() == 1000000);
    CHECK(report.first_element() == 123456789012);
    CHECK(report.on_host().first_element == 123456789012);
    CHECK_NOTHROW(mp::detail::check_gradient_location("f", (1u << 20) - 1, (std::size_t{1} << 44) - 1));
    CHECK_THROWS_WITH_AS(mp::detail::check_gradient_location("f", 1u << 20, 0),
                         "f: parameter is 1048576; it must be less than 2^20", mp::argument_error);
    CHECK_THROWS_AS(mp::detail::check_gradient_location("f", 0, std::size_t{1} << 44), mp::argument_error);
}

/// An optimizer whose gradients are what the test says.
struct scripted_optimizer {
    mp::gradient_report next;
    int steps = 0;

    mp::gradient_report unscale_gradients(float) { return next; }
    void step() { ++steps; }
    void skip_step() {}
};

/// What a kernel measures: bursts of everything, now and then nothing at all.
mp::gradient_observation random_measurements(std::mt19937& random) {
    mp::gradient_observation seen;
    if (random() % 8 == 0) return seen;
    seen.values = 1000 + random() % 1000;
    seen.zeros = random() % 100;
    seen.flushed = random() % 5;
    seen.subnormals = random() % 9;
    seen.overflows = random() % 3;
    seen.large = random() % 2;
    seen.largest =
        std::ldexp(1.0 + static_cast<double>(random() % 1024) / 1024.0, static_cast<int>(random() % 12) - 6);
    return seen;
}

/// The bits of a scale, so that no two zeros or infinities pass for each other.
std::uint32_t bits_of_scale(float scale) {
    return mp::detail::bit_cast<std::uint32_t>(scale);
}

/// Drives loss_scaler and the device's functions through some thousand random iterations.
template <class Policy>
void compare_with_scaler(const Policy& policy, unsigned seed) {
    constexpr std::size_t kept = 64;
    mp::loss_scaler<Policy> scaler(policy);
    auto on_device = mp::make_device_loss_scale<kept>(policy);
    // As in the kernel: the rules are made once, on the host.
    const auto rules = mp::detail::rules_of(policy);
    std::mt19937 random(seed);
    std::vector<mp::scale_event> events;
    std::uint64_t skipped = 0;
    std::uint64_t updates = 0;
    std::uint64_t failed = 0;
    std::size_t changes = 0;
    for (int iteration = 0; iteration < 4000; ++iteration) {
        // Long clean stretches let the scale climb to its ceiling, or to infinity; bad ones let it fall.
        const unsigned one_in = iteration / 250 % 4 == 0 ? 2 : iteration / 250 % 4 == 1 ? 40 : 9;
        scripted_optimizer optimizer;
        if (random() % 20 != 0) {
            optimizer.next.checked = 10;
            if (random() % one_in == 0) optimizer.next.infinities = 1 + random() % 3;
            if (random() % (3 * one_in) == 0) optimizer.next.nans = 1;
            if (optimizer.next.found()) {
                optimizer.next.first_parameter = random() % 50;
                optimizer.next.first_element = random() % 1000;
                on_device.seen.first = mp::detail::gradient_location(optimizer.next.first_parameter,
                                                                     optimizer.next.first_element);
            }
        }
        const mp::gradient_observation measured = random_measurements(random);
        on_device.seen.checked += optimizer.next.checked;
        on_device.seen.infinities += optimizer.next.infinities;
        on_device.seen.nans += optimizer.next.nans;
        on_device.seen.values += measured.values;
        on_device.seen.zeros += measured.zeros;
        on_device.seen.flushed += measured.flushed;
        on_device.seen.subnormals += measured.subnormals;
        on_device.seen.overflows += measured.overflows;
        on_device.seen.large += measured.large;
        on_device.seen.largest_bits = mp::detail::bit_cast<std::uint64_t>(measured.largest);
        const mp::device_gradient_report seen = on_device.seen;

        const float before = scaler.current_scale();
        const bool steps = static_cast<bool>(scaler.step(optimizer));
        REQUIRE(on_device.skips(policy) == !steps);
        REQUIRE(on_device.skips(rules) == !steps);
        scaler.observe(measured);
        mp::scale_event event;
        try {
            scaler.update();
            event = scaler.last_event();
        } catch (const mp::scale_error&) {
            // The host's iteration waits for a decision that nobody can make on a device.
            scaler.abandon_iteration();
            ++failed;
            event.change = {before, before, mp::scale_change_kind::failed};
            event.seen = measured;
            event.seen.infinities = optimizer.next.infinities;
            event.seen.nans = optimizer.next.nans;
            event.skipped = 1;
            event.parameter = optimizer.next.first_parameter;
            event.element = optimizer.next.first_element;
        }
        event.iteration = static_cast<std::uint64_t>(iteration);
        events.push_back(event);
        if (iteration % 16 == 0) {
            mp::update_scale(mp::simulated_gpu<mp::arch::sm_80>{}, policy, &on_device);
        } else {
            mp::detail::end_iteration(rules, on_device);  // what its kernel calls
        }

        updates += optimizer.next.checked != 0 ? 1 : 0;
        skipped += optimizer.next.checked != 0 && !steps ? 1 : 0;
        changes += bits_of_scale(event.change.after) != bits_of_scale(before) ? 1 : 0;
        REQUIRE(on_device.change == event.change);
        REQUIRE(on_device.state == scaler.state().state);
        REQUIRE(bits_of_scale(on_device.current_scale()) == bits_of_scale(scaler.current_scale()));
        REQUIRE(bits_of_scale(on_device.inverse_scale) == bits_of_scale(scaler.inverse_scale()));
        REQUIRE(on_device.previous == seen);
        REQUIRE(on_device.seen == mp::device_gradient_report{});
        if (iteration % 61 == 0 || iteration == 3999) {
            const std::size_t count = std::min(events.size(), kept);
            const std::vector<mp::scale_event> last(events.end() - static_cast<std::ptrdiff_t>(count),
                                                    events.end());
            REQUIRE(on_device.events() == last);
        }
    }
    CHECK(on_device.iterations == 4000);
    CHECK(on_device.updates == updates);
    CHECK(on_device.skipped == skipped);
    CHECK(on_device.failed == failed);
    CAPTURE(seed);
    CHECK(changes > 10);
}

TEST_CASE("for every policy the device moves scale and counters as the host's scaler, and has its events") {
    compare_with_scaler(
        mp::pytorch_policy{
            .initial_scale = 3.0F, .growth_factor = 1.7, .backoff_factor = 0.3, .growth_interval = 3},
        1);
    compare_with_scaler(mp::sharded_pytorch_policy{.growth_interval = 20}, 2);
    compare_with_scaler(mp::tensorflow_policy{.dynamic_growth_steps = 4}, 3);
    compare_with_scaler(mp::keras_policy{.dynamic_growth_steps = 20}, 4);
    compare_with_scaler(mp::jmp_policy{.period = 3, .factor = 3}, 5);
    compare_with_scaler(mp::apex_policy{.scale_window = 3, .min_loss_scale = 2.0}, 6);
    compare_with_scaler(mp::apex_fp16_utils_policy{.scale_factor = 1.5, .scale_window = 4}, 7);
    compare_with_scaler(mp::apex_hysteresis_policy{.growth_interval = 4, .hysteresis = 2}, 8);
    compare_with_scaler(mp::mxnet_policy{.scale_factor = 1.25, .scale_window = 3}, 9);
    compare_with_scaler(mp::deepspeed_policy{.loss_scale_window = 4}, 10);
    compare_with_scaler(
        mp::deepspeed_policy{
            .loss_scale_window = 4, .consecutive_hysteresis = true, .raise_error_at_min_scale = false},
        11);
    compare_with_scaler(mp::deepspeed_fused_policy{.loss_scale_window = 3}, 12);
    compare_with_scaler(
        mp::megatron_policy{.growth_factor = 1.9F, .backoff_factor = 0.6F, .growth_interval = 3}, 13);
    compare_with_scaler(mp::fairseq_policy{.scale_window = 5, .tolerance = 0.05}, 14);
    compare_with_scaler(mp::openseq2seq_policy{.step_factor = 3.0F, .step_window = 3}, 15);
    compare_with_scaler(mp::chainer_policy{.interval = 7}, 16);
    compare_with_scaler(mp::dynamic_policy<mp::growth_on_underflow>{.growth = {.patience = 2, .rest = 3},
                                                                    .nans = mp::nan_reaction::keep_scale},
                        17);
    compare_with_scaler(mp::logmax_policy{.non_finite_log = 8.0F, .beta1 = 0.9F, .beta2 = 0.95F}, 18);
    compare_with_scaler(mp::histogram_policy{.update_period = 2}, 19);
    compare_with_scaler(mp::dynamic_policy<>{.floor = {16.0, mp::limit_action::disable}}, 20);
}

TEST_CASE("where the policy refuses to go on, the state stays, and it shows") {
    const mp::deepspeed_policy policy{.initial_scale = 1.0, .loss_scale_window = 2, .hysteresis = 1};
    const auto rules = mp::detail::rules_of(policy);
    auto scale = mp::make_device_loss_scale<2>(policy);
    const auto begin = scale.state;
    for (int i = 0; i < 3; ++i) {
        scale.seen.checked = 5;
        scale.seen.infinities = 1;
        CHECK(scale.skips(policy));
        mp::detail::end_iteration(rules, scale);
        CHECK(scale.state == begin);
        CHECK(scale.inverse_scale == 1.0F);
        CHECK(scale.change == mp::scale_change{1.0F, 1.0F, mp::scale_change_kind::failed});
    }
    CHECK(scale.failed == 3);
    CHECK(scale.skipped == 3);
    const auto events = scale.events();
    REQUIRE(events.size() == 2);
    CHECK(events[0].iteration == 1);
    CHECK(events[1].iteration == 2);
    CHECK(events[1].change.kind == mp::scale_change_kind::failed);
    // It goes on when the gradients do.
    for (int i = 0; i < 3; ++i) {
        scale.seen.checked = 5;
        mp::detail::end_iteration(rules, scale);
    }
    CHECK(scale.failed == 3);
    CHECK(scale.current_scale() == 2.0F);
}

TEST_CASE("a loss scale keeps as many events as it is told to") {
    const mp::pytorch_policy policy;
    auto none = mp::make_device_loss_scale<0>(policy);
    auto one = mp::make_device_loss_scale<1>(policy);
    auto usual = mp::make_device_loss_scale(policy);
    static_assert(sizeof none < 512);
    static_assert(sizeof usual > 64 * sizeof(mp::scale_event));
    static_assert(std::is_trivially_copyable_v<decltype(usual)> &&
                  std::is_trivially_copyable_v<decltype(none)>);
    CHECK(usual.events().empty());
    const auto rules = mp::detail::rules_of(policy);
    for (int i = 0; i < 70; ++i) {
        mp::detail::end_iteration(rules, none);
        mp::detail::end_iteration(rules, one);
        mp::detail::end_iteration(rules, usual);
    }
    CHECK(none.events().empty());
    CHECK(none.iterations == 70);
    REQUIRE(one.events().size() == 1);
    CHECK(one.events()[0].iteration == 69);
    CHECK(one.events()[0].change.kind == mp::scale_change_kind::no_gradients);
    REQUIRE(usual.events().size() == 64);
    CHECK(usual.events()[0].iteration == 6);
    CHECK(usual.events()[63].iteration == 69);
}

TEST_CASE("in a format whose NaN has the code of minus zero, too large is not flushed") {
    const std::vector<float> in{1e10F, -241.0F, 1.0F, 1e-10F, 0x1p-9F};
    std::vector<mp::float8_e4m3fnuz> out(in.size());
    const float one = 1.0F;
    mp::device_gradient_report seen;
    mp::convert_and_observe(mp::simulated_gpu<mp::arch::sm_90>{}, in, out, &one, &seen, 1e9);
    CHECK(seen.flushed == 1);
    CHECK(seen.subnormals == 1);
    CHECK(seen.overflows == (mp::isfinite(out[1]) ? 1 : 2));
    CHECK(seen.large == 0);
}

TEST_CASE("a value is above an edge exactly when its magnitude is") {
    using mp::detail::edge_bits;
    CHECK(edge_bits("f", 0.0) == 0);
    CHECK(edge_bits("f", 1.0) == 0x3f800000);
    CHECK(edge_bits("f", 0.1) == 0x3dcccccc);  // the nearest float is above
    CHECK(edge_bits("f", 0x1p-150) == 0);
    CHECK(edge_bits("f", 0x1.8p-150) == 0);
    CHECK(edge_bits("f", 0x1p-149) == 1);
    CHECK(edge_bits("f", 0x1.fffffep127) == 0x7f7fffff);
    CHECK(edge_bits("f", 1e300) == 0x7f800000);
    CHECK(edge_bits("f", std::numeric_limits<double>::infinity()) == 0x7f800000);
    CHECK_THROWS_WITH_AS(edge_bits("f", -1.0), "f: edge is -1; it must not be negative", mp::argument_error);
    CHECK_THROWS_AS(edge_bits("f", std::numeric_limits<double>::quiet_NaN()), mp::argument_error);
    CHECK(mp::detail::double_of_float_bits(1) == 0x1p-149);
    CHECK(mp::detail::double_of_float_bits(0x007fffff) == 0x1.fffffcp-127);
    CHECK(mp::detail::double_of_float_bits(0x3fc00000) == 1.5);
}

TEST_CASE("a policy that applies every step, and policies and states that make no sense") {
    const mp::static_policy always{.initial_scale = 8.0F, .skip_non_finite = false};
    auto scale = mp::make_device_loss_scale(always);
    CHECK(scale.inverse_scale == 0.125F);
    CHECK(scale.skips(always));  // there are no gradients yet
    scale.seen.checked = 1;
    scale.seen.nans = 1;
    CHECK_FALSE(scale.skips(always));
    mp::detail::end_iteration(mp::detail::rules_of(always), scale);
    CHECK(scale.skipped == 0);
    CHECK(scale.updates == 1);
    CHECK_THROWS_AS(static_cast<void>(mp::make_device_loss_scale(mp::pytorch_policy{.growth_factor = 1.0})),
                    mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::make_device_loss_scale(mp::pytorch_policy{}, {-1.0F, {0}})),
                    mp::argument_error);
    const auto resumed = mp::make_device_loss_scale(mp::pytorch_policy{}, {1024.0F, {7}});
    CHECK(resumed.state.growth.tracker == 7);
    CHECK(resumed.inverse_scale == 0x1p-10F);
}

}  // namespace
