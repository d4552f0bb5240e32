// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/normalization.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::absent;
using mp::ops::normalization_statistics;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::random_vector;
using ops_test::same_bits;
using wide = boost::multiprecision::cpp_bin_float_50;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::layer_norm_op, mp::matrix_view<const half>>, float>);
static_assert(
    std::same_as<ac::compute_type_t<ac::bf16, mp::ops::rms_norm_backward_op, mp::matrix_view<const half>>,
                 float>);

/// The normalization and its gradients as the closed forms say, in 50 digits.
struct closed_form {
    std::vector<wide> normalized;
    wide mean = 0;
    wide inverse = 0;

    template <class Value>
    closed_form(const matrix<Value>& x, std::ptrdiff_t row, bool centered, float epsilon) {
        const auto count = static_cast<int>(x.view.columns);
        for (std::ptrdiff_t c = 0; c < count && centered; ++c)
            mean += wide(static_cast<double>(x.view(row, c)));
        mean /= count;
        wide squares = 0;
        for (std::ptrdiff_t c = 0; c < count; ++c) {
            normalized.push_back(wide(static_cast<double>(x.view(row, c))) - mean);
            squares += normalized.back() * normalized.back();
        }
        inverse = 1 / sqrt(squares / count + wide(epsilon));
        for (wide& value : normalized) value *= inverse;
    }

    struct gradient {
        wide value;
        double bound;  ///< of the error that is documented
    };
    /// Given the gradient of the normalized row times gamma.
    std::vector<gradient> dx(const std::vector<wide>& g, bool centered) const {
        const auto count = static_cast<int>(g.size());
        wide sum = 0, along = 0, magnitudes = 0, along_magnitudes = 0;
        for (std::size_t c = 0; c < g.size(); ++c) {
            if (centered) sum += g[c];
            if (centered) magnitudes += abs(g[c]);
            along += g[c] * normalized[c];
            along_magnitudes += abs(g[c] * normalized[c]);
        }
        std::vector<gradient> result;
        for (std::size_t c = 0; c < g.size(); ++c) {
            const wide value = inverse * (g[c] - sum / count - normalized[c] * along / count);
            const wide terms = abs(g[c]) + magnitudes / count + abs(normalized[c]) * along_magnitudes / count;
            result.push_back({value, static_cast<double>(wide(0x1p-20 * inverse * terms))});
        }
        return result;
    }
};

/// Whether `found` is `exact` rounded to Value once, or differs by `extra` before the rounding.
template <class Value>
bool rounded_from(Value found, const wide& exact, double extra) {
    using limits = std::numeric_limits<Value>;
    const auto value = static_cast<double>(exact);
    const double half_ulp = 0.5 * static_cast<double>(limits::denorm_min());
    const int precision = mp::layout_of<mp::detail::format_of_t<Value>>::precision;
    return abs(wide(static_cast<double>(found)) - exact) <=
           wide(std::fmax(std::ldexp(1.0, std::ilogb(value) - precision), half_ulp) * (1 + 1e-9) + extra);
}

template <class X, class G, class Y>
void check_normalization(storage_order order, bool centered, bool affine, bool with_statistics) {
    const std::ptrdiff_t batch = 5, features = 77;
    const float epsilon = 1e-3F;
    matrix<X> x(batch, features, 3, order), dx(batch, features, 1, order);
    matrix<Y> y(batch, features, 2, order), dy(batch, features, 1);
    x.randomize(1);
    dy.randomize(2);
    const auto gamma = random_vector<G>(77, 3), beta = random_vector<G>(77, 4);
    std::vector<normalization_statistics> of_rows(5);
    std::vector<G> dgamma(77), dbeta(77);
    const mp::ops::normalization_options options{.epsilon = epsilon};
    const std::span statistics(of_rows.data(), with_statistics ? of_rows.size() : 0);
    const mp::cpu exec{};
    const auto run = [&](const auto& scale, const auto& shift) {
        if (centered) {
            mp::ops::layer_norm<ac::off>(exec, x.view, scale, shift, y.view, options, statistics);
            mp::ops::layer_norm_backward<ac::off>(exec, x.view, scale, dy.view, dx.view, dgamma, dbeta,
                                                  options, statistics);
        } else {
            mp::ops::rms_norm<ac::off>(exec, x.view, scale, y.view, options, statistics);
            mp::ops::rms_norm_backward<ac::off>(exec, x.view, scale, dy.view, dx.view, dgamma, options,
                                                statistics);
        }
    };
    if (affine) {
        run(gamma, beta);
    } else {
        run(absent, absent);
    }
    // What the inverse deviation has lost by rounding to float: 2^-24 of numbers that are below 4 here.
    const double lost = with_statistics ? 0x1p-20 : 0;
    std::vector<wide> gamma_sums(77), beta_sums(77), gamma_magnitudes(77), beta_magnitudes(77);
    bool y_is_right = true, dx_is_right = true, statistics_are_right = true;
    for (std::ptrdiff_t r = 0; r < batch; ++r) {
        const closed_form row(x, r, centered, epsilon);
        std::vector<wide> g;
        for (std::size_t c = 0; c < 77; ++c) {
            const wide gradient(static_cast<double>(dy.view(r, static_cast<std::ptrdiff_t>(c))));
            g.push_back(gradient * (affine ? wide(static_cast<double>(gamma[c])) : wide(1)));
            gamma_sums[c] += gradient * row.normalized[c];
            beta_sums[c] += gradient;
            gamma_magnitudes[c] += abs(gradient * row.normalized[c]);
            beta_magnitudes[c] += abs(gradient);
            wide expected = row.normalized[c];
            if (affine) expected *= wide(static_cast<double>(gamma[c]));
            if (affine && centered) expected += wide(static_cast<double>(beta[c]));
            y_is_right =
                y_is_right && rounded_from(y.view(r, static_cast<std::ptrdiff_t>(c)), expected, 1e-13);
        }
        const auto expected = row.dx(g, centered);
        for (std::size_t c = 0; c < 77; ++c) {
            dx_is_right = dx_is_right && rounded_from(dx.view(r, static_cast<std::ptrdiff_t>(c)),
                                                      expected[c].value, expected[c].bound + lost);
        }
        const auto i = static_cast<std::size_t>(r);
        if (with_statistics) {
            const auto inverse = static_cast<float>(of_rows[i].inverse_deviation());
            const wide mean_error = abs(wide(of_rows[i].mean()) - row.mean);
            statistics_are_right = statistics_are_right && rounded_from(inverse, row.inverse, 1e-13) &&
                                   mean_error <= abs(row.mean) * 0x1p-46 + 1e-13;
        }
    }
    bool sums_are_right = true;
    for (std::size_t c = 0; c < 77; ++c) {
        const double of_gamma = 0x1p-20 * static_cast<double>(gamma_magnitudes[c]);
        const double of_beta = 0x1p-21 * static_cast<double>(beta_magnitudes[c]);
        sums_are_right = sums_are_right && rounded_from(dgamma[c], gamma_sums[c], of_gamma + lost);
        if (centered) sums_are_right = sums_are_right && rounded_from(dbeta[c], beta_sums[c], of_beta);
    }
    CHECK(y_is_right);
    CHECK(dx_is_right);
    CHECK(sums_are_right);
    CHECK(statistics_are_right);
    CHECK(y.padding_is_untouched());
    CHECK(dx.padding_is_untouched());
}

TEST_CASE(
    "normalization is the closed form in 50 digits, rounded once, and its gradients are as close as "
    "promised") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        for (int bits = 0; bits < 8; ++bits) {
            const bool centered = (bits & 1) != 0, affine = (bits & 2) != 0,
                       with_statistics = (bits & 4) != 0;
            check_normalization<float, float, float>(order, centered, affine, with_statistics);
            check_normalization<half, half, half>(order, centered, affine, with_statistics);
            check_normalization<bfloat16, float, half>(order, centered, affine, with_statistics);
            check_normalization<mp::float8_e4m3fn, bfloat16, float>(order, centered, affine, with_statistics);
        }
    }
}

TEST_CASE("the gradients of normalization are those of central differences") {
    const std::ptrdiff_t batch = 3, features = 6;
    const double epsilon = 0x1p-10;
    for (const bool centered : {true, false}) {
        matrix<double> x(batch, features), gamma(1, features), beta(1, features), t(batch, features);
        unsigned seed = 5;
        for (auto* m : {&x, &gamma, &beta, &t}) {
            m->randomize(seed++);
            m->fill([&](auto r, auto c) { return static_cast<double>(static_cast<float>(m->view(r, c))); });
        }
        const auto loss = [&] {
            double sum = 0;
            for (std::ptrdiff_t r = 0; r < batch; ++r) {
                double mean = 0, squares = 0;
                for (std::ptrdiff_t c = 0; c < features && centered; ++c) mean += x.view(r, c) / 6;
                for (std::ptrdiff_t c = 0; c < features; ++c) squares += std::pow(x.view(r, c) - mean, 2) / 6;
                for (std::ptrdiff_t c = 0; c < features; ++c) {
                    sum += t.view(r, c) *
                           ((x.view(r, c) - mean) / std::sqrt(squares + epsilon) * gamma.view(0, c) +
                            beta.view(0, c));
                }
            }
            return sum;
        };
        const auto fx = cast<float>(x), ft = cast<float>(t);
        const auto fgamma = cast<float>(gamma);
        matrix<float> dx(batch, features);
        std::vector<float> dgamma(6), dbeta(6);
        const mp::ops::normalization_options options{.epsilon = 0x1p-10F};
        if (centered) {
            mp::ops::layer_norm_backward(mp::cpu{}, fx.view, fgamma.elements, ft.view, dx.view, dgamma, dbeta,
                                         options);
        } else {
            mp::ops::rms_norm_backward(mp::cpu{}, fx.view, fgamma.elements, ft.view, dx.view, dgamma,
                                       options);
        }
        // Differences with step h are off by h^2 / 6 times a third derivative, some hundreds here.
        const auto close = [&](float gradient, double& variable) {
            return std::abs(static_cast<double>(gradient) - ops_test::derivative(variable, loss, 0x1p-14)) <
                   1e-5;
        };
        for (std::ptrdiff_t c = 0; c < features; ++c) {
            for (std::ptrdiff_t r = 0; r < batch; ++r) CHECK(close(dx.view(r, c), x.view(r, c)));
            CHECK(close(dgamma[static_cast<std::size_t>(c)], gamma.view(0, c)));
            if (centered) CHECK(close(dbeta[static_cast<std::size_t>(c)], beta.view(0, c)));
        }
    }
}

TEST_CASE("rows with a mean of a million deviations are normalized to the last bit") {
    // In float the variance of such rows would have no digit right.
    const std::ptrdiff_t features = 1000;
    matrix<float> x(1, features), y(1, features), dx(1, features), dy(1, features);
    matrix<half> low(1, features);
    x.randomize(1);
    dy.randomize(2);
    x.fill([&](auto r, auto c) { return 1.0e6F + x.view(r, c); });
    const closed_form row(x, 0, true, 1e-5F);
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, y.view);
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, low.view);
    mp::ops::layer_norm_backward(mp::cpu{}, x.view, absent, dy.view, dx.view, absent, absent);
    std::vector<wide> g;
    for (std::ptrdiff_t c = 0; c < features; ++c) g.emplace_back(static_cast<double>(dy.view(0, c)));
    const auto expected = row.dx(g, true);
    // The documented bound with max |x| / deviation below 2e6.
    const double bound = 1008 * 0x1p-53 * 2e6;
    bool all_right = true;
    for (std::ptrdiff_t c = 0; c < features; ++c) {
        const auto i = static_cast<std::size_t>(c);
        all_right = all_right && rounded_from(y.view(0, c), row.normalized[i], bound);
        all_right = all_right && rounded_from(low.view(0, c), row.normalized[i], bound);
        all_right =
            all_right && rounded_from(dx.view(0, c), expected[i].value, expected[i].bound + 4 * bound);
    }
    CHECK(all_right);
}

TEST_CASE("squares of large and of small floats do no harm") {
    matrix<float> x(2, 4), y(2, 4);
    x.fill([](auto r, auto c) { return (r == 0 ? 0x1p120F : 0x1p-120F) * (c % 2 == 0 ? 1.0F : -1.0F); });
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, y.view, {.epsilon = 0});
    for (const float value : y.elements) CHECK(std::abs(value) == 1.0F);
    mp::ops::rms_norm(mp::cpu{}, x.view, absent, y.view, {.epsilon = 0});
    for (const float value : y.elements) CHECK(std::abs(value) == 1.0F);
}

TEST_CASE("a constant row is normalized to beta") {
    matrix<half> x(1, 5), y(1, 5);
    x.fill([](auto, auto) { return half(3.14F); });
    const std::vector<half> beta = {half(1), half(2), half(3), half(4), half(5)};
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, beta, y.view);
    CHECK(y.elements == beta);
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, beta, y.view, {.epsilon = 0});
    CHECK(mp::isnan(y.view(0, 0)));  // as documented
}

TEST_CASE("NaN and infinity spoil their row and no other") {
    const float infinity = std::numeric_limits<float>::infinity();
    matrix<float> x(3, 4), y(3, 4);
    x.randomize(1);
    x.view(0, 1) = std::numeric_limits<float>::quiet_NaN();
    x.view(2, 3) = infinity;
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, y.view);
    for (std::ptrdiff_t c = 0; c < 4; ++c) {
        CHECK(mp::isnan(y.view(0, c)));
        CHECK(mp::isfinite(y.view(1, c)));
        CHECK(mp::isnan(y.view(2, c)));
    }
    mp::ops::rms_norm(mp::cpu{}, x.view, absent, y.view);
    for (std::ptrdiff_t c = 0; c < 4; ++c) {
        CHECK(mp::isnan(y.view(0, c)));
        CHECK(mp::isfinite(y.view(1, c)));
        CHECK(mp::isnan(y.view(2, c)) == (c == 3));
    }
}

TEST_CASE("a region leaves normalization in float, and the statistics too") {
    matrix<half> x(4, 9), dy(4, 9);
    x.randomize(1);
    dy.randomize(2);
    const auto gamma = random_vector<float>(9, 3);
    const auto run = [&]<class Policy>(Policy) {
        matrix<float> y(4, 9), dx(4, 9);
        std::vector<normalization_statistics> statistics(4);
        std::vector<float> dgamma(9), dbeta(9);
        mp::ops::layer_norm<Policy>(mp::cpu{}, x.view, gamma, absent, y.view, {}, statistics);
        mp::ops::layer_norm_backward<Policy>(mp::cpu{}, x.view, gamma, dy.view, dx.view, dgamma, dbeta, {},
                                             statistics);
        std::vector<float> all;
        for (const auto* part : {&y.elements, &dx.elements, &dgamma, &dbeta}) {
            all.insert(all.end(), part->begin(), part->end());
        }
        return std::pair(all, statistics);
    };
    const auto outside = run(ac::by_region{});
    CHECK(run(ac::fp16{}) == outside);
    {
        const mp::autocast_region region(mp::precision::bf16);
        CHECK(run(ac::by_region{}) == outside);
    }
    // An override lowers the data, not the statistics.
    using lowered =
        ac::policy<bfloat16, ac::override_op<mp::ops::layer_norm_op, mp::op_category::lower_precision>>;
    matrix<float> y(4, 9);
    std::vector<normalization_statistics> statistics(4), of_low(4);
    mp::ops::layer_norm<lowered>(mp::cpu{}, x.view, gamma, absent, y.view, {}, statistics);
    const auto low_x = cast<bfloat16>(x);
    mp::ops::layer_norm<ac::off>(mp::cpu{}, low_x.view, absent, absent, y.view, {}, of_low);
    CHECK(statistics == of_low);
}

template <class T>
void check_threads() {
    matrix<T> x(400, 130), dy(400, 130);
    x.randomize(1);
    dy.randomize(2);
    const auto gamma = random_vector<T>(130, 3);
    const auto run = [&](mp::cpu exec) {
        matrix<T> y(400, 130), dx(400, 130);
        std::vector<T> dgamma(130), dbeta(130);
        mp::ops::layer_norm(exec, x.view, gamma, gamma, y.view);
        mp::ops::layer_norm_backward(exec, x.view, gamma, dy.view, dx.view, dgamma, dbeta);
        std::vector<T> all;
        for (const auto* part : {&y.elements, &dx.elements, &dgamma, &dbeta}) {
            all.insert(all.end(), part->begin(), part->end());
        }
        return all;
    };
    CHECK(run({.threads = 1}) == run({.threads = 3}));
}

TEST_CASE("normalization does not depend on the number of threads") {
    check_threads<half>();
    check_threads<float>();
}

TEST_CASE("normalization does not depend on the storage order") {
    const auto run = [](storage_order order) {
        matrix<float> x(40, 37, 3, order), dy(40, 37, 3, order), y(40, 37, 3, order), dx(40, 37, 3, order);
        x.randomize(1);
        dy.randomize(2);
        std::vector<float> dgamma(37), dbeta(37);
        mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, y.view);
        mp::ops::layer_norm_backward(mp::cpu{}, x.view, absent, dy.view, dx.view, dgamma, dbeta);
        std::vector<float> all = dgamma;
        all.insert(all.end(), dbeta.begin(), dbeta.end());
        for (std::ptrdiff_t r = 0; r < 40; ++r) {
            for (std::ptrdiff_t c = 0; c < 37; ++c) {
                all.push_back(y.view(r, c));
                all.push_back(dx.view(r, c));
            }
        }
        return all;
    };
    CHECK(run(storage_order::row_major) == run(storage_order::column_major));
}

TEST_CASE("normalization in place, of no rows, and with gradients that nobody needs") {
    matrix<half> x(4, 9), y(4, 9), dy(4, 9), dx(4, 9), other(4, 9);
    x.randomize(1);
    dy.randomize(2);
    auto in_place = cast<half>(x);
    mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, y.view);
    mp::ops::layer_norm(mp::cpu{}, in_place.view, absent, absent, in_place.view);
    CHECK(same_bits(in_place, y));
    std::vector<half> dgamma(9), dbeta(9), dgamma_in_place(9), dbeta_in_place(9);
    mp::ops::layer_norm_backward(mp::cpu{}, x.view, absent, dy.view, dx.view, dgamma, dbeta);
    auto dy_in_place = cast<half>(dy);
    mp::ops::layer_norm_backward(mp::cpu{}, x.view, absent, dy_in_place.view, dy_in_place.view,
                                 dgamma_in_place, dbeta_in_place);
    CHECK(same_bits(dy_in_place, dx));
    CHECK(dgamma_in_place == dgamma);
    CHECK(dbeta_in_place == dbeta);
    auto x_in_place = cast<half>(x);
    mp::ops::layer_norm_backward(mp::cpu{}, x_in_place.view, absent, dy.view, x_in_place.view, absent,
                                 absent);
    CHECK(same_bits(x_in_place, dx));

    matrix<half> none(0, 9);
    mp::ops::rms_norm(mp::cpu{}, none.view, absent, none.view);
    mp::ops::layer_norm_backward(mp::cpu{}, none.view, absent, none.view, absent, dgamma, dbeta);
    CHECK(dgamma == std::vector<half>(9, half(0)));
    CHECK(dbeta == std::vector<half>(9, half(0)));
}

TEST_CASE("column sums are wide, and rounded once") {
    // In half the sum would stop at 2048; it is 4097, and rounds to 4096.
    matrix<half> x(4097, 2), dy(4097, 2);
    x.fill([](auto, auto c) { return half(c == 0 ? 1 : -1); });
    dy.fill([](auto, auto) { return half(1); });
    std::vector<half> dgamma(2), dbeta(2);
    mp::ops::layer_norm_backward(mp::cpu{}, x.view, absent, dy.view, absent, dgamma, dbeta, {.epsilon = 0});
    CHECK(dgamma == std::vector<half>{half(4096), half(-4096)});
    CHECK(dbeta == std::vector<half>{half(4096), half(4096)});
}

TEST_CASE("normalization names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    matrix<float> x(2, 3), y(2, 3), dy(2, 3), dx(2, 3);
    x.randomize(1);
    dy.randomize(2);
    const std::vector<float> gamma(3);
    std::vector<float> two(2, 7.0F), three(3), three_more(3);
    std::vector<normalization_statistics> three_rows(3);
    // Never read or written, as the calls fail.
    alignas(16) float memory[8] = {};
    const std::span over(reinterpret_cast<normalization_statistics*>(memory), 2);
    const auto fails = [&](auto xv, const auto& g, const auto& b, auto yv, double epsilon = 0,
                           std::span<normalization_statistics> statistics = {}) {
        std::string message =
            message_of([&] { mp::ops::layer_norm(exec, xv, g, b, yv, {epsilon}, statistics); });
        CHECK(y.elements == std::vector<float>(6, -88.0F));
        CHECK(two == std::vector<float>(2, 7.0F));
        REQUIRE(message.starts_with("mp::ops::layer_norm: "));
        return message.substr(21);
    };
    CHECK(fails(x.view, two, gamma, y.view) == "gamma.size() is 2; it must equal x.columns, which is 3");
    CHECK(fails(x.view, gamma, two, y.view) == "beta.size() is 2; it must equal x.columns, which is 3");
    CHECK(fails(x.view, gamma, gamma, mp::transposed(y.view)) ==
          "y.rows is 3; it must equal x.rows, which is 2");
    CHECK(fails(x.view.block(0, 0, 2, 0), absent, absent, y.view) == "x.columns is 0; it must be at least 1");
    CHECK(fails(x.view, gamma, gamma, y.view, -1) ==
          "options.epsilon is -1; it must be finite and not negative");
    CHECK(fails(x.view, gamma, gamma, y.view, std::numeric_limits<float>::quiet_NaN()) ==
          "options.epsilon is nan; it must be finite and not negative");
    CHECK(fails(x.view, gamma, gamma, y.view, 1e39) ==
          "options.epsilon is 1e+39; it must be finite and not negative");
    CHECK(fails(x.view, gamma, gamma, y.view, 0, three_rows) ==
          "statistics.size() is 3; it must equal x.rows, which is 2");
    CHECK(fails(x.view, gamma, gamma, mp::row_major(memory, 2, 3), 0, over) ==
          "statistics overlaps y; they must not share elements, because statistics is written while y is in "
          "use");
    CHECK(fails(x.view, std::span<const float>(y.view.data, 3), gamma, y.view) ==
          "y overlaps gamma; they must not share elements, because y is written while gamma is in use");
    CHECK(fails(mp::row_major(y.view.data + 1, 1, 3), gamma, gamma, mp::row_major(y.view.data, 1, 3)) ==
          "y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { mp::ops::rms_norm(exec, x.view, gamma, y.view, {}, three_rows); }) ==
          "mp::ops::rms_norm: statistics.size() is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { mp::ops::rms_norm(mp::cpu{.threads = 0}, x.view, gamma, y.view); }) ==
          "mp::ops::rms_norm: exec.threads is 0; it must be at least 1");

    const auto backward_fails = [&](auto dyv, auto dxv, std::span<float> dgamma, std::span<float> dbeta,
                                    std::span<const normalization_statistics> statistics = {}) {
        std::string message = message_of([&] {
            mp::ops::layer_norm_backward(exec, x.view, gamma, dyv, dxv, dgamma, dbeta, {}, statistics);
        });
        REQUIRE(message.starts_with("mp::ops::layer_norm_backward: "));
        CHECK(dx.elements == std::vector<float>(6, -88.0F));
        return message.substr(30);
    };
    CHECK(backward_fails(dy.view.block(0, 0, 1, 3), dx.view, three, three_more) ==
          "dy.rows is 1; it must equal x.rows, which is 2");
    CHECK(backward_fails(dy.view, dx.view.block(0, 0, 2, 2), three, three_more) ==
          "dx.columns is 2; it must equal x.columns, which is 3");
    CHECK(backward_fails(dy.view, dx.view, two, three_more) ==
          "dgamma.size() is 2; it must equal x.columns, which is 3");
    CHECK(backward_fails(dy.view, dx.view, three, two) ==
          "dbeta.size() is 2; it must equal x.columns, which is 3");
    CHECK(backward_fails(dy.view, dx.view, three, three) ==
          "dbeta overlaps dgamma; they must not share elements, because dbeta is written while dgamma is in "
          "use");
    CHECK(backward_fails(dy.view, dx.view, three, three_more, three_rows) ==
          "statistics.size() is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] {
              mp::ops::rms_norm_backward(exec, x.view, gamma, dy.view, dx.view, two, {}, {});
          }) == "mp::ops::rms_norm_backward: dgamma.size() is 2; it must equal x.columns, which is 3");
}

}  // namespace
