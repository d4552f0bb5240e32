// SPDX-License-Identifier: MIT
/// \file
/// Gradients against central differences in double. Needs no Boost.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/number_text.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// Of check_gradients().
struct gradient_check_options {
    /// Half the distance of the two losses, gradcheck's eps, finite and positive; 0 for cbrt(2^-52) max(|x|,
    /// 1), which balances rounding and truncation.
    double step = 0;
    /// Elements of each array that are looked at, one at random in each of as many equal sections; 0 for all.
    std::size_t samples = 0;
    std::uint64_t seed = 0;  ///< of the choice, by Philox
    /// Gradients below it are compared absolutely: tolerance * floor is gradcheck's atol. Finite and
    /// positive.
    double floor = 1e-3;
};

/// Errors of the gradient of one array against differences.
struct gradient_comparison {
    std::string name;
    std::size_t size = 0;     ///< of the array
    std::size_t checked = 0;  ///< elements that were looked at
    /// Largest |a - n| / max(|a|, |n|, floor), a being the gradient and n the difference; infinity where a
    /// gradient is not finite.
    double max_relative = 0;
    double norm_relative = 0;  ///< Euclidean norm of all a - n over that of all n (or over floor)
    std::size_t worst_index = 0;
    double worst_gradient = 0;    ///< a there
    double worst_difference = 0;  ///< n there
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// One array of parameters, or inputs, with the gradient that is to be checked.
struct checked_gradient {
    std::string name = {};          ///< what the report calls it by
    std::span<double> values = {};  ///< what the loss depends on; changed while it is called, and put back
    std::vector<double> gradient = {};  ///< of each value

    checked_gradient() = default;
    /// The gradient is any range of numbers, of a half or bfloat16 run as well, of which every value is exact
    /// in double. It is copied, so the loss may run backward passes that write over it.
    template <std::ranges::input_range Gradient>
        requires number<std::ranges::range_value_t<Gradient>>
    checked_gradient(std::string of, std::span<double> where, const Gradient& computed)
        : name(std::move(of)), values(where) {
        for (const auto x : computed) gradient.push_back(detail::as<double>(x));
    }
    /// The same from mp::parameter<double, Gradient>, of which mp::parameter_store<double>::parameters() has
    /// a vector.
    template <class Parameter>
        requires requires(const Parameter& it) {
            { it.weights } -> std::convertible_to<std::span<double>>;
            { it.name } -> std::convertible_to<std::string>;
            it.gradient;
        }
    checked_gradient(const Parameter& of) : checked_gradient(of.name, of.weights, of.gradient) {}
};

/// Result of check_gradients(), array by array; there is at least one.
struct gradient_check_report {
    std::vector<gradient_comparison> arrays;

    /// The array with the largest error.
    [[nodiscard]] const gradient_comparison& worst() const {
        return *std::max_element(arrays.begin(), arrays.end(), [](const auto& a, const auto& b) {
            return a.max_relative < b.max_relative;
        });
    }
    /// Whether no element is further from its difference than this: gradcheck's rtol.
    [[nodiscard]] bool passed(double tolerance) const { return worst().max_relative <= tolerance; }
    /// As passed(), for the norms of whole arrays: for gradients of narrow formats, of which elements that
    /// all but cancel have no digits.
    [[nodiscard]] bool norms_passed(double tolerance) const {
        return std::all_of(arrays.begin(), arrays.end(), [tolerance](const gradient_comparison& it) {
            return it.norm_relative <= tolerance;
        });
    }
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Puts a value back when it goes out of scope.
class [[nodiscard]] kept_value {
public:
    [[nodiscard]] explicit kept_value(double& value) : value_(value), kept_(value) {}
    kept_value(const kept_value&) = delete;
    kept_value& operator=(const kept_value&) = delete;
    ~kept_value() { value_ = kept_; }

private:
    double& value_;
    double kept_;
};

/// Whether a and b have the same bits.
inline bool same_bits(double a, double b) {
    return bit_cast<std::uint64_t>(a) == bit_cast<std::uint64_t>(b);
}

inline void check_gradient_arrays(std::string_view function, std::span<const checked_gradient> arrays,
                                  const gradient_check_options& options) {
    if (arrays.empty()) throw_argument(function, "arrays.size()", arrays.size(), "must be at least 1");
    if (!isfinite(options.step) || options.step < 0) {
        throw_argument(function, "options.step", options.step, "must be finite and positive, or 0");
    }
    if (!isfinite(options.floor) || !(options.floor > 0)) {
        throw_argument(function, "options.floor", options.floor, "must be finite and positive");
    }
    for (const checked_gradient& it : arrays) {
        const std::string of = "of '" + it.name + "'";
        if (it.values.empty()) throw_argument(function, "values.size() " + of, 0, "must be at least 1");
        if (it.gradient.size() != it.values.size()) {
            throw_argument(function, "gradient.size() " + of, it.gradient.size(),
                           "must equal values.size(), which is " + error_text(it.values.size()));
        }
        for (std::size_t i = 0; i < it.values.size(); ++i) {
            if (isfinite(it.values[i])) continue;
            throw_argument(function, "values[" + error_text(i) + "] " + of, it.values[i], "must be finite");
        }
    }
}

/// loss() where it must be finite.
template <class Loss>
double finite_loss(std::string_view function, Loss& loss, std::string_view where) {
    const auto value = as<double>(loss());
    if (!isfinite(value)) throw_argument(function, "loss() " + std::string(where), value, "must be finite");
    return value;
}

/// The central difference of the loss in a value, which is as before afterwards.
template <class Loss>
double central_difference(std::string_view function, Loss& loss, double& value, double step,
                          std::string_view where) {
    constexpr double cube_root_of_epsilon = 0x1.965fea53d6e3dp-18;
    const auto modes = [](auto f) { return in_default_modes(f); };
    const kept_value kept(value);
    const double before = value;
    const double h = step > 0 ? step : modes([before] {
        const double magnitude = rounded_doubles<1>(before).magnitude().value();
        return double_multiply(cube_root_of_epsilon, magnitude > 1 ? magnitude : 1.0);
    });
    const double above = modes([=] { return double_add(before, h); });
    const double below = modes([=] { return double_subtract(before, h); });
    value = above;
    const double loss_above = finite_loss(function, loss, where);
    value = below;
    const double loss_below = finite_loss(function, loss, where);
    // What rounding has made of the distance, so that it is no error of the quotient.
    return modes([=] {
        return double_divide(double_subtract(loss_above, loss_below), double_subtract(above, below));
    });
}

/// Compares one array; `drawn` counts random numbers over all of them.
template <class Loss>
gradient_comparison compare_gradient(std::string_view function, Loss& loss, const checked_gradient& it,
                                     const gradient_check_options& options, std::uint64_t& drawn) {
    using number = rounded_doubles<1>;
    gradient_comparison result;
    result.name = it.name;
    result.size = it.values.size();
    result.checked = options.samples == 0 ? result.size : (std::min)(options.samples, result.size);
    const std::size_t section = result.size / result.checked;
    const std::size_t longer = result.size % result.checked;  // the first ones, by one element
    number squared_error = 0.0;
    number squares = 0.0;
    for (std::size_t i = 0; i < result.checked; ++i) {
        const std::size_t length = section + (i < longer ? 1 : 0);
        std::size_t index = i * section + (std::min)(i, longer);
        if (length > 1) index += random_bits(options.seed, drawn++) % length;
        const std::string where = "near values[" + error_text(index) + "] of '" + it.name + "'";
        const double n = central_difference(function, loss, it.values[index], options.step, where);
        const double a = it.gradient[index];
        const default_floating_point_modes modes;
        double error = std::numeric_limits<double>::infinity();
        if (isfinite(a)) {
            const double size =
                (std::max)({number(a).magnitude().value(), number(n).magnitude().value(), options.floor});
            error = ((number(a) - n).magnitude() / size).value();
        }
        squared_error += (number(a) - n) * (number(a) - n);
        squares += number(n) * n;
        if (i == 0 || error > result.max_relative) {
            result.max_relative = error;
            result.worst_index = index;
            result.worst_gradient = a;
            result.worst_difference = n;
        }
    }
    const default_floating_point_modes modes;
    const double norm = (std::max)(double_sqrt(squares.value()), options.floor);
    result.norm_relative = isinf(result.max_relative)
                               ? result.max_relative
                               : double_divide(double_sqrt(squared_error.value()), norm);
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Compares gradients with central differences of the loss, (loss(x + h) - loss(x - h)) / 2h, one element
/// after the other: torch.autograd.gradcheck for any composition of ops, in double.
///
///     mp::parameter_store<double> store;                       // a model of doubles, on mp::cpu
///     ...
///     const auto loss = [&] { return mp::ops::mean_squared_error(exec, model.forward(exec, x), target); };
///     loss();
///     model.backward(exec, ...);                               // writes the gradients of the store
///     const mp::gradient_check_report report = mp::check_gradients(loss, store.parameters());
///     if (!report.passed(1e-7)) std::puts(to_string(report).c_str());
///
/// Single arrays are {"x", x_values, dx_values}. The gradients may come from a run in another format, such as
/// half, with the parameters rounded alike: report.norms_passed(1e-3). The loss is a function without
/// arguments that reads the values where they lie, and returns a number. It is called twice to see that it is a
/// function of the values (dropout must take the same seed each time), and twice for each element:
/// options.samples makes that bearable for large models.
///
/// Rounding makes an error of some 1e-11 |loss| in a difference, and truncation one of 1e-11 times the third
/// derivative: a loss of about 1 has digits for tolerances from 1e-7 on. Near kinks, such as 0 of relu, the
/// difference is no gradient.
///
/// Afterwards the values are what they were, also where the loss throws. Throws argument_error for no array,
/// an empty one, a gradient of another size, values or options that are not finite, a loss that is not finite
/// and one that differs from call to call.
template <std::invocable Loss>
    requires std::is_arithmetic_v<std::invoke_result_t<Loss&>>
[[nodiscard]] gradient_check_report check_gradients(Loss&& loss, std::span<const checked_gradient> arrays,
                                                    const gradient_check_options& options = {}) {
    constexpr std::string_view function = "mp::check_gradients";
    detail::check_gradient_arrays(function, arrays, options);
    const double first = detail::finite_loss(function, loss, "at the values");
    const double again = detail::finite_loss(function, loss, "at the values");
    if (!detail::same_bits(first, again)) {
        detail::throw_argument(function, "loss()", again,
                               "must be " + detail::error_text(first) +
                                   ", as in the call before: it is to be a "
                                   "function of the values");
    }
    gradient_check_report report;
    std::uint64_t drawn = 0;
    for (const checked_gradient& it : arrays) {
        report.arrays.push_back(detail::compare_gradient(function, loss, it, options, drawn));
    }
    return report;
}

/// Overload for a vector or list of arrays, or of parameters.
template <std::invocable Loss, std::ranges::input_range Arrays>
    requires std::convertible_to<std::ranges::range_reference_t<const Arrays&>, checked_gradient>
[[nodiscard]] gradient_check_report check_gradients(Loss&& loss, const Arrays& arrays,
                                                    const gradient_check_options& options = {}) {
    std::vector<checked_gradient> all;
    for (const auto& it : arrays) all.emplace_back(it);
    return check_gradients(loss, std::span<const checked_gradient>(all), options);
}
template <std::invocable Loss>
[[nodiscard]] gradient_check_report check_gradients(Loss&& loss,
                                                    std::initializer_list<checked_gradient> arrays,
                                                    const gradient_check_options& options = {}) {
    return check_gradients(loss, std::span<const checked_gradient>(arrays.begin(), arrays.size()), options);
}

/// A line for each array, and one for its worst element.
[[nodiscard]] inline std::string to_string(const gradient_check_report& report) {
    std::string text;
    for (const gradient_comparison& it : report.arrays) {
        text += it.name + ": " + std::to_string(it.checked) + " of " + std::to_string(it.size) +
                " elements, relative error max " + detail::short_text(it.max_relative) + ", in norm " +
                detail::short_text(it.norm_relative) + "\n  worst at index " +
                std::to_string(it.worst_index) + ": " + detail::short_text(it.worst_gradient) +
                " instead of " + detail::short_text(it.worst_difference) + "\n";
    }
    return text;
}

}}  // namespace mp
