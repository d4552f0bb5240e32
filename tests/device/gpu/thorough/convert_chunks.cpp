// SPDX-License-Identifier: MIT
// The ways in which threads convert chunks, for every pair of types, without a launch: that number of kernels would
// take long to compile. tests/device/gpu/convert.cpp has the kernels.
#include <device/gpu/convert_checks.hpp>

#include <mp/device/gpu/convert_chunks.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using oracle::code_of;

void compare_codes(oracle::disagreements& wrong, std::string_view way, int count, std::uint64_t from,
                   std::uint64_t to, std::uint64_t expected) {
    if (to == expected) return;
    wrong.add(way, "of", count, "makes of", from, "the number", to, "and not", expected);
}

/// Compares chunks that `convert(chunk, number)` makes of values with the scalar conversion.
template <class To, int Count, class From, class Convert, class ProjectionOf>
void compare(oracle::disagreements& wrong, std::string_view way, const std::vector<From>& values,
             Convert convert, ProjectionOf projection_of) {
    for (std::size_t i = 0; i + Count <= values.size(); i += Count) {
        mp::detail::chunk<From, Count> from;
        for (std::size_t j = 0; j < Count; ++j) from.values[j] = values[i + j];
        const mp::detail::chunk<To, Count> to = convert(from, std::uint64_t{i});
        for (std::size_t j = 0; j < Count; ++j) {
            const To expected = mp::round_to<To>(values[i + j], projection_of(std::uint64_t{i + j}));
            compare_codes(wrong, way, Count, code_of(values[i + j]), code_of(to.values[j]),
                          code_of(expected));
        }
    }
}

/// All ways that serve the projection, for chunks of Count.
template <class To, int Count, class From>
void compare_ways(oracle::disagreements& wrong, const std::vector<From>& values,
                  const std::vector<mp::projection>& projections) {
    using namespace mp::detail;
    using mp::detail::chunk;
    for (const mp::projection& p : projections) {
        const auto same = [&](std::uint64_t) { return p; };
        const auto by = [&](auto conversion) {
            return [conversion](const chunk<From, Count>& from, std::uint64_t number) {
                return conversion.template convert<To>(from, number);
            };
        };
        compare<To, Count>(wrong, "any_conversion", values, by(any_conversion{p}), same);
        if constexpr (!std::is_same_v<From, To> && (mp::reduced<From> || mp::reduced<To>)) {
            if (p == mp::projection{}) {
                compare<To, Count>(wrong, "nearest_conversion", values, by(nearest_conversion{}), same);
            }
            if constexpr (comes_in_pairs<From> && comes_in_pairs<To> && mp::reduced<To>) {
                if (p.round == mp::rounding::nearest_even) {
                    compare<To, Count>(wrong, "nearest_even_conversion", values,
                                       by(nearest_even_conversion{p}), same);
                }
            }
        }
        if (mp::detail::is_stochastic(p.round)) {
            constexpr std::uint64_t seed = 0x9'8765'4321;
            for (const std::uint64_t first : {0x0ULL, 0x3ULL, 0x3'ffff'fffeULL}) {
                compare<To, Count>(
                    wrong, "stochastic_conversion", values,
                    [&](const chunk<From, Count>& from, std::uint64_t number) {
                        return stochastic_conversion{p, seed}.template convert<To>(from, first + number);
                    },
                    [&](std::uint64_t number) {
                        mp::projection q = p;
                        q.random = mp::random_bits(seed, first + number);
                        return q;
                    });
            }
        }
    }
}

template <class To, class... From>
void compare_all(oracle::disagreements& wrong) {
    const std::vector<mp::projection> projections = gpu_test::projections();
    const auto from_one = [&]<class Source>(Source) {
        const std::vector<Source> values = gpu_test::numbers_of_all_kinds<Source>(256, 3);
        compare_ways<To, mp::detail::chunk_count<Source, To>>(wrong, values, projections);
    };
    (from_one(From{}), ...);
}

TEST_CASE_TEMPLATE("chunks of all types are converted as single numbers are, in every projection", To, float,
                   double, mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2,
                   mp::float6_e3m2fn, mp::float4_e2m1fn) {
    oracle::disagreements wrong;
    compare_all<To, float, double, mp::half, mp::bfloat16, mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2,
                mp::float6_e3m2fn, mp::float4_e2m1fn>(wrong);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("single elements are converted in the same ways") {
    oracle::disagreements wrong;
    const std::vector<mp::projection> projections = gpu_test::projections();
    compare_ways<mp::half, 1>(wrong, gpu_test::numbers_of_all_kinds<float>(300, 5), projections);
    compare_ways<mp::float8_e5m2, 1>(wrong, gpu_test::numbers_of_all_kinds<mp::half>(300, 5), projections);
    compare_ways<double, 1>(wrong, gpu_test::numbers_of_all_kinds<mp::tfloat32>(300, 5), projections);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("numbers leave a queue in the order in which they lie in memory, and are put back so") {
    mp::detail::chunk<mp::half, 8> halves;
    for (int i = 0; i < 8; ++i) halves.values[i] = mp::half::from_bits(static_cast<std::uint16_t>(100 + i));
    auto queue = mp::detail::number_queue<16>::of(halves);
    mp::detail::number_queue<16> bytes;
    for (int i = 0; i < 8; ++i) {
        const auto half = queue.take<mp::half>();
        CHECK(half.bits() == 100 + i);
        bytes.put(static_cast<std::uint8_t>(half.bits()));
        bytes.put(static_cast<std::uint8_t>(200 + i));
    }
    const auto chunk = bytes.numbers<std::uint8_t, 16>();
    for (int i = 0; i < 8; ++i) {
        CHECK(chunk.values[2 * i] == 100 + i);
        CHECK(chunk.values[2 * i + 1] == 200 + i);
    }
    mp::detail::number_queue<2> two;  // less than a word
    two.put(std::uint8_t{7});
    two.put(std::uint8_t{9});
    CHECK(two.numbers<std::uint8_t, 2>().values[0] == 7);
    CHECK(two.numbers<std::uint8_t, 2>().values[1] == 9);
}

}  // namespace
