// SPDX-License-Identifier: MIT
// A program that is killed with SIGKILL again and again, and every time goes on from its checkpoint on
// another number of threads, ends with the bits of the program that was left alone.
#include <doctest/doctest.h>

#if defined(__unix__)

#include <mp/bfloat16.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "test_folder.hpp"

namespace {

constexpr std::uint64_t steps = 60;

/// Trains until the last step and saves after every one.
void train(const std::string& checkpoint, int threads) {
    constexpr std::size_t size = 20000;
    const mp::cpu exec{.threads = threads};
    std::vector<mp::bfloat16> w(size, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> dw(size);
    using optimizer_type = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    optimizer_type optimizer(
        exec, {{"w", w, dw}},
        {.learning_rate = 0.01, .low_precision_update = mp::weight_update::stochastic, .seed = 3});
    mp::dynamic_loss_scaler scaler(mp::pytorch_policy{.initial_scale = 4.0F, .growth_interval = 7});
    mp::weight_average average(optimizer);
    std::mt19937 random(1);
    std::uint64_t drawn = 0;
    std::uint64_t step = 0;
    const auto everything = [&](auto& visit) {
        visit("optimizer", optimizer);
        visit("scaler", scaler);
        visit("average", average);
        visit("drawn", drawn);
        visit("step", step);
    };
    if (std::filesystem::exists(checkpoint)) {
        mp::load_checkpoint(checkpoint, everything);
        random.discard(drawn);
    }
    for (; step < steps;) {
        for (mp::bfloat16& g : dw) {
            g = mp::bfloat16((static_cast<float>(random() >> 8) * 0x1p-24F - 0.5F) * scaler.current_scale());
            ++drawn;
        }
        scaler.unscale(optimizer);
        scaler.step(optimizer);
        scaler.update();
        average.update();
        ++step;
        mp::save_checkpoint(checkpoint, everything);
    }
}

/// Starts the training in a process of its own and kills it after a while; true if it was through before.
bool train_and_kill(const std::string& checkpoint, int threads, std::chrono::microseconds after) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        try {
            train(checkpoint, threads);
        } catch (...) {
            ::_exit(1);
        }
        ::_exit(0);
    }
    std::this_thread::sleep_for(after);
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    // It ends by the signal or well: every checkpoint that it finds is whole.
    REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    return WIFEXITED(status);
}

}  // namespace

TEST_CASE("a run that is killed at random ends with the bits of the run that was not") {
    const test_folder folder;
    train(folder.file("whole"), 1);
    const std::string killed = folder.file("killed");
    std::mt19937 random(std::random_device{}());
    int kills = 0;
    // Longer from time to time, so that the run ends on machines of any speed.
    while (!train_and_kill(killed, 1 + kills % 3,
                           std::chrono::microseconds(random() % 20000 * (1U << kills / 20U)))) {
        ++kills;
        REQUIRE(kills < 200);
    }
    MESSAGE("killed " << kills << " times");
    CHECK(kills > 0);
    CHECK(read_file(killed) == read_file(folder.file("whole")));
}

#endif
