// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/rotary_embedding.hpp>

#include <array>
#include <cfenv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "larger_error.hpp"
#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::ops::head_layout;
using mp::ops::rotary_options;
using mp::ops::rotary_pairing;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
using exact = boost::multiprecision::cpp_bin_float_50;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::rotary_embedding_op,
                                              mp::matrix_view<const float>, mp::matrix_view<float>>,
                           float>);

/// The rotation written as a loop over all elements: which pair each belongs to, from the options alone.
/// Angles are in long double; their errors are below those of float up to position 2^20.
template <class X>
double expected(const rotary_options& options, double direction, mp::matrix_view<X> x, std::ptrdiff_t row,
                std::ptrdiff_t column) {
    const bool stacked = options.layout == head_layout::stacked;
    const std::ptrdiff_t head_dim = stacked ? x.columns : x.columns / options.heads;
    const std::ptrdiff_t tokens = x.rows / (stacked ? options.heads : options.batch);
    const std::ptrdiff_t rotated = options.rotated == 0 ? head_dim : options.rotated;
    const std::ptrdiff_t e = column % head_dim;
    const auto value = [&](std::ptrdiff_t c) {
        return static_cast<long double>(static_cast<float>(x(row, c)));
    };
    if (e >= rotated) return static_cast<double>(value(column));
    const bool split = options.pairing == rotary_pairing::half_split;
    const bool is_first = split ? e < rotated / 2 : e % 2 == 0;
    const std::ptrdiff_t distance = split ? rotated / 2 : 1;
    const std::ptrdiff_t i = split ? e % (rotated / 2) : e / 2;
    const long double frequency =
        std::pow(static_cast<long double>(options.base),
                 -2.0L * static_cast<long double>(i) / static_cast<long double>(rotated));
    const long double angle =
        static_cast<long double>(options.first_position + row % tokens) * frequency * direction;
    const long double c = std::cos(angle);
    const long double s = std::sin(angle);
    return static_cast<double>(is_first ? value(column) * c - value(column + distance) * s
                                        : value(column - distance) * s + value(column) * c);
}

template <class X, class Y>
void check(const rotary_options& options, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    ops_test::for_each_layout([&](auto order, auto padding) {
        for (const double direction : {1.0, -1.0}) {
            matrix<X> x(rows, columns, padding, order);
            matrix<Y> y(rows, columns, padding, order);
            x.randomize(3);
            if (direction > 0) {
                mp::ops::rotary_embedding(mp::cpu{}, x.view, y.view, options);
            } else {
                mp::ops::rotary_embedding_backward(mp::cpu{}, x.view, y.view, options);
            }
            int wrong = 0;
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
                for (std::ptrdiff_t c = 0; c < columns; ++c) {
                    const double wanted = expected(options, direction, x.view, r, c);
                    const double unit = ops_test::unit_in_last_place<Y>(wanted);
                    // Half a unit of the format, and sines and cosines that are rounded to float.
                    const double error =
                        std::abs(static_cast<double>(static_cast<float>(y.view(r, c))) - wanted);
                    wrong += error <= 0.5 * unit + 0x1p-23 ? 0 : 1;
                }
            }
            CHECK(wrong == 0);
            if (padding > 0) CHECK(y.padding_is_untouched());
        }
    });
}

template <class X, class Y>
void check_all() {
    for (const auto pairing : {rotary_pairing::half_split, rotary_pairing::interleaved}) {
        // 2 sequences of 3 heads of 5 tokens, head_dim 10
        check<X, Y>({.heads = 6, .pairing = pairing}, 30, 10);
        check<X, Y>({.heads = 3, .layout = head_layout::side_by_side, .batch = 2, .pairing = pairing}, 10,
                    30);
        check<X, Y>({.heads = 3,
                     .layout = head_layout::side_by_side,
                     .batch = 2,
                     .pairing = pairing,
                     .rotated = 6,
                     .base = 500000,
                     .first_position = 1000},
                    10, 30);
        check<X, Y>({.heads = 2, .pairing = pairing, .rotated = 2, .first_position = (1 << 20) - 7}, 14, 5);
    }
}

TEST_CASE("pairs are turned by the angles of their positions, in both pairings and layouts") {
    check_all<float, float>();
    check_all<half, half>();
    check_all<bfloat16, float>();
    check_all<float, bfloat16>();
    check_all<half, mp::float8_e4m3fn>();
}

TEST_CASE("sines and cosines have errors below 2^-52 up to angles of 2^24") {
    std::mt19937_64 random(1);
    exact worst = 0;
    for (int i = 0; i < 20000; ++i) {
        const double scale = std::ldexp(1.0, static_cast<int>(random() % 40) - 16);
        const mp::detail::double_pair angle{
            static_cast<double>(random() >> 11) * 0x1p-53 * scale * (i % 2 == 0 ? 1 : -1),
            static_cast<double>(random() >> 11) * 0x1p-108 * scale};
        const auto found = mp::detail::sine_and_cosine_of(angle);
        const exact sum = exact(angle.high) + exact(angle.low);
        worst = std::max<exact>(worst, abs(sin(sum) - exact(found.sine)));
        worst = std::max<exact>(worst, abs(cos(sum) - exact(found.cosine)));
    }
    MESSAGE("worst error of sine and cosine: 2^", std::log2(static_cast<double>(worst)));
    CHECK(worst < exact(0x1p-52));
}

TEST_CASE("the table has the exact sines and cosines rounded to float, at the ends of its range, too") {
    for (const double base : {1.0, 10000.0, 500000.0, 1e30}) {
        for (const std::ptrdiff_t first : {0, 4090, (1 << 20) - 4, (1 << 24) - 8}) {
            const std::ptrdiff_t head_dim = base == 500000.0 ? 128 : 6;
            const mp::ops::rotary_table table(mp::cpu{}, 8, head_dim,
                                              {.base = base, .first_position = first});
            int wrong = 0;
            for (std::ptrdiff_t i = 0; i < head_dim / 2; ++i) {
                const exact frequency = pow(exact(base), exact(-2 * i) / exact(head_dim));
                for (std::ptrdiff_t p = first; p < first + 8; ++p) {
                    const exact angle = exact(p) * frequency;
                    // Half a unit of float, of 2^-25 at most, and the error of the double.
                    const exact in_cosine = abs(cos(angle) - exact(table.cosines(p)[i]));
                    const exact in_sine = abs(sin(angle) - exact(table.sines(p)[i]));
                    const auto half_unit = [](float x) {
                        return exact(0.5 * ops_test::unit_in_last_place<float>(static_cast<double>(x)));
                    };
                    wrong += in_cosine <= half_unit(table.cosines(p)[i]) + exact(0x1p-50) ? 0 : 1;
                    wrong += in_sine <= half_unit(table.sines(p)[i]) + exact(0x1p-50) ? 0 : 1;
                }
            }
            CAPTURE(base);
            CAPTURE(first);
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("frequencies have errors below 2^-80") {
    for (const double base : {1.5, 10000.0, 500000.0, 1e30}) {
        for (const std::ptrdiff_t degree : {1, 2, 32, 64, 500}) {
            const auto root = mp::detail::inverse_root(base, degree);
            const exact wanted = pow(exact(base), exact(-1) / exact(degree));
            CHECK(abs((exact(root.high) + exact(root.low)) / wanted - 1) < exact(0x1p-80));
        }
    }
}

TEST_CASE("a caller's table, threads and directions of rounding do not change a bit") {
    const rotary_options options{
        .heads = 4, .layout = head_layout::side_by_side, .batch = 2, .first_position = 100};
    matrix<half> x(600, 64);
    x.randomize(1);
    matrix<half> plain(600, 64), tabled(600, 64), back(600, 64), back_tabled(600, 64);
    const mp::ops::rotary_table table(mp::cpu{.threads = 3}, 500, 16, {.first_position = 50});
    CHECK(table.positions() == 500);
    CHECK(table.first_position() == 50);
    CHECK(table.rotated() == 16);
    CHECK(table.base() == 10000.0);
    mp::ops::rotary_embedding(mp::cpu{}, x.view, plain.view, options);
    mp::ops::rotary_embedding_backward(mp::cpu{}, x.view, back.view, options);
    mp::ops::rotary_embedding(mp::cpu{.threads = 3}, x.view, table, tabled.view, options);
    mp::ops::rotary_embedding_backward(mp::cpu{.threads = 3}, x.view, table, back_tabled.view, options);
    CHECK(same_bits(plain, tabled));
    CHECK(same_bits(back, back_tabled));
    CHECK(ops_test::same_with_three_threads<half>(
        600, 64, [&](mp::cpu exec, auto y) { mp::ops::rotary_embedding(exec, x.view, y, options); }));
    for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
        matrix<half> y(600, 64);
        std::fesetround(direction);
        mp::ops::rotary_embedding(mp::cpu{}, x.view, y.view, options);
        std::fesetround(FE_TONEAREST);
        CHECK(same_bits(plain, y));
    }
}

TEST_CASE("in place, and back again") {
    for (const auto pairing : {rotary_pairing::half_split, rotary_pairing::interleaved}) {
        ops_test::for_each_layout([&](auto order, auto padding) {
            const rotary_options options{
                .heads = 2, .layout = head_layout::side_by_side, .pairing = pairing, .rotated = 8};
            matrix<float> x(9, 24, padding, order), y(9, 24, padding, order), same(9, 24, padding, order);
            x.randomize(1);
            same.randomize(1);
            mp::ops::rotary_embedding(mp::cpu{}, x.view, y.view, options);
            mp::ops::rotary_embedding(mp::cpu{}, same.view, same.view, options);
            CHECK(same_bits(same, y));
            mp::ops::rotary_embedding_backward(mp::cpu{}, same.view, same.view, options);
            float worst = 0;
            for (std::ptrdiff_t r = 0; r < 9; ++r) {
                for (std::ptrdiff_t c = 0; c < 24; ++c) {
                    worst = tests::larger_error(worst, std::abs(same.view(r, c) - x.view(r, c)));
                }
            }
            CHECK(worst < 1e-6F);
            CHECK(y.view(8, 0) != x.view(8, 0));
        });
    }
}

TEST_CASE("the gradient is that of central differences") {
    for (const auto pairing : {rotary_pairing::half_split, rotary_pairing::interleaved}) {
        const rotary_options options{.heads = 2, .pairing = pairing, .rotated = 4, .first_position = 3};
        matrix<float> x(6, 5), t(6, 5), y(6, 5), dx(6, 5);
        x.randomize(1);
        t.randomize(2);
        const auto loss = [&] {
            mp::ops::rotary_embedding(mp::cpu{}, x.view, y.view, options);
            double sum = 0;
            for (std::ptrdiff_t r = 0; r < 6; ++r) {
                for (std::ptrdiff_t c = 0; c < 5; ++c) {
                    sum += static_cast<double>(t.view(r, c)) * static_cast<double>(y.view(r, c));
                }
            }
            return sum;
        };
        mp::ops::rotary_embedding_backward(mp::cpu{}, t.view, dx.view, options);
        for (std::ptrdiff_t r = 0; r < 6; ++r) {
            for (std::ptrdiff_t c = 0; c < 5; ++c) {
                const float before = x.view(r, c);
                x.view(r, c) = before + 1;  // linear: the step may be large
                const double above = loss();
                x.view(r, c) = before - 1;
                const double below = loss();
                x.view(r, c) = before;
                CHECK(std::abs((above - below) / 2 - static_cast<double>(dx.view(r, c))) < 1e-5);
            }
        }
    }
}

TEST_CASE("autocast leaves the formats of the arguments, and add_to adds with one rounding") {
    const rotary_options options{.heads = 1};
    matrix<float> x(4, 6), plain(4, 6), in_region(4, 6);
    matrix<half> sum(4, 6);
    x.randomize(1);
    sum.randomize(2);
    matrix<half> old(4, 6);
    old.randomize(2);
    mp::ops::rotary_embedding(mp::cpu{}, x.view, plain.view, options);
    const mp::autocast_region region(mp::precision::bf16);
    mp::ops::rotary_embedding(mp::cpu{}, x.view, in_region.view, options);
    CHECK(same_bits(plain, in_region));
    mp::ops::rotary_embedding(mp::cpu{}, x.view, mp::ops::add_to(sum.view), options);
    int wrong = 0;
    for (std::ptrdiff_t r = 0; r < 4; ++r) {
        for (std::ptrdiff_t c = 0; c < 6; ++c) {
            wrong += sum.view(r, c) == half(static_cast<float>(old.view(r, c)) + plain.view(r, c)) ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("no tokens and no elements are fine, NaN stays in its pair") {
    matrix<float> x(2, 4), y(2, 4);
    mp::ops::rotary_embedding(mp::cpu{}, x.view.block(0, 0, 0, 4), y.view.block(0, 0, 0, 4));
    mp::ops::rotary_embedding(mp::cpu{}, x.view.block(0, 0, 2, 0), y.view.block(0, 0, 2, 0));
    CHECK(y.elements == std::vector<float>(8, -88.0F));
    x.randomize(1);
    x.view(1, 3) = std::numeric_limits<float>::quiet_NaN();
    mp::ops::rotary_embedding(mp::cpu{}, x.view, y.view);
    CHECK(std::isfinite(y.view(1, 0)));
    CHECK(std::isnan(y.view(1, 1)));
    CHECK(std::isfinite(y.view(1, 2)));
    CHECK(std::isnan(y.view(1, 3)));
}

TEST_CASE("rotary_embedding names the argument that does not fit, and writes nothing") {
    matrix<float> x(6, 8), y(6, 8);
    x.randomize(1);
    const auto fails = [&](auto xv, auto yv, const rotary_options& options) {
        std::string message = message_of([&] { mp::ops::rotary_embedding(mp::cpu{}, xv, yv, options); });
        CHECK(y.elements == std::vector<float>(48, -88.0F));
        REQUIRE(message.starts_with("mp::ops::rotary_embedding: "));
        return message.substr(27);
    };
    constexpr auto beside = head_layout::side_by_side;
    CHECK(fails(x.view, y.view, {.heads = 0}) == "options.heads is 0; it must be at least 1");
    CHECK(fails(x.view, y.view, {.heads = 4}) ==
          "x.rows is 6; it must be a multiple of options.heads, which is 4");
    CHECK(
        fails(x.view, y.view, {.batch = 2}) ==
        "options.batch is 2; it must be 1 where heads are stacked; options.heads are those of all sequences "
        "then");
    CHECK(fails(x.view, y.view, {.heads = 3, .layout = beside}) ==
          "x.columns is 8; it must be a multiple of options.heads, which is 3");
    CHECK(fails(x.view, y.view, {.layout = beside, .batch = 4}) ==
          "x.rows is 6; it must be a multiple of options.batch, which is 4");
    CHECK(fails(x.view, y.view, {.rotated = 3}) ==
          "options.rotated is 3; it must be even, and from 0 to x.columns, which is 8");
    CHECK(fails(x.view, y.view, {.heads = 2, .layout = beside, .rotated = 6}) ==
          "options.rotated is 6; it must be even, and from 0 to x.columns / options.heads, which is 4");
    CHECK(fails(x.view, y.view, {.heads = 8, .layout = beside}) ==
          "x.columns / options.heads is 1; it must be even where options.rotated is 0");
    CHECK(fails(x.view, y.view, {.base = 0.5}) == "options.base is 0.5; it must be from 1 to 1e30");
    CHECK(fails(x.view, y.view, {.base = std::numeric_limits<double>::quiet_NaN()}) ==
          "options.base is nan; it must be from 1 to 1e30");
    CHECK(fails(x.view, y.view, {.first_position = -1}) ==
          "options.first_position is -1; it must be from 0 to 16777216");
    CHECK(fails(x.view, y.view, {.heads = 2, .first_position = (1 << 24) - 2}) ==
          "x.rows / options.heads is 3; it must be from 0 to 2, so that positions stay below 16777216");
    CHECK(fails(x.view, y.view.block(0, 0, 6, 6), {}) ==
          "y.columns is 6; it must equal x.columns, which is 8");
    CHECK(fails(y.view.block(0, 0, 4, 8), y.view.block(1, 0, 4, 8), {}) ==
          "y overlaps x; they must not share elements, because y is written while x is in use");
    CHECK(message_of([&] { mp::ops::rotary_embedding_backward(mp::cpu{.threads = 0}, x.view, y.view); }) ==
          "mp::ops::rotary_embedding_backward: exec.threads is 0; it must be at least 1");

    const mp::ops::rotary_table table(mp::cpu{}, 6, 8, {.first_position = 2});
    const auto refused = [&](const rotary_options& options) {
        std::string message =
            message_of([&] { mp::ops::rotary_embedding(mp::cpu{}, x.view, table, y.view, options); });
        CHECK(y.elements == std::vector<float>(48, -88.0F));
        REQUIRE(message.starts_with("mp::ops::rotary_embedding: "));
        return message.substr(27);
    };
    CHECK(refused({.rotated = 4}) == "table.rotated() is 8; it must equal options.rotated, which is 4");
    CHECK(refused({.base = 100}) == "table.base() is 10000; it must equal options.base, which is 100");
    for (const std::ptrdiff_t first : {1, 3}) {
        CHECK(refused({.first_position = first}) ==
              "options.first_position is " + std::to_string(first) +
                  "; it must be such that the table, which has positions from 2 to 8, the end excluded, has "
                  "all 6 tokens");
    }
    CHECK(message_of([] { mp::ops::rotary_table(mp::cpu{}, -1, 4); }) ==
          "mp::ops::rotary_table: positions is -1; it must be from 0 to 16777216, so that positions stay "
          "below 16777216");
    CHECK(message_of([] { mp::ops::rotary_table(mp::cpu{}, 1, 5); }) ==
          "mp::ops::rotary_table: head_dim is 5; it must be even where options.rotated is 0");
}

}  // namespace
