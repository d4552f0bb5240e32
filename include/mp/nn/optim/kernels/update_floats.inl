// SPDX-License-Identifier: MIT
// The update of an optimizer over rows of floats.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Updates the elements i to i + lanes - 1.
template <class Rule, std::size_t States>
MP_ALWAYS_INLINE void update_vector(const Rule& rule, vec<float> scale, vec<float> factor, float* weights,
                                    const float* gradient, float* const (&states)[States], std::size_t i) {
    vec<float> weight = load(weights + i);
    vec<float> state[States];
    if (rule.has_states()) {
        for (std::size_t s = 0; s < States; ++s) state[s] = load(states[s] + i);
    }
    rule.update(weight, mul(mul(load(gradient + i), scale), factor), state);
    if (rule.has_states()) {
        for (std::size_t s = 0; s < States; ++s) store(states[s] + i, state[s]);
    }
    store(weights + i, weight);
}

template <class Coefficients>
void update_floats(const update_rows& rows, std::size_t count, float inverse_scale, float clip_factor,
                   const Coefficients& coefficients) {
    constexpr std::size_t states_of_rule = Coefficients::states;
    const update_rule<Coefficients> rule(coefficients);
    const vec<float> scale = broadcast(inverse_scale);
    const vec<float> factor = broadcast(clip_factor);
    // Copies, which stores to the arrays cannot change.
    float* const weights = rows.weights;
    const float* const gradient = rows.gradient;
    float* states[states_of_rule];
    for (std::size_t s = 0; s < states_of_rule; ++s) states[s] = rows.states[s];
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) update_vector(rule, scale, factor, weights, gradient, states, i);
    if (i != count) {
        // The last elements, in memory for a vector.
        float last[2 + states_of_rule][lanes] = {};
        float* last_states[states_of_rule];
        const std::size_t size = (count - i) * sizeof(float);
        std::memcpy(last[0], weights + i, size);
        std::memcpy(last[1], gradient + i, size);
        for (std::size_t s = 0; s < states_of_rule; ++s) {
            last_states[s] = last[2 + s];
            if (rule.has_states()) std::memcpy(last_states[s], states[s] + i, size);
        }
        update_vector(rule, scale, factor, last[0], last[1], last_states, 0);
        std::memcpy(weights + i, last[0], size);
        for (std::size_t s = 0; rule.has_states() && s < states_of_rule; ++s) {
            std::memcpy(states[s] + i, last_states[s], size);
        }
    }
#if MP_TARGET_NUMBER != MP_TARGET_PORTABLE
    clear_upper_halves();
#endif
}

}}}  // namespace mp::detail::MP_TARGET
