// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/arrays/array/for_each_element.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <utility>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::matrix_view;
using mp::storage_order;
using mp::detail::any_matrix_of;
using ops_test::matrix;

/// The memory of a thread for a row.
struct room {
    using element = float;
    static std::size_t size(std::size_t columns) { return 2 * columns; }

    float* in;
    float* out;
    room(std::size_t columns, float* memory) : in(memory), out(memory + columns) {}
};

TEST_CASE("every element is visited once with those at its place, in all layouts and sizes") {
    for (const auto& [rows, columns] : {std::pair<std::ptrdiff_t, std::ptrdiff_t>{1, 1},
                                        {1, 40000},
                                        {40000, 1},
                                        {63, 65},
                                        {300, 128},
                                        {0, 5}}) {
        ops_test::for_each_layout(
            [&, r_count = rows, c_count = columns](storage_order order, std::ptrdiff_t padding) {
                matrix<float> a(r_count, c_count, padding, order);
                matrix<half> b(r_count, c_count, 1, storage_order::row_major);
                matrix<float> y(r_count, c_count, padding, storage_order::row_major);
                matrix<float> z(r_count, c_count, 2, order);
                const auto place = [&](auto r, auto c) { return static_cast<float>(r * c_count + c); };
                const auto small = [](auto r, auto c) { return static_cast<float>((r + 3 * c) % 100); };
                a.fill(place);
                b.fill([&](auto r, auto c) { return half(small(r, c)); });
                const mp::cpu exec{.threads = 3};
                map_elements(mp::detail::sum_function{}, exec, y.view, matrix_view<const float>(a.view),
                             matrix_view<const half>(b.view));
                mp::detail::for_each_real<float>(
                    exec, [](float x, float w) { return x - w; }, any_matrix_of(z.view),
                    any_matrix_of(a.view), any_matrix_of(b.view));
                std::ptrdiff_t wrong = 0;
                for (std::ptrdiff_t r = 0; r < r_count; ++r) {
                    for (std::ptrdiff_t c = 0; c < c_count; ++c) {
                        wrong += y.view(r, c) == place(r, c) + small(r, c) ? 0 : 1;
                        wrong += z.view(r, c) == place(r, c) - small(r, c) ? 0 : 1;
                    }
                }
                CHECK(wrong == 0);
                CHECK(y.padding_is_untouched());
                CHECK(z.padding_is_untouched());
            });
    }
}

TEST_CASE("a run knows the places of its elements") {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        matrix<float> y(150, 90, padding, order);
        mp::detail::for_each_run<float>(
            mp::cpu{.threads = 2},
            [](const mp::detail::element_run& run, float* to) {
                for (std::size_t i = 0; i < run.count; ++i) {
                    const auto step = static_cast<std::ptrdiff_t>(i);
                    const std::ptrdiff_t r = run.row + (run.along_row ? 0 : step);
                    const std::ptrdiff_t c = run.column + (run.along_row ? step : 0);
                    to[i] = static_cast<float>(1000 * r + c);
                }
            },
            any_matrix_of(y.view));
        std::ptrdiff_t wrong = 0;
        for (std::ptrdiff_t r = 0; r < 150; ++r) {
            for (std::ptrdiff_t c = 0; c < 90; ++c) {
                wrong += y.view(r, c) == static_cast<float>(1000 * r + c) ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
        CHECK(y.padding_is_untouched());
    });
}

TEST_CASE("rows are loaded as floats and stored with one rounding, in all layouts") {
    ops_test::for_each_layout([](storage_order order, std::ptrdiff_t padding) {
        const auto check = [&]<class Value>(Value /*kind*/) {
            matrix<Value> x(3, 300, padding, order), y(3, 300, padding, order);
            x.randomize(1);
            mp::detail::for_each_row<room>(mp::cpu{.threads = 2}, 3, 300, [&](std::ptrdiff_t r, room& work) {
                const float* const from = mp::detail::reals_of_row(any_matrix_of(x.view), r, work.in);
                float* const to = mp::detail::row_target(any_matrix_of(y.view), r, work.out);
                for (std::size_t i = 0; i < 300; ++i) to[i] = 1.01F * from[i];
                mp::detail::put_row(to, any_matrix_of(y.view), r);
            });
            int wrong = 0;
            for (std::ptrdiff_t r = 0; r < 3; ++r) {
                for (std::ptrdiff_t c = 0; c < 300; ++c) {
                    const Value expected(1.01F * static_cast<float>(x.view(r, c)));
                    wrong += mp::detail::bits_of(y.view(r, c)) == mp::detail::bits_of(expected) ? 0 : 1;
                }
            }
            CHECK(wrong == 0);
            CHECK(y.padding_is_untouched());
        };
        check(bfloat16{});
        check(0.0F);
    });
}

}  // namespace
