// SPDX-License-Identifier: MIT
// One pass of an optimizer over a chunk of a parameter, a vector at a time, without memory in between.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The random words of one group of elements, for the weights and each state that is rounded by them.
template <class Arrays, weight_update How>
struct group_of_random_words {
    MP_ALWAYS_INLINE void fill(const Arrays&, std::size_t, bool) {}
};
template <class Arrays>
struct group_of_random_words<Arrays, weight_update::stochastic> {
    alignas(64) std::uint32_t of_array[Arrays::random_arrays][random_group];

    MP_ALWAYS_INLINE void fill(const Arrays& a, std::size_t i, bool has_states) {
        const std::uint32_t arrays = has_states ? Arrays::random_arrays : 1;
        for (std::uint32_t array = 0; array < arrays; ++array) {
            fill_random_group({a.seed, a.parameter, a.update, array}, a.first + i, of_array[array]);
        }
    }
};

/// The weights i to i + lanes - 1 in the precision in which they are trained.
template <weight_update How, class Arrays>
MP_ALWAYS_INLINE vec<float> load_weights(const Arrays& a, std::size_t i) {
    if constexpr (How == weight_update::split) {
        return as_float(
            join_codes(widen(load(codes_of(a.masters + i))), widen(load(codes_of(a.compensation + i)))));
    } else if constexpr (How == weight_update::kahan) {
        return add(load_numbers(a.masters + i), load_numbers(a.compensation + i));
    } else {
        return load_numbers(a.masters + i);
    }
}

/// Their gradients as an update uses them.
template <class Arrays>
MP_ALWAYS_INLINE vec<float> load_gradients(const Arrays& a, std::size_t i, vec<float> inverse_scale,
                                           vec<float> clip_factor) {
    return mul(mul(load_numbers(a.gradient + i), inverse_scale), clip_factor);
}

/// Updates the elements i to i + lanes - 1, of which the first is number `in_group` of its group.
template <weight_update How, class Arrays, class Rule, class Random>
MP_ALWAYS_INLINE void update_vector(const Arrays& a, std::size_t i, const Rule& rule,
                                    vec<float> inverse_scale, vec<float> clip_factor,
                                    [[maybe_unused]] const Random& random,
                                    [[maybe_unused]] std::size_t in_group) {
    vec<float> weight = load_weights<How>(a, i);
    const vec<float> gradient = load_gradients(a, i, inverse_scale, clip_factor);
    vec<float> states[Arrays::states_of_rule];
    if (rule.has_states()) {
        for (std::size_t s = 0; s < Arrays::states_of_rule; ++s) states[s] = load_numbers(a.states[s] + i);
    }
    rule.update(weight, gradient, states);
    if (rule.has_states()) {
        for (std::size_t s = 0; s < Arrays::states_of_rule; ++s) {
            if constexpr (How == weight_update::stochastic && Arrays::random_arrays > 1) {
                store_stochastic(a.states[s] + i, states[s], load(random.of_array[s + 1] + in_group));
            } else {
                store_numbers(a.states[s] + i, states[s]);
            }
        }
    }
    if constexpr (How == weight_update::stochastic) {
        store_stochastic(a.masters + i, weight, load(random.of_array[0] + in_group));
    } else if constexpr (How == weight_update::split) {
        store(codes_of(a.masters + i), narrow_to_uint16(high_of_master(as_uint32(weight))));
        store(codes_of(a.compensation + i), narrow_to_uint16(low_of_master(as_uint32(weight))));
    } else {
        store_numbers(a.masters + i, weight);
    }
    if constexpr (How == weight_update::kahan) {
        store_numbers(a.compensation + i, sub(weight, load_numbers(a.masters + i)));
    }
    if constexpr (Arrays::has_master_copy) {
        if constexpr (Arrays::master_is_float) {
            store_numbers(a.weights + i, weight);
        } else {
            store_numbers(a.weights + i, load_numbers(a.masters + i));
        }
    }
}

template <weight_update How, class Coefficients, class Arrays>
void update_array(const Arrays& arrays, const Coefficients& coefficients) {
    const default_floating_point_modes modes;
    const Arrays a = arrays;  // its address is not taken, so that it stays in registers
    const update_rule<Coefficients> rule(coefficients);
    const vec<float> inverse_scale = broadcast(a.inverse_scale);
    const vec<float> clip_factor = broadcast(a.clip_factor);
    group_of_random_words<Arrays, How> random;
    std::size_t i = 0;
    for (; i + lanes <= a.count; i += lanes) {
        if (How == weight_update::stochastic && i % random_group == 0) random.fill(a, i, rule.has_states());
        update_vector<How>(a, i, rule, inverse_scale, clip_factor, random, i % random_group);
    }
    if (i == a.count) return;
    if (How == weight_update::stochastic && i % random_group == 0) random.fill(arrays, i, rule.has_states());
    last_elements<Arrays, lanes> last(arrays, i);
    update_vector<How>(last.arrays(), 0, rule, inverse_scale, clip_factor, random, i % random_group);
    last.put_back();
}

}}}  // namespace mp::detail::MP_TARGET
