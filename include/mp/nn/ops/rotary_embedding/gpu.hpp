// SPDX-License-Identifier: MIT
/// \file
/// Rotary position embedding on a GPU: first the sines and cosines of all angles, in the executor's
/// workspace, then the turns.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/rotary_embedding.hpp>
#include <mp/nn/ops/rotary_embedding/frequencies.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/rules/trigonometric.hpp>
#include <mp/workspace.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mp::ops { inline namespace MP_ISA_NAMESPACE {

/// Bytes of the executor's workspace that rotary_embedding() and its gradient need on a GPU for a matrix of
/// this shape, casts not included: a float for each position and rotated element of a head.
[[nodiscard]] inline std::size_t rotary_embedding_workspace(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                                            const rotary_options& options = {}) {
    const detail::rotary_shape shape(rows, columns, options);
    const std::ptrdiff_t floats = shape.tokens * detail::rotated_elements(shape.head_dim, options);
    return workspace::aligned_size(static_cast<std::size_t>(floats) * sizeof(float)) + workspace::alignment;
}

}}  // namespace mp::ops

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Cosines and sines as rotary_table has them, for up to most_angles of the angles of each position.
struct rotary_table_kernel {
    static constexpr int threads = row_threads;
    static constexpr int most_angles = 128;
    double_pair frequencies[most_angles];
    float* cosines;  ///< of the first angle of the first position
    std::ptrdiff_t first_position;
    std::ptrdiff_t positions;
    std::ptrdiff_t angles;
    std::ptrdiff_t all_angles;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t i = thread.block() * threads + thread.index();
        for (; i < positions * angles; i += step) {
            const std::ptrdiff_t position = i / angles;
            const std::ptrdiff_t angle = i - position * angles;
            const sine_and_cosine turned =
                sine_and_cosine_of(angle_of(first_position + position, frequencies[angle]));
            float* const to = cosines + (position * 2 * all_angles + angle);
            thread.store(to, float_from_double(turned.cosine));
            thread.store(to + all_angles, float_from_double(turned.sine));
        }
    }
};

/// Turns the heads of rows. A thread has a chunk of the points of a head, or of the elements behind them.
template <class X, class Y>
struct rotary_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Y>;
    row_matrix<const X> x;
    row_matrix<Y> y;
    const float* cosines;
    double direction;
    std::ptrdiff_t rows;
    std::ptrdiff_t heads_in_row;
    std::ptrdiff_t tokens;
    std::ptrdiff_t head_dim;
    std::ptrdiff_t rotated;
    bool interleaved;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const std::ptrdiff_t turning = (rotated / 2 + width - 1) / width;
        const std::ptrdiff_t across = turning + (head_dim - rotated + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        std::ptrdiff_t i = thread.block() * threads + thread.index();
        for (; i < rows * heads_in_row * across; i += step) {
            const std::ptrdiff_t head = i / across;
            const std::ptrdiff_t row = head / heads_in_row;
            const std::ptrdiff_t first = (head - row * heads_in_row) * head_dim;
            const std::ptrdiff_t part = i - head * across;
            if (part < turning) {
                turn(thread, row, first, part * width);
            } else {
                const std::ptrdiff_t column = first + rotated + (part - turning) * width;
                const row_floats<width> values =
                    load_row_floats<width>(thread, x, row, column, first + head_dim);
                store_row_floats(thread, y, row, column, first + head_dim, values);
            }
        }
    }

private:
    /// The points from number `point` on of the head that begins in column `first`.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void turn(Thread thread, std::ptrdiff_t row, std::ptrdiff_t first,
                                              std::ptrdiff_t point) const {
        const std::ptrdiff_t half = rotated / 2;
        const std::ptrdiff_t end = first + rotated;
        const std::ptrdiff_t left = first + (interleaved ? 2 * point : point);
        const std::ptrdiff_t right = left + (interleaved ? std::ptrdiff_t{width} : half);
        const std::ptrdiff_t left_end = interleaved ? end : first + half;
        // Both are loaded before one is stored, as y may be x.
        row_floats<width> a = load_row_floats<width>(thread, x, row, left, left_end);
        row_floats<width> b = load_row_floats<width>(thread, x, row, right, end);
        const float* const angles = cosines + (row % tokens * rotated + point);
        if (interleaved) {
            MP_UNROLL
            for (int k = 0; k < width; k += 2) {
                turn_point(thread, angles, point, k / 2, a.values[k], a.values[k + 1]);
            }
            MP_UNROLL
            for (int k = 0; k < width; k += 2) {
                turn_point(thread, angles, point, (width + k) / 2, b.values[k], b.values[k + 1]);
            }
        } else {
            MP_UNROLL
            for (int k = 0; k < width; ++k) turn_point(thread, angles, point, k, a.values[k], b.values[k]);
        }
        store_row_floats(thread, y, row, left, left_end, a);
        store_row_floats(thread, y, row, right, end, b);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void turn_point(Thread thread, const float* angles, std::ptrdiff_t point,
                                                    int k, float& first, float& second) const {
        using number = rounded_doubles<1>;
        const std::ptrdiff_t half = rotated / 2;
        if (point + k >= half) return;
        const number cosine = double_from_float(thread.load(angles + k));
        const number sine = number(double_from_float(thread.load(angles + half + k))) * number(direction);
        const auto turned = rotated_point(
            plane_point<number>{double_from_float(first), double_from_float(second)}, cosine, sine);
        first = float_from_double(turned.x.value());
        second = float_from_double(turned.y.value());
    }
};

/// rotate_heads() of the CPU, enqueued.
template <gpu_executor Executor, class X, class Y>
void rotate_heads(rotary_walk, const Executor& exec, double direction, matrix_view<const X> x,
                  matrix_view<Y> y, const rotary_call<float>& call) {
    constexpr std::string_view function = "mp::ops::rotary_embedding";
    constexpr int width = row_chunk<X, Y>;
    if (x.rows == 0 || x.columns == 0) return;
    const rotary_shape shape(x.rows, x.columns, call.options);
    const std::ptrdiff_t rotated = rotated_elements(shape.head_dim, call.options);
    const std::ptrdiff_t half = rotated / 2;
    const workspace::frame frame(workspace_of(exec));
    auto* const cosines =
        take_workspace<float>(function, exec, static_cast<std::size_t>(shape.tokens * rotated));
    const std::vector<double_pair> frequencies = rotary_frequencies(call.options.base, half);
    for (std::ptrdiff_t first = 0; first < half; first += rotary_table_kernel::most_angles) {
        rotary_table_kernel kernel{};
        kernel.cosines = cosines + first;
        kernel.first_position = call.options.first_position;
        kernel.positions = shape.tokens;
        kernel.angles = (std::min)(half - first, std::ptrdiff_t{rotary_table_kernel::most_angles});
        kernel.all_angles = half;
        std::copy_n(frequencies.data() + first, kernel.angles, kernel.frequencies);
        launch(function, exec, walk_launch(shape.tokens * kernel.angles), kernel);
    }
    row_matrix<const X> from = rows_of<width>(x);
    row_matrix<Y> to = rows_of<width>(y);
    // Heads and their halves begin at chunks, too.
    const bool fits = shape.head_dim % width == 0 && half % width == 0;
    from.wide = from.wide && fits;
    to.wide = to.wide && fits;
    const std::ptrdiff_t chunks = (half + width - 1) / width + (shape.head_dim - rotated + width - 1) / width;
    launch(function, exec, walk_launch(x.rows * shape.heads_in_row * chunks),
           rotary_kernel<X, Y>{from, to, cosines, direction, x.rows, shape.heads_in_row, shape.tokens,
                               shape.head_dim, rotated,
                               call.options.pairing == ops::rotary_pairing::interleaved});
}

}}  // namespace mp::detail
