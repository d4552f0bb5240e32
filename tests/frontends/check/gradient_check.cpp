// SPDX-License-Identifier: MIT
// check_gradients on functions whose gradients are known in closed form.
#include <doctest/doctest.h>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/half.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using mp::check_gradients;
using mp::checked_gradient;

/// The sum of sin(x_i) w_i, with w_i = i + 1.
struct problem {
    std::vector<double> x;
    std::vector<double> gradient;

    explicit problem(std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            x.push_back(std::sin(7.0 * static_cast<double>(i)));
            gradient.push_back(std::cos(x[i]) * static_cast<double>(i + 1));
        }
    }
    double loss() const {
        double sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i) sum += std::sin(x[i]) * static_cast<double>(i + 1);
        return sum;
    }
};

template <class Function>
std::string message_of(Function f) {
    try {
        f();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing";
}

TEST_CASE("right gradients pass, to the digits that differences have") {
    problem a(5), b(3);
    const auto loss = [&] { return a.loss() * b.loss() / 4; };
    const double la = a.loss(), lb = b.loss();
    for (double& g : a.gradient) g *= lb / 4;
    for (double& g : b.gradient) g *= la / 4;
    const auto report = check_gradients(loss, {{"a", a.x, a.gradient}, {"b", b.x, b.gradient}});
    REQUIRE(report.arrays.size() == 2);
    CHECK(report.passed(1e-8));
    CHECK(report.norms_passed(1e-9));
    CHECK_FALSE(report.passed(0.0));
    CHECK(report.arrays[0].name == "a");
    CHECK(report.arrays[0].checked == 5);
    CHECK(report.arrays[1].size == 3);
}

TEST_CASE("a wrong gradient is found and named") {
    problem a(5), b(300);
    const auto loss = [&] { return a.loss() + b.loss(); };
    b.gradient[123] *= 1.001;
    const auto report = check_gradients(loss, {{"a", a.x, a.gradient}, {"layer.weight", b.x, b.gradient}});
    CHECK_FALSE(report.passed(1e-4));
    CHECK(report.passed(2e-3));
    const mp::gradient_comparison& worst = report.worst();
    CHECK(worst.name == "layer.weight");
    CHECK(worst.worst_index == 123);
    CHECK(worst.max_relative == doctest::Approx(0.001 / 1.001));
    CHECK(worst.worst_gradient == b.gradient[123]);
    CHECK(worst.worst_difference == doctest::Approx(b.gradient[123] / 1.001));
    CHECK(report.arrays[0].max_relative < 1e-7);
    const std::string text = to_string(report);
    CHECK(text.find("layer.weight: 300 of 300 elements, relative error max 0.000999") != std::string::npos);
    CHECK(text.find("worst at index 123: ") != std::string::npos);
}

TEST_CASE("gradients below the floor are compared absolutely") {
    std::vector<double> x{1.0};
    const auto loss = [&] { return 1e-5 * x[0]; };
    const std::vector<double> wrong{2e-5};
    CHECK(check_gradients(loss, {{"x", x, wrong}}).worst().max_relative == doctest::Approx(0.01));
    CHECK(check_gradients(loss, {{"x", x, wrong}}, {.floor = 1e-9}).worst().max_relative ==
          doctest::Approx(0.5));
}

TEST_CASE("gradients of any format, whose norm is compared") {
    problem a(64);
    std::vector<mp::half> rounded;
    for (const double g : a.gradient) rounded.push_back(mp::round_to<mp::half>(g));
    const auto report = check_gradients([&] { return a.loss(); }, {{"a", a.x, rounded}});
    CHECK(report.norms_passed(0x1p-11));
    CHECK_FALSE(report.norms_passed(0x1p-14));
    rounded[3] = std::numeric_limits<mp::half>::infinity();
    const auto broken = check_gradients([&] { return a.loss(); }, {{"a", a.x, rounded}});
    CHECK_FALSE(broken.passed(1e300));
    CHECK_FALSE(broken.norms_passed(1e300));
    CHECK(broken.worst().worst_index == 3);
    rounded[3] = std::numeric_limits<mp::half>::quiet_NaN();
    CHECK(std::isinf(check_gradients([&] { return a.loss(); }, {{"a", a.x, rounded}}).worst().max_relative));
}

TEST_CASE("a sample has one element in each section, and others for another seed") {
    problem a(103);
    const auto looked_at = [&](std::uint64_t seed) {
        std::set<std::size_t> indices;
        const std::vector<double> before = a.x;
        const auto loss = [&] {
            for (std::size_t i = 0; i < before.size(); ++i) {
                if (a.x[i] != before[i]) indices.insert(i);
            }
            return a.loss();
        };
        const auto report = check_gradients(loss, {{"a", a.x, a.gradient}}, {.samples = 10, .seed = seed});
        CHECK(report.passed(1e-7));
        CHECK(report.arrays[0].checked == 10);
        return indices;
    };
    const auto first = looked_at(1);
    CHECK(first.size() == 10);
    std::size_t section = 0;
    for (const std::size_t index : first) {
        // 103 elements: three sections of 11 and seven of 10
        const std::size_t begin = section * 10 + (section < 3 ? section : 3);
        CHECK(index >= begin);
        CHECK(index < begin + (section < 3 ? 11 : 10));
        ++section;
    }
    CHECK(looked_at(1) == first);
    CHECK(looked_at(2) != first);
    CHECK(check_gradients([&] { return a.loss(); }, {{"a", a.x, a.gradient}}, {.samples = 1000})
              .arrays[0]
              .checked == 103);
}

TEST_CASE("the step is the caller's, or a share of the value") {
    std::vector<double> x{1000.0};
    double largest = 0;
    const auto loss = [&] {
        largest = (std::max)(largest, x[0]);
        return x[0];
    };
    const std::vector<double> one{1.0};
    static_cast<void>(check_gradients(loss, {{"x", x, one}}));
    CHECK(largest - 1000.0 == doctest::Approx(1000 * std::cbrt(0x1p-52)));
    largest = 0;
    static_cast<void>(check_gradients(loss, {{"x", x, one}}, {.step = 0.5}));
    CHECK(largest == 1000.5);
}

TEST_CASE("values are as before, also where the loss throws") {
    problem a(6);
    const std::vector<double> before = a.x;
    static_cast<void>(check_gradients([&] { return a.loss(); }, {{"a", a.x, a.gradient}}));
    CHECK(a.x == before);
    int calls = 0;
    const auto throws = [&] {
        if (++calls == 8) throw std::runtime_error("no memory");
        return a.loss();
    };
    CHECK_THROWS_WITH(static_cast<void>(check_gradients(throws, {{"a", a.x, a.gradient}})), "no memory");
    CHECK(a.x == before);
}

TEST_CASE("bad arguments are named") {
    problem a(2);
    const auto loss = [&] { return a.loss(); };
    const auto message = [&](const auto& f, const std::vector<checked_gradient>& arrays,
                             const mp::gradient_check_options& options = {}) {
        return message_of([&] { static_cast<void>(check_gradients(f, arrays, options)); });
    };
    const checked_gradient good("a", a.x, a.gradient);
    CHECK(message(loss, {}) == "mp::check_gradients: arrays.size() is 0; it must be at least 1");
    CHECK(message(loss, {good, {"b", {}, std::vector<double>{}}}) ==
          "mp::check_gradients: values.size() of 'b' is 0; it must be at least 1");
    CHECK(message(loss, {{"b", a.x, std::vector<float>(3)}}) ==
          "mp::check_gradients: gradient.size() of 'b' is 3; it must equal values.size(), which is 2");
    CHECK(message(loss, {good}, {.step = -1}) ==
          "mp::check_gradients: options.step is -1; it must be finite and positive, or 0");
    CHECK(message(loss, {good}, {.floor = 0}) ==
          "mp::check_gradients: options.floor is 0; it must be finite and positive");
    const std::vector<double> before = a.x;
    const auto infinite = [&] { return a.x[1] == before[1] ? 1.0 : std::numeric_limits<double>::infinity(); };
    CHECK(message(infinite, {good}) ==
          "mp::check_gradients: loss() near values[1] of 'a' is inf; it must be finite");
    CHECK(a.x == before);
    double call = 0;
    CHECK(message([&] { return ++call; }, {good}) ==
          "mp::check_gradients: loss() is 2; it must be 1, as in the call before: it is to be a function of "
          "the "
          "values");
    a.x[0] = std::numeric_limits<double>::infinity();
    CHECK(message(loss, {good}) == "mp::check_gradients: values[0] of 'a' is inf; it must be finite");
}

}  // namespace
