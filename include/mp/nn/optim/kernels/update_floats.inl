// SPDX-License-Identifier: MIT
// The update of an optimizer over rows of floats.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Updates the elements i to i + lanes - 1, and returns the weights.
template <class Rule, std::size_t States>
MP_ALWAYS_INLINE vec<float> update_vector(const Rule& rule, vec<float> gradient, float* weights,
                                          float* const (&states)[States], std::size_t i) {
    vec<float> weight = load(weights + i);
    vec<float> state[States];
    if (rule.has_states()) {
        for (std::size_t s = 0; s < States; ++s) state[s] = load(states[s] + i);
    }
    rule.update(weight, gradient, state);
    if (rule.has_states()) {
        for (std::size_t s = 0; s < States; ++s) store(states[s] + i, state[s]);
    }
    store(weights + i, weight);
    return weight;
}

/// \tparam Number  element type of the gradient in memory; other than float also that of a copy of the weights, to which
///                 they are rounded
template <class Coefficients, class Number>
void update_floats(const update_rows& rows, std::size_t count, float inverse_scale, float clip_factor,
                   const Coefficients& coefficients) {
    constexpr std::size_t states_of_rule = Coefficients::states;
    constexpr bool has_copy = !std::is_same_v<Number, float>;
    const update_rule<Coefficients> rule(coefficients);
    const vec<float> scale = broadcast(inverse_scale);
    const vec<float> factor = broadcast(clip_factor);
    // Copies, which stores to the arrays cannot change.
    float* const weights = rows.weights;
    float* states[states_of_rule];
    for (std::size_t s = 0; s < states_of_rule; ++s) states[s] = rows.states[s];
    [[maybe_unused]] auto* const copy = static_cast<Number*>(rows.copy);
    const Number* gradient;
    if constexpr (has_copy) {
        gradient = static_cast<const Number*>(rows.gradient_numbers);
    } else {
        gradient = rows.gradient;
    }
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        if constexpr (has_copy) {
            const vec<float> unscaled = mul(mul(load_numbers(gradient + i), scale), factor);
            store_numbers(copy + i, update_vector(rule, unscaled, weights, states, i));
        } else {
            update_vector(rule, mul(mul(load(gradient + i), scale), factor), weights, states, i);
        }
    }
    if (i != count) {
        // The last elements, in memory for a vector. By the same function: what the loop needs stays in registers.
        float last[1 + states_of_rule][lanes] = {};
        Number last_gradient[lanes] = {};
        Number last_copy[lanes];
        update_rows padded{};
        padded.weights = last[0];
        const std::size_t size = (count - i) * sizeof(float);
        std::memcpy(last[0], weights + i, size);
        std::copy_n(gradient + i, count - i, last_gradient);
        for (std::size_t s = 0; s < states_of_rule; ++s) {
            padded.states[s] = last[1 + s];
            if (rule.has_states()) std::memcpy(last[1 + s], states[s] + i, size);
        }
        if constexpr (has_copy) {
            padded.gradient_numbers = last_gradient;
            padded.copy = last_copy;
        } else {
            padded.gradient = last_gradient;
        }
        update_floats<Coefficients, Number>(padded, lanes, inverse_scale, clip_factor, coefficients);
        std::memcpy(weights + i, last[0], size);
        if constexpr (has_copy) std::copy_n(last_copy, count - i, copy + i);
        for (std::size_t s = 0; rule.has_states() && s < states_of_rule; ++s) {
            std::memcpy(states[s] + i, last[1 + s], size);
        }
    }
#if MP_TARGET_NUMBER != MP_TARGET_PORTABLE
    clear_upper_halves();
#endif
}

}}}  // namespace mp::detail::MP_TARGET
