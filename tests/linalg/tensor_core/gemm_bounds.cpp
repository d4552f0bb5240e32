// SPDX-License-Identifier: MIT
// How far products in tensor cores are from exact ones, by Boost.Multiprecision: with L products a block and
// F fraction bits, n blocks of a sum are within
//
//     n ((L + 1) 2^-F + u) sum |a b|  +  n (L + 2) 2^-149
//
// of it: each of the L + 1 terms of a block loses less than 2^(E - F), where 2^E is at most the largest term,
// and rounding loses less than the share u of the sum (2^-23 for floats cut off, 2^-13 for 13 fraction bits).
// Subnormal operands have the exponent of the smallest normal number, and count as that.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/matrix_view.hpp>
#include <mp/tensor_core.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>
#include <boost/multiprecision/cpp_bin_float.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "larger_error.hpp"

namespace {

using mp::arch;
using exact = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<
    1400, boost::multiprecision::digit_base_2>>;  // no sum of products of the formats needs more

struct bound_constants {
    int products;     ///< of a step
    double of_terms;  ///< share of the sum of magnitudes that a step may lose
};

template <arch Arch, class Input>
bound_constants constants_of(mp::float8_unit unit) {
    const auto of = [](const mp::block_rule& rule) {
        const double rounding = rule.output == mp::output_rule::e8m13_truncated ? 0x1p-13 : 0x1p-23;
        return (rule.products + 1) * std::ldexp(1.0, -rule.fraction_bits) + rounding;
    };
    if (unit == mp::float8_unit::through_half) {
        // Two blocks, and an ordinary addition.
        return {32, 2 * of(mp::block_rule_of(Arch, mp::operand_kind::fp16, false)) + 0x1p-24};
    }
    const auto rule = mp::block_rule_of(Arch, mp::detail::operand_kind_of<Input>, false);
    return {rule.products, of(rule)};
}

/// The largest error of a product, as a share of the bound.
template <arch Arch, class Input>
double worst_share(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k, int spread, unsigned seed,
                   mp::float8_unit unit) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> significand(-2.0, 2.0);
    std::uniform_int_distribution<int> exponent(-spread, spread / 3);
    const auto draw = [&] { return Input(std::ldexp(significand(random), exponent(random))); };
    std::vector<Input> a(static_cast<std::size_t>(rows * k));
    std::vector<Input> b(static_cast<std::size_t>(k * columns));
    std::vector<float> c(static_cast<std::size_t>(rows * columns));
    std::generate(a.begin(), a.end(), draw);
    std::generate(b.begin(), b.end(), draw);
    const auto a_view = mp::row_major(a.data(), rows, k);
    const auto b_view = mp::row_major(b.data(), k, columns);
    mp::gemm(mp::emulated<Arch>{.float8 = unit}, 1.0F, a_view, b_view, 0.0F,
             mp::row_major(c.data(), rows, columns));

    const auto [products, share] = constants_of<Arch, Input>(unit);
    const auto steps = static_cast<double>((k + products - 1) / products);
    const double least = static_cast<double>(std::numeric_limits<Input>::min());
    const auto magnitude = [&](Input x) {
        const double value = std::abs(static_cast<double>(x));
        return value == 0 ? 0.0 : std::max(value, least);
    };
    double worst = 0;
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            exact sum = 0;
            exact magnitudes = 0;
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                sum += exact(static_cast<double>(a_view(i, p))) * exact(static_cast<double>(b_view(p, j)));
                magnitudes += exact(magnitude(a_view(i, p))) * exact(magnitude(b_view(p, j)));
            }
            const exact error = abs(exact(c[static_cast<std::size_t>(i * columns + j)]) - sum);
            // One percent for what the errors add to the magnitudes.
            const exact bound =
                1.01 * steps * share * magnitudes + steps * (products + 2) * std::ldexp(1.0, -149);
            worst = tests::larger_error(worst, static_cast<double>(error / bound));
        }
    }
    return worst;
}

template <arch Arch, class Input>
void check(mp::float8_unit unit = mp::float8_unit::native) {
    std::mt19937 random(7);
    std::uniform_int_distribution<std::ptrdiff_t> size(1, 130);
    double worst = 0;
    for (unsigned seed = 0; seed < 6; ++seed) {
        const std::ptrdiff_t k = seed == 0 ? 1 : size(random);
        // Numbers of one size, and from the subnormal ones to far above.
        const int spread = seed % 2 == 0 ? 2 : sizeof(Input) == 1 ? 12 : 22;
        const double share = worst_share<Arch, Input>(1 + seed, 9, k, spread, seed, unit);
        CAPTURE(static_cast<int>(Arch));
        CAPTURE(k);
        CHECK(share <= 1.0);
        worst = tests::larger_error(worst, share);
    }
    // Errors do not all fall together, but a rule with six bits fewer would be seen.
    CHECK(worst > 1.0 / 64);
}

TEST_CASE("products in tensor cores are within the bound of their architecture of exact ones") {
    check<arch::sm_70, mp::half>();
    check<arch::sm_75, mp::half>();
    check<arch::sm_80, mp::half>();
    check<arch::sm_80, mp::bfloat16>();
    check<arch::sm_80, mp::tfloat32>();
    check<arch::sm_89, mp::float8_e4m3fn>();
    check<arch::sm_90, mp::half>();
    check<arch::sm_90, mp::bfloat16>();
    check<arch::sm_90, mp::tfloat32>();
    check<arch::sm_90, mp::float8_e5m2>();
    check<arch::sm_90, mp::float8_e4m3fn>(mp::float8_unit::through_half);
    check<arch::sm_120, mp::float8_e4m3fn>();
}

}  // namespace
