// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

namespace {

using format = mp::formats::bfloat16;

/// Devices before sm_90 have no + - * for bfloat16, so they are formed as fused multiply-adds (see
/// format/device.hpp). Here the same identities by the integer core.
void check_identities(std::uint16_t a, std::uint16_t b, std::size_t& wrong) {
    using mp::detail::fma_bits;
    const auto differ = [](std::uint16_t x, std::uint16_t y) {
        const auto is_nan = [](std::uint16_t bits) { return (bits & 0x7fff) > 0x7f80; };
        return x != y && !(is_nan(x) && is_nan(y));
    };
    wrong += differ(fma_bits<format>(a, 0x3f80, b, {}), mp::detail::add_bits<format>(a, b, {})) ? 1u : 0u;
    wrong +=
        differ(fma_bits<format>(b, 0xbf80, a, {}), mp::detail::subtract_bits<format>(a, b, {})) ? 1u : 0u;
    wrong +=
        differ(fma_bits<format>(a, b, 0x8000, {}), mp::detail::multiply_bits<format>(a, b, {})) ? 1u : 0u;
}

TEST_CASE("bfloat16 + - * are fused multiply-adds with 1, -1 and -0, signs of zeros included") {
    std::size_t wrong = 0;
    for (std::uint32_t a = 0; a < 65536; ++a) {
        for (const std::uint32_t b : {0x0000u, 0x8000u, 0x0001u, 0x8001u, 0x007fu, 0x0080u, 0x3f80u, 0xbf80u,
                                      0x7f7fu, 0xff7fu, 0x7f80u, 0xff80u, 0x7fc0u, a, a ^ 0x8000u, a ^ 1u}) {
            check_identities(static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b), wrong);
        }
    }
    std::mt19937 random(3);
    for (int i = 0; i < 1000000; ++i) {
        const auto bits = static_cast<std::uint32_t>(random());
        check_identities(static_cast<std::uint16_t>(bits), static_cast<std::uint16_t>(bits >> 16), wrong);
    }
    CHECK(wrong == 0);
}

}  // namespace
