// SPDX-License-Identifier: MIT
// Sums of squares that trust ratios are made of, on vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// Sums of the lanes of square_sums.hpp.
struct square_lane_sums {
    static constexpr std::size_t vectors = square_lanes / lanes;
    vec<double> sums[vectors];

    MP_ALWAYS_INLINE void load(const double* from) {
        for (std::size_t v = 0; v < vectors; ++v) sums[v] = load_doubles(from + v * lanes);
    }
    MP_ALWAYS_INLINE void add_square(std::size_t v, vec<float> x) {
        const vec<double> wide = widen(x);
        sums[v] = add(sums[v], mul(wide, wide));
    }
    MP_ALWAYS_INLINE void save(double* to) const {
        for (std::size_t v = 0; v < vectors; ++v) store(to + v * lanes, sums[v]);
    }
};

/// Adds the squares of vector v of square_lanes elements, of which `count` are elements of the parameter.
template <class Coefficients>
MP_ALWAYS_INLINE void add_measured(const update_rule<Coefficients>& rule, std::size_t v, vec<float> weight,
                                   vec<float> gradient, const float* const* states, std::size_t i,
                                   std::size_t count, square_lane_sums& of_weights,
                                   square_lane_sums& of_measured) {
    vec<float> state[Coefficients::states] = {};
    for (std::size_t s = 0; s != Coefficients::measured_states; ++s) state[s] = load(states[s] + i);
    vec<float> measured = rule.measured(weight, gradient, state);
    if (count < lanes) {
        // Past the end the weight is 0, but the rule may have divided 0 by 0.
        float values[lanes];
        store(values, measured);
        for (std::size_t lane = count; lane < lanes; ++lane) values[lane] = 0.0F;
        measured = load(values);
    }
    of_weights.add_square(v, weight);
    of_measured.add_square(v, measured);
}

template <class Coefficients>
void measure_floats(const update_rows& rows, std::size_t count, float inverse_scale, float clip_factor,
                    const Coefficients& coefficients, layer_squares& squares) {
    constexpr std::size_t states_read = Coefficients::measured_states;
    const update_rule<Coefficients> rule(coefficients);
    const vec<float> scale = broadcast(inverse_scale);
    const vec<float> factor = broadcast(clip_factor);
    const float* states[states_read + 1] = {};
    for (std::size_t s = 0; s != states_read; ++s) states[s] = rows.states[s];
    square_lane_sums of_weights, of_measured;
    of_weights.load(squares.weights);
    of_measured.load(squares.measured);
    std::size_t i = 0;
    for (; i + square_lanes <= count; i += square_lanes) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < square_lane_sums::vectors; ++v) {
            const std::size_t at = i + v * lanes;
            const vec<float> gradient = mul(mul(load(rows.gradient + at), scale), factor);
            add_measured(rule, v, load(rows.weights + at), gradient, states, at, lanes, of_weights,
                         of_measured);
        }
    }
    if (i < count) {
        // The last elements, in memory for square_lanes.
        float last[2 + states_read][square_lanes] = {};
        const std::size_t size = (count - i) * sizeof(float);
        std::memcpy(last[0], rows.weights + i, size);
        std::memcpy(last[1], rows.gradient + i, size);
        for (std::size_t s = 0; s != states_read; ++s) {
            std::memcpy(last[2 + s], states[s] + i, size);
            states[s] = last[2 + s];
        }
        for (std::size_t v = 0; v < square_lane_sums::vectors; ++v) {
            const std::size_t at = v * lanes;
            const std::size_t left = count - i > at ? count - i - at : 0;
            const vec<float> gradient = mul(mul(load(last[1] + at), scale), factor);
            add_measured(rule, v, load(last[0] + at), gradient, states, at, left < lanes ? left : lanes,
                         of_weights, of_measured);
        }
    }
    of_weights.save(squares.weights);
    of_measured.save(squares.measured);
    clear_upper_halves();
}

}}}  // namespace mp::detail::MP_TARGET
