// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/nn/ops/normalization.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using gpu_test::workspace;
using mp::bfloat16;
using mp::half;
using mp::ops::absent;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// What the row is normalized with, in long double.
struct exact_row {
    long double mean = 0;
    long double inverse = 0;
    template <class X>
    exact_row(const matrix<X>& x, std::ptrdiff_t row, bool centered, float epsilon) {
        const auto n = static_cast<long double>(x.view.columns);
        if (centered) {
            for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) mean += static_cast<float>(x.view(row, c));
            mean /= n;
        }
        long double squares = 0;
        for (std::ptrdiff_t c = 0; c < x.view.columns; ++c) {
            const long double d = static_cast<long double>(static_cast<float>(x.view(row, c))) - mean;
            squares += d * d;
        }
        inverse = 1 / std::sqrt(squares / n + static_cast<long double>(epsilon));
    }
};

/// Both functions on whatever executor, by a switch.
template <bool Centered>
void forward(auto exec, auto x, const auto& gamma, const auto& beta, auto y,
             mp::ops::normalization_options options = {},
             std::span<mp::ops::normalization_statistics> statistics = {}) {
    if constexpr (Centered) {
        mp::ops::layer_norm(exec, x, gamma, beta, y, options, statistics);
    } else {
        static_cast<void>(beta);
        mp::ops::rms_norm(exec, x, gamma, y, options, statistics);
    }
}

template <bool Centered>
void check_forward(std::ptrdiff_t columns, float offset, float span, float epsilon) {
    CAPTURE(columns);
    CAPTURE(offset);
    constexpr std::ptrdiff_t rows = 3;
    matrix<float> x(rows, columns), y(rows, columns), gamma(1, columns), beta(1, columns);
    x.randomize(1, span).fill([&](auto r, auto c) { return x.view(r, c) + offset; });
    gamma.randomize(2, 2.0F);
    beta.randomize(3);
    std::vector<mp::ops::normalization_statistics> statistics(rows);
    const std::span gammas(gamma.view.data, static_cast<std::size_t>(columns));
    const std::span betas(beta.view.data, static_cast<std::size_t>(columns));
    forward<Centered>(watched(simulated{.seed = 5}), x.view, gammas, betas, y.view, {.epsilon = epsilon},
                      statistics);
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const exact_row exact(x, r, Centered, epsilon);
        double worst = 0;
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double n = (static_cast<long double>(x.view(r, c)) - exact.mean) * exact.inverse;
            const long double scaled = n * gammas[static_cast<std::size_t>(c)];
            const long double expected = scaled + (Centered ? betas[static_cast<std::size_t>(c)] : 0.0F);
            const long double bound = 0x1p-21L * std::fabs(scaled) + 0x1p-24L * std::fabs(expected) +
                                      0x1p-45L * std::fabs(exact.mean) * exact.inverse + 0x1p-126L;
            worst =
                tests::larger_error(worst, static_cast<double>(std::fabs(y.view(r, c) - expected) / bound));
        }
        CHECK(worst < 1);
        const auto i = static_cast<std::size_t>(r);
        CHECK(static_cast<double>(std::fabs(statistics[i].mean() - exact.mean)) <=
              0x1p-45 * static_cast<double>(std::fabs(exact.mean)));
        CHECK(static_cast<double>(std::fabs(statistics[i].inverse_deviation() - exact.inverse)) <=
              0x1p-22 * static_cast<double>(exact.inverse));
    }
}

TEST_CASE("rows are normalized as closely as promised, with large means and beyond float's squares too") {
    for (const std::ptrdiff_t columns : {2, 5, 31, 500, 1024, 1025, 3000}) {
        check_forward<true>(columns, 0.0F, 1.0F, 1e-5F);
        check_forward<true>(columns, 3e4F, 1.0F, 1e-5F);
        check_forward<true>(columns, 0.5F, 1e-3F, 0.0F);
        check_forward<true>(columns, 0.0F, 1e30F, 1e-5F);
        check_forward<true>(columns, 0.0F, 1e-30F, 0.0F);
        check_forward<false>(columns, 0.0F, 1.0F, 1e-5F);
        check_forward<false>(columns, 1.0F, 3e38F, 1e-5F);
        check_forward<false>(columns, 0.0F, 1e-36F, 0.0F);
        check_forward<false>(columns, 0.0F, 1e-30F, 1e-5F);
    }
}

template <bool Centered, class X, class G, class Y>
void check_against_cpu(double share) {
    std::size_t different = 0, all = 0;
    for (const std::ptrdiff_t columns : {3, 64, 768, 1500}) {
        matrix<X> x(4, columns);
        matrix<Y> y(4, columns), expected(4, columns);
        matrix<G> gamma(1, columns), beta(1, columns);
        x.randomize(9, 3.0F);
        gamma.randomize(10);
        beta.randomize(11);
        const std::span gammas(gamma.view.data, static_cast<std::size_t>(columns));
        const std::span betas(beta.view.data, static_cast<std::size_t>(columns));
        forward<Centered>(simulated{}, x.view, gammas, betas, y.view);
        forward<Centered>(mp::cpu{}, x.view, gammas, betas, expected.view);
        for (std::ptrdiff_t r = 0; r < 4; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c, ++all) {
                different += same_bits(y.view(r, c), expected.view(r, c)) ? 0 : 1;
                CHECK(static_cast<double>(y.view(r, c)) ==
                      doctest::Approx(static_cast<double>(expected.view(r, c))).epsilon(0.01));
            }
        }
    }
    CHECK(static_cast<double>(different) <= share * static_cast<double>(all));
}

TEST_CASE("results of 16 bits are the CPU's except for a few in a thousand") {
    check_against_cpu<true, half, half, half>(0.003);
    check_against_cpu<true, bfloat16, float, bfloat16>(0.001);
    check_against_cpu<false, float, half, half>(0.003);
    check_against_cpu<false, bfloat16, bfloat16, bfloat16>(0.001);
}

/// All gradients on the simulated GPU; empty statistics are computed again.
template <bool Centered, class X, class Result>
void backward(simulated exec, mp::matrix_view<X> x, std::span<const float> gamma, mp::matrix_view<X> dy,
              mp::matrix_view<Result> dx, std::span<Result> dgamma, std::span<Result> dbeta,
              std::span<const mp::ops::normalization_statistics> statistics = {}) {
    workspace room(mp::ops::normalization_backward_workspace(x.rows, x.columns));
    if constexpr (Centered) {
        mp::ops::layer_norm_backward(room.on(exec), x, gamma, dy, dx, dgamma, dbeta, {}, statistics);
    } else {
        mp::ops::rms_norm_backward(room.on(exec), x, gamma, dy, dx, dgamma, {}, statistics);
    }
}

template <bool Centered>
void check_backward(std::ptrdiff_t rows, std::ptrdiff_t columns, bool saved) {
    CAPTURE(rows);
    CAPTURE(columns);
    matrix<float> x(rows, columns), dy(rows, columns), dx(rows, columns), y(rows, columns), gamma(1, columns);
    x.randomize(1, 3.0F).fill([&](auto r, auto c) { return x.view(r, c) + 1.0F; });
    dy.randomize(2);
    gamma.randomize(3);
    const auto size = static_cast<std::size_t>(columns);
    const std::span<const float> gammas(gamma.view.data, size);
    std::vector<float> dgamma(size), dbeta(size);
    std::vector<mp::ops::normalization_statistics> statistics(saved ? static_cast<std::size_t>(rows) : 0);
    if (saved) {
        forward<Centered>(simulated{}, x.view, gammas, absent, y.view, {}, statistics);
    }
    backward<Centered>(watched(simulated{.seed = 3}), x.view, gammas, dy.view, dx.view, std::span(dgamma),
                       std::span(dbeta), statistics);
    std::vector<long double> of_gamma(size), of_beta(size), bound_gamma(size), bound_beta(size);
    double worst = 0;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const exact_row exact(x, r, Centered, 1e-5F);
        long double mean = 0, along = 0, magnitudes = 0, along_magnitudes = 0;
        const auto normalized = [&](std::ptrdiff_t c) {
            return (static_cast<long double>(x.view(r, c)) - exact.mean) * exact.inverse;
        };
        const auto part = [&](std::ptrdiff_t c) {
            return static_cast<long double>(dy.view(r, c)) * gammas[static_cast<std::size_t>(c)];
        };
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            if (Centered) mean += part(c);
            along += part(c) * normalized(c);
            magnitudes += std::fabs(part(c));
            along_magnitudes += std::fabs(part(c) * normalized(c));
            const auto i = static_cast<std::size_t>(c);
            of_gamma[i] += dy.view(r, c) * normalized(c);
            bound_gamma[i] +=
                std::fabs(dy.view(r, c)) * (std::fabs(normalized(c)) + std::fabs(exact.mean) * exact.inverse);
            of_beta[i] += dy.view(r, c);
        }
        const auto n = static_cast<long double>(columns);
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            const long double expected = exact.inverse * (part(c) - mean / n - normalized(c) * along / n);
            const long double bound =
                0x1p-21L * exact.inverse *
                (std::fabs(part(c)) + magnitudes / n +
                 (std::fabs(normalized(c)) + std::fabs(exact.mean) * exact.inverse) * along_magnitudes / n);
            worst =
                tests::larger_error(worst, static_cast<double>(std::fabs(dx.view(r, c) - expected) / bound));
        }
    }
    CHECK(worst < 1);
    for (std::size_t i = 0; i < size; ++i) {
        CHECK(static_cast<double>(std::fabs(dgamma[i] - of_gamma[i])) <=
              0x1p-22 * static_cast<double>(bound_gamma[i] + std::fabs(of_gamma[i])));
        if (Centered) CHECK(dbeta[i] == static_cast<float>(of_beta[i]));
    }
}

TEST_CASE("gradients are as close to the exact ones as promised") {
    for (const bool saved : {false, true}) {
        check_backward<true>(1, 40, saved);
        check_backward<true>(65, 130, saved);
        check_backward<true>(200, 7, saved);
        check_backward<true>(3, 1500, saved);
        check_backward<false>(70, 300, saved);
        check_backward<false>(2, 1100, saved);
    }
}

TEST_CASE("bits depend on no schedule, layout or alignment, and nothing else is written") {
    for (const std::ptrdiff_t columns : {17, 1030}) {
        constexpr std::ptrdiff_t rows = 67;
        matrix<half> x0(rows, columns), dy0(rows, columns), y0(rows, columns), dx0(rows, columns);
        x0.randomize(1, 4.0F);
        dy0.randomize(2);
        matrix<float> gamma(1, columns, {mp::storage_order::row_major, 0, 1});
        gamma.randomize(3);
        const auto size = static_cast<std::size_t>(columns);
        const std::span<const float> gammas(gamma.view.data, size);
        std::vector<half> dgamma0(size), dbeta0(size);
        mp::ops::layer_norm(simulated{}, x0.view, gammas, gammas, y0.view);
        backward<true>(simulated{}, x0.view, gammas, dy0.view, dx0.view, std::span(dgamma0),
                       std::span(dbeta0));
        std::uint64_t seed = 1;
        for (const layout& how : gpu_test::layouts) {
            matrix<half> x(rows, columns, how), dy(rows, columns, how), y(rows, columns, how),
                dx(rows, columns, how);
            x.randomize(1, 4.0F);
            dy.randomize(2);
            std::vector<half> dgamma(size), dbeta(size);
            mp::ops::layer_norm(watched(simulated{.seed = seed++}), x.view, gammas, gammas, y.view);
            backward<true>(watched(simulated{.seed = seed++}), x.view, gammas, dy.view, dx.view,
                           std::span(dgamma), std::span(dbeta));
            CHECK(same_bits(y, y0));
            CHECK(same_bits(dx, dx0));
            CHECK(same_bits(dgamma, dgamma0));
            CHECK(same_bits(dbeta, dbeta0));
            CHECK(y.is_contained());
            CHECK(dx.is_contained());
            // dx in the memory of dy, and y in that of x.
            backward<true>(watched(simulated{.seed = seed++}), x.view, gammas, dy.view, dy.view,
                           std::span(dgamma), std::span(dbeta));
            CHECK(same_bits(dy, dx0));
            CHECK(same_bits(dgamma, dgamma0));
            mp::ops::layer_norm(watched(simulated{.seed = seed++}), x.view, gammas, gammas, x.view);
            CHECK(same_bits(x, y0));
        }
    }
}

TEST_CASE("infinities, NaN, constant rows and absent operands are as on the CPU") {
    for (const std::ptrdiff_t columns : {4, 1200}) {
        constexpr std::ptrdiff_t rows = 5;
        matrix<float> x(rows, columns), y(rows, columns), expected(rows, columns);
        x.randomize(1);
        x.view(0, 1) = infinity;
        x.view(1, 2) = std::numeric_limits<float>::quiet_NaN();
        for (std::ptrdiff_t c = 0; c < columns; ++c) {
            x.view(2, c) = 0.0F;
            x.view(3, c) = 7.25F;
            x.view(4, c) = c % 2 == 0 ? 3e38F : -3e38F;
        }
        for (const float epsilon : {0.0F, 1e-5F}) {
            const auto check = [&](bool centered) {
                for (std::ptrdiff_t r = 0; r < rows; ++r) {
                    for (std::ptrdiff_t c = 0; c < columns; ++c) {
                        const float a = y.view(r, c), b = expected.view(r, c);
                        CAPTURE(r);
                        CAPTURE(centered);
                        CHECK(gpu_test::is_nan(a) == gpu_test::is_nan(b));
                        if (!gpu_test::is_nan(b)) CHECK(std::fabs(a - b) <= 0x1p-22F * std::fabs(b));
                    }
                }
            };
            mp::ops::layer_norm(simulated{}, x.view, absent, absent, y.view, {epsilon});
            mp::ops::layer_norm(mp::cpu{}, x.view, absent, absent, expected.view, {epsilon});
            check(true);
            mp::ops::rms_norm(simulated{}, x.view, absent, y.view, {epsilon});
            mp::ops::rms_norm(mp::cpu{}, x.view, absent, expected.view, {epsilon});
            check(false);
        }
    }
}

TEST_CASE("single gradients may be asked for, and no rows leave gradients of zero") {
    matrix<float> x(3, 40), dy(3, 40), dx(3, 40), dx1(3, 40);
    x.randomize(1);
    dy.randomize(2);
    std::vector<float> gamma(40, 0.5F), dgamma(40), dbeta(40), dgamma1(40), dbeta1(40, 7.0F);
    workspace room(mp::ops::normalization_backward_workspace(3, 40));
    const simulated gpu = room.on();
    mp::ops::layer_norm_backward(gpu, x.view, gamma, dy.view, dx.view, dgamma, dbeta);
    mp::ops::layer_norm_backward(gpu, x.view, gamma, dy.view, dx1.view, absent, absent);
    CHECK(same_bits(dx, dx1));
    mp::ops::layer_norm_backward(gpu, x.view, gamma, dy.view, absent, dgamma1, absent);
    CHECK(dgamma1 == dgamma);
    mp::ops::layer_norm_backward(gpu, x.view, gamma, dy.view, absent, absent, dbeta1);
    CHECK(dbeta1 == dbeta);
    const mp::matrix_view<float> empty{x.view.data, 0, 40, 40};
    mp::ops::layer_norm_backward(gpu, empty, gamma, empty, empty, absent, dbeta1);
    CHECK(dbeta1 == std::vector<float>(40, 0.0F));
}

TEST_CASE("aligned matrices move in full sectors, and shared memory is free of conflicts") {
    for (const std::ptrdiff_t columns : {512, 2048}) {
        matrix<half> x(64, columns), y(64, columns), gamma(1, columns), dgamma(1, columns);
        x.randomize(1);
        gamma.randomize(2);
        const auto size = static_cast<std::size_t>(columns);
        const std::span gammas(gamma.view.data, size);
        mp::simt::access_statistics statistics;
        workspace room(mp::ops::normalization_backward_workspace(64, columns));
        const simulated exec = room.on({.statistics = &statistics});
        mp::ops::layer_norm(exec, x.view, gammas, gammas, y.view);
        mp::ops::layer_norm_backward(exec, x.view, gammas, y.view, absent, std::span(dgamma.view.data, size),
                                     absent);
        CHECK(statistics.wasted_sectors() == 0);
        CHECK(statistics.bank_conflicts() == 0);
    }
}

TEST_CASE("wrong arguments are refused as on the CPU, and so are small workspaces") {
    matrix<half> x(2, 3), y(2, 4);
    const std::vector<float> gamma(3);
    CHECK_THROWS_WITH_AS(mp::ops::layer_norm(simulated{}, x.view, gamma, absent, y.view),
                         "mp::ops::layer_norm: y.columns is 4; it must equal x.columns, which is 3",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::rms_norm(simulated{}, x.view, absent, x.view, {-1.0F}), mp::argument_error);
    std::vector<float> dgamma(3);
    alignas(mp::workspace::alignment) std::byte memory[8];
    mp::workspace small(memory);
    simulated exec;
    exec.workspace = &small;
    CHECK_THROWS_WITH_AS(mp::ops::rms_norm_backward(exec, x.view, gamma, x.view, x.view, dgamma),
                         doctest::Contains("mp::workspace::allocate: size() is 8; it must be at least 256"),
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::ops::rms_norm_backward(simulated{}, x.view, gamma, x.view, x.view, dgamma),
        "mp::ops::rms_norm_backward: exec.workspace is 'null'; it must be a workspace in the "
        "memory of the executor, of at least 32 bytes",
        mp::argument_error);
}

}  // namespace
