// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/rearrange.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::add_to;
using mp::ops::head_layout;
using mp::ops::parts_along;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
using simulated = mp::simulated_gpu<mp::arch::sm_75>;
namespace ac = mp::autocast;

constexpr storage_order orders[] = {storage_order::row_major, storage_order::column_major};

/// Elements that differ from those of their place in the other, each rounded once.
template <class From, class To, class Place>
int differences(const matrix<From>& from, const matrix<To>& to, Place place) {
    int wrong = 0;
    for (std::ptrdiff_t r = 0; r < from.view.rows; ++r) {
        for (std::ptrdiff_t c = 0; c < from.view.columns; ++c) {
            const auto [row, column] = place(r, c);
            const To wanted = mp::round_to<To>(from.view(r, c));
            wrong += static_cast<float>(to.view(row, column)) == static_cast<float>(wanted) ? 0 : 1;
        }
    }
    return wrong;
}

struct place {
    std::ptrdiff_t row, column;
};

template <class A, class B, class Y, class Executor>
void check_parts(const Executor& exec) {
    for (const auto order : orders) {
        for (const auto y_order : orders) {
            for (const bool by_rows : {true, false}) {
                // 2 + 5 lines of 4
                const auto along = by_rows ? parts_along::rows : parts_along::columns;
                const auto shaped = [&](auto kind, std::ptrdiff_t size, storage_order lies) {
                    return by_rows ? matrix<decltype(kind)>(size, 4, 1, lies)
                                   : matrix<decltype(kind)>(4, size, 1, lies);
                };
                auto a = shaped(A{}, 2, order);
                auto b = shaped(B{}, 5, y_order);
                auto y = shaped(Y{}, 7, y_order);
                a.randomize(1);
                b.randomize(2);
                mp::ops::concatenate(exec, along, std::tuple(a.view, b.view), y.view);
                const auto first = [](auto r, auto c) { return place{r, c}; };
                const auto second = [&](auto r, auto c) {
                    return by_rows ? place{r + 2, c} : place{r, c + 2};
                };
                CHECK(differences(a, y, first) == 0);
                CHECK(differences(b, y, second) == 0);
                CHECK(y.padding_is_untouched());

                auto da = shaped(A{}, 2, order);
                auto db = shaped(B{}, 5, y_order);
                mp::ops::split(exec, along, y.view, std::tuple(da.view, db.view));
                const auto back = ops_test::cast<float>(y);
                int wrong = 0;
                for (std::ptrdiff_t r = 0; r < da.view.rows; ++r) {
                    for (std::ptrdiff_t c = 0; c < da.view.columns; ++c) {
                        wrong += da.view(r, c) == mp::round_to<A>(back.view(r, c)) ? 0 : 1;
                    }
                }
                for (std::ptrdiff_t r = 0; r < db.view.rows; ++r) {
                    for (std::ptrdiff_t c = 0; c < db.view.columns; ++c) {
                        const auto at = second(r, c);
                        wrong += db.view(r, c) == mp::round_to<B>(back.view(at.row, at.column)) ? 0 : 1;
                    }
                }
                CHECK(wrong == 0);
                CHECK(da.padding_is_untouched());
                CHECK(db.padding_is_untouched());
            }
        }
    }
}

template <class X, class Y, class Executor>
void check_heads(const Executor& exec) {
    constexpr std::ptrdiff_t batch = 2, heads = 3, tokens = 4, head_dim = 5;
    const auto stacked_place = [](auto r, auto c) {
        return place{(r / tokens * heads + c / head_dim) * tokens + r % tokens, c % head_dim};
    };
    for (const auto order : orders) {
        for (const auto y_order : orders) {
            matrix<X> x(batch * tokens, heads * head_dim, 2, order),
                dx(batch * tokens, heads * head_dim, 1, order);
            matrix<Y> y(batch * heads * tokens, head_dim, 1, y_order);
            x.randomize(1);
            mp::ops::permute_heads(exec, x.view, y.view, {.heads = heads, .batch = batch});
            CHECK(differences(x, y, stacked_place) == 0);
            CHECK(y.padding_is_untouched());
            mp::ops::permute_heads_backward(exec, y.view, dx.view, {.heads = heads, .batch = batch});
            const auto rounded = ops_test::cast<X>(ops_test::cast<Y>(x));
            CHECK(same_bits(dx, rounded));
            CHECK(dx.padding_is_untouched());
            // From the other side
            matrix<X> again(batch * tokens, heads * head_dim, 2, order);
            matrix<Y> dy(batch * heads * tokens, head_dim, 1, y_order);
            mp::ops::permute_heads(exec, y.view, again.view,
                                   {.heads = heads, .batch = batch, .from = head_layout::stacked});
            CHECK(same_bits(again, rounded));
            mp::ops::permute_heads_backward(exec, x.view, dy.view,
                                            {.heads = heads, .batch = batch, .from = head_layout::stacked});
            CHECK(same_bits(dy, y));
        }
    }
}

TEST_CASE("parts are put together and taken apart, in every mix of formats and orders") {
    check_parts<float, float, float>(mp::cpu{});
    check_parts<half, half, half>(mp::cpu{.threads = 3});
    check_parts<half, float, bfloat16>(mp::cpu{});
    check_parts<float, bfloat16, mp::float8_e4m3fn>(mp::cpu{});
    check_parts<half, float, bfloat16>(simulated{});
    check_parts<half, half, half>(simulated{});
}

TEST_CASE("heads change their layout and return") {
    check_heads<float, float>(mp::cpu{});
    check_heads<half, half>(mp::cpu{.threads = 3});
    check_heads<float, bfloat16>(mp::cpu{});
    check_heads<half, float>(simulated{});
}

TEST_CASE("one part, eight parts, an array of parts, empty parts") {
    std::vector<float> values(8);
    for (std::size_t i = 0; i < 8; ++i) values[i] = static_cast<float>(i);
    std::array<mp::matrix_view<const float>, 8> parts;
    for (std::size_t i = 0; i < 8; ++i) parts[i] = mp::row_major(std::as_const(values).data() + 7 - i, 1, 1);
    matrix<float> y(1, 8);
    mp::ops::concatenate(mp::cpu{}, parts_along::columns, parts, y.view);
    CHECK(y.elements == std::vector<float>{7, 6, 5, 4, 3, 2, 1, 0});
    mp::ops::concatenate(mp::cpu{}, parts_along::rows, std::tuple(mp::row_major(values.data(), 1, 8)),
                         y.view);
    CHECK(y.elements == values);
    const auto nothing = mp::row_major(values.data(), 0, 8);
    mp::ops::concatenate(mp::cpu{}, parts_along::rows,
                         std::tuple(nothing, mp::row_major(values.data(), 1, 8), nothing), y.view);
    CHECK(y.elements == values);
}

TEST_CASE("threads do not change a bit") {
    matrix<float> x(700, 96);
    x.randomize(1);
    CHECK(ops_test::same_with_three_threads<half>(700, 96, [&](mp::cpu exec, auto y) {
        mp::ops::concatenate(exec, parts_along::columns,
                             std::tuple(x.view.block(0, 0, 700, 32), x.view.block(0, 32, 700, 64)), y);
    }));
    CHECK(ops_test::same_with_three_threads<half>(2100, 32, [&](mp::cpu exec, auto y) {
        mp::ops::permute_heads(exec, x.view, y, {.heads = 3, .batch = 7});
    }));
}

TEST_CASE("concatenate takes the widest type, and the others leave theirs") {
    matrix<half> a(2, 2), c(2, 4);
    matrix<float> b(2, 2), y(2, 4), z(2, 4);
    a.randomize(1);
    b.randomize(2);
    mp::autocast_region region(mp::precision::bf16);
    const auto explained = ac::explain<ac::by_region, mp::ops::concatenate_op, mp::cpu, parts_along,
                                       mp::matrix_view<const half>, mp::matrix_view<const float>>();
    CHECK(explained.compute_type == "float");
    mp::ops::concatenate(mp::cpu{}, parts_along::columns, std::tuple(a.view, b.view), y.view);
    CHECK(y.view(1, 3) == b.view(1, 1));
    CHECK(y.view(0, 0) == static_cast<float>(a.view(0, 0)));
    matrix<float> da(2, 2), db(2, 2);
    mp::ops::split(mp::cpu{}, parts_along::columns, y.view, std::tuple(da.view, db.view));
    CHECK(same_bits(db, b));
    mp::ops::permute_heads(mp::cpu{}, db.view, da.view);
    CHECK(same_bits(da, b));
}

TEST_CASE("results are added where the caller says so") {
    matrix<float> x(2, 3), a(2, 1), b(2, 2);
    x.fill([](auto r, auto c) { return static_cast<float>(10 * r + c); });
    a.fill([](auto, auto) { return 100.0F; });
    mp::ops::split(mp::cpu{}, parts_along::columns, x.view, std::tuple(add_to(a.view), b.view));
    CHECK(a.elements == std::vector<float>{100, 110});
    CHECK(b.elements == std::vector<float>{1, 2, 11, 12});
    mp::ops::concatenate(mp::cpu{}, parts_along::columns, std::tuple(a.view, b.view), add_to(x.view));
    CHECK(x.elements == std::vector<float>{100, 2, 4, 120, 22, 24});
    matrix<float> c(2, 2);
    c.fill([](auto, auto) { return 1.0F; });
    mp::ops::permute_heads_backward(mp::cpu{}, b.view, add_to(c.view), {.heads = 1, .batch = 2});
    CHECK(c.elements == std::vector<float>{2, 3, 12, 13});
}

TEST_CASE("arguments that do not fit are named, and nothing is written") {
    matrix<float> a(2, 3), b(2, 2), y(2, 5);
    a.randomize(1);
    b.randomize(2);
    const auto fails = [&](parts_along along, auto parts, auto yv) {
        std::string message = message_of([&] { mp::ops::concatenate(mp::cpu{}, along, parts, yv); });
        CHECK(y.elements == std::vector<float>(10, -88.0F));
        REQUIRE(message.starts_with("mp::ops::concatenate: "));
        return message.substr(22);
    };
    const auto columns = parts_along::columns;
    CHECK(fails(columns, std::tuple(a.view), y.view) ==
          "y.columns is 5; it must equal the sum of the columns of parts, which is 3");
    CHECK(
        fails(columns, std::tuple(a.view, b.view, b.view), y.view) ==
        "parts[2].columns is 2; it must be at most what the parts before it leave of y.columns, which is 0");
    CHECK(fails(columns, std::tuple(a.view, b.view.block(0, 0, 1, 2)), y.view) ==
          "parts[1].rows is 1; it must equal y.rows, which is 2");
    CHECK(fails(parts_along::rows, std::tuple(a.view), y.view) ==
          "parts[0].columns is 3; it must equal y.columns, which is 5");
    CHECK(fails(columns, std::tuple(a.view, y.view.block(0, 0, 2, 2)), y.view) ==
          "y overlaps parts[1]; they must not share elements, because y is written while parts[1] is in use");
    CHECK(message_of([&] {
              mp::ops::split(mp::cpu{}, columns, a.view,
                             std::tuple(y.view.block(0, 0, 2, 2), y.view.block(0, 1, 2, 1)));
          }) ==
          "mp::ops::split: parts[1] overlaps parts[0]; they must not share elements, because parts[1] is "
          "written while parts[0] is in use");
    CHECK(message_of([&] { mp::ops::split(mp::cpu{}, columns, a.view, std::tuple(b.view)); }) ==
          "mp::ops::split: x.columns is 3; it must equal the sum of the columns of parts, which is 2");

    const auto permute_fails = [&](auto yv, mp::ops::permute_heads_options options) {
        std::string message = message_of([&] { mp::ops::permute_heads(mp::cpu{}, a.view, yv, options); });
        CHECK(y.elements == std::vector<float>(10, -88.0F));
        REQUIRE(message.starts_with("mp::ops::permute_heads: "));
        return message.substr(24);
    };
    CHECK(permute_fails(y.view, {.heads = 0}) == "options.heads is 0; it must be at least 1");
    CHECK(permute_fails(y.view, {.batch = 3}) ==
          "x.rows is 2; it must be a multiple of options.batch, which is 3");
    CHECK(permute_fails(y.view, {.heads = 2}) ==
          "x.columns is 3; it must be a multiple of options.heads, which is 2");
    CHECK(permute_fails(y.view, {.heads = 3}) ==
          "y.rows is 2; it must equal x.rows * options.heads, which is 6");
    CHECK(permute_fails(y.view, {.heads = 2, .batch = 2, .from = head_layout::stacked}) ==
          "x.rows / options.batch is 1; it must be a multiple of options.heads, which is 2");
    CHECK(permute_fails(y.view, {.heads = 2, .from = head_layout::stacked}) ==
          "y.rows is 2; it must equal x.rows / options.heads, which is 1");
}

}  // namespace
