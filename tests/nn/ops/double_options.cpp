// SPDX-License-Identifier: MIT
// Options that are numbers: ops of doubles take them to all digits, others round them to float.
#include <doctest/doctest.h>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>
#include <mp/train/training/layers/normalization.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace {

using mp::ops::absent;
constexpr mp::cpu exec{};
constexpr double tenth = 0.1;  // no float
constexpr auto rounded_tenth = static_cast<double>(0.1F);

template <class Real>
auto row(std::vector<Real>& x) {
    return mp::row_major(x.data(), 1, static_cast<std::ptrdiff_t>(x.size()));
}

/// Whether two values differ by no more than 4 units in the last place of double.
bool is_close(double found, long double exact) {
    return std::fabs(static_cast<long double>(found) - exact) <= 0x1p-50L * std::fabs(exact);
}

template <class Real>
std::vector<Real> norms(double epsilon) {
    std::vector<Real> x{1, -1}, y(2), dx(2), dy{1, 0}, result;
    const mp::ops::normalization_options options{.epsilon = epsilon};
    const auto keep = [&](const auto& values) { result.insert(result.end(), values.begin(), values.end()); };
    mp::ops::layer_norm(exec, row(x), absent, absent, row(y), options);
    mp::ops::layer_norm_backward(exec, row(x), absent, row(dy), row(dx), absent, absent, options);
    keep(y);
    keep(dx);
    mp::ops::rms_norm(exec, row(x), absent, row(y), options);
    mp::ops::rms_norm_backward(exec, row(x), absent, row(dy), row(dx), absent, options);
    keep(y);
    keep(dx);
    return result;
}

TEST_CASE("epsilon has the digits of double in norms of doubles, and those of float in others") {
    const auto found = norms<double>(tenth);
    const long double inverse = 1 / std::sqrt(1 + static_cast<long double>(tenth));
    for (const std::size_t first : {0U, 4U}) {
        CHECK(is_close(found[first], inverse));
        // g - mean(g) - n mean(g n) with g = (1, 0); rms_norm leaves the mean out.
        const long double along = inverse * inverse / 2;
        const long double dx = (first == 0 ? 0.5L - along : 1 - along) * inverse;
        CHECK(std::fabs(static_cast<long double>(found[first + 2]) - dx) < 0x1p-51L);  // of terms below 1
    }
    CHECK(norms<float>(tenth) == norms<float>(rounded_tenth));
    CHECK(norms<double>(tenth) != norms<double>(rounded_tenth));
}

TEST_CASE("the epsilon of norms is 1e-5 in double, which a float norm rounds to 1e-5F") {
    std::vector<double> x{3, 3}, y(2);
    std::vector<mp::ops::basic_normalization_statistics<double>> statistics(1);
    mp::ops::layer_norm(exec, row(x), absent, absent, row(y), {}, statistics);
    CHECK(is_close(statistics[0].inverse, 1 / std::sqrt(static_cast<long double>(1e-5))));
    static_assert(static_cast<float>(mp::ops::normalization_options{}.epsilon) == 1e-5F);
    static_assert(static_cast<float>(mp::layers::normalization_options{}.epsilon) == 1e-5F);

    mp::parameter_store<double> store;
    mp::layers::layer_norm<double> layer(store, "norm", 2, {.epsilon = tenth});
    store.build(1);
    std::vector<double> z{1, -1};
    const auto result = layer.forward(exec, row(z));
    CHECK(is_close(result(0, 0), 1 / std::sqrt(1 + static_cast<long double>(tenth))));
}

template <class Real>
std::vector<Real> smoothed(double smoothing, bool saved) {
    std::vector<Real> x{0, 1, 3}, dx(3), losses(1);
    std::vector<mp::ops::basic_softmax_statistics<Real>> statistics(1);
    const std::vector<int> labels{1};
    Real loss = 0;
    mp::ops::softmax_cross_entropy(exec, row(x), labels, &loss, std::span<Real>(losses), {},
                                   {.label_smoothing = smoothing}, statistics);
    if (!saved) statistics.clear();
    mp::ops::softmax_cross_entropy_backward(exec, row(x), labels, row(dx), {}, {.label_smoothing = smoothing},
                                            statistics);
    dx.push_back(loss);
    return dx;
}

TEST_CASE("label_smoothing has the digits of double in losses of doubles, and those of float in others") {
    const long double s = tenth, sum = 1 + std::exp(1.0L) + std::exp(3.0L);
    for (const bool saved : {false, true}) {
        const auto found = smoothed<double>(tenth, saved);
        for (int c = 0; c < 3; ++c) {
            const long double p = std::exp(c == 0 ? 0.0L : c == 1 ? 1.0L : 3.0L) / sum;
            const long double share = (c == 1 ? 1 - s : 0) + s / 3;
            CHECK(std::fabs(static_cast<long double>(found[static_cast<std::size_t>(c)]) - (p - share)) <
                  2e-16L);
        }
        CHECK(is_close(found[3], (1 - s) * (std::log(sum) - 1) + s * (std::log(sum) - 4.0L / 3)));
        for (int i = 1; i < 30; ++i) {  // since few roundings show the difference
            const double smoothing = i / 31.0;
            const auto rounded = static_cast<double>(static_cast<float>(smoothing));
            CHECK(smoothed<float>(smoothing, saved) == smoothed<float>(rounded, saved));
        }
        CHECK(smoothed<double>(tenth, saved) != smoothed<double>(rounded_tenth, saved));
    }
}

template <class Real>
std::vector<Real> attended(double scale) {
    std::vector<Real> q{3}, k{1, 2}, v{0, 1}, y(1), dq(1);
    const mp::ops::attention_options options{.scale = scale};
    const auto keys = [](std::vector<Real>& x) { return mp::row_major(x.data(), 2, 1); };
    mp::ops::scaled_dot_product_attention(exec, row(q), keys(k), keys(v), absent, row(y), options);
    mp::ops::scaled_dot_product_attention_backward(exec, row(q), keys(k), keys(v), absent, row(q), row(dq),
                                                   absent, absent, options);
    return {y[0], dq[0]};
}

TEST_CASE(
    "the scale of attention has the digits of double for queries of doubles, and those of float for others") {
    const auto found = attended<double>(tenth);
    const long double p = 1 / (1 + std::exp(-3 * static_cast<long double>(tenth)));
    CHECK(is_close(found[0], p));
    CHECK(is_close(found[1], 3 * static_cast<long double>(tenth) * p * (1 - p)));
    CHECK(attended<float>(tenth) == attended<float>(rounded_tenth));
    CHECK(attended<double>(tenth) != attended<double>(rounded_tenth));
}

}  // namespace
