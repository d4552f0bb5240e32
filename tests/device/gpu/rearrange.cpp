// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/error.hpp>
#include <mp/nn/ops/rearrange/gpu.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::same_bits;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::half;
using mp::ops::head_layout;
using mp::ops::parts_along;

template <class X, class Y>
void check_heads(std::ptrdiff_t batch, std::ptrdiff_t heads, std::ptrdiff_t tokens, std::ptrdiff_t head_dim) {
    CAPTURE(tokens);
    CAPTURE(head_dim);
    std::uint64_t seed = 1;
    for (const layout& in : gpu_test::layouts) {
        for (const layout& out : gpu_test::layouts) {
            matrix<X> x(batch * tokens, heads * head_dim, in), again(batch * tokens, heads * head_dim, in);
            matrix<Y> y(batch * heads * tokens, head_dim, out);
            x.randomize(1, 5.0F);
            mp::ops::permute_heads(watched(simulated{.seed = seed++}), x.view, y.view,
                                   {.heads = heads, .batch = batch});
            // The definition of either layout.
            int wrong = 0;
            for (std::ptrdiff_t b = 0; b < batch; ++b) {
                for (std::ptrdiff_t h = 0; h < heads; ++h) {
                    for (std::ptrdiff_t t = 0; t < tokens; ++t) {
                        for (std::ptrdiff_t d = 0; d < head_dim; ++d) {
                            const Y expected(static_cast<float>(x.view(b * tokens + t, h * head_dim + d)));
                            wrong += same_bits(y.view((b * heads + h) * tokens + t, d), expected) ? 0 : 1;
                        }
                    }
                }
            }
            CHECK(wrong == 0);
            CHECK(y.is_contained());
            mp::ops::permute_heads_backward(watched(simulated{.seed = seed++}), y.view, again.view,
                                            {.heads = heads, .batch = batch});
            matrix<X> returned(batch * tokens, heads * head_dim, in);
            mp::ops::permute_heads(mp::cpu{}, y.view, returned.view,
                                   {.heads = heads, .batch = batch, .from = head_layout::stacked});
            CHECK(same_bits(again, returned));
            CHECK(again.is_contained());
        }
    }
}

TEST_CASE("heads change their layout, in every layout of matrices, format and schedule") {
    for (const std::ptrdiff_t head_dim : {1, 8, 31, 33}) {
        check_heads<half, half>(2, 3, 5, head_dim);
        check_heads<float, bfloat16>(1, 2, 33, head_dim);
    }
    check_heads<bfloat16, float>(3, 1, 1, 130);
}

TEST_CASE("parts are put together and taken apart as on the CPU") {
    for (const parts_along along : {parts_along::rows, parts_along::columns}) {
        for (const layout& in : gpu_test::layouts) {
            for (const layout& out : gpu_test::layouts) {
                const bool by_rows = along == parts_along::rows;
                matrix<float> a(by_rows ? 5 : 31, by_rows ? 31 : 5, in), b(31, 31, out);
                const std::ptrdiff_t rows = by_rows ? 36 : 31, columns = by_rows ? 31 : 36;
                matrix<half> y(rows, columns, out), expected(rows, columns, in);
                a.randomize(1);
                b.randomize(2);
                mp::ops::concatenate(simulated{}, along, std::tuple(a.view, b.view), y.view);
                mp::ops::concatenate(mp::cpu{}, along, std::tuple(a.view, b.view), expected.view);
                CHECK(same_bits(y, expected));
                CHECK(y.is_contained());
                matrix<float> c(a.view.rows, a.view.columns, out), d(31, 31, in);
                mp::ops::split(simulated{}, along, y.view, std::tuple(c.view, d.view));
                matrix<float> c0(a.view.rows, a.view.columns), d0(31, 31);
                mp::ops::split(mp::cpu{}, along, y.view, std::tuple(c0.view, d0.view));
                CHECK(same_bits(c, c0));
                CHECK(same_bits(d, d0));
                CHECK(c.is_contained());
                CHECK(d.is_contained());
            }
        }
    }
}

TEST_CASE("wrong arguments are refused before anything is written") {
    matrix<float> x(4, 6), y(8, 3);
    y.fill([](auto, auto) { return 7.0F; });
    CHECK_THROWS_WITH_AS(
        mp::ops::permute_heads(simulated{}, x.view, y.view, {.heads = 4}),
        "mp::ops::permute_heads: x.columns is 6; it must be a multiple of options.heads, which "
        "is 4",
        mp::argument_error);
    CHECK_THROWS_AS(mp::ops::permute_heads_backward(simulated{}, x.view, y.view, {.heads = 2}),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::ops::split(simulated{}, parts_along::rows, x.view, std::tuple(y.view)),
                    mp::argument_error);
    CHECK(y.view(7, 2) == 7.0F);
}

}  // namespace
