// SPDX-License-Identifier: MIT
/// \file
/// Matrices whose blocks have NaN, infinities, zeros, subnormal and largest numbers in every place, and all
/// options that say how these are quantised.
#pragma once

#include <mp/block_scaled.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "oracle/random.hpp"

namespace block_specials {

struct values {
    std::ptrdiff_t rows = 0;
    std::ptrdiff_t columns = 0;
    std::vector<float> numbers;
};

enum class range { all, without_large, nothing_finite };

/// Rows of two whole blocks, the second of them special, and of a shorter special one. A row for each kind of
/// block and each place of the special value in it.
inline values make(std::ptrdiff_t block, range which) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    constexpr float largest = std::numeric_limits<float>::max();
    constexpr float tiny = std::numeric_limits<float>::denorm_min();
    const std::ptrdiff_t tail = block / 2 + 1;
    oracle::random_bits random(3);
    values result;
    result.columns = 2 * block + tail;
    const auto ordinary = [&](std::ptrdiff_t count) {
        std::vector<float> x;
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            const auto significand = static_cast<float>(random.below(1U << 24)) - 0x1p23f;
            x.push_back(
                random.below(8) == 0 ? 0 : std::ldexp(significand, -20 - static_cast<int>(random.below(9))));
        }
        return x;
    };
    const auto special = [&](int kind, std::ptrdiff_t count, std::ptrdiff_t at) {
        std::vector<float> x = ordinary(count);
        const auto put = [&](std::ptrdiff_t i, float value) {
            x[static_cast<std::size_t>(i % count)] = value;
        };
        const auto fill = [&](float value) { x.assign(x.size(), value); };
        switch (kind) {
            case 0:
                put(at, nan);
                break;
            case 1:
                put(at, infinity);
                break;
            case 2:
                put(at, -infinity);
                break;
            case 3:
                fill(0), put(at, -0.0f);
                break;
            case 4:
                fill(0), put(at, infinity);
                break;
            case 5:
                fill(-0.0f), put(at, -nan);
                break;
            case 6:
                for (float& value : x) value = std::ldexp(value, -140);
                put(at, -0x1.fffffcp-127f);
                break;
            case 7:
                fill(0), put(at, tiny);
                break;
            case 8:
                put(at, nan), put(at + 1, infinity), put(at + 2, -infinity), put(at + 3, -nan);
                break;
            case 9:
                fill(nan);
                break;
            case 10:
                fill(-infinity);
                break;
            case 11:
                put(at, largest);
                break;
            case 12:
                fill(-largest), put(at, tiny);
                break;
            default:
                put(at, -largest), put(at + 1, tiny), put(at + 2, infinity);
                break;
        }
        return x;
    };
    constexpr int first_large = 11;
    constexpr int kinds = 14;
    for (int kind = 0; kind < (which == range::without_large ? first_large : kinds); ++kind) {
        if (which == range::nothing_finite && kind != 9 && kind != 10) continue;
        for (const double place : {0.0, 0.5, 1.0}) {
            const auto at = [&](std::ptrdiff_t n) {
                return static_cast<std::ptrdiff_t>(place * static_cast<double>(n - 1));
            };
            const auto first = which == range::nothing_finite ? special(kind, block, 0) : ordinary(block);
            const auto second = special(kind, block, at(block)), third = special(kind, tail, at(tail));
            for (const auto* part : {&first, &second, &third}) {
                result.numbers.insert(result.numbers.end(), part->begin(), part->end());
            }
            ++result.rows;
        }
    }
    return result;
}

/// Calls f(options) for every rule and smallest scale that a format has, every handling of what is not finite and
/// every projection that rounds to nearest, in both directions, and for tiles.
template <class Format, class Function>
void for_each_option(Function f) {
    using enum mp::scale_rule;
    using enum mp::nonfinite_handling;
    std::vector<mp::scale_rule> rules = {standard, floor, ceil, even, nearest};
    std::vector<mp::block_scale_floor> floors = {mp::block_scale_floor::smallest};
    if (Format::has_tensor_scale) {
        floors.insert(floors.end(), {mp::block_scale_floor::normal, mp::block_scale_floor::none});
    } else {
        rules.insert(rules.end(), {torchao_rceil, torchao_ceil});
    }
    if (Format::has_tensor_scale && Format::element_width == 4) {
        rules.insert(rules.end(), {four_over_six_mse, four_over_six_mae});
    }
    constexpr bool has_tiles = Format::block_size == 16 || Format::block_size == 32;
    for (const mp::scale_rule rule : rules) {
        for (const mp::block_scale_floor scale_floor : floors) {
            for (const auto nonfinite : {propagate, nan_scale, by_element}) {
                mp::quantize_options options{
                    .rule = rule, .nonfinite = nonfinite, .scale_floor = scale_floor};
                f(options);
                options.square_tiles = has_tiles;
                if (has_tiles) f(options);
                if (scale_floor != floors.front()) continue;
                options.direction = mp::block_direction::along_columns;
                f(options);
                options.square_tiles = false;
                options.element.without_nan = mp::nan_substitute::zero;
                f(options);
                options.direction = mp::block_direction::along_rows;
                for (const auto saturate : {mp::saturation::none, mp::saturation::propagate}) {
                    options.element = {mp::rounding::nearest_even, saturate};
                    f(options);
                }
            }
        }
    }
}

}  // namespace block_specials
