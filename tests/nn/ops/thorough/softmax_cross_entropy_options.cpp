// SPDX-License-Identifier: MIT
// The cross entropy with labels that do not count and with smoothed labels: against the definition in long
// double, and numbers of torch.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "nn/ops/reference.hpp"

namespace {

using mp::half;
using mp::storage_order;
using mp::ops::cross_entropy_options;
using mp::ops::loss_factors;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// What a row is compared with: 1 - s at the label, and s / classes everywhere.
long double target(std::ptrdiff_t c, std::int64_t label, std::ptrdiff_t classes, long double smoothing) {
    return (c == label ? 1 - smoothing : 0) + smoothing / static_cast<long double>(classes);
}

template <class Logit>
long double log_probability(const matrix<Logit>& logits, std::ptrdiff_t r, std::ptrdiff_t c) {
    long double sum = 0;
    for (std::ptrdiff_t i = 0; i < logits.view.columns; ++i) {
        sum += std::exp(static_cast<long double>(logits.view(r, i)) -
                        static_cast<long double>(logits.view(r, c)));
    }
    return -std::log(sum);
}

/// The mean loss over the rows whose label is not `ignored`, by its definition.
template <class Logit, class Label>
long double reference_loss(const matrix<Logit>& logits, const std::vector<Label>& labels,
                           std::optional<std::int64_t> ignored, long double smoothing) {
    long double total = 0, count = 0;
    for (std::ptrdiff_t r = 0; r < logits.view.rows; ++r) {
        const auto label = static_cast<std::int64_t>(labels[static_cast<std::size_t>(r)]);
        if (ignored.has_value() && label == *ignored) continue;
        ++count;
        for (std::ptrdiff_t c = 0; c < logits.view.columns; ++c) {
            const long double share = target(c, label, logits.view.columns, smoothing);
            if (share > 0) total -= share * log_probability(logits, r, c);
        }
    }
    return total / count;
}

/// Logits up to 4 in magnitude, which half holds, with labels of which two are -100.
struct batch {
    matrix<double> logits{6, 10};
    std::vector<int> labels = {0, 9, -100, 3, -100, 1};
    std::vector<float> smoothings = {0.0F, 0.1F, 0.5F, 0.999F};

    batch() {
        logits.randomize(1);
        logits.fill([&](auto r, auto c) { return static_cast<double>(half(4.0 * logits.view(r, c))); });
    }
};

bool all_are_plus_zero(mp::matrix_view<const float> row) {
    for (std::ptrdiff_t c = 0; c < row.columns; ++c) {
        if (mp::detail::bits_of(row(0, c)) != 0) return false;
    }
    return true;
}

TEST_CASE("the loss is that of the definition, with labels that do not count and smoothed ones") {
    const batch b;
    const auto logits = ops_test::cast<float>(b.logits);
    for (const float smoothing : b.smoothings) {
        CAPTURE(smoothing);
        const auto check = [&](const auto& labels, std::optional<std::int64_t> ignored) {
            const auto expected = static_cast<double>(
                reference_loss(b.logits, labels, ignored, static_cast<long double>(smoothing)));
            const float found = mp::ops::softmax_cross_entropy(
                mp::cpu{}, logits.view, labels, {.weight = 0.5F, .scale = 1024.0F},
                {.ignore_index = ignored, .label_smoothing = smoothing});
            CHECK(std::abs(static_cast<double>(found) - expected / 2) < 2e-7 * expected);
        };
        check(b.labels, -100);
        check(std::vector<std::int64_t>{0, 9, 3, 3, 7, 1}, std::nullopt);
        check(std::vector<std::int64_t>{0, 9, 3, 3, 7, 1}, 3);  // a column
        check(std::vector<std::uint8_t>{0, 255, 3, 255, 7, 1}, 255);
        check(std::vector<std::uint8_t>{0, 9, 3, 3, 7, 1}, -1);
        check(std::vector<std::uint64_t>{0, 9, 3, 3, 7, 1}, -1);
    }
}

TEST_CASE("the gradient is that of central differences, in every layout, times weight and scale") {
    batch b;
    const loss_factors factors{.weight = 0.25F, .scale = 1024.0F};
    for (const float smoothing : b.smoothings) {
        const cross_entropy_options options{.ignore_index = -100, .label_smoothing = smoothing};
        matrix<double> expected(6, 10);
        expected.fill([&](auto r, auto c) {
            return 256 * ops_test::derivative(
                             b.logits.view(r, c),
                             [&] {
                                 return static_cast<double>(reference_loss(
                                     b.logits, b.labels, -100, static_cast<long double>(smoothing)));
                             },
                             0x1p-12);
        });
        ops_test::for_each_layout([&](storage_order order, std::ptrdiff_t padding) {
            matrix<float> logits(6, 10, padding, order), gradient(6, 10, 3 - padding, order);
            logits.fill([&](auto r, auto c) { return static_cast<float>(b.logits.view(r, c)); });
            mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, b.labels, gradient.view, factors,
                                                    options);
            double worst = 0;
            for (std::ptrdiff_t r = 0; r < 6; ++r) {
                for (std::ptrdiff_t c = 0; c < 10; ++c) {
                    worst = tests::larger_error(
                        worst, std::abs(static_cast<double>(gradient.view(r, c)) - expected.view(r, c)));
                }
            }
            CHECK(worst < 2e-4);
            CHECK(gradient.padding_is_untouched());
            CHECK(all_are_plus_zero(ops_test::cast<float>(gradient).view.block(2, 0, 1, 10)));
            CHECK(all_are_plus_zero(ops_test::cast<float>(gradient).view.block(4, 0, 1, 10)));
        });
    }
}

/// The largest error of the gradient of rows without ignored labels, of the bound that is promised.
double worst_error(std::ptrdiff_t columns, float span, float smoothing, loss_factors factors) {
    matrix<float> logits(4, columns), gradient(4, columns);
    logits.randomize(7);
    logits.fill([&](auto r, auto c) { return span * logits.view(r, c); });
    const std::vector<std::int64_t> labels = {0, columns - 1, -100, columns / 2};
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, gradient.view, factors,
                                            {.ignore_index = -100, .label_smoothing = smoothing});
    const long double factor =
        static_cast<long double>(factors.weight) * static_cast<long double>(factors.scale) / 3;
    double worst = 0;
    for (const std::ptrdiff_t r : {0, 1, 3}) {
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double p = std::exp(log_probability(logits, r, c));
            const long double share =
                target(c, labels[static_cast<std::size_t>(r)], columns, static_cast<long double>(smoothing));
            const long double bound = 0x1p-21L * std::max(p, share) * factor + 0x1p-149L;
            const auto found = static_cast<long double>(gradient.view(r, c));
            worst = tests::larger_error(worst,
                                        static_cast<double>(std::abs(found - (p - share) * factor) / bound));
        }
    }
    return worst;
}

TEST_CASE("gradients of smoothed labels are as exact as promised, whatever the factors") {
    for (const std::ptrdiff_t columns : {1, 2, 33, 1000}) {
        for (const float smoothing : {0.0F, 0x1p-30F, 0.1F, 0.9F}) {
            CAPTURE(columns);
            CAPTURE(smoothing);
            CHECK(worst_error(columns, 1.0F, smoothing, {}) < 1);
            CHECK(worst_error(columns, 30.0F, smoothing, {.scale = 1024.0F}) < 1);
            CHECK(worst_error(columns, 30.0F, smoothing, {.weight = 0x1p-110F}) < 1);
            CHECK(worst_error(columns, 30.0F, smoothing, {.weight = 0x1p100F, .scale = 0x1p24F}) < 1);
        }
    }
}

TEST_CASE("losses of large and of close logits keep their digits") {
    for (const float shift : {0.0F, 1e4F, -1e30F, 3e38F}) {
        matrix<float> logits(1, 12);
        logits.fill([&](auto, auto) { return shift; });
        const float loss = mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, std::vector<int>{5}, {},
                                                          {.label_smoothing = 0.3F});
        CHECK(loss == static_cast<float>(std::log(12.0)));
    }
    matrix<float> far(1, 2);
    far.fill([](auto, auto c) { return c == 0 ? 3e38F : -3e38F; });
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, far.view, std::vector<int>{0}, {},
                                         {.label_smoothing = 0.5F}) == doctest::Approx(1.5e38));
}

TEST_CASE("what is not asked for changes no bit") {
    const batch b;
    const auto logits = ops_test::cast<half>(b.logits);
    const std::vector<int> labels = {0, 9, 3, 3, 7, 1};
    matrix<float> plain(6, 10), none(6, 10);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, plain.view, {.scale = 3.0F});
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, none.view, {.scale = 3.0F},
                                            {.ignore_index = -100});
    CHECK(same_bits(plain, none));
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels) ==
          mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, {}, {.ignore_index = 4}));
    // Rows that do not count could as well not be there.
    matrix<half> first(3, 10);
    first.fill([&](auto r, auto c) { return logits.view(r, c); });
    matrix<float> of_first(3, 10);
    const cross_entropy_options smoothed{.ignore_index = -100, .label_smoothing = 0.2F};
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, first.view, std::vector<int>{0, 9, 3}, of_first.view,
                                            {}, smoothed);
    const std::vector<int> some = {0, 9, 3, -100, -100, -100};
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, some, none.view, {}, smoothed);
    matrix<float> counted(3, 10);
    counted.fill([&](auto r, auto c) { return none.view(r, c); });
    CHECK(same_bits(of_first, counted));
    CHECK(mp::ops::softmax_cross_entropy(mp::cpu{}, first.view, std::vector<int>{0, 9, 3}, {}, smoothed) ==
          mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, some, {}, smoothed));
}

TEST_CASE("logits of rows that do not count do not matter, and no rows at all have the loss NaN") {
    matrix<float> logits(4, 5), gradient(4, 5);
    logits.randomize(3);
    const std::vector<int> labels = {1, 7, 4, 7};
    for (const float bad : {not_a_number, -not_a_number, infinity, -infinity}) {
        logits.view(1, 2) = bad;
        logits.fill([&](auto r, auto c) { return r == 3 ? bad : logits.view(r, c); });
        for (const float smoothing : {0.0F, 0.25F}) {
            const cross_entropy_options options{.ignore_index = 7, .label_smoothing = smoothing};
            std::vector<float> losses(4, 9.0F);
            float loss = -1;
            mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, logits.view, labels, &loss, losses,
                                                         gradient.view, {.weight = 2.0F}, options);
            CHECK(mp::isfinite(loss));
            CHECK(losses[1] == 0.0F);
            CHECK(losses[3] == 0.0F);
            CHECK(std::abs(losses[0] + losses[2] - loss) < 1e-6F);  // the weight is the number of rows
            CHECK(all_are_plus_zero(gradient.view.block(1, 0, 1, 5)));
            CHECK(all_are_plus_zero(gradient.view.block(3, 0, 1, 5)));
            const std::vector<int> none(4, 7);
            CHECK(mp::isnan(mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, none, {}, options)));
            gradient.fill([](auto, auto) { return -1.0F; });
            CHECK(mp::isnan(mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, logits.view, none,
                                                                         gradient.view, {}, options)));
            for (std::ptrdiff_t r = 0; r < 4; ++r) {
                CHECK(all_are_plus_zero(gradient.view.block(r, 0, 1, 5)));
            }
        }
    }
}

TEST_CASE("what is not finite in rows that count reaches the loss and their gradient") {
    matrix<float> logits(3, 4), gradient(3, 4);
    const std::vector<int> labels = {1, 2, 0};
    const auto run = [&](float value, float smoothing) {
        logits.randomize(5);
        logits.view(1, 3) = value;
        return mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, logits.view, labels, gradient.view, {},
                                                            {.label_smoothing = smoothing});
    };
    for (const float bad : {not_a_number, infinity}) {
        CHECK(mp::isnan(run(bad, 0.1F)));
        for (std::ptrdiff_t c = 0; c < 4; ++c) {
            CHECK(mp::isnan(gradient.view(1, c)));
            CHECK(mp::isfinite(gradient.view(0, c)));
        }
    }
    // A class that cannot be is no harm, until it has a share in every label.
    CHECK(mp::isfinite(run(-infinity, 0.0F)));
    CHECK(mp::detail::bits_of(gradient.view(1, 3)) == 0);
    CHECK(run(-infinity, 0.1F) == infinity);
    CHECK(gradient.view(1, 3) == doctest::Approx(-0.1 / 4 / 3));
}

TEST_CASE("losses and gradients are torch's") {
    // torch.nn.functional.cross_entropy of torch 2.15 on doubles, and its gradient.
    struct recorded {
        std::vector<int> labels;
        cross_entropy_options options;
        double loss;
        std::vector<double> row_losses;
        std::vector<double> gradient;
    };
    const recorded all[] = {
        {{3, 1, 0},
         {.ignore_index = -100, .label_smoothing = 0.1F},
         1.5193188446815877,
         {0.7923642146894941, 0.37742515156059486, 3.388167167794674},
         {0.09283428975, 0.009246963479, 0.03945486803, -0.1415361213, 0.006095345891, -0.01852556402,
          -0.003025318883, 0.01545553701, -0.298824456, 0.08188438328, 0.1826575742, 0.03428249846}},
        {{3, -100, 0},
         {.ignore_index = -100},
         2.1246406912420839,
         {0.692364214689494, 0.0, 3.556917167794674},
         {0.1517514346, 0.02637044522, 0.07168230204, -0.2498041819, 0, 0, 0, 0, -0.4857366839, 0.1353265749,
          0.2864863613, 0.06392374769}},
        {{3, -100, 0},
         {.ignore_index = -100, .label_smoothing = 0.25F},
         2.0387031912420839,
         {0.942364214689494, 0.0, 3.135042167794674},
         {0.1205014346, -0.004879554782, 0.04043230204, -0.1560541819, 0, 0, 0, 0, -0.3919866839,
          0.1040765749, 0.2552363613, 0.03267374769}},
        {{2, 1, 2},
         {.ignore_index = 2, .label_smoothing = 0.25F},
         0.73367515156059482,
         {0.0, 0.7336751515605948, 0.0},
         {0, 0, 0, 0, -0.01921396233, 0.05692330794, -0.04657595665, 0.008866611036, 0, 0, 0, 0}}};
    const std::vector<float> logits = {1.5F,  -0.25F, 0.75F, 2.0F,  0.0F, 3.0F,
                                       -1.0F, 0.5F,   -2.0F, 0.25F, 1.0F, -0.5F};
    for (const recorded& it : all) {
        float loss = 0;
        std::vector<float> losses(3), gradient(12);
        mp::ops::softmax_cross_entropy_with_gradient(mp::cpu{}, mp::row_major(logits.data(), 3, 4), it.labels,
                                                     &loss, losses, mp::row_major(gradient.data(), 3, 4), {},
                                                     it.options);
        CHECK(std::abs(static_cast<double>(loss) - it.loss) < 2e-7);
        for (std::size_t i = 0; i < 3; ++i) {
            CHECK(std::abs(static_cast<double>(losses[i]) - it.row_losses[i]) < 3e-7);
        }
        for (std::size_t i = 0; i < 12; ++i) {
            CHECK(std::abs(static_cast<double>(gradient[i]) - it.gradient[i]) < 1e-7);
        }
    }
}

TEST_CASE("errors name the option and its value, and nothing is written") {
    const mp::cpu exec{};
    matrix<float> logits(2, 3), gradient(2, 3);
    logits.randomize(1);
    std::vector<float> losses(2, -88.0F);
    float loss = -88.0F;
    const auto fails = [&](const std::vector<int>& labels, const cross_entropy_options& options) {
        const std::string name = "mp::ops::softmax_cross_entropy";
        const std::string forward =
            message_of([&] { (void)mp::ops::softmax_cross_entropy(exec, logits.view, labels, {}, options); });
        const std::string backward = message_of([&] {
            mp::ops::softmax_cross_entropy_backward(exec, logits.view, labels, gradient.view, {}, options);
        });
        const std::string both = message_of([&] {
            mp::ops::softmax_cross_entropy_with_gradient(exec, logits.view, labels, &loss, losses,
                                                         gradient.view, {}, options);
        });
        CHECK(forward == message_of([&] {
                  mp::ops::softmax_cross_entropy(exec, logits.view, labels, &loss, losses, {}, options);
              }));
        CHECK(gradient.elements == std::vector<float>(6, -88.0F));
        CHECK(losses == std::vector<float>(2, -88.0F));
        CHECK(loss == -88.0F);
        REQUIRE(backward.starts_with(name + "_backward"));
        REQUIRE(both.starts_with(name + "_with_gradient"));
        CHECK(forward.substr(name.size()) == backward.substr(name.size() + 9));
        CHECK(forward.substr(name.size()) == both.substr(name.size() + 14));
        return forward.substr(name.size());
    };
    const std::string range = "; it must be at least 0 and below 1";
    CHECK(fails({0, 2}, {.label_smoothing = 1.0F}) == ": options.label_smoothing is 1" + range);
    CHECK(fails({0, 2}, {.label_smoothing = -0.5F}) == ": options.label_smoothing is -0.5" + range);
    CHECK(fails({0, 2}, {.label_smoothing = not_a_number}) == ": options.label_smoothing is nan" + range);
    CHECK(fails({0, 2}, {.label_smoothing = infinity}) == ": options.label_smoothing is inf" + range);
    CHECK(fails({-100, 3}, {.ignore_index = -100}) ==
          ": labels[1] is 3; it must be a column of logits, from 0 to 2, or options.ignore_index, which is "
          "-100");
    CHECK(fails({0, -100}, {}) == ": labels[1] is -100; it must be a column of logits, from 0 to 2");
    const auto fails_to_memory = [&](float* to, std::span<float> rows, mp::matrix_view<float> dlogits) {
        return message_of([&] {
            mp::ops::softmax_cross_entropy_with_gradient(exec, logits.view, std::vector<int>{0, 2}, to, rows,
                                                         dlogits);
        });
    };
    CHECK(fails_to_memory(nullptr, losses, gradient.view) ==
          "mp::ops::softmax_cross_entropy_with_gradient: loss is 'null'; it must be a float in the memory of "
          "the executor");
    CHECK(fails_to_memory(&loss, std::span(losses).first(1), gradient.view) ==
          "mp::ops::softmax_cross_entropy_with_gradient: row_losses.size() is 1; it must equal logits.rows, "
          "which is 2");
    CHECK(fails_to_memory(&loss, losses, mp::row_major(gradient.view.data, 3, 2)) ==
          "mp::ops::softmax_cross_entropy_with_gradient: dlogits.rows is 3; it must equal logits.rows, which "
          "is 2");
    CHECK(fails_to_memory(&loss, std::span(gradient.elements).first(2), gradient.view)
              .starts_with("mp::ops::softmax_cross_entropy_with_gradient: dlogits overlaps row_losses"));
    CHECK(fails_to_memory(&loss, std::span(logits.elements).first(2), gradient.view)
              .starts_with("mp::ops::softmax_cross_entropy_with_gradient: row_losses overlaps logits"));
    CHECK(loss == -88.0F);
    CHECK(gradient.elements == std::vector<float>(6, -88.0F));
}

}  // namespace
