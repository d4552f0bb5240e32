// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::loss_factors;

template <class Label>
std::vector<Label> random_labels(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    std::mt19937 random(4);
    std::vector<Label> labels(static_cast<std::size_t>(rows));
    for (Label& label : labels) label = static_cast<Label>(random() % static_cast<unsigned>(columns));
    return labels;
}

struct result {
    float loss = -1;
    std::vector<float> of_rows;
};
template <class Logit, class Label, class Gradient>
result run(simulated exec, mp::matrix_view<Logit> logits, const std::vector<Label>& labels,
           mp::matrix_view<Gradient> dlogits, loss_factors factors = {}) {
    result r{-1, std::vector<float>(labels.size())};
    mp::ops::softmax_cross_entropy_with_gradient(exec, logits, labels, &r.loss, r.of_rows, dlogits, factors);
    return r;
}

void check_floats(std::ptrdiff_t rows, std::ptrdiff_t columns, float span) {
    CAPTURE(columns);
    matrix<float> x(rows, columns), dx(rows, columns);
    x.randomize(3, span);
    const auto labels = random_labels<int>(rows, columns);
    const loss_factors factors{0.75F, 1024.0F};
    const result found = run(watched(simulated{.seed = 2}), x.view, labels, dx.view, factors);
    const long double factor = 0.75L * 1024 / static_cast<long double>(rows);
    long double total = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        long double largest = -INFINITY, sum = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            largest = std::max(largest, static_cast<long double>(x.view(r, c)));
        }
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            sum += std::exp(static_cast<long double>(x.view(r, c)) - largest);
        }
        const auto i = static_cast<std::size_t>(r);
        const long double loss = std::log(sum) - (static_cast<long double>(x.view(r, labels[i])) - largest);
        total += loss;
        CHECK(std::fabs(found.of_rows[i] - loss) <= 0x1p-21L * std::max(1.0L, loss));
        CHECK(found.of_rows[i] >= 0);
        double worst = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double p = std::exp(static_cast<long double>(x.view(r, c)) - largest) / sum;
            const bool label = c == labels[i];
            const long double bound = 0x1p-21L * factor * (label ? 1 : p) + 0x1p-140L;
            worst = tests::larger_error(
                worst,
                static_cast<double>(std::fabs(dx.view(r, c) - (p - (label ? 1 : 0)) * factor) / bound));
        }
        CHECK(worst < 1);
    }
    const long double mean = total / static_cast<long double>(rows) * 0.75L;
    CHECK(std::fabs(found.loss - mean) <= 0x1p-21L * std::max(1.0L, mean));
}

TEST_CASE("losses and gradients are as close to the exact ones as promised") {
    for (const std::ptrdiff_t columns : {1, 2, 10, 100, 1024, 1025, 5000}) {
        check_floats(3, columns, 1.0F);
        check_floats(3, columns, 40.0F);
    }
    check_floats(700, 10, 3.0F);
}

TEST_CASE("gradients of 16 bits are the CPU's except for a few in a thousand") {
    const auto check = [](auto value, double share) {
        using number = decltype(value);
        std::size_t different = 0, all = 0;
        for (const std::ptrdiff_t columns : {10, 1000, 2500}) {
            matrix<number> x(6, columns), dx(6, columns), expected(6, columns);
            x.randomize(5, 6.0F);
            const auto labels = random_labels<std::int64_t>(6, columns);
            const loss_factors factors{1.0F, 512.0F};
            const result found = run(simulated{}, x.view, labels, dx.view, factors);
            mp::ops::softmax_cross_entropy_backward(mp::cpu{}, x.view, labels, expected.view, factors);
            const float loss = mp::ops::softmax_cross_entropy(mp::cpu{}, x.view, labels, factors);
            CHECK(std::fabs(found.loss - loss) <= 0x1p-21F * loss);
            for (std::ptrdiff_t r = 0; r < 6; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c, ++all) {
                    different += same_bits(dx.view(r, c), expected.view(r, c)) ? 0 : 1;
                }
            }
        }
        CHECK(static_cast<double>(different) <= share * static_cast<double>(all));
    };
    check(half{}, 0.004);
    check(bfloat16{}, 0.001);
}

TEST_CASE("bits depend on no schedule, layout or alignment, nothing else is written, gradients may replace") {
    for (const std::ptrdiff_t columns : {19, 1200}) {
        constexpr std::ptrdiff_t rows = 9;
        matrix<half> x0(rows, columns), dx0(rows, columns);
        x0.randomize(1, 5.0F);
        const auto labels = random_labels<std::uint16_t>(rows, columns);
        const result expected = run(simulated{}, x0.view, labels, dx0.view);
        std::uint64_t seed = 1;
        for (const layout& in : gpu_test::layouts) {
            matrix<half> x(rows, columns, in), dx(rows, columns, in);
            x.randomize(1, 5.0F);
            const result found = run(watched(simulated{.seed = seed++}), x.view, labels, dx.view);
            CHECK(same_bits(dx, dx0));
            CHECK(same_bits(found.of_rows, expected.of_rows));
            CHECK(found.loss == expected.loss);
            CHECK(dx.is_contained());
            // The parts alone.
            matrix<half> alone(rows, columns, in);
            mp::ops::softmax_cross_entropy_backward(watched(simulated{.seed = seed++}), x.view, labels,
                                                    alone.view);
            CHECK(same_bits(alone, dx0));
            result only{-1, std::vector<float>(rows)};
            mp::ops::softmax_cross_entropy(watched(simulated{.seed = seed++}), x.view, labels, &only.loss,
                                           only.of_rows);
            CHECK(only.loss == expected.loss);
            // Over the logits.
            const result replaced = run(watched(simulated{.seed = seed++}), x.view, labels, x.view);
            CHECK(same_bits(x, dx0));
            CHECK(replaced.loss == expected.loss);
        }
    }
}

TEST_CASE("masked classes, NaN and labels that are no column") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const std::ptrdiff_t columns : {4, 1100}) {
        matrix<float> x(6, columns), dx(6, columns);
        x.fill([](auto, auto c) { return static_cast<float>(c % 5); });
        x.view(1, 0) = -infinity;  // another class
        x.view(2, 2) = -infinity;  // the label
        x.view(3, 1) = std::numeric_limits<float>::quiet_NaN();
        const std::vector<std::int8_t> labels{1, 1, 2, 3, -1, 3};
        const result found = run(simulated{}, x.view, labels, dx.view);
        CHECK(std::isfinite(found.of_rows[0]));
        CHECK(std::isfinite(found.of_rows[1]));
        CHECK(dx.view(1, 0) == 0.0F);
        CHECK(found.of_rows[2] == infinity);
        for (const std::ptrdiff_t bad : {3, 4}) {
            CHECK(gpu_test::is_nan(found.of_rows[static_cast<std::size_t>(bad)]));
            for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(gpu_test::is_nan(dx.view(bad, c)));
        }
        CHECK(std::isfinite(found.of_rows[5]));
        CHECK(gpu_test::is_nan(found.loss));
        const std::vector<std::uint64_t> large(6, static_cast<std::uint64_t>(columns));
        CHECK(gpu_test::is_nan(run(simulated{}, x.view, large, dx.view).of_rows[0]));
    }
}

TEST_CASE("the loss scale may live on the device") {
    for (const float scale : {1024.0F, 3000.0F}) {
        const auto on_device = mp::make_device_loss_scale<0>(mp::pytorch_policy{.initial_scale = scale});
        matrix<half> x(4, 70), expected(4, 70), together(4, 70), alone(4, 70);
        x.randomize(5, 4.0F);
        const auto labels = random_labels<int>(4, 70);
        const simulated gpu{.seed = 3};
        // 0.75 / 4 is a float, and so is that times either scale.
        const result known = run(gpu, x.view, labels, expected.view, {0.75F, scale});
        result found{-1, std::vector<float>(4)};
        mp::ops::softmax_cross_entropy_with_gradient(gpu, x.view, labels, &found.loss, found.of_rows,
                                                     together.view, &on_device, 0.75F);
        mp::ops::softmax_cross_entropy_backward(gpu, x.view, labels, alone.view, &on_device, 0.75F);
        CHECK(same_bits(found.loss, known.loss));
        for (std::ptrdiff_t r = 0; r < 4; ++r) {
            for (std::ptrdiff_t c = 0; c < 70; ++c) {
                CHECK(together.view(r, c).bits() == expected.view(r, c).bits());
                CHECK(alone.view(r, c).bits() == expected.view(r, c).bits());
            }
        }
    }
}

TEST_CASE("wrong arguments are refused") {
    matrix<half> x(2, 3), small(2, 2);
    std::vector<int> labels(2), few(1);
    std::vector<float> losses(2);
    float loss = 0;
    const simulated gpu{};
    CHECK_THROWS_WITH_AS(
        mp::ops::softmax_cross_entropy(gpu, x.view, few, &loss, losses),
        "mp::ops::softmax_cross_entropy: labels.size() is 1; it must equal logits.rows, which is 2",
        mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy(gpu, x.view, labels, nullptr, losses), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy(gpu, x.view, labels, &loss, std::span(losses).first(1)),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy_backward(gpu, x.view, labels, small.view),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy_backward(gpu, x.view, labels, x.view, {1.0F, 0.0F}),
                    mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::ops::softmax_cross_entropy_backward(
                             gpu, x.view, labels, x.view,
                             static_cast<const mp::device_loss_scale<mp::pytorch_policy>*>(nullptr)),
                         "mp::ops::softmax_cross_entropy_backward: scale is 'null'; it must be a "
                         "device_loss_scale in device memory",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy(gpu, mp::row_major(x.view.data, 0, 3), std::vector<int>{},
                                                   &loss, std::span<float>{}),
                    mp::argument_error);
}

}  // namespace
