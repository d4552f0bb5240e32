// SPDX-License-Identifier: MIT
// A loop that lets two backward passes write one gradient, where the second should add to it, is told.
#include <mp/gpu.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

using mp::row_major;
using mp::ops::absent;
using mp::ops::add_to;

/// y = x w^T with a weight of 3 x 2 and its gradient; backward passes give ones times `scale`.
struct layer {
    std::vector<float> w = std::vector<float>(6, 1.0F);
    std::vector<float> dw = std::vector<float>(6, 0.0F);
    std::vector<float> x = std::vector<float>(2, 1.0F);
    mp::sgd<float> optimizer{{{"w", w, dw}}, {.learning_rate = 0.5}};

    [[nodiscard]] auto gradient() { return row_major(dw.data(), 3, 2); }
    template <class Out>
    void backward(float scale, const Out& out) {
        const std::vector<float> dy(3, scale);
        mp::ops::linear_backward(mp::cpu{}, row_major(x.data(), 1, 2), row_major(w.data(), 3, 2),
                                 row_major(dy.data(), 1, 3), absent, out, absent);
    }
};

}  // namespace

TEST_CASE("a gradient that two backward passes write is refused, and nothing has changed") {
    layer net;
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 4.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    {
        mp::training_iteration iteration(scaler, net.optimizer);
        net.backward(iteration.scale(1.0F), net.gradient());
        net.backward(iteration.scale(1.0F), net.gradient());
        const std::string message = thrown<mp::state_error>([&] { iteration.finish(); });
        CHECK(message.find("mp::training_iteration::finish: two backward passes wrote the gradient of "
                           "parameters[0] ('w')") == 0);
        CHECK(message.find("add_to") != std::string::npos);
        CHECK(thrown<mp::state_error>([&] { iteration.unscale(); }).find("unscale: two") !=
              std::string::npos);
        CHECK(holds(thrown<mp::state_error>([&] { iteration.clip_gradient_norm(1.0); }),
                    "two backward passes"));
        CHECK(net.w == std::vector<float>(6, 1.0F));
        CHECK(net.dw == std::vector<float>(6, 4.0F));
    }
    CHECK(net.w == std::vector<float>(6, 1.0F));
    // The next iteration starts anew.
    mp::training_iteration iteration(scaler, net.optimizer);
    net.backward(iteration.scale(1.0F), net.gradient());
    CHECK(iteration.finish());
    CHECK(net.w == std::vector<float>(6, 0.5F));
}

TEST_CASE("gradients that are added train on all micro batches, whoever writes first") {
    for (const bool writes_first : {false, true}) {
        layer net;
        mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 4.0F});
        static_cast<void>(scaler.current_scale());  // as a backward pass does
        mp::training_iteration iteration(scaler, net.optimizer);
        for (int micro = 0; micro < 3; ++micro) {
            net.backward(iteration.scale(micro == 1 ? 2.0F : 1.0F),
                         add_to(net.gradient(), !writes_first || micro != 0));
        }
        CHECK(iteration.finish());
        CHECK(net.w == std::vector<float>(6, 1.0F - 0.5F * 4.0F));
    }
}

TEST_CASE("parts of a gradient may be written one after the other") {
    layer net;
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 1.0F});
    mp::training_iteration iteration(scaler, net.optimizer);
    const std::vector<float> one(3, 1.0F);
    for (std::ptrdiff_t row = 0; row < 3; ++row) {
        mp::ops::sum_backward(mp::cpu{}, 1.0F, row_major(net.dw.data() + 2 * row, 1, 2));
    }
    CHECK(iteration.finish());
    CHECK(net.w == std::vector<float>(6, 0.5F));
}

TEST_CASE("a region does not hide it, an op beside the gradients is no matter, and who means it says so") {
    layer net;
    layer other;
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 4.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    {
        mp::training_iteration iteration(scaler, other.optimizer, net.optimizer);
        mp::autocast_region region(mp::precision::bf16);
        std::vector<float> elsewhere(6);
        for (int micro = 0; micro < 2; ++micro) net.backward(1.0F, row_major(elsewhere.data(), 3, 2));
        other.backward(1.0F, other.gradient());
        net.backward(1.0F, net.gradient());
        iteration.unscale();
    }
    {
        mp::training_iteration iteration(scaler, other.optimizer, net.optimizer);
        mp::autocast_region region(mp::precision::bf16);
        other.backward(4.0F, other.gradient());
        for (int micro = 0; micro < 2; ++micro) net.backward(4.0F, net.gradient());
        CHECK(holds(thrown<mp::state_error>([&] { iteration.finish(); }), "two backward passes"));
        iteration.allow_overwriting();
        CHECK(iteration.finish());
    }
    CHECK(net.w == std::vector<float>(6, 0.5F));
    // A batch that is run again is another iteration.
    layer again;
    mp::loss_scaler high(mp::pytorch_policy{.initial_scale = 0x1p127F});
    const auto result = mp::train_with_retries(
        high, [&](auto& iteration) { again.backward(iteration.scale(4.0F), again.gradient()); }, 8,
        again.optimizer);
    CHECK(result.attempts > 1);
    CHECK(result.applied);
}

namespace {

/// Adds x to y, by an op inside that writes x to y first.
struct add_twice_op {
    static constexpr std::string_view name = "add_twice";
    static constexpr auto category = mp::op_category::pass_through;
    void operator()(mp::cpu exec, mp::matrix_view<const float> x, mp::matrix_view<float> y) const {
        mp::ops::sum_backward(exec, 0.0F, y);
        mp::ops::add<mp::autocast::off>(exec, y, x, y);
    }
};

}  // namespace

TEST_CASE("ops of a policy of their own are seen, and those inside an op are not") {
    layer net;
    mp::loss_scaler scaler(mp::pytorch_policy{.initial_scale = 4.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    const std::vector<float> dy(3, 1.0F), dw(6, 1.0F);
    const auto backward = [&] {
        mp::ops::linear_backward<mp::autocast::off>(mp::cpu{}, row_major(net.x.data(), 1, 2),
                                                    row_major(net.w.data(), 3, 2), row_major(dy.data(), 1, 3),
                                                    absent, net.gradient(), absent);
    };
    {
        mp::training_iteration iteration(scaler, net.optimizer);
        backward();
        backward();
        CHECK(holds(thrown<mp::state_error>([&] { iteration.finish(); }), "two backward passes"));
    }
    mp::training_iteration iteration(scaler, net.optimizer);
    mp::autocast::call<mp::autocast::off>(add_twice_op{}, mp::cpu{}, row_major(dw.data(), 3, 2),
                                          mp::autocast::out(net.gradient()));
    CHECK(iteration.finish());
}

TEST_CASE("iterations that overlap may end in any order") {
    layer first;
    layer second;
    mp::loss_scaler one(mp::pytorch_policy{.initial_scale = 1.0F});
    mp::loss_scaler two(mp::pytorch_policy{.initial_scale = 1.0F});
    std::optional<mp::training_iteration<decltype(one), mp::sgd<float>>> outer;
    std::optional<mp::training_iteration<decltype(two), mp::sgd<float>>> inner;
    outer.emplace(one, first.optimizer);
    inner.emplace(two, second.optimizer);
    first.backward(1.0F, first.gradient());
    outer->abandon();
    outer.reset();
    second.backward(1.0F, second.gradient());
    CHECK(holds(thrown<mp::state_error>([&] { inner->finish(); }), "nothing was thrown"));
    inner.reset();
    first.backward(1.0F, first.gradient());  // watched by nobody
}

TEST_CASE("on a GPU as well") {
    using simulated = mp::simulated_gpu<mp::arch::sm_75>;
    mp::host_workspace workspace;
    const simulated gpu{.workspace = &workspace};
    std::vector<float> w(6, 1.0F);
    std::vector<float> dw(6, 0.0F);
    const std::vector<float> x(2, 1.0F);
    const std::vector<float> dy(3, 1.0F);
    mp::gpu_optimizer optimizer(
        gpu, std::vector{mp::gpu_parameter<float, float, float>{.weights = w, .gradient = dw}},
        mp::sgd_options{.learning_rate = 0.5});
    mp::gpu_loss_scaler scaler(gpu, mp::pytorch_policy{.initial_scale = 1.0F});
    for (const bool adds : {true, false}) {
        mp::training_iteration iteration(scaler, optimizer);
        for (int micro = 0; micro < 2; ++micro) {
            mp::ops::linear_backward(gpu, row_major(x.data(), 1, 2), row_major(w.data(), 3, 2),
                                     row_major(dy.data(), 1, 3), absent,
                                     add_to(row_major(dw.data(), 3, 2), adds), absent);
        }
        if (adds) {
            iteration.finish();
            CHECK(w == std::vector<float>(6, 0.0F));
        } else {
            CHECK(thrown<mp::state_error>([&] { iteration.finish(); }).find("parameters[0], so") !=
                  std::string::npos);
        }
    }
}
