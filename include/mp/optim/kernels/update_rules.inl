// SPDX-License-Identifier: MIT
// The arithmetic of the optimizers on vectors of floats, included for every instruction set, for the portable
// vectors and for the single floats of GPU kernels. Every product, sum, quotient and root is rounded to float
// by itself.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

MP_HOST_DEVICE MP_ALWAYS_INLINE floats product(floats a, floats b) {
    return rounded(a * b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE floats sum(floats a, floats b) {
    return rounded(a + b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE floats difference(floats a, floats b) {
    return rounded(a - b);
}

/// The update that belongs to the coefficients: from a weight, its gradient and its states to the new weight
/// and states.
template <class Coefficients>
struct update_rule;

template <>
struct update_rule<sgd_coefficients> {
    floats rate, decay, momentum, share;
    bool decays, has_momentum, nesterov;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const sgd_coefficients& c)
        : rate(all_lanes(c.rate)),
          decay(all_lanes(c.decay)),
          momentum(all_lanes(c.momentum)),
          share(all_lanes(c.share)),
          decays(c.decays),
          has_momentum(c.has_momentum),
          nesterov(c.nesterov) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return has_momentum; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(floats& weight, floats gradient, floats* states) const {
        floats step = gradient;
        if (decays) step = sum(step, product(decay, weight));
        if (has_momentum) {
            const floats moved = sum(product(momentum, states[0]), product(share, step));
            states[0] = moved;
            step = nesterov ? sum(step, product(momentum, moved)) : moved;
        }
        weight = difference(weight, product(rate, step));
    }
};

template <>
struct update_rule<adamw_coefficients> {
    floats decay, mean_keep, mean_share, square_keep, square_share, rate, inverse_bias, epsilon;

    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit update_rule(const adamw_coefficients& c)
        : decay(all_lanes(c.decay)),
          mean_keep(all_lanes(c.mean_keep)),
          mean_share(all_lanes(c.mean_share)),
          square_keep(all_lanes(c.square_keep)),
          square_share(all_lanes(c.square_share)),
          rate(all_lanes(c.rate)),
          inverse_bias(all_lanes(c.inverse_bias)),
          epsilon(all_lanes(c.epsilon)) {}

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE bool has_states() const { return true; }

    MP_HOST_DEVICE MP_ALWAYS_INLINE void update(floats& weight, floats gradient, floats* states) const {
        const floats mean = sum(product(mean_keep, states[0]), product(mean_share, gradient));
        const floats square =
            sum(product(square_keep, states[1]), product(square_share, product(gradient, gradient)));
        states[0] = mean;
        states[1] = square;
        const floats denominator = sum(product(square_root(square), inverse_bias), epsilon);
        // Not w * (1 - decay): one minus a small decay loses most of its digits in float.
        weight = difference(weight, sum(product(decay, weight), product(rate, quotient(mean, denominator))));
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
