// SPDX-License-Identifier: MIT
/// \file
/// An optimizer that changes every element by itself.
#pragma once

#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <span>
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

}}  // namespace mp
