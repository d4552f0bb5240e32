// SPDX-License-Identifier: MIT
// Operations that are rounded by themselves: cases by hand which excess precision, a fused operation or an
// estimate would round otherwise, and the fused product and sum in doubles against the compiler's.
#include <mp/numbers/format/float_arithmetic.hpp>
#include <oracle/random.hpp>

#include <doctest/doctest.h>
#include <bit>
#include <cmath>
#include <cstdint>

namespace {

bool is_nan(float x) {
    return (std::bit_cast<std::uint32_t>(x) & 0x7fffffffU) > 0x7f800000U;
}
bool same(float x, float y) {
    return (is_nan(x) && is_nan(y)) || std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
}

}  // namespace

#if !defined(_WIN32)  // whose fmaf rounds twice
TEST_CASE("a fused product and sum in doubles is the one of the C library") {
    oracle::random_bits random(11);
    std::uint64_t wrong = 0;
    const auto check = [&](float a, float b, float c) {
        wrong += same(mp::detail::float_multiply_add_by_doubles(a, b, c), std::fma(a, b, c)) ? 0 : 1;
    };
    for (int i = 0; i < 100000; ++i) {
        const auto a = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
        const auto b = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
        check(a, b, std::bit_cast<float>(static_cast<std::uint32_t>(random.next())));
        check(a, b, -a * b);  // cancels, except for the error of the product
        // A term near half a unit of the other's last place, and far below: ties that one rounding breaks.
        const auto few = static_cast<float>(random.next() >> 52);
        const auto scale = static_cast<int>(random.below(60));
        check(few, std::ldexp(1.0F, -24), std::ldexp(1.0F, scale - 30) + std::ldexp(1.0F, scale - 53));
        check(1.0F + std::ldexp(few, -23), 1.0F + std::ldexp(1.0F, -23), std::ldexp(few, -60));
        check(24929.0F, 673.0F * 0x1p-24F, std::ldexp(few, -90));
        // Subnormal results.
        check(std::ldexp(few, -100), std::ldexp(1.0F, -static_cast<int>(random.below(60))),
              std::ldexp(few, -149));
    }
    CHECK(wrong == 0);
}
#endif

TEST_CASE("sums, products, quotients and roots of doubles are rounded once, to 53 bits") {
    using namespace mp::detail;
    // Rounded to 64 bits first, each of these is half way between two doubles, and goes to the wrong one.
    const volatile double one = 1.0;
    const volatile double above_half = 0x1.002p-53;
    CHECK(double_add(one, above_half) == 0x1.0000000000001p+0);
    CHECK(double_subtract(one, -above_half) == 0x1.0000000000001p+0);
    // (1 + 2^-27 + 2^-52) (1 + 2^-26 + 2^-52) is 2.5 units in the last place above 1 + 3 2^-27, and a little.
    const volatile double left = 0x1.0000002000001p+0;
    const volatile double right = 0x1.0000004000001p+0;
    CHECK(double_multiply(left, right) == 0x1.0000006000003p+0);
    // By rational arithmetic, like the root.
    const volatile double numerator = 115249039423.0;
    CHECK(double_divide(numerator, 9221.0) == 0x1.7d6cd873a8d33p+23);
    const volatile double number = 2435.0;
    CHECK(double_sqrt(number) == 0x1.8ac40868f92c1p+5);
    // A product that is not fused: 2^-60 of it is lost.
    const volatile double third = 0x1p-30;
    const double square = double_multiply(one + third, one + third);
    CHECK(double_subtract(square, 0x1.00000008p+0) == 0.0);
    static_assert(double_divide(double_add(1.0, 2.0), double_multiply(4.0, double_subtract(1.0, 0.5))) ==
                  1.5);
}

TEST_CASE("the same of floats, whose infinities and NaNs are operands like others") {
    using namespace mp::detail;
    const volatile float one = 1.0F;
    const volatile float tie = 0x1.000002p-24F;
    CHECK(float_add(one, tie) == 0x1.000002p+0F);
    CHECK(float_subtract(one, -tie) == 0x1.000002p+0F);
    CHECK(float_multiply(0x1.000002p+0F, 0x1.000002p+0F) == 0x1.000004p+0F);
    CHECK(float_divide(one, 3.0F) == 0x1.555556p-2F);
    CHECK(float_sqrt(2.0F * one) == 0x1.6a09e6p+0F);
    const volatile float infinity = std::bit_cast<float>(0x7f800000U);
    const float x = infinity;
    CHECK(is_nan(float_subtract(x, x)));
    CHECK(is_nan(float_multiply(x, 0.0F)));
    CHECK(is_nan(float_divide(x, x)));
    CHECK(is_nan(float_sqrt(-x)));
    CHECK(std::bit_cast<std::uint32_t>(float_add(-0.0F, -0.0F * one)) == 0x80000000U);
    CHECK(std::bit_cast<std::uint32_t>(float_divide(-one, x)) == 0x80000000U);
    static_assert(float_add(float_subtract(float_multiply(3.0F, 0.5F), 0.25F), float_divide(1.0F, 2.0F)) ==
                  1.75F);
}

TEST_CASE("ties of a product that are broken by a small term are rounded once") {
    // 24929 * 673 = 2^24 + 1, so the product is 1 + 2^-24, half way between two floats, and double cannot
    // tell the sum from it.
    const auto fused = mp::detail::float_multiply_add_by_doubles;
    const float b = 673.0F * 0x1p-24F;
    CHECK(fused(24929.0F, b, 0.0F) == 1.0F);
    CHECK(fused(24929.0F, b, 0x1p-80F) == 1.0F + 0x1p-23F);
    CHECK(fused(24929.0F, b, -0x1p-80F) == 1.0F);
    CHECK(fused(-24929.0F, b, -0x1p-80F) == -1.0F - 0x1p-23F);
    CHECK(fused(-24929.0F, b, 0x1p-80F) == -1.0F);
    // The double next to the sum lies above it, and must not be taken down to the tie.
    CHECK(fused(24929.0F, b, 0x1.fffffep-53F) == 1.0F + 0x1p-23F);
    // The same half way between 1 + 2^-23 and the next float, where the even one is above.
    CHECK(fused(0x1p-24F, 1.0F, 1.0F + 0x1p-23F) == 1.0F + 0x1p-22F);
    CHECK(fused(0x1p-24F, 1.0F - 0x1p-24F, 1.0F + 0x1p-23F) == 1.0F + 0x1p-23F);
}
