// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/nn/ops/softmax/rows.hpp>
#include <mp/numbers/format/classification.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "larger_error.hpp"
#include "numbers/rules/float_sweep.hpp"

namespace {

using mp::detail::softmax_kernels;
using row = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

row numbers(std::size_t count, unsigned seed, float spread) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw(0.0F, spread);
    row x(count);
    for (float& value : x) value = draw(random);
    return x;
}
float largest_of(const row& x) {
    float largest = -infinity;
    for (const float value : x) largest = std::max(largest, value);
    return largest;
}

TEST_CASE("the largest element of a row, and what spoils it") {
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::best_instruction_set()}) {
        const softmax_kernels kernels(isa);
        CHECK(kernels.maximum(nullptr, 0).value == -infinity);
        for (std::size_t count = 1; count <= 40; ++count) {
            row x = numbers(count, static_cast<unsigned>(count), 3.0F);
            CHECK(kernels.maximum(x.data(), count).value == largest_of(x));
            CHECK(!kernels.maximum(x.data(), count).is_bad);
            for (const float spoiler : {infinity, nan, -nan, std::bit_cast<float>(0xFF80'0001U)}) {
                for (std::size_t i = 0; i < count; ++i) {
                    const float before = x[i];
                    x[i] = spoiler;
                    CHECK(kernels.maximum(x.data(), count).is_bad);
                    x[i] = before;
                }
            }
            for (float& value : x) value = -infinity;
            CHECK(kernels.maximum(x.data(), count).value == -infinity);
            CHECK(!kernels.maximum(x.data(), count).is_bad);
            x[count / 2] = -0x1p-149F;
            CHECK(kernels.maximum(x.data(), count).value == -0x1p-149F);
        }
    }
}

TEST_CASE("exponentials of distances keep the errors that they promise, and so does their sum") {
    const softmax_kernels kernels;
    // Magnitudes at which the distance itself is rounded: what it loses has to count.
    for (const float spread : {0.01F, 1.0F, 30.0F, 3e4F}) {
        const row x = numbers(5003, 9, spread);
        const float reference = largest_of(x);
        row powers(x.size());
        const double sum = kernels.exponentials(x.data(), x.size(), reference, powers.data());
        const double sum_alone = kernels.exponentials(x.data(), x.size(), reference, nullptr);
        double expected_sum = 0;
        double worst = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double expected = std::exp(static_cast<double>(x[i]) - static_cast<double>(reference));
            expected_sum += expected;
            const double error = std::fabs(static_cast<double>(powers[i]) - expected);
            worst = tests::larger_error(worst, error / float_sweep::unit(expected));
        }
        CHECK(worst < 1.2);
        CHECK(std::fabs(sum / expected_sum - 1) < 0x1p-24);
        CHECK(std::fabs(sum_alone / expected_sum - 1) < 0x1p-22);
    }
    // Above the reference too, as far as saved logarithms of sums may be off.
    const row above{40.0F, 1.0F, 0.0F, -103.0F, -104.5F, -infinity, -3e38F};
    row powers(above.size());
    kernels.exponentials(above.data(), above.size(), 0.0F, powers.data());
    CHECK(static_cast<double>(powers[0]) == doctest::Approx(std::exp(40.0)).epsilon(1e-6));
    CHECK(powers[2] == 1.0F);
    CHECK(powers[3] == 0x1p-149F);
    CHECK(powers[4] == 0.0F);
    CHECK(powers[5] == 0.0F);
    CHECK(powers[6] == 0.0F);
    kernels.exponentials(above.data(), above.size(), 3e38F, powers.data());
    CHECK(powers == row(above.size(), 0.0F));
}

/// Results of all walks on rows of a length, one behind the other.
std::vector<std::uint64_t> results(const softmax_kernels& kernels, std::size_t count) {
    const row x = numbers(count, 3, 4.0F);
    row dy = numbers(count, 4, 1.0F);
    if (count > 7) dy[5] = nan;
    std::vector<std::uint64_t> bits;
    const auto add = [&](const row& of) {
        for (const float value : of) {
            bits.push_back(mp::isnan(value) ? 0x7FC0'0000U : std::bit_cast<std::uint32_t>(value));
        }
    };
    const auto add_sum = [&](double sum) {
        bits.push_back(sum != sum ? 1U : std::bit_cast<std::uint64_t>(sum));
    };
    row to(count + 1, 42.0F);
    const float reference = largest_of(x);
    const double sum = kernels.exponentials(x.data(), count, reference, to.data());
    add(to);
    add_sum(sum);
    add_sum(kernels.exponentials(x.data(), count, reference, nullptr));
    row p = to;
    for (std::size_t i = 0; i < count; i += 3) p[i] = 0.0F;
    if (count > 7) p[5] = 0.0F;
    kernels.scale(count, to.data(), to.data(), 0.37F);
    add(to);
    kernels.scale_and_shift(x.data(), count, 0.37F, 0.11F, to.data());
    add(to);
    kernels.log_softmax(x.data(), count, reference, 1.25, to.data());
    add(to);
    row log_p = to;
    add_sum(kernels.dot(x.data(), log_p.data(), count));
    add_sum(kernels.sum(x.data(), count));
    kernels.softmax_slopes(x.data(), dy.data(), count, 0.3, to.data());
    add(to);
    kernels.log_softmax_slopes(log_p.data(), dy.data(), count, 0.3, to.data());
    add(to);
    std::copy(dy.begin(), dy.end(), to.begin());
    kernels.score_slopes(p.data(), count, to.data());
    add(to);
    return bits;
}

TEST_CASE("rows of every length have the same bits for every instruction set") {
    const softmax_kernels portable(mp::instruction_set::portable);
    for (const mp::instruction_set isa :
         {mp::instruction_set::neon, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::includes(mp::best_instruction_set(), isa)) continue;
        const softmax_kernels kernels(isa);
        std::size_t different = 0;
        for (std::size_t count = 0; count <= 130; ++count) {
            different += results(kernels, count) == results(portable, count) ? 0U : 1U;
        }
        CHECK(different == 0);
    }
}

TEST_CASE("a product and a difference are rounded by themselves") {
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::best_instruction_set()}) {
        // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, of which the product loses the last term.
        row x(19, 0x1.001p0F);
        softmax_kernels(isa).scale_and_shift(x.data(), x.size(), 0x1.001p0F, 1.0F, x.data());
        CHECK(x == row(19, 0x1p-11F));
    }
}

TEST_CASE("slopes of scores leave out what has no probability, NaN or not") {
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::best_instruction_set()}) {
        const softmax_kernels kernels(isa);
        const row p{0.25F, 0.0F, 0.5F, 0.25F, 0.0F};
        row slopes{4.0F, nan, -2.0F, 8.0F, infinity};
        kernels.score_slopes(p.data(), p.size(), slopes.data());
        // mean = 1 - 1 + 2
        CHECK(slopes == row{0.5F, 0.0F, -2.0F, 1.5F, 0.0F});
        const row spoilt{nan, 0.0F, 1.0F};
        slopes = {1.0F, 2.0F, 3.0F};
        kernels.score_slopes(spoilt.data(), spoilt.size(), slopes.data());
        CHECK(mp::isnan(slopes[0]));
        CHECK(slopes[1] == 0.0F);
        CHECK(mp::isnan(slopes[2]));
    }
}

}  // namespace
