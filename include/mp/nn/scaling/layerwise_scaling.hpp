// SPDX-License-Identifier: MIT
/// \file
/// Adaptive layer-wise loss scaling (R. Zhao, B. Vogel, T. Ahmed, "Adaptive loss scaling for mixed precision
/// training", arXiv 1910.12385): there is no global scale. Every layer of the backward pass multiplies the
/// gradient by a power of two that follows from its statistics, the gradient carries the product of these
/// factors, and gradients of weights are divided by it at once. No step is skipped.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/base/visit_members.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/tensor_statistics.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/binary_conversion.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The x with erf(x) = y: within 4 units in the last place for |y| up to 1 - 2^-53, the last double below
/// one, and the same bits everywhere. Infinite for 1 and -1, and NaN for what is beyond or NaN.
///
/// x / y is a smooth function of w = -log(1 - y^2) near zero, and of its root far away (M. Giles,
/// "Approximating the erfinv function", 2010): here by polynomials through the Chebyshev nodes of three
/// intervals, with errors below 2^-53.
[[nodiscard]] inline double erfinv(double y) noexcept {
    using number = detail::rounded_doubles<1>;
    const detail::default_floating_point_modes modes;
    y = modes.held(y);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double half_root_pi = 0.88622692545275801365;
    const double magnitude = y < 0.0 ? -y : y;
    if (!(magnitude <= 1.0)) return std::numeric_limits<double>::quiet_NaN();
    if (magnitude >= 1.0) return y < 0.0 ? -infinity : infinity;
    // The next term is pi / 12 y^2 of it.
    if (magnitude < 1e-9) return modes.held((number(half_root_pi) * y).value());
    const number below_one = number(1.0) - magnitude;  // exact where it matters, from 1/2 on
    const double w = -detail::double_log((below_one * (number(1.0) + magnitude)).value());
    number quotient = 0.0;
    if (w < 6.25) {
        quotient = detail::polynomial_of(
            number(w) - 3.125, 0x1.a755e7c99ae86p+0, 0x1.ebd80d9b13df9p-3, -0x1.8b6c33114eeaep-8,
            -0x1.84576948353e1p-11, 0x1.879c2a20da432p-13, -0x1.d1d1f7ca4030fp-17, -0x1.6e8a53f106129p-20,
            0x1.c6b4f890935ddp-22, -0x1.f36ce4ae847fdp-26, -0x1.1a9eb1bc8f0f0p-28, 0x1.20f4e6bf074cfp-30,
            -0x1.dc3ee8b6c53ccp-35, -0x1.c89564c5d1004p-37, 0x1.723527b7cff86p-39, -0x1.6d9ec5e3ec6afp-44,
            -0x1.686642b67610ap-45, 0x1.db523eb040288p-48, -0x1.73898c37dc54ap-55, -0x1.2c266176e7096p-53,
            0x1.1f4ba5de5dc3fp-56, 0x1.536d397f9b9b1p-60, -0x1.9d290dd3bcb70p-62, -0x1.5087a244b0f6cp-70,
            0x1.e9b8ae7230c25p-69);
    } else if (w < 16.0) {
        quotient = detail::polynomial_of(
            number(detail::double_sqrt(w)) - 3.25, 0x1.8abcc380d5a48p+1, 0x1.0158a6d641d54p+0,
            0x1.5ffcfe5b71831p-8, -0x1.ebadabb9fd945p-9, 0x1.468eeca71fc73p-9, -0x1.ba9240d9b7431p-10,
            0x1.f3cc552091e2bp-11, -0x1.7448bc8217f18p-12, 0x1.932d7684a6a52p-16, 0x1.1e6ab36be6c27p-14,
            -0x1.8cf0bea0971c6p-15, 0x1.a242f876789c6p-17, 0x1.88af4a1d56a98p-19, -0x1.0b8068913d37bp-18,
            0x1.924ec74d8058bp-20, -0x1.cfedcff902170p-26, -0x1.235ac6aaf025ep-22, 0x1.1969ef2a93940p-23,
            0x1.7f235c757454ep-31, -0x1.03765b5ec5c93p-26);
    } else {
        quotient = detail::polynomial_of(
            number(detail::double_sqrt(w)) - 5.005, 0x1.36b7a1573eaf2p+2, 0x1.02a2f594aca20p+0,
            -0x1.29a7e9552a60ap-13, -0x1.bfc60f1cccf6ap-13, 0x1.3cb0cc3a27ce9p-14, -0x1.47ef9dcb80373p-16,
            0x1.2d6aa1edd8dc7p-18, -0x1.081efcf6c8fc1p-20, 0x1.e56cfd0023c1bp-23, -0x1.1c027d2af6f07p-24,
            0x1.e4663ddaa9f97p-26, -0x1.fc437123e0c77p-27, 0x1.04e4feb9c3c3ep-27, -0x1.d092bea95aba3p-29,
            0x1.625a134c8c8f2p-30, -0x1.db0e15a5414cdp-32, 0x1.34001e0171ae4p-34, 0x1.699dcca0a93f2p-35,
            -0x1.5a60cd00c0f4dp-36);
    }
    return modes.held((number(y) * quotient).value());
}

}}  // namespace mp

namespace mp {

/// A gradient and the product of the factors that it carries. Values can be a container or a span.
template <class Values>
struct scaled_tensor {
    Values values;
    float scale = 1.0F;  ///< a power of two: the true gradient is values / scale
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr void require_accumulated(std::string_view function, std::string_view argument, float scale) {
    if (is_non_finite(scale) || !(scale > 0.0F)) {
        throw_argument(function, argument, scale, "must be finite and greater than 0");
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Multiplies a tensor by a power of two, in place and on its tag. Exact except for what underflows or
/// overflows.
///
/// \throws argument_error  the factor is not finite and positive, the scale would not be a finite positive
///                         float, null with a size other than zero, or fewer than one thread
template <class Values>
    requires detail::gradient_range<Values>
void multiply_scale(cpu exec, scaled_tensor<Values>& tensor, float factor) {
    using value = detail::element_value<Values>;
    constexpr std::string_view function = "mp::multiply_scale";
    const std::span values = detail::as_span(tensor.values);
    detail::check_threads(function, exec);
    detail::require_memory(function, "tensor.values.data()", values.data(), values.size());
    detail::require_accumulated(function, "factor", factor);
    const double scale = static_cast<double>(tensor.scale) * static_cast<double>(factor);
    if (detail::is_non_finite(scale) || !(scale >= 0x1p-126 && scale < detail::float_overflow_threshold)) {
        detail::throw_argument(function, "tensor.scale * factor", scale, "must be a positive normal float");
    }
    if (!detail::same_value(factor, 1.0F)) {
        detail::parallel_for(
            exec, values.size(), detail::unscale_grain, [&](std::size_t begin, std::size_t end) {
                const detail::default_floating_point_modes modes;
                constexpr std::size_t chunk = 256;
                double wide[chunk];
                for (std::size_t at = begin; at < end; at += chunk) {
                    const std::size_t count = (std::min)(chunk, end - at);
                    const value* from = values.data() + at;
                    detail::convert_nearest(detail::conversion_isa(), from, wide, count);
                    for (std::size_t i = 0; i < count; ++i) {
                        wide[i] *= static_cast<double>(factor);
                    }
                    detail::convert_nearest(detail::conversion_isa(), wide, values.data() + at, count);
                }
            });
    }
    tensor.scale = static_cast<float>(scale);
}

/// Takes the scale out of the gradient of a layer's weights (or bias) as soon as it is computed: it was
/// computed from a gradient that carries `accumulated`, and optimizers see the true one. In float, since what
/// underflowed before would do so again.
///
/// \throws argument_error  accumulated is not finite and positive, or as unscale_and_check
template <detail::gradient_range Gradients, detail::writable_float_range Unscaled>
non_finite_report unscale_weight_gradient(cpu exec, const Gradients& gradients, Unscaled&& unscaled,
                                          float accumulated) {
    detail::require_accumulated("mp::unscale_weight_gradient", "accumulated", accumulated);
    return unscale_and_check(exec, gradients, unscaled, inverse_of_scale(accumulated));
}

/// How the factor of a layer is found.
enum class layerwise_method : unsigned char {
    /// From mean and deviation: as large as is needed for few of the outgoing gradients to underflow, if they
    /// are normally distributed; bounded. The method of the paper.
    approx_range,
    /// From the extremes: as large as is needed for the product of the least magnitudes not to underflow,
    /// but not so large that fan_in products of the largest overflow. No other bounds.
    abs_range,
    fixed  ///< layerwise_options::fixed_factor, whatever the gradient
};

/// The constants of the method, with the values of the authors' code.
///
/// Source: ada_loss/core.py and ada_loss/chainer_impl/ada_loss_chainer.py of kumasento/gradient-scaling.
struct layerwise_options {
    layerwise_method method = layerwise_method::approx_range;
    double underflow_probability = 1e-3;  ///< the share of underflows that is allowed; strictly in (0, 1)
    double smallest_number = 6e-8;        ///< what is smaller has underflowed; about half's 2^-24
    double largest_number = 65504.0;      ///< what is larger has overflowed: half's largest number
    /// The share of products that a ReLU leaves, in (0, 1]: the deviation of a sum grows as the root of
    /// their number.
    double relu_share = 0.5;
    bool bounded = true;                ///< whether the next two bounds apply (to approx_range)
    double accumulated_bound = 1024;    ///< of the product of all factors; positive
    double factor_bound = 16.0;         ///< of the factor of one layer; positive
    double fixed_factor = 1.0;          ///< positive; rounded down to a power of two
    std::int32_t update_interval = 1;   ///< iterations between two looks at the statistics; at least 1
    double least_common_scale = 0.125;  ///< how far a join of branches goes down; positive

    friend constexpr bool operator==(const layerwise_options&, const layerwise_options&) = default;

    /// Throws mp::argument_error, naming parameter and value, if one makes no sense.
    constexpr void validate() const {
        constexpr std::string_view function = "mp::layerwise_options";
        if (detail::is_non_finite(underflow_probability) ||
            !(underflow_probability > 0.0 && underflow_probability < 1.0)) {
            detail::throw_argument(function, "underflow_probability", underflow_probability,
                                   "must be greater than 0 and less than 1");
        }
        require_positive(function, "smallest_number", smallest_number);
        require_positive(function, "largest_number", largest_number);
        if (!(largest_number > smallest_number)) {
            detail::throw_argument(
                function, "largest_number", largest_number,
                "must be greater than smallest_number, which is " + detail::error_text(smallest_number));
        }
        require_positive(function, "relu_share", relu_share);
        if (!(relu_share <= 1.0)) {
            detail::throw_argument(function, "relu_share", relu_share, "must be at most 1");
        }
        require_positive(function, "accumulated_bound", accumulated_bound);
        require_positive(function, "factor_bound", factor_bound);
        require_positive(function, "fixed_factor", fixed_factor);
        require_positive(function, "least_common_scale", least_common_scale);
        detail::require_counter(function, "update_interval", update_interval, 1);
    }

    MP_VISITS_MEMBERS(method, underflow_probability, smallest_number, largest_number, relu_share, bounded,
                      accumulated_bound, factor_bound, fixed_factor, update_interval, least_common_scale)

private:
    static constexpr void require_positive(std::string_view function, std::string_view argument,
                                           double value) {
        if (detail::is_non_finite(value) || !(value > 0.0)) {
            detail::throw_argument(function, argument, value, "must be finite and greater than 0");
        }
    }
};

/// Reason of a factor.
enum class layerwise_limit : unsigned char {
    underflow,          ///< no bound: it is as large as few underflows ask for
    one,                ///< nothing underflows that matters: at least 1
    overflow,           ///< a larger one could overflow; it may be less than 1
    accumulated_bound,  ///< layerwise_options::accumulated_bound
    factor_bound,       ///< layerwise_options::factor_bound
    fixed,              ///< the method is fixed
    no_gradient,        ///< gradient or weights are zero everywhere, and the factor is 1 or a bound below it
    non_finite          ///< the gradient has infinities or NaNs: the factor is 1, and they go on their way
};

/// The factor of a layer, and why.
struct layerwise_decision {
    float factor = 1.0F;  ///< a power of two; what the incoming gradient is to be multiplied by
    double wanted = 1.0;  ///< before all bounds but that of overflow, and before rounding down
    layerwise_limit limit = layerwise_limit::one;

    friend constexpr bool operator==(const layerwise_decision&, const layerwise_decision&) = default;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The largest power of two that is at most x > 0, as a float, within 2^-126 and 2^127.
constexpr float power_of_two_at_most(double x) {
    const int exponent = static_cast<int>(bit_cast<std::uint64_t>(x) >> 52) - 1023;
    return power_of_two<float>(exponent < -126 ? -126 : exponent > 127 ? 127 : exponent);
}

/// A factor before the bounds that depend on what the gradient carries.
struct unbounded_factor {
    double value = 1.0;
    layerwise_limit limit = layerwise_limit::no_gradient;
};

/// At least 1, but not so large that `largest` overflows, which goes first.
constexpr unbounded_factor factor_in_range(double wanted, double largest_number, double largest) {
    unbounded_factor result{wanted, layerwise_limit::underflow};
    if (!(wanted > 1.0)) result = {1.0, layerwise_limit::one};
    const double overflows = double_divide(largest_number, largest);
    if (overflows < result.value) result = {overflows, layerwise_limit::overflow};
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The scaler of one layer: keeps the factor between updates, so every layer has its own.
///
/// At a layer with the incoming gradient g, which carries the scale A, and weights W:
///
///     mp::scaled_tensor<std::span<mp::half>> g{...};     // carries A
///     // The gradient of the weights first, from the gradient as it came in:
///     mp::unscale_weight_gradient(mp::cpu{}, product_of_x_and_g, weight_gradient, g.scale);
///     const auto decision = scaler.decide(mp::measure_statistics(mp::cpu{}, g.values),
///                                         mp::measure_statistics(mp::cpu{}, w), fan_in, g.scale);
///     // Then the gradient of the input, with the factor in the matrix product, where it is rounded once:
///     mp::gemm(mp::cpu{}, decision.factor, g_matrix, w_matrix, 0.0F, next_matrix);
///     next.scale = g.scale * decision.factor;
///
/// or scale(exec, g, w, fan_in), which measures, decides and multiplies g in place; a large gradient with
/// small weights can overflow there, before the weights make it smaller.
///
/// Not safe to be used by several threads at once.
class layerwise_scaler {
public:
    /// The state to save.
    struct state_type {
        std::int64_t iteration = 0;  ///< decisions so far
        double factor = 1.0;         ///< of the last look at the statistics, before the bounds
        layerwise_limit limit = layerwise_limit::one;

        friend constexpr bool operator==(const state_type&, const state_type&) = default;

        MP_VISITS_MEMBERS(iteration, factor, limit)
    };

    /// \throws argument_error  an option makes no sense
    explicit layerwise_scaler(const layerwise_options& options = {})
        : options_((options.validate(), options)),
          threshold_(detail::in_default_modes([&] { return threshold_of(options); })) {}

    [[nodiscard]] const layerwise_options& options() const noexcept { return options_; }
    [[nodiscard]] const state_type& state() const noexcept { return state_; }
    /// Continues from a saved state.
    ///
    /// \throws argument_error  the state makes no sense
    void set_state(const state_type& state) {
        detail::require_counter("mp::layerwise_scaler::set_state", "state.iteration", state.iteration, 0);
        if (detail::is_non_finite(state.factor) || !(state.factor > 0.0)) {
            detail::throw_argument("mp::layerwise_scaler::set_state", "state.factor", state.factor,
                                   "must be finite and greater than 0");
        }
        state_ = state;
    }
    /// For mp::save_checkpoint and mp::load_checkpoint.
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        visitor("state", state_);
    }
    /// Whether the next decision looks at statistics. If not, they need not be measured: tensor_statistics{}
    /// will do, and the factor of the last look is bounded anew.
    [[nodiscard]] bool is_due() const noexcept {
        return options_.method != layerwise_method::fixed && state_.iteration % options_.update_interval == 0;
    }

    /// The factor of a layer that multiplies the gradient by weights.
    ///
    /// \param gradient     of the incoming gradient, as it comes in
    /// \param weights      of the weights
    /// \param fan_in       products that are summed for one value of the outgoing gradient: output features
    ///                     of a linear layer, output channels times kernel area of a convolution
    /// \param accumulated  the scale that the incoming gradient carries
    /// \throws argument_error  fan_in is not finite and at least 1, or accumulated not finite and positive
    layerwise_decision decide(const tensor_statistics& gradient, const tensor_statistics& weights,
                              double fan_in, float accumulated) {
        constexpr std::string_view function = "mp::layerwise_scaler::decide";
        if (detail::is_non_finite(fan_in) || !(fan_in >= 1.0)) {
            detail::throw_argument(function, "fan_in", fan_in, "must be finite and at least 1");
        }
        detail::require_accumulated(function, "accumulated", accumulated);
        return decided(gradient, accumulated, [&] {
            return options_.method == layerwise_method::abs_range ? by_extremes(gradient, weights, fan_in)
                                                                  : by_deviation(gradient, weights, fan_in);
        });
    }

    /// The factor of an operation without weights, for which the gradient itself must not underflow. If
    /// `logarithms` (of measure_logarithms) is given, the magnitudes are taken to be distributed
    /// lognormally, and otherwise the values normally. abs_range looks at the least magnitude instead.
    ///
    /// \throws argument_error  accumulated is not finite and positive
    layerwise_decision decide(const tensor_statistics& gradient, float accumulated,
                              const tensor_statistics* logarithms = nullptr) {
        detail::require_accumulated("mp::layerwise_scaler::decide", "accumulated", accumulated);
        return decided(gradient, accumulated, [&] { return without_weights(gradient, logarithms); });
    }

    /// Measures if that is due, decides, and multiplies the gradient in place.
    ///
    /// \throws argument_error  as decide and measure_statistics
    template <class Values, detail::gradient_range Weights>
    layerwise_decision scale(cpu exec, scaled_tensor<Values>& gradient, const Weights& weights,
                             double fan_in) {
        const bool measures = is_due();
        const layerwise_decision decision =
            measures ? decide(measure_statistics(exec, gradient.values), measure_statistics(exec, weights),
                              fan_in, gradient.scale)
                     : decide({}, {}, fan_in, gradient.scale);
        multiply_scale(exec, gradient, decision.factor);
        return decision;
    }

private:
    static constexpr double root_two = 0x1.6a09e667f3bcdp+0;

    static double threshold_of(const layerwise_options& options) {
        return (detail::rounded_doubles<1>(erfinv(options.underflow_probability)) * root_two).value();
    }

    /// What find() makes of the statistics, where that is due, and the bounds; in the default modes.
    template <class Find>
    layerwise_decision decided(const tensor_statistics& gradient, float accumulated, Find find) {
        return detail::in_default_modes(
            [&] { return decided_in_default_modes(gradient, accumulated, find); });
    }
    template <class Find>
    layerwise_decision decided_in_default_modes(const tensor_statistics& gradient, float accumulated,
                                                const Find& find) {
        if (options_.method == layerwise_method::fixed) {
            ++state_.iteration;
            return {detail::power_of_two_at_most(options_.fixed_factor), options_.fixed_factor,
                    layerwise_limit::fixed};
        }
        if (is_due()) {
            if (gradient.non_finite != 0) {
                // What is kept stays, and the next iteration looks again.
                return {1.0F, 1.0, layerwise_limit::non_finite};
            }
            const detail::unbounded_factor found = find();
            state_.factor = found.value;
            state_.limit = found.limit;
        }
        ++state_.iteration;
        return bounded(accumulated);
    }

    [[nodiscard]] layerwise_decision bounded(float accumulated) const {
        double factor = state_.factor;
        layerwise_limit limit = state_.limit;
        if (options_.bounded && options_.method == layerwise_method::approx_range) {
            const double accumulated_bound =
                detail::double_divide(options_.accumulated_bound, static_cast<double>(accumulated));
            if (accumulated_bound < factor) {
                factor = accumulated_bound;
                limit = layerwise_limit::accumulated_bound;
            }
            if (options_.factor_bound < factor) {
                factor = options_.factor_bound;
                limit = layerwise_limit::factor_bound;
            }
        }
        return {detail::power_of_two_at_most(factor), state_.factor, limit};
    }

    [[nodiscard]] detail::unbounded_factor by_deviation(const tensor_statistics& g,
                                                        const tensor_statistics& w, double fan_in) const {
        // The deviation of a product of independent values, the mean of which is taken for 0.
        using number = detail::rounded_doubles<1>;
        const auto square = [](const tensor_statistics& it) {
            return number(it.variance()) + number(it.mean) * it.mean;
        };
        const double variance = (square(g) * square(w)).value();
        if (!(variance > 0.0)) return {};
        const double deviation = (number(detail::double_sqrt(variance)) *
                                  detail::double_sqrt((number(options_.relu_share) * fan_in).value()))
                                     .value();
        // P(|N(0, factor * deviation)| < smallest) = probability.
        const number wanted = number(options_.smallest_number) / (number(deviation) * threshold_);
        return in_range_of_sums(wanted.value(), g, w, fan_in);
    }
    [[nodiscard]] detail::unbounded_factor by_extremes(const tensor_statistics& g, const tensor_statistics& w,
                                                       double fan_in) const {
        if (!(g.least_magnitude > 0.0 && w.least_magnitude > 0.0)) return {};
        constexpr double least_product =
            1e-15;  // what is smaller is not worth the scale that it would ask for
        using number = detail::rounded_doubles<1>;
        const double least =
            (std::max)((number(g.least_magnitude) * w.least_magnitude).value(), least_product);
        const number wanted = number(options_.smallest_number) / fan_in / least;
        return in_range_of_sums(wanted.value(), g, w, fan_in);
    }
    [[nodiscard]] detail::unbounded_factor in_range_of_sums(double wanted, const tensor_statistics& g,
                                                            const tensor_statistics& w, double fan_in) const {
        return detail::factor_in_range(wanted, detail::double_divide(options_.largest_number, fan_in),
                                       detail::double_multiply(g.largest_magnitude(), w.largest_magnitude()));
    }
    [[nodiscard]] detail::unbounded_factor without_weights(const tensor_statistics& g,
                                                           const tensor_statistics* logarithms) const {
        if (!(g.least_magnitude > 0.0)) return {};
        using number = detail::rounded_doubles<1>;
        double wanted = 1.0;
        if (options_.method == layerwise_method::abs_range) {
            wanted = detail::double_divide(options_.smallest_number, g.least_magnitude);
        } else if (logarithms != nullptr) {
            // P(ln |factor * g| < ln smallest) = probability.
            const number smallest = detail::double_log(options_.smallest_number);
            const number distance = number(logarithms->deviation()) * root_two *
                                    erfinv((number(2.0) * options_.underflow_probability - 1.0).value());
            wanted = detail::exponential(smallest - logarithms->mean - distance).value();
        } else {
            if (!(g.variance() > 0.0)) return {};
            wanted = (number(options_.smallest_number) / (number(g.deviation()) * threshold_)).value();
        }
        return detail::factor_in_range(wanted, options_.largest_number, g.largest_magnitude());
    }

    layerwise_options options_;
    double threshold_;  // erfinv(probability) sqrt(2)
    state_type state_;
};

/// Brings branches that meet to one common scale, so that their values can be added: the largest scale that
/// one of them carries and that makes no value of any overflow; failing that the smallest one halved until it
/// does, but not below layerwise_options::least_common_scale. The sum may still overflow. Values are
/// multiplied in place.
///
/// \returns the common scale
/// \throws argument_error  there is no branch, a scale is not finite and positive, or as multiply_scale
/// \throws scale_error     there is no such scale, for example because a branch has an infinity or a NaN
template <class Values>
    requires detail::gradient_range<Values>
float join_branches(cpu exec, std::span<scaled_tensor<Values>> branches,
                    const layerwise_options& options = {}) {
    constexpr std::string_view function = "mp::join_branches";
    options.validate();
    if (branches.empty()) detail::throw_argument(function, "branches.size()", 0, "must be at least 1");
    double largest = 0.0;  // of all true gradients
    bool finite = true;
    for (const scaled_tensor<Values>& branch : branches) {
        detail::require_accumulated(function, "branches[].scale", branch.scale);
        const float mine = amax(exec, branch.values);
        finite = finite && !detail::is_non_finite(mine);
        largest = (std::max)(largest, detail::in_default_modes([&] {
                                 return detail::double_divide(static_cast<double>(mine),
                                                              static_cast<double>(branch.scale));
                             }));
    }
    const auto fits = [&](double scale) {
        return finite && detail::in_default_modes([&] {
                   return detail::double_multiply(largest, scale) < options.largest_number;
               });
    };
    float common = 0.0F;
    float least = branches[0].scale;
    for (const scaled_tensor<Values>& branch : branches) {
        least = (std::min)(least, branch.scale);
        if (fits(static_cast<double>(branch.scale))) common = (std::max)(common, branch.scale);
    }
    while (!(common > 0.0F) && static_cast<double>(least) >= options.least_common_scale) {
        if (fits(static_cast<double>(least))) common = least;
        least *= 0.5F;
    }
    if (!(common > 0.0F)) {
        detail::throw_joined<scale_error>({"mp::join_branches: no common scale of at least ",
                                           detail::error_text(options.least_common_scale),
                                           " keeps the branches from overflowing; the largest gradient is ",
                                           finite ? detail::error_text(largest) : std::string("not finite")});
    }
    for (scaled_tensor<Values>& branch : branches) multiply_scale(exec, branch, common / branch.scale);
    return common;
}

}}  // namespace mp
