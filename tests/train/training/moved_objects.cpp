// SPDX-License-Identifier: MIT
// Stores, parameters, tensors, versions and values of a tape that were moved from, never filled, or are over: every
// function has a result or reports itself by name.
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "test_folder.hpp"

namespace {

using mp::ops::absent;

/// The state_error of a call.
template <class Function>
std::string refused(Function function) {
    return thrown<mp::state_error>(function);
}

}  // namespace

TEST_CASE("a store that was moved from reports so in every function, and its parameters stay") {
    mp::parameter_store<float> store;
    const auto w = store.add_matrix("w", 2, 3, mp::initializers::ones());
    const auto b = store.add_vector("b", 2);
    mp::parameter_store<float> moved = std::move(store);
    moved.build(1);
    CHECK(w.weights()(1, 2) == 1.0F);
    CHECK(b.name() == "b");

    const auto check = [](mp::parameter_store<float>& empty) {
        const auto message = [](const char* name) {
            return "mp::parameter_store::" + std::string(name) + ": the store was moved from";
        };
        CHECK(refused([&] { empty.add_matrix("x", 1, 1); }) == message("add_matrix"));
        CHECK(refused([&] { empty.add_vector("x", 1); }) == message("add_vector"));
        CHECK(refused([&] { empty.build(1); }) == message("build"));
        CHECK(refused([&] { static_cast<void>(empty.parameters()); }) == message("parameters"));
        CHECK(refused([&] { static_cast<void>(empty.parameters(mp::cpu{})); }) == message("parameters"));
        CHECK(refused([&] { static_cast<void>(empty.weights()); }) == message("weights"));
        CHECK(refused([&] { static_cast<void>(empty.gradients()); }) == message("gradients"));
        CHECK(refused([&] { static_cast<void>(empty.count()); }) == message("count"));
        CHECK(refused([&] { empty.weights_changed(); }) == message("weights_changed"));
        CHECK(refused([&] { static_cast<void>(empty.tensor_scales()); }) == message("tensor_scales"));
        const test_folder folder;
        CHECK(refused([&] {
                  mp::save_checkpoint(folder.file("x"), [&](auto& visit) { visit("store", empty); });
              }) == message("visit_state"));
        CHECK(folder.count() == 0);
        CHECK(refused([&] { mp::layers::linear<float>(empty, "fc", 2, 2); }) == message("add_matrix"));
    };
    check(store);  // NOLINT(bugprone-use-after-move)
    store = std::move(moved);
    check(moved);  // NOLINT(bugprone-use-after-move)
    CHECK(store.count() == 8);
    CHECK(store.parameters().size() == 2);
    CHECK(w.weights()(0, 0) == 1.0F);
}

TEST_CASE("an empty store and one before build() have no weights") {
    mp::parameter_store<float> store;
    CHECK(store.count() == 0);
    CHECK(store.weights().empty());
    CHECK(store.gradients().empty());
    store.weights_changed();
    const auto w = store.add_matrix("w", 2, 3);
    CHECK(w.rows() == 2);
    CHECK(w.version().count() == 0);
    CHECK(holds(refused([&] { static_cast<void>(w.weights()); }), "call build()"));
    CHECK(holds(refused([&] { static_cast<void>(w.gradient_values()); }), "call build()"));
    CHECK(holds(refused([&] { static_cast<void>(store.parameters()); }), "call build()"));
    mp::parameter_store<float> empty;
    empty.build(1);
    CHECK(empty.parameters().empty());
    CHECK_THROWS_AS(mp::sgd<float>(empty.parameters()), mp::argument_error);
}

TEST_CASE("a parameter that does not exist reports so in every function") {
    const mp::trained_tensor<float> none;
    CHECK(!none.exists());
    const auto message = [](const char* name) {
        return "mp::trained_tensor::" + std::string(name) + ": there is no parameter; exists() says so";
    };
    CHECK(refused([&] { static_cast<void>(none.weights()); }) == message("weights"));
    CHECK(refused([&] { static_cast<void>(none.values()); }) == message("weights"));
    CHECK(refused([&] { static_cast<void>(none.gradient()); }) == message("gradient"));
    CHECK(refused([&] { static_cast<void>(none.gradient_values()); }) == message("gradient"));
    CHECK(refused([&] { static_cast<void>(none.cached()); }) == message("cached"));
    CHECK(refused([&] { static_cast<void>(none.version()); }) == message("version"));
    CHECK(refused([&] { static_cast<void>(none.rows()); }) == message("rows"));
    CHECK(refused([&] { static_cast<void>(none.columns()); }) == message("columns"));
    CHECK(refused([&] { static_cast<void>(none.name()); }) == message("name"));
    // The bias of a layer without one.
    mp::parameter_store<float> store;
    const mp::layers::linear<float> layer(store, "fc", 2, 2, {.bias = false});
    CHECK(!layer.bias().exists());
    CHECK(refused([&] { static_cast<void>(layer.bias().values()); }) == message("weights"));
}

TEST_CASE("a tensor that is empty or was moved from has no elements, and grows") {
    const auto check = [](mp::tensor<float>& empty) {
        CHECK(empty.size() == 0);
        CHECK(empty.rows() == 0);
        CHECK(empty.columns() == 0);
        CHECK(empty.bytes() == 0);
        CHECK(!empty.on_device());
        CHECK(empty.values().empty());
        CHECK(empty.view().rows == 0);
        CHECK(std::as_const(empty).view().columns == 0);
        CHECK(empty.to_host(mp::cpu{}).empty());
        empty.copy_from(mp::cpu{}, std::span<const float>());
        CHECK_THROWS_AS(empty.copy_from(mp::cpu{}, std::span<const float>(std::vector<float>(1))),
                        mp::argument_error);
        mp::ops::relu(mp::cpu{}, std::as_const(empty).view(), empty.view());
        empty.resize(0, 5);
        CHECK(empty.columns() == 5);
        empty.resize(2, 2);
        CHECK(empty.values()[3] == 0.0F);
    };
    mp::tensor<float> fresh;
    check(fresh);
    mp::tensor<float> full(3, 3);
    mp::tensor<float> moved = std::move(full);
    check(full);  // NOLINT(bugprone-use-after-move)
    mp::tensor<float> other;
    other = std::move(moved);
    check(moved);  // NOLINT(bugprone-use-after-move)
    CHECK(other.size() == 9);
    mp::tensor<float>& same = other;
    other = std::move(same);
    CHECK(other.size() == 9);
}

TEST_CASE("a version that was moved from is the same counter") {
    mp::autocast::buffer_version version;
    mp::autocast::buffer_version moved = std::move(version);
    moved.changed();
    CHECK(version.count() == 1);  // NOLINT(bugprone-use-after-move)
    version.changed();
    CHECK(moved.count() == 2);
    CHECK(version == moved);
}

TEST_CASE("values of a tape are copies of one, and report the end of their step") {
    mp::tape tape;
    tape.clear();
    CHECK(holds(refused([&] { tape.backward(); }), "mp::tape::backward: no call is recorded"));
    CHECK(tape.size() == 0);
    std::vector<float> x(4, 2.0F);
    const mp::cpu exec{};
    auto value = tape.add(exec, mp::row_major<const float>(x.data(), 2, 2),
                          mp::row_major<const float>(x.data(), 2, 2));
    auto moved = std::move(value);
    CHECK(value.value()(0, 0) == 4.0F);  // NOLINT(bugprone-use-after-move)
    CHECK(holds(refused([&] { static_cast<void>(moved.gradient()); }),
                "mp::tape_value::gradient: nothing was added"));
    mp::ops::add_backward(exec, mp::row_major<const float>(x.data(), 2, 2), value.add_to_gradient(), absent);
    CHECK(moved.gradient()(1, 1) == 2.0F);
    tape.backward();
    for (const auto* it : {&value, &moved}) {
        CHECK(holds(refused([&] { static_cast<void>(it->value()); }),
                    "mp::tape_value::value: the step has ended"));
        CHECK(
            holds(refused([&] { static_cast<void>(it->gradient()); }), "mp::tape_value::gradient: the step"));
        CHECK(holds(refused([&] { static_cast<void>(it->add_to_gradient()); }), "add_to_gradient: the step"));
    }
}
