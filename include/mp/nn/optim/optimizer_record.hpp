// SPDX-License-Identifier: MIT
/// \file
/// The part of an optimizer that does not depend on where its memory is: parameters, groups, counts, checkpoints.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// Parameters, groups and counts of an optimizer on any executor. Derived classes have the memory: see optimizer_state
/// and gpu_grouped_optimizer.
class optimizer_record {
public:
    /// The name of a parameter, maybe empty. Valid as long as the optimizer.
    [[nodiscard]] std::string_view parameter_name(std::size_t index) const;

    /// Groups of parameters, each with its learning rate.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t group_count() const noexcept { return rates_.size(); }

    /// Throws state_error unless the weights are those of the run, see buffer_version::is_temporary().
    void require_lasting_weights(std::string_view function) const;

    /// Whether a parameter takes part in the steps of an mp::training_iteration that has not used it: whose gradient no
    /// op has written or added to, and is zero. By default it does not: weights, masters, state and counts stay as
    /// they are, as in PyTorch where the gradient is None. True treats such a gradient as zeros, by which momentum
    /// and decay go on. Steps outside of iterations take every gradient as it is.
    MP_ALWAYS_INLINE void set_steps_unused_parameters(bool steps) noexcept { steps_unused_ = steps; }
    [[nodiscard]] MP_ALWAYS_INLINE bool steps_unused_parameters() const noexcept { return steps_unused_; }

    /// For training_iteration, which finds gradients that were overwritten or not used.
    [[nodiscard]] MP_ALWAYS_INLINE detail::gradient_writes& gradient_writes() noexcept { return writes_; }

protected:
    /// \param name         of the derived class, for messages
    /// \param rates        the learning rate of each group, checked already
    /// \param granularity  elements of which every parameter has a multiple in the layout
    optimizer_record(std::vector<detail::untyped_parameter> parameters, std::string_view name,
                     std::size_t weight_size, std::size_t gradient_size, const std::vector<double>& rates,
                     weight_update how, std::uint64_t seed, std::size_t granularity);
    optimizer_record(optimizer_record&&) noexcept;
    optimizer_record& operator=(optimizer_record&&) noexcept;
    ~optimizer_record();

    void require_group(std::string_view function, std::size_t group) const;
    /// The parameter, or argument_error in the name of `function`.
    const detail::untyped_parameter& at(std::string_view function, std::size_t index) const;

    /// Records the versions of a parameter's weights as those of its masters; advances them first if the weights were
    /// written.
    void follow_version(std::size_t index, bool written) const noexcept;

    std::vector<detail::untyped_parameter> arrays_;
    detail::parameter_layout layout_;  // of masters, compensations and states
    detail::gradient_writes writes_;
    // Mutable, since reading masters brings them up to date.
    mutable std::vector<detail::followed_version> followed_;  // of the weights of masters and compensations
    std::vector<std::uint64_t> updates_;                      // of each parameter
    std::uint64_t steps_ = 0;
    std::vector<double> rates_;  // of each group
    weight_update how_;
    std::uint64_t seed_;
    bool steps_unused_ = false;
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Returns how an optimizer with these options updates weights of a reduced format, and the seed of its random bits.
template <class Options>
weight_update update_of(const Options& options) {
    if constexpr (requires { options.low_precision_update; }) return options.low_precision_update;
    return weight_update::nearest;
}
template <class Options>
std::uint64_t seed_of(const Options& options) {
    if constexpr (requires { options.seed; }) return options.seed;
    return 0;
}

/// Throws argument_error in the name of `function` unless one optimizer can have both of these groups.
template <class Options>
void require_same_kind(std::string_view function, const Options& first, const Options& options) {
    if (update_of(options) != update_of(first)) {
        throw_argument(function, "low_precision_update", name_of(update_of(options)),
                       "must be that of all groups, which is " + std::string(name_of(update_of(first))));
    }
    if (seed_of(options) != seed_of(first)) {
        throw_argument(function, "seed", seed_of(options),
                       "must be that of all groups, which is " + error_text(seed_of(first)));
    }
}

/// Returns the options of the first group. Throws argument_error unless there is one, all options are in range, and
/// one optimizer can have all groups; messages name `function`, or `check` for options that are out of range.
template <class Options>
const Options& check_groups(std::string_view function, std::string_view check,
                            const std::vector<Options>& groups) {
    if (groups.empty()) throw_argument(function, "groups.size()", groups.size(), "must be at least 1");
    for (const Options& options : groups) {
        optimizer_traits<Options>::check(check, options);
        require_same_kind(function, groups[0], options);
    }
    return groups[0];
}

template <class Options>
std::vector<double> rates_of(const std::vector<Options>& groups) {
    std::vector<double> rates;
    for (const Options& options : groups) rates.push_back(options.learning_rate);
    return rates;
}
/// Returns the arrays of state that there must be memory for.
template <class Options>
std::size_t states_of(const std::vector<Options>& groups) {
    std::size_t most = 0;
    for (const Options& it : groups) most = (std::max)(most, optimizer_traits<Options>::states(it));
    return most;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Adds the types of the parameters to optimizer_record or a class derived from it.
template <class Base, class Weight, class Gradient>
class optimizer_parameters : public Base {
public:
    using parameter_type = parameter<Weight, Gradient>;

    /// The parameters in the order in which they were given.
    [[nodiscard]] std::span<const parameter_type> parameters() const noexcept { return parameters_; }

protected:
    /// \param arguments  of the constructor of Base, after the parameters
    template <class... Arguments>
    explicit optimizer_parameters(std::vector<parameter_type> parameters, const Arguments&... arguments)
        : Base(detail::untyped_parameters_of(parameters), arguments...), parameters_(std::move(parameters)) {}

    /// Names counts and rates for a checkpoint, and of each parameter what visit_arrays(index, part) passes to
    /// part(name, values). After loading, the weights count as written and the masters as theirs.
    template <class Visitor, class Arrays>
    void visit_parameters(Visitor& visitor, const Arrays& visit_arrays) {
        visitor.expect("weight_update", static_cast<std::uint8_t>(Base::how_));
        visitor.expect("seed", Base::seed_);
        visitor("steps", Base::steps_);
        visitor("updates", Base::updates_);
        visitor("learning_rates", Base::rates_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::string& own = parameters_[i].name;
            const std::string name = own.empty() ? detail::error_text(i) : own;
            visit_arrays(i, [&](std::string_view part, auto values) {
                visitor(name + "." + std::string(part), values);
            });
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] {
                for (std::size_t i = 0; i < parameters_.size(); ++i) Base::follow_version(i, true);
            });
        }
    }

    std::vector<parameter_type> parameters_;  // of arrays_
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION optimizer_record::optimizer_record(std::vector<detail::untyped_parameter> parameters,
                                                    std::string_view name, std::size_t weight_size,
                                                    std::size_t gradient_size,
                                                    const std::vector<double>& rates, weight_update how,
                                                    std::uint64_t seed, std::size_t granularity)
    : arrays_(std::move(parameters)),
      followed_(arrays_.size()),
      updates_(arrays_.size()),
      rates_(rates),
      how_(how),
      seed_(seed) {
    detail::check_parameters(name, arrays_, weight_size, gradient_size);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const detail::untyped_parameter& it = arrays_[i];
        if (it.group >= rates_.size()) {
            detail::throw_argument(
                name, detail::parameter_text(i, it.name, "group"), it.group,
                "must be less than the number of groups, which is " + detail::error_text(rates_.size()));
        }
        layout_.add((it.size + granularity - 1) / granularity * granularity);
        writes_.add(it.gradient, it.gradient_size * gradient_size);
    }
}

MP_CORE_FUNCTION optimizer_record::optimizer_record(optimizer_record&&) noexcept = default;
MP_CORE_FUNCTION optimizer_record& optimizer_record::operator=(optimizer_record&&) noexcept = default;
MP_CORE_FUNCTION optimizer_record::~optimizer_record() = default;

MP_CORE_FUNCTION std::string_view optimizer_record::parameter_name(std::size_t index) const {
    return at("mp::optimizer_base::parameter_name", index).name;
}

MP_CORE_FUNCTION void optimizer_record::require_lasting_weights(std::string_view function) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (!arrays_[i].version.is_temporary()) continue;
        detail::throw_joined<state_error>(
            {function, ": ", detail::parameter_text(i, arrays_[i].name, "weights"),
             " are those of an mp::weight_average that is applied; let its scope end first"});
    }
}

MP_CORE_FUNCTION void optimizer_record::require_group(std::string_view function, std::size_t group) const {
    if (group >= rates_.size()) {
        detail::throw_argument(
            function, "group", group,
            "must be less than the number of groups, which is " + detail::error_text(rates_.size()));
    }
}

MP_CORE_FUNCTION const detail::untyped_parameter& optimizer_record::at(std::string_view function,
                                                                       std::size_t index) const {
    if (index >= arrays_.size()) {
        detail::throw_argument(
            function, "index", index,
            "must be less than the number of parameters, which is " + detail::error_text(arrays_.size()));
    }
    return arrays_[index];
}

MP_CORE_FUNCTION void optimizer_record::follow_version(std::size_t index, bool written) const noexcept {
    if (written) arrays_[index].version.changed();
    followed_[index] = detail::followed_version(arrays_[index].version);
}

}}  // namespace mp
#endif
