// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/block_scaled.hpp>
#include <mp/device/gpu/block_quantize.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device/gpu/matrices.hpp"

namespace {

using gpu_test::layout;
using gpu_test::matrix;
using gpu_test::simulated;
using gpu_test::watched;
using mp::bfloat16;
using mp::block_direction;
using mp::half;
using mp::quantize_options;
using mp::scale_rule;

constexpr scale_rule rules[] = {scale_rule::standard, scale_rule::floor, scale_rule::ceil, scale_rule::even,
                                scale_rule::nearest};

/// A block-scaled matrix whose parts may begin at any byte; what lies behind is checked.
template <class Format>
struct quantised {
    struct alignas(16) vector {
        std::byte bytes[16];
    };
    std::vector<vector> memory;
    std::vector<typename Format::scale_type> scales;
    float tensor_scale = -1;
    mp::block_scaled_span<Format> span;

    quantised(std::ptrdiff_t rows, std::ptrdiff_t columns, block_direction direction, std::size_t shift = 0) {
        using view = mp::block_scaled_span<Format>;
        const std::size_t size = view::element_bytes(rows, columns, direction);
        memory.resize(size / 16 + 3);
        std::memset(static_cast<void*>(memory.data()), 0x5A, memory.size() * 16);
        scales.resize(view::scale_count(rows, columns, direction) + 1);
        span = {std::span(memory[0].bytes + shift, size),
                std::span(scales).first(scales.size() - 1),
                rows,
                columns,
                direction,
                Format::has_tensor_scale ? &tensor_scale : nullptr};
    }
    [[nodiscard]] bool is_contained() const {
        const auto* begin = memory[0].bytes;
        const auto* end = begin + memory.size() * 16;
        const std::byte* behind = span.elements.data() + span.elements.size();
        const auto untouched = [](std::byte b) { return b == std::byte{0x5A}; };
        return std::all_of(begin, static_cast<const std::byte*>(span.elements.data()), untouched) &&
               std::all_of(behind, end, untouched);
    }
};

template <class Format>
bool same_as(const quantised<Format>& found, const Format& expected) {
    const auto bytes = expected.bytes();
    const auto scales = expected.scales();
    return bytes.size() == found.span.elements.size() && scales.size() == found.span.scales.size() &&
           std::equal(bytes.begin(), bytes.end(), found.span.elements.begin()) &&
           std::equal(scales.begin(), scales.end(), found.span.scales.begin(),
                      [](auto a, auto b) { return a.bits() == b.bits(); }) &&
           (!Format::has_tensor_scale || gpu_test::same_bits(found.tensor_scale, expected.tensor_scale()));
}

template <class Format, class Value>
void check_same(const matrix<Value>& from, const quantize_options& options, std::uint64_t seed,
                std::size_t shift = 0) {
    quantised<Format> found(from.view.rows, from.view.columns, options.direction, shift);
    mp::quantize(watched(simulated{.seed = seed}), from.view, found.span, options);
    const Format expected = mp::quantize<Format>(mp::cpu{}, from.view, options);
    CAPTURE(from.view.rows);
    CAPTURE(from.view.columns);
    CAPTURE(static_cast<int>(options.rule));
    CHECK(same_as(found, expected));
    CHECK(found.is_contained());

    matrix<Value> back(from.view.rows, from.view.columns), back_expected(from.view.rows, from.view.columns);
    mp::dequantize(watched(simulated{.seed = seed}), found.span, back.view);
    mp::dequantize(mp::cpu{}, expected, back_expected.view);
    CHECK(gpu_test::same_bits(back, back_expected));
    CHECK(back.is_contained());
}

/// Numbers of many magnitudes, zeros and whole blocks of zeros among them; more extreme where asked for.
template <class Value>
void fill(matrix<Value>& x, unsigned seed, bool extreme) {
    std::mt19937 random(seed);
    x.fill([&](auto, auto c) -> float {
        const float sign = random() % 2 == 0 ? 1.0F : -1.0F;
        const float significand = 1.0F + static_cast<float>(random() >> 9) * 0x1p-23F;
        const int exponent = static_cast<int>(random() % (extreme ? 250 : 12)) - (extreme ? 130 : 6);
        if (random() % 16 == 0 || c / 32 % 7 == 3) return sign * 0.0F;
        return sign * std::ldexp(significand, exponent);
    });
}

template <class Format>
void check_shapes() {
    std::uint64_t seed = 1;
    for (const auto& [rows, columns] :
         {std::pair<int, int>{1, 1}, {1, 31}, {3, 32}, {2, 100}, {5, 256}, {1, 1111}}) {
        for (const auto direction : {block_direction::along_rows, block_direction::along_columns}) {
            for (const layout& how : gpu_test::layouts) {
                matrix<half> x(rows, columns, how);
                fill(x, static_cast<unsigned>(seed), false);
                check_same<Format>(x, {.direction = direction}, seed, seed % 3 == 0 ? 0 : seed % 3);
                ++seed;
            }
        }
    }
}

template <class Format>
void check_values() {
    std::uint64_t seed = 1;
    for (const scale_rule rule : rules) {
        for (const bool extreme : {false, true}) {
            matrix<float> x(3, 640);
            fill(x, static_cast<unsigned>(seed), extreme);
            check_same<Format>(x, {.rule = rule}, seed++);
            matrix<bfloat16> y(2, 640);
            fill(y, static_cast<unsigned>(seed), extreme);
            check_same<Format>(y, {.rule = rule}, seed++);
        }
    }
}

template <class Format>
void check_nonfinite() {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    matrix<float> x(4, 128);
    fill(x, 3, false);
    x.view(0, 5) = infinity;
    x.view(0, 6) = 1000.0F;
    x.view(1, 40) = -std::numeric_limits<float>::quiet_NaN();
    x.view(2, 70) = -infinity;
    x.view(2, 71) = std::numeric_limits<float>::quiet_NaN();
    for (std::ptrdiff_t c = 0; c < 32; ++c) x.view(3, c) = infinity;
    for (const scale_rule rule : rules) {
        for (const auto how : {mp::nonfinite_handling::propagate, mp::nonfinite_handling::by_element}) {
            check_same<Format>(x, {.rule = rule, .nonfinite = how}, 4);
        }
    }
}

template <class Format>
void check_projections() {
    using mp::rounding;
    using mp::saturation;
    matrix<float> x(3, 96);
    fill(x, 5, false);
    for (const rounding round : {rounding::nearest_even, rounding::nearest_away, rounding::toward_zero,
                                 rounding::upward, rounding::downward, rounding::to_odd}) {
        for (const saturation saturate : {saturation::none, saturation::finite, saturation::propagate}) {
            check_same<Format>(x, {.element = {round, saturate}}, 1);
        }
    }
    for (const rounding round : {rounding::stochastic_a, rounding::stochastic_b, rounding::stochastic_c}) {
        for (const auto direction : {block_direction::along_rows, block_direction::along_columns}) {
            for (const layout& how : gpu_test::layouts) {
                matrix<float> y(32, 32, how);
                fill(y, 6, false);
                check_same<Format>(
                    y, {.element = {round, saturation::finite, 32}, .seed = 77, .direction = direction}, 2);
            }
        }
    }
}

TEST_CASE_TEMPLATE("quantised matrices have the CPU's bits, and so has what they stand for", Format,
                   mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp6_e2m3, mp::mxfp6_e3m2, mp::mxfp4, mp::mxint8,
                   mp::nvfp4) {
    SUBCASE("in every shape, layout and direction") {
        check_shapes<Format>();
    }
    SUBCASE("for numbers of all magnitudes and every rule") {
        check_values<Format>();
    }
    SUBCASE("with infinities and NaN") {
        check_nonfinite<Format>();
    }
    SUBCASE("in every projection") {
        check_projections<Format>();
    }
}

TEST_CASE("tensor scales that are given, also such as leave the range of the short cuts") {
    matrix<float> x(2, 256);
    fill(x, 8, true);
    for (const float scale : {1.0F, 0.3F, 0x1p-126F, 3e38F, 0x1p-75F, 0x1.8p-40F, 0x1p90F}) {
        for (const scale_rule rule : rules)
            check_same<mp::nvfp4>(x, {.rule = rule, .tensor_scale = scale}, 1);
    }
    matrix<float> zeros(1, 32);
    zeros.fill([](auto, auto) { return 0.0F; });
    check_same<mp::nvfp4>(zeros, {}, 1);
    matrix<float> tiny(1, 32);
    tiny.fill([](auto, auto) { return 1e-42F; });
    check_same<mp::nvfp4>(tiny, {}, 1);
}

TEST_CASE("values next to the midpoints between elements go the right way") {
    // Multiples of a quarter of the quantum, and their neighbours, times a tensor scale with many bits.
    for (const float scale : {0x1.555556p-3F, 0x1.fffffep0F, 0.5F}) {
        matrix<float> x(1, 3 * 16 * 8);
        x.fill([&](auto, auto c) {
            const auto i = static_cast<int>(c);
            if (i % 16 == 0) return 6.0F * scale * 448.0F;
            const float middle = static_cast<float>(i / 3 % 24) * 0.25F * scale * 448.0F;
            return i % 3 == 0 ? middle : std::nextafter(middle, i % 3 == 1 ? 1e30F : -1e30F);
        });
        check_same<mp::nvfp4>(x, {.tensor_scale = scale}, 1);
        check_same<mp::mxfp4>(x, {}, 1);
        check_same<mp::mxfp6_e2m3>(x, {}, 1);
    }
}

TEST_CASE("codes that no quantisation makes are dequantised as on the CPU") {
    const auto check = [](auto format, auto value) {
        using quantised_matrix = decltype(format);
        using number = decltype(value);
        quantised_matrix expected(4, 256);
        std::mt19937 random(9);
        for (std::byte& b : expected.bytes()) b = static_cast<std::byte>(random() & 0xFF);
        using scale = typename quantised_matrix::scale_type;
        for (auto& s : expected.scales()) s = scale::from_bits(static_cast<std::uint8_t>(random()));
        quantised<quantised_matrix> same(4, 256, block_direction::along_rows);
        std::copy(expected.bytes().begin(), expected.bytes().end(), same.span.elements.begin());
        std::copy(expected.scales().begin(), expected.scales().end(), same.span.scales.begin());
        if constexpr (quantised_matrix::has_tensor_scale) {
            expected.set_tensor_scale(0x1.234566p-3F);
            same.tensor_scale = 0x1.234566p-3F;
        }
        matrix<number> found(4, 256), wanted(4, 256);
        mp::dequantize(simulated{}, same.span, found.view);
        mp::dequantize(mp::cpu{}, expected, wanted.view);
        CHECK(gpu_test::same_bits(found, wanted));
    };
    check(mp::mxfp8_e4m3{}, 0.0F);
    check(mp::mxfp8_e5m2{}, 0.0F);
    check(mp::mxfp8_e5m2{}, half{});
    check(mp::mxfp6_e3m2{}, bfloat16{});
    check(mp::mxint8{}, 0.0F);
    check(mp::nvfp4{}, 0.0F);
    check(mp::nvfp4{}, half{});
    check(mp::nvfp4{}, bfloat16{});
}

TEST_CASE("aligned matrices move in full sectors") {
    const auto check = [](auto format, auto value) {
        using quantised_matrix = decltype(format);
        matrix<decltype(value)> x(4, 2048);
        x.randomize(1);
        quantised<quantised_matrix> q(4, 2048, block_direction::along_rows);
        mp::simt::access_statistics statistics;
        mp::quantize(simulated{.statistics = &statistics}, x.view, q.span,
                     {.tensor_scale = quantised_matrix::has_tensor_scale ? 0.01F : 0.0F});
        mp::dequantize(simulated{.statistics = &statistics}, q.span, x.view);
        for (const auto& cost : statistics.costs()) {
            // Elements and codes; of scales, a few bytes a warp, a sector is read by several warps.
            if (cost.ideal < 64) continue;
            CAPTURE(cost.place);
            CHECK(cost.transactions <= cost.ideal + cost.instructions);
        }
    };
    check(mp::mxfp8_e4m3{}, half{});
    check(mp::mxfp6_e2m3{}, half{});
    check(mp::mxfp4{}, 0.0F);
    check(mp::nvfp4{}, bfloat16{});
}

TEST_CASE("wrong arguments are refused, and empty matrices are quantised to nothing") {
    matrix<half> x(2, 64);
    x.randomize(1);
    quantised<mp::mxfp4> q(2, 64, block_direction::along_rows), other(2, 32, block_direction::along_rows);
    CHECK_THROWS_WITH_AS(mp::quantize(simulated{}, x.view, other.span),
                         "mp::quantize: to.columns is 32; it must equal from.columns, which is 64",
                         mp::argument_error);
    CHECK_THROWS_AS(mp::quantize(simulated{}, x.view, q.span, {.direction = block_direction::along_columns}),
                    mp::argument_error);
    CHECK_THROWS_AS(mp::quantize(simulated{}, x.view, q.span, {.tensor_scale = 1.0F}), mp::argument_error);
    auto cut = q.span;
    cut.elements = cut.elements.first(63);
    CHECK_THROWS_AS(mp::quantize(simulated{}, x.view, cut), mp::argument_error);
    CHECK_THROWS_AS(mp::dequantize(simulated{}, cut, x.view), mp::argument_error);
    quantised<mp::nvfp4> n(2, 64, block_direction::along_rows);
    auto without = n.span;
    without.tensor_scale = nullptr;
    CHECK_THROWS_AS(mp::quantize(simulated{}, x.view, without), mp::argument_error);
    CHECK_THROWS_AS(mp::quantize(simulated{}, x.view, n.span, {.tensor_scale = -1.0F}), mp::argument_error);
    const mp::matrix_view<half> empty{x.view.data, 0, 64, 64};
    quantised<mp::nvfp4> nothing(0, 64, block_direction::along_rows);
    mp::quantize(simulated{}, empty, nothing.span);
    CHECK(nothing.tensor_scale == 1.0F);
    mp::dequantize(simulated{}, nothing.span, empty);
}

}  // namespace
