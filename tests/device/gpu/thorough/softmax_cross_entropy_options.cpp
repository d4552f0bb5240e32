// SPDX-License-Identifier: MIT
// The cross entropy on the simulated GPU with labels that do not count and with smoothed labels: against the
// definition in long double and the CPU.
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
#include <type_traits>
#include <vector>

#include "device/gpu/matrices.hpp"
#include "larger_error.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::cross_entropy_options;
using mp::ops::loss_factors;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Labels of which every third is `ignored`.
template <class Label>
std::vector<Label> some_labels(std::ptrdiff_t rows, std::ptrdiff_t columns, Label ignored) {
    std::mt19937 random(4);
    std::vector<Label> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = i % 3 == 1 ? ignored : static_cast<Label>(random() % static_cast<unsigned>(columns));
    }
    return labels;
}

struct result {
    float loss = -1;
    std::vector<float> of_rows;
};
template <class Logit, class Label, class Gradient>
result run(simulated exec, mp::matrix_view<Logit> logits, const std::vector<Label>& labels,
           mp::matrix_view<Gradient> dlogits, const cross_entropy_options& options,
           loss_factors factors = {}) {
    gpu_test::workspace memory(512);
    result r{-1, std::vector<float>(labels.size(), -1.0F)};
    mp::ops::softmax_cross_entropy_with_gradient(memory.on(exec), logits, labels, &r.loss, r.of_rows, dlogits,
                                                 factors, options);
    return r;
}

template <class Value>
bool is_plus_zero(Value value) {
    return same_bits(value, Value(0.0F));
}

void check_floats(std::ptrdiff_t rows, std::ptrdiff_t columns, float span, float smoothing) {
    CAPTURE(columns);
    CAPTURE(smoothing);
    matrix<float> x(rows, columns), dx(rows, columns);
    x.randomize(3, span);
    const auto labels = some_labels<int>(rows, columns, -100);
    const auto counted = rows - std::count(labels.begin(), labels.end(), -100);
    const result found = run(watched(simulated{.seed = 2}), x.view, labels, dx.view,
                             {.ignore_index = -100, .label_smoothing = smoothing}, {0.75F, 1024.0F});
    const long double factor = 0.75L * 1024 / static_cast<long double>(counted);
    const auto share_of_all = static_cast<long double>(smoothing) / static_cast<long double>(columns);
    long double total = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        if (labels[i] == -100) {
            CHECK(is_plus_zero(found.of_rows[i]));
            for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(is_plus_zero(dx.view(r, c)));
            continue;
        }
        long double sum = 0, loss = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) sum += std::exp(static_cast<long double>(x.view(r, c)));
        double worst = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double log_p = static_cast<long double>(x.view(r, c)) - std::log(sum);
            const long double share =
                (c == labels[i] ? 1 - static_cast<long double>(smoothing) : 0) + share_of_all;
            loss -= share * log_p;
            const long double bound = 0x1p-21L * factor * std::max(std::exp(log_p), share) + 0x1p-140L;
            const auto slope = static_cast<long double>(dx.view(r, c));
            worst = tests::larger_error(
                worst, static_cast<double>(std::fabs(slope - (std::exp(log_p) - share) * factor) / bound));
        }
        CHECK(worst < 1);
        CHECK(std::fabs(static_cast<long double>(found.of_rows[i]) - loss) <=
              0x1p-21L * std::max(1.0L, loss));
        total += loss;
    }
    const long double mean = total / static_cast<long double>(counted) * 0.75L;
    CHECK(std::fabs(static_cast<long double>(found.loss) - mean) <= 0x1p-21L * std::max(1.0L, mean));
}

TEST_CASE("losses and gradients with options are as close to the exact ones as promised") {
    for (const float smoothing : {0.0F, 0x1p-30F, 0.1F, 0.9F}) {
        for (const std::ptrdiff_t columns : {1, 2, 10, 100, 1024, 1025, 3000}) {
            check_floats(3, columns, 1.0F, smoothing);
            check_floats(3, columns, 40.0F, smoothing);
        }
    }
    check_floats(700, 10, 3.0F, 0.1F);
}

TEST_CASE("gradients of 16 bits with options are the CPU's except for a few in a thousand") {
    const auto check = [](auto value, double share) {
        using number = decltype(value);
        std::size_t different = 0, all = 0;
        for (const std::ptrdiff_t columns : {10, 1000, 2500}) {
            matrix<number> x(6, columns), dx(6, columns), expected(6, columns);
            x.randomize(5, 6.0F);
            const auto labels = some_labels<std::int64_t>(6, columns, -100);
            const loss_factors factors{1.0F, 512.0F};
            const cross_entropy_options options{.ignore_index = -100, .label_smoothing = 0.1F};
            const result found = run(simulated{}, x.view, labels, dx.view, options, factors);
            std::vector<float> losses(6);
            float loss = 0;
            mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, x.view, labels, &loss, losses,
                                                         expected.view, factors, options);
            CHECK(std::fabs(found.loss - loss) <= 0x1p-21F * loss);
            for (std::size_t r = 0; r < 6; ++r) {
                CHECK(std::fabs(found.of_rows[r] - losses[r]) <= 0x1p-21F * losses[r]);
            }
            for (std::ptrdiff_t r = 0; r < 6; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c, ++all) {
                    if (!same_bits(dx.view(r, c), expected.view(r, c))) ++different;
                }
            }
        }
        CHECK(static_cast<double>(different) <= share * static_cast<double>(all));
    };
    check(half{}, 0.004);
    check(bfloat16{}, 0.001);
}

TEST_CASE("with options, bits depend on no schedule, layout or alignment, and gradients may replace logits") {
    const cross_entropy_options options{.ignore_index = 2, .label_smoothing = 0.3F};
    for (const std::ptrdiff_t columns : {19, 1200}) {
        constexpr std::ptrdiff_t rows = 9;
        matrix<half> x0(rows, columns), dx0(rows, columns);
        x0.randomize(1, 5.0F);
        const auto labels = some_labels<std::uint16_t>(rows, columns, 2);
        const result expected = run(simulated{}, x0.view, labels, dx0.view, options);
        std::uint64_t seed = 1;
        for (const layout& in : gpu_test::layouts) {
            matrix<half> x(rows, columns, in), dx(rows, columns, in), alone(rows, columns, in);
            x.randomize(1, 5.0F);
            const result found = run(watched(simulated{.seed = seed++}), x.view, labels, dx.view, options);
            CHECK(same_bits(dx, dx0));
            CHECK(same_bits(found.of_rows, expected.of_rows));
            CHECK(found.loss == expected.loss);
            CHECK(dx.is_contained());
            // The parts alone; the loss needs no workspace.
            gpu_test::workspace memory(512);
            mp::ops::softmax_cross_entropy_backward(memory.on({.seed = seed++}), x.view, labels, alone.view,
                                                    {}, options);
            CHECK(same_bits(alone, dx0));
            result only{-1, std::vector<float>(rows)};
            mp::ops::softmax_cross_entropy(watched(simulated{.seed = seed++}), x.view, labels, &only.loss,
                                           only.of_rows, {}, options);
            CHECK(only.loss == expected.loss);
            CHECK(same_bits(only.of_rows, expected.of_rows));
            const result replaced = run(watched(simulated{.seed = seed++}), x.view, labels, x.view, options);
            CHECK(same_bits(x, dx0));
            CHECK(replaced.loss == expected.loss);
        }
    }
}

TEST_CASE("counting changes no bit where all rows count") {
    matrix<float> x(7, 33), plain(7, 33), counted(7, 33);
    x.randomize(2, 3.0F);
    std::vector<std::uint8_t> labels(7);
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(4 * i);
    const loss_factors factors{0.3F, 3000.0F};
    const result expected = run(simulated{}, x.view, labels, plain.view, {}, factors);
    for (const std::int64_t ignored : {-100, 30, 255, 1000}) {  // -100 and 1000 are no labels of 8 bits
        const result found =
            run(simulated{}, x.view, labels, counted.view, {.ignore_index = ignored}, factors);
        CHECK(same_bits(counted, plain));
        CHECK(found.loss == expected.loss);
    }
    // Where no label can be that one, nothing is counted, and no workspace needed.
    mp::ops::softmax_cross_entropy_backward(simulated{}, x.view, labels, counted.view, factors,
                                            {.ignore_index = -100});
    CHECK(same_bits(counted, plain));
}

TEST_CASE("with options, logits that are not finite") {
    for (const std::ptrdiff_t columns : {5, 1100}) {
        for (const float smoothing : {0.0F, 0.1F}) {
            matrix<float> x(5, columns), dx(5, columns);
            x.fill([](auto, auto c) { return static_cast<float>(c % 5); });
            for (std::ptrdiff_t c = 0; c < columns; ++c) x.view(0, c) = infinity;  // does not count
            x.view(1, 0) = -infinity;  // another class than the label
            x.view(2, 1) = std::numeric_limits<float>::quiet_NaN();
            const std::vector<std::int8_t> labels{-100, 1, 2, 3, -1};
            const result found = run(simulated{}, x.view, labels, dx.view,
                                     {.ignore_index = -100, .label_smoothing = smoothing});
            CHECK(is_plus_zero(found.of_rows[0]));
            CHECK(is_plus_zero(dx.view(0, 1)));
            CHECK((found.of_rows[1] == infinity) == (smoothing > 0));
            CHECK(dx.view(1, 0) == doctest::Approx(-smoothing / static_cast<float>(columns) / 4));
            for (const std::ptrdiff_t bad : {2, 4}) {
                CHECK(gpu_test::is_nan(found.of_rows[static_cast<std::size_t>(bad)]));
                for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(gpu_test::is_nan(dx.view(bad, c)));
            }
            CHECK(std::isfinite(found.of_rows[3]));
            CHECK(gpu_test::is_nan(found.loss));
            // No rows at all.
            const std::vector<std::int8_t> none(5, -100);
            const result nothing =
                run(simulated{}, x.view, none, dx.view, {.ignore_index = -100, .label_smoothing = smoothing});
            CHECK(gpu_test::is_nan(nothing.loss));
            for (std::ptrdiff_t r = 0; r < 5; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(is_plus_zero(dx.view(r, c)));
            }
        }
    }
}

TEST_CASE("means of distances do not overflow where losses do not") {
    matrix<float> x(2, 40), dx(2, 40);
    x.fill([](auto r, auto c) { return r == 0 ? (c == 0 ? 3e38F : -3e37F) : -3e38F; });
    const result found = run(simulated{}, x.view, std::vector<int>{0, 1}, dx.view, {.label_smoothing = 0.5F});
    CHECK(found.of_rows[0] == doctest::Approx(0.5 * 39 * 3.3e38 / 40));
    CHECK(found.of_rows[1] == doctest::Approx(std::log(40.0)));
}

TEST_CASE("with options, the loss scale may live on the device, and gradients be added") {
    const cross_entropy_options options{.ignore_index = -100, .label_smoothing = 0.1F};
    const auto on_device = mp::make_device_loss_scale<0>(mp::pytorch_policy{.initial_scale = 1024.0F});
    matrix<float> x(6, 70), expected(6, 70), together(6, 70), alone(6, 70), sum(6, 70);
    x.randomize(5, 4.0F);
    sum.randomize(6);
    const auto labels = some_labels<int>(6, 70, -100);
    const result known =
        run(watched(simulated{.seed = 3}), x.view, labels, expected.view, options, {0.75F, 1024.0F});
    gpu_test::workspace memory(1 << 14);
    const simulated gpu = memory.on({.seed = 3});
    result found{-1, std::vector<float>(6)};
    mp::ops::softmax_cross_entropy_with_gradient(gpu, x.view, labels, &found.loss, found.of_rows,
                                                 together.view, &on_device, 0.75F, options);
    mp::ops::softmax_cross_entropy_backward(gpu, x.view, labels, alone.view, &on_device, 0.75F, options);
    CHECK(found.loss == known.loss);
    CHECK(same_bits(together, expected));
    CHECK(same_bits(alone, expected));
    matrix<float> added(6, 70);
    added.fill([&](auto r, auto c) { return sum.view(r, c) + expected.view(r, c); });
    mp::ops::softmax_cross_entropy_with_gradient(gpu, x.view, labels, &found.loss, found.of_rows,
                                                 mp::ops::add_to(sum.view), &on_device, 0.75F, options);
    CHECK(same_bits(sum, added));
}

TEST_CASE("wrong options are refused, and counting without a workspace") {
    matrix<half> x(2, 3), dx(2, 3);
    x.randomize(1);
    dx.fill([](auto, auto) { return 5.0F; });
    const std::vector<int> labels{0, 2};
    std::vector<float> losses(2, 5.0F);
    float loss = 5.0F;
    const auto with_gradient = [&](const cross_entropy_options& options) {
        mp::ops::softmax_cross_entropy_with_gradient(simulated{}, x.view, labels, &loss, losses, dx.view, {},
                                                     options);
    };
    CHECK_THROWS_WITH_AS(with_gradient({.label_smoothing = 1.5F}),
                         "mp::ops::softmax_cross_entropy_with_gradient: options.label_smoothing is 1.5; it "
                         "must be at least 0 and below 1",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(
        with_gradient({.ignore_index = -100}),
        "mp::ops::softmax_cross_entropy: exec.workspace is 'null'; it must be a workspace in "
        "the memory of the executor, of at least 4 bytes",
        mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy(simulated{}, x.view, labels, &loss, losses, {},
                                                   {.label_smoothing = -1.0F}),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::softmax_cross_entropy_with_gradient(simulated{}, x.view, labels, &loss,
                                                                 std::span<float>{}, dx.view),
                    mp::argument_error);
    CHECK(loss == 5.0F);
    CHECK(losses == std::vector<float>(2, 5.0F));
    for (std::ptrdiff_t c = 0; c < 3; ++c) CHECK(dx.view(0, c) == half(5));
}

}  // namespace
