// SPDX-License-Identifier: MIT
/// \file
/// Schedules of the learning rate: what it is multiplied by at a step.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/kernels/double_power.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// cos(pi t) for t from 0 to 1, to within 2^-51, with the same bits everywhere.
inline double half_cosine(double t) noexcept {
    if (t > 0.5) return -half_cosine(double_subtract(1.0, t));
    constexpr double pi = 0x1.921fb54442d18p+1;
    // Taylor series of the cosine up to pi / 4, and of the sine of the rest beyond: 1 / n! with alternating
    // signs.
    const bool is_sine = t > 0.25;
    const double x = double_multiply(pi, is_sine ? double_subtract(0.5, t) : t);
    const double minus_square = -double_multiply(x, x);
    double sum = 0.0;
    for (int n = is_sine ? 17 : 16; n > 1; n -= 2) {
        // 1 - x^2 / (n (n - 1)) (1 - ...)
        sum = double_multiply(double_add(1.0, sum),
                              double_divide(minus_square, static_cast<double>(n * (n - 1))));
    }
    return double_multiply(double_add(1.0, sum), is_sine ? x : 1.0);
}

/// The way from `first` to `last` along half a cosine, at t from 0 to 1.
inline double along_cosine(double first, double last, double t) noexcept {
    const double left = double_multiply(double_add(1.0, half_cosine(t)), 0.5);
    return double_add(last, double_multiply(double_subtract(first, last), left));
}

/// step / steps, at most 1, and 1 of no steps.
inline double fraction_of(std::uint64_t step, std::uint64_t steps) noexcept {
    return step >= steps ? 1.0 : double_divide(static_cast<double>(step), static_cast<double>(steps));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A schedule says by what the learning rate of step 0, 1, 2 ... is multiplied. It keeps nothing: the number
/// of the step is all that a resumed run needs. The same bits on every platform and in all modes of the caller.
///
///     const mp::warmup_then schedule{mp::linear_warmup{.steps = 100}, mp::cosine_decay{.steps = 4900}};
///     optimizer.set_learning_rate_factor(schedule.at(optimizer.step_count()));
///
/// By optimizer.step_count(), which leaves out skipped steps, the schedule waits while a loss scaler
/// searches.
template <class Schedule>
concept learning_rate_schedule = requires(const Schedule& schedule, std::uint64_t step) {
    { schedule.at(step) } -> std::convertible_to<double>;
};

/// From first_factor up to 1 in `steps` steps: torch's LinearLR. With a first_factor of 0 the first step does
/// nothing but fill the optimizer's means.
struct linear_warmup {
    std::uint64_t steps = 0;
    double first_factor = 0.0;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        return detail::in_default_modes([this, step] {
            const double rest = detail::double_subtract(1.0, first_factor);
            return detail::double_add(first_factor,
                                      detail::double_multiply(rest, detail::fraction_of(step, steps)));
        });
    }
};

/// From 1 down to final_factor along half a cosine, where it stays: torch's CosineAnnealingLR.
struct cosine_decay {
    std::uint64_t steps = 0;
    double final_factor = 0.0;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        if (step >= steps) return final_factor;
        return detail::in_default_modes([this, step] {
            return detail::along_cosine(1.0, final_factor, detail::fraction_of(step, steps));
        });
    }
};

/// From 1 down to final_factor as a power of what is left, where it stays: torch's PolynomialLR; a straight
/// line for the power 1.
struct polynomial_decay {
    std::uint64_t steps = 0;
    std::uint64_t power = 1;
    double final_factor = 0.0;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        return detail::in_default_modes([this, step] {
            const double left = detail::double_subtract(1.0, detail::fraction_of(step, steps));
            return detail::double_add(final_factor,
                                      detail::double_multiply(detail::double_subtract(1.0, final_factor),
                                                              detail::double_power(left, power)));
        });
    }
};

/// Times `factor` every `every` steps: torch's StepLR, and with every = 1 its ExponentialLR.
struct step_decay {
    std::uint64_t every = 1;  ///< 0 is as good as never
    double factor = 0.1;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        if (every == 0) return 1.0;
        return detail::in_default_modes([this, step] { return detail::double_power(factor, step / every); });
    }
};

/// Times `factor` at each of the milestones, in whatever order: torch's MultiStepLR.
struct milestone_decay {
    std::vector<std::uint64_t> milestones = {};
    double factor = 0.1;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        const auto passed = std::count_if(milestones.begin(), milestones.end(),
                                          [step](std::uint64_t milestone) { return milestone <= step; });
        return detail::in_default_modes(
            [this, passed] { return detail::double_power(factor, static_cast<std::uint64_t>(passed)); });
    }
};

/// From 1 / initial_divisor up to 1 in the first part of the steps, and down to 1 / (initial_divisor *
/// final_divisor) in the rest, each along half a cosine: torch's OneCycleLR, where 1 is its max_lr.
struct one_cycle {
    std::uint64_t steps = 2;  ///< of the whole cycle, at least 2
    double warmup_fraction = 0.3;
    double initial_divisor = 25.0;
    double final_divisor = 1e4;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        return detail::in_default_modes([this, step] { return in_these_modes(step); });
    }

private:
    [[nodiscard]] double in_these_modes(std::uint64_t step) const noexcept {
        const double first = detail::double_divide(1.0, initial_divisor);
        const double last = detail::double_divide(first, final_divisor);
        const double at = static_cast<double>(step);
        const double end = static_cast<double>(steps) - 1.0;
        const double top = detail::double_subtract(
            detail::double_multiply(warmup_fraction, static_cast<double>(steps)), 1.0);
        if (at >= end) return last;
        if (at <= top && top > 0.0) return detail::along_cosine(first, 1.0, detail::double_divide(at, top));
        return detail::along_cosine(
            1.0, last,
            detail::double_divide(detail::double_subtract(at, top), detail::double_subtract(end, top)));
    }
};

/// One schedule for as many steps as it has, then the other from its step 0 on.
template <class First, class Second>
    requires learning_rate_schedule<First> && learning_rate_schedule<Second> && requires(const First& first) {
        { first.steps } -> std::convertible_to<std::uint64_t>;
    }
struct warmup_then {
    First first;
    Second second;

    [[nodiscard]] double at(std::uint64_t step) const noexcept {
        return step < first.steps ? first.at(step) : second.at(step - first.steps);
    }
};
template <class First, class Second>
warmup_then(First, Second) -> warmup_then<First, Second>;

/// Options for one group of parameters a layer, from the first layer to the last one, whose learning rate is
/// `decay` times that of the layer after it: for models that are trained further.
///
/// \throws argument_error  decay is not in (0, 1]
template <class Options>
[[nodiscard]] std::vector<Options> layerwise_groups(const Options& last, std::size_t layers, double decay) {
    if (!(decay > 0.0 && decay <= 1.0)) {
        detail::throw_argument("mp::layerwise_groups", "decay", decay,
                               "must be greater than 0 and at most 1");
    }
    std::vector<Options> groups(layers, last);
    for (std::size_t i = 0; i < layers; ++i) {
        groups[i].learning_rate = detail::in_default_modes([&last, layers, decay, i] {
            return detail::double_multiply(last.learning_rate, detail::double_power(decay, layers - 1 - i));
        });
    }
    return groups;
}

}}  // namespace mp
