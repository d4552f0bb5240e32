// SPDX-License-Identifier: MIT
/// \file
/// Sums of the squares of weights, and of the gradients or updates that a trust ratio divides by, in the order of
/// square_sums.hpp. States are read and not written: the pass that updates computes the same update again, which
/// needs no memory for it.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/nn/optim/kernels/block_moments.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Vectors of state of a rule; no array is empty.
template <class Arrays>
inline constexpr std::size_t measured_states = (std::max)(Arrays::states_of_rule, std::size_t{1});

/// Sums by lanes over a part of a chunk.
struct layer_squares {
    double weights[square_lanes] = {};
    double measured[square_lanes] = {};
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/layer_norms.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Adds the squares of `count` elements from `first` on, a multiple of square_lanes unless they are the last ones.
template <weight_update How, class Coefficients, class Arrays>
void measure_array_portable(const Arrays& a, std::size_t first, std::size_t count,
                            const Coefficients& coefficients, layer_squares& squares) {
    namespace target = portable_vectors;
    const default_floating_point_modes modes;
    const target::update_rule<Coefficients> rule(coefficients);
    const target::vec<float> inverse_scale = target::broadcast(a.inverse_scale);
    const target::vec<float> clip_factor = target::broadcast(a.clip_factor);
    float_block<How, Arrays::states_of_rule> block;
    alignas(64) float weights[update_block];
    alignas(64) float measured[update_block];
    for (std::size_t at = 0; at < count; at += update_block) {
        const std::size_t size = (std::min)(update_block, count - at);
        block.load(a, first + at, size, true);
        for (std::size_t i = 0; i < size; i += target::lanes) {
            const target::vec<float> weight = block.weight(i);
            const target::vec<float> gradient =
                target::mul(target::mul(target::load(block.gradient + i), inverse_scale), clip_factor);
            target::vec<float> states[measured_states<Arrays>];
            for (std::size_t s = 0; s != measured_states<Arrays>; ++s) {
                states[s] = target::load(block.states[s] + i);
            }
            target::store(weights + i, weight);
            target::store(measured + i, rule.measured(weight, gradient, states));
        }
        const std::size_t whole = (size + square_lanes - 1) / square_lanes * square_lanes;
        std::fill(weights + size, weights + whole, 0.0F);
        std::fill(measured + size, measured + whole, 0.0F);
        add_squares_portable(weights, squares.weights, whole);
        add_squares_portable(measured, squares.measured, whole);
    }
}

/// The pass for an instruction set.
template <weight_update How, class Coefficients, class Arrays>
auto select_measure(instruction_set isa) noexcept {
    if constexpr (has_update_kernels<weight_update::nearest, Arrays>) {
        return MP_SELECT_TARGET(isa, (&measure_array_portable<How, Coefficients, Arrays>),
                                measure_array<How, Coefficients, Arrays>);
    } else {
        static_cast<void>(isa);
        return &measure_array_portable<How, Coefficients, Arrays>;
    }
}

/// Sums of squares over each chunk of parameter_layout that `a` begins with: of weights, and of what the rule
/// measures.
template <weight_update How, class Coefficients, class Arrays>
void sum_layer_squares(instruction_set isa, const Arrays& a, const Coefficients& coefficients,
                       double* weight_sums, double* measured_sums) {
    constexpr std::size_t chunk = parameter_layout::chunk;
    const auto finish = [&](layer_squares& squares) {
        *weight_sums++ = sum_of_square_lanes(squares.weights);
        *measured_sums++ = sum_of_square_lanes(squares.measured);
    };
    if constexpr (std::is_same_v<typename Arrays::state_type, block_moment>) {
        static_assert(chunk % moments_block == 0);
        layer_squares squares;
        for_each_moment_block(isa, a, true, [&](const auto& block, std::size_t at, const moment_window&) {
            using arrays_of_floats = std::remove_cvref_t<decltype(block)>;
            select_measure<How, Coefficients, arrays_of_floats>(isa)(block, 0, block.count, coefficients,
                                                                     squares);
            const std::size_t end = at + block.count;
            if (end % chunk != 0 && end != a.count) return;
            finish(squares);
            squares = {};
        });
    } else {
        const auto measure = select_measure<How, Coefficients, Arrays>(isa);
        for (std::size_t at = 0; at < a.count; at += chunk) {
            layer_squares squares;
            measure(a, at, (std::min)(chunk, a.count - at), coefficients, squares);
            finish(squares);
        }
    }
}

}}  // namespace mp::detail
