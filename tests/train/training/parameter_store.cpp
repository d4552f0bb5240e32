// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/optim.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "train/training/test_folder.hpp"

namespace {

namespace init = mp::initializers;

template <class Error>
std::string message_of(auto f) {
    try {
        f();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

TEST_CASE(
    "parameters lie in one array each for weights and gradients, at cache lines, in the order of adding") {
    mp::parameter_store<mp::bfloat16, float> store;
    const auto w = store.add_matrix("w", 5, 7, init::normal(0.5));
    const auto b = store.add_vector("b", 5, init::ones(), {.group = 1});
    const auto c = store.add_matrix("c", 2, 2);
    store.build(9);
    CHECK(store.count() == 35 + 5 + 4);
    CHECK(store.weights().size() == 3 * 64);
    CHECK(w.weights().data == store.weights().data());
    CHECK(b.values().data() == store.weights().data() + 64);
    CHECK(c.gradient().data == store.gradients().data() + 128);
    CHECK(reinterpret_cast<std::uintptr_t>(c.gradient().data) % 64 == 0);
    CHECK(w.weights().rows == 5);
    CHECK(w.weights().columns == 7);
    CHECK(b.values().size() == 5);
    CHECK(b.name() == "b");
    CHECK(std::all_of(b.values().begin(), b.values().end(), [](auto x) { return x == mp::bfloat16(1); }));
    CHECK(std::all_of(store.gradients().begin(), store.gradients().end(), [](float x) { return x == 0; }));
    // The initial values are those of the place in the array.
    std::vector<mp::bfloat16> expected(35);
    mp::initialize(std::span(expected), init::normal(0.5), 9, 0);
    CHECK(std::equal(expected.begin(), expected.end(), w.values().begin()));

    const auto parameters = store.parameters();
    REQUIRE(parameters.size() == 3);
    CHECK(parameters[1].name == "b");
    CHECK(parameters[1].group == 1);
    CHECK(parameters[0].weights.data() == w.weights().data);
    CHECK(parameters[0].gradient.data() == w.gradient().data);
    CHECK(parameters[0].gradient.size() == 35);

    const auto moved = std::move(store);  // tensors stay valid
    CHECK(w.weights().data == moved.weights().data());
}

TEST_CASE("an optimizer trains the parameters of a store where they lie") {
    mp::parameter_store<float> store;
    const auto w = store.add_vector("w", 3, init::constant(1));
    store.build(1);
    mp::sgd<float> optimizer(store.parameters(), {.learning_rate = 0.5});
    w.gradient_values()[1] = 2;
    optimizer.step();
    CHECK(w.values()[0] == 1);
    CHECK(w.values()[1] == 0);
}

TEST_CASE(
    "every write advances the versions of what it writes, and weights are saved with names and shapes") {
    mp::parameter_store<float> store;
    const auto w = store.add_matrix("fc.weight", 2, 3, init::uniform(1));
    const auto b = store.add_vector("fc.bias", 2, init::uniform(1));
    store.build(1);
    const mp::buffer_version version = w.cached().version;
    CHECK(w.version() == version);
    CHECK(store.parameters()[0].version == version);
    CHECK_FALSE(b.version() == version);
    const auto advances = [&](const auto& write, std::uint64_t of_w, std::uint64_t of_b) {
        const std::uint64_t w_before = w.version().count(), b_before = b.version().count();
        write();
        return w.version().count() == w_before + of_w && b.version().count() == b_before + of_b;
    };
    CHECK(advances([&] { store.weights_changed(); }, 1, 1));
    CHECK(advances([&] { (void)store.mutable_weights(); }, 1, 1));
    CHECK(advances([&] { (void)store.replace_weights(); }, 1, 1));
    CHECK(version.replacements() == 1);
    CHECK(advances([&] { (void)w.mutable_weights(); }, 1, 0));
    CHECK(advances([&] { (void)b.mutable_values(); }, 0, 1));
    CHECK(advances([&] { (void)w.weights(), (void)b.values(), (void)store.weights(); }, 0, 0));

    const test_folder folder;
    const std::string path = folder.file("weights.safetensors");
    const auto everything = [&](auto& visit) { store.visit_state(visit); };
    mp::save_safetensors(path, everything);
    const mp::tensor_file file(path);
    REQUIRE(file.tensors().size() == 2);
    CHECK(file.at("fc.weight").shape == std::vector<std::size_t>{2, 3});
    CHECK(file.at("fc.bias").shape == std::vector<std::size_t>{2});

    mp::save_checkpoint(path, everything);
    const std::vector<float> before(w.values().begin(), w.values().end());
    std::ranges::fill(w.mutable_values(), 0.0F);
    const auto older = version.count();
    mp::load_checkpoint(path, everything);
    CHECK(std::equal(before.begin(), before.end(), w.values().begin()));
    CHECK(version.count() > older);
}

TEST_CASE("a parameter_store says what is missing or there twice, and changes nothing") {
    mp::parameter_store<float> store;
    const auto w = store.add_matrix("w", 2, 3);
    CHECK(message_of<mp::state_error>([&] { (void)w.weights(); }) ==
          "mp::trained_tensor: there is no memory yet; call build() of the mp::parameter_store when all "
          "parameters have been added");
    CHECK(message_of<mp::state_error>([&] { (void)store.parameters(); }) ==
          "mp::parameter_store::parameters: there is no memory yet; call build() of the mp::parameter_store "
          "when all parameters have been added");
    CHECK(
        message_of<mp::argument_error>([&] { store.add_vector("w", 3); }) ==
        "mp::parameter_store::add_vector: name is 'w'; it must be another one: there is a parameter of this "
        "name");
    CHECK(message_of<mp::argument_error>([&] { store.add_matrix("v", -1, 3); }) ==
          "mp::parameter_store::add_matrix: rows is -1; it must not be negative");
    CHECK_FALSE(mp::trained_tensor<float>().exists());
    CHECK(w.exists());
    store.build(1);
    CHECK(store.count() == 6);
    CHECK(message_of<mp::state_error>([&] { store.build(1); }) ==
          "mp::parameter_store::build: build() has been called, and the memory is made");
    CHECK(message_of<mp::state_error>([&] { store.add_vector("z", 1); }) ==
          "mp::parameter_store::add_vector: build() has been called, and the memory is made");
}

}  // namespace
