// SPDX-License-Identifier: MIT
// The scaler's protocol: what happens to optimizers in which order, what it reports, and what it refuses.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>

#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The least that a scaler can drive, and a record of what it was asked to do.
struct plain_optimizer {
    std::vector<float> gradient = {2.0F};
    std::string calls = {};
    bool fails_to_unscale = false;
    bool fails_to_step = false;

    mp::gradient_report unscale_gradients(float inverse_scale) {
        if (fails_to_unscale) throw std::runtime_error("unscaling failed");
        calls += 'u';
        mp::gradient_report report;
        report.add(0, gradient.size(), mp::unscale_and_check(mp::cpu{}, gradient, inverse_scale));
        return report;
    }
    void step() {
        if (fails_to_step) throw std::runtime_error("the step failed");
        calls += 's';
    }
    void skip_step() { calls += '-'; }
};

/// One that also steps without a copy, and whose parameters have names.
struct fast_optimizer : plain_optimizer {
    mp::gradient_report check_gradients(float inverse_scale) {
        calls += 'c';
        mp::gradient_report report;
        report.add(0, 0, {});
        report.add(1, gradient.size(), mp::check_finite(mp::cpu{}, gradient, inverse_scale));
        return report;
    }
    using plain_optimizer::step;
    void step(float inverse_scale) { calls += inverse_scale == 1.0F / 1024.0F ? 'f' : '?'; }
    std::string_view parameter_name(std::size_t index) const { return index == 1 ? "second" : "first"; }
};

static_assert(mp::scalable_optimizer<plain_optimizer> && !mp::fused_optimizer<plain_optimizer>);
static_assert(mp::fused_optimizer<fast_optimizer> && mp::named_optimizer<fast_optimizer>);
static_assert(!mp::scalable_optimizer<std::vector<float>>);

mp::dynamic_loss_scaler scaler_at_1024() {
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F, .growth_interval = 3});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    return scaler;
}

}  // namespace

TEST_CASE("gradients that nothing can have scaled are not unscaled") {
    const auto refused = [](auto&& call) {
        return holds(thrown<mp::state_error>(call), ": the scale is 1024, and nothing has asked for it");
    };
    plain_optimizer optimizer;
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F});
    CHECK(refused([&] { scaler.unscale(optimizer); }));
    CHECK(refused([&] { (void)scaler.step(optimizer); }));
    mp::dynamic_loss_scaler resumed;
    resumed.restore(scaler.state());
    CHECK(refused([&] { (void)resumed.step(optimizer); }));
    CHECK(scaler.scale(0.5F) == 512.0F);
    CHECK(scaler.step(optimizer));
    // Where the scale is 1 there is nothing to ask for.
    mp::static_loss_scaler one({.initial_scale = 1.0F});
    CHECK(one.step(optimizer));
    mp::dynamic_loss_scaler off({}, false);
    CHECK(off.step(optimizer));
}

TEST_CASE("an iteration scales the loss, unscales, steps and counts") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer{{3072.0F, -1024.0F}};
    CHECK(scaler.current_scale() == 1024.0F);
    CHECK(scaler.inverse_scale() == 0x1p-10F);
    CHECK(scaler.scale(0.5F) == 512.0F);
    const mp::step_result result = scaler.step(optimizer);
    CHECK(result);
    CHECK(result.status == mp::step_status::applied);
    CHECK(result.scale == 1024.0F);
    CHECK(optimizer.gradient == std::vector<float>{3.0F, -1.0F});
    CHECK(optimizer.calls == "us");
    CHECK(scaler.update() == mp::scale_change{1024.0F, 1024.0F, mp::scale_change_kind::unchanged});
    CHECK(scaler.state().state == mp::scale_state{1024.0F, {1}});
}

TEST_CASE("the loss is scaled in float, or in double if it is double") {
    const mp::dynamic_loss_scaler scaler;
    static_assert(std::is_same_v<decltype(scaler.scale(1.0F)), float>);
    static_assert(std::is_same_v<decltype(scaler.scale(1.0)), double>);
    static_assert(std::is_same_v<decltype(scaler.scale(mp::half(1.0F))), float>);
    CHECK(scaler.scale(mp::half(2.0F)) == 131072.0F);  // in half this would be infinite
    CHECK(scaler.scale(0.1) == 6553.6);
}

TEST_CASE("a step with an infinity is skipped, says where, and backs the scale off") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    fast_optimizer optimizer;
    optimizer.gradient = {1.0F, 2.0F, not_a_number, -infinity, infinity};
    const mp::step_result result = scaler.step(optimizer);
    CHECK_FALSE(result);
    CHECK(result.status == mp::step_status::skipped_infinity);
    CHECK(result.infinities == 2);
    CHECK(result.nans == 1);
    CHECK(result.parameter_index == 1);
    CHECK(result.parameter_name == std::string_view("second"));
    CHECK(result.element_index == 2);
    CHECK(optimizer.calls == "c-");
    CHECK(mp::to_string(result) ==
          "skipped, 2 infinities and 1 NaN at scale 1024 (next 512), the first in 'second'[2]");
    CHECK(scaler.update() == mp::scale_change{1024.0F, 512.0F, mp::scale_change_kind::backed_off});
    CHECK(scaler.current_scale() == 512.0F);
}

TEST_CASE("NaNs without an infinity have a status of their own") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer{{1.0F, not_a_number}};
    const mp::step_result result = scaler.step(optimizer);
    CHECK(result.status == mp::step_status::skipped_nan);
    CHECK(optimizer.calls == "u-");
    CHECK(mp::to_string(result) ==
          "skipped, 0 infinities and 1 NaN at scale 1024 (next 512), the first in parameter 0[1]");
    CHECK(scaler.update().kind == mp::scale_change_kind::backed_off);
}

TEST_CASE("step takes the fused path unless the gradients were unscaled before") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    fast_optimizer optimizer;
    CHECK(scaler.step(optimizer));
    CHECK(optimizer.calls == "cf");
    scaler.update();
    const mp::gradient_report report = scaler.unscale(optimizer);
    CHECK(report.checked == 1);
    CHECK_FALSE(report.found());
    CHECK(scaler.step(optimizer));
    CHECK(optimizer.calls == "cfus");
    CHECK(mp::to_string(mp::step_result{}) == "applied at scale 1");
}

TEST_CASE("what unscale found decides the step and the update, whatever becomes of the gradients between") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer{{infinity}};
    CHECK(scaler.unscale(optimizer).infinities == 1);
    optimizer.gradient[0] = 0.0F;
    CHECK_FALSE(scaler.step(optimizer));
    CHECK(scaler.update().after == 512.0F);
}

TEST_CASE("optimizers are skipped each on its own, and one overflow backs off for all") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer first;
    plain_optimizer second{{infinity}};
    fast_optimizer third;
    CHECK(scaler.step(first));
    scaler.unscale(second);
    CHECK(scaler.step(third));
    CHECK_FALSE(scaler.step(second));
    CHECK(first.calls == "us");
    CHECK(second.calls == "u-");
    CHECK(third.calls == "cf");
    CHECK(scaler.update() == mp::scale_change{1024.0F, 512.0F, mp::scale_change_kind::backed_off});
    // The iteration counts once, not once an optimizer.
    first.gradient = second.gradient = {1.0F};
    for (int i = 0; i < 2; ++i) {
        scaler.step(first);
        scaler.step(second);
        scaler.update();
    }
    CHECK(scaler.state().state == mp::scale_state{512.0F, {2}});
}

TEST_CASE("more optimizers than there is room for at first") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    std::vector<plain_optimizer> optimizers(40);
    optimizers[39].gradient = {infinity};
    for (plain_optimizer& optimizer : optimizers) scaler.unscale(optimizer);
    for (plain_optimizer& optimizer : optimizers) scaler.step(optimizer);
    CHECK(optimizers[0].calls == "us");
    CHECK(optimizers[39].calls == "u-");
    CHECK(scaler.update().after == 512.0F);
}

TEST_CASE("gradients accumulate over several backward passes at one scale") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer{{0.0F}};
    for (int batch = 0; batch < 4; ++batch) optimizer.gradient[0] += scaler.scale(0.25F);
    CHECK(scaler.step(optimizer));
    scaler.update();
    CHECK(optimizer.gradient[0] == 1.0F);
    CHECK(scaler.state().state.growth.tracker == 1);
}

TEST_CASE("misuse is refused with the reason and leaves everything as it was") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer;
    CHECK(thrown<mp::state_error>([&] { scaler.update(); }) ==
          "mp::loss_scaler::update: no optimizer was unscaled or stepped since the last update, so there is "
          "nothing to judge the scale by");
    scaler.unscale(optimizer);
    CHECK(thrown<mp::state_error>([&] { scaler.unscale(optimizer); }) ==
          "mp::loss_scaler::unscale: the gradients of this optimizer are already unscaled; unscale them once "
          "between two calls of update");
    CHECK(scaler.step(optimizer));
    CHECK(thrown<mp::state_error>([&] { scaler.unscale(optimizer); }) ==
          "mp::loss_scaler::unscale: this optimizer has already stepped since the last update; unscale comes "
          "before step, and update ends the iteration");
    CHECK(thrown<mp::state_error>([&] { scaler.step(optimizer); }) ==
          "mp::loss_scaler::step: this optimizer has already stepped since the last update; call update once "
          "an iteration, after every optimizer has stepped");
    CHECK(optimizer.calls == "us");
    CHECK(optimizer.gradient[0] == 2.0F / 1024.0F);
    CHECK(scaler.update().kind == mp::scale_change_kind::unchanged);
    CHECK(scaler.state().state == mp::scale_state{1024.0F, {1}});
    CHECK(thrown<mp::state_error>([&] { scaler.update(); }) != "(nothing was thrown)");
    CHECK(scaler.state().state == mp::scale_state{1024.0F, {1}});
}

TEST_CASE("an optimizer without gradients is reported and does not move the scale") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer empty{{}};
    const mp::step_result result = scaler.step(empty);
    CHECK_FALSE(result);
    CHECK(result.status == mp::step_status::no_gradients);
    CHECK(mp::to_string(result) == "no gradients");
    CHECK(empty.calls == "u-");
    CHECK(scaler.update() == mp::scale_change{1024.0F, 1024.0F, mp::scale_change_kind::no_gradients});
    CHECK(scaler.state().state == mp::scale_state{1024.0F, {0}});
    // Beside one that has gradients it does not matter.
    plain_optimizer other;
    scaler.step(empty);
    scaler.step(other);
    CHECK(scaler.update().kind == mp::scale_change_kind::unchanged);
    CHECK(scaler.state().state.growth.tracker == 1);
}

TEST_CASE("an optimizer that throws leaves the scaler as it was") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer;
    optimizer.fails_to_unscale = true;
    CHECK_THROWS_AS(scaler.unscale(optimizer), std::runtime_error);
    CHECK_THROWS_AS(scaler.step(optimizer), std::runtime_error);
    CHECK_THROWS_AS(scaler.update(), mp::state_error);
    optimizer.fails_to_unscale = false;
    optimizer.fails_to_step = true;
    CHECK_THROWS_AS(scaler.step(optimizer), std::runtime_error);
    CHECK(optimizer.calls == "u");
    optimizer.fails_to_step = false;
    CHECK(scaler.step(optimizer));  // it is unscaled already, and is not unscaled again
    CHECK(optimizer.calls == "us");
}

TEST_CASE("setting the scale ends the iteration and keeps the counters") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    plain_optimizer optimizer;
    for (int i = 0; i < 2; ++i) {
        scaler.step(optimizer);
        scaler.update();
    }
    optimizer.gradient = {infinity};
    scaler.unscale(optimizer);
    CHECK(scaler.update(8.0F) == mp::scale_change{1024.0F, 8.0F, mp::scale_change_kind::replaced});
    CHECK(scaler.state().state == mp::scale_state{8.0F, {2}});
    optimizer.gradient = {1.0F};
    CHECK(optimizer.calls == "ususu-");  // what was unscaled and not stepped is dropped
    CHECK(scaler.step(optimizer));       // ready again, and the infinity is forgotten
    CHECK(scaler.update() == mp::scale_change{8.0F, 16.0F, mp::scale_change_kind::grown});
    for (const float bad : {0.0F, -1.0F, infinity, not_a_number, 0x1p-140F}) {
        CHECK(holds(thrown<mp::argument_error>([&] { scaler.update(bad); }),
                    "mp::loss_scaler::update: new_scale is"));
    }
    CHECK(scaler.current_scale() == 16.0F);
}

TEST_CASE("a scaler whose scale has vanished skips every step instead of poisoning the weights") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 0x1p-127F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    plain_optimizer optimizer{{infinity, 0.0F}};
    CHECK_FALSE(scaler.step(optimizer));
    CHECK(scaler.update().kind == mp::scale_change_kind::vanished);
    CHECK(scaler.current_scale() == 0x1p-128F);
    optimizer.gradient = {0x1p-140F, 0.0F};
    const mp::step_result result = scaler.step(optimizer);
    CHECK_FALSE(result);
    CHECK(result.infinities == 1);
    CHECK(result.nans == 1);
    CHECK(scaler.update().kind == mp::scale_change_kind::vanished);
}

TEST_CASE("a quotient that only the unscaling makes infinite is caught") {
    mp::dynamic_loss_scaler scaler({.initial_scale = 0x1p-20F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    plain_optimizer optimizer{{0x1p120F}};
    CHECK(scaler.step(optimizer).status == mp::step_status::skipped_infinity);
    CHECK(scaler.update().kind == mp::scale_change_kind::backed_off);
}

TEST_CASE("a disabled scaler lets everything through") {
    mp::dynamic_loss_scaler scaler({}, false);
    plain_optimizer optimizer{{infinity}};
    CHECK_FALSE(scaler.enabled());
    CHECK(scaler.current_scale() == 1.0F);
    CHECK(scaler.scale(3.0F) == 3.0F);
    CHECK(scaler.update() == mp::scale_change{});
    CHECK(scaler.step(optimizer));
    CHECK(scaler.step(optimizer));
    CHECK(scaler.update(4.0F) == mp::scale_change{});
    CHECK(optimizer.calls == "ss");
    scaler.unscale(optimizer);
    CHECK(optimizer.calls == "ssu");
    CHECK(optimizer.gradient[0] == infinity);
    CHECK(scaler.current_scale() == 1.0F);
}

TEST_CASE("static scaling skips and reports, or reports and applies") {
    mp::static_loss_scaler skipping({.initial_scale = 8.0F});
    static_cast<void>(skipping.current_scale());  // as a backward pass does
    mp::static_loss_scaler applying({.initial_scale = 8.0F, .skip_non_finite = false});
    static_cast<void>(applying.current_scale());  // as a backward pass does
    plain_optimizer optimizer{{infinity}};
    CHECK(skipping.step(optimizer).status == mp::step_status::skipped_infinity);
    CHECK(skipping.update() == mp::scale_change{8.0F, 8.0F, mp::scale_change_kind::unchanged});
    optimizer.calls.clear();
    const mp::step_result result = applying.step(optimizer);
    CHECK(result.status == mp::step_status::applied);
    CHECK(result.infinities == 1);
    CHECK(optimizer.calls == "us");
    CHECK(mp::to_string(result) == "applied, 1 infinity and 0 NaNs at scale 8, the first in parameter 0[0]");
    applying.update(16.0F);
    CHECK(applying.current_scale() == 16.0F);
}

TEST_CASE("setters are checked and change only what they name") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    scaler.set_growth_factor(4.0);
    scaler.set_backoff_factor(0.25);
    scaler.set_growth_interval(7);
    CHECK(scaler.policy() == mp::pytorch_policy{1024.0F, 4.0, 0.25, 7});
    CHECK(thrown<mp::argument_error>([&] { scaler.set_growth_factor(0.5); }) ==
          "mp::loss_scaler::set_growth_factor: growth_factor is 0.5; it must be finite and greater than 1");
    CHECK(thrown<mp::argument_error>([&] { scaler.set_backoff_factor(1.5); }) ==
          "mp::loss_scaler::set_backoff_factor: backoff_factor is 1.5; it must be greater than 0 and less "
          "than 1");
    CHECK(thrown<mp::argument_error>([&] { scaler.set_growth_interval(0); }) ==
          "mp::loss_scaler::set_growth_interval: growth_interval is 0; it must be at least 1");
    CHECK_THROWS_AS(scaler.set_policy({.growth_factor = 0.0}), mp::argument_error);
    CHECK(scaler.policy() == mp::pytorch_policy{1024.0F, 4.0, 0.25, 7});
    scaler.set_policy({.initial_scale = 2.0F, .growth_interval = 5});
    CHECK(scaler.policy().growth_interval == 5);
    CHECK(scaler.current_scale() == 1024.0F);
}

TEST_CASE("a restored scaler continues as the saved one would have") {
    mp::dynamic_loss_scaler original = scaler_at_1024();
    plain_optimizer optimizer;
    for (int i = 0; i < 5; ++i) {
        original.step(optimizer);
        original.update();
    }
    const mp::saved_loss_scaler<mp::pytorch_policy> saved = original.state();
    CHECK(saved.state == mp::scale_state{2048.0F, {2}});
    mp::dynamic_loss_scaler resumed;
    static_cast<void>(resumed.current_scale());  // as a backward pass does
    resumed.unscale(optimizer);
    resumed.restore(saved);
    CHECK(resumed.state() == saved);
    CHECK(resumed.step(optimizer));  // the iteration under way was forgotten
    original.step(optimizer);
    CHECK(resumed.update() == original.update());
    CHECK(resumed.current_scale() == 4096.0F);
}

TEST_CASE("a state that makes no sense is refused and changes nothing") {
    mp::dynamic_loss_scaler scaler = scaler_at_1024();
    const auto before = scaler.state();
    const auto refusal = [&](mp::pytorch_policy policy, mp::scale_state state) {
        return thrown<mp::argument_error>([&] { scaler.restore({policy, state}); });
    };
    CHECK(refusal({}, {not_a_number, {0}}) ==
          "mp::dynamic_policy: state.scale is nan; it must be finite and greater than 0");
    CHECK(holds(refusal({}, {0.0F, {0}}), "state.scale is 0;"));
    CHECK(holds(refusal({}, {infinity, {0}}), "state.scale is inf;"));
    CHECK(refusal({}, {1.0F, {-1}}) ==
          "mp::dynamic_policy: state.growth.tracker is -1; it must be at least 0");
    CHECK(holds(refusal({.growth_interval = -1}, {1.0F, {0}}), "growth_interval is -1;"));
    CHECK(scaler.state() == before);
    mp::static_loss_scaler constant;
    CHECK_THROWS_AS(constant.restore({{}, {-1.0F}}), mp::argument_error);
}
