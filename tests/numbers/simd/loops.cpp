// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/simd/loops.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace simd_test {
/// What `walk` makes of the elements of an array, wherever it ends.
struct walk_results {
    float* copied;
    double* copied_doubles;
    float* filled;  ///< whole vectors, the last one filled up
    float* kept;    ///< the same
    double* filled_doubles;
    double long_sum;
    double short_sums;
};
}  // namespace simd_test

#define MP_KERNEL_FILE <numbers/simd/loop_operations.inl>
#include <mp/numbers/simd/for_each_loop.inl>

namespace {

using namespace mp::detail;

/// The order of a long sum, by hand: 16 parts, of which one half is added to the other until one is left.
double sum_in_order(const std::vector<float>& x, std::size_t count) {
    std::vector<double> parts(16);
    for (std::size_t i = 0; i < count; ++i) parts[i % 16] += static_cast<double>(x[i]);
    for (std::size_t half = 8; half > 0; half /= 2) {
        for (std::size_t i = 0; i < half; ++i) parts[i] += parts[i + half];
    }
    return parts[0];
}

TEST_CASE("long sums are made in one order by every instruction set") {
    std::mt19937 random(5);
    std::vector<float> x(130);
    for (float& value : x) {
        value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                           static_cast<int>(random() % 80));
    }
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::instruction_set::neon,
                                          mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::includes(mp::best_instruction_set(), isa)) continue;
        const auto sum = MP_SELECT_TARGET(isa, &portable_vectors::sum_of_row, sum_of_row);
        std::size_t different = 0;
        for (std::size_t count = 0; count <= x.size(); ++count) {
            different += sum(x.data(), count) == sum_in_order(x, count) ? 0U : 1U;
        }
        CHECK(different == 0);
    }
}

TEST_CASE("walks visit every element once and leave the memory behind them alone, wherever they end") {
    std::mt19937 random(6);
    std::vector<float> x(160);
    std::vector<double> y(160);
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = std::ldexp(static_cast<float>(static_cast<std::int32_t>(random())),
                          static_cast<int>(random() % 9));
        y[i] = static_cast<double>(random()) * 0x1p-7;
    }
    for (const mp::instruction_set isa : {mp::instruction_set::portable, mp::instruction_set::neon,
                                          mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::includes(mp::best_instruction_set(), isa)) continue;
        CAPTURE(mp::name_of(isa));
        const auto walk = MP_SELECT_TARGET(isa, &portable_vectors::walk, walk);
        const std::size_t lanes = MP_SELECT_TARGET(isa, &portable_vectors::lanes_of_walk, lanes_of_walk)();
        for (std::size_t count = 0; count <= 130; ++count) {
            std::vector<float> copied(x.size(), 42.0F), filled = copied, kept = copied;
            std::vector<double> copied_doubles(x.size(), 42.0), filled_doubles = copied_doubles;
            simd_test::walk_results results{copied.data(),
                                            copied_doubles.data(),
                                            filled.data(),
                                            kept.data(),
                                            filled_doubles.data(),
                                            0,
                                            0};
            walk(x.data(), y.data(), count, &results);
            const std::size_t whole = (count + lanes - 1) / lanes * lanes;
            bool right = true;
            for (std::size_t i = 0; i < x.size(); ++i) {
                const bool there = i < count;
                right = right && copied[i] == (there ? x[i] : 42.0F);
                right = right && copied_doubles[i] == (there ? y[i] : 42.0);
                right = right && filled[i] == (there ? x[i] : i < whole ? 7.0F : 42.0F);
                right = right && kept[i] == (there ? x[i] : i < whole ? 0.0F : 42.0F);
                right = right && filled_doubles[i] == (there       ? static_cast<double>(x[i])
                                                       : i < whole ? 9.0
                                                                   : 42.0);
            }
            std::vector<float> shorts(16);
            for (std::size_t i = 0; i < count; ++i) shorts[i % 16] += x[i];
            right = right && results.long_sum == sum_in_order(x, count);
            right = right && results.short_sums == sum_in_order(shorts, 16);
            CAPTURE(count);
            CHECK(right);
        }
    }
}

}  // namespace
