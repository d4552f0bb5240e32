// SPDX-License-Identifier: MIT
/// \file
/// Packing: blocks of a matrix of any number format, layout and alignment become panels of floats in the
/// order in which the micro-kernel reads them.
#pragma once

#include <mp/convert/bulk.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace mp::detail {

/// to[k * to_stride + i] = from[i * from_stride + k] for i in [0, 4), k in [0, depth).
inline void transpose_four_lines(const float* from, std::ptrdiff_t from_stride, std::ptrdiff_t depth,
                                 float* to, std::ptrdiff_t to_stride) {
    std::ptrdiff_t k = 0;
#if defined(__GNUC__) && !defined(__CUDACC__)
#if __has_builtin(__builtin_shufflevector)
    typedef float quad __attribute__((vector_size(16)));  // NOLINT(modernize-use-using)
    for (; k + 4 <= depth; k += 4) {
        quad line[4];
        for (int i = 0; i < 4; ++i) std::memcpy(&line[i], from + i * from_stride + k, sizeof(quad));
        const quad low01 = __builtin_shufflevector(line[0], line[1], 0, 4, 1, 5);
        const quad low23 = __builtin_shufflevector(line[2], line[3], 0, 4, 1, 5);
        const quad high01 = __builtin_shufflevector(line[0], line[1], 2, 6, 3, 7);
        const quad high23 = __builtin_shufflevector(line[2], line[3], 2, 6, 3, 7);
        const quad step[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                              __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                              __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                              __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
        for (int j = 0; j < 4; ++j) std::memcpy(to + (k + j) * to_stride, &step[j], sizeof(quad));
    }
#endif
#endif
    for (; k < depth; ++k) {
        for (std::ptrdiff_t i = 0; i < 4; ++i) to[k * to_stride + i] = from[i * from_stride + k];
    }
}

/// Packs where neighbouring lines are neighbours in memory: every step along the depth is a run of floats.
template <int Width, class Value>
void pack_runs(const Value* from, std::ptrdiff_t depth_stride, std::ptrdiff_t lines, std::ptrdiff_t depth,
               float* panels) {
    // As many panels at a time as make a run of about 256 elements: long enough to read memory at full speed
    // and to convert in bulk, short enough for the panels written side by side to stay in the cache.
    constexpr std::ptrdiff_t run = std::ptrdiff_t{Width} * std::max(1, 256 / Width);
    float converted[run];
    for (std::ptrdiff_t first = 0; first < lines; first += run) {
        const std::ptrdiff_t count = std::min(run, lines - first);
        for (std::ptrdiff_t k = 0; k < depth; ++k) {
            const Value* source = from + k * depth_stride + first;
            const float* values = converted;
            if constexpr (std::is_same_v<Value, float>) {
                values = source;
            } else {
                widen_to_float(source, converted, static_cast<std::size_t>(count));
            }
            float* to = panels + first * depth + k * Width;
            std::ptrdiff_t done = 0;
            for (; done + Width <= count; done += Width) {
                std::memcpy(to + done * depth, values + done, Width * sizeof(float));
            }
            if (done < count) {
                for (std::ptrdiff_t i = 0; i < Width; ++i) {
                    to[done * depth + i] = done + i < count ? values[done + i] : 0.0F;
                }
            }
        }
    }
}

/// Packs where neighbours along the depth are neighbours in memory: lines are transposed into the panels.
template <int Width, class Value>
void pack_transposed(const Value* from, std::ptrdiff_t line_stride, std::ptrdiff_t lines,
                     std::ptrdiff_t depth, float* panels) {
    constexpr std::ptrdiff_t step = 64;  // the part of the depth that is converted at a time
    float converted[std::is_same_v<Value, float> ? 1 : Width * step];
    for (std::ptrdiff_t first = 0; first < lines; first += Width) {
        const std::ptrdiff_t count = std::min<std::ptrdiff_t>(Width, lines - first);
        for (std::ptrdiff_t k = 0; k < depth; k += step) {
            const std::ptrdiff_t part = std::min(step, depth - k);
            const Value* source = from + first * line_stride + k;
            const float* values = converted;
            std::ptrdiff_t stride = step;
            if constexpr (std::is_same_v<Value, float>) {
                values = source;
                stride = line_stride;
            } else {
                for (std::ptrdiff_t i = 0; i < count; ++i) {
                    widen_to_float(source + i * line_stride, converted + i * step,
                                   static_cast<std::size_t>(part));
                }
            }
            float* to = panels + first * depth + k * Width;
            std::ptrdiff_t i = 0;
            for (; i + 4 <= count; i += 4)
                transpose_four_lines(values + i * stride, stride, part, to + i, Width);
            if (i < count && count >= 4) {  // the last four lines, some of them for the second time
                transpose_four_lines(values + (count - 4) * stride, stride, part, to + count - 4, Width);
                i = count;
            }
            for (; i < Width; ++i) {
                for (std::ptrdiff_t j = 0; j < part; ++j)
                    to[j * Width + i] = i < count ? values[i * stride + j] : 0.0F;
            }
        }
    }
}

/// One factor of a product as the packing sees it: lines (the rows of A, the columns of B) along the depth
/// (the dimension that is summed over). One of the two strides is 1.
struct panel_source {
    const void* data;
    std::ptrdiff_t line_stride;
    std::ptrdiff_t depth_stride;
    /// Packs the block of `lines` x `depth` elements at (first_line, first_depth) into panels of one width:
    /// panel p holds lines p * width ... as [depth][width] floats, and the panels follow each other. Lines
    /// missing in the last panel are filled with zeros.
    void (*pack)(const panel_source& source, std::ptrdiff_t first_line, std::ptrdiff_t lines,
                 std::ptrdiff_t first_depth, std::ptrdiff_t depth, float* panels);
};

template <int Width, class Value>
void pack_panels(const panel_source& source, std::ptrdiff_t first_line, std::ptrdiff_t lines,
                 std::ptrdiff_t first_depth, std::ptrdiff_t depth, float* panels) {
    const Value* from = static_cast<const Value*>(source.data) + first_line * source.line_stride +
                        first_depth * source.depth_stride;
    if (source.line_stride == 1) {
        pack_runs<Width>(from, source.depth_stride, lines, depth, panels);
    } else {
        pack_transposed<Width>(from, source.line_stride, lines, depth, panels);
    }
}

template <int Width, class Value>
panel_source make_panel_source(const Value* data, std::ptrdiff_t line_stride, std::ptrdiff_t depth_stride) {
    return {data, line_stride, depth_stride, &pack_panels<Width, Value>};
}

}  // namespace mp::detail
