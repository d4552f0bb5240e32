// SPDX-License-Identifier: MIT
// Quantisation of a float matrix of 1024 x 1024 to block-scaled formats and back, on one core, with blocks
// along rows and along columns. `loop` is what a user might write with the library's numbers: the largest
// magnitude of a block, a scale, and round_to of each quotient; it stores each element in a byte of its own,
// where mp packs. `memcpy` copies the float matrix.
#include <mp/block_scaled.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cells.hpp"

namespace {

constexpr std::ptrdiff_t size = 1024;
constexpr auto element_count = static_cast<std::size_t>(size * size);

/// Normally distributed values, as weights and gradients have them.
const std::vector<float>& matrix() {
    static const std::vector<float> values = [] {
        std::mt19937 engine(1);
        std::normal_distribution<float> distribution;
        std::vector<float> result(element_count);
        for (float& x : result) x = distribution(engine);
        return result;
    }();
    return values;
}

constexpr mp::projection saturating{.saturate = mp::saturation::finite};

template <class Element>
Element rounded(float x) {
    if constexpr (std::is_same_v<Element, mp::mx_int8>) {
        return Element(x, saturating);
    } else {
        return mp::round_to<Element>(x, saturating);
    }
}

/// The largest element of a format, and the exponent of its leading bit.
template <class Element>
float largest_element() {
    return static_cast<float>(rounded<Element>(1e30f));
}

/// A quantised matrix of the loop: blocks one after another, an element a byte.
template <class BlockScaled>
struct simple_quantized {
    std::vector<typename BlockScaled::element_type> elements{element_count};
    std::vector<typename BlockScaled::scale_type> scales{element_count / BlockScaled::block_size};
    float tensor_scale = 1;
};

/// The position of element i of a line in a matrix that lies row by row.
template <mp::block_direction Direction>
std::size_t place(std::ptrdiff_t line, std::ptrdiff_t i) {
    return static_cast<std::size_t>(Direction == mp::block_direction::along_rows ? line * size + i
                                                                                 : i * size + line);
}

template <class BlockScaled, mp::block_direction Direction>
void quantize_in_loop(const std::vector<float>& from, simple_quantized<BlockScaled>& to) {
    using element = typename BlockScaled::element_type;
    using scale = typename BlockScaled::scale_type;
    constexpr std::ptrdiff_t block = BlockScaled::block_size;
    const float largest = largest_element<element>();
    const int largest_exponent = std::ilogb(largest);
    if constexpr (BlockScaled::has_tensor_scale) {
        float amax = 0;
        for (const float x : from) amax = std::max(amax, std::fabs(x));
        to.tensor_scale = amax / (largest * largest_element<scale>());
    }
    std::size_t next = 0;
    std::size_t next_scale = 0;
    for (std::ptrdiff_t line = 0; line < size; ++line) {
        for (std::ptrdiff_t begin = 0; begin < size; begin += block) {
            float amax = 0;
            for (std::ptrdiff_t i = begin; i < begin + block; ++i) {
                amax = std::max(amax, std::fabs(from[place<Direction>(line, i)]));
            }
            scale s;
            if constexpr (BlockScaled::has_tensor_scale) {
                s = mp::round_to<scale>(amax / (largest * to.tensor_scale), saturating);
            } else {
                s = mp::round_to<scale>(std::ldexp(1.0f, std::ilogb(amax) - largest_exponent));
            }
            to.scales[next_scale++] = s;
            const float divisor = static_cast<float>(s) * to.tensor_scale;
            for (std::ptrdiff_t i = begin; i < begin + block; ++i) {
                to.elements[next++] = rounded<element>(from[place<Direction>(line, i)] / divisor);
            }
        }
    }
}

template <class BlockScaled, mp::block_direction Direction>
void dequantize_in_loop(const simple_quantized<BlockScaled>& from, std::vector<float>& to) {
    constexpr std::ptrdiff_t block = BlockScaled::block_size;
    std::size_t next = 0;
    std::size_t next_scale = 0;
    for (std::ptrdiff_t line = 0; line < size; ++line) {
        for (std::ptrdiff_t begin = 0; begin < size; begin += block) {
            const float factor = static_cast<float>(from.scales[next_scale++]) * from.tensor_scale;
            for (std::ptrdiff_t i = begin; i < begin + block; ++i) {
                to[place<Direction>(line, i)] = static_cast<float>(from.elements[next++]) * factor;
            }
        }
    }
}

template <class BlockScaled, mp::block_direction Direction>
BlockScaled quantized() {
    return mp::quantize<BlockScaled>(mp::cpu{}, mp::row_major(matrix().data(), size, size),
                                     {.direction = Direction});
}

template <class BlockScaled, mp::block_direction Direction>
void add_format(const std::string& row, const std::string& direction) {
    const std::string to_blocks = "float to blocks along " + direction;
    const std::string to_float = "blocks along " + direction + " to float";

    // The contenders agree, except for what is rounded twice: the loop's quotients, and its scales times the
    // tensor scale, whose last bits are no difference in elements.
    simple_quantized<BlockScaled> of_loop;
    quantize_in_loop<BlockScaled, Direction>(matrix(), of_loop);
    std::vector<float> values(element_count);
    std::vector<float> values_of_loop(element_count);
    mp::dequantize(mp::cpu{}, quantized<BlockScaled, Direction>(), mp::row_major(values.data(), size, size));
    dequantize_in_loop<BlockScaled, Direction>(of_loop, values_of_loop);
    std::size_t different = 0;
    for (std::size_t i = 0; i < element_count; ++i) {
        const float difference = std::fabs(values[i] - values_of_loop[i]);
        different += difference > 1e-5f * std::fabs(values[i]) ? 1 : 0;
    }
    if (different != 0) {
        bench::add_note(to_blocks,
                        row + ": the loop, which rounds quotients in float first, has other elements for " +
                            std::to_string(different) + " of " + std::to_string(element_count) + " values.");
    }

    bench::add(to_blocks, row, "mp", [](benchmark::State& state) {
        for (auto _ : state) {
            BlockScaled result = quantized<BlockScaled, Direction>();
            benchmark::DoNotOptimize(result.bytes().data());
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, element_count);
    });
    bench::add(to_blocks, row, "loop", [](benchmark::State& state) {
        simple_quantized<BlockScaled> result;
        for (auto _ : state) {
            quantize_in_loop<BlockScaled, Direction>(matrix(), result);
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, element_count);
    });
    bench::add(to_float, row, "mp", [](benchmark::State& state) {
        const BlockScaled from = quantized<BlockScaled, Direction>();
        std::vector<float> to(element_count);
        for (auto _ : state) {
            mp::dequantize(mp::cpu{}, from, mp::row_major(to.data(), size, size));
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, element_count);
    });
    bench::add(to_float, row, "loop", [](benchmark::State& state) {
        simple_quantized<BlockScaled> from;
        quantize_in_loop<BlockScaled, Direction>(matrix(), from);
        std::vector<float> to(element_count);
        for (auto _ : state) {
            dequantize_in_loop<BlockScaled, Direction>(from, to);
            benchmark::ClobberMemory();
        }
        bench::count_elements(state, element_count);
    });
    for (const std::string& table : {to_blocks, to_float}) {
        const auto copy = [](benchmark::State& state) {
            std::vector<float> to(element_count);
            for (auto _ : state) {
                std::memcpy(to.data(), matrix().data(), element_count * sizeof(float));
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, element_count);
        };
        bench::add(table, row, "memcpy", copy, bench::role::reference);
    }
}

template <mp::block_direction Direction>
void add_direction(const std::string& direction) {
    add_format<mp::mxfp8_e4m3, Direction>("mxfp8_e4m3", direction);
    add_format<mp::mxfp8_e5m2, Direction>("mxfp8_e5m2", direction);
    add_format<mp::mxfp6_e2m3, Direction>("mxfp6_e2m3", direction);
    add_format<mp::mxfp6_e3m2, Direction>("mxfp6_e3m2", direction);
    add_format<mp::mxfp4, Direction>("mxfp4", direction);
    add_format<mp::mxint8, Direction>("mxint8", direction);
    add_format<mp::nvfp4, Direction>("nvfp4", direction);
}

}  // namespace

void bench::register_benchmarks() {
    add_direction<mp::block_direction::along_rows>("rows");
    add_direction<mp::block_direction::along_columns>("columns");
}
