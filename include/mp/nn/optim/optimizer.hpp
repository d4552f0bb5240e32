// SPDX-License-Identifier: MIT
/// \file
/// Optimizers that change every element by itself: SGD, AdamW, Lion; and those whose rate differs from parameter to
/// parameter by their norms: LARS and LAMB.
#pragma once

#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/optimizer_options.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What mp::sgd, mp::adamw and mp::lion have in common: an update of an element that is a function of its
/// gradient, its weight and its state, by the traits of Options. See grouped_optimizer for the options and
/// optimizer_base for the types, the protocol and the precision.
template <class Options, class Weight, class Gradient, class Master, class State>
class optimizer : public grouped_optimizer<optimizer<Options, Weight, Gradient, Master, State>, Options,
                                           Weight, Gradient, Master, State> {
    using base = grouped_optimizer<optimizer, Options, Weight, Gradient, Master, State>;
    friend base;
    using traits = detail::optimizer_traits<Options>;

public:
    using base::base;

private:
    void update(float inverse_scale) {
        const detail::default_floating_point_modes modes;
        base::set_coefficients(std::span(of_group_), std::span(of_parameter_));
        base::apply_kernel(inverse_scale, std::span<const coefficients>(of_parameter_));
    }

    using coefficients = typename traits::coefficients;
    std::vector<coefficients> of_group_ = std::vector<coefficients>(base::group_count());
    std::vector<coefficients> of_parameter_ = std::vector<coefficients>(base::parameters().size());
};

/// Stochastic gradient descent as torch.optim.SGD defines it. With gradient g, weight w, momentum buffer b:
///
///     g = g + weight_decay * w
///     b = momentum * b + (1 - dampening) * g        // at the first update b = g
///     w = w - learning_rate * (nesterov ? g + momentum * b : momentum != 0 ? b : g)
///
/// in float, the options rounded to float; see optimizer_base for the types, the protocol and the precision.
///
///     mp::sgd<mp::half> optimizer({{"weight", weights, gradient}}, {.learning_rate = 0.1, .momentum = 0.9});
///
/// Without a master copy, nearest rounding loses every update that is small for the weight's format; see
/// mp::weight_update for what else there is.
///
///     mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16> optimizer(
///         {{"weight", weights, gradient}}, {.low_precision_update = mp::weight_update::stochastic});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class sgd : public optimizer<sgd_options, Weight, Gradient, Master, State> {
    using base = optimizer<sgd_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum buffer of a parameter; empty without momentum.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::sgd::momentum", index, 0);
    }
};

/// Adam with decoupled weight decay (Loshchilov and Hutter 2019) as torch.optim.AdamW computes it. With
/// gradient g, weight w, means m and v, at the t-th update:
///
///     m = beta1 * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g * g
///     w = w - learning_rate * weight_decay * w
///           - learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
///
/// With options.coupled_decay it is Adam: g = g + weight_decay * w first, and no decay in the last line.
///
/// Coefficients that do not depend on the element are computed in double and rounded to float, the rest in
/// float; see optimizer_base for the types, the protocol and the precision. A square that underflows in
/// State counts as zero, and with it most of what keeps the step bounded: Adam with State = half needs
/// gradients well above 2^-12, while float and bfloat16 have the range for it.
///
///     mp::adamw<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-3});
///
/// With State = mp::block_moment the means take a byte each, see there.
///
/// In a reduced State the means are kept divided by their bias, m / (1 - beta1^t) and v / (1 - beta2^t), which is the same
/// in numbers that do not round, and is not stopped half way to a constant mean of squares: with State = bfloat16 a
/// weight would go 1.4 times as far as it should.
///
/// Without a master copy, nearest rounding loses every update that is small for the weight's format; see
/// mp::weight_update for what else there is. State in bfloat16 loses the decay of the mean square in the same
/// way, since 1 - beta2 is below its spacing: keep it in float, or round stochastically.
///
///     mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float> optimizer(
///         {{"weight", weights, gradient}}, {.low_precision_update = mp::weight_update::kahan});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class adamw : public optimizer<adamw_options, Weight, Gradient, Master, State> {
    using base = optimizer<adamw_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The mean of the gradients of a parameter, m; in a reduced State m / (1 - beta1^t).
    [[nodiscard]] std::span<const State> gradient_mean(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v; in a reduced State v / (1 - beta2^t).
    [[nodiscard]] std::span<const State> gradient_mean_square(std::size_t index) const {
        return base::state_of("mp::adamw::gradient_mean_square", index, 1);
    }
};

/// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms"). With gradient g, weight w,
/// momentum m:
///
///     w = w - learning_rate * (sign(beta1 * m + (1 - beta1) * g) + weight_decay * w)
///     m = beta2 * m + (1 - beta2) * g
///
/// in float, where the sign of a zero is zero; see optimizer_base for the types, the protocol and the
/// precision. Every weight moves by the learning rate, whatever its gradient, so one array of state is
/// enough, and bfloat16 is enough for it; a loss scale that is left in the gradients does not show in a step,
/// but makes the momentum of steps before and after a change of the scale weigh too much or too little.
///
///     mp::lion<mp::bfloat16> optimizer({{"weight", weights, gradient}}, {.learning_rate = 1e-4,
///     .weight_decay = 0.3});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lion : public optimizer<lion_options, Weight, Gradient, Master, State> {
    using base = optimizer<lion_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum of a parameter, m.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::lion::momentum", index, 0);
    }
};

}}  // namespace mp

namespace mp {

/// Options of mp::lars. Those of SGD are multiplied by as floats, see mp::sgd_options; those of the trust ratio are
/// used in double.
struct lars_options {
    double learning_rate = 0.1;  ///< finite and not negative
    double momentum = 0.9;       ///< in [0, 1); 0 keeps no momentum state
    double dampening = 0.0;      ///< in [0, 1]; as in mp::sgd_options
    double epsilon = 1e-8;       ///< finite and not negative; added to the divisor of the trust ratio
    double weight_decay = 1e-4;  ///< finite and not negative; this times the weight is added to the gradient
    bool nesterov = false;       ///< look ahead; needs a momentum, and a dampening of 0
    double trust_coefficient = 1e-3;  ///< finite and positive; Apex's LARC has 0.02
    /// Divides the trust ratio by the learning rate, and lets it be at most 1, as Apex's LARC does: the learning rate
    /// is then the most that a layer's rate may be.
    bool clip = false;
    bool layer_adaptation =
        true;  ///< false: a trust ratio of 1, as usual for biases and norms; the step is mp::sgd's

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const lars_options&, const lars_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, momentum, dampening, epsilon, weight_decay, nesterov, trust_coefficient,
                      clip, layer_adaptation, low_precision_update, seed)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<lars_options> {
    using coefficients = lars_coefficients;
    static constexpr std::string_view name = "mp::lars";
    static constexpr std::string_view step = "mp::lars::step";
    static std::size_t states(const lars_options& options) { return sgd::states(sgd_of(options)); }
    static void check(std::string_view function, const lars_options& options) {
        sgd::check(function, sgd_of(options));
        require_non_negative(function, "epsilon", options.epsilon);
        require_positive(function, "trust_coefficient", options.trust_coefficient);
    }
    static double largest_rate_factor(const lars_options& /*options*/) { return 1.0; }
    /// A trust ratio bounds the step by the norm of the weights; half of the range is for the decay.
    static gradient_limits limits(const lars_options& options, double largest_state, double largest_step) {
        if (options.layer_adaptation) return {.state = double_multiply(largest_float_as_double, 0.5)};
        return sgd::limits(sgd_of(options), largest_state, largest_step);
    }

    MP_HOST_DEVICE static coefficients coefficients_of(const lars_options& options, double learning_rate,
                                                       std::uint64_t update) {
        return {sgd::coefficients_of(sgd_of(options), learning_rate, update), 1.0F};
    }
    MP_HOST_DEVICE static bool adapts(const lars_options& options) { return options.layer_adaptation; }
    MP_HOST_DEVICE static double trust_ratio(const lars_options& options, double learning_rate,
                                             double weight_norm, double gradient_norm) {
        const double decayed = double_add(gradient_norm, double_multiply(options.weight_decay, weight_norm));
        const double ratio = double_divide(double_multiply(options.trust_coefficient, weight_norm),
                                           double_add(decayed, options.epsilon));
        if (!options.clip) return ratio;
        return ratio < learning_rate ? double_divide(ratio, learning_rate) : 1.0;
    }
    MP_HOST_DEVICE static coefficients with_trust_ratio(coefficients c, double /*learning_rate*/,
                                                        double ratio) {
        c.trust_ratio = finite_float(ratio);
        return c;
    }

private:
    using sgd = optimizer_traits<sgd_options>;
    MP_HOST_DEVICE static sgd_options sgd_of(const lars_options& options) {
        return {.learning_rate = options.learning_rate,
                .momentum = options.momentum,
                .dampening = options.dampening,
                .weight_decay = options.weight_decay,
                .nesterov = options.nesterov};
    }
};

}}  // namespace mp::detail

namespace mp {

/// Options of mp::lamb, with the words and defaults of Apex's FusedLAMB. They are multiplied by as floats, see
/// mp::adamw_options. For max_grad_norm there is clip_gradient_norm. Under a scaler, a step by a gradient
/// whose square is beyond the range of the state is skipped.
struct lamb_options {
    double learning_rate = 1e-3;  ///< finite and not negative, also over 1 - beta1 and times weight_decay
    double beta1 = 0.9;           ///< in [0, 1): how slowly the mean of the gradients moves
    double beta2 = 0.999;         ///< in [0, 1): how slowly the mean of their squares moves
    double epsilon = 1e-6;  ///< finite and not negative, 0 for 2^-64; added to the root of the mean square
    double weight_decay = 1e-2;   ///< finite and not negative; this times the weight is part of the update
    bool bias_correction = true;  ///< divides the means by 1 - beta^t
    bool adam_w_mode = true;      ///< false: weight_decay times the weight is added to the gradient instead
    bool grad_averaging = true;   ///< false: gradients enter their mean whole, not times 1 - beta1
    bool use_nvlamb = false;      ///< trust ratios also where weight_decay is 0, where it is 1 otherwise

    /// For weights of a reduced format without master copy; otherwise it must be nearest.
    weight_update low_precision_update = weight_update::nearest;
    std::uint64_t seed = 0;  ///< of the random bits of weight_update::stochastic; another for every optimizer

    friend constexpr bool operator==(const lamb_options&, const lamb_options&) = default;

    /// Calls visitor(name, member) for every option.
    MP_VISITS_MEMBERS(learning_rate, beta1, beta2, epsilon, weight_decay, bias_correction, adam_w_mode,
                      grad_averaging, use_nvlamb, low_precision_update, seed)
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct optimizer_traits<lamb_options> {
    using coefficients = lamb_coefficients;
    static constexpr std::string_view name = "mp::lamb";
    static constexpr std::string_view step = "mp::lamb::step";
    static std::size_t states(const lamb_options& /*options*/) { return 2; }

    static void check(std::string_view function, const lamb_options& options) {
        adamw::check(function, adamw_of(options));
    }
    static double largest_rate_factor(const lamb_options& options) {
        return adamw::largest_rate_factor(adamw_of(options));
    }
    static gradient_limits limits(const lamb_options& options, double largest_state, double largest_step) {
        gradient_limits result = adamw::limits(adamw_of(options), largest_state, largest_step);
        const double sum = largest_in_mean(largest_state, options.beta1, 1.0);
        if (!options.grad_averaging) result.state = (std::min)(result.state, sum);
        return result;
    }
    MP_HOST_DEVICE static coefficients coefficients_of(const lamb_options& options, double learning_rate,
                                                       std::uint64_t update) {
        // At a learning rate of 1, what a weight loses in a step of AdamW is the update of LAMB.
        coefficients c = {adamw::coefficients_of(adamw_of(options), 1.0, update),
                          static_cast<float>(learning_rate)};
        if (!options.grad_averaging) c.adamw.one_minus_beta1 = 1.0F;
        if (!options.bias_correction) c.adamw.rate = c.adamw.inverse_bias = 1.0F;
        return c;
    }
    /// Without the correction a mean is what it is.
    MP_HOST_DEVICE static double bias(const lamb_options& options, std::size_t state, std::uint64_t updates) {
        return options.bias_correction ? adamw::bias(adamw_of(options), state, updates) : 1.0;
    }
    MP_HOST_DEVICE static coefficients of_divided_means(const lamb_options& options, double learning_rate,
                                                        std::uint64_t update) {
        coefficients c = coefficients_of(options, learning_rate, update);
        if (!options.bias_correction) return c;
        const double weight = options.grad_averaging ? double_subtract(1.0, options.beta1) : 1.0;
        c.adamw = adamw::divided_means(c.adamw, adamw_of(options), 1.0, weight,
                                       double_subtract(1.0, options.beta2), update);
        return c;
    }
    MP_HOST_DEVICE static bool adapts(const lamb_options& options) {
        return options.use_nvlamb || options.weight_decay > 0.0;
    }
    MP_HOST_DEVICE static double trust_ratio(const lamb_options& /*options*/, double /*learning_rate*/,
                                             double weight_norm, double update_norm) {
        return double_divide(weight_norm, update_norm);
    }
    MP_HOST_DEVICE static coefficients with_trust_ratio(coefficients c, double learning_rate, double ratio) {
        c.rate = finite_float(double_multiply(learning_rate, ratio));
        return c;
    }

private:
    using adamw = optimizer_traits<adamw_options>;
    MP_HOST_DEVICE static adamw_options adamw_of(const lamb_options& options) {
        return {.learning_rate = options.learning_rate,
                .beta1 = options.beta1,
                .beta2 = options.beta2,
                .epsilon = options.epsilon,
                .weight_decay = options.weight_decay,
                .coupled_decay = !options.adam_w_mode};
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What mp::lars and mp::lamb have in common: an update of an element that depends on its gradient, its weight, its
/// state, and on the trust ratio of its parameter, by the traits of Options. A parameter is a layer in the sense of the
/// papers. See grouped_optimizer for the options and optimizer_base for the types, the protocol and the precision.
///
/// A step reads parameters twice: for the norms, then for the update; it takes 16 bytes of memory for 4096 weights
/// besides. The norms are those of the weights in the precision in which they are trained and of gradients without
/// loss scale, clipped, summed in double in the order of <mp/nn/optim/kernels/square_sums.hpp>; the ratio is computed in
/// double. It is 1 where a norm is zero, or not finite.
template <class Options, class Weight, class Gradient, class Master, class State>
class layerwise_optimizer
    : public grouped_optimizer<layerwise_optimizer<Options, Weight, Gradient, Master, State>, Options, Weight,
                               Gradient, Master, State> {
    using base = grouped_optimizer<layerwise_optimizer, Options, Weight, Gradient, Master, State>;
    friend base;
    using traits = detail::optimizer_traits<Options>;

public:
    /// Norms of theirs are looked at, so that ranks cannot share a parameter.
    static constexpr bool needs_whole_parameters = true;

    using base::base;

    /// The trust ratio of a parameter in the last step of this object; 1 before the first.
    ///
    /// \throws argument_error  there is no such parameter
    [[nodiscard]] double trust_ratio(std::size_t index) const {
        static_cast<void>(base::parameter_name(index));  // throws
        return ratios_[index];
    }

private:
    void update(float inverse_scale) {
        const detail::default_floating_point_modes modes;
        base::set_coefficients(std::span(of_group_), std::span(of_parameter_));
        for (std::size_t i = 0; i < norms_.size(); ++i) {
            norms_[i] = {.wanted = traits::adapts(base::options(base::parameters()[i].group))};
        }
        base::measure_kernel(inverse_scale, std::span<const coefficients>(of_parameter_), std::span(sums_),
                             std::span(norms_));
        apply_trust_ratios();
        base::apply_kernel(inverse_scale, std::span<const coefficients>(of_parameter_));
        ratios_.swap(next_ratios_);
    }

    void apply_trust_ratios() {
        for (std::size_t i = 0; i < norms_.size(); ++i) {
            const std::size_t group = base::parameters()[i].group;
            next_ratios_[i] =
                detail::trust_ratio_of(base::options(group), base::learning_rate(group), norms_[i]);
            of_parameter_[i] =
                traits::with_trust_ratio(of_parameter_[i], base::learning_rate(group), next_ratios_[i]);
        }
    }

    using coefficients = typename traits::coefficients;
    std::vector<coefficients> of_group_ = std::vector<coefficients>(base::group_count());
    std::vector<coefficients> of_parameter_ = std::vector<coefficients>(base::parameters().size());
    std::vector<detail::layer_norms> norms_ = std::vector<detail::layer_norms>(base::parameters().size());
    std::vector<double> sums_ = std::vector<double>(base::norm_sums());
    std::vector<double> ratios_ = std::vector<double>(base::parameters().size(), 1.0);  // of the last step
    std::vector<double> next_ratios_ = ratios_;
};

/// LARS (You, Gitman and Ginsburg 2017, "Large Batch Training of Convolutional Networks"), as Apex's LARC around
/// torch.optim.SGD computes it. With gradient g, weight w, momentum buffer b of a parameter:
///
///     ratio = trust_coefficient * |w| / (|g| + weight_decay * |w| + epsilon)     1 where |w| or |g| is 0
///     g = ratio * (g + weight_decay * w)
///     b = momentum * b + (1 - dampening) * g                                     at the first update b = g
///     w = w - learning_rate * (nesterov ? g + momentum * b : momentum != 0 ? b : g)
///
/// With options.clip, the ratio is min(ratio / learning_rate, 1). Norms and ratio are computed in double, the ratio
/// rounded to float, elements in float; see layerwise_optimizer for the norms and mp::sgd for weights without a master
/// copy. Unlike Apex, weights decay where a norm is 0, too.
///
/// Biases and the weights of normalization are usually in a group without adaptation and decay:
///
///     mp::lars<mp::half> optimizer({{"weight", w, dw}, {"bias", b, db, 1}},
///                                  {{.learning_rate = 2.0, .weight_decay = 5e-5},
///                                   {.learning_rate = 2.0, .weight_decay = 0.0, .layer_adaptation = false}});
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lars : public layerwise_optimizer<lars_options, Weight, Gradient, Master, State> {
    using base = layerwise_optimizer<lars_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The momentum buffer of a parameter; empty without momentum.
    [[nodiscard]] std::span<const State> momentum(std::size_t index) const {
        return base::state_of("mp::lars::momentum", index, 0);
    }
};

/// LAMB (You et al. 2019, "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes") as Apex's
/// FusedLAMB computes it. With gradient g, weight w, means m and v of a parameter, at the t-th update:
///
///     m = beta1 * m + (1 - beta1) * g
///     v = beta2 * v + (1 - beta2) * g * g
///     u = m / (1 - beta1^t) / (sqrt(v) / sqrt(1 - beta2^t) + epsilon) + weight_decay * w
///     w = w - learning_rate * (|w| / |u|) * u
///
/// where the trust ratio |w| / |u| is 1 if a norm is 0, and without weight_decay unless there is use_nvlamb: biases and
/// the weights of normalization are usually in a group without decay. Options leave out the bias corrections, and the
/// 1 - beta1 (grad_averaging). With adam_w_mode off, g = g + weight_decay * w first, and u has no decay.
///
/// Norms and ratio are computed in double; the learning rate times the ratio is rounded to float, elements are computed
/// in float; see layerwise_optimizer for the norms, and mp::adamw for State and for weights without a master copy.
///
/// FusedLAMB clips the norm of all gradients to max_grad_norm = 1 by itself; here that is clip_gradient_norm:
///
///     mp::lamb<mp::half> optimizer({{"weight", w, dw}, {"bias", b, db, 1}},
///                                  {{.learning_rate = 6e-3}, {.learning_rate = 6e-3, .weight_decay = 0.0}});
///     mp::training_iteration iteration(scaler, optimizer);
///     ...
///     iteration.clip_global_gradient_norm(1.0);
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
class lamb : public layerwise_optimizer<lamb_options, Weight, Gradient, Master, State> {
    using base = layerwise_optimizer<lamb_options, Weight, Gradient, Master, State>;

public:
    using base::base;

    /// The mean of the gradients of a parameter, m.
    [[nodiscard]] std::span<const State> gradient_mean(std::size_t index) const {
        return base::state_of("mp::lamb::gradient_mean", index, 0);
    }

    /// The mean of the squares of the gradients of a parameter, v.
    [[nodiscard]] std::span<const State> gradient_mean_square(std::size_t index) const {
        return base::state_of("mp::lamb::gradient_mean_square", index, 1);
    }
};

}}  // namespace mp
