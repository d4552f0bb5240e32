// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/argmax/gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;

/// By the definition.
template <class Value>
std::vector<std::int64_t> largest_columns(const matrix<Value>& x) {
    std::vector<std::int64_t> all;
    for (std::ptrdiff_t r = 0; r < x.view.rows; ++r) {
        std::ptrdiff_t best = 0;
        for (std::ptrdiff_t c = 1; c < x.view.columns; ++c) {
            const auto value = static_cast<float>(x.view(r, c)),
                       largest = static_cast<float>(x.view(r, best));
            if (!gpu_test::is_nan(largest) && (gpu_test::is_nan(value) || value > largest)) best = c;
        }
        all.push_back(best);
    }
    return all;
}

/// Few different values, so that many are equal; some NaNs, infinities and zeros of both signs.
template <class Value>
void fill(matrix<Value>& x, unsigned seed) {
    std::mt19937 random(seed);
    x.fill([&](auto r, auto) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        switch (random() % 400) {
            case 0:
                return r % 3 == 0 ? std::numeric_limits<float>::quiet_NaN() : 3.0F;
            case 1:
                return r % 2 == 0 ? infinity : -infinity;
            case 2:
                return -0.0F;
            default:
                return r % 5 == 0 ? -static_cast<float>(random() % 2)
                                  : static_cast<float>(random() % 7) - 5.0F;
        }
    });
}

template <class Value, class Index>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns) {
    CAPTURE(rows);
    CAPTURE(columns);
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        matrix<Value> x(rows, columns, in);
        fill(x, 7 + static_cast<unsigned>(columns));
        std::vector<Index> indices(static_cast<std::size_t>(rows) + 2, Index{77}), on_cpu = indices;
        mp::ops::argmax(watched(simulated{.seed = seed++}), x.view,
                        std::span(indices).subspan(1, static_cast<std::size_t>(rows)));
        mp::ops::argmax(mp::cpu{}, x.view, std::span(on_cpu).subspan(1, static_cast<std::size_t>(rows)));
        CHECK(indices == on_cpu);
        std::vector<Index> expected{Index{77}};
        for (const std::int64_t column : largest_columns(x)) expected.push_back(static_cast<Index>(column));
        expected.push_back(Index{77});
        CHECK(indices == expected);
    }
}

TEST_CASE("the first of the largest values, or the first NaN, in every layout, format and schedule") {
    for (const std::ptrdiff_t rows : {1, 33}) {
        for (const std::ptrdiff_t columns : {1, 31, 33, 130, 1500}) {
            check_layouts<float, int>(rows, columns);
            check_layouts<half, std::int64_t>(rows, columns);
        }
    }
    check_layouts<bfloat16, std::uint8_t>(20, 200);
    check_layouts<mp::float8_e4m3fn, std::int16_t>(20, 200);
}

TEST_CASE("subnormals are compared, and rows without a number above -infinity have the first column") {
    matrix<float> x(3, 40);
    x.fill([](auto r, auto c) {
        if (r == 0) return c == 17 ? 0x1p-149F : 0.0F;
        if (r == 1) return -std::numeric_limits<float>::infinity();
        return c == 39 ? -0x1p-149F : -0x1p-148F;
    });
    std::vector<int> indices(3);
    mp::ops::argmax(simulated{}, x.view, indices);
    CHECK(indices == std::vector<int>{17, 0, 39});
    // Zeros of either sign are equal.
    x.fill([](auto r, auto c) { return c == 3 + r ? -0.0F : c > 3 ? 0.0F : -1.0F; });
    mp::ops::argmax(simulated{}, x.view, indices);
    CHECK(indices == std::vector<int>{3, 4, 4});
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<half> x(2, 200);
    std::vector<int> indices(3, 7);
    CHECK_THROWS_WITH_AS(mp::ops::argmax(simulated{}, x.view, indices),
                         "mp::ops::argmax: indices.size() is 3; it must equal values.rows, which is 2",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::argmax(simulated{}, x.view.block(0, 0, 2, 0), indices), mp::argument_error);
    std::vector<std::int8_t> narrow(2);
    CHECK_THROWS_AS(mp::ops::argmax(simulated{}, x.view, narrow), mp::argument_error);
    CHECK(indices == std::vector<int>(3, 7));
    std::vector<int> none;
    mp::ops::argmax(simulated{}, mp::row_major(x.view.data, 0, 5), none);
}

}  // namespace
