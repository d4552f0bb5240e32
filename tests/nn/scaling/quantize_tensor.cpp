// SPDX-License-Identifier: MIT
// Tensors quantised to 8 bits by one scale, and scales of blocks that are powers of two.
#include <doctest/doctest.h>
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "larger_error.hpp"
#include "nn/scaling/amax_values.hpp"
#include "nn/scaling/thrown.hpp"

using namespace amax_values;

TEST_CASE("block scales are the powers of two that the four rules describe") {
    std::mt19937 random(29);
    const auto check = [&random]<class Element>(Element, double max, int emax, int precision) {
        for (int i = 0; i < 20000; ++i) {
            // Significands of few bits, so that ties and powers of two are frequent.
            const float amax =
                std::ldexp(static_cast<float>(1 + random() % 1024), static_cast<int>(random() % 200) - 100);
            const double a = static_cast<double>(amax);
            int exponent = 0;
            const double significand = 2.0 * std::frexp(a, &exponent);  // in [1, 2)
            const int log2 = exponent - 1;
            const auto scale = [amax](mp::scale_rule rule) {
                return static_cast<double>(mp::power_of_two_block_scale<Element>(amax, rule));
            };
            CHECK(scale(mp::scale_rule::floor) == std::ldexp(1.0, log2 - emax));
            CHECK(scale(mp::scale_rule::standard) == std::ldexp(1.0, log2 - emax));
            int up = -100 - 100;
            while (a / std::ldexp(1.0, up) > max) ++up;
            CHECK(scale(mp::scale_rule::ceil) == std::ldexp(1.0, up));
            const double unit = std::ldexp(1.0, precision - 1);
            const double rounded = std::nearbyint(significand * unit) / unit;
            CHECK(scale(mp::scale_rule::even) == std::ldexp(1.0, log2 - emax + (rounded >= 2.0 ? 1 : 0)));
            const double quotient = a / max;
            const double low = std::ldexp(1.0, std::ilogb(quotient));
            const bool tie = quotient - low == low / 2.0;
            if (!tie) CHECK(scale(mp::scale_rule::nearest) == (quotient - low > low / 2.0 ? 2.0 * low : low));
        }
        using mp::scale_rule;
        for (const scale_rule rule :
             {scale_rule::floor, scale_rule::ceil, scale_rule::even, scale_rule::nearest}) {
            CHECK(static_cast<float>(mp::power_of_two_block_scale<Element>(0.0F, rule)) == 0x1p-127F);
            CHECK(std::isnan(static_cast<float>(mp::power_of_two_block_scale<Element>(not_a_number, rule))));
            CHECK(static_cast<float>(mp::power_of_two_block_scale<Element>(smallest, rule)) == 0x1p-127F);
        }
    };
    check(mp::float8_e4m3fn{}, 448.0, 8, 4);
    check(mp::float8_e5m2{}, 57344.0, 15, 3);
    check(mp::float4_e2m1fn{}, 6.0, 2, 2);
    check(mp::float6_e2m3fn{}, 7.5, 2, 4);
}

TEST_CASE("a tensor is quantised by one rounding of the exact product") {
    std::mt19937 random(37);
    const auto check = [&random]<class Number>(Number) {
        for (const std::size_t size : {0U, 1U, 31U, 256U, 257U, 200000U}) {
            std::vector<float> values(size);
            for (float& value : values) {
                value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())), -31);
                if (random() % 100 == 0) value = any_amax(random);
            }
            for (const float scale : {1.0F, 300.7F, 0x1p-100F, largest, smallest}) {
                std::vector<Number> codes(size);
                mp::quantize_with_scale(mp::cpu{.threads = 2}, values, codes, scale);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < size; ++i) {
                    const double product = static_cast<double>(values[i]) * static_cast<double>(scale);
                    const Number expected = mp::round_to<Number>(
                        product, mp::projection{mp::rounding::nearest_even, mp::saturation::finite});
                    wrong += codes[i].bits() == expected.bits() ? 0U : 1U;
                }
                CHECK(wrong == 0);
                std::vector<float> back(size);
                mp::dequantize_with_scale(mp::cpu{.threads = 2}, codes, back, scale);
                for (std::size_t i = 0; i < size; ++i) {
                    const float expected = static_cast<float>(codes[i]) / scale;
                    if (!(std::isnan(expected) && std::isnan(back[i])))
                        wrong += bits(back[i]) == bits(expected) ? 0U : 1U;
                }
                CHECK(wrong == 0);
            }
        }
    };
    check(mp::float8_e4m3fn{});
    check(mp::float8_e5m2{});
    check(mp::float8_e4m3fnuz{});
    check(mp::float4_e2m1fn{});
}

TEST_CASE("with its own scale a tensor loses at most half a unit in the last place, and nothing overflows") {
    std::mt19937 random(41);
    std::normal_distribution<float> normal;
    const auto check = [&]<class Number>(Number, double relative, double smallest_normal) {
        for (const int exponent : {-60, -10, 0, 10, 60}) {
            std::vector<float> values(10000);
            for (float& value : values) value = std::ldexp(normal(random), exponent);
            const float amax = mp::amax(mp::cpu{}, values);
            for (const bool power_of_two : {false, true}) {
                const mp::current_scaling recipe{.format_max = mp::largest_finite<Number>,
                                                 .power_of_two = power_of_two};
                const float scale = recipe.scale(amax);
                std::vector<Number> codes(values.size());
                std::vector<float> back(values.size());
                mp::quantize_with_scale(mp::cpu{}, values, codes, scale);
                mp::dequantize_with_scale(mp::cpu{}, codes, back, scale);
                // Half a unit of the last place is `relative` of a normal number and constant below.
                const double least = smallest_normal * relative / static_cast<double>(scale);
                double worst = 0.0;
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const double x = static_cast<double>(values[i]);
                    const double error = std::fabs(static_cast<double>(back[i]) - x);
                    worst = tests::larger_error(worst, error / std::max(relative * std::fabs(x), least));
                }
                CHECK(worst <= 1.000001);
                CHECK(worst > 0.8);
                // Quantising again what came back changes nothing.
                std::vector<Number> again(codes.size());
                mp::quantize_with_scale(mp::cpu{}, back, again, scale);
                CHECK(std::ranges::equal(codes, again,
                                         [](Number a, Number b) { return a.bits() == b.bits(); }));
            }
        }
    };
    check(mp::float8_e4m3fn{}, 0x1p-4, 0x1p-6);
    check(mp::float8_e5m2{}, 0x1p-3, 0x1p-14);
    static_assert(mp::largest_finite<mp::float8_e4m3fn> == 448.0F);
    static_assert(mp::largest_finite<mp::float8_e5m2> == 57344.0F);
    static_assert(mp::largest_finite<mp::float8_e4m3fnuz> == 240.0F);
}

TEST_CASE("quantising with arguments that make no sense says which, and writes nothing") {
    const std::vector<float> values{1.0F, 2.0F};
    std::vector<mp::float8_e4m3fn> codes(2, mp::float8_e4m3fn(3.0F));
    for (const float scale : {0.0F, -1.0F, infinity, not_a_number}) {
        CHECK(holds(
            thrown<mp::argument_error>([&] { mp::quantize_with_scale(mp::cpu{}, values, codes, scale); }),
            "mp::quantize_with_scale: scale is "));
    }
    std::vector<mp::float8_e4m3fn> shorter(1);
    CHECK(
        holds(thrown<mp::argument_error>([&] { mp::quantize_with_scale(mp::cpu{}, values, shorter, 1.0F); }),
              "to.size() is 1"));
    CHECK(
        holds(thrown<mp::argument_error>([&] { mp::quantize_with_scale(mp::cpu{-1}, values, codes, 1.0F); }),
              "exec.threads is -1"));
    std::vector<float> back(3);
    CHECK(holds(thrown<mp::argument_error>([&] { mp::dequantize_with_scale(mp::cpu{}, codes, back, 1.0F); }),
                "mp::dequantize_with_scale: to.size() is 3"));
    CHECK(holds(thrown<mp::argument_error>([&] { mp::dequantize_with_scale(mp::cpu{}, codes, back, 0.0F); }),
                "scale is 0"));
    CHECK(static_cast<float>(codes[0]) == 3.0F);
}
