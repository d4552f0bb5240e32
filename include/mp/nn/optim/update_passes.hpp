// SPDX-License-Identifier: MIT
/// \file
/// Passes of an optimizer over a chunk of a parameter, by rules that users write.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Fewest elements that are worth a thread.
inline constexpr std::size_t update_grain = 64 * update_block;

/// A window of float on an array of Value: the array itself for float, else a buffer.
template <class Value>
class float_window {
public:
    /// The values of data[0, count) as float.
    float* load(Value* data, std::size_t count) noexcept {
        if constexpr (std::is_same_v<Value, float>) {
            return data;
        } else {
            convert_nearest(data, buffer_, count);
            return buffer_;
        }
    }

    /// Puts the window's values back, rounded once to nearest, ties to even.
    void store(Value* data, std::size_t count) const noexcept {
        if constexpr (!std::is_same_v<Value, float>) convert_nearest(buffer_, data, count);
    }

private:
    struct nothing {};
    [[no_unique_address]] std::conditional_t<std::is_same_v<Value, float>, nothing, float[update_block]>
        buffer_;
};

/// The gradient as an update uses it, `count` values from `at` on, into memory.
template <class Arrays>
void load_gradient(const Arrays& a, std::size_t at, std::size_t count, float* to) noexcept {
    namespace target = portable_vectors;
    copy_block(a.gradient + at, to, count);
    const float factors[] = {a.inverse_scale, a.clip_factor};
    for (const float factor : factors) {
        if (same_value(factor, 1.0F)) continue;
        std::size_t i = 0;
        for (; i + target::lanes <= count; i += target::lanes) {
            target::store(to + i, target::mul(target::load(to + i), target::broadcast(factor)));
        }
        for (; i < count; ++i) to[i] = float_multiply(to[i], factor);
    }
}

/// Updates a chunk block by block: the rule is a plain float loop, and the conversions before and after it
/// stay in the first-level cache. Rule: (float* weights, const float* gradient, std::array<float*, States>
/// states, std::size_t count).
template <class Weight, class Gradient, class Master, class State, std::size_t States, class Rule>
void update_by_rule(const update_arrays<Weight, Gradient, Master, State, States>& a, const Rule& rule) {
    const default_floating_point_modes modes;
    float_window<Master> weight_window;
    std::array<float_window<State>, States> state_windows;
    alignas(64) float gradient[update_block];
    for (std::size_t at = 0; at < a.count; at += update_block) {
        const std::size_t count = (std::min)(update_block, a.count - at);
        load_gradient(a, at, count, gradient);
        float* const weights = weight_window.load(a.masters + at, count);
        std::array<float*, States> states{};
        for (std::size_t s = 0; s != States; ++s) {
            states[s] = state_windows[s].load(a.states[s] + at, count);
        }
        rule(weights, static_cast<const float*>(gradient), states, count);
        weight_window.store(a.masters + at, count);
        for (std::size_t s = 0; s != States; ++s) state_windows[s].store(a.states[s] + at, count);
        if constexpr (!std::is_same_v<Weight, Master>) {
            convert_nearest(a.masters + at, a.weights + at, count);
        }
    }
}

}}  // namespace mp::detail
