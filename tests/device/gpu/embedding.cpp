// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/float8.hpp>
#include <mp/nn/ops/embedding/gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using gpu_test::workspace;
using mp::bfloat16;
using mp::half;
using mp::ops::add_to;
using mp::ops::embedding_backward_workspace;

/// Indices of which some are much more frequent than others, and some rows have none.
template <class Index>
std::vector<Index> random_indices(std::size_t count, std::ptrdiff_t rows, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Index> indices(count);
    for (Index& index : indices) {
        const auto draw = static_cast<std::ptrdiff_t>(random() % 0x10000);
        index = static_cast<Index>(draw % 3 == 0 ? draw % rows : draw % ((rows + 2) / 3));
    }
    return indices;
}

template <class Table, class Y, class Index = int>
void check_layouts(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t count) {
    CAPTURE(rows);
    CAPTURE(columns);
    CAPTURE(count);
    const std::vector<Index> indices = random_indices<Index>(count, rows, 3);
    const auto chosen = static_cast<std::ptrdiff_t>(count);
    std::uint64_t seed = 1;
    // Every layout of the table with one of the results; which one depends on the shape.
    constexpr std::size_t count_of_layouts = std::size(gpu_test::layouts);
    for (std::size_t n = 0; n < count_of_layouts; ++n) {
        const layout& in = gpu_test::layouts[n];
        const layout& out = gpu_test::layouts[(2 * n + static_cast<std::size_t>(columns)) % count_of_layouts];
        matrix<Table> table(rows, columns, in);
        matrix<Y> y(chosen, columns, out), expected_y(chosen, columns, out), dy(chosen, columns, in);
        matrix<Table> sums(rows, columns, out), expected_sums(rows, columns, out);
        table.randomize(1, 4.0F);
        dy.randomize(2, 4.0F);
        mp::ops::embedding(watched(simulated{.seed = seed++}), table.view, indices, y.view);
        mp::ops::embedding(mp::cpu{}, table.view, indices, expected_y.view);
        CHECK(same_bits(y, expected_y));
        CHECK(y.is_contained());
        for (const bool adds : {false, true}) {
            sums.randomize(5);
            expected_sums.randomize(5);
            workspace room(embedding_backward_workspace(count));
            mp::ops::embedding_backward(room.on({.seed = seed++}), indices, dy.view, add_to(sums.view, adds),
                                        {.padding_index = rows / 2});
            mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, add_to(expected_sums.view, adds),
                                        {.padding_index = rows / 2});
            CHECK(same_bits(sums, expected_sums));
            CHECK(sums.is_contained());
        }
    }
}

TEST_CASE("rows and sums of rows have the CPU's bits, in every layout, format and schedule") {
    for (const std::ptrdiff_t columns : {1, 31, 33, 130}) {
        check_layouts<float, float>(7, columns, 1);
        check_layouts<half, float>(31, columns, 65);
        check_layouts<float, bfloat16, std::int64_t>(5, columns, 33);
    }
    check_layouts<half, half, std::uint8_t>(130, 8, 260);
    check_layouts<bfloat16, mp::float8_e4m3fn>(3, 20, 40);
    check_layouts<half, half>(2, 1500, 9);
}

/// Many indices, and tables whose rows have two and three digits in the sort.
TEST_CASE("sums of many indices are exact ones, rounded") {
    for (const std::ptrdiff_t rows : {255, 256, 1000, 70000}) {
        CAPTURE(rows);
        constexpr std::ptrdiff_t count = 5000;
        const std::vector<int> indices = random_indices<int>(count, rows, 7);
        matrix<float> dy(count, 1);
        dy.randomize(1, 100.0F);
        // The definition, without the library.
        std::vector<double> sum(static_cast<std::size_t>(rows));
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            sum[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])] +=
                static_cast<double>(dy.view(i, 0));
        }
        const std::vector<float> expected(sum.begin(), sum.end());
        std::vector<float> sums(static_cast<std::size_t>(rows), 3.0F);
        workspace room(embedding_backward_workspace(count));
        const auto seed = static_cast<std::uint64_t>(rows + 2);  // that of the first is watched
        mp::ops::embedding_backward(room.on({.seed = seed}), indices, dy.view,
                                    mp::row_major(sums.data(), rows, 1));
        CHECK(sums == expected);
    }
}

TEST_CASE("a sum does not stop at 2^24, nor at infinity") {
    constexpr std::ptrdiff_t count = 100;
    matrix<float> dy(count, 2), dtable(1, 2);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        dy.view(i, 0) = i == 0 ? 0x1p24F : 1.0F;
        dy.view(i, 1) = i == 0 ? std::numeric_limits<float>::infinity() : 1.0F;
    }
    for (const bool adds : {false, true}) {
        dtable.view(0, 0) = 3.0F;
        dtable.view(0, 1) = 3.0F;
        workspace room(embedding_backward_workspace(count));
        mp::ops::embedding_backward(room.on(), std::vector<int>(count, 0), dy.view,
                                    add_to(dtable.view, adds));
        // The sum rounds to 2^24 + 100, and with 3 to 2^24 + 104.
        CHECK(dtable.view(0, 0) == 0x1p24F + (adds ? 104.0F : 100.0F));
        CHECK(dtable.view(0, 1) == std::numeric_limits<float>::infinity());
    }
}

TEST_CASE("codes are copied as they are, NaNs, too") {
    const std::vector<half> codes = gpu_test::random_codes<half>(std::size_t{64} * 16, 3);
    const std::vector<int> indices = random_indices<int>(100, 64, 2);
    std::vector<half> y(std::size_t{100} * 16), expected = y;
    mp::ops::embedding(simulated{}, mp::row_major(codes.data(), 64, 16), indices,
                       mp::row_major(y.data(), 100, 16));
    mp::ops::embedding(mp::cpu{}, mp::row_major(codes.data(), 64, 16), indices,
                       mp::row_major(expected.data(), 100, 16));
    CHECK(gpu_test::same_bits(y, expected));
}

TEST_CASE("an index that is no row gives a row of NaN, and adds nothing") {
    matrix<half> table(5, 9), y(4, 9), dtable(5, 9), expected(5, 9);
    matrix<float> dy(4, 9);
    table.randomize(1);
    dy.randomize(2);
    const std::vector<int> indices = {4, -1, 5, 0};
    mp::ops::embedding(simulated{}, table.view, indices, y.view);
    for (std::ptrdiff_t c = 0; c < 9; ++c) {
        CHECK(same_bits(y.view(0, c), table.view(4, c)));
        CHECK(gpu_test::is_nan(static_cast<float>(y.view(1, c))));
        CHECK(gpu_test::is_nan(static_cast<float>(y.view(2, c))));
        CHECK(same_bits(y.view(3, c), table.view(0, c)));
    }
    workspace room(embedding_backward_workspace(4));
    mp::ops::embedding_backward(room.on(), indices, dy.view, dtable.view);
    for (std::ptrdiff_t r = 0; r < 4; ++r) {
        if (r == 1 || r == 2) {
            for (std::ptrdiff_t c = 0; c < 9; ++c) dy.view(r, c) = 0.0F;
        }
    }
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>{4, 1, 1, 0}, dy.view, expected.view);
    CHECK(same_bits(dtable, expected));
}

TEST_CASE(
    "no indices leave zeros or what is there, and wrong arguments are refused before anything is written") {
    matrix<float> dtable(3, 5), y(2, 5), table(3, 5);
    dtable.fill([](auto, auto) { return 7.0F; });
    float number = 0;
    const std::vector<int> none, two = {0, 1};
    const mp::matrix_view<float> empty{&number, 0, 5, 5};
    mp::ops::embedding_backward(simulated{}, none, empty, add_to(dtable.view));
    CHECK(dtable.view(2, 4) == 7.0F);
    CHECK_THROWS_WITH_AS(
        mp::ops::embedding_backward(simulated{}, two, y.view, dtable.view),
        "mp::ops::embedding_backward: exec.workspace is 'null'; it must be a workspace in the memory of the "
        "executor, of at least 16 bytes",
        mp::argument_error);
    workspace small(embedding_backward_workspace(2) / 2);
    CHECK_THROWS_AS(mp::ops::embedding_backward(small.on(), two, y.view, dtable.view), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::embedding_backward(simulated{}, two, y.view, dtable.view, {.padding_index = 3}),
                    mp::argument_error);
    CHECK(dtable.view(0, 0) == 7.0F);
    mp::ops::embedding_backward(simulated{}, none, empty, dtable.view);
    CHECK(dtable.view(0, 0) == 0.0F);
    y.fill([](auto, auto) { return 7.0F; });
    CHECK_THROWS_WITH_AS(mp::ops::embedding(simulated{}, table.view, std::vector<int>{0}, y.view),
                         "mp::ops::embedding: y.rows is 2; it must equal indices.size(), which is 1",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::ops::embedding(simulated{}, empty, two, y.view), mp::argument_error);
    CHECK_THROWS_AS(mp::ops::embedding(simulated{}, y.view, two, y.view), mp::argument_error);
    CHECK(y.view(0, 0) == 7.0F);
}

}  // namespace
