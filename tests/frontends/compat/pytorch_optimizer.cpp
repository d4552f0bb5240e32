// SPDX-License-Identifier: MIT
// Runs of torch.optim's AdamW and SGD go on here: states by their names in a file, numbers of steps, and what
// does not fit.
#include <doctest/doctest.h>
#include <mp/arrays/io/tensor_file.hpp>
#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/pytorch/optimizer_state.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>
#include <mp/train/training/checkpoint.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

using tensors = std::vector<std::pair<std::string, std::vector<float>>>;

template <class Optimizer>
void take_over(const tensors& all, Optimizer& optimizer) {
    const test_folder folder;
    const std::string path = folder.file("optimizer.safetensors");
    mp::save_safetensors(path, [&](auto& visit) {
        for (const auto& [name, values] : all) visit(name, values);
    });
    mp::import_pytorch_optimizer(mp::tensor_file(path), optimizer);
}

struct network {
    std::vector<float> first = {1.0F, -2.0F, 3.0F};
    std::vector<float> second = {0.5F, 0.25F};
    std::vector<float> d_first = {0.0F, 0.0F, 0.0F};
    std::vector<float> d_second = {0.0F, 0.0F};
    std::vector<mp::parameter<float>> parameters = {{"first", first, d_first}, {"second", second, d_second}};
};

const std::vector<std::vector<double>> gradients = {
    {0.5, -1.0, 2.0}, {1.0, 1.0, 1.0}, {-0.5, 0.25, 3.0}, {0.125, 2.0, -1.0}};

/// torch.optim.AdamW with lr 0.1 and weight_decay 0.01, by the formulas of its documentation, in double.
struct torch_adamw {
    std::vector<double> w = {1.0, -2.0, 3.0}, mean = {0.0, 0.0, 0.0}, square = {0.0, 0.0, 0.0};
    int t = 0;
    void step(const std::vector<double>& g) {
        ++t;
        for (std::size_t j = 0; j < 3; ++j) {
            w[j] -= 0.1 * 0.01 * w[j];
            mean[j] = 0.9 * mean[j] + 0.1 * g[j];
            square[j] = 0.999 * square[j] + 0.001 * g[j] * g[j];
            const double root = std::sqrt(square[j]) / std::sqrt(1.0 - std::pow(0.999, t)) + 1e-8;
            w[j] -= 0.1 / (1.0 - std::pow(0.9, t)) * mean[j] / root;
        }
    }
};

/// torch.optim.SGD with lr 0.1, momentum 0.9 and dampening 0.5.
struct torch_sgd {
    std::vector<double> w = {1.0, -2.0, 3.0}, momentum;
    void step(const std::vector<double>& g) {
        if (momentum.empty()) {
            momentum = g;
        } else {
            for (std::size_t j = 0; j < 3; ++j) momentum[j] = 0.9 * momentum[j] + 0.5 * g[j];
        }
        for (std::size_t j = 0; j < 3; ++j) w[j] -= 0.1 * momentum[j];
    }
};

std::vector<float> floats(const std::vector<double>& x) {
    std::vector<float> result;
    for (const double it : x) result.push_back(static_cast<float>(it));
    return result;
}

}  // namespace

TEST_CASE("AdamW goes on where torch's was, and a parameter without state begins anew") {
    torch_adamw torch;
    torch.step(gradients[0]);
    torch.step(gradients[1]);
    network net;
    mp::adamw<float> optimizer(net.parameters, {.learning_rate = 0.1, .weight_decay = 0.01});
    net.d_second = {1.0F, 1.0F};
    optimizer.step();  // is forgotten
    std::copy_n(floats(torch.w).begin(), 3, net.first.begin());
    take_over({{"state.0.step", {2.0F}},
               {"state.0.exp_avg", floats(torch.mean)},
               {"state.0.exp_avg_sq", floats(torch.square)}},
              optimizer);
    CHECK(optimizer.step_count() == 2);
    CHECK(optimizer.gradient_mean(1)[0] == 0.0F);
    for (std::size_t step = 2; step < 4; ++step) {
        torch.step(gradients[step]);
        std::copy_n(floats(gradients[step]).begin(), 3, net.d_first.begin());
        const float before = net.second[0];
        optimizer.step();
        for (std::size_t j = 0; j < 3; ++j) {
            CHECK(static_cast<double>(net.first[j]) == doctest::Approx(torch.w[j]).epsilon(1e-6));
        }
        // The first update by a gradient of one moves by the learning rate, besides the decay.
        if (step == 2) CHECK(net.second[0] == doctest::Approx(before * 0.999F - 0.1F).epsilon(1e-6));
    }
    CHECK(optimizer.step_count() == 4);
}

TEST_CASE("SGD goes on where torch's was, dampening included") {
    torch_sgd torch;
    torch.step(gradients[0]);
    torch.step(gradients[1]);
    network net;
    mp::sgd<float> optimizer(net.parameters, {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.5});
    std::copy_n(floats(torch.w).begin(), 3, net.first.begin());
    take_over({{"state.0.momentum_buffer", floats(torch.momentum)}}, optimizer);
    torch.step(gradients[2]);
    std::copy_n(floats(gradients[2]).begin(), 3, net.d_first.begin());
    optimizer.step();
    for (std::size_t j = 0; j < 3; ++j) {
        CHECK(static_cast<double>(net.first[j]) == doctest::Approx(torch.w[j]).epsilon(1e-6));
    }
}

TEST_CASE("states of bfloat16 and of 8 bits are rounded to nearest") {
    network net;
    mp::adamw<float, float, float, mp::bfloat16> narrow(net.parameters);
    mp::adamw<float, float, float, mp::block_moment> blocks(net.parameters);
    const tensors saved = {{"state.0.step", {7.0F}},
                           {"state.0.exp_avg", {1.001F, -0.25F, 0.0F}},
                           {"state.0.exp_avg_sq", {4.0F, 1.0F, 0.0F}}};
    take_over(saved, narrow);
    take_over(saved, blocks);
    // torch divides by the bias in each step, here it is in means of bfloat16.
    CHECK(narrow.gradient_mean(0)[0].bits() ==
          mp::bfloat16(static_cast<float>(static_cast<double>(1.001F) / (1.0 - std::pow(0.9, 7.0)))).bits());
    CHECK(narrow.gradient_mean_square(0)[0].bits() ==
          mp::bfloat16(static_cast<float>(4.0 / (1.0 - std::pow(0.999, 7.0)))).bits());
    CHECK(static_cast<float>(narrow.gradient_mean(1)[0]) == 0.0F);
    std::vector<float> values(3);
    blocks.copy_state(0, 0, 0, values);
    CHECK(values == std::vector<float>{1.001F, -0.25F * 1.001F, 0.0F});
    blocks.copy_state(0, 1, 0, values);
    CHECK(values == std::vector<float>{4.0F, 1.0F, 0.0F});
}

TEST_CASE("state that no step leaves, or that has no place here, is refused, and nothing has changed") {
    network net;
    mp::adamw<float> optimizer(net.parameters);
    net.d_first = {1.0F, 2.0F, 3.0F};
    optimizer.step();
    const auto state = [&] {
        std::vector<std::vector<float>> all;
        for (std::size_t i = 0; i < 2; ++i) {
            for (const auto values : {optimizer.gradient_mean(i), optimizer.gradient_mean_square(i)}) {
                all.emplace_back(values.begin(), values.end());
            }
        }
        return all;
    };
    const auto before = state();
    CHECK(before[0][1] == 0.2F);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> three = {1.0F, 1.0F, 1.0F};
    const auto message = [&](const std::vector<float>& mean, const std::vector<float>& square,
                             tensors others = {}) {
        others.insert(others.end(),
                      {{"state.0.step", {5.0F}}, {"state.0.exp_avg", mean}, {"state.0.exp_avg_sq", square}});
        return thrown<mp::argument_error>([&] { take_over(others, optimizer); });
    };
    const std::string function = "mp::import_pytorch_optimizer: ";
    CHECK(holds(message({1.0F, nan, 1.0F}, three),
                (function + "state.0.exp_avg[1] is nan; it must be finite").c_str()));
    CHECK(holds(message(three, {1.0F, 1.0F, infinity}),
                (function + "state.0.exp_avg_sq[2] is inf; it must be finite").c_str()));
    CHECK(holds(message(three, {-0.5F, 1.0F, 1.0F}),
                (function + "state.0.exp_avg_sq[0] is -0.5; it must not be negative").c_str()));
    CHECK(holds(message(three, three, {{"state.0.max_exp_avg_sq", three}}), "the maximum of AMSGrad"));
    CHECK(holds(message(three, three, {{"state.0.momentum_buffer", three}}), "'state.0.momentum_buffer'"));
    CHECK(holds(message(three, three, {{"state.2.exp_avg", three}}),
                "'state.2.exp_avg'; it must not be in it: the optimizer has no parameter 2, only 2"));
    CHECK(holds(message(three, three, {{"state.99999999999999999999.step", {1.0F}}}),
                "no parameter 99999999999999999999"));
    CHECK(state() == before);
    CHECK(optimizer.step_count() == 1);
    CHECK(message(three, three, {{"state.weight", three}, {"other", three}}) == "(nothing was thrown)");
    CHECK(optimizer.gradient_mean(0)[1] == 1.0F);
    CHECK(optimizer.step_count() == 5);
    mp::sgd<float> descent(net.parameters, {.learning_rate = 0.1, .momentum = 0.9});
    CHECK(holds(thrown<mp::argument_error>([&] { take_over({{"state.0.exp_avg", three}}, descent); }),
                "mp::sgd has momentum_buffer"));
}

TEST_CASE("set_states refuses values that no step leaves, and nothing has changed") {
    network net;
    mp::adamw<float, float, float, mp::half> optimizer(net.parameters);
    const std::vector<std::uint64_t> updates = {3, 3};
    const auto message = [&](std::size_t state, float value) {
        std::vector<std::vector<float>> states(4);
        for (std::size_t i = 0; i < 4; ++i) states[i].assign(i < 2 ? 3 : 2, 0.25F);
        states[state][1] = value;
        return thrown<mp::argument_error>([&] { optimizer.set_states(states, updates); });
    };
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(message(0, nan) == "mp::optimizer_base::set_states: states[0][1] is nan; it must be finite");
    CHECK(holds(message(2, -std::numeric_limits<float>::infinity()),
                "states[2][1] is -inf; it must be finite"));
    CHECK(holds(message(3, -1e-6F),
                "states[3][1] is -1e-06; it must not be negative: it is a mean of squares"));
    CHECK(holds(message(1, 7e4F),
                "states[1][1] is 70000; it must be at most 65504, the largest number of the state"));
    CHECK(holds(message(2, -7e4F), "states[2][1] is -70000; it must be at most 65504"));
    CHECK(optimizer.step_count() == 0);
    CHECK(static_cast<float>(optimizer.gradient_mean(0)[0]) == 0.0F);
    CHECK(message(2, -1.0F) == "(nothing was thrown)");
    CHECK(static_cast<float>(optimizer.gradient_mean(1)[1]) == -1.0F);
    CHECK(optimizer.step_count() == 3);
}

TEST_CASE("state that does not fit is refused, and nothing has changed") {
    network net;
    mp::adamw<float> optimizer(net.parameters);
    net.d_first = {1.0F, 2.0F, 3.0F};
    optimizer.step();
    const float mean = optimizer.gradient_mean(0)[1];
    const std::vector<float> three = {1.0F, 1.0F, 1.0F};
    const auto message = [&](const tensors& all) {
        return thrown<mp::argument_error>([&] { take_over(all, optimizer); });
    };
    CHECK(holds(message({{"state.0.step", {1.0F}}, {"state.0.exp_avg", three}}), "state.0.exp_avg_sq"));
    CHECK(holds(message({{"state.0.exp_avg", three}, {"state.0.exp_avg_sq", three}}), "state.0.step"));
    for (const float step : {0.0F, 1.5F, -1.0F, 0x1p30F}) {
        CHECK(holds(
            message({{"state.0.step", {step}}, {"state.0.exp_avg", three}, {"state.0.exp_avg_sq", three}}),
            "mp::import_pytorch_optimizer: state.0.step is "));
    }
    CHECK(holds(
        thrown<mp::file_error>([&] {
            take_over(
                {{"state.0.step", {1.0F}}, {"state.0.exp_avg", {1.0F, 1.0F}}, {"state.0.exp_avg_sq", three}},
                optimizer);
        }),
        "'state.0.exp_avg' has 2 elements, and 3 were expected"));
    optimizer.unscale_gradients(1.0F);
    CHECK(
        holds(thrown<mp::state_error>([&] { take_over({}, optimizer); }), "mp::optimizer_base::set_states"));
    optimizer.skip_step();
    CHECK(optimizer.gradient_mean(0)[1] == mean);
    CHECK(optimizer.step_count() == 1);
    mp::sgd<float> without(net.parameters);
    CHECK(holds(thrown<mp::argument_error>([&] { take_over({{"state.0.momentum_buffer", three}}, without); }),
                "mp::optimizer_base::set_states: states[0].size() is 3; it must be 0, for there is no such "
                "state here"));
}
