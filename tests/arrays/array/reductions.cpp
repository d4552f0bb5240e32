// SPDX-License-Identifier: MIT
// Sums of arrays: the documented order, written down once more, gives the same bits on every instruction set and with
// any number of threads; and the documented error bounds hold against exact integers.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "arrays/array/arrays.hpp"
#include "numbers/format/flushing_scope.hpp"

namespace {

/// A value that the compiler neither contracts nor reorders.
template <class Native>
Native stored(Native x) {
    volatile Native kept = x;
    return kept;
}

/// The order that mp::sum promises.
template <class Native>
Native in_documented_order(const std::vector<Native>& terms, std::size_t begin, std::size_t end) {
    constexpr std::size_t block = 4096;
    const std::size_t count = end - begin;
    if (count == 0) return 0;
    const std::size_t blocks = (count + block - 1) / block;
    if (blocks > 1) {
        const std::size_t middle = begin + std::bit_floor(blocks - 1) * block;
        return stored(in_documented_order(terms, begin, middle) + in_documented_order(terms, middle, end));
    }
    std::array<Native, 64> lane{};
    for (std::size_t i = begin; i < end; ++i) {
        Native& sum = lane[(i - begin) % 64];
        sum = stored(sum + terms[i]);
    }
    for (std::size_t width = 32; width >= 1; width /= 2) {
        for (std::size_t j = 0; j < width; ++j) lane[j] = stored(lane[j] + lane[j + width]);
    }
    return lane[0];
}

template <class Native, class Term>
Native expected_sum(std::size_t count, Term term) {
    std::vector<Native> terms(count);
    for (std::size_t i = 0; i < count; ++i) terms[i] = stored(static_cast<Native>(term(i)));
    return in_documented_order(terms, 0, count);
}

template <class Value>
std::vector<Value> normal_values(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<Value> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(Value(normal(random)));
    return result;
}

bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// All reductions of two arrays.
struct results {
    float sum, sum_in_double, dot, dot_in_double, norm;

    template <class A, class B>
    results(mp::cpu exec, const A& a, const B& b)
        : sum(mp::sum(exec, a)),
          sum_in_double(mp::sum(exec, a, mp::summation::in_double)),
          dot(mp::dot(exec, a, b)),
          dot_in_double(mp::dot(exec, a, b, mp::summation::in_double)),
          norm(mp::norm(exec, a)) {}
    results() = default;

    [[nodiscard]] bool agrees(const results& other) const {
        return same(sum, other.sum) && same(sum_in_double, other.sum_in_double) && same(dot, other.dot) &&
               same(dot_in_double, other.dot_in_double) && same(norm, other.norm);
    }
};

template <class A, class B>
results expected_results(const std::vector<A>& a, const std::vector<B>& b) {
    const auto x = [&](std::size_t i) { return static_cast<float>(a[i]); };
    const auto y = [&](std::size_t i) { return static_cast<float>(b[i]); };
    const auto wide = [&](std::size_t i) { return static_cast<double>(x(i)); };
    results right;
    right.sum = expected_sum<float>(a.size(), x);
    right.sum_in_double = static_cast<float>(expected_sum<double>(a.size(), wide));
    right.dot = expected_sum<float>(a.size(), [&](std::size_t i) { return stored(x(i) * y(i)); });
    right.dot_in_double = static_cast<float>(
        expected_sum<double>(a.size(), [&](std::size_t i) { return wide(i) * static_cast<double>(y(i)); }));
    right.norm = static_cast<float>(
        std::sqrt(expected_sum<double>(a.size(), [&](std::size_t i) { return wide(i) * wide(i); })));
    return right;
}

}  // namespace

TEST_CASE_TEMPLATE("every instruction set and number of threads gives the bits of the documented order",
                   Value, mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, float) {
    for (const std::size_t count :
         {0U, 1U, 2U, 63U, 64U, 65U, 4095U, 4096U, 4097U, 8192U, 12289U, 28673U, 700001U}) {
        CAPTURE(count);
        const auto a = normal_values<Value>(count, 1);
        const auto b = normal_values<Value>(count, 2);
        const results right = expected_results(a, b);
        for (const auto isa : arrays::instruction_sets()) {
            CAPTURE(static_cast<int>(isa));
            for (int threads = 1; threads <= (count > 100000 ? 7 : 2); ++threads) {
                CHECK(results(mp::cpu{.threads = threads, .instructions = isa}, a, b).agrees(right));
            }
        }
    }
}

TEST_CASE("millions of elements on many threads") {
    const auto a = normal_values<mp::half>(5000003, 1);
    const results right = expected_results(a, a);
    for (int threads = 1; threads <= 64; threads *= 3) {
        CHECK(results(mp::cpu{.threads = threads}, a, a).agrees(right));
    }
}

TEST_CASE("an inner product of two formats") {
    const auto a = normal_values<mp::half>(10007, 1);
    const auto b = normal_values<float>(10007, 2);
    const results right = expected_results(a, b);
    for (const auto isa : arrays::instruction_sets()) {
        CHECK(results(mp::cpu{.instructions = isa}, a, b).agrees(right));
    }
}

TEST_CASE_TEMPLATE("small lengths at all alignments", Value, mp::half, mp::bfloat16, mp::float8_e5m2, float) {
    const auto a = normal_values<Value>(160, 1);
    for (const auto isa : arrays::instruction_sets()) {
        std::size_t wrong = 0;
        for (std::size_t length = 0; length <= 130; ++length) {
            for (std::size_t shift = 0; shift < 8; ++shift) {
                // Memory of its own, so that a sanitizer sees reading beyond it.
                const std::vector<Value> part(a.begin() + static_cast<std::ptrdiff_t>(shift),
                                              a.begin() + static_cast<std::ptrdiff_t>(shift + length));
                const float right =
                    expected_sum<float>(length, [&](std::size_t i) { return float(part[i]); });
                wrong +=
                    same(mp::sum(mp::cpu{.instructions = isa}, std::span(a).subspan(shift, length)), right)
                        ? 0U
                        : 1U;
                wrong += same(mp::sum(mp::cpu{.instructions = isa}, part), right) ? 0U : 1U;
            }
        }
        CHECK(wrong == 0);
    }
}

TEST_CASE("the error bounds hold against exact sums") {
    // Numbers of half are integers in units of 2^-24, and products in units of 2^-48.
    for (const std::size_t count : {100U, 4096U, 100000U, 1000000U}) {
        const auto a = arrays::values<mp::half>(count, 5);
        auto finite = a;
        for (auto& x : finite) {
            if (!mp::isfinite(x)) x = mp::half(0.25F);
        }
        __extension__ using exact_integer = __int128;
        exact_integer sum = 0, magnitudes = 0, products = 0, squares = 0, product_magnitudes = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto x = static_cast<std::int64_t>(std::ldexp(static_cast<double>(finite[i]), 24));
            const auto y =
                static_cast<std::int64_t>(std::ldexp(static_cast<double>(finite[count - 1 - i]), 24));
            sum += x;
            magnitudes += std::abs(x);
            products += static_cast<exact_integer>(x) * y;
            product_magnitudes += static_cast<exact_integer>(std::abs(x)) * std::abs(y);
            squares += static_cast<exact_integer>(x) * x;
        }
        std::vector<mp::half> reversed(finite.rbegin(), finite.rend());
        const auto blocks = static_cast<double>((count + 4095) / 4096);
        const double depth = 69 + std::ceil(std::log2(blocks));
        const auto exact = [](exact_integer x, int exponent) {
            return std::ldexp(static_cast<long double>(x), exponent);
        };
        const auto check = [&](float result, long double right, long double of_magnitudes, int bits) {
            const long double bound =
                depth * std::ldexp(1.0L, -bits) / (1 - depth * std::ldexp(1.0L, -bits)) * of_magnitudes +
                (bits == 53 ? std::ldexp(1.0L, -24) * std::abs(right) : 0);
            CHECK(std::abs(result - right) <= bound);
        };
        const mp::cpu exec;
        const long double m = exact(magnitudes, -24);
        check(mp::sum(exec, finite), exact(sum, -24), m, 24);
        check(mp::sum(exec, finite, mp::summation::in_double), exact(sum, -24), m, 53);
        const long double pm = exact(product_magnitudes, -48);
        check(mp::dot(exec, finite, reversed), exact(products, -48), pm, 24);
        check(mp::dot(exec, finite, reversed, mp::summation::in_double), exact(products, -48), pm, 53);
        const long double norm = std::sqrt(exact(squares, -48));
        CHECK(std::abs(mp::norm(exec, finite) - norm) <=
              norm * (std::ldexp(1.0L, -24) + (depth + 2) * std::ldexp(1.0L, -54)));
    }
}

TEST_CASE("sums of specials, and what would overflow in float") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        CHECK(same(mp::sum(exec, std::vector<mp::half>{}), 0.0F));
        CHECK(same(mp::sum(exec, std::vector<float>(70, -0.0F)), 0.0F));
        CHECK(mp::sum(exec, std::vector<float>{1, infinity, 2}) == infinity);
        CHECK(arrays::is_nan(mp::sum(exec, std::vector<float>{infinity, -infinity})));
        CHECK(arrays::is_nan(mp::sum(exec, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()})));
        CHECK(mp::norm(exec, std::vector<float>{3e38F, -3e38F, 3e38F}) == infinity);
        CHECK(mp::norm(exec, std::vector<float>{3e37F, 4e37F}) == 5e37F);
        CHECK(mp::norm(exec, std::vector<float>{3e-45F, 0}) == 3e-45F);
        CHECK(mp::norm(exec, std::vector<float>{-infinity, 1}) == infinity);
        const std::vector<float> large{3e38F, 3e38F, -3e38F, -3e38F};
        std::vector<float> apart(130);
        apart[0] = apart[64] = 3e38F;
        apart[1] = apart[65] = -3e38F;
        CHECK(arrays::is_nan(mp::sum(exec, apart)));
        CHECK(mp::sum(exec, apart, mp::summation::in_double) == 0);
        CHECK(mp::dot(exec, large, large, mp::summation::in_double) == infinity);
    }
}

#if TEST_CAN_FLUSH
TEST_CASE_TEMPLATE("modes of the caller do not change sums", Value, mp::half, mp::bfloat16, float) {
    auto a = arrays::values<Value>(300001, 1);
    for (auto& x : a) {
        if (!(std::abs(static_cast<float>(x)) < 1e-30F)) x = Value(1e-38F);
    }
    const results right = expected_results(a, a);
    for (const auto isa : arrays::instruction_sets()) {
        for (const int mode : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            const arrays::rounding_scope rounding(mode);
            const flushing_scope flushing;
            const results got(mp::cpu{.threads = 2, .instructions = isa}, a, a);
            CHECK(got.agrees(right));
        }
    }
}
#endif

TEST_CASE("arguments of reductions are checked") {
    const mp::cpu exec;
    const std::vector<mp::half> a(8), b(7);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::dot(exec, a, b)),
                         "mp::dot: b.size() is 7; it must equal a.size(), which is 8", mp::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::sum(mp::cpu{.threads = -1}, a)),
                         "mp::sum: exec.threads is -1; it must be at least 1", mp::argument_error);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(mp::norm(exec, std::span<const float>(static_cast<const float*>(nullptr), 3))),
        "mp::norm: x.data() is 'null'; it must point to x.size() elements", mp::argument_error);
}
