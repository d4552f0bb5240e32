// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/format/classification.hpp>
#include <mp/simd/vec.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

namespace {

namespace portable = mp::detail::portable_vectors;

float from_bits(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

/// Operands of a kind: any bits; products near a middle between two floats; numbers with few bits, whose sums
/// are middles; products and sums around the subnormal numbers; sums that cancel; and sums so near to a
/// middle that doubles do not tell them from it, normal ones and subnormal ones.
struct operands {
    float a, b, c;

    operands(std::mt19937_64& random, int kind) {
        auto x = static_cast<std::uint32_t>(random());
        auto y = static_cast<std::uint32_t>(random());
        auto z = static_cast<std::uint32_t>(random());
        if (kind == 1) {
            x = (x & 0x8000'0FFFU) | 0x3F80'0000U | ((x >> 3) & 0x07F0'0000U);
            y = (y & 0x807F'F000U) | 0x3F00'0000U;
            z = (z & 0x80FF'FFFFU) | 0x3F00'0000U;
        } else if (kind == 2) {
            x = (x & 0x83F0'0000U) | 0x3C00'0000U;
            y = (y & 0x83F0'0000U) | 0x3C00'0000U;
            z = (z & 0x83FF'0000U) | 0x3C00'0000U;
        } else if (kind == 3) {
            x &= 0x9FFF'FFFFU;
            y = (y & 0x9FFF'FFFFU) | 0x1000'0000U;
            z &= 0x81FF'FFFFU;
        }
        a = from_bits(x);
        b = from_bits(y);
        c = kind == 4 ? -(a * b) : from_bits(z);
        if (kind >= 5) {
            // 2^46 + 1 is the product of these, which is a little more than half a unit of c.
            const float scale = kind == 5 ? std::ldexp(1.0F, -20) : std::ldexp(1.0F, -73);
            a = 8392705.0F * scale * ((x & 1) != 0 ? 1.0F : -1.0F);
            b = 8384513.0F * (kind == 5 ? 0x1p-26F : 0x1p-123F);
            c = kind == 5 ? from_bits((z & 0x807F'FFFFU) | 0x4B80'0000U) : from_bits(z & 0x80FF'FFFFU);
        }
    }
};

TEST_CASE("a portable vector's products with sums are rounded once") {
    std::mt19937_64 random(1);
    std::size_t different = 0;
    for (int round = 0; round < 400'000; ++round) {
        float a[portable::lanes], b[portable::lanes], c[portable::lanes], found[portable::lanes];
        for (std::size_t i = 0; i < portable::lanes; ++i) {
            const operands of(random, round % 7);
            a[i] = of.a;
            b[i] = of.b;
            c[i] = of.c;
        }
        portable::store(found, portable::fma(portable::load(a), portable::load(b), portable::load(c)));
        for (std::size_t i = 0; i < portable::lanes; ++i) {
            const float expected = std::fma(a[i], b[i], c[i]);
            const bool both_nan = mp::isnan(expected) && mp::isnan(found[i]);
            const bool same =
                std::bit_cast<std::uint32_t>(expected) == std::bit_cast<std::uint32_t>(found[i]);
            different += both_nan || same ? 0U : 1U;
        }
    }
    CHECK(different == 0);
}

TEST_CASE("parts of a vector leave the memory behind them alone") {
    const float from[portable::lanes + 1] = {1, 2};
    for (std::size_t n = 0; n < portable::lanes; ++n) {
        float to[portable::lanes];
        for (float& value : to) value = 42.0F;
        portable::store_partial(to, portable::load_partial(from, n), n);
        for (std::size_t i = 0; i < portable::lanes; ++i) CHECK(to[i] == (i < n ? from[i] : 42.0F));
    }
}

}  // namespace
