// SPDX-License-Identifier: MIT
// Arithmetic on arrays against the operators on numbers, which the tests of format/ prove; float against the
// processor's.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "arrays/array/arrays.hpp"
#include "numbers/format/flushing_scope.hpp"
#include "numbers/simd/caller_modes.hpp"

using arrays::count_different;
using arrays::count_wrong;

namespace {

template <class Value>
Value fused(Value a, Value b, Value c) {
    if constexpr (mp::reduced<Value>) {
        return mp::fma(a, b, c);
    } else {
        return std::fma(a, b, c);
    }
}
template <class Value>
Value root(Value a) {
    if constexpr (mp::reduced<Value>) {
        return mp::sqrt(a);
    } else {
        return std::sqrt(a);
    }
}

/// The results of all operations on numbers.
template <class Value>
struct expectations {
    std::vector<Value> sum, difference, product, quotient, fused_sum, square_root, scaled, axpy;

    expectations(const std::vector<Value>& a, const std::vector<Value>& b, const std::vector<Value>& c,
                 Value alpha) {
        for (std::size_t i = 0; i < a.size(); ++i) {
            sum.push_back(a[i] + b[i]);
            difference.push_back(a[i] - b[i]);
            product.push_back(a[i] * b[i]);
            quotient.push_back(a[i] / b[i]);
            fused_sum.push_back(fused(a[i], b[i], c[i]));
            square_root.push_back(root(a[i]));
            scaled.push_back(alpha * a[i]);
            axpy.push_back(fused(alpha, a[i], c[i]));
        }
    }
};

/// Runs all operations with the instruction set and compares.
template <class Value>
void check_arithmetic(mp::cpu exec, const std::vector<Value>& a, const std::vector<Value>& b,
                      const std::vector<Value>& c, Value alpha, const expectations<Value>& expected) {
    CAPTURE(static_cast<int>(exec.instructions));
    std::vector<Value> out(a.size());
    const auto at = [](const std::vector<Value>& values) {
        return [&values](std::size_t i) { return values[i]; };
    };
    mp::add(exec, a, b, out);
    CHECK(count_wrong(out, at(expected.sum)) == 0);
    mp::subtract(exec, a, b, out);
    CHECK(count_wrong(out, at(expected.difference)) == 0);
    mp::multiply(exec, a, b, out);
    CHECK(count_wrong(out, at(expected.product)) == 0);
    mp::divide(exec, a, b, out);
    CHECK(count_wrong(out, at(expected.quotient)) == 0);
    mp::fma(exec, a, b, c, out);
    CHECK(count_wrong(out, at(expected.fused_sum)) == 0);
    mp::sqrt(exec, a, out);
    CHECK(count_wrong(out, at(expected.square_root)) == 0);
    mp::scale(exec, alpha, a, out);
    CHECK(count_wrong(out, at(expected.scaled)) == 0);
    out = c;
    mp::axpy(exec, alpha, a, out);
    CHECK(count_wrong(out, at(expected.axpy)) == 0);
}

template <class Value>
void check_arithmetic(std::size_t count) {
    for (int seed = 0; seed < 2; ++seed) {
        const auto a = arrays::values<Value>(count, 3 * static_cast<unsigned>(seed) + 1);
        auto b = arrays::values<Value>(count, 3 * static_cast<unsigned>(seed) + 2);
        auto c = arrays::values<Value>(count, 3 * static_cast<unsigned>(seed) + 3);
        // Sums that cancel, and products of which little is left when an addend is taken away.
        for (std::size_t i = 0; i < count; i += 4) {
            c[i] = -(a[i] * b[i]);
            b[i] = -a[i];
        }
        const Value alpha = seed == 0 ? a[5] : -Value{};
        const expectations<Value> expected(a, b, c, alpha);
        for (const auto isa : arrays::instruction_sets()) {
            check_arithmetic(mp::cpu{.instructions = isa}, a, b, c, alpha, expected);
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("arithmetic on arrays has the results of the operators on every instruction set", Value,
                   mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3,
                   mp::float8_e3m4, mp::float8_e4m3b11fnuz, mp::float8_e5m2fnuz, mp::float6_e2m3fn,
                   mp::float6_e3m2fn, mp::float4_e2m1fn, float) {
    check_arithmetic<Value>(20011);
}

TEST_CASE_TEMPLATE("fused sums at midpoints and beside them, of terms of all magnitudes", Value, mp::half,
                   mp::bfloat16, mp::tfloat32) {
    using limits = std::numeric_limits<Value>;
    const double unit = static_cast<double>(limits::epsilon());
    // Products that have all bits but the last, that are themselves midpoints, and that are numbers.
    const double factors[][2] = {
        {1 + unit, 1 - unit}, {1 + unit, 1 + unit}, {1.5, 1 + unit}, {2 - unit, 1.5}, {1.25, 1.5}};
    const double addends[] = {0, 1, 1 + unit, 4.0 / 3, 5.0 / 3, 2 - unit};
    const int step = limits::max_exponent > 16 ? 3 : 1;
    const int least = limits::min_exponent - limits::digits;
    std::vector<Value> a, b, c;
    for (const auto& factor : factors) {
        for (int i = 2 * least; i < limits::max_exponent; i += step) {
            for (int k = least; k < limits::max_exponent; k += step) {
                for (const double addend : addends) {
                    const int half = i / 2;
                    a.push_back(Value(std::ldexp(factor[0], half)));
                    b.push_back(Value(std::ldexp(i % 4 < 2 ? factor[1] : -factor[1], i - half)));
                    c.push_back(Value(std::ldexp(k % 2 == 0 ? addend : -addend, k)));
                }
            }
        }
    }
    std::vector<Value> expected, out(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(mp::fma(a[i], b[i], c[i]));
    for (const auto isa : arrays::instruction_sets()) {
        CAPTURE(static_cast<int>(isa));
        mp::fma(mp::cpu{.instructions = isa}, a, b, c, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return expected[i]; }) == 0);
    }
}

TEST_CASE_TEMPLATE("formats without vectors calculate too", Value, mp::basic_float<mp::formats::p3109<16, 6>>,
                   mp::float8_e8m0fnu) {
    if constexpr (std::is_same_v<Value, mp::float8_e8m0fnu>) {
        const std::vector<Value> a(9, Value(2.0F));
        std::vector<Value> out(9);
        mp::multiply(mp::cpu{}, a, a, out);
        CHECK(count_different(out, [](std::size_t) { return Value(4.0F); }) == 0);
        mp::maximum(mp::cpu{}, a, out, out);
        CHECK(count_different(out, [](std::size_t) { return Value(4.0F); }) == 0);
    } else {
        std::vector<Value> a(1000);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] = Value::from_bits(static_cast<typename Value::storage>(i * 7919));
        }
        std::vector<Value> out(a.size());
        mp::multiply(mp::cpu{}, a, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return a[i] * a[i]; }) == 0);
    }
}

TEST_CASE_TEMPLATE("all second operands of a slice of the first", Value, mp::half, mp::bfloat16) {
    // tests/arrays/array/exhaustive has all of them.
    std::vector<Value> all;
    for (std::uint32_t code = 0; code < 1U << 16; ++code) all.push_back(oracle::value_of<Value>(code));
    std::vector<Value> sums(all.size()), products(all.size()), quotients(all.size());
    std::vector<Value> out(all.size());
    for (std::uint32_t code = 3; code < 1U << 16; code += 3001) {
        const auto a = oracle::value_of<Value>(code);
        const std::vector<Value> same(all.size(), a);
        std::transform(all.begin(), all.end(), sums.begin(), [a](Value b) { return a + b; });
        std::transform(all.begin(), all.end(), products.begin(), [a](Value b) { return a * b; });
        std::transform(all.begin(), all.end(), quotients.begin(), [a](Value b) { return a / b; });
        for (const auto isa : arrays::instruction_sets()) {
            const mp::cpu exec{.instructions = isa};
            CAPTURE(static_cast<int>(isa));
            mp::add(exec, same, all, out);
            CHECK(count_wrong(out, [&](std::size_t i) { return sums[i]; }) == 0);
            mp::multiply(exec, same, all, out);
            CHECK(count_wrong(out, [&](std::size_t i) { return products[i]; }) == 0);
            mp::divide(exec, same, all, out);
            CHECK(count_wrong(out, [&](std::size_t i) { return quotients[i]; }) == 0);
        }
    }
}

TEST_CASE_TEMPLATE("minima, maxima, limits and signs have the bits of the functions of numbers", Value,
                   mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2fnuz,
                   mp::float4_e2m1fn) {
    const auto a = arrays::values<Value>(20011, 1);
    auto b = arrays::values<Value>(20011, 2);
    for (std::size_t i = 0; i < b.size(); i += 3) b[i] = i % 2 == 0 ? -a[i] : a[i];
    std::vector<Value> out(a.size());
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        CAPTURE(static_cast<int>(isa));
        mp::minimum(exec, a, b, out);
        CHECK(count_different(out, [&](std::size_t i) { return mp::minimum(a[i], b[i]); }) == 0);
        mp::maximum(exec, a, b, out);
        CHECK(count_different(out, [&](std::size_t i) { return mp::maximum(a[i], b[i]); }) == 0);
        mp::negate(exec, a, out);
        CHECK(count_different(out, [&](std::size_t i) { return -a[i]; }) == 0);
        mp::abs(exec, a, out);
        CHECK(count_different(out, [&](std::size_t i) { return mp::abs(a[i]); }) == 0);
        for (std::size_t limit = 0; limit < 8; ++limit) {
            const Value low = b[limit];
            const Value high = b[limit + 8];
            mp::clamp(exec, a, low, high, out);
            CHECK(count_different(
                      out, [&](std::size_t i) { return mp::minimum(mp::maximum(a[i], low), high); }) == 0);
        }
    }
}

TEST_CASE("minima and maxima of floats are those of IEEE 754-2019") {
    const std::vector<float> a{-0.0F, 0.0F, 1.0F, -INFINITY, 3.0F, NAN, 2.0F};
    const std::vector<float> b{0.0F, -0.0F, -1.0F, 5.0F, 3.0F, 1.0F, NAN};
    for (const auto isa : arrays::instruction_sets()) {
        std::vector<float> out(a.size());
        mp::minimum(mp::cpu{.instructions = isa}, a, b, out);
        const std::vector<float> smaller{-0.0F, -0.0F, -1.0F, -INFINITY, 3.0F, NAN, NAN};
        CHECK(count_wrong(out, [&](std::size_t i) { return smaller[i]; }) == 0);
        mp::maximum(mp::cpu{.instructions = isa}, a, b, out);
        const std::vector<float> larger{0.0F, 0.0F, 1.0F, 5.0F, 3.0F, NAN, NAN};
        CHECK(count_wrong(out, [&](std::size_t i) { return larger[i]; }) == 0);
        mp::abs(mp::cpu{.instructions = isa}, a, out);
        CHECK(!std::signbit(out[0]));
        CHECK(out[3] == INFINITY);
    }
}

TEST_CASE_TEMPLATE("every length, at every alignment, and nothing beside it is written", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn) {
    constexpr std::size_t room = 160;
    const auto a = arrays::values<Value>(room, 1);
    const auto b = arrays::values<Value>(room, 2);
    const auto guard = oracle::value_of<Value>(0x35);
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        std::size_t wrong = 0;
        for (std::size_t length = 0; length <= 130; ++length) {
            for (std::size_t shift = 0; shift < 8; ++shift) {
                const std::span<const Value> x(a.data() + shift, length);
                const std::span<const Value> y(b.data() + (3 * shift) % 8, length);
                std::vector<Value> out(room, guard);
                const std::size_t begin = (5 * shift + 1) % 16;
                const std::span<Value> target(out.data() + begin, length);
                const auto check = [&](auto expected) {
                    for (std::size_t i = 0; i < room; ++i) {
                        const bool inside = i >= begin && i < begin + length;
                        const Value right = inside ? expected(i - begin) : guard;
                        wrong += arrays::agree(out[i], right) ? 0U : 1U;
                    }
                };
                mp::multiply(exec, x, y, target);
                check([&](std::size_t i) { return x[i] * y[i]; });
                mp::maximum(exec, x, y, target);
                check([&](std::size_t i) { return mp::maximum(x[i], y[i]); });
                mp::scale(exec, a[0], y, target);
                check([&](std::size_t i) { return a[0] * y[i]; });
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE_TEMPLATE("an output may be an input", Value, mp::half, mp::bfloat16, mp::tfloat32,
                   mp::float8_e5m2) {
    const auto a = arrays::values<Value>(999, 1);
    const auto b = arrays::values<Value>(999, 2);
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        CAPTURE(static_cast<int>(isa));
        auto x = a;
        mp::divide(exec, x, b, x);
        CHECK(count_wrong(x, [&](std::size_t i) { return a[i] / b[i]; }) == 0);
        x = b;
        mp::divide(exec, a, x, x);
        CHECK(count_wrong(x, [&](std::size_t i) { return a[i] / b[i]; }) == 0);
        x = a;
        mp::multiply(exec, x, x, x);
        CHECK(count_wrong(x, [&](std::size_t i) { return a[i] * a[i]; }) == 0);
        x = a;
        mp::fma(exec, x, b, x, x);
        CHECK(count_wrong(x, [&](std::size_t i) { return mp::fma(a[i], b[i], a[i]); }) == 0);
        x = a;
        mp::clamp(exec, x, b[0], b[1], x);
        CHECK(count_different(x, [&](std::size_t i) { return mp::minimum(mp::maximum(a[i], b[0]), b[1]); }) ==
              0);
    }
}

TEST_CASE("threads work on chunks") {
    const auto a = arrays::values<mp::half>(300001, 1);
    const auto b = arrays::values<mp::half>(300001, 2);
    std::vector<mp::half> one(a.size());
    mp::add(mp::cpu{}, a, b, one);
    for (int threads = 2; threads <= 7; ++threads) {
        std::vector<mp::half> out(a.size());
        mp::add(mp::cpu{.threads = threads}, a, b, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return one[i]; }) == 0);
    }
}

#if TEST_CAN_FLUSH
TEST_CASE_TEMPLATE("modes of the caller change nothing, and stay", Value, mp::half, mp::bfloat16,
                   mp::float8_e4m3fn, float) {
    const auto a = arrays::values<Value>(5003, 1);
    const auto b = arrays::values<Value>(5003, 2);
    const auto c = arrays::values<Value>(5003, 3);
    const expectations<Value> expected(a, b, c, a[5]);
    for (const auto isa : arrays::instruction_sets()) {
        for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            const arrays::rounding_scope rounding(mode);
            const flushing_scope flushing;
            const mode_bits before = current_modes();
            check_arithmetic(mp::cpu{.instructions = isa}, a, b, c, a[5], expected);
            CHECK(current_modes() == before);
        }
    }
}
#endif

TEST_CASE("arguments that make no sense are refused by name, with nothing written") {
    const mp::cpu exec;
    const std::vector<mp::half> a(8, mp::half(1.0F));
    const std::vector<mp::half> shorter(7);
    std::vector<mp::half> out(8, mp::half(3.0F));
    CHECK_THROWS_WITH_AS(mp::add(exec, shorter, a, out),
                         "mp::add: a.size() is 7; it must equal out.size(), which is 8", mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::multiply(exec, a, shorter, out),
                         "mp::multiply: b.size() is 7; it must equal out.size(), which is 8",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::fma(exec, a, a, shorter, out),
                         "mp::fma: c.size() is 7; it must equal out.size(), which is 8", mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::axpy(exec, a[0], shorter, out),
                         "mp::axpy: x.size() is 7; it must equal y.size(), which is 8", mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::abs(mp::cpu{.threads = 0}, a, out),
                         "mp::abs: exec.threads is 0; it must be at least 1", mp::argument_error);
    CHECK_THROWS_WITH_AS(
        mp::sqrt(exec, std::span<const mp::half>(static_cast<const mp::half*>(nullptr), 8), out),
        "mp::sqrt: x.data() is 'null'; it must point to x.size() elements", mp::argument_error);
    const std::span<mp::half> all(out);
    CHECK_THROWS_WITH_AS(mp::negate(exec, all.first(7), all.last(7)),
                         "mp::negate: out is 'overlapping x'; it must be x or memory of its own",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(mp::subtract(exec, all.first(7), all.last(7), all.first(7)),
                         "mp::subtract: out is 'overlapping b'; it must be b or memory of its own",
                         mp::argument_error);
    if (mp::processor_instruction_set() != mp::instruction_set::amx) {
        CHECK_THROWS_AS(mp::add(mp::cpu{.instructions = mp::instruction_set::amx}, a, a, out),
                        mp::argument_error);
    }
    CHECK(count_different(out, [](std::size_t) { return mp::half(3.0F); }) == 0);
    mp::add(exec, std::span<const mp::half>(), std::span<const mp::half>(), std::span<mp::half>());
}
