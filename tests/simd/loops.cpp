// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/simd/loops.hpp>
#include <mp/simd/processor.hpp>
#include <mp/simd/select_target.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

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
    for (const mp::instruction_set isa :
         {mp::instruction_set::portable, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (isa > mp::best_instruction_set()) continue;
        const auto sum = MP_SELECT_TARGET(isa, &portable_vectors::sum_of_row, sum_of_row);
        std::size_t different = 0;
        for (std::size_t count = 0; count <= x.size(); ++count) {
            different += sum(x.data(), count) == sum_in_order(x, count) ? 0U : 1U;
        }
        CHECK(different == 0);
    }
}

}  // namespace
