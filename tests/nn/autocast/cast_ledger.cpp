// SPDX-License-Identifier: MIT
// The counts of a cast ledger against counts by hand and against loops over doubles.
#include <doctest/doctest.h>
#include <mp/nn/autocast/cast_ledger.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "nn/autocast/ledger_ops.hpp"

namespace {

namespace ac = mp::autocast;
using namespace ledger_ops;
using mp::precision;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

template <class Op>
void run_into(const std::vector<float>& x, std::vector<float>& y) {
    ac::dispatch(Op{}, std::span<const float>(x), ac::out(std::span<float>(y)));
}

/// Runs a copy in a region with a ledger.
template <class Op>
void run(ac::cast_ledger& ledger, precision value, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    const mp::autocast_region region({.cpu = value, .ledger = &ledger});
    run_into<Op>(x, y);
}

/// x rounded to nearest even with `bits` of significance and multiples of 2^least, without a bound above.
double rounded(double x, int bits, int least) {
    if (!(std::fabs(x) > 0.0)) return x;
    int exponent = std::ilogb(x) - (bits - 1);
    if (exponent < least) exponent = least;
    return std::ldexp(std::nearbyint(std::ldexp(x, -exponent)), exponent);
}

struct format {
    int bits;
    int least;
    double largest;
    double smallest_normal;
};
constexpr format half_format{11, -24, 65504.0, 0x1p-14};
constexpr format bfloat16_format{8, -133, 0x1.fep127, 0x1p-126};
constexpr format e4m3_format{4, -9, 448.0, 0x1p-6};
constexpr format e5m2_format{3, -16, 57344.0, 0x1p-14};

/// What a loop over doubles counts for casts that multiply by 2^scale before the rounding.
ac::cast_losses naive_losses(const std::vector<float>& values, const format& to, int scale = 0) {
    ac::cast_losses result;
    for (const float value : values) {
        ++result.elements;
        if (!std::isfinite(value)) continue;
        const double x = std::ldexp(static_cast<double>(value), scale);
        if (x > 0.0 || x < 0.0) {
            const double y = std::fabs(rounded(x, to.bits, to.least));
            if (y > to.largest) {
                ++result.overflowed;
            } else {
                if (y < std::fabs(x) || y > std::fabs(x)) ++result.inexact;
                if (!(y > 0.0)) ++result.flushed;
                if (y > 0.0 && y < to.smallest_normal) ++result.subnormal;
            }
            const double magnitude = std::fabs(static_cast<double>(value));
            if (magnitude > result.largest) result.largest = magnitude;
            if (!(result.smallest > 0.0) || magnitude < result.smallest) result.smallest = magnitude;
        } else {
            ++result.zeros;
        }
    }
    return result;
}

std::vector<float> numbers_of_many_sizes(std::size_t count, int lowest, int highest, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> exponent(lowest, highest);
    std::uniform_real_distribution<double> fraction(1.0, 2.0);
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double magnitude = std::ldexp(fraction(random), exponent(random));
        values[i] = static_cast<float>(i % 2 == 0 ? magnitude : -magnitude);
        if (i % 17 == 0) values[i] = i % 34 == 0 ? 0.0F : -0.0F;
    }
    return values;
}

void check_equal(const ac::cast_losses& counted, const ac::cast_losses& expected) {
    CHECK(counted.elements == expected.elements);
    CHECK(counted.overflowed == expected.overflowed);
    CHECK(counted.flushed == expected.flushed);
    CHECK(counted.subnormal == expected.subnormal);
    CHECK(counted.inexact == expected.inexact);
    CHECK(counted.zeros == expected.zeros);
    CHECK(counted.largest == expected.largest);
    CHECK(counted.smallest == expected.smallest);
}

TEST_CASE("every kind of loss in a cast to half is counted as by hand") {
    ac::cast_ledger ledger;
    //         exact  zero   -zero  inexact   overflow  to 65504  flush      subnormal  subnormal, inexact
    run<low_copy>(ledger, precision::fp16,
                  {1.0F, 0.0F, -0.0F, 1.0001F, -70000.0F, 65519.0F, 1e-8F, 0x1p-24F, 0x1.8p-24F});
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 2);
    CHECK(casts[0].op == "copy");
    CHECK(casts[0].argument == "x");
    CHECK(casts[0].from == "float");
    CHECK(casts[0].to == "half");
    CHECK(casts[0].direction == ac::cast_direction::input);
    CHECK(casts[0].casts == 1);
    CHECK(casts[0].reused == 0);
    CHECK(casts[0].bytes == 9 * (4 + 2));
    CHECK_FALSE(casts[0].scaled);
    check_equal(casts[0].losses, {.elements = 9,
                                  .overflowed = 1,
                                  .flushed = 1,
                                  .subnormal = 2,
                                  .inexact = 4,
                                  .zeros = 2,
                                  .largest = 70000.0,
                                  .smallest = static_cast<double>(1e-8F)});
    CHECK(casts[1].argument == "y");
    CHECK(casts[1].from == "half");
    CHECK(casts[1].to == "float");
    CHECK(casts[1].direction == ac::cast_direction::output);
    // What became infinite in the cast is no finite number of the result.
    check_equal(casts[1].losses, {.elements = 9, .zeros = 3, .largest = 65504.0, .smallest = 0x1p-24});
}

TEST_CASE("counts of many numbers are those of a loop over doubles, for half and bfloat16") {
    for (const unsigned seed : {1U, 2U, 3U}) {
        const std::vector<float> values = numbers_of_many_sizes(5000, -30, 20, seed);
        ac::cast_ledger to_half;
        run<low_copy>(to_half, precision::fp16, values);
        const ac::cast_losses expected = naive_losses(values, half_format);
        CHECK(expected.overflowed > 100);
        CHECK(expected.flushed > 100);
        CHECK(expected.subnormal > 100);
        check_equal(to_half.casts()[0].losses, expected);
        ac::cast_ledger to_bfloat16;
        const std::vector<float> wide = numbers_of_many_sizes(5000, -126, 127, seed);
        run<low_copy>(to_bfloat16, precision::bf16, wide);
        check_equal(to_bfloat16.casts()[0].losses, naive_losses(wide, bfloat16_format));
    }
}

TEST_CASE("operands that are scaled to float8 are counted by their scale and named by the format") {
    ac::cast_ledger ledger;
    // The largest magnitude is between 2^11 and 2^12: times 2^-3 it is between 256 and 448 or 512.
    std::vector<float> values = numbers_of_many_sizes(4000, -12, 10, 7);
    values[5] = 3000.0F;
    run<low_copy>(ledger, precision::fp8, values);
    auto casts = ledger.casts();
    CHECK(casts[0].to == "float8_e4m3fn");
    CHECK(casts[0].scaled);
    const ac::cast_losses expected = naive_losses(values, e4m3_format, -3);
    CHECK(expected.overflowed == 0);
    CHECK(expected.flushed > 100);
    CHECK(expected.subnormal > 100);
    check_equal(casts[0].losses, expected);

    // The gradient of a backward op is float8_e5m2; 40000 * 2^0 is within (28672, 57344].
    ac::cast_ledger backward;
    std::vector<float> gradient = numbers_of_many_sizes(4000, -22, 14, 8);
    gradient[3] = 40000.0F;
    run<low_product_backward>(backward, precision::fp8, gradient);
    casts = backward.casts();
    CHECK(casts[0].argument == "dy");
    CHECK(casts[0].to == "float8_e5m2");
    check_equal(casts[0].losses, naive_losses(gradient, e5m2_format));
    CHECK(casts[0].losses.flushed > 100);
}

TEST_CASE("numbers that are scaled to float8 are named by the format, like arrays") {
    ac::cast_ledger ledger;
    const mp::autocast_region region({.cpu = precision::fp8, .ledger = &ledger});
    // 0x1.1p10 lies half way between two float8_e4m3fn after scaling, and beyond their range before it.
    const float product = ac::dispatch(multiply_op{}, 0x1.11p10F, 1.0F);
    CHECK(product == 0x1.2p10F);
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 2);  // the result is bfloat16 as it should be, which is no cast
    CHECK(casts[0].to == "float8_e4m3fn");
    CHECK(casts[0].scaled);
    check_equal(casts[0].losses, {.elements = 1, .inexact = 1, .largest = 0x1.11p10, .smallest = 0x1.11p10});
}

TEST_CASE("casts of one argument add up, and others have records of their own") {
    ac::cast_ledger ledger;
    run<low_copy>(ledger, precision::fp16, {1.0F, 70000.0F});
    run<low_copy>(ledger, precision::fp16, {0x1p-20F, 0.0F, -3.0F});
    run<low_copy>(ledger, precision::bf16, {5.0F});
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 4);
    CHECK(casts[0].casts == 2);
    CHECK(casts[0].bytes == 5 * 6);
    check_equal(casts[0].losses, {.elements = 5,
                                  .overflowed = 1,
                                  .subnormal = 1,
                                  .zeros = 1,
                                  .largest = 70000.0,
                                  .smallest = 0x1p-20});
    CHECK(casts[2].to == "bfloat16");
    const auto ops = ledger.ops();
    REQUIRE(ops.size() == 2);
    CHECK(ops[0].calls == 2);
    CHECK(ops[0].active == precision::fp16);
    CHECK(ops[0].compute_type == "half");
    CHECK(ops[1].calls == 1);
    CHECK(ops[1].compute_type == "bfloat16");
    ledger.clear();
    CHECK(ledger.casts().empty());
    CHECK(ledger.ops().empty());
    CHECK_FALSE(ledger.first_non_finite());
}

TEST_CASE("a cast that comes from the cache is counted as reused, and its elements once") {
    ac::cast_ledger ledger;
    const std::vector<float> x{1.0F, 2.0F};
    const std::vector<float> w{1.0F, 1e-9F, 3.0F};
    std::vector<float> y(2);
    ac::buffer_version version;
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
    const auto call = [&] {
        ac::dispatch(low_product{}, std::span<const float>(x), ac::cached(std::span<const float>(w), version),
                     ac::out(std::span<float>(y)));
    };
    for (int i = 0; i < 5; ++i) call();
    version.changed();
    for (int i = 0; i < 3; ++i) call();
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 3);
    CHECK(casts[0].casts == 8);
    CHECK(casts[0].reused == 0);
    CHECK(casts[1].argument == "w");
    CHECK(casts[1].casts == 2);
    CHECK(casts[1].reused == 6);
    CHECK(casts[1].bytes == 2 * 3 * 6);
    CHECK(casts[1].losses.elements == 6);
    CHECK(casts[1].losses.flushed == 2);
    const auto products = ledger.products();
    REQUIRE(products.size() == 1);
    CHECK(products[0].m == 2);
    CHECK(products[0].n == 3);
    CHECK(products[0].k == 2);
    CHECK(products[0].type == "half");
    CHECK(products[0].calls == 8);
}

TEST_CASE("an array that is read and written is cast both ways") {
    ac::cast_ledger ledger;
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
    const std::vector<float> x{1.0F};
    std::vector<float> y{70000.0F};
    ac::dispatch(add_to_op{}, std::span<const float>(x), ac::in_out(std::span<float>(y)));
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 3);
    CHECK(casts[1].argument == "y");
    CHECK(casts[1].direction == ac::cast_direction::input);
    CHECK(casts[1].losses.overflowed == 1);
    CHECK(casts[2].argument == "y");
    CHECK(casts[2].direction == ac::cast_direction::output);
    REQUIRE(ledger.first_non_finite());
    CHECK(ledger.first_non_finite()->origin == ac::value_origin::cast);
    CHECK(ledger.first_non_finite()->argument == "y");
}

TEST_CASE("what an op reads without a cast has its range recorded") {
    ac::cast_ledger ledger;
    run<full_copy>(ledger, precision::fp16, {1.0F, 0.0F, -1e6F});
    run<full_copy>(ledger, precision::fp16, {1e-9F, infinity});
    CHECK(ledger.casts().empty());
    const auto inputs = ledger.inputs();
    REQUIRE(inputs.size() == 1);
    CHECK(inputs[0].op == "copy");
    CHECK(inputs[0].argument == "x");
    CHECK(inputs[0].type == "float");
    CHECK(inputs[0].reads == 2);
    CHECK(inputs[0].elements == 5);
    CHECK(inputs[0].zeros == 1);
    CHECK(inputs[0].largest == 1e6);
    CHECK(inputs[0].smallest == static_cast<double>(1e-9F));
}

TEST_CASE("the first value that is not finite is found where it arises") {
    SUBCASE("in the caller's array, cast or not") {
        for (const auto run_op : {&run_into<low_copy>, &run_into<full_copy>}) {
            ac::cast_ledger ledger;
            std::vector<float> y(3);
            const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
            run_op({1.0F, 2.0F, 3.0F}, y);
            run_op({1.0F, nan, 70000.0F}, y);
            const auto first = ledger.first_non_finite();
            REQUIRE(first);
            CHECK(first->origin == ac::value_origin::argument);
            CHECK(first->argument == "x");
            CHECK(first->index == 1);
            CHECK(first->is_nan);
            CHECK(first->call == 1);
            CHECK(first->layer.empty());
        }
    }
    SUBCASE("in a cast, in a layer") {
        ac::cast_ledger ledger;
        {
            const mp::autocast_layer encoder("encoder");
            const mp::autocast_layer block("block3");
            run<low_copy>(ledger, precision::fp16, {1.0F, 2.0F, -70000.0F, 80000.0F});
        }
        run<low_copy>(ledger, precision::fp16, {nan});  // is too late
        const auto first = ledger.first_non_finite();
        REQUIRE(first);
        CHECK(first->origin == ac::value_origin::cast);
        CHECK(first->op == "copy");
        CHECK(first->argument == "x");
        CHECK(first->index == 2);
        CHECK_FALSE(first->is_nan);
        CHECK(first->layer == "encoder.block3");
        CHECK(first->call == 0);
    }
    SUBCASE("in a kernel that writes half") {
        ac::cast_ledger ledger;
        const std::vector<float> x{1.0F, 60000.0F};
        const std::vector<float> w{2.0F};
        std::vector<float> y(2);
        const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
        ac::dispatch(low_product{}, std::span<const float>(x), std::span<const float>(w),
                     ac::out(std::span<float>(y)));
        const auto first = ledger.first_non_finite();
        REQUIRE(first);
        CHECK(first->origin == ac::value_origin::kernel);
        CHECK(first->argument == "y");
        CHECK(first->index == 1);
    }
    SUBCASE("in a kernel that writes the caller's array itself") {
        ac::cast_ledger ledger;
        const std::vector<float> x{3e38F};
        const std::vector<float> w{2.0F};
        std::vector<float> y(1);
        const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
        ac::dispatch(full_product{}, std::span<const float>(x), std::span<const float>(w),
                     ac::out(std::span<float>(y)));
        REQUIRE(ledger.first_non_finite());
        CHECK(ledger.first_non_finite()->origin == ac::value_origin::kernel);
    }
    SUBCASE("in the cast of a result") {
        ac::cast_ledger ledger;
        const std::vector<float> x{1.0F, 300.0F};
        std::vector<mp::half> y(2);
        const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
        const std::vector<float> w{1000.0F};
        ac::dispatch(full_product{}, std::span<const float>(x), std::span<const float>(w),
                     ac::out(std::span<mp::half>(y)));
        const auto first = ledger.first_non_finite();
        REQUIRE(first);
        CHECK(first->origin == ac::value_origin::result);
        CHECK(first->argument == "y");
        CHECK(first->index == 1);
        const auto casts = ledger.casts();
        REQUIRE(casts.size() == 1);
        CHECK(casts[0].from == "float");
        CHECK(casts[0].to == "half");
        CHECK(casts[0].direction == ac::cast_direction::output);
        CHECK(casts[0].losses.overflowed == 1);
    }
    SUBCASE("in numbers") {
        const auto first = [](auto x, auto y) {
            ac::cast_ledger ledger;
            const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
            ac::dispatch(multiply_op{}, x, y);
            REQUIRE(ledger.first_non_finite());
            return *ledger.first_non_finite();
        };
        CHECK(first(2.0F, infinity).origin == ac::value_origin::argument);
        CHECK(first(2.0F, infinity).argument == "y");
        CHECK(first(70000.0F, 1.0F).origin == ac::value_origin::cast);
        CHECK(first(60000.0F, 2.0F).origin == ac::value_origin::kernel);
        CHECK(first(60000.0F, 2.0F).argument == "result");
        // Numbers of the right type are not cast, but looked at.
        const auto x = std::numeric_limits<mp::half>::infinity();
        CHECK(first(x, x).origin == ac::value_origin::argument);
        CHECK(first(x, x).argument == "x");
    }
}

TEST_CASE("the index in a matrix with padding counts the elements in the order of the memory") {
    ac::cast_ledger ledger;
    // Two rows of three numbers and two of padding, which nobody looks at.
    std::vector<float> x(10, infinity);
    for (const std::size_t i : {0U, 1U, 2U, 5U, 6U, 7U}) x[i] = 1.0F;
    x[6] = 70000.0F;
    const std::vector<float> w(3, 1.0F);
    std::vector<float> y(2);
    const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
    mp::ops::linear(mp::cpu{}, mp::matrix_view<const float>{x.data(), 2, 3, 5},
                    mp::matrix_view<const float>{w.data(), 1, 3, 3}, mp::ops::absent,
                    mp::matrix_view<float>{y.data(), 2, 1, 1});
    const auto first = ledger.first_non_finite();
    REQUIRE(first);
    CHECK(first->op == "linear");
    CHECK(first->origin == ac::value_origin::cast);
    CHECK(first->index == 4);
    CHECK(ledger.casts()[0].losses.elements == 6);
    CHECK(ledger.casts()[0].losses.overflowed == 1);
}

TEST_CASE("library ops fill the ledger, and a loss in float has no casts") {
    ac::cast_ledger ledger;
    const std::vector<float> x{1.0F, 1e-9F, 3.0F, -4.0F};
    const std::vector<float> w{1.0F, 0.5F, 0.25F, 70000.0F, 2.0F, 3.0F};
    std::vector<float> logits(6);
    const std::vector<int> labels{0, 2};
    {
        const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
        mp::ops::linear(mp::cpu{}, mp::matrix_view<const float>{x.data(), 2, 2, 2},
                        mp::matrix_view<const float>{w.data(), 3, 2, 2}, mp::ops::absent,
                        mp::matrix_view<float>{logits.data(), 2, 3, 3});
        mp::ops::softmax_cross_entropy(mp::cpu{}, mp::matrix_view<const float>{logits.data(), 2, 3, 3},
                                       labels);
    }
    const auto casts = ledger.casts();
    REQUIRE(casts.size() == 3);
    CHECK(casts[0].losses.flushed == 1);
    CHECK(casts[1].losses.elements == 6);
    CHECK(casts[1].losses.overflowed == 1);
    CHECK(casts[2].direction == ac::cast_direction::output);
    const auto ops = ledger.ops();
    REQUIRE(ops.size() == 2);
    CHECK(ops[1].op == "softmax_cross_entropy");
    CHECK(ops[1].category == mp::op_category::full_precision);
    CHECK(ops[1].compute_type == "float");
    const auto first = ledger.first_non_finite();
    REQUIRE(first);
    CHECK(first->op == "linear");
    CHECK(first->index == 3);
}

TEST_CASE("two threads fill one ledger, and nothing is lost") {
    ac::cast_ledger ledger;
    constexpr int rounds = 300;
    const auto work = [&](precision value) {
        for (int i = 0; i < rounds; ++i) run<low_copy>(ledger, value, {1.0F, 70000.0F, 1e-9F, 0.0F});
    };
    std::thread other(work, precision::fp16);
    work(precision::bf16);
    for (int i = 0; i < rounds; ++i) run<low_copy>(ledger, precision::fp16, {2.0F});
    other.join();
    std::uint64_t calls = 0;
    for (const auto& it : ledger.ops()) calls += it.calls;
    CHECK(calls == 3 * rounds);
    std::uint64_t found = 0;
    for (const auto& it : ledger.casts()) {
        if (it.to != "half") continue;
        ++found;
        CHECK(it.casts == 2 * rounds);
        CHECK(it.losses.elements == 5 * rounds);
        CHECK(it.losses.overflowed == rounds);
        CHECK(it.losses.flushed == rounds);
        CHECK(it.losses.zeros == rounds);
    }
    CHECK(found == 1);
    REQUIRE(ledger.first_non_finite());
    CHECK(ledger.first_non_finite()->index == 1);
}

TEST_CASE("operands of a library op that need no cast count as reads with their zeros and limits") {
    std::vector<mp::half> x{mp::half(0.0F), mp::half(-3.0F), mp::half(0.5F), mp::half(1.0F)};
    std::vector<float> y(4);
    ac::cast_ledger ledger;
    {
        const mp::autocast_region region({.cpu = precision::fp16, .ledger = &ledger});
        mp::ops::linear(mp::cpu{}, mp::matrix_view<const mp::half>{x.data(), 2, 2, 2},
                        mp::matrix_view<const mp::half>{x.data(), 2, 2, 2}, mp::ops::absent,
                        mp::matrix_view<float>{y.data(), 2, 2, 2});
    }
    const std::vector<ac::input_record> inputs = ledger.inputs();
    REQUIRE(inputs.size() == 2);
    for (const ac::input_record& it : inputs) {
        CHECK(it.op == "linear");
        CHECK(it.type == "half");
        CHECK(it.reads == 1);
        CHECK(it.elements == 4);
        CHECK(it.zeros == 1);
        CHECK(it.largest == 3.0);
        CHECK(it.smallest == 0.5);
    }
}

}  // namespace
