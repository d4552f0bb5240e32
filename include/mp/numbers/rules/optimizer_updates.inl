// SPDX-License-Identifier: MIT
// The arithmetic of the optimizers over vec<float>. Every product, sum, quotient and root is
// rounded to float by itself.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// The update that belongs to the coefficients: from a weight, its gradient and its states to the new weight
/// and states. A trust ratio is of the norms of the weights and of what `measured` returns of them.
template <class Coefficients>
struct update_rule;

template <>
struct update_rule<sgd_coefficients> {
    vec<float> rate, decay, momentum, gradient_scale;
    bool decays, has_momentum, nesterov;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const sgd_coefficients& c)
        : rate(broadcast(c.rate)),
          decay(broadcast(c.decay)),
          momentum(broadcast(c.momentum)),
          gradient_scale(broadcast(c.gradient_scale)),
          decays(c.decays),
          has_momentum(c.has_momentum),
          nesterov(c.nesterov) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return has_momentum; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(vec<float>& weight, vec<float> gradient,
                                                vec<float>* states) const {
        descend(weight, decayed(weight, gradient), states);
    }

    /// The gradient with the decay.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> decayed(vec<float> weight,
                                                                     vec<float> gradient) const {
        if (decays) gradient = add(gradient, mul(decay, weight));
        return gradient;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void descend(vec<float>& weight, vec<float> step,
                                                 vec<float>* states) const {
        if (has_momentum) {
            const vec<float> moved = add(mul(momentum, states[0]), mul(gradient_scale, step));
            states[0] = moved;
            step = nesterov ? add(step, mul(momentum, moved)) : moved;
        }
        weight = sub(weight, mul(rate, step));
    }
};

template <>
struct update_rule<adamw_coefficients> {
    vec<float> decay, beta1, one_minus_beta1, beta2, one_minus_beta2, rate, inverse_bias, epsilon, coupled;
    bool couples;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const adamw_coefficients& c)
        : decay(broadcast(c.decay)),
          beta1(broadcast(c.beta1)),
          one_minus_beta1(broadcast(c.one_minus_beta1)),
          beta2(broadcast(c.beta2)),
          one_minus_beta2(broadcast(c.one_minus_beta2)),
          rate(broadcast(c.rate)),
          inverse_bias(broadcast(c.inverse_bias)),
          epsilon(broadcast(c.epsilon)),
          coupled(broadcast(c.coupled)),
          couples(c.couples) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return true; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(vec<float>& weight, vec<float> gradient,
                                                vec<float>* states) const {
        weight = sub(weight, change(weight, gradient, states));
    }

    /// What the weight loses.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> change(vec<float> weight, vec<float> gradient,
                                                                    vec<float>* states) const {
        if (couples) gradient = add(gradient, mul(coupled, weight));
        const vec<float> mean = add(mul(beta1, states[0]), mul(one_minus_beta1, gradient));
        const vec<float> square = add(mul(beta2, states[1]), mul(one_minus_beta2, mul(gradient, gradient)));
        states[0] = mean;
        states[1] = square;
        const vec<float> denominator = add(mul(sqrt(square), inverse_bias), epsilon);
        // Not w * (1 - decay): one minus a small decay loses most of its digits in float.
        return add(mul(decay, weight), mul(rate, div(mean, denominator)));
    }
};

template <>
struct update_rule<lion_coefficients> {
    vec<float> rate, decay, beta1, one_minus_beta1, beta2, one_minus_beta2;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const lion_coefficients& c)
        : rate(broadcast(c.rate)),
          decay(broadcast(c.decay)),
          beta1(broadcast(c.beta1)),
          one_minus_beta1(broadcast(c.one_minus_beta1)),
          beta2(broadcast(c.beta2)),
          one_minus_beta2(broadcast(c.one_minus_beta2)) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return true; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(vec<float>& weight, vec<float> gradient,
                                                vec<float>* states) const {
        const vec<float> direction = add(mul(beta1, states[0]), mul(one_minus_beta1, gradient));
        states[0] = add(mul(beta2, states[0]), mul(one_minus_beta2, gradient));
        // The rate with the direction's sign; zeros and NaNs stay. By codes, so that no compiler takes NaN
        // for none.
        const auto magnitude = as_int32(as_float(as_uint32(direction) & 0x7FFF'FFFFU));
        const vec<float> signed_rate = as_float(as_uint32(rate) | (as_uint32(direction) & 0x8000'0000U));
        vec<float> step = select(magnitude > 0, signed_rate, direction);
        step = select(magnitude > 0x7F80'0000, direction, step);
        weight = sub(weight, add(mul(decay, weight), step));
    }
};

template <>
struct update_rule<lars_coefficients> {
    update_rule<sgd_coefficients> sgd;
    vec<float> trust_ratio;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const lars_coefficients& c)
        : sgd(c.sgd), trust_ratio(broadcast(c.trust_ratio)) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return sgd.has_states(); }

    MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> measured(vec<float> /*weight*/, vec<float> gradient,
                                                        vec<float>* /*states*/) const {
        return gradient;
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(vec<float>& weight, vec<float> gradient,
                                                vec<float>* states) const {
        sgd.descend(weight, mul(trust_ratio, sgd.decayed(weight, gradient)), states);
    }
};

template <>
struct update_rule<lamb_coefficients> {
    update_rule<adamw_coefficients> adamw;
    vec<float> rate;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const lamb_coefficients& c)
        : adamw(c.adamw), rate(broadcast(c.rate)) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return true; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> measured(vec<float> weight, vec<float> gradient,
                                                        vec<float>* states) const {
        return adamw.change(weight, gradient, states);
    }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(vec<float>& weight, vec<float> gradient,
                                                vec<float>* states) const {
        weight = sub(weight, mul(rate, measured(weight, gradient, states)));
    }
};

}}}  // namespace mp::detail::MP_TARGET
