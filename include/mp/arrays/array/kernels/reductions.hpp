// SPDX-License-Identifier: MIT
/// \file
/// Sums of arrays in one order, whatever the instructions. See mp::sum for the order, reductions.inl for
/// vectors.
#pragma once

#include <mp/arrays/array/kernels/arithmetic.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The order: element i of a block goes to lane i mod 64.
inline constexpr std::size_t sum_lanes = 64;
inline constexpr std::size_t sum_block = 4096;

/// What is added up, in float or double. No product is contracted with a sum that follows: see the kernels.
struct summed_value {
    template <class Native>
    static Native apply(Native x) noexcept {
        return x;
    }
};
struct summed_product {
    template <class Native>
    static Native apply(Native x, Native y) noexcept {
        return x * y;
    }
};
struct summed_square {
    template <class Native>
    static Native apply(Native x) noexcept {
        return x * x;
    }
};

/// The values of an array in memory, so that compilers neither contract nor reassociate across it.
template <class Native, std::size_t Count>
MP_ALWAYS_INLINE void as_stored([[maybe_unused]] Native (&values)[Count]) noexcept {
#if defined(__GNUC__) && !defined(__CUDACC__)
    __asm__("" : "+m"(values));
#endif
}

/// Lane j and lane j + 32, then j and j + 16, and so on.
template <class Accumulator>
Accumulator sum_of_lanes(Accumulator (&lane)[sum_lanes]) noexcept {
    for (std::size_t width = sum_lanes / 2; width != 0; width /= 2) {
        for (std::size_t j = 0; j < width; ++j) lane[j] += lane[j + width];
        as_stored(lane);
    }
    return lane[0];
}

/// The sum of leaf(0), leaf(1), ... leaf(count - 1) as a binary tree: that of the first 2^k, which is the
/// largest power of two below count, plus that of the others.
template <class Accumulator, class Leaf>
Accumulator sum_of_tree(std::size_t count, Leaf leaf) noexcept {
    Accumulator pending[64];  // of as many leaves as the ones in the binary number of leaves seen so far say
    std::size_t top = 0;
    for (std::size_t i = 0; i < count; ++i) {
        Accumulator sum = leaf(i);
        for (std::size_t full = i; (full & 1) != 0; full >>= 1) sum = pending[--top] + sum;
        pending[top++] = sum;
    }
    if (top == 0) return 0;
    Accumulator sum = pending[--top];
    while (top != 0) sum = pending[--top] + sum;
    return sum;
}

/// Up to 64 values as floats, and zeros behind them.
struct wide_values {
    float value[sum_lanes] = {};

    template <class Value>
    wide_values(const Value* first, std::size_t count) noexcept {
        if constexpr (std::same_as<Value, float>) {
            std::memcpy(value, first, count * sizeof(float));
        } else {
            convert_nearest(first, value, count);
        }
    }
};

/// One block in plain loops.
template <class Term, class Accumulator, class... Value>
Accumulator sum_of_block_portable(std::size_t count, const Value*... from) noexcept {
    Accumulator lane[sum_lanes] = {};
    for (std::size_t i = 0; i < count; i += sum_lanes) {
        const std::size_t length = (std::min)(count - i, sum_lanes);
        // Zeros at the end change nothing: no lane is ever -0.
        Accumulator term[sum_lanes];
        [&](const auto&... wide) {
            for (std::size_t j = 0; j < sum_lanes; ++j) {
                term[j] = Term::apply(static_cast<Accumulator>(wide.value[j])...);
            }
        }(wide_values(from + i, length)...);
        as_stored(term);
        for (std::size_t j = 0; j < sum_lanes; ++j) lane[j] += term[j];
        as_stored(lane);
    }
    return sum_of_lanes(lane);
}

/// The sum of the terms of `count` elements, in the order that mp::sum promises.
template <class Term, class Accumulator, class... Value>
void sum_portable(Accumulator* result, std::size_t count, const Value*... from) noexcept {
    const default_floating_point_modes modes;
    *result = sum_of_tree<Accumulator>((count + sum_block - 1) / sum_block, [&](std::size_t block) {
        const std::size_t begin = block * sum_block;
        return sum_of_block_portable<Term, Accumulator>((std::min)(count - begin, sum_block),
                                                        (from + begin)...);
    });
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/array/kernels/reductions.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Term, class Accumulator, class... Value>
auto sum_kernel([[maybe_unused]] instruction_set isa) noexcept {
    if constexpr (MP_SIMD_TARGETS && (has_number_vectors<Value> && ...)) {
        return MP_SELECT_TARGET(isa, (&sum_portable<Term, Accumulator, Value...>),
                                sum_array<Term, Accumulator, Value...>);
    } else {
        return &sum_portable<Term, Accumulator, Value...>;
    }
}

}}  // namespace mp::detail
