// SPDX-License-Identifier: MIT
// Compiled twice: as the rest of the tests, and for the processor at hand, whose conversion instructions
// (F16C on x86) the library then uses. They must give the bits of the integer core.
#include <doctest/doctest.h>
#include <cstdint>

#include "oracle/interval.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

TEST_CASE("all half codes become the right floats, and the same half again") {
    oracle::disagreements wrong;
    for (std::uint32_t code = 0; code < 1U << 16; ++code) {
        const mp::half x = oracle::value_of<mp::half>(code);
        const float wide = x;
        const oracle::outcome expected =
            finish(oracle::binary32, convert(oracle::binary16, code, oracle::binary32),
                   oracle::mode::nearest_even, oracle::saturate::none);
        if (mp::isnan(x)) {
            const std::uint64_t quiet = converted_nan(oracle::binary16, code, oracle::binary32);
            if (oracle::code_of(wide) != quiet) wrong.add("NaN", code, "becomes", oracle::code_of(wide));
        } else {
            if (oracle::code_of(wide) != expected.code) wrong.add(code, "becomes", oracle::code_of(wide));
            if (mp::half(wide).bits() != code) wrong.add(code, "comes back as", mp::half(wide).bits());
        }
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("a slice of all floats becomes the right halves, NaNs included") {
    const oracle::interval_oracle<1> judge(oracle::binary16, oracle::mode::nearest_even,
                                           oracle::saturate::none);
    oracle::disagreements wrong;
    const auto compare = [&](std::uint64_t code) {
        const mp::half x(oracle::value_of<float>(code));
        if (!judge.admits_conversion(static_cast<std::uint32_t>(code), x.bits()))
            wrong.add(code, "becomes", x.bits());
    };
    for (std::uint64_t code = 0; code < std::uint64_t{1} << 32; code += 251) compare(code);
    oracle::random_bits random(95);
    for (int i = 0; i < 1000000; ++i) compare(weighted_code(random, oracle::binary32));
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("operators on a slice of all pairs of half give results that the oracle admits") {
    const oracle::interval_oracle<1> judge(oracle::binary16, oracle::mode::nearest_even,
                                           oracle::saturate::none);
    oracle::disagreements wrong;
    for (std::uint64_t pair = 0; pair < std::uint64_t{1} << 32; pair += 1021) {
        const auto i = static_cast<std::uint32_t>(pair >> 16);
        const auto j = static_cast<std::uint32_t>(pair & 0xffff);
        const mp::half a = oracle::value_of<mp::half>(i);
        const mp::half b = oracle::value_of<mp::half>(j);
        if (!judge.admits_sum(i, j, (a + b).bits())) wrong.add(i, "+", j, "gives", (a + b).bits());
        if (!judge.admits_difference(i, j, (a - b).bits())) wrong.add(i, "-", j, "gives", (a - b).bits());
        if (!judge.admits_product(i, j, (a * b).bits())) wrong.add(i, "*", j, "gives", (a * b).bits());
        if (!judge.admits_quotient(i, j, (a / b).bits())) wrong.add(i, "/", j, "gives", (a / b).bits());
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("fused products and square roots are the oracle's", Value, mp::half, mp::bfloat16) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(96);
    const auto nearest = [&](const oracle::exact_result& exact, Value x) {
        return matches(f, finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none), x.bits());
    };
    for (int n = 0; n < 300000; ++n) {
        const std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        const std::uint64_t k = weighted_partner(random, f, i);
        const Value a = oracle::value_of<Value>(i);
        if (!nearest(oracle::fma(f, i, j, k),
                     mp::fma(a, oracle::value_of<Value>(j), oracle::value_of<Value>(k)))) {
            wrong.add("fma", i, j, k);
        }
        if (!nearest(oracle::sqrt(f, i), mp::sqrt(a))) wrong.add("sqrt", i);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

// Compilers fuse a product and a sum of a type of their own into one instruction with one rounding, where the
// product has no other use.
[[gnu::noinline]] static mp::half multiply_then_add(mp::half x, mp::half y, mp::half z) {
    return x * y + z;
}

TEST_CASE("x * y + z rounds twice, and fma once") {
    oracle::random_bits random(96);
    oracle::disagreements wrong;
    int different = 0;
    for (int i = 0; i < 1000000; ++i) {
        const auto x = oracle::value_of<mp::half>(weighted_code(random, oracle::binary16));
        const auto y = oracle::value_of<mp::half>(weighted_code(random, oracle::binary16));
        const auto z = oracle::value_of<mp::half>(weighted_code(random, oracle::binary16));
        const mp::half chained = multiply_then_add(x, y, z);
        const volatile std::uint16_t product = (x * y).bits();
        const mp::half expected = mp::half::from_bits(product) + z;
        if (mp::isnan(expected)) continue;
        if (chained.bits() != expected.bits()) {
            wrong.add(x.bits(), "*", y.bits(), "+ ... gives", chained.bits());
        }
        if (expected.bits() != fma(x, y, z).bits()) ++different;
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
    CHECK(different > 1000);  // or the test could not tell
}
