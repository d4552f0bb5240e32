// SPDX-License-Identifier: MIT
// An optimizer that was moved from has no parameters, and the one that it was moved to goes on with the same bits.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// A visitor that only walks over the state.
struct walker {
    static constexpr bool loads = false;
    template <class Thing>
    void operator()(const std::string&, const Thing&) {}
    template <class Value>
    void expect(const std::string&, Value) {}
};

/// Calls what an optimizer has on one without parameters. Whatever names a parameter or a group is refused.
template <class Optimizer>
void check_empty(Optimizer& it) {
    CHECK(it.parameters().empty());
    const auto refused = [](auto call) { CHECK_THROWS_AS(call(), mp::argument_error); };
    std::vector<float> room(1);
    refused([&] { static_cast<void>(it.parameter_name(0)); });
    refused([&] { static_cast<void>(it.learning_rate()); });
    refused([&] { it.set_learning_rate(0.1, 0); });
    refused([&] { static_cast<void>(it.options()); });
    refused([&] { it.set_options(typename Optimizer::options_type{}); });
    refused([&] { static_cast<void>(it.master_weights(0)); });
    refused([&] { static_cast<void>(it.weight_compensation(0)); });
    refused([&] { it.copy_master_weights(0, 0, room); });
    refused([&] { it.copy_state(0, 0, 0, room); });
    if constexpr (requires { it.momentum(0); }) refused([&] { static_cast<void>(it.momentum(0)); });
    if constexpr (requires { it.gradient_mean(0); }) refused([&] { static_cast<void>(it.gradient_mean(0)); });
    if constexpr (requires { it.row_means(0); }) refused([&] { static_cast<void>(it.row_means(0)); });
    if constexpr (requires { it.trust_ratio(0); }) refused([&] { static_cast<void>(it.trust_ratio(0)); });
    it.set_learning_rate(0.1);
    it.set_learning_rate_factor(0.5);
    it.reload_master_weights();
    it.set_states({}, {});
    CHECK(it.group_count() == 0);
    CHECK(it.bytes_per_parameter() == 0.0);
    static_cast<void>(it.state_bytes());
    static_cast<void>(it.step_count());
    it.skip_step();
    it.zero_gradients();
    CHECK(it.check_gradients(1.0F).checked == 0);
    CHECK(it.unscale_gradients(0.5F).checked == 0);
    CHECK(it.gradient_norm() == 0.0);
    CHECK(it.clip_gradient_norm(1.0) == 0.0);
    it.clip_gradient_value(1.0);
    it.scale_gradients(0.5F);
    CHECK(it.unscaled_gradients().empty());
    it.step();
    it.step();
    it.step(0.5F);
    mp::dynamic_loss_scaler scaler;
    CHECK(scaler.step(it).status == mp::step_status::no_gradients);
    scaler.update();
    walker visit;
    it.visit_state(visit);
}

template <class Optimizer>
struct run {
    using weight = typename Optimizer::weight_type;
    std::vector<weight> w = std::vector<weight>(300, weight(1.0F));
    std::vector<weight> dw = std::vector<weight>(300, weight(0.25F));
    Optimizer optimizer{{{"w", w, dw}}, typename Optimizer::options_type{}};
};

}  // namespace

TEST_CASE_TEMPLATE("an optimizer can be moved between two steps, and what it leaves has no parameters",
                   Optimizer, mp::sgd<float>, mp::sgd<mp::half>, mp::adamw<float>,
                   mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>, mp::lion<float>, mp::lars<float>,
                   mp::lamb<mp::half>, mp::adafactor<float>,
                   mp::adamw<float, float, float, mp::block_moment>) {
    run<Optimizer> moved, whole;
    moved.optimizer.step();
    whole.optimizer.step();
    Optimizer target(std::move(moved.optimizer));
    check_empty(moved.optimizer);  // NOLINT(bugprone-use-after-move)
    target.step();
    whole.optimizer.step();
    CHECK(moved.w == whole.w);

    // In the middle of an iteration, and back into the empty one.
    target.unscale_gradients(0.5F);
    whole.optimizer.unscale_gradients(0.5F);
    moved.optimizer = std::move(target);
    target.skip_step();  // NOLINT(bugprone-use-after-move)
    check_empty(target);
    moved.optimizer.step();
    whole.optimizer.step();
    CHECK(moved.w == whole.w);
    CHECK(moved.optimizer.step_count() == 3);
}
