// SPDX-License-Identifier: MIT
// A parameter that an iteration does not use is not stepped, on one rank and on all.

#include <mp/bfloat16.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using mp::bfloat16;

/// A chain of two layers, of which an iteration may use the first alone, with a second input of zeros or not.
template <class Value>
struct chain {
    mp::parameter_store<Value> store;
    mp::layers::linear<Value> a{store, "a", 4, 4}, b{store, "b", 4, 4};
    mp::tensor<Value> x{2, 4}, zeros{2, 4};
    mp::tape tape;

    chain() {
        store.build(1);
        for (auto& value : x.values()) value = Value(1.0F);
    }
    enum class use { both, first, both_with_zeros };
    void backward(use how) {
        const mp::cpu exec{};
        auto y = tape.call(a, exec, x.view());
        if (how != use::first) y = tape.call(b, exec, y);
        const auto target = how == use::both_with_zeros ? y.value() : zeros.view();
        mp::ops::mean_squared_error_backward(exec, y.value(), target, y.add_to_gradient());
        tape.backward();
    }
    [[nodiscard]] std::vector<float> of_b() const {
        std::vector<float> all;
        for (const Value w : b.weight().values()) all.push_back(static_cast<float>(w));
        for (const Value w : b.bias().values()) all.push_back(static_cast<float>(w));
        return all;
    }
};

template <class Optimizer, class Options>
void check_unused(const Options& options) {
    using value = typename Optimizer::weight_type;
    using model = chain<value>;
    using use = typename model::use;
    // What the rest of the steps leave is what the used ones alone leave.
    const auto run = [&](const std::vector<use>& steps, bool steps_unused) {
        model net;
        Optimizer optimizer(net.store.parameters(), options);
        optimizer.set_steps_unused_parameters(steps_unused);
        mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
        for (const use how : steps) {
            mp::training_iteration iteration(scaler, optimizer);
            static_cast<void>(iteration.current_scale());
            net.backward(how);
            REQUIRE(iteration.finish());
        }
        return net.of_b();
    };
    const std::vector<use> two(2, use::both);
    std::vector<use> ten = two, zeros = two;
    ten.resize(10, use::first);
    zeros.resize(3, use::both_with_zeros);
    const auto after_two = run(two, false);
    CHECK(run(ten, false) == after_two);
    CHECK(run(ten, true) != after_two);
    // A gradient that a backward pass has found to be zero counts as used: momentum and decay go on.
    CHECK(run(zeros, false) != after_two);
    ten.resize(3, use::first);
    CHECK(run(zeros, false) == run(ten, true));
}

TEST_CASE("a layer that is not used stays where it is, without momentum, decay and count") {
    check_unused<mp::adamw<float>>(mp::adamw_options{.learning_rate = 1e-2, .weight_decay = 0.1});
    check_unused<mp::adamw<bfloat16>>(mp::adamw_options{.learning_rate = 1e-2, .weight_decay = 0.1});
    check_unused<mp::sgd<float>>(mp::sgd_options{.learning_rate = 1e-2, .momentum = 0.9});
    check_unused<mp::lion<float>>(mp::lion_options{.learning_rate = 1e-3, .weight_decay = 0.1});
    check_unused<mp::lamb<float>>(mp::lamb_options{.learning_rate = 1e-2, .weight_decay = 0.1});
    check_unused<mp::lars<float>>(mp::lars_options{.learning_rate = 1, .momentum = 0.9, .weight_decay = 0.1});
    check_unused<mp::adafactor<float>>(mp::adafactor_options{.learning_rate = 1e-2, .weight_decay = 0.1});
}

TEST_CASE(
    "a gradient that is written by hand counts as used where it is not zero, and outside of iterations "
    "always") {
    std::vector<float> w(3, 1.0F), g(3), v(3, 1.0F), dv(3);
    mp::sgd<float> optimizer({{"w", w, g}, {"v", v, dv}}, {.learning_rate = 1, .weight_decay = 0.5});
    mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
    {
        mp::training_iteration iteration(scaler, optimizer);
        static_cast<void>(iteration.current_scale());
        g[2] = 0.25F;
        CHECK(optimizer.is_used(0));
        CHECK_FALSE(optimizer.is_used(1));
        REQUIRE(iteration.finish());
    }
    CHECK(w == std::vector<float>{0.5F, 0.5F, 0.25F});
    CHECK(v == std::vector<float>(3, 1.0F));
    optimizer.step();
    CHECK(v == std::vector<float>(3, 0.5F));
}

/// Trains on two ranks; what each rank does with the second layer in step 2 is `uses`.
template <class Value, bool Shards>
std::array<std::vector<float>, 2> on_two_ranks(std::array<typename chain<Value>::use, 2> uses) {
    using use = typename chain<Value>::use;
    std::array<std::vector<float>, 2> result;
    mp::run_loopback(2, [&](auto& self) {
        chain<Value> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {.share_only = Shards}, net.store);
        const mp::adamw_options options{.learning_rate = 1e-2, .weight_decay = 0.1};
        auto optimizer = mp::shard<mp::adamw<Value>>(mp::cpu{}, reduction, net.store, options);
        mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
        const auto rank = static_cast<std::size_t>(self.rank());
        for (int step = 0; step < 5; ++step) {
            mp::training_iteration iteration(scaler, optimizer);
            {
                const auto overlap = reduction.backward(iteration.current_scale());
                net.backward(step < 2 ? use::both : step == 2 ? uses[rank] : use::first);
            }
            reduction.finish();
            REQUIRE(iteration.finish());
            mp::require_same_weights(self, net.store);
            if (step == 1) result[0] = net.of_b();
        }
        if (rank == 0) result[1] = net.of_b();
    });
    return result;
}

template <class Value, bool Shards>
void check_ranks() {
    using use = typename chain<Value>::use;
    // Nobody uses it after two steps.
    const auto unused = on_two_ranks<Value, Shards>({use::first, use::first});
    CHECK(unused[0] == unused[1]);
    // One rank does, with a gradient of zeros, which the other cannot tell from none by the sum.
    const auto zeros = on_two_ranks<Value, Shards>({use::first, use::both_with_zeros});
    CHECK(zeros[0] != zeros[1]);
    CHECK(zeros[1] == on_two_ranks<Value, Shards>({use::both_with_zeros, use::both_with_zeros})[1]);
    // One rank does: half of its gradient is the mean.
    const auto one = on_two_ranks<Value, Shards>({use::both, use::first});
    CHECK(one[0] != one[1]);
}

TEST_CASE("ranks agree on what is used") {
    check_ranks<float, false>();
    check_ranks<float, true>();
    check_ranks<bfloat16, true>();
}

TEST_CASE("ranks agree where a mean is not zero, and is zero without the scale") {
    mp::run_loopback(2, [](auto& self) {
        chain<float> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {}, net.store);
        mp::adamw<float> optimizer(net.store.parameters(), {.learning_rate = 1e-2, .weight_decay = 0.1});
        mp::loss_scaler scaler(mp::static_policy{.initial_scale = 65536.0F});
        for (int step = 0; step < 3; ++step) {
            mp::training_iteration iteration(scaler, optimizer);
            {
                const auto overlap = reduction.backward(iteration.current_scale());
                net.backward(step == 0 || self.rank() == 0 ? chain<float>::use::both
                                                           : chain<float>::use::first);
            }
            if (step > 0) {
                for (float& value : net.b.weight().gradient_values())
                    value = self.rank() == 0 ? 1e-42F : 0.0F;
                for (float& value : net.b.bias().gradient_values()) value = self.rank() == 0 ? 1e-42F : 0.0F;
            }
            reduction.finish();
            iteration.clip_global_gradient_norm(1.0);  // unscales in place
            REQUIRE(iteration.finish());
            mp::require_same_weights(self, net.store);
        }
    });
}

TEST_CASE("passes of an iteration that was abandoned do not count in the next one") {
    mp::run_loopback(2, [](auto& self) {
        using use = chain<float>::use;
        chain<float> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {}, net.store);
        mp::adamw<float> optimizer(net.store.parameters(), {.learning_rate = 1e-2, .weight_decay = 0.1});
        mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
        const auto before = net.of_b();
        {
            const mp::training_iteration abandoned(scaler, optimizer);
            const auto overlap = reduction.backward(1.0F, false);
            net.backward(use::both);
        }
        mp::training_iteration iteration(scaler, optimizer);
        {
            const auto overlap = reduction.backward(1.0F);
            net.backward(use::first);
        }
        reduction.finish();
        REQUIRE(iteration.finish());
        CHECK(net.of_b() == before);
    });
}

TEST_CASE("an optimizer that ranks share leaves what is not used also without a scale") {
    for (const bool share : {false, true}) {
        mp::run_loopback(2, [share](auto& self) {
            chain<float> net;
            mp::gradient_reduction reduction(mp::cpu{}, self, {.share_only = share}, net.store);
            auto optimizer = mp::shard<mp::adamw<float>>(mp::cpu{}, reduction, net.store,
                                                         mp::adamw_options{.weight_decay = 0.5});
            mp::dynamic_loss_scaler off({}, false);
            const auto before = net.of_b();
            for (int step = 0; step < 3; ++step) {
                const float of_a = net.a.weight().values()[0];
                mp::training_iteration iteration(off, optimizer);
                {
                    const auto overlap = reduction.backward(1.0F);
                    net.backward(chain<float>::use::first);
                }
                reduction.finish();
                REQUIRE(iteration.finish());
                CHECK(net.a.weight().values()[0] != of_a);
            }
            CHECK(net.of_b() == before);
        });
    }
}

TEST_CASE("the mean of the last step is not sent again for a gradient that is not written") {
    mp::run_loopback(2, [](auto& self) {
        chain<float> net;
        mp::gradient_reduction reduction(mp::cpu{}, self, {}, net.store);
        for (int step = 0; step < 4; ++step) {
            // Without an iteration, which would have zeroed the gradients.
            {
                const auto overlap = reduction.backward(1.0F);
                net.backward(step < 2 ? chain<float>::use::both : chain<float>::use::first);
            }
            reduction.finish();
            bool zero = true;
            for (const float value : net.b.weight().gradient_values()) zero = zero && value == 0;
            CHECK(zero == (step >= 2));
        }
    });
}

}  // namespace
