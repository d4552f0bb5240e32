// SPDX-License-Identifier: MIT
// Half and bfloat16: all unary cases, a dense slice of the pairs, and pairs and triples weighted to the
// edges. All 2^32 pairs are compared by the programs in exhaustive/.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/interval.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

template <class Value>
struct words_of {
    static constexpr int value = 1;
};
template <>
struct words_of<mp::bfloat16> {
    static constexpr int value = 5;
};

}  // namespace

TEST_CASE_TEMPLATE("operators on a slice of all pairs give results that the oracle admits", Value, mp::half,
                   mp::bfloat16) {
    const oracle::interval_oracle<words_of<Value>::value> judge(
        oracle::format_of<Value>, oracle::mode::nearest_even, oracle::saturate::none);
    oracle::disagreements wrong;
    // 509 is prime, so the slice meets every code on either side.
    for (std::uint64_t pair = 0; pair < std::uint64_t{1} << 32; pair += 509) {
        const auto i = static_cast<std::uint32_t>(pair >> 16);
        const auto j = static_cast<std::uint32_t>(pair & 0xffff);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        if (!judge.admits_sum(i, j, (a + b).bits())) wrong.add(i, "+", j, "gives", (a + b).bits());
        if (!judge.admits_difference(i, j, (a - b).bits())) wrong.add(i, "-", j, "gives", (a - b).bits());
        if (!judge.admits_product(i, j, (a * b).bits())) wrong.add(i, "*", j, "gives", (a * b).bits());
        if (!judge.admits_quotient(i, j, (a / b).bits())) wrong.add(i, "/", j, "gives", (a / b).bits());
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("sums, products and quotients at the edges are the oracle's, in every projection", Value,
                   mp::half, mp::bfloat16) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(21);
    for (int n = 0; n < 250000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::add(f, i, j), [&](mp::projection p) { return mp::add(a, b, p); }, i, "+", j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::subtract(f, i, j), [&](mp::projection p) { return mp::subtract(a, b, p); }, i, "-",
            j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::multiply(f, i, j), [&](mp::projection p) { return mp::multiply(a, b, p); }, i, "*",
            j);
        oracle::compare_in_every_projection<Value>(
            wrong, oracle::divide(f, i, j), [&](mp::projection p) { return mp::divide(a, b, p); }, i, "/", j);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("fused products at the edges are the oracle's, in every projection", Value, mp::half,
                   mp::bfloat16) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(22);
    const auto compare = [&](std::uint64_t i, std::uint64_t j, std::uint64_t k) {
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        const oracle::exact_result exact = oracle::fma(f, i, j, k);
        oracle::compare_in_every_projection<Value>(
            wrong, exact, [&](mp::projection p) { return mp::fma(a, b, c, p); }, "fma", i, j, k);
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, mp::fma(a, b, c).bits())) wrong.add("fma", i, j, k, "without projection");
    };
    for (int n = 0; n < 300000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        std::uint64_t k = weighted_partner(random, f, i);
        if (n % 2 == 0) {
            // An addend that nearly cancels the product, or one far below a product that is a midpoint.
            const Value product = oracle::value_of<Value>(i) * oracle::value_of<Value>(j);
            k = (product.bits() ^ oracle::sign_bit(f)) + random.below(3) - 1;
            k &= 0xffff;
        }
        compare(i, j, k);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("fused products that are wrong through float, or even through double, are right") {
    const auto half = [](int bits) { return mp::half::from_bits(static_cast<std::uint16_t>(bits)); };
    const auto bfloat = [](int bits) { return mp::bfloat16::from_bits(static_cast<std::uint16_t>(bits)); };
    CHECK(mp::fma(half(0x520b), half(0x00e9), half(0x2ff6)).bits() == 0x3001);
    CHECK(mp::fma(bfloat(0x3bb4), bfloat(0x73b0), bfloat(0x85ec)).bits() == 0x6ff7);
    CHECK(mp::fma(bfloat(0x3bb4), bfloat(0x73b0), bfloat(0x05ec)).bits() == 0x6ff8);
}

TEST_CASE_TEMPLATE("the square roots of all codes are the oracle's, in every projection", Value, mp::half,
                   mp::bfloat16) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    for (std::uint32_t i = 0; i < 1U << 16; ++i) {
        const Value a = oracle::value_of<Value>(i);
        const oracle::exact_result exact = oracle::sqrt(f, i);
        oracle::compare_in_every_projection<Value>(
            wrong, exact, [&](mp::projection p) { return mp::sqrt(a, p); }, "sqrt", i);
        const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, mp::sqrt(a).bits())) wrong.add("sqrt", i, "without projection");
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("compound assignment, increment and unary signs follow from the operators", Value,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::random_bits random(23);
    const Value one(1.0f);
    for (int n = 0; n < 10000; ++n) {
        const Value a = oracle::value_of<Value>(weighted_code(random, f));
        const Value b = oracle::value_of<Value>(weighted_code(random, f));
        const auto same = [](Value x, Value y) {
            return x.bits() == y.bits() || (mp::isnan(x) && mp::isnan(y));
        };
        Value x = a;
        REQUIRE(same(x += b, a + b));
        REQUIRE(same(x, a + b));
        x = a;
        REQUIRE(same(x -= b, a - b));
        x = a;
        REQUIRE(same(x *= b, a * b));
        x = a;
        REQUIRE(same(x /= b, a / b));
        x = a;
        REQUIRE(same(x++, a));
        REQUIRE(same(x, a + one));
        x = a;
        REQUIRE(same(--x, a - one));
        x = a;
        REQUIRE(same(x--, a));
        REQUIRE(same(x, a - one));
        x = a;
        REQUIRE(same(++x, a + one));
        REQUIRE((+a).bits() == a.bits());
        REQUIRE((-a).bits() == (a.bits() ^ oracle::sign_bit(f)));
    }
}
