// SPDX-License-Identifier: MIT
/// \file
/// The epilogue: from accumulators to the memory of C, also from those of the slices of a product whose k was divided.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tile_epilogue.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// alpha * product + beta * c as mp::gemm on the CPU forms it: with both terms, exact products in double
/// whose sum is rounded to double and then to float; c is not looked at when beta is 0.
template <class Output, class Epilogue>
MP_HOST_DEVICE MP_ALWAYS_INLINE float scale_product(const product_output<Output, Epilogue>& output,
                                                    float product, float c) {
    if (same_value(output.beta, 0.0F))
        return output.has_product ? float_multiply(output.alpha, product) : 0.0F;
    if (!output.has_product) return float_multiply(output.beta, c);
    return float_from_double(double_from_float(output.alpha) * double_from_float(product) +
                             double_from_float(output.beta) * double_from_float(c));
}

/// Output of the accumulators of a slice of k: a separate row-major matrix, number `slice` behind
/// `sums`. See split_sum_kernel.
[[nodiscard]] MP_HOST_DEVICE inline product_output<float, identity_epilogue> sums_of_slice(
    float* sums, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t slice) {
    return {sums + slice * rows * columns,
            columns,
            rows,
            columns,
            0,
            columns % 4 == 0,
            false,
            true,
            1.0F,
            0.0F,
            {}};
}

/// Neighbouring elements of a row of C that a thread ends together: 16 bytes, or 8 elements if they are
/// smaller.
template <class Output>
inline constexpr int output_chunk = sizeof(Output) >= 4 ? 4 : 8;

/// Ends a chunk of C: alpha and beta, the epilogue, one rounding.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Output, class Epilogue>
MP_HOST_DEVICE MP_KERNEL_INLINE void finish_chunk(Thread thread,
                                                  const product_output<Output, Epilogue>& output,
                                                  const float (&product)[output_chunk<Output>],
                                                  std::ptrdiff_t row, std::ptrdiff_t column,
                                                  tile_state<Epilogue>& state) {
    constexpr int count = output_chunk<Output>;
    using output_values = chunk<Output, count>;
    if (row >= output.rows || column >= output.columns) return;
    Output* const c = output.data + (row * output.stride + column);
    const bool whole = output.aligned && column + count <= output.columns;
    output_values values{};
    if (!same_value(output.beta, 0.0F)) {
        if (whole) {
            values = thread.load(reinterpret_cast<const output_values*>(c));
        } else {
            for (int i = 0; i < count; ++i) {
                if (column + i < output.columns)
                    values.values[i] = thread.load(static_cast<const Output*>(c) + i);
            }
        }
    }
    if constexpr (is_pointwise<Epilogue>) {
        MP_UNROLL
        for (int i = 0; i < count; ++i) {
            if (column + i < output.columns) {
                const float value = scale_product(output, product[i], static_cast<float>(values.values[i]));
                const std::ptrdiff_t epilogue_row = output.swapped ? column + i : row;
                const std::ptrdiff_t epilogue_column = output.swapped ? row : column + i;
                values.values[i] = static_cast<Output>(output.epilogue(value, epilogue_row, epilogue_column));
            }
        }
    } else {
        chunk<float, count> ended;
        MP_UNROLL
        for (int i = 0; i < count; ++i) {
            ended.values[i] = scale_product(output, product[i], static_cast<float>(values.values[i]));
        }
        tile_epilogue<Epilogue>::apply(
            thread, output.epilogue, state, ended,
            chunk_in_c::of(output.swapped, row, column, left_of(output.columns - column, count)));
        values = round_results<Output>(ended);
    }
    if (whole) {
        thread.store(reinterpret_cast<output_values*>(c), values);
    } else {
        for (int i = 0; i < count; ++i) {
            if (column + i < output.columns) thread.store(c + i, values.values[i]);
        }
    }
}

/// scale_product() of a chunk, of an output that has a product.
///
/// Where alpha and beta are 1, the sum of two floats is rounded once. The way through double has the same bits:
/// double has more than twice as many places as float and two more, so that rounding to it first does no harm
/// (S. A. Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30, 1995).
template <class Output, class Epilogue, int Count>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<float, Count> scale_products(
    const product_output<Output, Epilogue>& output, const float (&product)[std::size_t{Count}],
    const chunk<Output, Count>& c) {
    chunk<float, Count> scaled;
    if (same_value(output.beta, 0.0F)) {
        MP_UNROLL
        for (int i = 0; i < Count; ++i) scaled.values[i] = float_multiply(output.alpha, product[i]);
    } else if (same_value(output.beta, 1.0F) && same_value(output.alpha, 1.0F)) {
        MP_UNROLL
        for (int i = 0; i < Count; ++i) {
            scaled.values[i] = float_add(product[i], static_cast<float>(c.values[i]));
        }
    } else {
        MP_UNROLL
        for (int i = 0; i < Count; ++i) {
            scaled.values[i] = scale_product(output, product[i], static_cast<float>(c.values[i]));
        }
    }
    return scaled;
}

/// What is in C where a chunk of which all is inside of an aligned C will be, if beta asks for it.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Output, class Epilogue>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Output, output_chunk<Output>> load_inner_chunk(
    Thread thread, const product_output<Output, Epilogue>& output, std::ptrdiff_t row,
    std::ptrdiff_t column) {
    if (same_value(output.beta, 0.0F)) return {};
    const Output* const c = output.data + (row * output.stride + column);
    return thread.load(chunk_at<output_chunk<Output>>(c));
}

/// As finish_chunk() for such a chunk, of an output that has a product.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Output, class Epilogue>
MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_inner_chunk(Thread thread,
                                                        const product_output<Output, Epilogue>& output,
                                                        const float (&product)[output_chunk<Output>],
                                                        const chunk<Output, output_chunk<Output>>& c,
                                                        std::ptrdiff_t row, std::ptrdiff_t column,
                                                        tile_state<Epilogue>& state) {
    constexpr int count = output_chunk<Output>;
    chunk<float, count> ended = scale_products(output, product, c);
    tile_epilogue<Epilogue>::apply(thread, output.epilogue, state, ended,
                                   chunk_in_c::of(output.swapped, row, column, count));
    thread.store(chunk_at<count>(output.data + (row * output.stride + column)), round_results<Output>(ended));
}

/// Neighbouring sums that a warp has in shared memory. Where there are eight of them, of eight lanes that are
/// served together four begin with the second half: then their words fill the banks once.
MP_ANY_EXECUTION_SPACE
template <std::size_t Count, class Thread>
MP_HOST_DEVICE MP_KERNEL_INLINE void load_chunk_of_sums(Thread thread, simt::shared_pointer<float> from,
                                                        float (&sum)[Count]) {
    using quarter = chunk<float, 4>;
    const int first = Count == 8 ? thread.lane() / 4 % 2 * 4 : 0;
    const quarter one = thread.load((from + first).template as<quarter>());
    for (int p = 0; p < 4; ++p) sum[p] = one.values[p];
    if constexpr (Count == 8) {
        const quarter other = thread.load((from + (4 - first)).template as<quarter>());
        for (int p = 0; p < 4; ++p) {
            sum[p] = first == 0 ? one.values[p] : other.values[p];
            sum[p + 4] = first == 0 ? other.values[p] : one.values[p];
        }
    }
}

/// Adds the slices of the sums, in their order, and ends the elements of C. Slice s of matrix b of a batch is
/// a matrix of c.rows x c.columns floats, number b * splits + s behind `sums`. The float sums are rounded to
/// nearest even, from the first slice on; so the result depends on the number of slices, but not on the
/// schedule.
template <class Output, class Epilogue>
struct split_sum_kernel {
    static constexpr int threads = 256;
    static constexpr int count = output_chunk<Output>;

    product_output<Output, Epilogue> c;
    const float* sums;
    std::ptrdiff_t splits;
    std::ptrdiff_t batch;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t chunks_across() const { return tile_count(c.columns, count); }
    [[nodiscard]] std::ptrdiff_t blocks() const {
        return tile_count(chunks_across() * c.rows * batch, threads);
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        tile_state<Epilogue> state;
        const std::ptrdiff_t number = thread.block() * threads + thread.index();
        if (number / chunks_across() < c.rows * batch) finish_number(thread, number, state);
        tile_epilogue<Epilogue>::finish(thread, c.epilogue, state);
    }

private:
    /// Ends the chunk of this number.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_number(Thread thread, std::ptrdiff_t number,
                                                       tile_state<Epilogue>& state) const {
        const std::ptrdiff_t output_row = number / chunks_across();
        const std::ptrdiff_t matrix = output_row / c.rows;
        const std::ptrdiff_t row = output_row % c.rows;
        const std::ptrdiff_t column = number % chunks_across() * count;
        float total[std::size_t{count}] = {};
        for (std::ptrdiff_t split = 0; split < splits; ++split) {
            const float* const from =
                sums + (((matrix * splits + split) * c.rows + row) * c.columns + column);
            for (int i = 0; i < count; ++i) {
                if (column + i >= c.columns) continue;
                const float slice = thread.load(from + i);
                total[i] = split == 0 ? slice : float_add(total[i], slice);
            }
        }
        product_output<Output, Epilogue> output = c;
        output.data += matrix * c.batch_stride;
        finish_chunk(thread, output, total, row, column, state);
    }
};

}}  // namespace mp::detail
