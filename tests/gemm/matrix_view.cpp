// SPDX-License-Identifier: MIT
#include <mp/matrix_view.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <type_traits>

namespace {

constexpr int numbers[6] = {0, 1, 2, 3, 4, 5};

static_assert(mp::row_major(numbers, 2, 3)(1, 0) == 3);
static_assert(mp::row_major(numbers, 2, 3)(0, 2) == 2);
static_assert(mp::column_major(numbers, 2, 3)(1, 0) == 1);
static_assert(mp::column_major(numbers, 2, 3)(0, 2) == 4);
static_assert(mp::row_major(numbers, 2, 2, 4)(1, 1) == 5);
static_assert(mp::column_major(numbers, 2, 2, 3)(1, 1) == 4);

static_assert(mp::row_major(numbers, 2, 3).row_stride() == 3);
static_assert(mp::row_major(numbers, 2, 3).column_stride() == 1);
static_assert(mp::column_major(numbers, 2, 3).row_stride() == 1);
static_assert(mp::column_major(numbers, 2, 3).column_stride() == 2);

static_assert(std::is_trivially_copyable_v<mp::matrix_view<float>>);
static_assert(std::is_convertible_v<mp::matrix_view<float>, mp::matrix_view<const float>>);
static_assert(!std::is_convertible_v<mp::matrix_view<const float>, mp::matrix_view<float>>);
static_assert(std::is_same_v<mp::matrix_view<const float>::value_type, float>);

TEST_CASE("a transposed view shows the same elements with rows and columns exchanged") {
    for (const auto& view : {mp::row_major(numbers, 2, 3), mp::column_major(numbers, 2, 3),
                             mp::row_major(numbers, 2, 2, 3), mp::column_major(numbers, 2, 2, 3)}) {
        const auto other = mp::transposed(view);
        REQUIRE(other.rows == view.columns);
        REQUIRE(other.columns == view.rows);
        for (std::ptrdiff_t r = 0; r < view.rows; ++r) {
            for (std::ptrdiff_t c = 0; c < view.columns; ++c) CHECK(&other(c, r) == &view(r, c));
        }
        const auto back = mp::transposed(other);
        CHECK(back.data == view.data);
        CHECK(back.order == view.order);
        CHECK(back.rows == view.rows);
    }
}

TEST_CASE("a block shows a rectangle of the same elements") {
    for (const auto& view : {mp::row_major(numbers, 2, 3), mp::column_major(numbers, 2, 3)}) {
        const auto block = view.block(1, 1, 1, 2);
        REQUIRE(block.rows == 1);
        REQUIRE(block.columns == 2);
        CHECK(&block(0, 0) == &view(1, 1));
        CHECK(&block(0, 1) == &view(1, 2));
    }
}

TEST_CASE("a view of mutable elements becomes a view of const ones over the same memory") {
    float element = 1;
    const mp::matrix_view<const float> view = mp::column_major(&element, 1, 1, 7);
    CHECK(view.data == &element);
    CHECK(view.leading_dimension == 7);
    CHECK(view.order == mp::storage_order::column_major);
    element = 2;
    CHECK(view(0, 0) == 2);
}

}  // namespace
