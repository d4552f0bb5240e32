// SPDX-License-Identifier: MIT
/// \file
/// An optimizer whose rate differs from parameter to parameter by their norms.
#pragma once

#include <mp/nn/optim/grouped_optimizer.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/trust_ratio.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <span>
#include <vector>

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

}}  // namespace mp
