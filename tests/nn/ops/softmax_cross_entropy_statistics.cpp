// SPDX-License-Identifier: MIT
// The statistics of rows that a loss writes, and the gradient from them: against the definition in long double.
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/error.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/softmax_cross_entropy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "larger_error.hpp"
#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::cross_entropy_options;
using mp::ops::loss_factors;
using ops_test::matrix;
using ops_test::same_bits;

constexpr cross_entropy_options plain{};
constexpr cross_entropy_options smoothed{.ignore_index = -100, .label_smoothing = 0.1F};

std::vector<int> some_labels(std::ptrdiff_t rows, std::ptrdiff_t columns, bool some_ignored) {
    std::vector<int> labels(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < labels.size(); ++i) {
        labels[i] =
            some_ignored && i % 5 == 2 ? -100 : static_cast<int>(i * 7 % static_cast<std::size_t>(columns));
    }
    return labels;
}

bool is_plus_zero(auto value) {
    const auto number = static_cast<double>(value);
    return number == 0 && !std::signbit(number);
}

/// Fills the room of the rows' results with what no result is.
template <class Real>
std::vector<Real> room(std::ptrdiff_t rows) {
    return std::vector<Real>(static_cast<std::size_t>(rows), Real{-77});
}
template <class Real = float>
std::vector<mp::ops::basic_softmax_statistics<Real>> statistics_room(std::ptrdiff_t rows) {
    return {static_cast<std::size_t>(rows), mp::ops::basic_softmax_statistics<Real>{-77, -77}};
}

/// Checks statistics and gradients of logits from -span to span.
template <class Logit, class Gradient>
void check_gradient(std::ptrdiff_t rows, std::ptrdiff_t columns, double span,
                    const cross_entropy_options& options, const loss_factors& factors) {
    using real = std::conditional_t<std::is_same_v<Logit, double>, double, float>;
    constexpr bool is_double = std::is_same_v<Logit, double>;
    CAPTURE(columns);
    CAPTURE(span);
    CAPTURE(factors.scale);
    matrix<Logit> logits(rows, columns);
    matrix<Gradient> dlogits(rows, columns);
    logits.fill([&, state = 12345U](auto, auto) mutable {
        state = state * 1664525U + 1013904223U;
        return Logit(static_cast<float>((static_cast<double>(state) / 4294967296.0 * 2 - 1) * span));
    });
    const auto labels = some_labels(rows, columns, options.ignore_index.has_value());
    auto losses = room<real>(rows);
    auto statistics = statistics_room<real>(rows);
    real loss = 0;
    mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &loss, losses, factors, options,
                                   statistics);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, dlogits.view, factors, options,
                                            statistics);
    CHECK(loss == mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, factors, options));

    const auto counted = rows - std::count(labels.begin(), labels.end(), -100);
    const long double factor =
        static_cast<long double>(factors.weight) * factors.scale / static_cast<long double>(counted);
    const long double smoothing = options.label_smoothing;
    long double worst = 0, worst_others = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        if (labels[i] == -100) {
            CHECK(statistics[i] == mp::ops::basic_softmax_statistics<real>{});
            for (std::ptrdiff_t c = 0; c < columns; ++c) CHECK(is_plus_zero(dlogits.view(r, c)));
            continue;
        }
        const auto logit = [&](std::ptrdiff_t c) {
            return static_cast<long double>(static_cast<double>(logits.view(r, c)));
        };
        long double largest = logit(0), sum = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) largest = std::max(largest, logit(c));
        for (std::ptrdiff_t c = 0; c < columns; ++c) sum += std::exp(logit(c) - largest);
        const long double log_sum = largest + std::log(sum);
        long double others = -1;
        for (std::ptrdiff_t c = columns; c-- > 0;) others += std::exp(logit(c) - largest);
        CHECK(static_cast<long double>(statistics[i].max) == largest);
        worst_others = tests::larger_error(
            worst_others, std::fabs(others - static_cast<long double>(statistics[i].others)) / (1 + others));
        CHECK(std::fabs(static_cast<long double>(statistics[i].log_sum()) - log_sum) <=
              (is_double ? 0x1p-48L : 0x1p-22L) * std::max(1.0L, std::fabs(log_sum)));
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double p = std::exp(logit(c) - log_sum);
            const long double share =
                (c == labels[i] ? 1 - smoothing : 0) + smoothing / static_cast<long double>(columns);
            constexpr long double relative = std::is_same_v<Gradient, half>       ? 0x1p-11L
                                             : std::is_same_v<Gradient, bfloat16> ? 0x1p-8L
                                                                                  : 0;
            constexpr long double subnormal = std::is_same_v<Gradient, half>       ? 0x1p-25L
                                              : std::is_same_v<Gradient, bfloat16> ? 0x1p-133L
                                                                                   : 0x1p-140L;
            const long double exact = (p - share) * factor;
            const long double of_terms = is_double ? 0x1p-44L : 0x1p-21L;
            const long double bound =
                of_terms * std::max(p, share) * factor + relative * std::fabs(exact) + subnormal;
            const auto found = static_cast<long double>(static_cast<double>(dlogits.view(r, c)));
            worst = tests::larger_error(worst, std::fabs(found - exact) / bound);
        }
    }
    CHECK(worst_others <= (is_double ? 0x1p-50L : 0x1p-23L));
    CHECK(worst <= 1);
}

TEST_CASE("statistics are rounded once, and gradients from them are as close as promised") {
    for (const cross_entropy_options& options : {plain, smoothed}) {
        for (const double span : {0.1, 4.0, 40.0, 300.0}) {
            for (const std::ptrdiff_t columns : {1, 2, 10, 17, 300, 2500}) {
                check_gradient<float, float>(7, columns, span, options, {.weight = 0.7F, .scale = 512.0F});
            }
            check_gradient<half, half>(23, 10, span, options, {.scale = 1024.0F});
            check_gradient<bfloat16, bfloat16>(5, 300, span, options, {.scale = 64.0F});
            check_gradient<half, float>(5, 130, span, options, {});
            check_gradient<float, half>(5, 130, span, options, {.scale = 4096.0F});
            check_gradient<double, double>(5, 33, span, options, {.weight = 0.3F});
            check_gradient<float, double>(5, 33, span, options, {});
        }
    }
}

TEST_CASE("gradients from statistics stand for factors that a float product cannot take in one step") {
    for (const float scale : {0x1p-120F, 0x1p-70F, 0x1p90F, 0x1p120F}) {
        check_gradient<float, float>(5, 20, 10.0, plain, {.scale = scale});
        check_gradient<float, float>(5, 20, 10.0, smoothed, {.scale = scale});
    }
}

TEST_CASE(
    "a gradient from statistics has its bits in every layout, in place, by any threads, in any region") {
    const loss_factors factors{.weight = 0.7F, .scale = 512.0F};
    const auto check = [&]<class Logit>(Logit, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        const auto labels = some_labels(rows, columns, true);
        matrix<Logit> first(rows, columns), expected(rows, columns);
        first.randomize(4);
        auto losses = room<float>(rows);
        auto statistics = statistics_room(rows);
        float loss = 0;
        mp::ops::softmax_cross_entropy(mp::cpu{}, first.view, labels, &loss, losses, factors, smoothed,
                                       statistics);
        mp::ops::softmax_cross_entropy_backward(mp::cpu{}, first.view, labels, expected.view, factors,
                                                smoothed, statistics);
        ops_test::for_each_layout([&](storage_order order, std::ptrdiff_t padding) {
            matrix<Logit> logits(rows, columns, padding, order), found(rows, columns, 3 - padding, order);
            logits.fill([&](auto r, auto c) { return first.view(r, c); });
            auto again = statistics_room(rows);
            mp::ops::softmax_cross_entropy(mp::cpu{.threads = 3}, logits.view, labels, &loss, losses, factors,
                                           smoothed, again);
            CHECK(again == statistics);
            const mp::autocast_region region(mp::precision::fp16);
            mp::ops::softmax_cross_entropy_backward(mp::cpu{.threads = 3}, logits.view, labels, found.view,
                                                    factors, smoothed, statistics);
            CHECK(same_bits(found, expected));
            CHECK(found.padding_is_untouched());
            mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, logits.view, factors,
                                                    smoothed, statistics);
            CHECK(same_bits(logits, expected));
        });
    };
    check(float{}, 23, 10);
    check(half{}, 23, 10);
    check(bfloat16{}, 5, 300);
    check(float{}, 3000, 12);
}

TEST_CASE("rows without a meaning have statistics and gradients of NaN, far smaller logits a gradient of 0") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    matrix<float> logits(4, 3), dlogits(4, 3);
    logits.fill([&](auto r, auto c) {
        if (r == 0 && c == 1) return std::numeric_limits<float>::quiet_NaN();
        if (r == 1 && c == 2) return infinity;
        if (r == 2) return -infinity;
        return r == 3 && c == 0 ? -infinity : c == 1 ? -1e30F : 2.0F;
    });
    const std::vector<int> labels = {0, 1, 2, 2};
    auto losses = room<float>(4);
    auto statistics = statistics_room(4);
    float loss = 0;
    mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &loss, losses, {}, {}, statistics);
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, dlogits.view, {}, {}, statistics);
    CHECK(std::isnan(loss));
    for (std::ptrdiff_t r = 0; r < 3; ++r) {
        CHECK(std::isnan(statistics[static_cast<std::size_t>(r)].max));
        for (std::ptrdiff_t c = 0; c < 3; ++c) CHECK(std::isnan(dlogits.view(r, c)));
    }
    CHECK(statistics[3] == mp::ops::softmax_statistics{2.0F, 0.0F});
    CHECK(dlogits.view(3, 0) == 0);
    CHECK(dlogits.view(3, 1) == 0);
    CHECK(dlogits.view(3, 2) == 0);
}

TEST_CASE("statistics of other logits give infinite gradients, not plausible ones") {
    matrix<float> logits(1, 20), dlogits(1, 20);
    logits.fill([](auto, auto) { return 300.0F; });
    const std::vector<mp::ops::softmax_statistics> statistics = {{1.0F, 0.0F}};
    mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, std::vector<int>{0}, dlogits.view, {}, {},
                                            statistics);
    for (std::ptrdiff_t c = 0; c < 20; ++c) CHECK(std::isinf(dlogits.view(0, c)));
}

TEST_CASE("statistics of another size, or over the logits, are named, and nothing is written") {
    matrix<float> logits(4, 3), dlogits(4, 3);
    logits.randomize(1);
    const auto before = ops_test::cast<float>(logits);
    const std::vector<int> labels = {0, 1, 2, 2};
    auto memory = room<float>(8);
    const std::span<float> losses = std::span(memory).first(4);
    auto statistics = statistics_room(3);
    // Never read or written, as the calls fail.
    const auto over = [](float* at) {
        return std::span(reinterpret_cast<mp::ops::softmax_statistics*>(at), 4);
    };
    float loss = -5;
    const auto fails = [&](auto call) {
        try {
            call();
        } catch (const mp::argument_error& error) {
            return std::string(error.what()).find("statistics") != std::string::npos;
        }
        return false;
    };
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &loss, losses, {}, {}, statistics);
    }));
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, dlogits.view, {}, {},
                                                statistics);
    }));
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &loss, losses, {}, {},
                                       over(&logits.view(0, 0)));
    }));
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &loss, losses, {}, {},
                                       over(memory.data()));
    }));
    std::vector<float> of_rows = room<float>(8);
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy(mp::cpu{}, logits.view, labels, &of_rows[2], losses, {}, {},
                                       over(of_rows.data()));
    }));
    CHECK(of_rows == room<float>(8));
    CHECK(fails([&] {
        mp::ops::softmax_cross_entropy_backward(mp::cpu{}, logits.view, labels, dlogits.view, {}, {},
                                                over(&dlogits.view(0, 0)));
    }));
    CHECK(loss == -5);
    CHECK(memory == room<float>(8));
    CHECK(same_bits(logits, before));
}

}  // namespace
