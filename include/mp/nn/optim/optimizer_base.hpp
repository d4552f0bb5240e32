// SPDX-License-Identifier: MIT
/// \file
/// The passes of all optimizers that apply an update.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/nn/optim/kernels/layer_norms.hpp>
#include <mp/nn/optim/kernels/square_sums.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/optimizer_gradients.hpp>
#include <mp/nn/optim/optimizer_memory.hpp>
#include <mp/nn/optim/trust_ratio.hpp>
#include <mp/nn/optim/update_passes.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Base of the optimizers, and of your own: derive, and call apply from step.
///
/// Weights are of type Weight, which the forward pass uses. If Master is another type, the optimizer keeps a
/// master copy of the weights in it, updates that, and writes the weights as its values rounded once to
/// nearest, ties to even; if it is the same type, the weights themselves are updated, in the way that
/// mp::weight_update names. State such as momentum is kept in State. All arithmetic is in float, on values
/// read from these types, and every product, sum, quotient and root is rounded; what is stored is rounded
/// once. So sgd<half> trains a half network with float master weights, sgd<half, half, half> is half alone,
/// and adamw<bfloat16, bfloat16, bfloat16, float> has weights without a master copy and float state.
///
/// Gradients of a reduced format that are unscaled stay as they are: the norm, and then the update, multiply
/// them by the inverse scale and by the clip factor as floats, so that nothing that scaling saved from
/// underflow is lost again, and no copy is kept. Only what looks at single values or changes them otherwise
/// (unscaled_gradients, clip_gradient_value, scaling twice, unscale_gradients_from) has them as floats in
/// other memory, allocated at the first time. Gradients of type float are unscaled in place.
///
/// The memory of the parameters belongs to the caller and must outlive the optimizer. Between a call of
/// unscale_gradients and step the gradients must not be changed. Results depend neither on the number of
/// threads nor on the instruction set (except for the payload of a NaN that comes from two), nor on the modes
/// of rounding and flushing of the calling thread. Objects are not synchronised. A function that throws has
/// changed nothing. After the first round, one thread allocates nothing.
template <class Weight, class Gradient = Weight, class Master = float, class State = Master>
    requires detail::exact_in_float<Weight> && detail::exact_in_float<Gradient> &&
             detail::exact_in_float<Master> && detail::state_format<State>
class optimizer_base : public optimizer_gradients<Weight, Gradient, Master, State> {
    using gradients = optimizer_gradients<Weight, Gradient, Master, State>;
    using memory = optimizer_memory<Weight, Gradient, Master, State>;

public:
    using memory::has_master_copy;
    using typename memory::parameter_type;

protected:
    using gradients::gradients;
    using memory::begin_step;
    using memory::finish_step;
    using memory::takes_part;

    optimizer_base(optimizer_base&&) noexcept = default;
    optimizer_base& operator=(optimizer_base&&) noexcept = default;
    ~optimizer_base() = default;

    /// One pass over all parameters that have a gradient. `rule(update)` gives the update rule for a
    /// parameter, where `update` is the number of this update of it, from 1 on; `rule(update, group)` may
    /// know the parameter's group as well. The rule is called as `(float* weights, const float* gradient,
    /// std::array<float*, States> states, std::size_t count)` on chunks of it, from several threads, and must
    /// not throw. Gradients are the unscaled ones if they are there, else the raw ones times `inverse_scale`.
    ///
    /// The rule runs with the default modes of rounding and flushing, and what it leaves is rounded to
    /// nearest; weight_update is for the library's own rules.
    template <std::size_t States, class Rule>
    void apply(float inverse_scale, Rule rule) {
        static_assert(!has_block_moments,
                      "mp::optimizer_base::apply: a rule of your own has no moments in blocks; take float, "
                      "bfloat16 or half for State");
        const detail::default_floating_point_modes modes;
        begin_step();
        // Nothing below throws once the first chunk has begun, so a failure to start threads changes nothing.
        layout_.for_each_chunk(
            exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
                if (!takes_part(i)) return;
                with_arrays<States>(i, first, last, inverse_scale, [&](const auto& arrays) {
                    if constexpr (std::invocable<Rule&, std::uint64_t, std::size_t>) {
                        detail::update_by_rule(arrays, rule(updates_[i] + 1, parameters_[i].group));
                    } else {
                        detail::update_by_rule(arrays, rule(updates_[i] + 1));
                    }
                });
            });
        finish_step();
    }

    /// As apply(), with one of the library's own rules, whose kernels keep everything in registers.
    /// `coefficients` are what the rule multiplies by in each parameter.
    template <class Coefficients>
    void apply_kernel(float inverse_scale, std::span<const Coefficients> coefficients) {
        begin_step();
        with_weight_update([&]<weight_update How>() {
            for_each_trained_chunk<Coefficients::states>(
                inverse_scale, [&]<class Arrays>(std::size_t i, std::size_t /*first*/, const Arrays& arrays) {
                    if constexpr (has_block_moments) {
                        detail::update_blocks<How>(isa_, arrays, coefficients[i]);
                    } else {
                        detail::select_update<How, Coefficients, Arrays>(isa_)(arrays, coefficients[i]);
                    }
                });
        });
        finish_step();
    }

    /// The norms that coefficients depend on, of the parameters where they are wanted; nothing else changes. `sums` has
    /// room for norm_sums() numbers. The caller has set default modes.
    template <class Coefficients>
    void measure_kernel(float inverse_scale, std::span<const Coefficients> coefficients,
                        std::span<double> sums, std::span<detail::layer_norms> norms) {
        begin_step();
        double* const weight_sums = sums.data();
        double* const measured_sums = sums.data() + layout_.chunks();
        with_weight_update([&]<weight_update How>() {
            for_each_trained_chunk<Coefficients::measured_states>(
                inverse_scale, [&](std::size_t i, std::size_t first, const auto& arrays) {
                    if (!norms[i].wanted) return;
                    const std::size_t at = layout_.first_chunk(i) + first / detail::parameter_layout::chunk;
                    detail::sum_layer_squares<How>(isa_, arrays, coefficients[i], weight_sums + at,
                                                   measured_sums + at);
                });
        });
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (!takes_part(i) || !norms[i].wanted) continue;
            const std::size_t begin = layout_.first_chunk(i);
            const std::size_t end =
                i + 1 < parameters_.size() ? layout_.first_chunk(i + 1) : layout_.chunks();
            norms[i].weights = detail::double_sqrt(detail::sum_of_blocks(weight_sums + begin, end - begin));
            norms[i].measured =
                detail::double_sqrt(detail::sum_of_blocks(measured_sums + begin, end - begin));
        }
    }
    [[nodiscard]] std::size_t norm_sums() const noexcept { return 2 * layout_.chunks(); }

    /// Coefficients of each parameter, which are coefficients_of(update, group), where default modes are set.
    template <class Coefficients, class CoefficientsOf>
    void set_coefficients(std::span<Coefficients> of_group, std::span<Coefficients> of_parameter,
                          const CoefficientsOf& coefficients_of) const {
        if (parameters_.empty()) return;  // of an optimizer that was moved from
        // Powers take long for small parameters, and nearly always all have had as many updates.
        const std::uint64_t usual_number = *std::max_element(updates_.begin(), updates_.end()) + 1;
        for (std::size_t group = 0; group < of_group.size(); ++group)
            of_group[group] = coefficients_of(usual_number, group);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::uint64_t number = updates_[i] + 1;
            const std::size_t group = parameters_[i].group;
            of_parameter[i] = number == usual_number ? of_group[group] : coefficients_of(number, group);
        }
    }

    /// One pass over whole parameters that have a gradient, for updates that look at more than one element.
    /// Calls f(index, number of this update of it, elements) from several threads, where `elements` has
    /// gradient(first, count, to), the gradient as floats as an update uses it; weights(first, count, to),
    /// the weights in the precision in which they are trained; and set_weights(first, count, from), rounded
    /// to nearest. f must not throw. For weights that are updated to nearest.
    template <class Function>
    void apply_to_parameters(float inverse_scale, Function f) {
        const detail::default_floating_point_modes modes;
        begin_step();
        detail::parallel_for(exec_, parameters_.size(), 1, [&](std::size_t begin, std::size_t end) {
            const detail::default_floating_point_modes modes_of_thread;
            for (std::size_t i = begin; i < end; ++i) {
                if (takes_part(i)) {
                    f(i, updates_[i] + 1, whole_parameter{*this, i, inverse_scale});
                }
            }
        });
        finish_step();
    }

private:
    using memory::compensation_;
    using memory::exec_;
    using memory::first_block_;
    using memory::has_block_moments;
    using memory::has_copy_;
    using memory::how_;
    using memory::isa_;
    using memory::layout_;
    using memory::masters_;
    using memory::masters_can_split;
    using memory::parameters_;
    using memory::pending_;
    using memory::scales_;
    using memory::seed_;
    using memory::states_;
    using memory::unscaled_;
    using memory::unscaled_spans_;
    using memory::updates_;
    using memory::weights_can_stall;

    /// The elements of a parameter, for apply_to_parameters.
    struct whole_parameter {
        optimizer_base& all;
        std::size_t index;
        float inverse_scale;

        void gradient(std::size_t first, std::size_t count, float* to) const {
            all.template with_arrays<0>(index, first, first + count, inverse_scale, [&](const auto& arrays) {
                detail::load_gradient(arrays, 0, count, to);
            });
        }
        void weights(std::size_t first, std::size_t count, float* to) const {
            detail::copy_block(masters() + first, to, count);
        }
        void set_weights(std::size_t first, std::size_t count, const float* from) const {
            detail::copy_block(from, masters() + first, count);
            if constexpr (has_master_copy) {
                detail::copy_block(masters() + first, all.parameters_[index].weights.data() + first, count);
            }
        }

    private:
        [[nodiscard]] Master* masters() const {
            if constexpr (has_master_copy) {
                return all.masters_.data() + all.layout_.offset(index);
            } else {
                return all.parameters_[index].weights.data();
            }
        }
    };

    /// Calls `f.operator()<How>()` with the way in which weights are updated.
    template <class Function>
    void with_weight_update(const Function& f) const {
        switch (how_) {
            case weight_update::nearest:
                return f.template operator()<weight_update::nearest>();
            case weight_update::stochastic:
                if constexpr (weights_can_stall) f.template operator()<weight_update::stochastic>();
                return;
            case weight_update::kahan:
                if constexpr (weights_can_stall) f.template operator()<weight_update::kahan>();
                return;
            case weight_update::split:
                if constexpr (masters_can_split) f.template operator()<weight_update::split>();
                return;
        }
    }

    /// Calls f(index, first, arrays) on chunks, from `first` on, of all parameters that have a gradient.
    template <std::size_t States, class Function>
    void for_each_trained_chunk(float inverse_scale, const Function& f) {
        layout_.for_each_chunk(exec_, detail::update_grain,
                               [&](std::size_t i, std::size_t first, std::size_t last) {
                                   if (!takes_part(i)) return;
                                   with_arrays<States>(i, first, last, inverse_scale,
                                                       [&](const auto& arrays) { f(i, first, arrays); });
                               });
    }

    /// Calls f with a chunk of parameter `index`, and with the gradient that an update uses: the unscaled one
    /// if it is there.
    template <std::size_t States, class Function>
    void with_arrays(std::size_t index, std::size_t first, std::size_t last, float inverse_scale,
                     Function f) {
        const auto call = [&](const auto* gradient, detail::pending_factors by) {
            using gradient_value = std::remove_const_t<std::remove_pointer_t<decltype(gradient)>>;
            const std::size_t at = layout_.offset(index) + first;
            using state = std::conditional_t<States == 0, float, State>;
            detail::update_arrays<Weight, gradient_value, Master, state, States> arrays{};
            arrays.weights = parameters_[index].weights.data() + first;
            if constexpr (has_master_copy) {
                arrays.masters = masters_.data() + at;
            } else {
                arrays.masters = arrays.weights;
            }
            arrays.gradient = gradient + first;
            if constexpr (States != 0) {
                for (std::size_t s = 0; s < (std::min)(States, states_.size()); ++s) {
                    arrays.states[s] = states_[s].data() + at;
                    if constexpr (has_block_moments) {
                        arrays.scales[s] =
                            scales_[s].data() + first_block_[index] + first / detail::moments_block;
                    }
                }
            }
            if (!compensation_.empty()) arrays.compensation = compensation_.data() + at;
            arrays.count = last - first;
            arrays.inverse_scale = by.inverse_scale;
            arrays.clip_factor = by.clip_factor;
            arrays.first = parameters_[index].share_first + first;
            arrays.seed = seed_;
            arrays.parameter = static_cast<std::uint32_t>(index);
            arrays.update = updates_[index] + 1;
            f(arrays);
        };
        const Gradient* const own = parameters_[index].gradient.data();
        if (!unscaled_) {
            call(own, {inverse_scale, 1.0F});
        } else if (has_copy_) {
            call(static_cast<const float*>(unscaled_spans_[index].data()), {});
        } else {
            call(own, pending_);
        }
    }
};

}}  // namespace mp
