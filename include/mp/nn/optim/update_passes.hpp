// SPDX-License-Identifier: MIT
/// \file
/// Passes of an optimizer over a chunk of a parameter, by rules that users write.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Updates a chunk block by block: the rule is a plain float loop, and the conversions before and after it
/// stay in the first-level cache. Rule: (float* weights, const float* gradient, std::array<float*, States>
/// states, std::size_t count).
template <std::size_t States, class Rule>
void update_by_rule(instruction_set isa, const update_arrays& arrays, const Rule& rule) {
    const default_floating_point_modes modes;
    update_buffers buffers(isa, arrays, States);
    alignas(64) float gradient[update_block];
    for (std::size_t at = 0; at < arrays.count; at += update_block) {
        const std::size_t count = (std::min)(update_block, arrays.count - at);
        const update_rows rows = buffers.load(at, count);
        scale_row(rows.gradient, gradient, count, arrays.inverse_scale, arrays.clip_factor);
        std::array<float*, States> states{};
        for (std::size_t s = 0; s != States; ++s) states[s] = rows.states[s];
        rule(rows.weights, static_cast<const float*>(gradient), states, count);
        buffers.store(at, count);
    }
}

}}  // namespace mp::detail
