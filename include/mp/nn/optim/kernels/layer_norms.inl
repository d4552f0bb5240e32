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

/// The weights i to i + lanes - 1, and what the rule measures of them.
struct measured_vectors {
    vec<float> weight, measured;
};
template <weight_update How, class Arrays, class Rule>
MP_ALWAYS_INLINE measured_vectors measure_vector(const Arrays& a, std::size_t i, const Rule& rule,
                                                 vec<float> inverse_scale, vec<float> clip_factor) {
    const vec<float> weight = load_weights<How>(a, i);
    vec<float> states[measured_states<Arrays>];
    for (std::size_t s = 0; s != Arrays::states_of_rule; ++s) states[s] = load_numbers(a.states[s] + i);
    return {weight, rule.measured(weight, load_gradients(a, i, inverse_scale, clip_factor), states)};
}

template <weight_update How, class Coefficients, class Arrays>
void measure_array(const Arrays& arrays, std::size_t first, std::size_t count,
                   const Coefficients& coefficients, layer_squares& squares) {
    const default_floating_point_modes modes;
    const Arrays a = arrays;  // its address is not taken, so that it stays in registers
    const update_rule<Coefficients> rule(coefficients);
    const vec<float> inverse_scale = broadcast(a.inverse_scale);
    const vec<float> clip_factor = broadcast(a.clip_factor);
    square_lane_sums of_weights, of_measured;
    of_weights.load(squares.weights);
    of_measured.load(squares.measured);
    std::size_t i = 0;
    for (; i + square_lanes <= count; i += square_lanes) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < square_lane_sums::vectors; ++v) {
            const auto [weight, measured] =
                measure_vector<How>(a, first + i + v * lanes, rule, inverse_scale, clip_factor);
            of_weights.add_square(v, weight);
            of_measured.add_square(v, measured);
        }
    }
    if (i < count) {
        const last_elements<Arrays, square_lanes> last(arrays, first + i);
        for (std::size_t v = 0; v < square_lane_sums::vectors; ++v) {
            const auto [weight, measured] =
                measure_vector<How>(last.arrays(), v * lanes, rule, inverse_scale, clip_factor);
            // Behind the end the weight is 0, but the rule may have divided 0 by 0.
            float values[lanes];
            store(values, measured);
            for (std::size_t lane = 0; lane < lanes; ++lane) {
                if (i + v * lanes + lane >= count) values[lane] = 0.0F;
            }
            of_weights.add_square(v, weight);
            of_measured.add_square(v, load(values));
        }
    }
    of_weights.save(squares.weights);
    of_measured.save(squares.measured);
}

}}}  // namespace mp::detail::MP_TARGET
