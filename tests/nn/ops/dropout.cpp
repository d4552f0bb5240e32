// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/dropout.hpp>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::storage_order;
using mp::ops::dropout_options;
using ops_test::matrix;
using ops_test::message_of;
using ops_test::same_bits;
namespace ac = mp::autocast;

static_assert(std::same_as<ac::compute_type_t<ac::fp16, mp::ops::dropout_op, float>, float>);

/// The generator written out once more, one word at a time, from the paper's description.
std::uint32_t philox_word(std::uint64_t seed, std::uint64_t index) {
    std::uint64_t k0 = seed & 0xffffffff, k1 = seed >> 32;
    std::uint64_t x0 = (index / 4) & 0xffffffff, x1 = (index / 4) >> 32, x2 = 0, x3 = 0;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t a = 0xd2511f53 * x0, b = 0xcd9e8d57 * x2;
        const std::uint64_t y0 = (b >> 32) ^ x1 ^ k0, y2 = (a >> 32) ^ x3 ^ k1;
        x0 = y0, x1 = b & 0xffffffff, x2 = y2, x3 = a & 0xffffffff;
        k0 = (k0 + 0x9e3779b9) & 0xffffffff;
        k1 = (k1 + 0xbb67ae85) & 0xffffffff;
    }
    const std::uint64_t words[] = {x0, x1, x2, x3};
    return static_cast<std::uint32_t>(words[index % 4]);
}

TEST_CASE("an element is dropped as the generator says for its logical index, in every layout") {
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{6}, (std::uint64_t{1} << 34) - 50}) {
        ops_test::for_each_layout([&](storage_order order, std::ptrdiff_t padding) {
            const std::uint64_t added = offset / 3;
            const dropout_options options{.probability = 0.3F,
                                          .seed = 0x0123456789abcdefU,
                                          .offset = offset - added,
                                          .added_offset = &added};
            matrix<half> x(37, 83, padding, storage_order::row_major), y(37, 83, padding, order);
            matrix<float> dy(37, 83, padding, order), dx(37, 83, 0, order);
            x.randomize(1);
            dy.randomize(2);
            mp::ops::dropout(mp::cpu{}, x.view, y.view, options);
            mp::ops::dropout_backward(mp::cpu{}, dy.view, dx.view, options);
            int wrong = 0;
            for (std::ptrdiff_t r = 0; r < 37; ++r) {
                for (std::ptrdiff_t c = 0; c < 83; ++c) {
                    const auto index = offset + static_cast<std::uint64_t>(r * 83 + c);
                    // 0.3F is 10066330 / 2^25
                    const bool dropped = philox_word(options.seed, index) < std::uint64_t{10066330} << 7;
                    const auto scaled = [&](float v) {
                        return dropped
                                   ? 0.0F
                                   : static_cast<float>(static_cast<double>(v) / (1 - 10066330 * 0x1p-25));
                    };
                    wrong += y.view(r, c).bits() == half(scaled(x.view(r, c))).bits() ? 0 : 1;
                    wrong +=
                        std::abs(dx.view(r, c) - scaled(dy.view(r, c))) <= 0x1p-23F * std::abs(dx.view(r, c))
                            ? 0
                            : 1;
                }
            }
            CHECK(wrong == 0);
            CHECK(y.padding_is_untouched());
        });
    }
}

TEST_CASE("the expected share is dropped, and the mean stays") {
    matrix<float> x(200, 500), y(200, 500);
    x.fill([](auto, auto) { return 1.0F; });
    for (const float probability : {0.1F, 0.5F, 0.9F}) {
        mp::ops::dropout(mp::cpu{}, x.view, y.view, {.probability = probability, .seed = 7});
        double sum = 0;
        for (const float value : y.elements) sum += static_cast<double>(value);
        // Five standard deviations of the mean of 100000 elements.
        const double p = static_cast<double>(probability);
        CHECK(std::abs(sum / 1e5 - 1) < 5 * std::sqrt(p / (1 - p) / 1e5));
    }
}

TEST_CASE("a probability of zero copies, and of one gives zeros, whatever x is") {
    matrix<bfloat16> x(2, 3), y(2, 3);
    x.fill([](auto r, auto c) {
        return r == 0 ? bfloat16(-1.5F * static_cast<float>(c)) : std::numeric_limits<bfloat16>::infinity();
    });
    x.view(1, 1) = std::numeric_limits<bfloat16>::quiet_NaN();
    mp::ops::dropout(mp::cpu{}, x.view, y.view, {.probability = 0});
    CHECK(same_bits(x, y));
    mp::ops::dropout(mp::cpu{}, x.view, y.view, {.probability = 1});
    for (const bfloat16 value : y.elements) CHECK(value.bits() == 0);
    mp::ops::dropout_backward(mp::cpu{}, x.view, x.view, {.probability = 1});
    CHECK(same_bits(x, y));
}

TEST_CASE("the next call goes on where its offset says") {
    matrix<float> both(4, 50), first(2, 50), second(2, 50);
    both.fill([](auto, auto) { return 1.0F; });
    first.fill([](auto, auto) { return 1.0F; });
    second.fill([](auto, auto) { return 1.0F; });
    mp::ops::dropout(mp::cpu{}, both.view, both.view, {.seed = 3, .offset = 11});
    mp::ops::dropout(mp::cpu{}, first.view, first.view, {.seed = 3, .offset = 11});
    mp::ops::dropout(mp::cpu{}, second.view, second.view, {.seed = 3, .offset = 111});
    std::vector<float> joined = first.elements;
    joined.insert(joined.end(), second.elements.begin(), second.elements.end());
    CHECK(joined == both.elements);
    matrix<float> other(4, 50);
    other.fill([](auto, auto) { return 1.0F; });
    mp::ops::dropout(mp::cpu{}, other.view, other.view, {.seed = 4, .offset = 11});
    CHECK_FALSE(same_bits(other, both));
}

TEST_CASE("one thread and three drop the same, and a region changes nothing") {
    matrix<float> x(301, 333), outside(301, 333), inside(301, 333);
    x.randomize(1);
    CHECK(ops_test::same_with_three_threads<mp::float8_e4m3fn>(
        301, 333, [&](mp::cpu exec, auto y) { mp::ops::dropout(exec, x.view, y, {.seed = 9}); }));
    mp::ops::dropout(mp::cpu{}, x.view, outside.view, {.probability = 0.25F});
    const mp::autocast_region region(mp::precision::fp16);
    mp::ops::dropout(mp::cpu{}, x.view, inside.view, {.probability = 0.25F});
    CHECK(same_bits(inside, outside));
}

TEST_CASE("dropout names the argument that does not fit, and writes nothing") {
    matrix<float> x(2, 3), y(2, 3), other(3, 2);
    const mp::cpu exec{};
    CHECK(message_of([&] { mp::ops::dropout(exec, x.view, other.view, {}); }) ==
          "mp::ops::dropout: y.rows is 3; it must equal x.rows, which is 2");
    CHECK(message_of([&] { mp::ops::dropout_backward(exec, x.view, other.view, {}); }) ==
          "mp::ops::dropout_backward: dx.rows is 3; it must equal dy.rows, which is 2");
    CHECK(message_of([&] { mp::ops::dropout(exec, x.view, y.view, {.probability = -0.25F}); }) ==
          "mp::ops::dropout: options.probability is -0.25; it must be from 0 to 1");
    CHECK(message_of([&] { mp::ops::dropout_backward(exec, x.view, y.view, {.probability = 1.5F}); }) ==
          "mp::ops::dropout_backward: options.probability is 1.5; it must be from 0 to 1");
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(message_of([&] { mp::ops::dropout(exec, x.view, y.view, {.probability = nan}); }) ==
          "mp::ops::dropout: options.probability is nan; it must be from 0 to 1");
    CHECK(
        message_of([&] { mp::ops::dropout(exec, x.view.block(0, 0, 2, 2), x.view.block(0, 1, 2, 2), {}); }) ==
        "mp::ops::dropout: y overlaps x; they must not share elements, because y is written while x "
        "is in use");
    CHECK(y.elements == std::vector<float>(6, -88.0F));
    mp::ops::dropout(exec, mp::row_major<float>(nullptr, 0, 3), mp::row_major<float>(nullptr, 0, 3), {});
}

}  // namespace
