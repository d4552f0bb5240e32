// SPDX-License-Identifier: MIT
// Adafactor against plain loops of doubles that follow the paper, and what it promises about memory, bits and
// bad options.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>
#include <mp/train/training/checkpoint.hpp>
#include <mp/train/training/parameter_store.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "larger_error.hpp"
#include "nn/optim/executors.hpp"
#include "nn/scaling/thrown.hpp"
#include "train/training/test_folder.hpp"

namespace {

/// Algorithms 4 and 5 of the paper for one parameter; a matrix of one row is a vector.
struct reference {
    std::size_t rows, columns;
    std::vector<double> weights;
    std::vector<double> r = std::vector<double>(rows), c = std::vector<double>(columns);
    int t = 0;

    void step(const std::vector<double>& g, const mp::adafactor_options& o) {
        ++t;
        const double beta2 = 1.0 - std::pow(t, -o.beta2_decay);
        std::vector<double> u(g.size());
        const auto m = static_cast<double>(rows);
        const auto n = static_cast<double>(columns);
        if (rows > 1) {
            std::vector<double> row(rows), column(columns);
            for (std::size_t i = 0; i < g.size(); ++i) {
                row[i / columns] += (g[i] * g[i] + o.epsilon1) / n;
                column[i % columns] += (g[i] * g[i] + o.epsilon1) / m;
            }
            double mean = 0.0;
            for (std::size_t i = 0; i < rows; ++i) {
                r[i] = beta2 * r[i] + (1.0 - beta2) * row[i];
                mean += r[i] / m;
            }
            for (std::size_t j = 0; j < columns; ++j) c[j] = beta2 * c[j] + (1.0 - beta2) * column[j];
            for (std::size_t i = 0; i < g.size(); ++i) {
                u[i] = g[i] / std::sqrt(r[i / columns] * c[i % columns] / mean);
            }
        } else {
            for (std::size_t j = 0; j < columns; ++j) {
                c[j] = beta2 * c[j] + (1.0 - beta2) * (g[j] * g[j] + o.epsilon1);
                u[j] = g[j] / std::sqrt(c[j]);
            }
        }
        const auto rms = [](const std::vector<double>& x) {
            double sum = 0.0;
            for (const double it : x) sum += it * it;
            return std::sqrt(sum / static_cast<double>(x.size()));
        };
        double rate = o.relative_step ? std::min(o.learning_rate, 1.0 / std::sqrt(t)) : o.learning_rate;
        if (o.scale_by_weights) rate *= std::max(o.epsilon2, rms(weights));
        const double divisor = std::max(1.0, rms(u) / o.clip_threshold);
        for (std::size_t i = 0; i < g.size(); ++i) {
            weights[i] -= o.learning_rate * o.weight_decay * weights[i] + rate * u[i] / divisor;
        }
    }
};

struct shape {
    std::size_t rows, columns;
};
const std::vector<shape> shapes = {{37, 53}, {0, 100}, {2, 1027}, {1, 600}, {16, 16}, {5, 1}, {700, 3}};

/// Trains all shapes and returns the bytes of weights and means; compares with the reference.
std::vector<float> check(mp::cpu exec, const mp::adafactor_options& options, float inverse_scale) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<std::vector<float>> weights;
    std::vector<std::vector<float>> gradients;
    std::vector<mp::parameter<float>> parameters;
    std::vector<reference> references;
    for (const shape& it : shapes) {
        const std::size_t rows = std::max<std::size_t>(it.rows, 1);
        weights.emplace_back(rows * it.columns);
        gradients.emplace_back(rows * it.columns);
        for (float& w : weights.back()) w = 0.1F * normal(random);
        reference one{rows, it.columns, {weights.back().begin(), weights.back().end()}};
        if (it.columns == 1) one = {1, rows, one.weights};
        references.push_back(one);
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        parameters.push_back({.weights = weights[i], .gradient = gradients[i], .rows = shapes[i].rows});
    }
    mp::adafactor<float> optimizer(exec, parameters, options);
    double worst = 0.0;
    const auto look = [&](double expected, float seen, double scale) {
        worst = tests::larger_error(worst, std::fabs(expected - static_cast<double>(seen)) / scale);
    };
    for (int step = 0; step < 20; ++step) {
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            const std::size_t columns = references[i].columns;
            std::vector<double> g(weights[i].size());
            for (std::size_t j = 0; j < g.size(); ++j) {
                // Rows and columns of different sizes, and growing ones, which are clipped.
                gradients[i][j] = normal(random) * (1.0F + static_cast<float>(j / columns % 7)) *
                                  std::ldexp(1.0F, static_cast<int>(j % columns % 5) + step);
                g[j] = static_cast<double>(gradients[i][j]) * static_cast<double>(inverse_scale);
            }
            references[i].step(g, options);
        }
        optimizer.step(inverse_scale);
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            for (std::size_t j = 0; j < weights[i].size(); ++j) {
                look(references[i].weights[j], weights[i][j], 0.1);
            }
            const auto rows = optimizer.row_means(i);
            const auto columns = optimizer.column_means(i);
            REQUIRE(rows.size() == (references[i].rows > 1 ? references[i].rows : 0));
            REQUIRE(columns.size() == references[i].columns);
            for (std::size_t j = 0; j < rows.size(); ++j)
                look(references[i].r[j], rows[j], references[i].r[j]);
            for (std::size_t j = 0; j < columns.size(); ++j) {
                look(references[i].c[j], columns[j], references[i].c[j]);
            }
        }
    }
    CHECK(worst < 1e-5);
    std::vector<float> all;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        all.insert(all.end(), weights[i].begin(), weights[i].end());
        const auto columns = optimizer.column_means(i);
        all.insert(all.end(), columns.begin(), columns.end());
    }
    return all;
}

}  // namespace

TEST_CASE("Adafactor follows the paper's algorithm, with the same bits on any number of threads") {
    const std::vector<mp::adafactor_options> all = {
        {},
        {.learning_rate = 0.5},  // so that the step shrinks with time
        {.learning_rate = 0.02, .relative_step = false, .scale_by_weights = false, .weight_decay = 0.1},
        {.beta2_decay = 0.5, .epsilon1 = 1e-3, .epsilon2 = 0.2, .clip_threshold = 0.3}};
    for (const mp::adafactor_options& options : all) {
        const std::vector<float> expected = check(mp::cpu{1}, options, 0x1p-4F);
        for (const mp::cpu exec : optimizer_executors({3})) {
            const auto bits = check(exec, options, 0x1p-4F);
            REQUIRE(bits.size() == expected.size());
            CHECK(std::memcmp(bits.data(), expected.data(), bits.size() * sizeof(float)) == 0);
        }
    }
}

TEST_CASE(
    "a clipped and a scaled step are the float step of those gradients, and a skipped one changes nothing") {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    std::vector<mp::bfloat16> weights(600), gradient(600), other_weights(600);
    std::vector<float> other_gradient(600);
    for (std::size_t i = 0; i < 600; ++i) weights[i] = other_weights[i] = mp::bfloat16(normal(random));
    mp::adafactor<mp::bfloat16> optimizer({{.weights = weights, .gradient = gradient, .rows = 20}});
    mp::adafactor<mp::bfloat16, float> other(
        {{.weights = other_weights, .gradient = other_gradient, .rows = 20}});
    mp::dynamic_loss_scaler scaler({.initial_scale = 8.0F});
    static_cast<void>(scaler.current_scale());  // as a backward pass does
    for (int step = 0; step < 4; ++step) {
        for (mp::bfloat16& it : gradient) it = mp::bfloat16(normal(random) * 100.0F);
        for (std::size_t i = 0; i < 600; ++i) other_gradient[i] = static_cast<float>(gradient[i]);
        mp::training_iteration iteration(scaler, optimizer);
        const double norm = iteration.clip_global_gradient_norm(1.0);
        const auto factor = static_cast<float>(1.0 / (norm + 1e-6));
        for (float& it : other_gradient) it = it * 0.125F * factor;
        CHECK(iteration.finish());
        other.step();
        CHECK(std::memcmp(weights.data(), other_weights.data(), 1200) == 0);
        CHECK(std::memcmp(optimizer.master_weights(0).data(), other.master_weights(0).data(), 2400) == 0);
    }
    // Weights, gradients, masters; 20 + 30 means, as many factors (30 have room for 32), sums in double.
    CHECK(optimizer.bytes_per_parameter() == 2 + 2 + 4 + (4 * (20 + 30 + 20 + 32) + 8 * 32) / 600.0);
    const std::vector<mp::bfloat16> before = weights;
    const std::vector<float> means(optimizer.row_means(0).begin(), optimizer.row_means(0).end());
    gradient[3] = mp::bfloat16::from_bits(0x7F80);
    CHECK_FALSE(scaler.step(optimizer));
    CHECK(std::memcmp(weights.data(), before.data(), 1200) == 0);
    CHECK(std::memcmp(optimizer.row_means(0).data(), means.data(), 80) == 0);
    CHECK(optimizer.step_count() == 4);
    mp::adafactor<mp::bfloat16> moved = std::move(optimizer);
    gradient[3] = mp::bfloat16(0.0F);
    for (std::size_t i = 0; i < 600; ++i) other_gradient[i] = static_cast<float>(gradient[i]);
    moved.step();
    other.step();
    CHECK(std::memcmp(weights.data(), other_weights.data(), 1200) == 0);
}

TEST_CASE("groups have options of their own: the bits of an optimizer for each, also after loading") {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> w(60), b(7), g(60), h(7), other_w(60), other_b(7);
    for (std::size_t i = 0; i < 60; ++i) w[i] = other_w[i] = normal(random);
    for (std::size_t i = 0; i < 7; ++i) b[i] = other_b[i] = normal(random);
    const mp::adafactor_options of_w{.learning_rate = 0.02, .weight_decay = 0.1};
    const mp::adafactor_options of_b{.learning_rate = 0.3, .scale_by_weights = false, .beta2_decay = 0.5};
    const auto parameters = [&](std::vector<float>& weights, std::vector<float>& bias) {
        return std::vector<mp::parameter<float>>{{.name = "w", .weights = weights, .gradient = g, .rows = 6},
                                                 {.name = "b", .weights = bias, .gradient = h, .group = 1}};
    };
    mp::adafactor<float> both(parameters(w, b), {of_w, of_b});
    mp::adafactor<float> one({parameters(other_w, other_b)[0]}, of_w);
    mp::adafactor<float> two({{.name = "b", .weights = other_b, .gradient = h}}, of_b);
    CHECK(both.group_count() == 2);
    CHECK(both.options(1) == of_b);
    const auto step_of = [&](mp::adafactor<float>& all) {
        for (float& it : g) it = normal(random);
        for (float& it : h) it = normal(random);
        all.set_learning_rate_factor(0.5);
        all.step();
        for (mp::adafactor<float>* it : {&one, &two}) {
            it->set_learning_rate_factor(0.5);
            it->step();
        }
        CHECK(std::memcmp(w.data(), other_w.data(), 240) == 0);
        CHECK(std::memcmp(b.data(), other_b.data(), 28) == 0);
    };
    step_of(both);
    step_of(both);
    const test_folder folder;
    mp::save_checkpoint(folder.file("x"), [&](auto& visit) { visit("optimizer", both); });
    mp::adafactor<float> loaded(parameters(w, b), std::vector<mp::adafactor_options>(2));
    mp::load_checkpoint(folder.file("x"), [&](auto& visit) { visit("optimizer", loaded); });
    CHECK(loaded.options(1) == of_b);
    step_of(loaded);
    CHECK(holds(thrown<mp::argument_error>([&] { mp::adafactor<float> optimizer(parameters(w, b), of_w); }),
                "mp::adafactor: parameters[1] ('b').group is 1"));
}

TEST_CASE("matrices of a parameter store have their shape, vectors none") {
    mp::parameter_store<float> store;
    store.add_matrix("matrix", 3, 4, mp::initializers::kaiming_normal(4));
    store.add_vector("vector", 5, {});
    store.build(1);
    mp::adafactor<float> optimizer(store.parameters());
    CHECK(optimizer.row_means(0).size() == 3);
    CHECK(optimizer.column_means(0).size() == 4);
    CHECK(optimizer.row_means(1).empty());
    CHECK(optimizer.column_means(1).size() == 5);
}

TEST_CASE("options and shapes out of range are refused by name") {
    std::vector<float> weights(6), gradient(6);
    const auto message = [&](const mp::adafactor_options& options, std::size_t rows = 2) {
        return thrown<mp::argument_error>([&] {
            mp::adafactor<float> optimizer(
                {{.name = "w", .weights = weights, .gradient = gradient, .rows = rows}}, options);
        });
    };
    CHECK(message({}, 4) ==
          "mp::adafactor: parameters[0] ('w').rows is 4; it must divide the number of weights, which is 6");
    CHECK(message({.beta2_decay = 0.0}) == "mp::adafactor: beta2_decay is 0; it must be in (0, 4]");
    CHECK(holds(message({.learning_rate = -1.0}), "mp::adafactor: learning_rate is -1"));
    CHECK(holds(message({.epsilon1 = 0.0}), "mp::adafactor: epsilon1 is 0"));
    CHECK(holds(message({.epsilon2 = 0.0}), "mp::adafactor: epsilon2 is 0"));
    CHECK(holds(message({.clip_threshold = std::nan("")}), "mp::adafactor: clip_threshold is nan"));
    CHECK(holds(message({.weight_decay = -0.5}), "mp::adafactor: weight_decay is -0.5"));
    mp::adafactor<float> optimizer({{.weights = weights, .gradient = gradient}});
    optimizer.set_learning_rate_factor(0.5);
    CHECK(optimizer.learning_rate() == 0.005);
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.set_learning_rate_factor(-1.0); }),
                "mp::adafactor: factor is -1"));
    CHECK(optimizer.learning_rate() == 0.005);
    CHECK(
        holds(thrown<mp::argument_error>([&] { static_cast<void>(optimizer.row_means(1)); }), "index is 1"));
}
