// SPDX-License-Identifier: MIT
/// \file
/// Checks of the numbers that configure an optimizer. They look at bits, so -ffast-math cannot remove them.
#pragma once

#include <mp/error.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/nn/scaling/scale_checks.hpp>

#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

// The kernels multiply by floats, so that is what options have to be good for: neither infinite nor, unless
// they are that already, zero. 2^-150 is half of the smallest float, and the tie goes to zero.
inline constexpr double largest_vanishing_option = 0x1p-150;
inline constexpr double largest_float_as_double = 0x1.fffffep127;
/// Half a spacing below 1; the tie goes to 1.
inline constexpr double smallest_fraction_that_is_one = 0x1.ffffffp-1;

/// Throws argument_error if `value`, which is not negative, is zero only as a float.
inline void require_not_vanishing(std::string_view function, std::string_view argument, double value) {
    if (value > 0.0 && value <= largest_vanishing_option) {
        throw_argument(function, argument, value, "must be 0, or more than 2^-150, at which a float is 0");
    }
}

/// Throws argument_error unless `value` is finite and not negative, and as a float, too.
inline void require_non_negative(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0)) {
        throw_argument(function, argument, value, "must be finite and not negative");
    }
    if (value >= float_overflow_threshold) {
        throw_argument(function, argument, value, "must be in the range of float");
    }
    require_not_vanishing(function, argument, value);
}

/// Throws argument_error unless `value` is finite and positive, and as a float, too.
inline void require_positive(std::string_view function, std::string_view argument, double value) {
    require_non_negative(function, argument, value);
    if (!(value > 0.0)) throw_argument(function, argument, value, "must be greater than 0");
}

/// Throws argument_error unless `value` is in [0, 1), as a momentum must be, and as a float, too.
inline void require_fraction(std::string_view function, std::string_view argument, double value) {
    if (is_non_finite(value) || !(value >= 0.0 && value < 1.0)) {
        throw_argument(function, argument, value, "must be at least 0 and less than 1");
    }
    if (value >= smallest_fraction_that_is_one) {
        throw_argument(function, argument, value, "must be less than 1 as a float");
    }
    require_not_vanishing(function, argument, value);
}

/// Throws argument_error in the name of `function` unless weights can be updated in this way.
///
/// \param splits  whether a master is two numbers of the weights' format
inline void check_weight_update(std::string_view function, weight_update how, bool has_master_copy,
                                bool weight_is_float, bool splits) {
    const auto refuse = [&](std::string_view why) {
        throw_argument(function, "low_precision_update", name_of(how), why);
    };
    if (how == weight_update::nearest) return;
    if (has_master_copy) refuse("must be nearest, for there is a master copy");
    if (weight_is_float) refuse("must be nearest, for the weights are float");
    if (how == weight_update::split && !splits) refuse("must be another: only a bfloat16 is half of a float");
}

/// Throws argument_error unless `rate` is finite and not negative, and in the range of float even times
/// `factor`, at least 1, the largest number that an update multiplies it by. A rate that is zero as a float
/// passes: it is where decaying rates end, and moves no weight, as it should.
inline void require_learning_rate(std::string_view function, std::string_view argument, double rate,
                                  double factor) {
    if (is_non_finite(rate) || !(rate >= 0.0)) {
        throw_argument(function, argument, rate, "must be finite and not negative");
    }
    // Not divided: the factor may be so large that the product is infinite, and then it is refused.
    if (!(rate * factor <= largest_float_as_double)) {
        throw_argument(function, argument, rate,
                       "must be at most " + error_text(largest_float_as_double / factor) +
                           ": what an update multiplies by is a float");
    }
}

}}  // namespace mp::detail
