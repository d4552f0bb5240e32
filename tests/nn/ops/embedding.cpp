// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/embedding.hpp>

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using ops_test::cast;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(
    std::same_as<ac::compute_type_t<ac::fp16, mp::ops::embedding_op, mp::matrix_view<const float>>, float>);
static_assert(std::same_as<
              ac::compute_type_t<ac::fp16, mp::ops::embedding_backward_op, mp::matrix_view<const bfloat16>>,
              bfloat16>);

template <class Table, class Y>
void check_embedding(storage_order order) {
    const std::vector<std::int64_t> indices = {3, 0, 3, 5, 3, 1, 0};
    matrix<Table> table(6, 10, 2, order);
    matrix<Y> y(7, 10, 3, order);
    table.randomize(1);
    mp::ops::embedding(mp::cpu{}, table.view, indices, y.view);
    bool all_right = true;
    for (std::ptrdiff_t i = 0; i < 7; ++i) {
        for (std::ptrdiff_t c = 0; c < 10; ++c) {
            const auto expected = mp::round_to<Y>(table.view(indices[static_cast<std::size_t>(i)], c));
            all_right = all_right && static_cast<float>(y.view(i, c)) == static_cast<float>(expected);
        }
    }
    CHECK(all_right);
    CHECK(y.padding_is_untouched());

    matrix<Y> dy(7, 10, 1, order);
    matrix<Table> dtable(6, 10, 3, order);
    dy.randomize(2);
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view, {.padding_index = 0});
    all_right = true;
    for (std::ptrdiff_t r = 0; r < 6; ++r) {
        for (std::ptrdiff_t c = 0; c < 10; ++c) {
            double sum = 0;
            for (std::ptrdiff_t i = 0; i < 7; ++i) {
                if (r != 0 && indices[static_cast<std::size_t>(i)] == r)
                    sum += static_cast<double>(dy.view(i, c));
            }
            all_right = all_right && mp::detail::bits_of(dtable.view(r, c)) ==
                                         mp::detail::bits_of(mp::round_to<Table>(static_cast<float>(sum)));
        }
    }
    CHECK(all_right);
    CHECK(dtable.padding_is_untouched());
}

TEST_CASE("embedding copies rows, and its gradient adds them up, in every mix of formats and orders") {
    for (const storage_order order : {storage_order::row_major, storage_order::column_major}) {
        check_embedding<float, float>(order);
        check_embedding<half, half>(order);
        check_embedding<float, half>(order);
        check_embedding<bfloat16, float>(order);
        check_embedding<half, mp::float8_e4m3fn>(order);
        check_embedding<mp::float8_e4m3fn, half>(order);
    }
}

TEST_CASE("the gradient of the table is that of central differences") {
    const std::array<std::uint8_t, 4> indices = {2, 1, 2, 2};
    matrix<double> table(4, 2), t(4, 2);
    table.randomize(1);
    t.randomize(2);
    const auto loss = [&] {
        double sum = 0;
        for (std::ptrdiff_t i = 0; i < 4; ++i) {
            for (std::ptrdiff_t c = 0; c < 2; ++c) {
                sum += t.view(i, c) * table.view(indices[static_cast<std::size_t>(i)], c);
            }
        }
        return sum;
    };
    const auto dy = cast<float>(t);
    matrix<float> dtable(4, 2);
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view);
    for (std::ptrdiff_t r = 0; r < 4; ++r) {
        for (std::ptrdiff_t c = 0; c < 2; ++c) {
            // Linear, so the differences have no error but rounding; dy has that of float.
            CHECK(std::abs(static_cast<double>(dtable.view(r, c)) -
                           ops_test::derivative(table.view(r, c), loss, 0x1p-10)) < 1e-6);
        }
    }
}

TEST_CASE("rows that do not occur and the padding row get zeros") {
    const std::vector<int> indices = {1, 1};
    matrix<half> dy(2, 2), dtable(3, 2);
    dy.fill([](auto, auto) { return half(2); });
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view);
    CHECK(dtable.elements == std::vector<half>{half(0), half(0), half(4), half(4), half(0), half(0)});
    dy.view(0, 0) = std::numeric_limits<half>::quiet_NaN();
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view);
    CHECK(mp::isnan(dtable.view(1, 0)));
    CHECK(dtable.view(1, 1) == half(4));
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view, {.padding_index = 1});
    CHECK(dtable.elements == std::vector<half>(6, half(0)));
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>{}, dy.view.block(0, 0, 0, 2), dtable.view);
    CHECK(dtable.elements == std::vector<half>(6, half(0)));
}

TEST_CASE("the gradient of a frequent row is the exact sum rounded, as of all long sums") {
    // In half the sum would stop at 2048; it is 4097, and rounds to 4096.
    matrix<half> dy(4097, 1), dtable(2, 1);
    dy.fill([](auto, auto) { return half(1); });
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>(4097, 1), dy.view, dtable.view);
    CHECK(dtable.view(1, 0) == half(4096));
    // 2^24 + 1 + 1 - 2^24 is 0 in float, also where 2^24 is what is added to.
    matrix<float> steps(4, 1), sum(1, 1);
    const float values[4] = {0x1p24F, 1, 1, -0x1p24F};
    steps.fill([&](auto r, auto) { return values[r]; });
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>(4, 0), steps.view, sum.view);
    CHECK(sum.view(0, 0) == 2.0F);
    sum.view(0, 0) = 0x1p24F;
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>(3, 0), steps.view.block(1, 0, 3, 1),
                                mp::ops::add_to(sum.view));
    CHECK(sum.view(0, 0) == 2.0F);
    // Infinities stay what they are, however many terms follow.
    matrix<float> infinite(40, 2), row(1, 2);
    infinite.fill([](auto r, auto c) {
        return r == 3 || (r == 5 && c == 1) ? (r == 3 ? 1.0F : -1.0F) * std::numeric_limits<float>::infinity()
                                            : 1.0F;
    });
    mp::ops::embedding_backward(mp::cpu{}, std::vector<int>(40, 0), infinite.view, row.view);
    CHECK(row.view(0, 0) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(row.view(0, 1)));
}

TEST_CASE("sums of 1e5 terms of all magnitudes are good to a unit in the last place") {
    const std::ptrdiff_t count = 100000;
    matrix<float> dy(count, 3), dtable(2, 3);
    std::mt19937 random(7);
    // Positive terms, terms of both signs, and a large one that is taken away at the end.
    dy.fill([&](auto r, auto c) {
        const auto x = static_cast<float>(random() >> 8);
        if (c == 2 && (r == 0 || r == count - 1)) return r == 0 ? 0x1p60F : -0x1p60F;
        if (c == 2) return x * 0x1p8F;
        return std::ldexp(c == 1 && random() % 2 == 0 ? -x : x, -static_cast<int>(random() % 40));
    });
    std::vector<int> indices(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i % 7 == 3 ? 0 : 1;
    indices.back() = indices.front();
    mp::ops::embedding_backward(mp::cpu{}, indices, dy.view, dtable.view);
    for (std::ptrdiff_t c = 0; c < 3; ++c) {
        CAPTURE(c);
        long double sum = 0, magnitudes = 0;
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            if (indices[static_cast<std::size_t>(i)] != 1) continue;
            sum += dy.view(i, c);
            magnitudes += std::fabs(dy.view(i, c));
        }
        const auto found = static_cast<long double>(dtable.view(1, c));
        CHECK(std::fabs(found - sum) <= 0x1p-24L * std::fabs(sum) + 0x1p-45L * magnitudes);
    }
}

TEST_CASE("2e7 ones are 2e7") {
    constexpr std::size_t count = 20'000'000;
    const std::vector<std::uint8_t> indices(count, 1);
    const std::vector<mp::float8_e4m3fn> dy(count, mp::float8_e4m3fn(1));
    matrix<float> dtable(2, 1);
    mp::ops::embedding_backward(mp::cpu{}, indices, mp::row_major(dy.data(), count, 1), dtable.view);
    CHECK(dtable.view(1, 0) == 2e7F);
}

TEST_CASE("autocast leaves embedding in the formats of its arguments") {
    const std::vector<int> indices = {1, 0, 1};
    matrix<float> table(2, 3), y(3, 3), dtable(2, 3), plain(2, 3);
    table.randomize(1);
    mp::ops::embedding_backward(mp::cpu{}, indices, y.view, plain.view);
    const mp::autocast_region region(mp::precision::fp16);
    mp::ops::embedding(mp::cpu{}, table.view, indices, y.view);
    CHECK(y.view(0, 1) == table.view(1, 1));
    mp::ops::embedding_backward(mp::cpu{}, indices, y.view, dtable.view);
    CHECK(dtable.view(0, 1) == table.view(0, 1));
    CHECK(dtable.view(1, 1) == 2 * table.view(1, 1));
}

TEST_CASE("embedding does not depend on the number of threads") {
    const std::size_t count = 5000;
    std::vector<std::uint16_t> indices(count);
    for (std::size_t i = 0; i < count; ++i) indices[i] = static_cast<std::uint16_t>(i * i % 601);
    matrix<half> table(601, 16), dy(5000, 16);
    table.randomize(1);
    dy.randomize(2);
    const auto run = [&](mp::cpu exec) {
        matrix<half> y(5000, 16), dtable(601, 16);
        mp::ops::embedding(exec, table.view, indices, y.view);
        mp::ops::embedding_backward(exec, indices, dy.view, dtable.view, {.padding_index = 4});
        y.elements.insert(y.elements.end(), dtable.elements.begin(), dtable.elements.end());
        return y.elements;
    };
    CHECK(run({.threads = 1}) == run({.threads = 3}));
}

TEST_CASE("embedding names the argument that does not fit, and writes nothing") {
    const mp::cpu exec{};
    matrix<float> table(3, 2), y(2, 2), dtable(3, 2);
    table.randomize(1);
    const std::vector<int> good = {0, 2};
    const auto fails = [&](const auto& indices, auto yv) {
        std::string message = message_of([&] { mp::ops::embedding(exec, table.view, indices, yv); });
        CHECK(y.elements == std::vector<float>(4, -88.0F));
        REQUIRE(message.starts_with("mp::ops::embedding: "));
        return message.substr(20);
    };
    CHECK(fails(std::vector<int>{0, 3}, y.view) == "indices[1] is 3; it must be a row of table, from 0 to 2");
    CHECK(fails(std::vector<int>{-1, 0}, y.view) ==
          "indices[0] is -1; it must be a row of table, from 0 to 2");
    CHECK(fails(std::vector<std::uint64_t>{0, ~std::uint64_t{0}}, y.view) ==
          "indices[1] is 18446744073709551615; it must be a row of table, from 0 to 2");
    CHECK(fails(std::vector<int>{1}, y.view) == "y.rows is 2; it must equal indices.size(), which is 1");
    CHECK(fails(good, y.view.block(0, 0, 2, 1)) == "y.columns is 1; it must equal table.columns, which is 2");
    CHECK(fails(good, table.view.block(1, 0, 2, 2)) ==
          "y overlaps table; they must not share elements, because y is written while table is in use");
    CHECK(message_of([&] { mp::ops::embedding(exec, table.view.block(0, 0, 0, 2), good, y.view); }) ==
          "mp::ops::embedding: table.rows is 0; it must be at least 1");
    CHECK(message_of([&] { mp::ops::embedding(mp::cpu{.threads = 0}, table.view, good, y.view); }) ==
          "mp::ops::embedding: exec.threads is 0; it must be at least 1");

    y.randomize(2);
    const auto backward_fails = [&](const auto& indices, auto dyv, auto to,
                                    mp::ops::embedding_options options = {}) {
        std::string message =
            message_of([&] { mp::ops::embedding_backward(exec, indices, dyv, to, options); });
        CHECK(dtable.elements == std::vector<float>(6, -88.0F));
        REQUIRE(message.starts_with("mp::ops::embedding_backward: "));
        return message.substr(29);
    };
    CHECK(backward_fails(std::vector<int>{0, 3}, y.view, dtable.view) ==
          "indices[1] is 3; it must be a row of dtable, from 0 to 2");
    CHECK(backward_fails(good, y.view.block(0, 0, 1, 2), dtable.view) ==
          "dy.rows is 1; it must equal indices.size(), which is 2");
    CHECK(backward_fails(good, y.view, dtable.view.block(0, 0, 3, 1)) ==
          "dy.columns is 2; it must equal dtable.columns, which is 1");
    CHECK(backward_fails(good, y.view, dtable.view, {.padding_index = 3}) ==
          "options.padding_index is 3; it must be a row of dtable, which has 3");
    CHECK(backward_fails(good, y.view, dtable.view, {.padding_index = -1}) ==
          "options.padding_index is -1; it must be a row of dtable, which has 3");
    CHECK(backward_fails(std::vector<int>{0, 1}, y.view, mp::row_major(y.view.data, 2, 2)) ==
          "dtable overlaps dy; they must not share elements, because dtable is written while dy is in use");
}

}  // namespace
