// SPDX-License-Identifier: MIT
/// \file
/// Sums of the squares of weights, and of the gradients or updates that a trust ratio divides by, in the order of
/// square_sums.hpp. States are read and not written: the pass that updates computes the same update again, which
/// needs no memory for it.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/rules/optimizer_updates.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Sums by lanes over a part of a chunk.
struct layer_squares {
    double weights[square_lanes] = {};
    double measured[square_lanes] = {};
};

/// Adds the squares of `count` elements, a multiple of square_lanes unless they are the last ones.
template <class Coefficients>
void measure_floats_portable(const update_rows& rows, std::size_t count, float inverse_scale,
                             float clip_factor, const Coefficients& coefficients, layer_squares& squares) {
    namespace target = portable_vectors;
    const target::update_rule<Coefficients> rule(coefficients);
    float weights[square_lanes];
    float measured[square_lanes];
    for (std::size_t at = 0; at < count; at += square_lanes) {
        const std::size_t size = (std::min)(square_lanes, count - at);
        float gradient[square_lanes] = {};
        float states[Coefficients::states][square_lanes] = {};
        std::fill(weights, weights + square_lanes, 0.0F);
        std::copy_n(rows.weights + at, size, weights);
        std::copy_n(rows.gradient + at, size, gradient);
        for (std::size_t s = 0; s != Coefficients::measured_states; ++s) {
            std::copy_n(rows.states[s] + at, size, states[s]);
        }
        for (std::size_t i = 0; i < square_lanes; i += target::lanes) {
            target::vec<float> state[Coefficients::states];
            for (std::size_t s = 0; s < Coefficients::states; ++s) state[s] = target::load(states[s] + i);
            const auto scaled = target::mul(target::load(gradient + i), target::broadcast(inverse_scale));
            target::store(measured + i,
                          rule.measured(target::load(weights + i),
                                        target::mul(scaled, target::broadcast(clip_factor)), state));
        }
        // Past the end the weight is 0, but the rule may have divided 0 by 0.
        std::fill(measured + size, measured + square_lanes, 0.0F);
        add_squares_portable(weights, squares.weights, square_lanes);
        add_squares_portable(measured, squares.measured, square_lanes);
    }
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/layer_norms.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Sums of squares over each chunk of parameter_layout that `arrays` begins with: of weights, and of what the rule
/// measures.
template <class Coefficients>
void sum_layer_squares(instruction_set isa, const update_arrays& arrays, const Coefficients& coefficients,
                       double* weight_sums, double* measured_sums) noexcept {
    static_assert(parameter_layout::chunk % update_block == 0);
    const default_floating_point_modes modes;
    const auto measure =
        MP_SELECT_TARGET(isa, &measure_floats_portable<Coefficients>, measure_floats<Coefficients>);
    update_buffers buffers(isa, arrays, Coefficients::measured_states);
    for (std::size_t at = 0; at < arrays.count; at += parameter_layout::chunk) {
        const std::size_t end = (std::min)(arrays.count, at + parameter_layout::chunk);
        layer_squares squares;
        for (std::size_t i = at; i < end; i += update_block) {
            const std::size_t count = (std::min)(update_block, end - i);
            const update_rows rows = buffers.load(i, count);
            measure(rows, count, arrays.inverse_scale, arrays.clip_factor, coefficients, squares);
        }
        *weight_sums++ = sum_of_square_lanes(squares.weights);
        *measured_sums++ = sum_of_square_lanes(squares.measured);
    }
}

}}  // namespace mp::detail
