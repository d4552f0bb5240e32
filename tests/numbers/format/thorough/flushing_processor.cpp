// SPDX-License-Identifier: MIT
// A library linked with -ffast-math anywhere in a program switches the processor to flush subnormal floats to
// zero. The short cuts through float must give the same bits then; this file switches it itself.
#include <doctest/doctest.h>
#include <bit>
#include <cstdint>

#include "numbers/format/flushing_scope.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

#if TEST_CAN_FLUSH

namespace {

template <class Value>
void compare(oracle::disagreements& wrong, const char* what, const oracle::exact_result& exact, Value result,
             std::uint64_t i, std::uint64_t j) {
    const oracle::format& f = oracle::format_of<Value>;
    const oracle::outcome expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
    if (!matches(f, expected, oracle::code_of(result)))
        wrong.add(what, i, j, "gives", oracle::code_of(result));
}

}  // namespace

TEST_CASE("the processor flushes in these tests") {
    const flushing_scope flushing;
    volatile float smallest_normal = 0x1p-126f;
    volatile float half_of_it = smallest_normal * 0.5f;
    CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(half_of_it)) == 0);
}

TEST_CASE_TEMPLATE("arithmetic does not lose subnormal numbers on a flushing processor", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    oracle::random_bits random(91);
    const flushing_scope flushing;
    for (int n = 0; n < 300000; ++n) {
        std::uint64_t i = weighted_code(random, f);
        const std::uint64_t j = weighted_partner(random, f, i);
        // Half of the left operands near the smallest normal number.
        if (n % 2 == 0)
            i = (i & sign_bit(f)) |
                (magnitude_code(f, i) % (std::uint64_t{20} << f.fraction_bits)) % sign_bit(f);
        const std::uint64_t k = n % 3 == 0 ? weighted_partner(random, f, i) : random.below(3);
        const Value a = oracle::value_of<Value>(i);
        const Value b = oracle::value_of<Value>(j);
        const Value c = oracle::value_of<Value>(k);
        compare(wrong, "+", oracle::add(f, i, j), a + b, i, j);
        compare(wrong, "-", oracle::subtract(f, i, j), a - b, i, j);
        compare(wrong, "*", oracle::multiply(f, i, j), a * b, i, j);
        compare(wrong, "/", oracle::divide(f, i, j), a / b, i, j);
        compare(wrong, "fma", oracle::fma(f, i, j, k), mp::fma(a, b, c), i, j);
        compare(wrong, "sqrt", oracle::sqrt(f, i), mp::sqrt(a), i, j);
        if ((a == a) == is_nan(f, i)) wrong.add("comparison of", i);
        if ((a == Value(0.0f)) != is_zero(f, i)) wrong.add("comparison with zero of", i);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE_TEMPLATE("conversions do not lose subnormal numbers on a flushing processor", Value, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2) {
    const oracle::format& f = oracle::format_of<Value>;
    oracle::disagreements wrong;
    const flushing_scope flushing;
    for (std::uint64_t code = 0; code < 2 * sign_bit(f); ++code) {
        const Value x = oracle::value_of<Value>(code);
        const float single = static_cast<float>(x);
        compare(wrong, "to float", convert(f, code, oracle::binary32), single, code, 0);
        compare(wrong, "to double", convert(f, code, oracle::binary64), static_cast<double>(x), code, 0);
        compare(wrong, "to half", convert(f, code, oracle::binary16), mp::round_to<mp::half>(x), code, 0);
        compare(wrong, "to bfloat16", convert(f, code, oracle::bfloat16), mp::round_to<mp::bfloat16>(x), code,
                0);
        if (!mp::isnan(x)) compare(wrong, "and back", convert(f, code, f), Value(single), code, 0);
    }
    oracle::random_bits random(92);
    for (int n = 0; n < 300000; ++n) {
        std::uint64_t single = weighted_code(random, oracle::binary32);
        if (n % 2 == 0) single &= 0x81ffffffU;
        const std::uint64_t wide = weighted_code(random, oracle::binary64);
        compare(wrong, "from float", convert(oracle::binary32, single, f),
                Value(oracle::value_of<float>(single)), single, 0);
        compare(wrong, "from double", convert(oracle::binary64, wide, f),
                Value(oracle::value_of<double>(wide)), wide, 0);
    }
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

#endif
