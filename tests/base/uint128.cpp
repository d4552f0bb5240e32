// SPDX-License-Identifier: MIT
// The pair of words that stands for integers of 128 bits where the compiler has none, against the compiler's,
// and where there is none, against the arithmetic of the oracle.
#include <mp/base/bits.hpp>
#include <oracle/natural.hpp>
#include <oracle/random.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

namespace {

using mp::detail::word_pair;

/// Words whose carries, borrows and quotients lie at the edges, and random ones of all lengths.
std::vector<std::uint64_t> words() {
    constexpr std::uint64_t top = std::uint64_t{1} << 63;
    constexpr std::uint64_t half = std::uint64_t{1} << 32;
    std::vector<std::uint64_t> result{0,        1,       2,   3,       10,   half - 1, half,
                                      half + 1, top - 1, top, top + 1, ~top, ~half,    ~std::uint64_t{0}};
    oracle::random_bits random(7);
    for (unsigned shift = 0; shift < 64; shift += 7) result.push_back(random.next() >> shift);
    return result;
}

std::uint64_t high(word_pair x) {
    return static_cast<std::uint64_t>(x >> 64);
}
std::uint64_t low(word_pair x) {
    return static_cast<std::uint64_t>(x);
}

}  // namespace

#if defined(__SIZEOF_INT128__)

namespace {

__extension__ using uint128 = unsigned __int128;

uint128 whole(word_pair x) {
    return static_cast<uint128>(high(x)) << 64 | low(x);
}

}  // namespace

TEST_CASE("a pair of words calculates as the compiler's integers of 128 bits") {
    std::uint64_t wrong = 0;
    const auto all = words();
    std::vector<word_pair> values;
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = i % 3; j < all.size(); j += 3) values.push_back({all[i], all[j]});
        values.push_back(all[i]);
    }
    for (const word_pair x : values) {
        const uint128 a = whole(x);
        wrong += static_cast<uint128>(x) != a || word_pair(a) != x || whole(~x) != ~a;
        for (int count = 0; count < 128; ++count) {
            wrong += whole(x << count) != a << count || whole(x >> count) != a >> count;
        }
        for (const word_pair y : values) {
            const uint128 b = whole(y);
            wrong += whole(x + y) != a + b || whole(x - y) != a - b || whole(x * y) != a * b;
            wrong += whole(x & y) != (a & b) || whole(x | y) != (a | b) || whole(x ^ y) != (a ^ b);
            wrong += (x < y) != (a < b) || (x <= y) != (a <= b) || (x > y) != (a > b) || (x >= y) != (a >= b);
            wrong += (x == y) != (a == b) || (x != y) != (a != b);
            if (b != 0) wrong += whole(x / y) != a / b || whole(x % y) != a % b;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("a pair of words takes integers as the compiler's does") {
    CHECK(whole(word_pair(-1)) == ~uint128{0});
    CHECK(whole(word_pair(std::int64_t{-5})) == static_cast<uint128>(-5));
    CHECK(whole(word_pair(~0U)) == 0xffffffffU);
    CHECK(whole(word_pair(true)) == 1);
    __extension__ using int128 = __int128;
    CHECK(word_pair(static_cast<int128>(-7)) == word_pair(-7));
    CHECK(static_cast<int128>(word_pair(-7)) == -7);
    CHECK(static_cast<bool>(word_pair{1, 0}));
}

#endif

TEST_CASE("quotients of pairs of words fit their rests") {
    std::uint64_t wrong = 0;
    const auto all = words();
    for (const std::uint64_t a : all) {
        for (const std::uint64_t b : all) {
            for (const std::uint64_t c : all) {
                if (c == 0) continue;
                const word_pair dividend{a, b};
                const word_pair quotient = dividend / c;
                // quotient * divisor + rest, in integers of any size
                const oracle::natural product = (oracle::natural(high(quotient)) << 64) * c +
                                                oracle::natural(low(quotient)) * c +
                                                oracle::natural(low(dividend % c));
                wrong += high(dividend % c) != 0 || low(dividend % c) >= c ||
                         product != (oracle::natural(a) << 64) + oracle::natural(b);
            }
        }
    }
    CHECK(wrong == 0);
}
