// SPDX-License-Identifier: MIT
// The statistics of rows on the simulated GPU, and the gradient from them: against the definition in
// long double, and with the loss scale that lives on the device.
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <type_traits>
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
using mp::ops::cross_entropy_options;
using mp::ops::loss_factors;
using mp::ops::softmax_statistics;

constexpr cross_entropy_options smoothed{.ignore_index = -100, .label_smoothing = 0.1F};

std::vector<int> some_labels(std::ptrdiff_t rows, std::ptrdiff_t columns, int ignored) {
    std::vector<int> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] = i % 3 == 1 ? ignored : static_cast<int>(i * 7 % static_cast<std::size_t>(columns));
    }
    return labels;
}

/// The statistics of rows that a loss of the simulated GPU writes.
template <class Logit>
std::vector<softmax_statistics> statistics_of(const matrix<Logit>& logits, const std::vector<int>& labels,
                                              const cross_entropy_options& options) {
    gpu_test::workspace memory(512);
    std::vector<softmax_statistics> statistics(labels.size(), {-77.0F, -77.0F});
    std::vector<float> of_rows(labels.size()), bare(labels.size());
    float loss = 0, bare_loss = 0;
    const auto exec = memory.on(watched(simulated{.seed = 2}));
    mp::ops::softmax_cross_entropy(exec, logits.view, labels, &loss, of_rows, {}, options, statistics);
    mp::ops::softmax_cross_entropy(exec, logits.view, labels, &bare_loss, bare, {}, options);
    CHECK(same_bits(loss, bare_loss));
    for (std::size_t i = 0; i < bare.size(); ++i) CHECK(same_bits(of_rows[i], bare[i]));
    return statistics;
}

void check_floats(std::ptrdiff_t rows, std::ptrdiff_t columns, float span,
                  const cross_entropy_options& options) {
    CAPTURE(columns);
    CAPTURE(span);
    const loss_factors factors{0.75F, 1024.0F};
    matrix<float> x(rows, columns), dx(rows, columns);
    x.randomize(3, span);
    const auto labels = some_labels(rows, columns, options.ignore_index ? -100 : 0);
    const std::vector<softmax_statistics> statistics = statistics_of(x, labels, options);
    gpu_test::workspace memory(512);
    mp::ops::softmax_cross_entropy_backward(memory.on(watched(simulated{.seed = 5})), x.view, labels, dx.view,
                                            factors, options, statistics);
    const auto counted = rows - std::count(labels.begin(), labels.end(), -100);
    const long double factor = 0.75L * 1024 / static_cast<long double>(counted);
    const long double smoothing = options.label_smoothing;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        if (labels[i] == -100) {
            CHECK(statistics[i] == softmax_statistics{});
            for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(same_bits(dx.view(r, c), 0.0F));
            continue;
        }
        long double sum = 0, worst = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) sum += std::exp(static_cast<long double>(x.view(r, c)));
        const long double log_sum = std::log(sum);
        CHECK(std::fabs(static_cast<long double>(statistics[i].log_sum()) - log_sum) <=
              0x1p-21L * std::max(1.0L, std::fabs(log_sum)));
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double p = std::exp(static_cast<long double>(x.view(r, c)) - log_sum);
            const long double share =
                (c == labels[i] ? 1 - smoothing : 0) + smoothing / static_cast<long double>(columns);
            const long double bound = 0x1p-20L * factor * std::max(p, share) + 0x1p-140L;
            worst = tests::larger_error(
                worst, std::fabs(static_cast<long double>(dx.view(r, c)) - (p - share) * factor) / bound);
        }
        CHECK(worst < 1);
    }
}

TEST_CASE("statistics and gradients from them are as close to the exact ones as promised") {
    for (const cross_entropy_options& options : {cross_entropy_options{}, smoothed}) {
        for (const std::ptrdiff_t columns : {1, 2, 10, 100, 1025, 3000}) {
            check_floats(3, columns, 1.0F, options);
            check_floats(3, columns, 40.0F, options);
        }
        check_floats(300, 10, 4.0F, options);
    }
}

template <class Logit>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    matrix<Logit> first(rows, columns), expected(rows, columns);
    first.randomize(7);
    const auto labels = some_labels(rows, columns, -100);
    const std::vector<softmax_statistics> statistics = statistics_of(first, labels, smoothed);
    gpu_test::workspace memory(512);
    const auto exec = memory.on(watched(simulated{.seed = 5}));
    mp::ops::softmax_cross_entropy_backward(exec, first.view, labels, expected.view, {}, smoothed,
                                            statistics);
    for (const layout& how : gpu_test::layouts) {
        matrix<Logit> x(rows, columns, how), dx(rows, columns, how);
        x.fill([&](auto r, auto c) { return first.view(r, c); });
        mp::ops::softmax_cross_entropy_backward(exec, x.view, labels, dx.view, {}, smoothed, statistics);
        CHECK(same_bits(dx, expected));
        mp::ops::softmax_cross_entropy_backward(exec, x.view, labels, x.view, {}, smoothed, statistics);
        CHECK(same_bits(x, expected));
    }
}

TEST_CASE("a gradient from statistics has its bits in every layout, and in place") {
    check_layouts<float>(9, 33);
    check_layouts<half>(9, 33);
    check_layouts<bfloat16>(3, 1200);
}

TEST_CASE("a scale that lives on the device multiplies a gradient from statistics") {
    matrix<float> x(5, 20), dx(5, 20), expected(5, 20);
    x.randomize(3);
    const auto labels = some_labels(5, 20, 0);
    const std::vector<softmax_statistics> statistics = statistics_of(x, labels, {});
    const auto scale = mp::make_device_loss_scale<0>(mp::pytorch_policy{.initial_scale = 4096.0F});
    mp::ops::softmax_cross_entropy_backward(simulated{}, x.view, labels, dx.view, &scale, 1.0F, {},
                                            statistics);
    mp::ops::softmax_cross_entropy_backward(simulated{}, x.view, labels, expected.view, {.scale = 4096.0F},
                                            {}, statistics);
    CHECK(same_bits(dx, expected));
}

TEST_CASE("rows without a meaning have statistics and gradients of NaN") {
    matrix<float> x(3, 4), dx(3, 4);
    x.randomize(1);
    x.view(0, 2) = std::numeric_limits<float>::quiet_NaN();
    x.view(1, 1) = std::numeric_limits<float>::infinity();
    const std::vector<int> labels = {0, 1, 2};
    const std::vector<softmax_statistics> statistics = statistics_of(x, labels, {});
    mp::ops::softmax_cross_entropy_backward(simulated{}, x.view, labels, dx.view, {}, {}, statistics);
    CHECK(std::isnan(statistics[0].max));
    CHECK(std::isnan(statistics[1].max));
    for (std::ptrdiff_t c = 0; c < 4; ++c) {
        CHECK(std::isnan(dx.view(0, c)));
        CHECK(std::isnan(dx.view(1, c)));
        CHECK(std::isfinite(dx.view(2, c)));
    }
}

TEST_CASE("statistics of another size are named") {
    matrix<float> x(3, 4), dx(3, 4);
    std::vector<float> of_rows(3);
    std::vector<softmax_statistics> statistics(2);
    float loss = 0;
    const std::vector<int> labels = {0, 1, 2};
    const auto is_named = [](const mp::argument_error& error) {
        return std::string(error.what()).find("statistics") != std::string::npos;
    };
    bool named = false;
    try {
        mp::ops::softmax_cross_entropy(simulated{}, x.view, labels, &loss, of_rows, {}, {}, statistics);
    } catch (const mp::argument_error& error) {
        named = is_named(error);
    }
    CHECK(named);
    named = false;
    try {
        mp::ops::softmax_cross_entropy_backward(simulated{}, x.view, labels, dx.view, {}, {}, statistics);
    } catch (const mp::argument_error& error) {
        named = is_named(error);
    }
    CHECK(named);
}

}  // namespace
