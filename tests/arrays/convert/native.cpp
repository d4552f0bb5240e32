// SPDX-License-Identifier: MIT
// Compiled twice: as the rest of the tests, and for the processor at hand, whose vector conversions the
// library then uses. They must give the bits of the conversion of single numbers by the oracle.
#include <mp/convert.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <vector>

#include "oracle/interval.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

TEST_CASE("arrays of halves become the right floats, NaNs included, whatever their length") {
    std::vector<mp::half> from;
    for (std::uint32_t code = 0; code < (1U << 16) + 5; ++code) {
        from.push_back(oracle::value_of<mp::half>(code & 0xffff));
    }
    std::vector<float> to(from.size());
    mp::convert(mp::cpu{}, from, to);
    oracle::disagreements wrong;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const std::uint64_t code = from[i].bits();
        const oracle::outcome expected =
            finish(oracle::binary32, convert(oracle::binary16, code, oracle::binary32),
                   oracle::mode::nearest_even, oracle::saturate::none);
        const std::uint64_t right =
            expected.nan ? converted_nan(oracle::binary16, code, oracle::binary32) : expected.code;
        if (oracle::code_of(to[i]) != right) wrong.add(code, "becomes", oracle::code_of(to[i]));
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("arrays of floats become the right numbers, NaNs included", To, mp::half, mp::bfloat16) {
    constexpr int words = sizeof(To) == 2 && oracle::format_of<To>.exponent_bits == 8 ? 5 : 1;
    const oracle::interval_oracle<words> judge(oracle::format_of<To>, oracle::mode::nearest_even,
                                               oracle::saturate::none);
    std::vector<float> from;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += 1021) {
        from.push_back(oracle::value_of<float>(code));
    }
    oracle::random_bits random(97);
    for (int i = 0; i < 1000003; ++i)
        from.push_back(oracle::value_of<float>(weighted_code(random, oracle::binary32)));
    std::vector<To> to(from.size());
    mp::convert(mp::cpu{}, from, to);
    oracle::disagreements wrong;
    for (std::size_t i = 0; i < from.size(); ++i) {
        const auto code = static_cast<std::uint32_t>(oracle::code_of(from[i]));
        if (!judge.admits_conversion(code, to[i].bits())) wrong.add(code, "becomes", to[i].bits());
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}
