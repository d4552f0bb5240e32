// SPDX-License-Identifier: MIT
/// \file
/// Arguments that are often mistaken: constructors that take them do not compile, and say what is meant. Without them
/// a compiler lists its candidates, since a list in braces that fits no parameter has no type to complain of.
///
///     template <class Words = detail::optimizer_words>
///         requires std::same_as<Words, detail::optimizer_words>
///     optimizer(std::vector<parameter_type> parameters, const Words&)
///         : optimizer(parameters, detail::instead_of_optimizer_words<Words, Options>()) {}
///
/// Words is the default, because nothing can be deduced from a list in braces; and whatever fits the constructor that is
/// no template is passed to that one.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mp::detail {

/// What the constructors of torch.optim and Apex call their options, and what that is called here, in an order that
/// holds both.
struct optimizer_words {
    struct any_numbers {
        constexpr any_numbers(double /*one*/ = 0) {}
        constexpr any_numbers(double /*first*/, double /*second*/) {}
    };
    double lr = 0;
    double learning_rate = 0;
    double momentum = 0;
    double dampening = 0;
    any_numbers betas = {};
    double beta1 = 0;
    double beta2 = 0;
    double beta2_decay = 0;
    any_numbers eps = {};
    double epsilon = 0;
    double d = 0;
    double clip_threshold = 0;
    double weight_decay = 0;
    bool nesterov = false;
    double trust_coefficient = 0;
    bool clip = false;
    bool bias_correction = true;
    bool amsgrad = false;
    bool adam_w_mode = true;
    bool grad_averaging = true;
    double max_grad_norm = 0;
    bool use_nvlamb = false;
    bool maximize = false;
};

/// What torch.amp.GradScaler calls its parameters, and what that is called here.
struct scaler_words {
    double init_scale = 0;
    double initial_scale = 0;
    double growth_factor = 0;
    double backoff_factor = 0;
    long long growth_interval = 0;
    bool enabled = true;
};

/// A parameter of an optimizer whose weights and gradient may be anything.
struct any_parameter {
    struct any_array {
        constexpr any_array() = default;
        template <class Array>
        constexpr any_array(const Array& /*array*/) {}
    };
    std::string_view name = {};
    any_array weights = {};
    any_array gradient = {};
    std::size_t group = 0;
    std::size_t rows = 0;
};

/// Parameters in braces, or a vector of those that another optimizer takes.
template <class Parameters, class Own>
concept mistaken_parameters =
    std::same_as<Parameters, std::vector<any_parameter>> ||
    (!std::same_as<Parameters, std::vector<Own>> && requires(typename Parameters::value_type parameter) {
        parameter.weights;
        parameter.gradient;
    });

/// False, but only once a template is instantiated.
template <class>
inline constexpr bool refused = false;

/// What a constructor passes on in place of a mistaken argument: nothing that compiles.
template <class Words, class Result>
Result instead_of_optimizer_words() {
    static_assert(
        refused<Words>,
        "an optimizer's options have these names in mp: learning_rate for lr, beta1 and beta2 for betas, "
        "epsilon for eps, clip_threshold for d, clip_gradient_norm for max_grad_norm; where torch has "
        "maximize, "
        "negate the loss");
    return {};
}
template <class Words, class Result>
Result instead_of_scaler_words() {
    static_assert(
        refused<Words>,
        "a loss scaler's parameters have these names in mp: initial_scale for init_scale; enabled is the "
        "argument after them");
    return {};
}
template <class Parameters, class Result>
Result instead_of_parameters() {
    static_assert(
        refused<Parameters>,
        "the weights or gradient of a parameter have another type than the optimizer's: name both, as in "
        "mp::adamw<Weight, Gradient>, and pass arrays that it may write to");
    return {};
}

}  // namespace mp::detail
