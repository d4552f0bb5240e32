// SPDX-License-Identifier: MIT
// Algorithms that run in double and in a format beside it: one side has the bits of double, the other those of the library's
// type of that format. And histograms of errors against sorting.
#include <mp/analysis.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/scaling/thrown.hpp"

namespace {

/// Newton's iteration for a root, a sum and a polynomial, with branches and constants.
template <class Number>
Number algorithm(const std::vector<Number>& values) {
    Number sum(0.0);
    for (const Number& x : values) {
        Number root = x > Number(1.0) ? x : Number(1.0);
        for (int i = 0; i < 3; ++i) root = Number(0.5) * (root + x / root);
        sum += root - x * Number(0.3);
        if (sum > Number(40.0)) sum -= Number(40.0);
    }
    return sqrt(sum * sum + Number(2.0));
}

}  // namespace

TEST_CASE("tracked numbers are double and the format at once") {
    std::mt19937 random(1);
    std::vector<double> values(50);
    for (double& x : values) x = static_cast<double>(random() % 1000) / 37.0;
    using std::sqrt;
    const auto check = [&]<class Reduced>(std::type_identity<Reduced>) {
        mp::error_tracker tracker(mp::runtime_format_of<Reduced>());
        std::vector<mp::tracked<double>> numbers;
        std::vector<Reduced> reduced;
        for (const double x : values) numbers.push_back(tracker(x)), reduced.push_back(Reduced(x));
        const mp::tracked<double> result = algorithm(numbers);
        CHECK(result.value() == static_cast<double>(algorithm(reduced)));
        CHECK(result.tracker() == &tracker);
        CHECK(tracker.operations() > 50 * 10);
        CHECK(tracker.relative_errors().quantile(0.5) > 1e-5);
        CHECK(tracker.overflows() == 0);
    };
    check(std::type_identity<mp::half>{});
    check(std::type_identity<mp::bfloat16>{});
    // The other side: a format with all of double's precision has no errors.
    mp::error_tracker exact(mp::runtime_format{});
    std::vector<mp::tracked<double>> numbers;
    for (const double x : values) numbers.push_back(exact(x));
    const mp::tracked<double> result = algorithm(numbers);
    CHECK(result.reference() == algorithm(values));
    CHECK(result.value() == result.reference());
    CHECK(exact.relative_errors().largest() == 0);
    CHECK(exact.relative_errors().zeros() == exact.operations());
}

TEST_CASE("tracked numbers count what the format cannot hold") {
    mp::error_tracker tracker(mp::runtime_format_of<mp::half>());
    const mp::tracked<double> large = tracker(300.0) * tracker(300.0);
    CHECK(std::isinf(large.value()));
    CHECK(large.reference() == 90000.0);
    const mp::tracked<double> small = tracker(1e-5) * 1e-5;
    CHECK(small.value() == 0);
    const mp::tracked<double> nan = large - large;
    CHECK(std::isnan(nan.value()));
    CHECK(tracker.overflows() == 1);
    CHECK(tracker.underflows() == 1);
    CHECK(tracker.nans() == 1);
    CHECK(tracker.relative_errors().not_finite() == 2);
    CHECK(tracker.relative_errors().largest() == 1);
    // Constants alone are doubles; comparisons look at the format's number.
    const mp::tracked<double> third = mp::tracked<double>(1.0) / 3.0;
    CHECK(third.value() == 1.0 / 3.0);
    CHECK(third.tracker() == nullptr);
    CHECK(tracker(1.0 + 0x1p-20) == 1.0);
    CHECK_FALSE(nan == nan);
    CHECK(fma(tracker(1.0), tracker(1 + 0x1p-10), 0x1p-30).value() == 1 + 0x1p-10);
    CHECK(exp(tracker(1.0)).value() == static_cast<double>(mp::half(2.718281828)));
    CHECK(abs(-tracker(2.0)).value() == 2);
    CHECK(holds(to_string(tracker), "1 overflows, 1 underflows, 1 NaN; relative errors: "));
    tracker.reset();
    CHECK(tracker.operations() == 0);
}

TEST_CASE("histograms bound the quantiles that sorting gives") {
    std::mt19937_64 random(3);
    std::vector<double> errors(5000);
    mp::error_histogram all;
    mp::error_histogram first;
    mp::error_histogram second;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        errors[i] = i % 10 == 0 ? 0.0 : std::exp(static_cast<double>(random() % 10000) / 300.0 - 20.0);
        all.add(i % 2 == 0 ? errors[i] : -errors[i]);
        (i % 3 == 0 ? first : second).add(errors[i]);
    }
    first += second;
    CHECK(first.bins() == all.bins());
    std::sort(errors.begin(), errors.end());
    for (const double part : {0.05, 0.2, 0.5, 0.9, 0.999, 1.0}) {
        CAPTURE(part);
        const double exact = errors[static_cast<std::size_t>(std::ceil(part * 5000)) - 1];
        CHECK(all.quantile(part) >= exact);
        CHECK(all.quantile(part) <= exact * (1 + 1.0 / 16));
    }
    CHECK(all.largest() == errors.back());
    CHECK(all.zeros() == 500);
    for (const auto& it : all.bins()) {
        const auto inside = std::count_if(errors.begin(), errors.end(),
                                          [&](double x) { return x >= it.from && x < it.to && x > 0; });
        CHECK(static_cast<std::uint64_t>(inside) == it.count);
    }
    mp::error_histogram few;
    few.add(0);
    few.add(1.0);
    few.add(-1.05);
    few.add(3.0);
    few.add(std::numeric_limits<double>::infinity());
    CHECK(to_csv(few) == "from,to,count\n0,0,1\n1,1.0625,2\n3,3.125,1\ninf,inf,1\n");
    CHECK(to_string(few) ==
          "5 errors, 1 of them zero, 1 not finite, 50% <= 1.0625, 90% <= 3, 99% <= 3, 99.9% <= 3, max 3");
    CHECK(holds(thrown<mp::argument_error>([&] { static_cast<void>(few.quantile(1.5)); }), "part is 1.5"));
    CHECK(mp::error_histogram().quantile(0.5) == 0);
}
