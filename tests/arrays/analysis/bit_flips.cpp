// SPDX-License-Identifier: MIT
// Flipped bits are those that are named, are undone by naming them again, and are as frequent as they should be.
#include <mp/arrays/analysis/bit_flips.hpp>
#include <mp/float4.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "nn/scaling/thrown.hpp"

TEST_CASE("bits that are named are flipped, and flipped back") {
    std::vector<std::uint32_t> values{0, 0xffffffff};
    const std::vector<mp::bit_flip> flips{{0, 0}, {0, 17}, {1, 31}};
    mp::flip_bits(values, flips);
    CHECK(values == std::vector<std::uint32_t>{0x20001, 0x7fffffff});
    std::vector<mp::half> halves(1);
    mp::flip_bits(halves, std::vector<mp::bit_flip>{{0, 14}});
    CHECK(halves[0].bits() == 0x4000);
    std::vector<double> doubles(1000, 1.0);
    const auto faults = mp::flip_bits(doubles, {.seed = 5, .probability = 0.01});
    CHECK(faults.size() > 500);
    for (std::size_t i = 1; i < faults.size(); ++i) {
        CHECK((faults[i - 1].index < faults[i].index ||
               (faults[i - 1].index == faults[i].index && faults[i - 1].bit < faults[i].bit)));
    }
    std::vector<double> expected(1000, 1.0);
    for (const mp::bit_flip& it : faults) {
        expected[it.index] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(expected[it.index]) ^
                                                   std::uint64_t{1} << it.bit);
    }
    for (std::size_t i = 0; i < 1000; ++i)
        CHECK(std::bit_cast<std::uint64_t>(doubles[i]) == std::bit_cast<std::uint64_t>(expected[i]));
    mp::flip_bits(doubles, faults);
    CHECK(doubles == std::vector<double>(1000, 1.0));
}

TEST_CASE("bits are flipped as often as they should, each alike, and by the seed") {
    for (const double probability : {0.002, 0.3, 1.0}) {
        CAPTURE(probability);
        std::vector<mp::half> values(20000);
        const auto faults = mp::flip_bits(
            values, {.seed = 9, .probability = probability, .lowest_bit = 3, .highest_bit = 10});
        std::vector<double> of_bit(16);
        for (const mp::bit_flip& it : faults) of_bit[static_cast<std::size_t>(it.bit)] += 1;
        const double expected = 20000 * probability;
        // Five standard deviations.
        const double bound = 5 * std::sqrt(expected * (1 - probability)) + 1e-9;
        for (std::size_t bit = 0; bit < 16; ++bit) {
            CAPTURE(bit);
            if (bit < 3 || bit > 10)
                CHECK(of_bit[bit] == 0);
            else
                CHECK(std::abs(of_bit[bit] - expected) <= bound);
        }
    }
    std::vector<mp::float4_e2m1fn> small(100);
    const auto some = mp::flip_bits(small, {.seed = 1, .count = 37});
    CHECK(some.size() == 37);
    for (const mp::bit_flip& it : some) CHECK(it.bit < 4);
    std::vector<mp::float4_e2m1fn> again(100);
    CHECK(mp::flip_bits(again, {.seed = 1, .count = 37}) == some);
    CHECK(mp::flip_bits(again, {.seed = 2, .count = 37}) != some);
    CHECK(mp::flip_bits(again, {.count = 400}).size() == 400);
    CHECK(mp::flip_bits(again, {.probability = 1e-300}).empty());
    float one = 1.0F;
    CHECK(mp::flip_bits(one, {.count = 1, .lowest_bit = 31}).size() == 1);
    CHECK(one == -1.0F);
}

TEST_CASE("what cannot be flipped is refused, and nothing is changed") {
    std::vector<mp::half> values(2);
    const auto refused = [&](const mp::bit_flip_options& it) {
        return thrown<mp::argument_error>([&] { mp::flip_bits(values, it); });
    };
    CHECK(holds(refused({}), "count is 0; it must be given, or else probability"));
    CHECK(holds(refused({.count = 1, .probability = 0.5}), "count is 1"));
    CHECK(holds(refused({.count = 33}), "at most the number of bits"));
    CHECK(holds(refused({.probability = 2}), "probability is 2"));
    CHECK(holds(refused({.count = 1, .lowest_bit = 16}), "lowest_bit is 16"));
    CHECK(holds(refused({.count = 1, .lowest_bit = 4, .highest_bit = 3}), "highest_bit is 3"));
    CHECK(holds(
        thrown<mp::argument_error>([&] { mp::flip_bits(values, std::vector<mp::bit_flip>{{0, 1}, {2, 0}}); }),
        "index is 2"));
    CHECK(
        holds(thrown<mp::argument_error>([&] { mp::flip_bits(values, std::vector<mp::bit_flip>{{0, 16}}); }),
              "bit is 16"));
    CHECK(values == std::vector<mp::half>(2));
}
