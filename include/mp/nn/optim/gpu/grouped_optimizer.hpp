// SPDX-License-Identifier: MIT
/// \file
/// Optimizers on a GPU with groups of parameters, that own master weights and state.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/buffer_version.hpp>
#include <mp/base/device_range.hpp>
#include <mp/base/replayed_work.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/convert.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/optimizer_record.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// used[i] = 1 where parameter i is known to be used, or an element of its gradient is not zero.
template <class Gradient>
struct find_used_work : tensor_work {
    struct arrays {
        const Gradient* from;
        bool known;
    };
    static constexpr int count = chunk_count<Gradient, Gradient>;

    std::uint32_t* used;

    struct thread_data : loads_one_array<Gradient> {
        bool active;
        std::uint32_t* used;
        std::uint32_t reported;  // the last tensor that this thread has found to be used

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t /*index*/,
                                                    const chunk<Gradient, Count>& gradient, int) {
            bool found = tensor.arrays.known;
            // By bits: with -ftz=true comparisons take subnormal numbers for zero.
            for (int i = 0; i < Count; ++i) {
                found = found || bit_cast<std::uint32_t>(static_cast<float>(gradient.values[i])) << 1 != 0;
            }
            if (!found || reported == tensor.number) return;
            thread.atomic_or(used + tensor.number, 1U);
            reported = tensor.number;
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        return split_together<count>(size, of.from);
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread& /*thread*/) const {
        return {{}, true, used, 0xffffffffU};
    }
};

/// Finds them for `count` parameters, into zeros; of those that are known one element is read.
template <class Executor, class GradientOf, class Known>
void find_used(std::string_view function, const Executor& exec, std::uint32_t* used, std::size_t count,
               const GradientOf& gradient_of, const Known& known) {
    using gradient = std::remove_cvref_t<decltype(gradient_of(0)[0])>;
    using work = find_used_work<gradient>;
    run_over_tensors(function, exec, work{{}, used}, count,
                     [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                         arrays = {gradient_of(i).data(), known(i)};
                         size = gradient_of(i).size();
                         if (arrays.known && size > 1) size = 1;
                     });
}

/// Returns the master of a weight that may have been written, which stays where it rounds to the weight, or its
/// compensation: the same as masters_of_weights().
template <class Weight, bool IsCompensation>
struct kept_beside_weight {
    MP_HOST_DEVICE MP_ALWAYS_INLINE float operator()(float weight, float kept) const {
        const float sum = IsCompensation ? float_add(weight, float_multiply(kept, 0.5F)) : kept;
        const float rounded = static_cast<float>(static_cast<Weight>(sum));
        if (bit_cast<std::uint32_t>(rounded) == bit_cast<std::uint32_t>(weight)) return kept;
        return IsCompensation ? 0.0F : weight;
    }
};

/// Updates lower halves of split masters likewise, element by element.
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
class gpu_grouped_optimizer
    : detail::replayed_work,
      public optimizer_parameters<optimizer_record, Weight, Gradient>,
      public gpu_gradients<gpu_grouped_optimizer<Executor, Options, Weight, Gradient, Master, State>,
                           Executor, gpu_parameter<Weight, Gradient, Master, State>> {
    using listed = gpu_parameter<Weight, Gradient, Master, State>;
    using base = optimizer_parameters<optimizer_record, Weight, Gradient>;
    using gradients = gpu_gradients<gpu_grouped_optimizer, Executor, listed>;
    friend gradients;
    using base::how_, base::layout_, base::parameters_, base::rates_, base::updates_, base::writes_;
    using gradients::exec_, gradients::list_;
    static constexpr std::string_view function = "mp::gpu_grouped_optimizer";
    static constexpr std::size_t line = 64;  // elements: parameters begin at a cache line of every format

public:
    using typename base::parameter_type;
    using state_type = device_optimizer<Options>;
    static constexpr bool has_master_copy = listed::has_master_copy;

    /// \param parameters  at least one, in device memory; those without a gradient are not trained
    /// \param groups      the options of each group; low_precision_update and seed are the same in all
    /// \throws argument_error  an option is out of range; a group is not among the groups, or no parameter is
    ///                         given; arrays overlap; there is not enough device memory
    gpu_grouped_optimizer(Executor exec, std::vector<parameter_type> parameters, std::vector<Options> groups)
        : base(std::move(parameters), function, sizeof(Weight), sizeof(Gradient), detail::rates_of(groups),
               detail::update_of(checked(groups)), detail::seed_of(checked(groups)), line),
          gradients(function, exec, listed_of(parameters_)),
          options_(std::move(groups)),
          copies_(exec),
          used_(function, exec, parameters_.size()),
          state_count_(detail::states_of(options_)) {
        for (const Options& it : options_) {
            states_of_groups_.emplace_back(function, exec, make_device_optimizer(it));
        }
        if (has_master_copy) allocate(&listed::masters);
        if (detail::keeps_compensation(how_)) allocate(&listed::compensation);
        if (state_count_ > 0) allocate(&listed::momentum);
        if (state_count_ > 1) allocate(&listed::mean_square);
        reload_master_weights();
    }
    gpu_grouped_optimizer(Executor exec, std::vector<parameter_type> parameters, const Options& options = {})
        : gpu_grouped_optimizer(exec, std::move(parameters), std::vector<Options>{options}) {}
    gpu_grouped_optimizer(const gpu_grouped_optimizer&) = delete;
    gpu_grouped_optimizer& operator=(const gpu_grouped_optimizer&) = delete;

    /// The options of a group, as they were given.
    [[nodiscard]] const Options& options(std::size_t group = 0) const { return options_[group]; }
    /// The arrays of a parameter, in device memory.
    [[nodiscard]] const listed& arrays(std::size_t index) const { return list_[index]; }
    /// Count of the steps of a group, and its learning rate; waits.
    [[nodiscard]] state_type state(std::size_t group = 0) const {
        return states_of_groups_[group].read(exec_);
    }
    /// Bytes of master copy, compensation and state.
    [[nodiscard]] std::size_t state_bytes() const {
        const std::size_t compensations = detail::keeps_compensation(how_) ? sizeof(Master) : 0;
        return master_bytes() + layout_.total() * (compensations + state_count_ * sizeof(State));
    }
    [[nodiscard]] std::size_t master_bytes() const {
        return has_master_copy ? layout_.total() * sizeof(Master) : 0;
    }

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
            if (now == base::followed_[i]) continue;
            rebuild_masters(i,
                            now.replacements != base::followed_[i].replacements && memory::can_keep(exec_));
            base::followed_[i] = now;
        }
    }

    /// Takes over weights that were written without advancing their versions: sets the master copy to them, and
    /// compensations and lower halves to zero.
    void reload_master_weights() {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            rebuild_masters(i, true);
            base::follow_version(i, false);
        }
    }

    /// Updates the weights for gpu_loss_scaler, if the policy lets it happen.
    template <scale_policy Policy, std::size_t Events>
    void step(const Policy& policy, const device_loss_scale<Policy, Events>* scale) {
        writes_.require_step_allowed("mp::gpu_grouped_optimizer::step");
        replayed_work::takes_part();
        before_replay();
        const std::uint32_t* const used = find_used();
        const detail::skip_by_policy<Policy, Events> skip{detail::rules_of(policy), scale};
        // Those of other groups are in the list, too, so that random bits go by the index among all.
        std::vector<listed> list = list_;
        for (std::size_t group = 0; group < options_.size(); ++group) {
            for (std::size_t i = 0; i < list.size(); ++i) {
                list[i].gradient =
                    parameters_[i].group == group ? list_[i].gradient : std::span<const Gradient>{};
            }
            detail::run_step(exec_, std::span<const listed>(list), options_[group],
                             states_of_groups_[group].data(), skip, &scale->inverse_scale,
                             gradients::clip_factor(), rate_factor_, used);
        }
        end_round();
    }
    /// Ends the round without a step.
    void skip_step() {
        follow_weights();
        end_round();
    }

    /// Names what a step depends on, for mp::save_checkpoint and mp::load_checkpoint, which wait: as the
    /// optimizer of the CPU does, so that a run goes on there and here.
    ///
    /// \throws state_error  loaded are parameters of a group with different counts of updates; or the weights are
    ///                      temporary
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        base::require_lasting_weights(Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint");
        if constexpr (!Visitor::loads) {
            follow_weights();
            read_counts();
        }
        if constexpr (requires { visitor.template stored<std::uint64_t>("updates", updates_.size()); }) {
            require_same_counts(visitor.template stored<std::uint64_t>("updates", updates_.size()));
        }
        base::visit_parameters(visitor, [this](std::size_t i, const auto& visit) {
            const listed& it = list_[i];
            const auto part = [&]<class Value>(std::string_view name, std::span<Value> values) {
                visit(name, detail::device_range<Value>{values, &copies_});
            };
            part("weights", it.weights);
            if (has_master_copy) part("masters", it.masters);
            if (detail::keeps_compensation(how_)) {
                part(how_ == weight_update::split ? "low_halves" : "compensation", it.compensation);
            }
            if (state_count_ > 0) part("state0", it.momentum);
            if (state_count_ > 1) part("state1", it.mean_square);
        });
        for (std::size_t g = 0; g < options_.size(); ++g) {
            visitor("group" + detail::error_text(g), options_[g]);
        }
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] { write_counts(); });
        }
    }

private:
    using memory = detail::executor_memory<Executor>;

    static const Options& checked(const std::vector<Options>& groups) {
        return detail::check_groups(function, "mp::make_device_optimizer", groups);
    }
    /// Sets the masters and compensations of a parameter from its weights: all, or those that do not belong to them.
    void rebuild_masters(std::size_t index, bool all) {
        const std::span<const Weight> weights = list_[index].weights;
        const std::span<Master> kept = has_master_copy ? list_[index].masters : list_[index].compensation;
        const auto count = static_cast<std::ptrdiff_t>(kept.size());
        if (all) {
            if constexpr (has_master_copy) {
                mp::convert(exec_, weights, kept);
            } else {
                memory::clear(exec_, kept.data(), kept.size_bytes());
            }
        } else if (has_master_copy || how_ == weight_update::kahan) {
            const matrix_view<Master> row = row_major(kept.data(), 1, count);
            detail::map_elements_by(function, exec_, detail::kept_beside_weight<Weight, !has_master_copy>{},
                                    row, row_major(weights.data(), 1, count), matrix_view<const Master>(row));
        } else if constexpr (sizeof(Master) == sizeof(std::uint16_t)) {
            if (how_ != weight_update::split || count == 0) return;
            using kernel = detail::low_half_kernel;
            const auto blocks = (count - 1) / kernel::threads + 1;
            launch(function, exec_,
                   simt::launch_size{.blocks = (std::min)(blocks, std::ptrdiff_t{detail::most_blocks})},
                   kernel{reinterpret_cast<const std::uint16_t*>(weights.data()),
                          reinterpret_cast<std::uint16_t*>(kept.data()), kept.size()});
        }
    }
    void before_replay() override {
        base::require_lasting_weights("mp::gpu_grouped_optimizer::step");
        follow_weights();
    }
    void after_replay() override { advance_versions(); }
    /// In device memory, for each parameter whether it takes part in this step; null if all do.
    const std::uint32_t* find_used() {
        if (base::steps_unused_ || !writes_.watched()) return nullptr;
        bool all = true;
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            all = all && (parameters_[i].gradient.empty() || writes_.written(i));
        }
        if (all) return nullptr;
        memory::clear(exec_, used_.data(), parameters_.size() * sizeof(std::uint32_t));
        detail::find_used(
            function, exec_, used_.data(), parameters_.size(),
            [this](std::size_t i) { return parameters_[i].gradient; },
            [this](std::size_t i) { return writes_.written(i); });
        return used_.data();
    }
    void end_round() {
        gradients::clipped_ = false;
        advance_versions();
    }
    /// The weights were written, and the masters are theirs.
    void advance_versions() {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            base::follow_version(i, parameters_[i].trained());
        }
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
    /// Lists the parameters without the memory of this optimizer, after a check of what only CPUs support.
    static std::vector<listed> listed_of(const std::vector<parameter_type>& parameters) {
        std::vector<listed> list;
        for (const parameter_type& it : parameters) {
            if (it.share_of != 0) {
                detail::throw_argument(function, detail::parameter_text(list.size(), it.name, "share_of"),
                                       it.share_of, "must be 0: there are no shares of ranks on GPUs");
            }
            list.push_back({.weights = it.weights, .gradient = it.gradient});
        }
        return list;
    }
    /// Allocates an array of all parameters, of zeros.
    template <class Value>
    void allocate(std::span<Value> listed::* member) {
        const std::size_t bytes = layout_.total() * sizeof(Value);
        const auto& made = memory_.emplace_back(function, exec_, bytes);
        memory::clear(exec_, made.data(), bytes);
        for (std::size_t i = 0; i < list_.size(); ++i) {
            list_[i].*
                member = {reinterpret_cast<Value*>(made.data()) + layout_.offset(i), list_[i].weights.size()};
        }
    }
    /// Calls f(parameter) for the trained parameters of a group.
    template <class Function>
    void each_of(std::size_t group, Function f) const {
        for (std::size_t i = 0; i < parameters_.size(); ++i) {
            if (parameters_[i].group == group && parameters_[i].trained()) f(i);
        }
    }
    /// The device's counts and rates, as files have them.
    void read_counts() {
        base::steps_ = 0;
        for (std::size_t g = 0; g < options_.size(); ++g) {
            const state_type now = state(g);
            rates_[g] = now.learning_rate;
            base::steps_ = (std::max)(base::steps_, std::uint64_t{now.steps});
            each_of(g, [&](std::size_t i) { updates_[i] = now.steps; });
        }
    }
    /// Throws unless the parameters of each group have had the same number of updates.
    void require_same_counts(std::span<const std::uint64_t> updates) const {
        for (std::size_t g = 0; g < options_.size(); ++g) {
            std::size_t first = updates.size();
            each_of(g, [&](std::size_t i) {
                first = (std::min)(first, i);
                if (updates[i] == updates[first]) return;
                detail::throw_error(state_error(
                    "mp::load_checkpoint: parameters of a group of mp::gpu_grouped_optimizer have had "
                    "different numbers of updates; it counts them for all of the group together"));
            });
        }
    }
    void write_counts() {
        require_same_counts(updates_);
        for (std::size_t g = 0; g < options_.size(); ++g) {
            state_type made = make_device_optimizer(options_[g]);
            made.learning_rate = rates_[g];
            each_of(g, [&](std::size_t i) { made.steps = updates_[i]; });
            states_of_groups_[g].write(exec_, made);
        }
    }

    std::vector<Options> options_;
    detail::executor_copies<Executor> copies_;
    std::vector<detail::device_values<Executor, state_type>> states_of_groups_;
    detail::device_values<Executor, std::uint32_t> used_;
    std::vector<detail::device_values<Executor, std::byte>> memory_;
    std::size_t state_count_;  // arrays of state
    const double* rate_factor_ = nullptr;
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
