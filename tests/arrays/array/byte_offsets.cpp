// SPDX-License-Identifier: MIT
// Arrays at every byte of a cache line, also where that is no place for their type, and arrays that are full of one special pair:
// the results of the operations on numbers, on every instruction set.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "arrays/array/arrays.hpp"
#include "arrays/placed_array.hpp"

namespace {

/// The smaller or the larger number, where -0 is smaller than +0.
template <class Value>
Value smaller(Value a, Value b, bool larger) {
    if constexpr (mp::reduced<Value>) {
        return larger ? mp::maximum(a, b) : mp::minimum(a, b);
    } else {
        if (a != a || b != b) return a + b;
        const bool is_less = a < b || (a == b && std::signbit(a));
        return is_less != larger ? a : b;
    }
}

/// Calls f(name, operation of arrays, operation of numbers) for every function of one, two or three arrays.
template <class Value, class Function>
void for_each_operation(Function f) {
    f(
        "add", [](auto exec, auto a, auto b, auto, auto out) { mp::add(exec, a, b, out); },
        [](Value a, Value b, Value) { return a + b; });
    f(
        "subtract", [](auto exec, auto a, auto b, auto, auto out) { mp::subtract(exec, a, b, out); },
        [](Value a, Value b, Value) { return a - b; });
    f(
        "multiply", [](auto exec, auto a, auto b, auto, auto out) { mp::multiply(exec, a, b, out); },
        [](Value a, Value b, Value) { return a * b; });
    f(
        "divide", [](auto exec, auto a, auto b, auto, auto out) { mp::divide(exec, a, b, out); },
        [](Value a, Value b, Value) { return a / b; });
    f(
        "fma", [](auto exec, auto a, auto b, auto c, auto out) { mp::fma(exec, a, b, c, out); },
        [](Value a, Value b, Value c) {
            using std::fma;
            return fma(a, b, c);
        });
    f(
        "minimum", [](auto exec, auto a, auto b, auto, auto out) { mp::minimum(exec, a, b, out); },
        [](Value a, Value b, Value) { return smaller(a, b, false); });
    f(
        "maximum", [](auto exec, auto a, auto b, auto, auto out) { mp::maximum(exec, a, b, out); },
        [](Value a, Value b, Value) { return smaller(a, b, true); });
    f(
        "sqrt", [](auto exec, auto a, auto, auto, auto out) { mp::sqrt(exec, a, out); },
        [](Value a, Value, Value) {
            using std::sqrt;
            return sqrt(a);
        });
    f(
        "negate", [](auto exec, auto a, auto, auto, auto out) { mp::negate(exec, a, out); },
        [](Value a, Value, Value) { return -a; });
    f(
        "abs", [](auto exec, auto a, auto, auto, auto out) { mp::abs(exec, a, out); },
        [](Value a, Value, Value) {
            using std::abs;
            return abs(a);
        });
    if constexpr (mp::reduced<Value>) {
        f(
            "exp", [](auto exec, auto a, auto, auto, auto out) { mp::exp(exec, a, out); },
            [](Value a, Value, Value) { return exp(a); });
        f(
            "log", [](auto exec, auto a, auto, auto, auto out) { mp::log(exec, a, out); },
            [](Value a, Value, Value) { return log(a); });
        f(
            "tanh", [](auto exec, auto a, auto, auto, auto out) { mp::tanh(exec, a, out); },
            [](Value a, Value, Value) { return tanh(a); });
        f(
            "rsqrt", [](auto exec, auto a, auto, auto, auto out) { mp::rsqrt(exec, a, out); },
            [](Value a, Value, Value) { return rsqrt(a); });
        f(
            "sigmoid", [](auto exec, auto a, auto, auto, auto out) { mp::sigmoid(exec, a, out); },
            [](Value a, Value, Value) { return mp::sigmoid(a); });
    }
}

}  // namespace

TEST_CASE_TEMPLATE("arrays may begin at any byte", Value, float, mp::half, mp::bfloat16, mp::tfloat32,
                   mp::float8_e4m3fn) {
    constexpr std::size_t count = 70;
    constexpr std::size_t step = byte_step<Value>;
    const auto a = arrays::values<Value>(count, 1), b = arrays::values<Value>(count, 2),
               c = arrays::values<Value>(count, 3);
    for_each_operation<Value>([&](const std::string& name, auto of_arrays, auto of_numbers) {
        CAPTURE(name);
        std::vector<Value> expected;
        for (std::size_t i = 0; i < count; ++i) expected.push_back(of_numbers(a[i], b[i], c[i]));
        for (const mp::instruction_set isa : arrays::instruction_sets()) {
            CAPTURE(static_cast<int>(isa));
            std::size_t wrong = 0;
            for (std::size_t offset = 0; offset < 64; offset += step) {
                placed_array<Value> x(offset, count), y(64 - offset, count), z(3 * offset % 64, count),
                    out(offset, count);
                x.fill(a), y.fill(b), z.fill(c);
                of_arrays(mp::cpu{.instructions = isa}, x.span(), y.span(), z.span(), out.span());
                wrong += arrays::count_wrong(out.values(), [&](std::size_t i) { return expected[i]; });
                wrong += out.is_alone() ? 0U : 1U;
            }
            CHECK(wrong == 0);
        }
    });
}

TEST_CASE_TEMPLATE("arrays that are full of one special pair", Value, float, mp::half, mp::bfloat16,
                   mp::tfloat32, mp::float8_e4m3fn) {
    constexpr std::size_t count = 37;
    using limits = std::numeric_limits<Value>;
    std::vector<Value> special{Value(0.0F),   limits::denorm_min(), limits::min(),      Value(1.0F),
                               limits::max(), limits::infinity(),   limits::quiet_NaN()};
    const std::size_t positive = special.size() - 1;
    for (std::size_t i = 0; i < positive; ++i) special.push_back(-special[i]);
    std::vector<Value> out(count);
    for_each_operation<Value>([&](const std::string& name, auto of_arrays, auto of_numbers) {
        CAPTURE(name);
        const bool is_fused = name == "fma";
        for (const mp::instruction_set isa : arrays::instruction_sets()) {
            CAPTURE(static_cast<int>(isa));
            std::size_t wrong = 0;
            for (const Value x : special) {
                for (const Value y : special) {
                    for (std::size_t k = 0; k < (is_fused ? special.size() : 1U); ++k) {
                        const std::vector<Value> a(count, x), b(count, y), c(count, special[k]);
                        of_arrays(mp::cpu{.instructions = isa}, std::span<const Value>(a),
                                  std::span<const Value>(b), std::span<const Value>(c),
                                  std::span<Value>(out));
                        const Value expected = of_numbers(x, y, special[k]);
                        wrong += arrays::count_wrong(out, [&](std::size_t) { return expected; });
                    }
                }
            }
            CHECK(wrong == 0);
        }
    });
}
