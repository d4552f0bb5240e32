// SPDX-License-Identifier: MIT
// Operands of float8 products: the scale by a search, and arrays by every target beside single numbers.
#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/autocast/quantise_operand.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace {

/// The largest exponent with amax 2^e <= max, by trying, within the range whose powers are normal floats.
int searched_exponent(double amax, double max) {
    int exponent = 126;
    while (exponent > -126 && std::ldexp(amax, exponent) > max) --exponent;
    return exponent;
}

template <class Format>
void check_exponents() {
    const double max = static_cast<double>(std::numeric_limits<Format>::max());
    std::mt19937 random(1);
    int wrong = 0;
    const auto check = [&](std::uint32_t bits) {
        const float amax = mp::detail::bit_cast<float>(bits);
        if (mp::detail::scale_exponent_for<Format>(bits) != searched_exponent(static_cast<double>(amax), max))
            ++wrong;
    };
    for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
        for (const std::uint32_t fraction : {0x0U, 0x1U, 0x5fffffU, 0x600000U, 0x600001U, 0x7fffffU}) {
            if ((exponent | fraction) != 0) check(exponent << 23 | fraction);
        }
        for (int i = 0; i < 20; ++i) check(exponent << 23 | (static_cast<std::uint32_t>(random()) >> 9) | 1);
    }
    for (int shift = 0; shift < 23; ++shift) check(1U << shift);
    CHECK(wrong == 0);
    CHECK(mp::detail::scale_exponent_for<Format>(0) == 0);
}

TEST_CASE("the scale brings the largest magnitude as close to the largest number as a power of two can") {
    check_exponents<mp::float8_e4m3fn>();
    check_exponents<mp::float8_e5m2>();
    check_exponents<mp::float8_e4m3fnuz>();
}

TEST_CASE("magnitudes of arrays of any length are found by every target") {
    std::mt19937 random(2);
    for (std::size_t size = 0; size <= 130; ++size) {
        std::vector<float> values(size);
        for (float& value : values) value = mp::detail::bit_cast<float>(static_cast<std::uint32_t>(random()));
        std::uint32_t finite = 0, all = 0;
        for (const float value : values) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            bits &= 0x7fffffffU;
            all = std::max(all, bits);
            if (!std::isinf(value) && !std::isnan(value)) finite = std::max(finite, bits);
        }
        for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
            if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
            const auto found =
                mp::detail::magnitudes_of(static_cast<mp::instruction_set>(isa), values.data(), size);
            CHECK(found.finite == finite);
            CHECK(found.all == all);
        }
    }
}

TEST_CASE("arrays are quantised as their numbers are, infinities and NaNs among them or not") {
    using format = mp::float8_e4m3fn;
    std::mt19937 random(3);
    std::normal_distribution<float> draw;
    for (const bool specials : {false, true}) {
        for (const std::size_t size : {0u, 1u, 31u, 511u, 512u, 513u, 2000u}) {
            std::vector<float> values(size);
            for (float& value : values) value = draw(random) * 1e-3F;
            if (specials && size > 30) {
                values[3] = std::numeric_limits<float>::infinity();
                values[17] = -std::numeric_limits<float>::quiet_NaN();
            }
            std::vector<mp::bfloat16> found(size);
            mp::detail::quantise_operand(mp::detail::quantised_to<format>{}, mp::cpu{},
                                         std::span<const float>(values), std::span(found));
            double amax = 0;
            for (const float value : values) {
                if (std::isfinite(value)) amax = std::max(amax, std::abs(static_cast<double>(value)));
            }
            const int exponent = amax > 0 ? searched_exponent(amax, 448.0) : 0;
            int wrong = 0;
            for (std::size_t i = 0; i < size; ++i) {
                const double scaled = std::ldexp(static_cast<double>(values[i]), exponent);
                const double back = std::isfinite(values[i])
                                        ? std::ldexp(static_cast<double>(format(scaled)), -exponent)
                                        : scaled;
                const double result = static_cast<double>(found[i]);
                if (std::isnan(back) ? !std::isnan(result) : result < back || result > back) ++wrong;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("a format that is finer than bfloat16 is rounded to it, not cut off") {
    const std::vector<float> values = {65504.0F, 1.0F + 0x1.8p-8F, 1.0F + 0x3p-10F};
    std::vector<mp::bfloat16> found(values.size());
    mp::detail::quantise_operand(mp::detail::quantised_to<mp::half>{}, mp::cpu{},
                                 std::span<const float>(values), std::span(found));
    CHECK(static_cast<float>(found[0]) == 65536.0F);
    CHECK(static_cast<float>(found[1]) == 1.0078125F);
    CHECK(static_cast<float>(found[2]) == 1.0F);
}

template <class Format>
void check_vectors() {
    // Codes of bfloat16, scaled back, and their neighbours as floats: with all ties, subnormal results and zeros.
    const double most = static_cast<double>(std::numeric_limits<Format>::max());
    for (const int exponent : {0, 7, -9, 80, -80, 126, -126}) {
        std::vector<float> values;
        for (std::uint32_t code = 0; code < 0x10000; ++code) {
            for (const std::uint32_t next : {0U, 1U, 0xffffU}) {
                const float scaled = mp::detail::bit_cast<float>((code << 16) + next);
                const float value = std::ldexp(scaled, -exponent);
                if (std::abs(std::ldexp(static_cast<double>(value), exponent)) <= most &&
                    !std::isinf(value)) {
                    values.push_back(value);
                }
            }
        }
        for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
            if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
            std::vector<float> found(values.size());
            mp::detail::quantise_floats(static_cast<mp::instruction_set>(isa), values.size(), found.data(),
                                        values.data(), mp::detail::quantisation::of<Format>(exponent));
            int wrong = 0;
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double rounded =
                    static_cast<double>(Format(std::ldexp(static_cast<double>(values[i]), exponent)));
                const auto expected = static_cast<float>(std::ldexp(rounded, -exponent));
                if (std::memcmp(&found[i], &expected, sizeof expected) != 0) ++wrong;
            }
            CAPTURE(isa);
            CAPTURE(exponent);
            CHECK(wrong == 0);
            if (!mp::detail::quantisation::in_place(exponent)) continue;

            std::vector<std::uint16_t> halves(values.size());
            mp::detail::quantise_floats(static_cast<mp::instruction_set>(isa), values.size(), halves.data(),
                                        values.data(), mp::detail::quantisation::of<Format>(exponent));
            for (std::size_t i = 0; i < values.size(); ++i) {
                const std::uint32_t back = static_cast<std::uint32_t>(halves[i]) << 16;
                if (std::memcmp(&back, &found[i], sizeof back) != 0) ++wrong;
            }
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE(
    "numbers are quantised in floats as through their codes, ties, subnormals and minus zero among them") {
    check_vectors<mp::float8_e4m3fn>();
    check_vectors<mp::float8_e5m2>();
}

}  // namespace
