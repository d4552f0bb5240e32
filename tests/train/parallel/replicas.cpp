// SPDX-License-Identifier: MIT
// Replicas of a model: equal weights and states at the start, and what tells that they differ.
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/parallel.hpp>
#include <mp/training.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

TEST_CASE("weights are brought to all ranks, and replicas that drift apart are found") {
    std::atomic<int> found = 0;
    mp::run_loopback(3, [&](auto& self) {
        mp::parameter_store<mp::half> store;
        const auto w = store.add_vector("w", 100, mp::initializers::normal(1.0));
        store.build(static_cast<std::uint64_t>(self.rank()));
        const std::uint64_t version = w.version().count();
        std::vector<float> b(3, static_cast<float>(self.rank())), db(3);
        std::vector<mp::parameter<float>> more{{"b", b, db}};
        if (holds(thrown<mp::rank_error>([&] { mp::require_same_weights(self, store, more); }),
                  "mp::require_same_weights: the ranks differ: the checksum of the weights of argument 2"))
            ++found;
        mp::broadcast_weights(self, store, more);
        mp::require_same_weights(self, store, more);
        CHECK(b[1] == 0.0F);
        CHECK(w.version().count() != version);
        b[2] = self.rank() == 1 ? -0.0F : 0.0F;
        if (holds(thrown<mp::rank_error>([&] { mp::require_same_weights(self, store, more); }), "argument 3"))
            ++found;
    });
    CHECK(found == 6);
}

TEST_CASE(
    "after a broadcast masters are the weights on all ranks, also where they round to them on the first") {
    mp::run_loopback(2, [](auto& self) {
        mp::parameter_store<mp::half> store;
        const auto w = store.add_vector("w", 100, mp::initializers::constant(1));
        store.build(1);
        mp::adamw<mp::half> optimizer(store.parameters(), {.learning_rate = 1e-5, .weight_decay = 0});
        for (mp::half& g : store.gradients()) g = mp::half(self.rank() == 0 ? 1.0F : -1.0F);
        optimizer.step();
        CHECK(static_cast<float>(w.values()[0]) == 1.0F);
        CHECK(optimizer.master_weights(0)[0] != 1.0F);
        mp::broadcast_weights(self, store);
        CHECK(optimizer.master_weights(0)[0] == 1.0F);
        CHECK(optimizer.master_weights(0)[99] == 1.0F);
    });
}

TEST_CASE("weights of another type of the same size are not brought") {
    std::atomic<int> found = 0;
    mp::run_loopback(2, [&](auto& self) {
        std::vector<mp::half> a(3), da(3);
        std::vector<mp::bfloat16> b(3), db(3);
        std::vector<mp::parameter<mp::half>> halves{{"w", a, da}};
        std::vector<mp::parameter<mp::bfloat16>> others{{"w", b, db}};
        const std::string message = thrown<mp::rank_error>([&] {
            if (self.rank() == 0) {
                mp::broadcast_weights(self, halves);
            } else {
                mp::broadcast_weights(self, others);
            }
        });
        if (holds(message, "mp::broadcast_weights: the ranks differ: the checksum of the type of weights"))
            ++found;
    });
    CHECK(found == 2);
}

TEST_CASE("ranks whose policies, options or counts differ are found before the first step") {
    const auto differs = [](int what, const char* text) {
        std::atomic<int> found = 0;
        mp::run_loopback(3, [&](auto& self) {
            const bool other = self.rank() == 1;
            mp::parameter_store<float> store;
            store.add_vector("w", 100);
            store.build(1);
            mp::adamw<float> optimizer(store.parameters(),
                                       mp::adamw_options{.learning_rate = what == 1 && other ? 2e-3 : 1e-3});
            mp::dynamic_loss_scaler scaler({.growth_interval = what == 2 && other ? 3 : 4});
            std::uint64_t step = what == 3 && other ? 7 : 8;
            const std::string name = what == 4 && other ? "steps" : "step";
            const std::string message = thrown<mp::rank_error>([&] {
                mp::require_same_state(self, [&](auto& visit) {
                    visit("optimizer", optimizer);
                    visit("scaler", scaler);
                    visit(name, step);
                });
            });
            if (what == 0 ? message == "(nothing was thrown)" : holds(message, text)) ++found;
        });
        CAPTURE(text);
        CHECK(found == 3);
    };
    differs(0, "");
    differs(1, "mp::require_same_state: the ranks differ: the checksum of 'optimizer.learning_rates' is ");
    differs(2, "the checksum of 'scaler' is ");
    differs(3, "the checksum of 'step' is ");
    differs(4, "the checksum of the names and sizes");
}

TEST_CASE("ranks that load other states of a second scaler change none") {
    const test_folder folder;
    std::array<bool, 2> right{};
    mp::run_loopback(2, [&](auto& self) {
        const std::string path = folder.file(std::to_string(self.rank()));
        mp::dynamic_loss_scaler first, second;
        float w = 1;
        std::string name = "saved";
        const auto everything = [&](auto& visit) {
            visit("first", first);
            visit("name", name);
            visit("second", second);
            visit("w", w);
        };
        first.update(1024.0F);
        second.update(self.rank() == 0 ? 2048.0F : 4096.0F);
        mp::save_checkpoint(path, everything);
        first.update(8.0F);
        second.update(16.0F);
        w = 5;
        name = "before";
        first.set_reducer(self);
        second.set_reducer(self);
        CHECK_THROWS_AS(mp::load_checkpoint(path, everything), mp::rank_error);
        right[static_cast<std::size_t>(self.rank())] =
            first.current_scale() == 8.0F && second.current_scale() == 16.0F && w == 5.0F && name == "before";
    });
    CHECK(right[0]);
    CHECK(right[1]);
}
