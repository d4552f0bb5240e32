// SPDX-License-Identifier: MIT
// Stochastic rounding as IEEE P3109 defines it, and the generator of its bits.
#include <mp/numbers/format/philox.hpp>

#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using oracle::dyadic;
using oracle::format;
using oracle::natural;

constexpr mp::rounding kinds[] = {mp::rounding::stochastic_a, mp::rounding::stochastic_b,
                                  mp::rounding::stochastic_c};

/// Whether a real v in [0, 1) of the gap above `lower` goes up. All three definitions ask whether v 2^N
/// reaches a threshold; with T = 2^N - R that is T for A, T - 1/2 for B (2 v 2^N >= 2 T - 1 in integers), and
/// for C T - 1/2 too, but rounding to even reaches T from the tie T - 1/2 only if T is even. `versus(y)`
/// compares the real magnitude with y.
template <class Versus>
bool goes_up(const format& f, std::uint64_t lower, int count, std::uint32_t random, mp::rounding kind,
             Versus versus) {
    const std::uint64_t one = std::uint64_t{1} << count;
    const std::uint64_t threshold = one - (random & (one - 1));
    const dyadic value = value_of_magnitude(f, lower);
    // lower + threshold / 2^count, or half a step of 2^-count less, in units of a gap.
    const natural twice = natural(2) * (value.significand * natural(one) + natural(threshold));
    const dyadic bound{kind == mp::rounding::stochastic_a ? twice : twice - natural(1),
                       value.exponent - count - 1};
    if (kind != mp::rounding::stochastic_c || threshold % 2 == 0) return versus(bound) >= 0;
    return versus(bound) > 0;
}

template <class Value, class Versus, class Compute>
void compare(oracle::disagreements& wrong, bool negative, Versus versus, int count, std::uint32_t random,
             Compute compute, const char* name) {
    const format& f = oracle::format_of<Value>;
    const oracle::exact_result exact = locate(f, negative, versus);
    if (exact.where == oracle::place::beyond_range) return;
    for (const mp::rounding kind : kinds) {
        const bool up =
            exact.where != oracle::place::at_lower && goes_up(f, exact.lower, count, random, kind, versus);
        const std::uint64_t magnitude = exact.lower + (up ? 1 : 0);
        const oracle::outcome expected =
            magnitude > max_finite_code(f) || (negative && !f.is_signed && magnitude != 0)
                ? beyond(f, negative, false, oracle::saturate::none)
                : oracle::outcome{false, signed_code(f, negative, magnitude)};
        const mp::projection p{kind, mp::saturation::none, static_cast<unsigned char>(count), random};
        const std::uint64_t code = compute(p).bits();
        if (!matches(f, expected, code)) {
            wrong.add(name, exact.lower, static_cast<int>(kind), count, random, "gives", code, "instead of",
                      expected.code);
        }
    }
}

}  // namespace

TEST_CASE_TEMPLATE("stochastic rounding of doubles, products, quotients, sums and roots is P3109's", Value,
                   mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2fnuz,
                   mp::float6_e2m3fn, mp::float4_e2m1fn, mp::p3109<8, 1>,
                   mp::p3109<8, 5, mp::signedness::is_unsigned>) {
    const format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(401);
    for (int n = 0; n < 20000; ++n) {
        const int count = n % 4 == 0 ? 32 : static_cast<int>(random.below(33));
        // Half of the random numbers lie next to where the decision changes.
        auto bits = static_cast<std::uint32_t>(random.next());
        if (n % 2 == 0) bits = random.below(2) == 0 ? random.below(4) : ~random.below(4);
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        if (!is_finite(f, i) || !is_finite(f, j) || is_zero(f, i) || is_zero(f, j)) continue;
        const dyadic x = value_of_magnitude(f, magnitude_code(f, i));
        const dyadic y = value_of_magnitude(f, magnitude_code(f, j));
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const bool negative = is_negative(f, i) != is_negative(f, j);

        // A double near a number of the format, its significand cut to few bits in half of the cases.
        dyadic real{natural((random.next() >> 11) | 1), x.exponent - 50};
        if (n % 3 == 0) real.significand = natural((real.significand.low_bits() >> 38) | 1);
        real.exponent += n % 3 == 0 ? 38 : 0;
        double value = static_cast<double>(real.significand.low_bits());
        for (int e = real.exponent; e > 0; --e) value *= 2;
        for (int e = real.exponent; e < 0; ++e) value /= 2;
        compare<Value>(
            wrong, false, [&](const dyadic& z) { return oracle::compare(real, z); }, count, bits,
            [&](mp::projection p) { return mp::round_to<Value>(value, p); }, "double");
        compare<Value>(
            wrong, negative, [&](const dyadic& z) { return oracle::compare(product(x, y), z); }, count, bits,
            [&](mp::projection p) { return mp::multiply(a, b, p); }, "*");
        compare<Value>(
            wrong, negative, [&](const dyadic& z) { return oracle::compare(x, product(y, z)); }, count, bits,
            [&](mp::projection p) { return mp::divide(a, b, p); }, "/");
        const auto [sum_negative, sum] = signed_sum(is_negative(f, i), x, is_negative(f, j), y);
        if (!sum.significand.is_zero()) {
            compare<Value>(
                wrong, sum_negative, [&, s = sum](const dyadic& z) { return oracle::compare(s, z); }, count,
                bits, [&](mp::projection p) { return mp::add(a, b, p); }, "+");
        }
        if (!is_negative(f, i)) {
            compare<Value>(
                wrong, false, [&](const dyadic& z) { return oracle::compare(x, product(z, z)); }, count, bits,
                [&](mp::projection p) { return mp::sqrt(a, p); }, "sqrt");
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("stochastic rounding goes up as often as the distance says") {
    // 1 + 3/8 of an ulp of bfloat16.
    const double x = 1 + 0x3p-10;
    int up = 0;
    for (std::uint64_t i = 0; i < 100000; ++i) {
        const mp::bfloat16 y = mp::round_to<mp::bfloat16>(x, mp::stochastic(mp::random_bits(7, i)));
        up += y == mp::bfloat16(1 + 0x1p-7) ? 1 : 0;
        REQUIRE((y == mp::bfloat16(1.0) || y == mp::bfloat16(1 + 0x1p-7)));
    }
    // Six standard deviations of a binomial distribution are 0.0092.
    CHECK(up > 36580);
    CHECK(up < 38420);
}

TEST_CASE("random bits that are not given are zeros, which never round away from zero by kind A") {
    const mp::projection p{.round = mp::rounding::stochastic_a, .random_bits = 8};
    CHECK(mp::round_to<mp::half>(0x1.ffffffp0, p).bits() == 0x3fff);
    CHECK(mp::round_to<mp::half>(-0x1.ffffffp0, p).bits() == 0xbfff);
    // Neither is their count: kind B without random bits rounds to nearest.
    const mp::projection none{.round = mp::rounding::stochastic_b};
    CHECK(mp::round_to<mp::half>(0x1.002p0, none).bits() == 0x3c01);
    CHECK(mp::round_to<mp::half>(0x1.001fffp0, none).bits() == 0x3c00);
}

TEST_CASE("numbers of the format are left alone by stochastic rounding") {
    for (std::uint32_t random : {0U, 1U, 0x7fffffffU, ~0U}) {
        for (const mp::rounding kind : kinds) {
            const mp::projection p{kind, mp::saturation::none, 32, random};
            for (std::uint32_t code = 0; code < 0x7c00; ++code) {
                const auto x = mp::half::from_bits(static_cast<std::uint16_t>(code));
                REQUIRE(mp::round_to<mp::half>(static_cast<double>(x), p).bits() == code);
            }
        }
    }
}

TEST_CASE("Philox4x32-10 gives the known answers of its authors") {
    // Random123's kat_vectors, philox4x32 with 10 rounds.
    constexpr auto zeros = mp::philox4x32::generate({{0, 0, 0, 0}}, 0, 0);
    static_assert(zeros.word[0] == 0x6627e8d5 && zeros.word[1] == 0xe169c58d && zeros.word[2] == 0xbc57ac4c &&
                  zeros.word[3] == 0x9b00dbd8);
    constexpr std::uint32_t ones = 0xffffffff;
    constexpr auto all = mp::philox4x32::generate({{ones, ones, ones, ones}}, ones, ones);
    static_assert(all.word[0] == 0x408f276d && all.word[1] == 0x41c83b0e && all.word[2] == 0xa20bc7c6 &&
                  all.word[3] == 0x6d5451fd);
    constexpr auto pi =
        mp::philox4x32::generate({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
    static_assert(pi.word[0] == 0xd16cfe09 && pi.word[1] == 0x94fdcceb && pi.word[2] == 0x5001e420 &&
                  pi.word[3] == 0x24126ea1);
    // Four elements share a block of the generator.
    CHECK(mp::random_bits(0, 0) == 0x6627e8d5);
    CHECK(mp::random_bits(0, 3) == 0x9b00dbd8);
    CHECK(mp::random_bits(0, 4) == mp::philox4x32::generate({{1, 0, 0, 0}}, 0, 0).word[0]);
    CHECK(mp::random_bits(1, 4) != mp::random_bits(0, 4));
}
