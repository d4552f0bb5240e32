// SPDX-License-Identifier: MIT
// Float results of the row ops and of activations at every odd number of columns up to 130, in every layout
// and at extreme magnitudes, against 50 decimal digits: the errors are those that the doc comments promise.
#include <doctest/doctest.h>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include <boost/multiprecision/cpp_bin_float.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::layouts;
using gpu_test::matrix;
using gpu_test::simulated;
using gpu_test::watched;
using exact = boost::multiprecision::cpp_bin_float_50;

constexpr float magnitudes[] = {1e-40F, 1.0F, 90.0F, 7e35F};
constexpr std::ptrdiff_t rows = 2;

/// Calls check(columns, layout of what is read, of what is written) for odd numbers of columns.
template <class Check>
void for_odd_columns(Check check, std::ptrdiff_t first = 1, std::ptrdiff_t step = 2) {
    std::size_t i = 0;
    for (std::ptrdiff_t columns = first; columns < 130; columns += step, ++i) {
        CAPTURE(columns);
        check(columns, layouts[i % 5], layouts[i / 2 % 5]);
    }
}

/// How many times the bound an error is. A result that has to be infinite in float has no error if it is.
double fraction_of(float found, const exact& expected, const exact& bound) {
    const float rounded = expected.convert_to<float>();
    if (std::isinf(rounded) && found == rounded) return 0;
    const exact share = abs(exact(found) - expected) / bound;
    return gpu_test::is_nan(found) ? 1e9 : share.convert_to<double>();
}

/// A row of softmax before it is divided by the sum.
struct exponentials {
    exact largest = -1e40;
    exact sum = 0;
    std::vector<exact> terms;

    exponentials(const matrix<float>& x, std::ptrdiff_t row) {
        for (std::ptrdiff_t c = 0; c < x.view.columns; ++c)
            largest = std::max(largest, exact(x.view(row, c)));
        for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) {
            const exact distance = exact(x.view(row, c)) - largest;
            terms.push_back(distance < -1000 ? exact(0) : exact(exp(distance)));
            sum += terms.back();
        }
    }
};

TEST_CASE("softmax, its logarithm and cross entropy are as close to the exact ones as promised") {
    // Each number of columns has two of the magnitudes.
    for (const std::size_t turn : {0U, 1U}) {
        for_odd_columns([&](std::ptrdiff_t columns, const layout& in, const layout& out) {
            const float span = magnitudes[(static_cast<std::size_t>(columns / 2) + 2 * turn) % 4];
            CAPTURE(span);
            matrix<float> x(rows, columns, in), y(rows, columns, out), z(rows, columns, out),
                dx(rows, columns, out);
            x.randomize(static_cast<unsigned>(columns), span);
            mp::ops::softmax(watched(simulated{.seed = 1}), x.view, y.view);
            mp::ops::log_softmax(watched(simulated{.seed = 2}), x.view, z.view);
            const std::vector<int> labels{static_cast<int>(columns) / 2, 0};
            float loss = -1;
            std::vector<float> losses(rows);
            mp::ops::softmax_cross_entropy_with_gradient(watched(simulated{.seed = 3}), x.view, labels, &loss,
                                                         losses, dx.view, {0.75F, 1024.0F});
            const exact factor = exact(0.75) * 1024 / rows;
            double worst = 0, worst_logarithm = 0, worst_slope = 0, worst_loss = 0;
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                const exponentials row(x, r);
                const exact logarithm = log(row.sum);
                const auto label = labels[static_cast<std::size_t>(r)];
                for (std::ptrdiff_t c = 0; c < columns; ++c) {
                    const exact p = row.terms[static_cast<std::size_t>(c)] / row.sum;
                    worst = tests::larger_error(worst, fraction_of(y.view(r, c), p, 0x1p-21 * p + 0x1p-148));
                    const exact log_p = exact(x.view(r, c)) - row.largest - logarithm;
                    worst_logarithm = tests::larger_error(
                        worst_logarithm,
                        fraction_of(z.view(r, c), log_p, 0x1p-21 * std::max(exact(1), exact(-log_p))));
                    const exact slope = (p - (c == label ? 1 : 0)) * factor;
                    worst_slope = tests::larger_error(
                        worst_slope, fraction_of(dx.view(r, c), slope,
                                                 0x1p-21 * factor * (c == label ? exact(1) : p) + 0x1p-140));
                }
                const exact row_loss = logarithm + row.largest - exact(x.view(r, label));
                worst_loss =
                    tests::larger_error(worst_loss, fraction_of(losses[static_cast<std::size_t>(r)], row_loss,
                                                                0x1p-21 * std::max(exact(1), row_loss)));
            }
            CHECK(worst <= 1);
            CHECK(worst_logarithm <= 1);
            CHECK(worst_slope <= 1);
            CHECK(worst_loss <= 1);
            CHECK((y.is_contained() && z.is_contained() && dx.is_contained()));
        });
    }
}

template <bool Centered>
void check_normalization(float span, float offset, float epsilon) {
    CAPTURE(span);
    CAPTURE(offset);
    for_odd_columns([&](std::ptrdiff_t columns, const layout& in, const layout& out) {
        matrix<float> x(rows, columns, in), y(rows, columns, out);
        matrix<float> gamma(1, columns, {{}, 0, 1}), beta(1, columns);
        x.randomize(static_cast<unsigned>(columns), span).fill([&](auto r, auto c) {
            return x.view(r, c) + offset;
        });
        gamma.randomize(2, 2.0F);
        beta.randomize(3);
        const auto size = static_cast<std::size_t>(columns);
        const std::span gammas(gamma.view.data, size);
        const std::span betas(beta.view.data, size);
        if constexpr (Centered) {
            mp::ops::layer_norm(watched(simulated{.seed = 5}), x.view, gammas, betas, y.view,
                                {.epsilon = epsilon});
        } else {
            mp::ops::rms_norm(watched(simulated{.seed = 5}), x.view, gammas, y.view, {.epsilon = epsilon});
        }
        double worst = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            exact mean = 0, squares = 0;
            for (std::ptrdiff_t c = 0; Centered && c < columns; ++c) mean += exact(x.view(r, c)) / columns;
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const exact distance = exact(x.view(r, c)) - mean;
                squares += distance * distance;
            }
            const exact inverse = 1 / sqrt(exact(squares / columns + exact(epsilon)));
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const auto i = static_cast<std::size_t>(c);
                const exact scaled = (exact(x.view(r, c)) - mean) * inverse * gammas[i];
                const exact expected = scaled + (Centered ? betas[i] : 0.0F);
                // The mean is a double's: what is left of it where elements are all but the same.
                const exact bound = 0x1p-21 * abs(scaled) + 0x1p-24 * abs(expected) +
                                    0x1p-45 * abs(mean) * inverse + 0x1p-126;
                worst = tests::larger_error(worst, fraction_of(y.view(r, c), expected, bound));
            }
        }
        CHECK(worst <= 1);
        CHECK(y.is_contained());
    });
}

TEST_CASE("layer and rms norm are as close to the exact ones as promised") {
    for (const float span : {1e-40F, 1.0F, 7e35F}) check_normalization<true>(span, 0.0F, 1e-5F);
    for (const float span : {1.0F, 3e38F}) check_normalization<false>(span, 0.0F, 1e-5F);
    check_normalization<true>(1.0F, 1e5F, 1e-5F);
    check_normalization<true>(1e-30F, 0.0F, 1e-30F);
    check_normalization<false>(1e-30F, 1e-30F, 0.0F);
}

/// The value of an activation in units in the last place of the exact one, and the slope's absolute error.
template <class Value, class Slope, class ExactValue, class ExactSlope>
void check_activation(float span, std::ptrdiff_t first, double units, double slope_error, Value value,
                      Slope slope, ExactValue exact_value, ExactSlope exact_slope) {
    CAPTURE(span);
    const auto check = [&](std::ptrdiff_t columns, const layout& in, const layout& out) {
        matrix<float> x(rows, columns, in), dy(rows, columns, in), y(rows, columns, out),
            dx(rows, columns, out);
        x.randomize(static_cast<unsigned>(columns), span);
        dy.fill([](auto, auto) { return -2.0F; });
        value(watched(simulated{.seed = 6}), x.view, y.view);
        slope(watched(simulated{.seed = 7}), x.view, dy.view, dx.view);
        double worst = 0, worst_slope = 0;
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; c += 3) {
                const exact expected = exact_value(exact(x.view(r, c)));
                const double near = expected.template convert_to<double>();
                const double unit =
                    near == 0 ? 0x1p-149 : std::ldexp(1.0, std::max(std::ilogb(near) - 23, -149));
                worst = tests::larger_error(worst, fraction_of(y.view(r, c), expected, exact(units * unit)));
                const exact expected_slope = -2 * exact_slope(exact(x.view(r, c)));
                worst_slope = tests::larger_error(
                    worst_slope, fraction_of(dx.view(r, c), expected_slope, exact(2 * slope_error)));
            }
        }
        CHECK(worst <= 1);
        CHECK(worst_slope <= 1);
        CHECK((y.is_contained() && dx.is_contained()));
    };
    for_odd_columns(check, first, 10);  // with those of the other magnitudes every odd number
}

exact logistic(const exact& x) {
    if (x < -2000) return 0;
    return 1 / (1 + exp(exact(-x)));
}
exact normal(const exact& x) {
    if (x < -100) return 0;
    return boost::math::erfc(exact(-x / sqrt(exact(2)))) / 2;
}
exact density(const exact& x) {
    if (abs(x) > 100) return 0;
    return exp(exact(-x * x / 2)) / sqrt(exact(2 * boost::math::constants::pi<exact>()));
}
exact tanh_argument(const exact& x) {
    return 2 * sqrt(exact(2 / boost::math::constants::pi<exact>())) * (x + exact("0.044715") * x * x * x);
}
exact tanh_argument_slope(const exact& x) {
    return 2 * sqrt(exact(2 / boost::math::constants::pi<exact>())) * (1 + 3 * exact("0.044715") * x * x);
}

TEST_CASE("gelu and silu are as close to the exact ones as promised, and so are their slopes") {
    std::ptrdiff_t first = 1;
    for (const float span : {1e-40F, 1.0F, 14.0F, 90.0F, 3e38F}) {
        check_activation(
            span, first, 4, 0x1p-22, [](auto exec, auto x, auto y) { mp::ops::silu(exec, x, y); },
            [](auto exec, auto x, auto dy, auto dx) { mp::ops::silu_backward(exec, x, dy, dx); },
            [](const exact& x) { return exact(x * logistic(x)); },
            [](const exact& x) {
                const exact s = logistic(x);
                return exact(s + x * s * logistic(-x));
            });
        check_activation(
            span, first, 5, 0x1p-22, [](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y); },
            [](auto exec, auto x, auto dy, auto dx) { mp::ops::gelu_backward(exec, x, dy, dx); },
            [](const exact& x) { return exact(x * normal(x)); },
            [](const exact& x) { return exact(normal(x) + x * density(x)); });
        using mp::ops::gelu_formula;
        check_activation(
            span, first, 4, 0x1p-21,
            [](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y, gelu_formula::tanh); },
            [](auto exec, auto x, auto dy, auto dx) {
                mp::ops::gelu_backward(exec, x, dy, dx, gelu_formula::tanh);
            },
            [](const exact& x) { return exact(x * logistic(tanh_argument(x))); },
            [](const exact& x) {
                const exact s = logistic(tanh_argument(x));
                return exact(s + x * tanh_argument_slope(x) * s * logistic(-tanh_argument(x)));
            });
        first += 2;
    }
}

}  // namespace
