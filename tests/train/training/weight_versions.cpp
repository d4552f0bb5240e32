// SPDX-License-Identifier: MIT
// Nothing that is derived from weights is stale, whoever of the library has written them. No test calls
// weights_changed().

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/interop/safetensors.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include "test_folder.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace {

using mp::bfloat16;
namespace ops = mp::ops;

/// Two layers that learn twice the first of eight inputs.
struct network {
    mp::parameter_store<float> store;
    mp::layers::linear<float> first{store, "first", 8, 16}, second{store, "second", 16, 1};
    mp::tensor<float> x{32, 8}, target{32, 1};
    mp::tape tape;

    network() {
        store.build(1);
        unsigned word = 1;
        for (float& value : x.values()) {
            value = static_cast<float>((word = word * 1664525U + 1013904223U) >> 24) / 128 - 1;
        }
        for (int i = 0; i < 32; ++i) target.values()[static_cast<std::size_t>(i)] = 2 * x.view()(i, 0);
    }
    float train() {
        const mp::cpu exec{};
        const auto y = tape.call(second, exec, tape.call(first, exec, x.view()));
        const float loss = ops::mean_squared_error(exec, y.value(), target.view());
        ops::mean_squared_error_backward(exec, y.value(), target.view(), y.add_to_gradient());
        tape.backward();
        return loss;
    }
    float loss() {
        const mp::cpu exec{};
        return ops::mean_squared_error(exec, second.forward(exec, first.forward(exec, x.view())),
                                       target.view());
    }
};

TEST_CASE(
    "a region around the loop trains on the weights of each step, and averages are applied and restored") {
    network model;
    mp::adamw<float> optimizer(model.store.parameters(), {.learning_rate = 1e-2});
    mp::weight_average average(optimizer, {.decay = 0.9});
    mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
    const mp::autocast_region region(mp::precision::bf16);
    float loss = 0;
    for (int i = 0; i < 200; ++i) {
        mp::training_iteration iteration(scaler, optimizer);
        static_cast<void>(iteration.current_scale());
        loss = model.train();
        REQUIRE(iteration.finish());
        average.update();
    }
    CHECK(loss < 1e-3F);

    const float own = model.loss();
    network other;  // without a past, with the averages for weights
    {
        const auto applied = average.apply();
        std::ranges::copy(model.store.weights(), other.store.mutable_weights().begin());
        const float averaged = model.loss();
        CHECK(averaged == other.loss());
        CHECK(averaged != own);
    }
    CHECK(model.loss() == own);
}

TEST_CASE("masters follow weights that were loaded after the optimizer was made") {
    const test_folder folder;
    mp::parameter_store<bfloat16> store, source;
    mp::layers::linear<bfloat16> layer(store, "a", 4, 4);
    mp::layers::linear<bfloat16> other(source, "a", 4, 4, {.initial = mp::initializers::constant(3)});
    store.build(1);
    source.build(1);
    mp::adamw<bfloat16> optimizer(store.parameters(), {.learning_rate = 1e-3, .weight_decay = 0.0});
    mp::save_safetensors(folder.file("w"), [&](auto& visit) { visit("m", source); });
    mp::save_checkpoint(folder.file("c"), [&](auto& visit) { visit("m", source); });
    SUBCASE("by a checkpoint of the store") {
        mp::load_checkpoint(folder.file("c"), [&](auto& visit) { visit("m", store); });
    }
    SUBCASE("from a file of weights") {
        mp::tensor_file(folder.file("w")).read_converted("m.a.weight", layer.weight().mutable_values());
    }
    SUBCASE("by hand") {
        std::ranges::fill(layer.weight().mutable_values(), bfloat16(3.0F));
    }
    for (auto& g : store.gradients()) g = bfloat16(1.0F);
    optimizer.step();
    CHECK(optimizer.master_weights(0)[0] == doctest::Approx(3.0 - 1e-3).epsilon(1e-6));
    CHECK(static_cast<float>(layer.weight().values()[0]) == 3.0F);
}

/// Every way to train weights in a reduced format.
template <class Optimizer>
void check_masters(const mp::adamw_options& options) {
    using weight = typename Optimizer::weight_type;
    std::vector<weight> w(600, weight(1.0F)), g(600, weight(0.5F));
    const mp::buffer_version version;
    Optimizer optimizer({{.name = "w", .weights = w, .gradient = g, .version = version}}, options);
    const auto masters = [&] {
        std::vector<float> sums(600);
        optimizer.copy_master_weights(0, 0, sums);
        const auto kept = optimizer.weight_compensation(0);
        if (options.low_precision_update == mp::weight_update::kahan) {
            for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(kept[i]);
        }
        return sums;
    };
    const auto count = version.count();
    for (int i = 0; i < 3; ++i) optimizer.step();
    CHECK(version.count() == count + 3);
    const std::vector<float> trained = masters();
    REQUIRE(trained[7] != static_cast<float>(w[7]));
    // A write of one element changes no other master.
    w[513] = weight(0x1p-12F);
    version.changed();
    std::vector<float> expected = trained;
    expected[513] = 0x1p-12F;
    if (options.low_precision_update == mp::weight_update::split) {
        CHECK(masters()[513] ==
              doctest::Approx(0x1p-12).epsilon(0x1p-8));  // lower halves belong to any weight
        expected[513] = masters()[513];
    }
    CHECK(masters() == expected);
    // The same weights, reported as written: everything stays.
    version.changed();
    CHECK(masters() == expected);
    // All replaced, with the same bits: nothing of before is left.
    version.replaced();
    std::vector<float> weights(600);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(w[i]);
    CHECK(masters() == weights);
}

TEST_CASE("a master stays where it rounds to the weight that was written, else it is the weight") {
    using mp::half;
    const mp::adamw_options small{.learning_rate = 1e-4, .weight_decay = 0};
    check_masters<mp::adamw<bfloat16>>(small);
    check_masters<mp::adamw<half>>(small);
    auto kahan = small, split = small;
    kahan.low_precision_update = mp::weight_update::kahan;
    split.low_precision_update = mp::weight_update::split;
    check_masters<mp::adamw<bfloat16, bfloat16, bfloat16, float>>(kahan);
    check_masters<mp::adamw<half, half, half, float>>(kahan);
    check_masters<mp::adamw<bfloat16, bfloat16, bfloat16, float>>(split);
}

TEST_CASE("a checkpoint has the same masters whichever of store and optimizer is loaded first") {
    const test_folder folder;
    const auto run = [&](mp::weight_update how, bool store_first) {
        using optimizer_type = mp::adamw<bfloat16, bfloat16, bfloat16, float>;
        struct place {
            mp::parameter_store<bfloat16> store;
            mp::layers::linear<bfloat16> layer{store, "a", 16, 16};
            optimizer_type optimizer;
            explicit place(mp::weight_update how)
                : optimizer((store.build(1), store.parameters()),
                            {.learning_rate = 1e-4, .low_precision_update = how}) {}
            void step() {
                for (auto& g : store.gradients()) g = bfloat16(0.37F);
                optimizer.step();
            }
        };
        place whole(how), resumed(how);
        const auto names = [&](place& of) {
            return [&of, store_first](auto& visit) {
                if (store_first) visit("store", of.store);
                visit("optimizer", of.optimizer);
                if (!store_first) visit("store", of.store);
            };
        };
        for (int i = 0; i < 5; ++i) whole.step();
        mp::save_checkpoint(folder.file("run"), names(whole));
        resumed.step();
        mp::load_checkpoint(folder.file("run"), names(resumed));
        for (int i = 0; i < 5; ++i) {
            whole.step();
            resumed.step();
        }
        const auto bits = [](place& of) {
            std::vector<std::uint16_t> all;
            for (const bfloat16 w : of.store.weights()) all.push_back(w.bits());
            for (std::size_t i = 0; i < 2; ++i) {
                for (const bfloat16 c : of.optimizer.weight_compensation(i)) all.push_back(c.bits());
            }
            return all;
        };
        CHECK(bits(whole) == bits(resumed));
    };
    for (const auto how : {mp::weight_update::kahan, mp::weight_update::split, mp::weight_update::nearest}) {
        for (const bool store_first : {false, true}) run(how, store_first);
    }
}

TEST_CASE("while an average is applied, weights are neither trained nor saved in a checkpoint") {
    const test_folder folder;
    network model;
    mp::adamw<float> optimizer(model.store.parameters(), {.learning_rate = 1e-2}),
        twin(model.store.parameters(), {});
    mp::weight_average average(optimizer, {.decay = 0.5}), second(twin, {});
    for (int i = 0; i < 3; ++i) {
        model.train();
        optimizer.step();
        optimizer.zero_gradients();
        average.update();
    }
    const std::vector<float> own(model.store.weights().begin(), model.store.weights().end());
    const std::string path = folder.file("c");
    const auto refused = [&](auto& object) {
        const auto names = [&](auto& visit) { visit("it", object); };
        CHECK_THROWS_WITH_AS(mp::save_checkpoint(path, names), doctest::Contains("mp::save_checkpoint: "),
                             mp::state_error);
    };
    const auto everything = [&](auto& visit) {
        visit("store", model.store);
        visit("optimizer", optimizer);
        visit("average", average);
    };
    mp::save_checkpoint(path, everything);
    {
        const auto applied = average.apply();
        refused(model.store);
        refused(optimizer);
        refused(twin);
        refused(average);
        CHECK_THROWS_AS(mp::load_checkpoint(path, everything), mp::state_error);
        CHECK_THROWS_WITH_AS(
            optimizer.step(),
            doctest::Contains("parameters[0] ('first.weight').weights are those of an mp::weight_average"),
            mp::state_error);
        CHECK_THROWS_AS(twin.step(), mp::state_error);
        CHECK_THROWS_AS(average.update(), mp::state_error);
        CHECK_THROWS_AS((void)average.apply(), mp::state_error);
        CHECK_THROWS_AS((void)second.apply(), mp::state_error);
        // Weights for other programs are the average.
        mp::save_safetensors(folder.file("w"), [&](auto& visit) { visit("m", model.store); });
    }
    CHECK(std::ranges::equal(model.store.weights(), own));
    std::vector<float> saved(16 * 8);
    mp::tensor_file(folder.file("w")).read_converted("m.first.weight", std::span<float>(saved));
    CHECK(std::ranges::equal(saved, average.values(0)));
    mp::save_checkpoint(path, everything);
    model.train();
    optimizer.step();
    mp::load_checkpoint(path, everything);
    CHECK(std::ranges::equal(model.store.weights(), own));
}

TEST_CASE("masters that are read while an average is applied are those of the weights") {
    std::vector<bfloat16> w(8, bfloat16(1.0F)), g(8, bfloat16(0.5F));
    const mp::buffer_version version;
    mp::adamw<bfloat16> optimizer({{.name = "w", .weights = w, .gradient = g, .version = version}},
                                  {.learning_rate = 1e-2, .weight_decay = 0});
    mp::weight_average average(optimizer, {.decay = 0.9});
    for (int i = 0; i < 5; ++i) {
        optimizer.step();
        average.update();
    }
    const float master = optimizer.master_weights(0)[0];
    {
        const auto applied = average.apply();
        CHECK(static_cast<float>(w[0]) != static_cast<float>(bfloat16(master)));
        CHECK(optimizer.master_weights(0)[0] == master);
    }
    CHECK(optimizer.master_weights(0)[0] == master);
}

TEST_CASE("an iteration of two optimizers steps neither while an average of one is applied") {
    std::vector<float> w(3, 1.0F), dw(3, 1.0F), v(3, 1.0F), dv(3, 1.0F);
    mp::sgd<float> first({{"w", w, dw}}, {.learning_rate = 0.5}),
        second({{"v", v, dv}}, {.learning_rate = 0.5});
    mp::weight_average average(second, {.decay = 0.5});
    mp::loss_scaler scaler(mp::static_policy{.initial_scale = 1.0F});
    mp::training_iteration iteration(scaler, first, second);
    {
        const auto applied = average.apply();
        CHECK_THROWS_AS(iteration.finish(), mp::state_error);
        CHECK(w == std::vector<float>(3, 1.0F));
    }
    CHECK(iteration.finish());
    CHECK(w == std::vector<float>(3, 0.5F));
    CHECK(v == std::vector<float>(3, 0.5F));
}

TEST_CASE("weights that are written while an average is applied are given up with it") {
    std::vector<bfloat16> w(8, bfloat16(1.0F)), g(8, bfloat16(0.5F));
    const mp::buffer_version version;
    mp::adamw<bfloat16> optimizer({{.name = "w", .weights = w, .gradient = g, .version = version}},
                                  {.learning_rate = 1e-4, .weight_decay = 0});
    mp::weight_average average(optimizer, {.decay = 0.5});
    optimizer.step();
    const float master = optimizer.master_weights(0)[0];
    {
        const auto applied = average.apply();
        w[0] = bfloat16(9.0F);
        version.replaced();
    }
    CHECK(static_cast<float>(w[0]) == 1.0F);
    CHECK(optimizer.master_weights(0)[0] == master);
}

}  // namespace
