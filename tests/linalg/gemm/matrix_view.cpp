// SPDX-License-Identifier: MIT
#include <mp/error.hpp>
#include <mp/float4.hpp>
#include <mp/matrix_view.hpp>
#include <mp/packed_array.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

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

TEST_CASE("an array is viewed by its own size: one that does not fit is an error with the sizes") {
    std::vector<float> values(6);
    const std::vector<float> constant(6);
    static_assert(std::is_same_v<decltype(mp::row_major(values, 2, 3)), mp::matrix_view<float>>);
    static_assert(std::is_same_v<decltype(mp::row_major(constant, 2, 3)), mp::matrix_view<const float>>);
    static_assert(
        std::is_same_v<decltype(mp::column_major(std::span<float>(values), 2, 3)), mp::matrix_view<float>>);
    CHECK(&mp::row_major(values, 2, 3)(1, 0) == &values[3]);
    CHECK(&mp::column_major(values, 2, 3)(1, 0) == &values[1]);
    CHECK(&mp::row_major(values, 2, 2, 4)(1, 1) == &values[5]);
    CHECK(&mp::column_major(values, 2, 2, 3)(1, 1) == &values[4]);

    CHECK_THROWS_WITH_AS(static_cast<void>(mp::row_major(values, 2, 4)),
                         "mp::row_major: the size of the array is 6; it must be that of a matrix of 2 x 4",
                         mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::row_major(values, 2, 2)),
                    mp::argument_error);  // which rows would these be?
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::column_major(values, 3, 2, 4)),
                         "mp::column_major: the size of the array is 6; it must be at least that of a matrix "
                         "of 3 x 2 with a leading "
                         "dimension of 4",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::row_major(values, 2, 3, 2)),
                         "mp::row_major: leading_dimension is 2; it must be at least columns, which is 3",
                         mp::argument_error);
    CHECK_THROWS_WITH_AS(static_cast<void>(mp::column_major(values, 3, -2)),
                         "mp::column_major: columns is -2; it must not be negative", mp::argument_error);
    CHECK_THROWS_AS(static_cast<void>(mp::row_major(values, std::ptrdiff_t{1} << 62, 4)), mp::argument_error);

    std::vector<float> none;
    CHECK(mp::row_major(none, 0, 5).columns == 5);
    CHECK_THROWS_AS(static_cast<void>(mp::row_major(values, 0, 5)), mp::argument_error);
    CHECK(mp::row_major(values, 0, 5, 5).rows == 0);

    // Of an array that is gone after the call there is no view, and of packed codes none of numbers.
    const auto takes = []<class Array>(Array&& array) {
        return requires { mp::row_major(std::forward<Array>(array), 2, 3); };
    };
    CHECK(takes(values));
    CHECK_FALSE(takes(std::vector<float>(6)));
    CHECK_FALSE(takes(mp::packed_span<mp::float4_e2m1fn>{}));
}

}  // namespace
