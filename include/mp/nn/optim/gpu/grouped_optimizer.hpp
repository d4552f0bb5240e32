// SPDX-License-Identifier: MIT
/// \file
/// Optimizers on a GPU with groups of parameters, that own master weights and state.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/base/device_range.hpp>
#include <mp/base/replayed_work.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/gpu/update_work.hpp>
#include <mp/nn/optim/gpu/used_parameters.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/written_weights.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The master of a weight that may have been written: kept where it rounds to the weight.
template <class Weight>
struct master_of_weight {
    MP_HOST_DEVICE MP_ALWAYS_INLINE float operator()(float weight, float master) const {
        const float rounded = static_cast<float>(static_cast<Weight>(master));
        return bit_cast<std::uint32_t>(rounded) == bit_cast<std::uint32_t>(weight) ? master : weight;
    }
};

/// Its compensation, likewise: as optimizer_memory::rebuild_masters() has it.
template <class Weight>
struct compensation_of_weight {
    MP_HOST_DEVICE MP_ALWAYS_INLINE float operator()(float weight, float kept) const {
        const float sum = float_add(weight, float_multiply(kept, 0.5F));
        const float rounded = static_cast<float>(static_cast<Weight>(sum));
        return bit_cast<std::uint32_t>(rounded) == bit_cast<std::uint32_t>(weight) ? kept : 0.0F;
    }
};

/// Its lower half, likewise, element by element.
struct low_half_kernel {
    static constexpr int threads = 256;
    const std::uint16_t* weights;
    std::uint16_t* low_halves;
    std::size_t count;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const auto step = static_cast<std::size_t>(thread.blocks()) * threads;
        auto i =
            static_cast<std::size_t>(thread.block()) * threads + static_cast<std::size_t>(thread.index());
        for (; i < count; i += step) {
            const std::uint16_t low = thread.load(low_halves + i);
            thread.store(low_halves + i, low_half_beside(thread.load(weights + i), low));
        }
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// An optimizer for the parameters of a model in device memory, with groups as mp::adamw and its kin have
/// them on a CPU, and their bits. Masters, moments and compensations are its own; weights and gradients are
/// the caller's, a parameter_store's for example:
///
///     store.build(stream, seed);
///     mp::gpu_adamw<mp::cuda_stream, mp::bfloat16> optimizer(stream, store.parameters(stream), {decayed, plain});
///     optimizer.set_learning_rate_factor(inputs.device(rate).data());      // read by every step
///     mp::training_iteration iteration(scaler, optimizer);
///
/// Device memory is allocated when it is made, and never later. Every call only enqueues, but where it says
/// that it waits, and can be captured into a graph, which has the options of then. mp::gpu_optimizer is the
/// one for memory of your own.
template <gpu_executor Executor, class Options, class Weight, class Gradient = Weight, class Master = float,
          class State = Master>
class gpu_grouped_optimizer : detail::replayed_work {
    using traits = detail::optimizer_traits<Options>;
    using listed = gpu_parameter<Weight, Gradient, Master, State>;
    static constexpr std::string_view function = "mp::gpu_grouped_optimizer";
    static constexpr std::size_t line = 64;  // elements: parameters begin at a cache line of every format

public:
    using parameter_type = parameter<Weight, Gradient>;
    using state_type = device_optimizer<Options>;
    static constexpr bool has_master_copy = listed::has_master_copy;

    /// \param parameters  at least one, in device memory; those without a gradient are not trained
    /// \param groups      the options of each group; low_precision_update and seed are the same in all
    /// \throws argument_error  an option is out of range; a group is not among the groups, or no parameter is
    ///                         given; arrays overlap; there is not enough device memory
    gpu_grouped_optimizer(Executor exec, std::vector<parameter_type> parameters, std::vector<Options> groups)
        : exec_(exec),
          parameters_(std::move(parameters)),
          options_(checked(std::move(groups))),
          copies_(exec),
          norm_(function, exec, device_gradient_norm{}),
          sums_(function, exec, std::size_t{1}),
          used_(function, exec, parameters_.size()) {
        detail::check_parameters(function, parameters_);
        updates_.resize(parameters_.size());
        followed_.resize(parameters_.size());
        std::size_t states = 0;
        for (const Options& it : options_) {
            states = (std::max)(states, traits::states(it));
            states_of_groups_.emplace_back(function, exec, make_device_optimizer(it));
            rates_.push_back(it.learning_rate);
        }
        std::size_t total = 0;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const parameter_type& it = parameters_[i];
            if (it.group >= options_.size()) {
                detail::throw_argument(function, detail::parameter_text(i, it.name, "group"), it.group,
                                       "must be less than the number of groups, which is " +
                                           detail::error_text(options_.size()));
            }
            if (it.share_of != 0) {
                detail::throw_argument(function, detail::parameter_text(i, it.name, "share_of"), it.share_of,
                                       "must be 0: there are no shares of ranks on GPUs");
            }
            writes_.add(it.gradient.data(), it.gradient.size_bytes());
            offsets_.push_back(total);
            total += (it.weights.size() + line - 1) / line * line;
        }
        memory_.reserve(2 + states);
        if (has_master_copy) masters_ = array<Master>(total);
        if (how() == weight_update::kahan || how() == weight_update::split) {
            compensation_ = array<Master>(total);
        }
        for (std::size_t s = 0; s < states; ++s) moments_[s] = array<State>(total);
        state_count_ = states;
        for (std::size_t i = 0; i < parameters_.size(); ++i) all_.push_back(arrays_of(i));
        sums_ = detail::device_values<Executor, double>(function, exec, gradient_norm_workspace(all_));
        reload_master_weights();
    }
    gpu_grouped_optimizer(Executor exec, std::vector<parameter_type> parameters, const Options& options = {})
        : gpu_grouped_optimizer(exec, std::move(parameters), std::vector<Options>{options}) {}
    gpu_grouped_optimizer(const gpu_grouped_optimizer&) = delete;
    gpu_grouped_optimizer& operator=(const gpu_grouped_optimizer&) = delete;

    /// The parameters, the name of one, the number of groups and the options of one, as they were given.
    [[nodiscard]] std::span<const parameter_type> parameters() const { return parameters_; }
    [[nodiscard]] std::string_view parameter_name(std::size_t index) const { return parameters_[index].name; }
    [[nodiscard]] std::size_t group_count() const { return options_.size(); }
    [[nodiscard]] const Options& options(std::size_t group = 0) const { return options_[group]; }
    /// The arrays of a parameter, in device memory.
    [[nodiscard]] const listed& arrays(std::size_t index) const { return all_[index]; }
    /// Count of the steps of a group, and its learning rate; waits.
    [[nodiscard]] state_type state(std::size_t group = 0) const {
        return states_of_groups_[group].read(exec_);
    }
    /// Bytes of what this optimizer keeps.
    [[nodiscard]] std::size_t state_bytes() const {
        std::size_t sum = (masters_.size() + compensation_.size()) * sizeof(Master);
        for (const std::span<State> it : moments_) sum += it.size_bytes();
        return sum;
    }
    [[nodiscard]] std::size_t master_bytes() const { return masters_.size_bytes(); }

    /// From now on every step takes the learning rates of the options times *factor, what a schedule says: a
    /// place in device memory, which step_inputs fills. Null for the rates of the options. The products must
    /// be what the options may have as a learning rate, which nobody checks.
    void set_learning_rate_factor(const double* factor) { rate_factor_ = factor; }

    /// As optimizer_memory::follow_weights() of the host. In what is captured into a graph, masters that round to
    /// their weights stay also after buffer_version::replaced(), for the graph runs again.
    void follow_weights() {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (parameters_[i].version.is_temporary()) continue;
            const detail::followed_version now(parameters_[i].version);
            if (now == followed_[i]) continue;
            const bool all = now.replacements != followed_[i].replacements &&
                             detail::executor_memory<Executor>::can_keep(exec_);
            rebuild_masters(i, all);
            followed_[i] = now;
        }
    }

    /// Throws state_error unless the weights are those of the run, see buffer_version::is_temporary().
    void require_lasting_weights(std::string_view caller) const {
        detail::require_lasting_weights(caller, std::span<const parameter_type>(parameters_));
    }

    /// Takes over weights that were written without advancing their versions: sets the master copy to them, and
    /// compensations and lower halves to zero.
    void reload_master_weights() {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            rebuild_masters(i, true);
            followed_[i] = detail::followed_version(parameters_[i].version);
        }
    }

    /// For gpu_loss_scaler, as gpu_optimizer has it: looks for infinities, clips by the norm of all, steps, or skips a step.
    template <scale_policy Policy, std::size_t Events>
    void check_gradients(device_loss_scale<Policy, Events>* scale) {
        mp::check_gradients(exec_, all_, scale, 0, limit());
    }
    template <scale_policy Policy, std::size_t Events>
    void clip_gradient_norm(device_loss_scale<Policy, Events>* scale, double max_norm) {
        detail::run_gradient_norm(exec_, all_, &scale->inverse_scale,
                                  std::span<double>(sums_.data(), gradient_norm_workspace(all_)),
                                  norm_.data(), max_norm, &scale->seen, 0, limit(),
                                  !detail::is_non_finite(max_norm));
        clipped_ = true;
    }
    template <scale_policy Policy, std::size_t Events>
    void step(const Policy& policy, const device_loss_scale<Policy, Events>* scale) {
        writes_.require_step_allowed("mp::gpu_grouped_optimizer::step");
        replayed_work::takes_part();
        before_replay();
        const float* const factor = clipped_ ? &norm_.data()->clip_factor : nullptr;
        const std::uint32_t* const used = find_used();
        const detail::skip_by_policy<Policy, Events> skip{detail::rules_of(policy), scale};
        // Those of other groups are in the list, too, so that random bits go by the index among all.
        std::vector<listed> list = all_;
        for (std::size_t group = 0; group < options_.size(); ++group) {
            for (std::size_t i = 0; i < list.size(); ++i) {
                list[i].gradient =
                    parameters_[i].group == group ? all_[i].gradient : std::span<const Gradient>{};
            }
            detail::run_step(exec_, std::span<const listed>(list), options_[group],
                             states_of_groups_[group].data(), skip, &scale->inverse_scale, factor,
                             rate_factor_, used);
        }
        end_round();
    }
    [[nodiscard]] device_gradient_norm* clipping() { return norm_.data(); }
    void skip_step() {
        follow_weights();
        end_round();
    }
    [[nodiscard]] detail::gradient_writes& gradient_writes() noexcept { return writes_; }
    /// As that of the optimizer of the host, except that a group counts its steps for all of its parameters. The device
    /// looks for zeros in gradients that no op of the iteration's thread has written; what is captured does so again.
    /// Where ranks reduce gradients on GPUs, every parameter takes part.
    void set_steps_unused_parameters(bool steps) noexcept { steps_unused_ = steps; }
    [[nodiscard]] bool steps_unused_parameters() const noexcept { return steps_unused_; }

    /// Names what a step depends on, for mp::save_checkpoint and mp::load_checkpoint, which wait: as the
    /// optimizer of the CPU does, so that a run goes on there and here.
    ///
    /// \throws state_error  loaded are parameters of a group with different counts of updates; or the weights are
    ///                      temporary
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        require_lasting_weights(Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint");
        if constexpr (!Visitor::loads) follow_weights();
        visitor.expect("weight_update", static_cast<std::uint8_t>(how()));
        visitor.expect("seed", seed());
        if constexpr (!Visitor::loads) read_counts();
        if constexpr (requires { visitor.template stored<std::uint64_t>("updates", updates_.size()); }) {
            require_same_counts(visitor.template stored<std::uint64_t>("updates", updates_.size()));
        }
        visitor("steps", steps_);
        visitor("updates", updates_);
        visitor("learning_rates", rates_);
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            const std::string name =
                parameters_[i].name.empty() ? detail::error_text(i) : parameters_[i].name;
            const std::size_t size = parameters_[i].weights.size();
            const auto part = [&]<class Value>(std::string_view what, std::span<Value> values) {
                if (values.empty() && size != 0) return;
                visitor(name + "." + std::string(what), detail::device_range<Value>{values, &copies_});
            };
            part("weights", all_[i].weights);
            part("masters", all_[i].masters);
            part(how() == weight_update::split ? "low_halves" : "compensation", all_[i].compensation);
            for (std::size_t s = 0; s < state_count_; ++s) {
                part("state" + detail::error_text(s), s == 0 ? all_[i].momentum : all_[i].mean_square);
            }
        }
        for (std::size_t g = 0; g < options_.size(); ++g) {
            visitor("group" + detail::error_text(g), options_[g]);
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] {
                write_counts();
                advance_versions();
            });
        }
    }

private:
    /// Sets the masters and compensations of a parameter from its weights: all, or those that do not belong to them.
    void rebuild_masters(std::size_t index, bool all) {
        const listed& it = all_[index];
        const auto count = static_cast<std::ptrdiff_t>(it.weights.size());
        const auto row = [count](auto values) { return row_major(values.data(), 1, count); };
        const matrix_view<const Weight> weights = row(it.weights);
        if constexpr (has_master_copy) {
            if (all) {
                mp::convert(exec_, std::span<const Weight>(it.weights), it.masters);
            } else {
                detail::map_elements_by(function, exec_, detail::master_of_weight<Weight>{}, row(it.masters),
                                        weights, matrix_view<const Master>(row(it.masters)));
            }
        } else if (all) {
            detail::executor_memory<Executor>::clear(exec_, it.compensation.data(),
                                                     it.compensation.size_bytes());
        } else if (how() == weight_update::kahan) {
            detail::map_elements_by(function, exec_, detail::compensation_of_weight<Weight>{},
                                    row(it.compensation), weights,
                                    matrix_view<const Master>(row(it.compensation)));
        } else if constexpr (sizeof(Master) == sizeof(std::uint16_t)) {
            if (how() != weight_update::split || count == 0) return;
            using kernel = detail::low_half_kernel;
            const auto blocks = (count - 1) / kernel::threads + 1;
            launch(function, exec_,
                   simt::launch_size{.blocks = (std::min)(blocks, std::ptrdiff_t{detail::most_blocks})},
                   kernel{reinterpret_cast<const std::uint16_t*>(it.weights.data()),
                          reinterpret_cast<std::uint16_t*>(it.compensation.data()), it.weights.size()});
        }
    }
    void before_replay() override {
        require_lasting_weights("mp::gpu_grouped_optimizer::step");
        follow_weights();
    }
    void after_replay() override { advance_versions(); }
    /// In device memory, for each parameter whether it takes part in this step; null if all do.
    const std::uint32_t* find_used() {
        if (steps_unused_ || !writes_.watched()) return nullptr;
        bool all = true;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            all = all && (parameters_[i].gradient.empty() || writes_.written(i));
        }
        if (all) return nullptr;
        detail::executor_memory<Executor>::clear(exec_, used_.data(),
                                                 parameters_.size() * sizeof(std::uint32_t));
        detail::find_used(
            function, exec_, used_.data(), parameters_.size(),
            [this](std::size_t i) { return parameters_[i].gradient; },
            [this](std::size_t i) { return writes_.written(i); });
        return used_.data();
    }
    void end_round() {
        clipped_ = false;
        advance_versions();
    }
    /// The weights were written, and the masters are theirs.
    void advance_versions() {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (parameters_[i].trained()) parameters_[i].version.changed();
            followed_[i] = detail::followed_version(parameters_[i].version);
        }
    }
    static std::vector<Options> checked(std::vector<Options> groups) {
        if (groups.empty()) {
            detail::throw_argument(function, "groups.size()", groups.size(), "must be at least 1");
        }
        if constexpr (requires(const Options& it) { it.low_precision_update; }) {
            for (const Options& it : groups) {
                if (it.low_precision_update != groups[0].low_precision_update) {
                    detail::throw_argument(function, "low_precision_update", name_of(it.low_precision_update),
                                           "must be that of all groups");
                }
                if (it.seed != groups[0].seed) {
                    detail::throw_argument(function, "seed", it.seed, "must be that of all groups");
                }
            }
        }
        return groups;
    }
    [[nodiscard]] weight_update how() const {
        if constexpr (requires { options_[0].low_precision_update; }) return options_[0].low_precision_update;
        return weight_update::nearest;
    }
    [[nodiscard]] std::uint64_t seed() const {
        if constexpr (requires { options_[0].seed; }) return options_[0].seed;
        return 0;
    }

    /// The gradients that steps of all groups take. The learning rate is that of the group whose step it limits most,
    /// as checks read it on the device.
    [[nodiscard]] device_gradient_limit limit() const {
        device_gradient_limit result;
        double state = result.limits.state;
        double smallest = std::numeric_limits<double>::infinity();
        for (std::size_t g = 0; g < options_.size(); ++g) {
            const bool is_factor = rate_factor_ != nullptr;
            auto of_group =
                gradient_limit<listed>(options_[g], is_factor ? nullptr : states_of_groups_[g].data());
            if (is_factor) of_group.rate_factor = rate_factor_;
            state = (std::min)(state, of_group.limits.state);
            const double rate = is_factor ? options_[g].learning_rate : rates_[g];
            const double step = detail::double_divide(of_group.limits.step, rate);
            if (step < smallest) {
                smallest = step;
                result = of_group;
            }
        }
        result.limits.state = state;
        return result;
    }
    /// Zeros of the device.
    template <class Value>
    std::span<Value> array(std::size_t count) {
        memory_.emplace_back(function, exec_, count * sizeof(Value));
        detail::executor_memory<Executor>::clear(exec_, memory_.back().data(), count * sizeof(Value));
        return {reinterpret_cast<Value*>(memory_.back().data()), count};
    }
    [[nodiscard]] listed arrays_of(std::size_t index) const {
        const parameter_type& it = parameters_[index];
        const auto part = [&](auto all) {
            return all.empty() ? all : all.subspan(offsets_[index], it.weights.size());
        };
        listed result;
        result.weights = it.weights;
        result.gradient = it.gradient;
        result.masters = part(masters_);
        result.momentum = part(moments_[0]);
        result.mean_square = part(moments_[1]);
        result.compensation = part(compensation_);
        return result;
    }
    /// The device's counts and rates, as files have them.
    void read_counts() {
        steps_ = 0;
        updates_.assign(parameters_.size(), 0);
        for (std::size_t g = 0; g < options_.size(); ++g) {
            const state_type now = state(g);
            rates_[g] = now.learning_rate;
            steps_ = (std::max)(steps_, std::uint64_t{now.steps});
            for (std::size_t i = 0; i < updates_.size(); ++i) {
                if (parameters_[i].group == g && parameters_[i].trained()) updates_[i] = now.steps;
            }
        }
    }
    /// Throws unless the parameters of each group have had the same number of updates.
    void require_same_counts(std::span<const std::uint64_t> updates) const {
        std::vector<std::uint64_t> of_group(options_.size(), ~std::uint64_t{0});
        for (std::size_t i = 0; i < updates.size(); ++i) {
            if (!parameters_[i].trained()) continue;
            std::uint64_t& count = of_group[parameters_[i].group];
            if (count != ~std::uint64_t{0} && count != updates[i]) {
                detail::throw_error(state_error(
                    "mp::load_checkpoint: parameters of a group of mp::gpu_grouped_optimizer have had "
                    "different numbers of updates; it counts them for all of the group together"));
            }
            count = updates[i];
        }
    }
    void write_counts() {
        require_same_counts(updates_);
        for (std::size_t g = 0; g < options_.size(); ++g) {
            state_type made = make_device_optimizer(options_[g]);
            made.learning_rate = rates_[g];
            for (std::size_t i = 0; i < updates_.size(); ++i) {
                if (parameters_[i].group == g && parameters_[i].trained()) made.steps = updates_[i];
            }
            states_of_groups_[g].write(exec_, made);
        }
    }

    Executor exec_;
    std::vector<parameter_type> parameters_;
    std::vector<Options> options_;
    detail::executor_copies<Executor> copies_;
    std::vector<detail::device_values<Executor, state_type>> states_of_groups_;
    detail::device_values<Executor, device_gradient_norm> norm_;
    detail::device_values<Executor, double> sums_;
    detail::device_values<Executor, std::uint32_t> used_;
    std::vector<detail::device_values<Executor, std::byte>> memory_;
    std::span<Master> masters_;  // empty without a master copy
    std::span<Master> compensation_;
    std::array<std::span<State>, 2> moments_;
    std::size_t state_count_ = 0;
    std::vector<detail::followed_version>
        followed_;                      // of the weights that masters and compensations belong to
    std::vector<std::size_t> offsets_;  // of the parameters in these
    std::vector<listed> all_;
    detail::gradient_writes writes_;
    std::uint64_t steps_ = 0;             // of a checkpoint that is saved or loaded, with the next two
    std::vector<std::uint64_t> updates_;  // of each parameter
    std::vector<double> rates_;           // of each group
    const double* rate_factor_ = nullptr;
    bool clipped_ = false;
    bool steps_unused_ = false;
};

/// mp::adamw, mp::sgd and mp::lion on a GPU.
template <gpu_executor Executor, class Weight, class Gradient = Weight, class Master = float,
          class State = Master>
using gpu_adamw = gpu_grouped_optimizer<Executor, adamw_options, Weight, Gradient, Master, State>;
template <gpu_executor Executor, class Weight, class Gradient = Weight, class Master = float,
          class State = Master>
using gpu_sgd = gpu_grouped_optimizer<Executor, sgd_options, Weight, Gradient, Master, State>;
template <gpu_executor Executor, class Weight, class Gradient = Weight, class Master = float,
          class State = Master>
using gpu_lion = gpu_grouped_optimizer<Executor, lion_options, Weight, Gradient, Master, State>;

}}  // namespace mp
