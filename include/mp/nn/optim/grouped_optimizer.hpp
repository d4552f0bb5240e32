// SPDX-License-Identifier: MIT
/// \file
/// Groups of parameters, each with its options, under one optimizer.
#pragma once

#include <mp/base/mistaken_arguments.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/optimizer_base.hpp>
#include <mp/nn/optim/optimizer_record.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/scaling/scaled_gradient.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The options of groups, from a list of them in braces; a vector would by g++ 12 be made of a number, too.
template <class Options>
struct option_groups {
    std::vector<Options> values;
    option_groups(std::initializer_list<Options> list) : values(list) {}
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// What the optimizers of the library have in common: groups of parameters with options, and the ways to make
/// them and to call a step, which is derived().update(inverse scale). See optimizer_base for the types, the
/// protocol and the precision.
///
/// Parameters belong to groups, by the number in mp::parameter::group, and every group has options of its
/// own:
///
///     mp::adamw<mp::bfloat16> optimizer({{"weight", w, dw}, {"bias", b, db, 1}, {"gamma", g, dg, 1}},
///                                       {{.learning_rate = 3e-4, .weight_decay = 0.1},
///                                        {.learning_rate = 3e-4, .weight_decay = 0.0}});
///     for (std::uint64_t step = 0; step < steps; ++step) {
///         optimizer.set_learning_rate_factor(schedule.at(step));
///         ...
///     }
///
/// The norm of the gradients is that of all groups. Parameters of another format have an optimizer of their
/// own; mp::training_iteration steps several as one, under one norm if that is wanted.
template <class Derived, class Options, class Weight, class Gradient, class Master, class State>
class grouped_optimizer : public optimizer_base<Weight, Gradient, Master, State> {
    using base = optimizer_base<Weight, Gradient, Master, State>;
    using traits = detail::optimizer_traits<Options>;

public:
    using options_type = Options;
    using parameter_type = typename base::parameter_type;

    /// \param exec        where steps run
    /// \param parameters  at least one; see mp::parameter. Their memory stays the caller's
    /// \param groups      the options of each group of parameters. low_precision_update and seed, where there
    ///                    are such, are the same in all
    /// \throws argument_error  an option is out of range; there is no parameter; a parameter's group is not
    ///                         among the groups; memory is null with a size; a gradient's size differs from
    ///                         its weights'; arrays overlap
    template <std::same_as<std::vector<Options>> Groups>
    grouped_optimizer(cpu exec, std::vector<parameter_type> parameters, Groups groups)
        : base(traits::name, exec, std::move(parameters), detail::rates_of(groups), detail::states_of(groups),
               detail::update_of(detail::check_groups(traits::name, traits::name, groups)),
               detail::seed_of(detail::check_groups(traits::name, traits::name, groups))),
          options_(std::move(groups)) {
        for (std::size_t i = 0; i < options_.size(); ++i) {
            set_limits(i);
        }
    }
    /// Overload that runs on the calling thread.
    template <std::same_as<std::vector<Options>> Groups>
    grouped_optimizer(std::vector<parameter_type> parameters, Groups groups)
        : grouped_optimizer(cpu{}, std::move(parameters), std::move(groups)) {}
    /// Overloads for groups in braces: {{.learning_rate = 1e-3}, {.learning_rate = 1e-4}}.
    template <class Groups = detail::option_groups<Options>>
        requires std::same_as<Groups, detail::option_groups<Options>>
    grouped_optimizer(cpu exec, std::vector<parameter_type> parameters, const Groups& groups)
        : grouped_optimizer(exec, std::move(parameters), groups.values) {}
    template <class Groups = detail::option_groups<Options>>
        requires std::same_as<Groups, detail::option_groups<Options>>
    grouped_optimizer(std::vector<parameter_type> parameters, const Groups& groups)
        : grouped_optimizer(cpu{}, std::move(parameters), groups.values) {}

    /// With the same options for all parameters, which are in group 0.
    grouped_optimizer(cpu exec, std::vector<parameter_type> parameters, const Options& options = {})
        : grouped_optimizer(exec, std::move(parameters), std::vector<Options>{options}) {}
    /// Overload that runs on the calling thread.
    explicit grouped_optimizer(std::vector<parameter_type> parameters, const Options& options = {})
        : grouped_optimizer(cpu{}, std::move(parameters), options) {}

    /// Options in torch's words, and arrays of another type: do not compile.
    template <class Words = detail::optimizer_words>
        requires std::same_as<Words, detail::optimizer_words>
    grouped_optimizer(cpu /*exec*/, const std::vector<parameter_type>& parameters, const Words& /*options*/)
        : grouped_optimizer(parameters, detail::instead_of_optimizer_words<Words, Options>()) {}
    template <class Words = detail::optimizer_words>
        requires std::same_as<Words, detail::optimizer_words>
    grouped_optimizer(const std::vector<parameter_type>& parameters, const Words& /*options*/)
        : grouped_optimizer(parameters, detail::instead_of_optimizer_words<Words, Options>()) {}
    template <class Parameters = std::vector<detail::any_parameter>>
        requires detail::mistaken_parameters<Parameters, parameter_type>
    grouped_optimizer(cpu /*exec*/, const Parameters& /*parameters*/, const Options& options = {})
        : grouped_optimizer(detail::instead_of_parameters<Parameters, std::vector<parameter_type>>(),
                            options) {}
    template <class Parameters = std::vector<detail::any_parameter>>
        requires detail::mistaken_parameters<Parameters, parameter_type>
    explicit grouped_optimizer(const Parameters& /*parameters*/, const Options& options = {})
        : grouped_optimizer(detail::instead_of_parameters<Parameters, std::vector<parameter_type>>(),
                            options) {}

    /// The options of a group; for the present learning rate see learning_rate().
    ///
    /// \throws argument_error  there is no such group
    [[nodiscard]] const Options& options(std::size_t group = 0) const {
        base::require_group(traits::name, group);
        return options_[group];
    }

    /// Sets the options of a group from the next step on, the learning rate among them.
    ///
    /// \throws argument_error  there is no such group; an option is out of range; low_precision_update or
    ///                         seed differ from those that the optimizer was made with; there is no memory
    ///                         for a momentum, because there was none when it was made
    void set_options(const Options& options, std::size_t group = 0) {
        base::require_group(traits::name, group);
        traits::check(traits::name, options);
        detail::require_same_kind(traits::name, options_[0], options);
        if constexpr (requires { options.momentum; }) {
            if (traits::states(options) > base::state_count()) {
                detail::throw_argument(traits::name, "momentum", options.momentum,
                                       "must be 0, for the optimizer was made without memory for it");
            }
        }
        options_[group] = options;
        set_limits(group);
        base::set_learning_rate(options.learning_rate, group);
    }

    /// Sets the learning rate of every group to that of its options times `factor`: what a schedule says, see
    /// <mp/nn/optim/schedules.hpp>.
    ///
    /// \throws argument_error  a rate would not be finite, or be negative; none has changed
    void set_learning_rate_factor(double factor) {
        for (std::size_t i = 0; i < options_.size(); ++i) {
            detail::require_learning_rate(
                traits::name, "factor", factor,
                options_[i].learning_rate * traits::largest_rate_factor(options_[i]));
        }
        for (std::size_t i = 0; i < options_.size(); ++i) {
            base::set_learning_rate(options_[i].learning_rate * factor, i);
        }
    }

    /// One update of all parameters that have a gradient, by the unscaled gradients if unscale_gradients was
    /// called before, else by the gradients as they are. Does not look for infinities or NaNs.
    void step() { update(1.0F); }

    /// Overload that steps while multiplying the gradients by `inverse_scale` on the way. The results are
    /// those of unscale_gradients(inverse_scale) and step(), without memory for the unscaled gradients.
    ///
    /// \throws state_error     the gradients are already unscaled
    /// \throws argument_error  the inverse scale is NaN or negative
    void step(float inverse_scale) {
        base::require_fused_step(traits::step, inverse_scale);
        update(inverse_scale);
    }

    /// A step by gradients that are still scaled: does not compile.
    template <class Value>
    void step(scaled_gradient<Value>) {
        static_assert(detail::never<Value>,
                      "mp::optimizer::step: this gradient still carries its loss scale; call unscale of the "
                      "loss scaler "
                      "(or unscale_gradients_from) and then step()");
    }

    /// What a state of a parameter is divided by here after so many updates: means in a reduced format by their bias
    /// 1 - beta^updates, which other programs apply in each step instead; 1 where there is no such division.
    ///
    /// \throws argument_error  there is no such parameter
    [[nodiscard]] double state_divisor(std::size_t index, std::size_t state, std::uint64_t updates) const {
        if constexpr (detail::divides_means<Options, State>) {
            static_cast<void>(base::parameter_name(index));  // throws
            const Options& options = options_[base::parameters()[index].group];
            return updates == 0 ? 1.0 : traits::bias(options, state, updates);
        } else {
            return 1.0;
        }
    }

    /// Names everything that a step depends on, for mp::save_checkpoint and mp::load_checkpoint: what the
    /// memory of the optimizer holds, the weights, and the options of all groups, which like the learning
    /// rates are those of the checkpoint after loading.
    ///
    /// \throws state_error  the gradients are unscaled: an iteration is under way
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        base::visit_state(visitor);
        for (std::size_t i = 0; i < options_.size(); ++i)
            visitor("group" + detail::error_text(i), options_[i]);
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] {
                for (std::size_t i = 0; i < options_.size(); ++i) set_limits(i);
            });
            // Checkpoints of version 1 have means that are not divided.
            if constexpr (detail::divides_means<Options, State> && requires { visitor.version(); }) {
                if (visitor.version() != 1) return;
                std::size_t largest = 0;
                for (const auto& it : base::parameters()) largest = (std::max)(largest, it.weights.size());
                visitor.when_loaded([this, memory = std::vector<float>(largest)]() mutable {
                    base::divide_states(memory,
                                        [this](std::size_t index, std::size_t state, std::uint64_t updates) {
                                            return state_divisor(index, state, updates);
                                        });
                });
            }
        }
    }

protected:
    grouped_optimizer(grouped_optimizer&&) noexcept = default;
    grouped_optimizer& operator=(grouped_optimizer&&) noexcept = default;
    ~grouped_optimizer() = default;

    /// Sets the coefficients of each parameter for its next update, where default modes are set.
    template <class Coefficients>
    void set_coefficients(std::span<Coefficients> of_group, std::span<Coefficients> of_parameter) const {
        const std::vector<std::uint64_t>& updates = base::updates_;
        if (updates.empty()) return;  // of an optimizer that was moved from
        const auto made = [this](std::uint64_t number, std::size_t group) {
            return detail::coefficients_for<State>(options_[group], base::rates_[group], number);
        };
        // Powers take long for small parameters, and nearly always all have had as many updates.
        const std::uint64_t usual_number = *std::max_element(updates.begin(), updates.end()) + 1;
        for (std::size_t group = 0; group < of_group.size(); ++group)
            of_group[group] = made(usual_number, group);
        for (std::size_t i = 0; i < updates.size(); ++i) {
            const std::uint64_t number = updates[i] + 1;
            const std::size_t group = base::arrays_[i].group;
            of_parameter[i] = number == usual_number ? of_group[group] : made(number, group);
        }
    }

private:
    /// Limits of the learning rate and of gradients in a group, by its options.
    void set_limits(std::size_t group) {
        base::limit_learning_rate(traits::largest_rate_factor(options_[group]), group);
        base::limit_gradients(detail::gradient_limits_of<Weight, Master, State>(options_[group]), group);
    }

    void update(float inverse_scale) { static_cast<Derived&>(*this).update(inverse_scale); }

    std::vector<Options> options_;
};

}}  // namespace mp
