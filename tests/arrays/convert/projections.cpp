// SPDX-License-Identifier: MIT
// Every projection of arrays at every instruction set gives the bits of single numbers, and stochastic
// rounding takes the random bits of each element's index.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "arrays/convert/projections.hpp"
#include "oracle/library.hpp"

namespace {

using convert_test::deterministic_projections;

template <class From, class To>
void compare(oracle::disagreements& wrong, const std::vector<From>& from, mp::projection p) {
    std::vector<To> expected(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) expected[i] = mp::round_to<To>(from[i], p);
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        std::vector<To> to(from.size());
        mp::convert(mp::cpu{.instructions = isa}, from, to, p);
        for (std::size_t i = 0; i < to.size(); ++i) {
            if (bits_of(to[i]) != bits_of(expected[i])) {
                wrong.add(static_cast<int>(isa), bits_of(from[i]), "becomes", bits_of(to[i]), "and not",
                          bits_of(expected[i]), "rounding", static_cast<int>(p.round), "saturation",
                          static_cast<int>(p.saturate), "nan", static_cast<int>(p.nan));
            }
        }
    }
}

template <class From, class To>
void compare_stochastic(oracle::disagreements& wrong, mp::projection p, std::uint64_t first) {
    const std::vector<From> from = edge_values<From, To>(1500);
    constexpr std::uint64_t seed = 0x1234'5678'9abc'def0;
    std::vector<To> expected(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
        p.random = mp::random_bits(seed, first + i);
        expected[i] = mp::round_to<To>(from[i], p);
    }
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        std::vector<To> to(from.size());
        mp::convert_stochastic(mp::cpu{.instructions = isa}, from, to, seed, first, p);
        for (std::size_t i = 0; i < to.size(); ++i) {
            if (bits_of(to[i]) != bits_of(expected[i])) {
                wrong.add(static_cast<int>(isa), bits_of(from[i]), "becomes", bits_of(to[i]), "and not",
                          bits_of(expected[i]), "rounding", static_cast<int>(p.round), "random bits",
                          static_cast<int>(p.random_bits), "index", i);
            }
        }
    }
}

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing thrown";
}

}  // namespace

TEST_CASE_TEMPLATE_DEFINE("every instruction set rounds in every projection as single numbers are", T,
                          projections) {
    oracle::disagreements wrong;
    const std::vector<float> floats = edge_values<float, T>(4000);
    const std::vector<double> doubles = edge_values<double, T>(4000);
    const std::vector<mp::half> halves = edge_values<mp::half, T>(4000);
    const std::vector<T> numbers = edge_values<T, float>(2000);
    for (const mp::projection p : deterministic_projections()) {
        compare<float, T>(wrong, floats, p);
        compare<double, T>(wrong, doubles, p);
        compare<mp::half, T>(wrong, halves, p);
        compare<T, float>(wrong, numbers, p);
        compare<T, double>(wrong, numbers, p);
        compare<T, mp::bfloat16>(wrong, numbers, p);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
TEST_CASE_TEMPLATE_APPLY(projections, oracle::named_formats);

TEST_CASE("float and double are converted to each other in every projection as single numbers are") {
    oracle::disagreements wrong;
    const std::vector<float> floats = edge_values<float, mp::half>(4000);
    const std::vector<double> doubles = edge_values<double, mp::half>(4000);
    for (const mp::projection p : deterministic_projections()) {
        compare<float, float>(wrong, floats, p);
        compare<float, double>(wrong, floats, p);
        compare<double, float>(wrong, doubles, p);
        compare<double, double>(wrong, doubles, p);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("stochastic rounding of arrays takes random_bits(seed, index) for each element", T,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz,
                   mp::float6_e2m3fn, mp::float8_e8m0fnu) {
    oracle::disagreements wrong;
    for (const mp::rounding round :
         {mp::rounding::stochastic_a, mp::rounding::stochastic_b, mp::rounding::stochastic_c}) {
        for (const int count : {0, 1, 2, 7, 8, 13, 16, 24, 30, 31, 32}) {
            mp::projection p{round, mp::saturation::none};
            p.random_bits = static_cast<unsigned char>(count);
            compare_stochastic<float, T>(wrong, p, 5);
            p.saturate = mp::saturation::finite;
            compare_stochastic<mp::half, T>(wrong, p, (std::uint64_t{1} << 34) + 2);
        }
        mp::projection p{round, mp::saturation::propagate};
        p.random_bits = 16;
        compare_stochastic<double, T>(wrong, p, 3);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("stochastic rounding has the same bits for any number of threads and in parts") {
    oracle::random_bits random(4);
    std::vector<float> from(1'100'003);
    for (float& x : from) x = oracle::value_of<float>(random.next() & 0xffff'ffffU);
    std::vector<mp::bfloat16> alone(from.size());
    mp::convert_stochastic(mp::cpu{}, from, alone, 11);
    for (const int threads : {2, 3}) {
        std::vector<mp::bfloat16> to(from.size());
        mp::convert_stochastic(mp::cpu{.threads = threads}, from, to, 11);
        CHECK(std::memcmp(to.data(), alone.data(), to.size() * sizeof to[0]) == 0);
    }
    std::vector<mp::bfloat16> to(from.size());
    for (std::size_t i = 0; i < from.size(); i += 70'001) {
        const std::size_t count = std::min<std::size_t>(70'001, from.size() - i);
        mp::convert_stochastic(mp::cpu{}, std::span<const float>(from).subspan(i, count),
                               std::span(to).subspan(i, count), 11, i);
    }
    CHECK(std::memcmp(to.data(), alone.data(), to.size() * sizeof to[0]) == 0);
}

TEST_CASE("a mode that is not stochastic is refused by name, and nothing is written") {
    const std::vector<float> from = {1.0f};
    std::vector<mp::half> to = {mp::half(7.0f)};
    CHECK(message_of([&] { mp::convert_stochastic(mp::cpu{}, from, to, 1, 0, {mp::rounding::upward}); }) ==
          "mp::convert_stochastic: p.round is 3; it must be stochastic_a, stochastic_b or stochastic_c");
    CHECK(to[0] == mp::half(7.0f));
}
