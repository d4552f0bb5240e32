// SPDX-License-Identifier: MIT
// The oracle against the processor: with the parameters of float it must give what the floating-point unit
// gives, in the four rounding modes that the unit has.
#include <doctest/doctest.h>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/exact.hpp"
#include "oracle/random.hpp"

namespace {

struct unit_mode {
    int fenv;
    oracle::mode mode;
};

constexpr unit_mode unit_modes[] = {{FE_TONEAREST, oracle::mode::nearest_even},
                                    {FE_TOWARDZERO, oracle::mode::toward_zero},
                                    {FE_UPWARD, oracle::mode::upward},
                                    {FE_DOWNWARD, oracle::mode::downward}};

class rounding_scope {
public:
    explicit rounding_scope(int fenv) { std::fesetround(fenv); }
    ~rounding_scope() { std::fesetround(FE_TONEAREST); }
    rounding_scope(const rounding_scope&) = delete;
    rounding_scope& operator=(const rounding_scope&) = delete;
};

/// Runs one operation in the given mode; volatile keeps the compiler from computing it in another.
template <class Operation>
std::uint32_t on_unit(int fenv, Operation operation) {
    const rounding_scope scope(fenv);
    volatile float result = operation();
    return std::bit_cast<std::uint32_t>(static_cast<float>(result));
}

std::vector<std::uint32_t> interesting_floats(int count) {
    oracle::random_bits random(7);
    std::vector<std::uint32_t> codes = {0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                        0x00000001, 0x80000001, 0x007fffff, 0x00800000, 0x3f800000,
                                        0xbf800000, 0x7f7fffff, 0xff7fffff, 0x3f800001, 0x34000000,
                                        0x33800000, 0x33ffffff};
    while (static_cast<int>(codes.size()) < count) {
        const std::uint32_t bits = static_cast<std::uint32_t>(random.next());
        codes.push_back(bits);
        // Few significant bits make ties and exact results common; a narrow exponent range makes cancellation
        // common.
        codes.push_back((bits & 0xffff0000U));
        codes.push_back((bits & 0x80fff000U) | 0x3f000000U);
        codes.push_back((bits & 0x81ffffffU));
    }
    return codes;
}

}  // namespace

TEST_CASE(
    "the oracle with float's parameters gives the processor's sums, products, quotients and fused results") {
    const oracle::format& f = oracle::binary32;
    const std::vector<std::uint32_t> codes = interesting_floats(4000);
    oracle::random_bits random(11);
    long wrong = 0;
    for (int i = 0; i < 60000; ++i) {
        const std::uint32_t count = i < 2000 ? 17 : static_cast<std::uint32_t>(codes.size());
        const std::uint32_t a = codes[random.below(count)];
        const std::uint32_t b = codes[random.below(count)];
        const std::uint32_t c = codes[random.below(count)];
        volatile float x = std::bit_cast<float>(a);
        volatile float y = std::bit_cast<float>(b);
        volatile float z = std::bit_cast<float>(c);
        const oracle::exact_result sum = oracle::add(f, a, b);
        const oracle::exact_result difference = oracle::subtract(f, a, b);
        const oracle::exact_result product = oracle::multiply(f, a, b);
        const oracle::exact_result quotient = oracle::divide(f, a, b);
        const oracle::exact_result fused = oracle::fma(f, a, b, c);
        const oracle::exact_result root = oracle::sqrt(f, a);
        for (const unit_mode& u : unit_modes) {
            const auto agrees = [&](const oracle::exact_result& exact, std::uint32_t bits) {
                if (!matches(f, finish(f, exact, u.mode, oracle::saturate::none), bits)) ++wrong;
            };
            agrees(sum, on_unit(u.fenv, [&] { return x + y; }));
            agrees(difference, on_unit(u.fenv, [&] { return x - y; }));
            agrees(product, on_unit(u.fenv, [&] { return x * y; }));
            agrees(quotient, on_unit(u.fenv, [&] { return x / y; }));
            agrees(fused, on_unit(u.fenv, [&] { return std::fma(x, y, z); }));
            agrees(root, on_unit(u.fenv, [&] { return std::sqrt(x); }));
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the oracle gives the processor's conversions from double to float") {
    oracle::random_bits random(13);
    long wrong = 0;
    for (int i = 0; i < 100000; ++i) {
        std::uint64_t bits = random.next();
        // Exponents around float's range, and fractions with long runs of zeros and ones.
        const std::uint64_t exponent = 1023 - 180 + random.below(340);
        if (i % 4 != 0) bits = (bits & 0x800fffffffffffffU) | exponent << 52;
        if (i % 3 == 0) bits &= 0xfffffffff0000000U;
        if (i % 5 == 0) bits |= 0x000000000fffffffU;
        volatile double x = std::bit_cast<double>(bits);
        const oracle::exact_result exact = oracle::convert(oracle::binary64, bits, oracle::binary32);
        for (const unit_mode& u : unit_modes) {
            const std::uint32_t result = on_unit(u.fenv, [&] { return static_cast<float>(x); });
            if (!matches(oracle::binary32, finish(oracle::binary32, exact, u.mode, oracle::saturate::none),
                         result)) {
                ++wrong;
            }
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the oracle gives the processor's NaN when a NaN is narrowed or widened") {
    oracle::random_bits random(17);
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t bits = random.next() | 0x7ff0000000000000U;
        volatile double wide = std::bit_cast<double>(bits);
        if (!std::isnan(wide)) continue;
        volatile float narrow = static_cast<float>(wide);
        const std::uint32_t narrow_bits = std::bit_cast<std::uint32_t>(static_cast<float>(narrow));
        REQUIRE(oracle::converted_nan(oracle::binary64, bits, oracle::binary32) == narrow_bits);
        volatile double again = static_cast<double>(narrow);
        REQUIRE(oracle::converted_nan(oracle::binary32, narrow_bits, oracle::binary64) ==
                std::bit_cast<std::uint64_t>(static_cast<double>(again)));
    }
}
