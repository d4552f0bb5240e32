// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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
using mp::bfloat16;
using mp::half;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::ptrdiff_t lengths[] = {1, 2, 7, 31, 33, 500, 1024, 1025, 3001};

struct softmax_case {
    static void forward(auto exec, auto x, auto y) { mp::ops::softmax(exec, x, y); }
    static void backward(auto exec, auto y, auto dy, auto dx) { mp::ops::softmax_backward(exec, y, dy, dx); }
    static long double value(long double distance, long double sum) { return std::exp(distance) / sum; }
    /// The error that is promised of a float result.
    static double bound(double exact) { return 0x1p-21 * exact + 0x1p-148; }
    static long double slope_sum(long double y, long double dy) { return y * dy; }
    static long double slope(long double y, long double dy, long double sum) { return y * (dy - sum); }
};
struct log_softmax_case {
    static void forward(auto exec, auto x, auto y) { mp::ops::log_softmax(exec, x, y); }
    static void backward(auto exec, auto y, auto dy, auto dx) {
        mp::ops::log_softmax_backward(exec, y, dy, dx);
    }
    static long double value(long double distance, long double sum) { return distance - std::log(sum); }
    static double bound(double exact) { return 0x1p-21 * std::max(1.0, -exact); }
    static long double slope_sum(long double, long double dy) { return dy; }
    static long double slope(long double y, long double dy, long double sum) {
        return dy - std::exp(y) * sum;
    }
};

template <class Case>
void check_float_rows(float span) {
    for (const std::ptrdiff_t columns : lengths) {
        CAPTURE(columns);
        matrix<float> x(3, columns), y(3, columns), dy(3, columns), dx(3, columns);
        x.randomize(7, span);
        dy.randomize(8);
        Case::forward(watched(simulated{.seed = 3}), x.view, y.view);
        Case::backward(watched(simulated{.seed = 4}), y.view, dy.view, dx.view);
        for (std::ptrdiff_t r = 0; r < 3; ++r) {
            long double largest = -INFINITY, sum = 0, slopes = 0, magnitudes = 0;
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                largest = std::max(largest, static_cast<long double>(x.view(r, c)));
            }
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                sum += std::exp(static_cast<long double>(x.view(r, c)) - largest);
                const long double part = Case::slope_sum(y.view(r, c), dy.view(r, c));
                slopes += part;
                magnitudes += std::fabs(part);
            }
            double worst = 0, worst_slope = 0;
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const auto exact =
                    static_cast<double>(Case::value(static_cast<long double>(x.view(r, c)) - largest, sum));
                worst = tests::larger_error(
                    worst, std::fabs(static_cast<double>(y.view(r, c)) - exact) / Case::bound(exact));
                const auto slope = static_cast<double>(Case::slope(y.view(r, c), dy.view(r, c), slopes));
                const double weight = std::exp(std::min(0.0, static_cast<double>(y.view(r, c))));
                const double bound =
                    0x1p-22 * (weight * static_cast<double>(magnitudes) + std::fabs(slope)) + 0x1p-148;
                worst_slope = tests::larger_error(
                    worst_slope, std::fabs(static_cast<double>(dx.view(r, c)) - slope) / bound);
            }
            CHECK(worst < 1);
            CHECK(worst_slope < 1);
        }
    }
}

TEST_CASE_TEMPLATE("float rows are as close to the exact ones as promised", Case, softmax_case,
                   log_softmax_case) {
    check_float_rows<Case>(1.0F);
    check_float_rows<Case>(60.0F);
    check_float_rows<Case>(1e4F);
}

TEST_CASE("a row that rises all the way is summed as well as one that falls") {
    for (const float step : {1.0F, -1.0F, 0.01F, 9.0F}) {
        matrix<float> x(1, 3000), y(1, 3000);
        x.fill([&](auto, auto c) { return step * static_cast<float>(c); });
        mp::ops::softmax(simulated{}, x.view, y.view);
        long double sum = 0;
        const long double end = step > 0 ? static_cast<long double>(x.view(0, 2999)) : 0;
        for (int c = 0; c < 3000; ++c) sum += std::exp(static_cast<long double>(x.view(0, c)) - end);
        const int top = step > 0 ? 2999 : 0;
        CHECK(std::fabs(static_cast<double>(y.view(0, top)) - static_cast<double>(1 / sum)) <
              0x1p-21 * static_cast<double>(1 / sum));
    }
}

/// How many results are not the CPU's, and whether those that are not are neighbours.
template <class Case, class X, class Y>
void check_against_cpu(float span, double share) {
    std::size_t different = 0, all = 0;
    for (const std::ptrdiff_t columns : lengths) {
        matrix<X> x(4, columns);
        matrix<Y> y(4, columns), expected(4, columns);
        x.randomize(9, span);
        Case::forward(simulated{}, x.view, y.view);
        Case::forward(mp::cpu{}, x.view, expected.view);
        for (std::ptrdiff_t r = 0; r < 4; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c, ++all) {
                if (same_bits(y.view(r, c), expected.view(r, c))) continue;
                ++different;
                const int distance =
                    static_cast<int>(y.view(r, c).bits()) - static_cast<int>(expected.view(r, c).bits());
                const auto error =
                    std::fabs(static_cast<double>(y.view(r, c)) - static_cast<double>(expected.view(r, c)));
                CHECK((std::abs(distance) == 1 || error < Case::bound(0)));
            }
        }
    }
    CHECK(static_cast<double>(different) <= share * static_cast<double>(all));
}

TEST_CASE_TEMPLATE("results of 16 bits are the CPU's except for a few in a thousand", Case, softmax_case,
                   log_softmax_case) {
    check_against_cpu<Case, half, half>(8.0F, 0.003);
    check_against_cpu<Case, bfloat16, bfloat16>(30.0F, 0.001);
    check_against_cpu<Case, float, half>(5.0F, 0.003);
}

TEST_CASE_TEMPLATE("bits depend on no schedule, layout or alignment, and nothing else is written", Case,
                   softmax_case, log_softmax_case) {
    for (const std::ptrdiff_t columns : {1, 17, 64, 1031}) {
        matrix<half> x0(5, columns), dy0(5, columns);
        matrix<float> y0(5, columns), dx0(5, columns);
        x0.randomize(1, 4.0F);
        dy0.randomize(2);
        Case::forward(simulated{}, x0.view, y0.view);
        Case::backward(simulated{}, y0.view, dy0.view, dx0.view);
        std::uint64_t seed = 1;
        for (const layout& in : gpu_test::layouts) {
            for (const layout& out : gpu_test::layouts) {
                matrix<half> x(5, columns, in), dy(5, columns, in);
                matrix<float> y(5, columns, out), dx(5, columns, out);
                x.randomize(1, 4.0F);
                dy.randomize(2);
                Case::forward(watched(simulated{.seed = seed++}), x.view, y.view);
                Case::backward(watched(simulated{.seed = seed++}), y.view, dy.view, dx.view);
                CHECK(same_bits(y, y0));
                CHECK(same_bits(dx, dx0));
                CHECK(y.is_contained());
                CHECK(dx.is_contained());
            }
        }
        // In place.
        Case::forward(watched(simulated{.seed = 9}), x0.view, x0.view);
        matrix<half> again(5, columns), fresh(5, columns);
        again.randomize(1, 4.0F);
        Case::forward(simulated{}, again.view, fresh.view);
        CHECK(same_bits(x0, fresh));
    }
}

TEST_CASE_TEMPLATE("special values are those of the CPU", Case, softmax_case, log_softmax_case) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<std::vector<float>> rows = {{-infinity, 0.0F, 1.0F, -infinity},
                                                  {-infinity, -infinity, -infinity, -infinity},
                                                  {0.0F, nan, 1.0F, 2.0F},
                                                  {infinity, 0.0F, 1.0F, 2.0F},
                                                  {3e38F, -3e38F, 3e38F, 0.0F},
                                                  {-0.0F, 0.0F, -0.0F, 0.0F},
                                                  {-infinity, -infinity, -infinity, 5.0F},
                                                  {1e-42F, -1e-42F, 0.0F, 1e-45F},
                                                  {0.0F, -87.5F, -95.0F, -103.5F},
                                                  {-nan, -infinity, 0.0F, 0.0F}};
    for (const std::ptrdiff_t columns : {4, 1500}) {
        const auto count = static_cast<std::ptrdiff_t>(rows.size());
        matrix<float> x(count, columns), y(count, columns), expected(count, columns);
        x.fill([&](auto r, auto c) {
            // The four numbers at the end of the row, behind what is masked.
            const auto place = c - (columns - 4);
            return place < 0 ? -infinity : rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(place)];
        });
        Case::forward(watched(simulated{.seed = 2}), x.view, y.view);
        Case::forward(mp::cpu{}, x.view, expected.view);
        for (std::ptrdiff_t r = 0; r < count; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const float a = y.view(r, c), b = expected.view(r, c);
                CHECK(gpu_test::is_nan(a) == gpu_test::is_nan(b));
                if (gpu_test::is_nan(b)) continue;
                CHECK((a == b || std::fabs(a - b) <= 0x1p-22F * std::fabs(b) + 0x1p-148F));
                CHECK(std::signbit(a) == std::signbit(b));
            }
        }
        matrix<float> dy(count, columns), dx(count, columns), expected_dx(count, columns);
        dy.randomize(3);
        dy.view(4, columns - 1) = nan;
        Case::backward(watched(simulated{.seed = 2}), expected.view, dy.view, dx.view);
        Case::backward(mp::cpu{}, expected.view, dy.view, expected_dx.view);
        for (std::ptrdiff_t r = 0; r < count; ++r) {
            for (std::ptrdiff_t c = 0; c < columns; ++c) {
                const float a = dx.view(r, c), b = expected_dx.view(r, c);
                CHECK(gpu_test::is_nan(a) == gpu_test::is_nan(b));
                if (!gpu_test::is_nan(b)) CHECK((a == b || std::fabs(a - b) <= 0x1p-20F));
            }
        }
    }
}

TEST_CASE("aligned rows move in full sectors, and shared memory is free of conflicts") {
    for (const std::ptrdiff_t columns : {512, 4096}) {
        matrix<half> x(4, columns), y(4, columns);
        x.randomize(1);
        mp::simt::access_statistics statistics;
        mp::ops::softmax(simulated{.statistics = &statistics}, x.view, y.view);
        CHECK(statistics.wasted_sectors() == 0);
        CHECK(statistics.bank_conflicts() == 0);
        std::uint64_t sectors = 0;
        for (const auto& cost : statistics.costs()) {
            if (!cost.shared) sectors += cost.transactions;
        }
        // Two passes of reading and one of writing.
        CHECK(sectors == static_cast<std::uint64_t>(3 * 4 * columns * 2 / 32));
    }
}

TEST_CASE("wrong arguments are refused as on the CPU, and nothing is done for no elements") {
    matrix<half> x(2, 3), y(2, 4);
    y.fill([](auto, auto) { return 5.0F; });
    CHECK_THROWS_WITH_AS(mp::ops::softmax(simulated{}, x.view, y.view),
                         "mp::ops::softmax: y.columns is 4; it must equal x.columns, which is 3",
                         mp::argument_error);
    CHECK(static_cast<float>(y.view(0, 0)) == 5.0F);
    CHECK_THROWS_AS(mp::ops::softmax_backward(simulated{}, x.view, x.view, y.view), mp::argument_error);
    const mp::matrix_view<half> nowhere{nullptr, 2, 3, 3};
    CHECK_THROWS_AS(mp::ops::log_softmax(simulated{}, nowhere, x.view), mp::argument_error);
    const mp::matrix_view<half> empty{nullptr, 0, 3, 3};
    mp::ops::softmax(simulated{}, empty, empty);
    mp::ops::softmax(simulated{}, mp::row_major(x.view.data, 2, 0), mp::row_major(x.view.data, 2, 0));
}

}  // namespace
