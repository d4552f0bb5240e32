// SPDX-License-Identifier: MIT
/// \file
/// softmax and its logarithm over the rows of a matrix on a GPU, forward and backward; and the largest element of a row with
/// the sum of its exponentials in one pass, which the cross entropy begins with as well.
#pragma once

#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/executor.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/nn/ops/softmax.hpp>
#include <mp/numbers/rules/float_float.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// x - reference, and what rounding it lost. Far below, where the exponential is nothing, nothing is lost.
MP_HOST_DEVICE MP_ALWAYS_INLINE float_float exact_distance(float x, float reference) {
    const float_float distance = exact_sum(x, -reference);
    return {distance.high, distance.high > -110.0F ? distance.low : 0.0F};
}

/// What is known of a row.
struct softmax_sum {
    float largest;    ///< its largest element
    float_float sum;  ///< sum of exp(element - largest), at least 1
    bool defined;     ///< whether it has a finite largest element, and no NaN

    /// The sum without the largest element, as good as the sum is.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE float others() const {
        return float_add(float_subtract(sum.high, 1.0F), sum.low);
    }
};

/// The largest element, and whether there is one that makes the row undefined.
struct largest_element {
    float value;
    std::uint32_t bad;
};
struct larger_element {
    MP_HOST_DEVICE largest_element operator()(largest_element a, largest_element b) const {
        return {a.value < b.value ? b.value : a.value, a.bad | b.bad};
    }
};

/// All threads of a group call it for the same row.
///
/// Each thread sums exp(element - reference), where the reference follows the largest element that it has
/// seen at a distance of at most 8: sums are scaled when that distance would be passed, so hardly ever, and
/// what the rounding of a scaling does is scaled down by the next one. So the relative error of the sum is a
/// few 2^-24: one or two for the exponentials, three for the sum of a chunk as a tree, and two for each of
/// the one or two scalings that count. With Exact the distances from the reference are exact; without,
/// rounding them adds 2^-24 times their mean, weighted by the exponentials, which is the logarithm of the
/// number of columns at most.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, bool Exact, class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE softmax_sum sum_of_exponentials(Thread thread, const row_matrix<Value>& x,
                                                             std::ptrdiff_t row, std::ptrdiff_t columns) {
    constexpr std::uint32_t infinity_bits = 0x7F80'0000U;
    constexpr std::uint32_t sign_bit = 0x8000'0000U;
    constexpr float farthest = 8.0F;
    const float minus_infinity = bit_cast<float>(infinity_bits | sign_bit);
    largest_element mine{minus_infinity, 0};
    float reference = minus_infinity;
    float_float sum{};
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        const row_floats<Width> values = load_row_floats<Width>(thread, x, row, c, columns, minus_infinity);
        float largest = minus_infinity;
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            const float value = values.values[i];
            // NaN of either sign, or +infinity.
            const std::uint32_t bits = bit_cast<std::uint32_t>(value);
            mine.bad |= (bits & ~sign_bit) > infinity_bits || bits == infinity_bits ? 1U : 0U;
            largest = largest < value ? value : largest;
        }
        mine.value = mine.value < largest ? largest : mine.value;
        const bool empty = bit_cast<std::uint32_t>(largest) == (infinity_bits | sign_bit);
        if (mine.bad != 0 || empty) continue;
        // True for the first reference as well, whose sum is zero.
        if (float_subtract(largest, farthest) > reference) {
            const float factor = float_exponential(float_subtract(reference, largest));
            sum = {float_multiply(sum.high, factor), float_multiply(sum.low, factor)};
            reference = largest;
        }
        row_floats<Width> terms;
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            if constexpr (Exact) {
                const float_float distance = exact_distance(values.values[i], reference);
                terms.values[i] = float_exponential_term(distance.high, distance.low);
            } else {
                terms.values[i] = float_exponential_term(float_subtract(values.values[i], reference));
            }
        }
        sum = sum + sum_of_chunk(terms);
    }
    const largest_element all = Group::reduce(thread, mine, larger_element{});
    const bool defined = all.bad == 0 && is_float_finite(all.value);
    // A thread without elements has a sum of zero, and -infinity as its reference.
    const float factor = float_exponential(defined ? float_subtract(reference, all.value) : 0.0F);
    sum = {float_multiply(sum.high, factor), float_multiply(sum.low, factor)};
    sum = Group::reduce(thread, sum, add_pairs{});
    // The largest element alone is 1; the roundings above may say a little less.
    const bool below_one = sum.value() < 1.0F;
    return {all.value, below_one ? float_float{1.0F, 0.0F} : sum, defined};
}

/// Makes others() of what sum_of_exponentials() has found good to 2^-16 of itself: where the largest element is
/// nearly everything, the others are added up again without it. All threads of a group call it.
MP_ANY_EXECUTION_SPACE
template <class Group, int Width, class Thread, class Value>
MP_HOST_DEVICE void find_others(Thread thread, const row_matrix<Value>& x, std::ptrdiff_t row,
                                std::ptrdiff_t columns, softmax_sum& result) {
    // The same for all threads of the group.
    if (!result.defined || result.sum.high > 1.015625F) return;
    float_float others{};
    for (std::ptrdiff_t c = Group::rank(thread) * Width; c < columns; c += Group::size * Width) {
        row_floats<Width> terms = load_row_floats<Width>(thread, x, row, c, columns, result.largest);
        MP_UNROLL
        for (int i = 0; i < Width; ++i) {
            const float_float distance = exact_distance(terms.values[i], result.largest);
            terms.values[i] =
                terms.values[i] < result.largest ? float_exponential(distance.high, distance.low) : 0.0F;
        }
        others = others + sum_of_chunk(terms);
    }
    result.sum = exact_sum(1.0F, Group::reduce(thread, others, add_pairs{}).value());
}

/// Whether float's own roundings show in results of this format. In formats of 16 bits and fewer they do not,
/// and what keeps them small is spared.
template <class Value>
inline constexpr bool shows_float_rounding = std::is_same_v<std::remove_const_t<Value>, float>;

template <class Group, bool Logarithm, class X, class Y>
struct softmax_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<X, Y>;
    row_matrix<const X> x;
    row_matrix<Y> y;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        constexpr bool exact = shows_float_rounding<Y>;
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            softmax_sum total = sum_of_exponentials<Group, width, exact>(thread, x, row, columns);
            if constexpr (Logarithm) find_others<Group, width>(thread, x, row, columns, total);
            const float_float inverse = reciprocal(total.sum);
            const float logarithm = float_logarithm(total.sum);
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, x, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float_float distance = exact_distance(values.values[i], total.largest);
                    float result = 0;
                    if constexpr (Logarithm) {
                        result = float_subtract(distance.high, float_subtract(logarithm, distance.low));
                    } else {
                        result =
                            product(float_exponential(distance.high, exact ? distance.low : 0.0F), inverse);
                    }
                    values.values[i] = total.defined ? result : float_quiet_nan();
                }
                store_row_floats(thread, y, row, c, columns, values);
            }
        }
    }
};

template <class Group, bool Logarithm, class Y, class DY, class DX>
struct softmax_backward_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Y, DY, DX>;
    row_matrix<const Y> y;
    row_matrix<const DY> dy;
    row_matrix<DX> dx;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        for (std::ptrdiff_t row = Group::number(thread); row < rows; row += Group::count(thread)) {
            float_float sum{};
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> gradients = load_row_floats<width>(thread, dy, row, c, columns);
                if constexpr (!Logarithm) {
                    const row_floats<width> results = load_row_floats<width>(thread, y, row, c, columns);
                    MP_UNROLL
                    for (int i = 0; i < width; ++i) {
                        gradients.values[i] = float_multiply(gradients.values[i], results.values[i]);
                    }
                }
                MP_UNROLL
                for (int i = 0; i < width; ++i) sum = sum + gradients.values[i];
            }
            const float total = Group::reduce(thread, sum, add_pairs{}).value();
            for (std::ptrdiff_t c = Group::rank(thread) * width; c < columns; c += Group::size * width) {
                row_floats<width> values = load_row_floats<width>(thread, y, row, c, columns);
                const row_floats<width> gradients = load_row_floats<width>(thread, dy, row, c, columns);
                MP_UNROLL
                for (int i = 0; i < width; ++i) {
                    const float result = values.values[i];
                    const float gradient = gradients.values[i];
                    values.values[i] =
                        Logarithm
                            ? nan_or(result, float_multiply_add(-float_exponential(result), total, gradient))
                            : float_multiply(result, float_subtract(gradient, total));
                }
                store_row_floats(thread, dx, row, c, columns, values);
            }
        }
    }
};

/// Whether a function of rows is a logarithm, and so its slope.
template <class Function>
inline constexpr bool is_log_softmax = std::is_same_v<Function, log_softmax_function>;
template <class Function>
concept softmax_of_rows = std::is_same_v<Function, softmax_function> || is_log_softmax<Function>;

/// map_rows() of the CPU, enqueued.
template <softmax_of_rows Function, gpu_executor Executor, class X, class Y>
void map_rows(Function, const Executor& exec, matrix_view<Y> y, matrix_view<const X> x) {
    if (x.rows == 0 || x.columns == 0) return;
    constexpr int width = row_chunk<X, Y>;
    launch_rows("mp::ops::softmax", exec, x.rows, x.columns, [&]<class Group>(Group) {
        return softmax_kernel<Group, is_log_softmax<Function>, X, Y>{rows_of<width>(x), rows_of<width>(y),
                                                                     x.rows, x.columns};
    });
}
template <softmax_of_rows Function, gpu_executor Executor, class Y, class DY, class DX>
void map_rows(slope_of<Function>, const Executor& exec, matrix_view<DX> dx, matrix_view<const Y> y,
              matrix_view<const DY> dy) {
    if (y.rows == 0 || y.columns == 0) return;
    constexpr int width = row_chunk<Y, DY, DX>;
    launch_rows("mp::ops::softmax_backward", exec, y.rows, y.columns, [&]<class Group>(Group) {
        return softmax_backward_kernel<Group, is_log_softmax<Function>, Y, DY, DX>{
            rows_of<width>(y), rows_of<width>(dy), rows_of<width>(dx), y.rows, y.columns};
    });
}

}}  // namespace mp::detail
