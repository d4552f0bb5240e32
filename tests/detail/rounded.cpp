// SPDX-License-Identifier: MIT
// Operations that are rounded by themselves: the fused product and sum in doubles against the compiler's.
#include <mp/detail/rounded.hpp>
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
        check(a, b, -a * b);  // cancels, but for the error of the product
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
    // The same half way between 1 + 2^-23 and the next float, where the even one is above.
    CHECK(fused(0x1p-24F, 1.0F, 1.0F + 0x1p-23F) == 1.0F + 0x1p-22F);
    CHECK(fused(0x1p-24F, 1.0F - 0x1p-24F, 1.0F + 0x1p-23F) == 1.0F + 0x1p-23F);
}
