// SPDX-License-Identifier: MIT
// Also compiled with -ffast-math, which must change no scale and no element: NaN, infinities and subnormal
// numbers are seen, quotients are not approximated.
#include <mp/block_scaled.hpp>
#include <mp/packed_array.hpp>

#include <doctest/doctest.h>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace {

float with_bits(std::uint32_t bits) {
    float x = 0;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
std::uint32_t bits_of(float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

using pairs = mp::block_scaled<mp::float8_e4m3fn, 2>;

}  // namespace

TEST_CASE("blocks with NaN, infinity and subnormal numbers") {
    // NaN and 1; infinity and 2; 2^-149 and 3 * 2^-149; -0 and 0.
    const std::vector<float> x{with_bits(0x7fc00000), 1, with_bits(0xff800000), 2, with_bits(1), with_bits(3),
                               with_bits(0x80000000), 0};
    const auto q = mp::quantize<pairs>(mp::cpu{}, x);
    const unsigned scales[] = {255, 127 + 128 - 8, 0, 0};
    const unsigned elements[] = {0, 0, 0xfe, 0, 0, 0, 0x80, 0};
    for (int i = 0; i < 4; ++i) CHECK(q.scales()[static_cast<std::size_t>(i)].bits() == scales[i]);
    for (int i = 0; i < 8; ++i) CHECK(q.element(0, i).bits() == elements[i]);
    std::vector<float> back(8);
    mp::dequantize(mp::cpu{}, q, back);
    CHECK((bits_of(back[0]) & 0x7fffffff) > 0x7f800000);
    CHECK(bits_of(back[2]) == 0xff800000);
    CHECK(bits_of(back[6]) == 0x80000000);

    // 2^-130 and 3 * 2^-132 are 2^-3 and 3 * 2^-5 times the smallest scale.
    const auto small =
        mp::quantize<pairs>(mp::cpu{}, std::vector<float>{with_bits(1 << 19), with_bits(3 << 17)});
    CHECK(small.scales()[0].bits() == 0);
    CHECK(float(small.element(0, 0)) == 0.125f);
    CHECK(float(small.element(0, 1)) == 0.09375f);
    CHECK(bits_of(small.value(0, 0)) == 1 << 19);
}

TEST_CASE("quotients of NVFP4 are exact at ties") {
    // The tensor scale is 1 and the block scale 3.5 (21 / 6), so 0.25 * 3.5 is a tie between 0 and 0.5.
    std::vector<float> x{21, 0.25f * 3.5f, 0.75f * 3.5f, 1.25f * 3.5f, 2.5f * 3.5f, 5 * 3.5f};
    const auto q = mp::quantize<mp::nvfp4>(mp::cpu{}, x, {.tensor_scale = 1});
    CHECK(float(q.scales()[0]) == 3.5f);
    const float expected[] = {6, 0, 1, 1, 2, 4};
    for (int i = 0; i < 6; ++i) CHECK(float(q.element(0, i)) == expected[i]);
}

TEST_CASE("packed numbers and scales") {
    const std::vector<float> x{with_bits(0x7fc00000), with_bits(0xff800000), 0.75f, -100};
    mp::packed_array<mp::float4_e2m1fn> packed(4);
    mp::pack(mp::cpu{}, x, packed);
    const unsigned codes[] = {7, 15, 2, 15};
    for (std::size_t i = 0; i < 4; ++i) CHECK(packed[i].value().bits() == codes[i]);
    std::vector<mp::float8_e8m0fnu> scales{mp::float8_e8m0fnu::from_bits(0),
                                           mp::float8_e8m0fnu::from_bits(255)};
    std::vector<float> values(2);
    mp::convert(mp::cpu{}, scales, values);
    CHECK(bits_of(values[0]) == 0x00400000);
    CHECK(bits_of(values[1]) == 0x7fc00000);
}

TEST_CASE("four over six sums errors in one order") {
    // 12 is 6 * 2 and 4 * 3; 9 is 3 * 3, and between 8 and 12 for a scale of 2; 1 is 0.5 * 2, and 0 or 1.5 for 3.
    for (const auto rule : {mp::scale_rule::four_over_six_mse, mp::scale_rule::four_over_six_mae}) {
        for (const auto& [other, code] : {std::pair{9.0f, 0x44U}, std::pair{1.0f, 0x40U}}) {
            std::vector<float> x(16, other);
            x[5] = -12;
            const auto q = mp::quantize<mp::nvfp4>(mp::cpu{}, x, {.rule = rule, .tensor_scale = 1});
            CHECK(q.scales()[0].bits() == code);
            CHECK(bits_of(q.value(0, 5)) == bits_of(-12));
            CHECK(bits_of(q.value(0, 6)) == bits_of(other));
        }
    }
}
