// SPDX-License-Identifier: MIT
/// \file
/// The memory of all optimizers: parameters, master weights, state, and unscaled gradients.
#pragma once

#include <mp/base/array_share.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/gradient_passes.hpp>
#include <mp/nn/optim/kernels/block_moments.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/option_checks.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/parameter_layout.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/optim/written_weights.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Storage types of optimizer state.
template <class State>
concept state_format = exact_in_float<State> || std::same_as<State, block_moment>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The memory of an optimizer, and what can be read from it. See optimizer_base, which adds the passes.
template <class Weight, class Gradient, class Master, class State>
class optimizer_memory {
public:
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using state_type = State;
    using parameter_type = parameter<Weight, Gradient>;

    /// Whether there is a master copy beside the weights.
    static constexpr bool has_master_copy = !std::is_same_v<Weight, Master>;

    optimizer_memory(const optimizer_memory&) = delete;
    optimizer_memory& operator=(const optimizer_memory&) = delete;

    /// The parameters in the order in which they were given.
    [[nodiscard]] std::span<const parameter_type> parameters() const noexcept { return parameters_; }

    /// The name of a parameter, maybe empty. Valid as long as the optimizer.
    [[nodiscard]] std::string_view parameter_name(std::size_t index) const {
        return at("mp::optimizer_base::parameter_name", index).name;
    }

    /// Groups of parameters, each with its learning rate.
    [[nodiscard]] std::size_t group_count() const noexcept { return rates_.size(); }

    /// The present learning rate of a group. Throws argument_error if there is no such group.
    [[nodiscard]] double learning_rate(std::size_t group = 0) const {
        require_group("mp::optimizer_base::learning_rate", group);
        return rates_[group];
    }

    /// Sets the learning rate of the following steps, of all groups; finite and not negative, and so is as a
    /// float whatever an update makes of it, else argument_error.
    void set_learning_rate(double rate) {
        for (std::size_t group = 0; group < rates_.size(); ++group) check_learning_rate(rate, group);
        std::fill(rates_.begin(), rates_.end(), rate);
    }
    /// Sets that of one group. Throws argument_error also if there is no such group.
    void set_learning_rate(double rate, std::size_t group) {
        require_group("mp::optimizer_base::set_learning_rate", group);
        check_learning_rate(rate, group);
        rates_[group] = rate;
    }

    /// Steps applied so far; skipped ones do not count.
    [[nodiscard]] std::uint64_t step_count() const noexcept { return steps_; }

    /// The weights in the precision in which they are trained: the master copy, or the weights themselves.
    [[nodiscard]] std::span<const Master> master_weights(std::size_t index) const {
        const parameter_type& it = at("mp::optimizer_base::master_weights", index);
        follow_weights(index);
        if constexpr (has_master_copy) {
            return std::span<const Master>(masters_).subspan(layout_.offset(index), it.weights.size());
        } else {
            return it.weights;
        }
    }

    /// As master_weights(), as floats: those of elements `first` to first + to.size() - 1. With
    /// weight_update::split this is the only way to them: master_weights are the weights then.
    ///
    /// \throws argument_error  there is no such parameter, or it has fewer elements
    void copy_master_weights(std::size_t index, std::size_t first, std::span<float> to) const {
        require_room("mp::optimizer_base::copy_master_weights", index, first, to);
        const std::span<const Master> from = master_weights(index).subspan(first, to.size());
        if constexpr (masters_can_split) {
            if (how_ == weight_update::split) {
                const Master* const low = compensation_.data() + layout_.offset(index) + first;
                return detail::join_masters(from.data(), low, to.data(), to.size());
            }
        }
        if constexpr (std::is_same_v<Master, float>) {
            std::copy(from.begin(), from.end(), to.begin());
        } else {
            detail::widen_to_float(from.data(), to.data(), to.size());
        }
    }

    /// What rounding has taken away from each weight of a parameter so far, with weight_update::kahan. With
    /// weight_update::split the lower halves of the masters, as codes. Else empty.
    [[nodiscard]] std::span<const Master> weight_compensation(std::size_t index) const {
        const std::size_t size = at("mp::optimizer_base::weight_compensation", index).weights.size();
        follow_weights(index);
        if (compensation_.empty()) return {};
        return std::span<const Master>(compensation_).subspan(layout_.offset(index), size);
    }

    /// Brings masters and compensations up to date with weights that something else has written, as their
    /// versions tell (mp::parameter::version). A master stays where it still rounds to the weight, and a
    /// compensation where it is at most half the spacing of numbers there; elsewhere the master is the weight
    /// and the compensation zero. After buffer_version::replaced(), such as by broadcast_weights(), all are.
    /// State such as momentum stays. Steps, checkpoints and what reads masters call it, so that reading them is
    /// not for several threads until one has called it; without a write it costs one comparison a parameter.
    void follow_weights() const {
        for (std::size_t i = 0; i < parameters_.size(); ++i) follow_weights(i);
    }

    /// Throws state_error unless the weights are those of the run, see buffer_version::is_temporary().
    void require_lasting_weights(std::string_view function) const {
        detail::require_lasting_weights(function, std::span<const parameter_type>(parameters_));
    }

    /// Whether no weights have been written by anything else since follow_weights().
    [[nodiscard]] bool masters_are_current() const noexcept {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (detail::followed_version(parameters_[i].version) != followed_[i]) return false;
        }
        return true;
    }

    /// Takes masters and compensations as they are for those of the weights: for objects that have exchanged the
    /// weights for a while and restored them.
    void adopt_weight_versions() noexcept {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            followed_[i] = detail::followed_version(parameters_[i].version);
        }
    }

    /// Takes over weights that were written without advancing their versions: sets the master copy to the weights,
    /// and compensations and lower halves to zero. State such as momentum stays.
    void reload_master_weights() noexcept {
        for (std::size_t i = 0; i < parameters_.size(); ++i) take_weights(i, true);
        adopt_weight_versions();
    }

    /// State `state` of a parameter as floats, elements `first` to first + to.size() - 1: 0 is the mean of
    /// the gradients or the momentum, 1 the mean of their squares.
    ///
    /// \throws argument_error  there is no such parameter or state, or the parameter has fewer elements
    void copy_state(std::size_t index, std::size_t state, std::size_t first, std::span<float> to) const {
        constexpr std::string_view function = "mp::optimizer_base::copy_state";
        require_room(function, index, first, to);
        if (state >= states_.size()) {
            detail::throw_argument(
                function, "state", state,
                "must be less than the number of states, which is " + detail::error_text(states_.size()));
        }
        const State* const from = states_[state].data() + layout_.offset(index) + first;
        if constexpr (has_block_moments) {
            detail::moment_window(isa_).read(from - first, scales_[state].data() + first_block_[index],
                                             parameters_[index].weights.size(), state, first, to);
        } else if constexpr (std::is_same_v<State, float>) {
            std::copy_n(from, to.size(), to.begin());
        } else {
            detail::widen_to_float(from, to.data(), to.size());
        }
    }

    /// Continues a run of another program: sets all states, rounded to nearest, and the numbers of updates. States
    /// are what copy_state() tells; see state_divisor() of optimizers whose means are kept in a reduced format.
    ///
    /// \param states   of parameter after parameter; an empty one stands for zeros. Of parameters that have no
    ///                 state here, such as momentum, all are empty
    /// \param updates  of every parameter; step_count() becomes the largest
    /// \throws state_error     the gradients are unscaled: an iteration is under way
    /// \throws argument_error  there are more or fewer of either, or of values; a value is not finite, or not in the
    ///                         range of State; a mean of squares is negative; nothing has changed
    void set_states(std::span<const std::vector<float>> states, std::span<const std::uint64_t> updates) {
        constexpr std::string_view function = "mp::optimizer_base::set_states";
        const std::size_t count = parameters_.size();
        if (unscaled_) {
            detail::throw_joined<state_error>(
                {function, ": the gradients are unscaled; do it between iterations"});
        }
        if (updates.size() != count) {
            detail::throw_argument(function, "updates.size()", updates.size(),
                                   "must be the number of parameters, which is " + detail::error_text(count));
        }
        const std::size_t each = count == 0 ? 0 : states.size() / count;
        if (states.size() != each * count || each < states_.size()) {
            detail::throw_argument(
                function, "states.size()", states.size(),
                "must be that of all parameters, which is " + detail::error_text(states_.size() * count));
        }
        for (std::size_t i = 0; i < states.size(); ++i) {
            const std::size_t size = i % each < states_.size() ? parameters_[i / each].weights.size() : 0;
            if (states[i].empty() || states[i].size() == size) continue;
            detail::throw_argument(function, "states[" + detail::error_text(i) + "].size()", states[i].size(),
                                   size == 0 ? std::string("must be 0, for there is no such state here")
                                             : "must be 0 or " + detail::error_text(size));
        }
        for (std::size_t i = 0; i < states.size(); ++i) {
            detail::require_moments<State>(function, "states[" + detail::error_text(i) + "]", states[i],
                                           detail::is_square(i % each));
        }
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t s = 0; s < states_.size(); ++s) write_state(i, s, states[i * each + s]);
        }
        std::copy(updates.begin(), updates.end(), updates_.begin());
        steps_ = updates.empty() ? 0 : *std::max_element(updates.begin(), updates.end());
    }

    /// Bytes of what this optimizer keeps: master copy or compensation, and state.
    [[nodiscard]] std::size_t state_bytes() const noexcept {
        std::size_t bytes = (masters_.size() + compensation_.size()) * sizeof(Master);
        for (const std::vector<State>& state : states_) bytes += state.size() * sizeof(State);
        for (const std::vector<float>& scales : scales_) bytes += scales.size() * sizeof(float);
        return bytes;
    }

    /// Memory that training takes for each weight, in bytes: weight, gradient, master copy or compensation,
    /// state, and the unscaled gradients once they have been looked at.
    [[nodiscard]] double bytes_per_parameter() const noexcept {
        std::size_t bytes = state_bytes() + unscaled_memory_.size() * sizeof(float);
        for (const parameter_type& it : parameters_) {
            bytes += it.weights.size_bytes() + it.gradient.size_bytes();
        }
        const std::size_t total = layout_.total();
        return total == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(total);
    }

    /// Names what this memory holds, by the names of the parameters or their indices: weights, masters,
    /// compensations, state, counts and rates.
    ///
    /// \throws state_error  the gradients are unscaled: an iteration is under way; or the weights are temporary,
    ///                      such as while an average is applied
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        require_lasting_weights(Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint");
        if constexpr (!Visitor::loads) {
            if (unscaled_) {
                detail::throw_error(
                    state_error("mp::save_checkpoint: the gradients of an optimizer are unscaled; save "
                                "between iterations"));
            }
            follow_weights();
        }
        visitor.expect("weight_update", static_cast<std::uint8_t>(how_));
        visitor.expect("seed", seed_);
        visitor("steps", steps_);
        visitor("updates", updates_);
        visitor("learning_rates", rates_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::string name =
                parameters_[i].name.empty() ? detail::error_text(i) : parameters_[i].name;
            const std::size_t size = parameters_[i].weights.size();
            const std::size_t first = parameters_[i].share_first;
            const bool shared = parameters_[i].share_of != 0;
            const std::size_t of = shared ? parameters_[i].share_of : size;
            const auto part = [&](std::string_view what, auto& array, bool there) {
                if (there) {
                    visitor(name + "." + std::string(what),
                            detail::array_share(std::span(array).subspan(layout_.offset(i), size), first, of,
                                                shared));
                }
            };
            visitor(name + ".weights", detail::array_share(parameters_[i].weights, first, of, shared));
            part("masters", masters_, has_master_copy);
            part(how_ == weight_update::split ? "low_halves" : "compensation", compensation_,
                 how_ == weight_update::kahan || how_ == weight_update::split);
            for (std::size_t s = 0; s < states_.size(); ++s) {
                const std::string state = "state" + detail::error_text(s);
                if constexpr (has_block_moments) {
                    constexpr std::size_t block = detail::moments_block;
                    auto* const codes = reinterpret_cast<std::uint8_t*>(states_[s].data());
                    visitor(
                        name + "." + state,
                        detail::array_share(std::span(codes + layout_.offset(i), size), first, of, shared));
                    visitor(name + "." + state + "_scales",
                            detail::array_share(
                                std::span(scales_[s]).subspan(first_block_[i], (size + block - 1) / block),
                                first / block, (of + block - 1) / block, shared));
                } else {
                    part(state, states_[s], true);
                }
            }
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] {
                unscaled_ = false;
                for (const parameter_type& it : parameters_) it.version.changed();
                adopt_weight_versions();
            });
        }
    }

    /// Whether a parameter takes part in the steps of an mp::training_iteration that has not used it: whose gradient no
    /// op has written or added to, and is zero. By default it does not: weights, masters, state and counts stay as
    /// they are, as in PyTorch where the gradient is None. True treats such a gradient as zeros, by which momentum
    /// and decay go on. Steps outside of iterations take every gradient as it is.
    void set_steps_unused_parameters(bool steps) noexcept { steps_unused_ = steps; }
    [[nodiscard]] bool steps_unused_parameters() const noexcept { return steps_unused_; }

    /// Whether a parameter takes part in a step now: it has a gradient, here or on other ranks, and is used.
    [[nodiscard]] bool is_used(std::size_t index) const noexcept { return is_used(index, writes_); }
    [[nodiscard]] bool is_used(std::size_t index, const detail::gradient_writes& writes) const noexcept {
        const parameter_type& it = parameters_[index];
        if (!it.trained()) return false;
        if (steps_unused_ || !writes.watched() || writes.written(index)) return true;
        if (unscaled_ && has_copy_) return detail::has_nonzero(unscaled_spans_[index]);
        return detail::has_nonzero(it.gradient);
    }
    /// Has the next step take part or not for each parameter, instead of is_used(): for ranks that agree on it.
    void set_used(std::span<const std::uint64_t> used) { agreed_.assign(used.begin(), used.end()); }

    /// Whether set_used() was called for the next step.
    [[nodiscard]] bool used_is_agreed() const noexcept { return !agreed_.empty(); }

    /// For training_iteration, which finds gradients that were overwritten or not used.
    [[nodiscard]] detail::gradient_writes& gradient_writes() noexcept { return writes_; }

protected:
    /// Has set_learning_rate refuse rates of a group that times `factor`, which is at least 1, are beyond
    /// float.
    void limit_learning_rate(double factor, std::size_t group = 0) noexcept {
        largest_factors_[group] = factor;
    }

    /// The start of a step: finds the parameters that take part, and brings their masters up to date.
    ///
    /// \throws state_error  the weights are temporary; or an iteration is open and does not step
    void begin_step() {
        require_lasting_weights("mp::optimizer_base::step");
        writes_.require_step_allowed("mp::optimizer_base::step");
        follow_weights();
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            takes_part_[i] = static_cast<std::uint8_t>(agreed_.empty() ? is_used(i) : agreed_[i] != 0);
        }
    }
    /// Whether this step updates elements of a parameter here.
    [[nodiscard]] bool takes_part(std::size_t index) const noexcept {
        return takes_part_[index] != 0 && !parameters_[index].gradient.empty();
    }
    /// The end of a step that was applied.
    void finish_step() noexcept {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (takes_part_[i] == 0) continue;
            ++updates_[i];
            parameters_[i].version.changed();
            followed_[i] = detail::followed_version(parameters_[i].version);
        }
        ++steps_;
        unscaled_ = false;
        agreed_.clear();
    }

    void require_group(std::string_view function, std::size_t group) const {
        if (group >= rates_.size()) {
            detail::throw_argument(
                function, "group", group,
                "must be less than the number of groups, which is " + detail::error_text(rates_.size()));
        }
    }

    /// Divides the states of each parameter that has been updated by divisor(index, state, updates). `memory` is for
    /// the largest parameter; nothing is allocated.
    template <class Divisor>
    void divide_states(std::span<float> memory, const Divisor& divisor) {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (updates_[i] == 0) continue;
            const std::span<float> values = memory.first(parameters_[i].weights.size());
            for (std::size_t s = 0; s < states_.size(); ++s) {
                const double by = divisor(i, s, updates_[i]);
                copy_state(i, s, 0, values);
                for (float& value : values) {
                    value = static_cast<float>(detail::double_divide(static_cast<double>(value), by));
                }
                write_state(i, s, values);
            }
        }
    }

    /// Arrays of state that there is memory for.
    [[nodiscard]] std::size_t state_count() const noexcept { return states_.size(); }

    /// Takes over the parameters and initialises the master copy from the weights.
    ///
    /// \param name    of the derived class, for messages
    /// \param rates   the learning rate of each group, checked already
    /// \param states  number of state arrays, all zero at the start
    /// \param how     what becomes of small updates; nearest unless Weight is a reduced format without master
    ///                copy
    /// \param seed    of the random bits of weight_update::stochastic
    optimizer_memory(std::string_view name, cpu exec, std::vector<parameter_type> parameters,
                     const std::vector<double>& rates, std::size_t states,
                     weight_update how = weight_update::nearest, std::uint64_t seed = 0)
        : exec_(exec), parameters_(std::move(parameters)), how_(how), seed_(seed) {
        detail::check_threads(name, exec);
        isa_ = detail::isa_of(name, exec);
        if (how != weight_update::nearest && !weights_can_stall) {
            detail::throw_argument(name, "low_precision_update", name_of(how),
                                   has_master_copy ? "must be nearest, for there is a master copy"
                                                   : "must be nearest, for the weights are float");
        }
        if (how == weight_update::split && !masters_can_split) {
            detail::throw_argument(name, "low_precision_update", name_of(how),
                                   "must be another: only a bfloat16 is half of a float");
        }
        detail::check_parameters(name, parameters_);
        rates_ = rates;
        largest_factors_.assign(rates.size(), 1.0);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (parameters_[i].group < rates_.size()) continue;
            detail::throw_argument(
                name, detail::parameter_text(i, parameters_[i].name, "group"), parameters_[i].group,
                "must be less than the number of groups, which is " + detail::error_text(rates_.size()));
        }
        std::size_t blocks = 0;
        for (const parameter_type& it : parameters_) {
            if constexpr (has_block_moments) first_block_.push_back(blocks);
            blocks += (it.weights.size() + detail::moments_block - 1) / detail::moments_block;
            layout_.add(it.weights.size());
            writes_.add(it.gradient.data(), it.gradient.size_bytes());
        }
        updates_.resize(parameters_.size());
        followed_.resize(parameters_.size());
        takes_part_.resize(parameters_.size());
        unscaled_spans_.resize(parameters_.size());
        states_.assign(states, std::vector<State>(layout_.total()));
        if constexpr (has_block_moments) scales_.assign(states, std::vector<float>(blocks));
        if constexpr (has_master_copy) masters_.resize(layout_.total());
        if (how == weight_update::kahan || how == weight_update::split) compensation_.resize(layout_.total());
        reload_master_weights();
    }

    /// With one group.
    optimizer_memory(std::string_view name, cpu exec, std::vector<parameter_type> parameters, double rate,
                     std::size_t states, weight_update how = weight_update::nearest, std::uint64_t seed = 0)
        : optimizer_memory(name, exec, std::move(parameters), std::vector<double>{rate}, states, how, seed) {}

    optimizer_memory(optimizer_memory&&) noexcept = default;
    optimizer_memory& operator=(optimizer_memory&&) noexcept = default;
    ~optimizer_memory() = default;

    /// State array `state` of parameter `index`; empty if there is none.
    [[nodiscard]] std::span<const State> state_of(std::string_view function, std::size_t index,
                                                  std::size_t state) const {
        const std::size_t size = at(function, index).weights.size();
        if (state >= states_.size()) return {};
        return std::span<const State>(states_[state]).subspan(layout_.offset(index), size);
    }

    /// Whether updates may be lost for want of digits, and there is a choice of what to do about it.
    static constexpr bool weights_can_stall = !has_master_copy && !std::is_same_v<Weight, float>;

    /// Whether a weight is the upper half of a float.
    static constexpr bool masters_can_split = [] {
        if constexpr (weights_can_stall) return detail::is_bfloat16<typename Master::format>;
        return false;
    }();

    /// Memory for the unscaled gradients; allocates at the first call only.
    void allocate_unscaled() {
        if constexpr (!std::is_same_v<Gradient, float>) unscaled_memory_.resize(layout_.total());
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::span<Gradient> gradient = parameters_[i].gradient;
            if constexpr (std::is_same_v<Gradient, float>) {
                unscaled_spans_[i] = gradient;
            } else {
                unscaled_spans_[i] =
                    std::span<float>(unscaled_memory_).subspan(layout_.offset(i), gradient.size());
            }
        }
    }

    /// Memory for the norm of the gradients; allocates at the first call only.
    void allocate_square_sums() { square_sums_.resize(layout_.chunks()); }

    /// Sets a state; no values stand for zeros.
    void write_state(std::size_t index, std::size_t state, std::span<const float> from) noexcept {
        const std::size_t size = parameters_[index].weights.size();
        State* const to = states_[state].data() + layout_.offset(index);
        if constexpr (has_block_moments) {
            detail::moment_window(isa_).write(from, size, state, to,
                                              scales_[state].data() + first_block_[index]);
        } else if (from.empty()) {
            std::fill(to, to + size, State{});
        } else {
            detail::copy_block(from.data(), to, size);
        }
    }

    /// Whether State is codes that share scales.
    static constexpr bool has_block_moments = std::is_same_v<State, block_moment>;

    /// Throws unless elements `first` on of a parameter are as many as `to` has room for.
    void require_room(std::string_view function, std::size_t index, std::size_t first,
                      std::span<float> to) const {
        const std::size_t size = at(function, index).weights.size();
        if (first > size || to.size() > size - first) {
            detail::throw_argument(function, "to.size()", to.size(),
                                   "must be at most the number of weights from `first` on, which is " +
                                       detail::error_text(first > size ? 0 : size - first));
        }
    }

    const parameter_type& at(std::string_view function, std::size_t index) const {
        if (index >= parameters_.size()) {
            detail::throw_argument(function, "index", index,
                                   "must be less than the number of parameters, which is " +
                                       detail::error_text(parameters_.size()));
        }
        return parameters_[index];
    }

    cpu exec_;
    instruction_set isa_ = instruction_set::portable;
    std::vector<parameter_type> parameters_;
    detail::parameter_layout layout_;  // of the parameters in the arrays below
    detail::gradient_writes writes_;
    // Mutable, since reading masters brings them up to date.
    mutable std::vector<detail::followed_version> followed_;  // of the weights of masters and compensations
    mutable std::vector<Master> masters_;                     // empty without a master copy
    mutable std::vector<Master> compensation_;  // empty except for weight_update::kahan and split
    std::vector<std::vector<State>> states_;
    std::vector<std::vector<float>> scales_;  // of the blocks of states that are block_moment
    std::vector<std::size_t> first_block_;    // of each parameter in them
    std::vector<float> unscaled_memory_;      // empty for float gradients, and until somebody looks at them
    std::vector<std::span<float>> unscaled_spans_;
    std::vector<double> square_sums_;     // of the blocks of the unscaled gradients
    std::vector<std::uint64_t> updates_;  // of each parameter
    std::uint64_t steps_ = 0;
    std::vector<double> rates_;            // of each group
    std::vector<double> largest_factors_;  // that an update multiplies the rate of a group by
    weight_update how_;
    std::uint64_t seed_;
    std::vector<std::uint8_t> takes_part_;  // in this step, by parameter
    std::vector<std::uint64_t> agreed_;     // by all ranks; empty where it is not
    bool steps_unused_ = false;
    bool unscaled_ = false;            // the gradients count as unscaled,
    bool has_copy_ = false;            // and are in unscaled_spans_,
    detail::pending_factors pending_;  // or are the parameters' own times these

private:
    void follow_weights(std::size_t index) const {
        if (parameters_[index].version.is_temporary()) return;  // masters are those of the lasting weights
        const detail::followed_version now(parameters_[index].version);
        if (now == followed_[index]) return;
        take_weights(index, now.replacements != followed_[index].replacements);
        followed_[index] = now;
    }

    /// Sets the masters and compensations of a parameter from its weights: all, or those that do not belong to them.
    void take_weights(std::size_t index, bool all) const {
        const std::span<const Weight> weights = parameters_[index].weights;
        const std::size_t offset = layout_.offset(index);
        if constexpr (has_master_copy) {
            detail::masters_of_weights(weights, masters_.data() + offset, all);
        } else if (!compensation_.empty()) {
            detail::compensations_of_weights(weights, compensation_.data() + offset, how_, all);
        }
    }

    void check_learning_rate(double rate, std::size_t group) const {
        detail::require_learning_rate("mp::optimizer_base::set_learning_rate", "rate", rate,
                                      largest_factors_[group]);
    }
};

}}  // namespace mp
