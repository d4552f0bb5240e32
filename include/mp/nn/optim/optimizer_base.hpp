// SPDX-License-Identifier: MIT
/// \file
/// The memory of an optimizer with its types, and the passes that apply an update.
#pragma once

#include <mp/base/array_share.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/optimizer_gradients.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <array>
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
class optimizer_memory : public optimizer_parameters<optimizer_gradients, Weight, Gradient> {
    using base = optimizer_parameters<optimizer_gradients, Weight, Gradient>;

public:
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using state_type = State;
    using typename base::parameter_type;

    /// Whether there is a master copy beside the weights.
    static constexpr bool has_master_copy = !std::is_same_v<Weight, Master>;

    /// The weights in the precision in which they are trained: the master copy, or the weights themselves.
    [[nodiscard]] std::span<const Master> master_weights(std::size_t index) const {
        const std::size_t size = base::at("mp::optimizer_base::master_weights", index).size;
        base::follow_weights_of(index);
        return {static_cast<const Master*>(base::masters_of(index)), size};
    }

    /// What rounding has taken away from each weight of a parameter so far, with weight_update::kahan. With
    /// weight_update::split the lower halves of the masters, as codes. Else empty.
    [[nodiscard]] std::span<const Master> weight_compensation(std::size_t index) const {
        const std::size_t size = base::at("mp::optimizer_base::weight_compensation", index).size;
        base::follow_weights_of(index);
        if (base::compensation_.empty()) return {};
        return elements<Master>(base::compensation_, index, size);
    }

    /// Names what this memory holds, by the names of the parameters or their indices: weights, masters,
    /// compensations, state, counts and rates.
    ///
    /// \throws state_error  the gradients are unscaled: an iteration is under way; or the weights are temporary,
    ///                      such as while an average is applied
    template <class Visitor>
    void visit_state(Visitor& visitor) {
        base::require_lasting_weights(Visitor::loads ? "mp::load_checkpoint" : "mp::save_checkpoint");
        if constexpr (!Visitor::loads) {
            if (base::unscaled_) {
                detail::throw_error(
                    state_error("mp::save_checkpoint: the gradients of an optimizer are unscaled; save "
                                "between iterations"));
            }
            base::follow_weights();
        }
        base::visit_parameters(visitor, [this](std::size_t i, const auto& visit) {
            const parameter_type& it = base::parameters_[i];
            const std::size_t size = it.weights.size();
            const bool shared = it.share_of != 0;
            const std::size_t of = shared ? it.share_of : size;
            const auto part = [&]<class Value>(std::string_view name, std::span<Value> values) {
                visit(name, detail::array_share(values, it.share_first, of, shared));
            };
            part("weights", it.weights);
            if (has_master_copy) part("masters", elements<Master>(base::masters_, i, size));
            if (detail::keeps_compensation(base::how_)) {
                part(base::how_ == weight_update::split ? "low_halves" : "compensation",
                     elements<Master>(base::compensation_, i, size));
            }
            for (std::size_t s = 0; s < base::states_.size(); ++s) {
                const std::string state = "state" + detail::error_text(s);
                if constexpr (std::is_same_v<State, block_moment>) {
                    constexpr std::size_t block = detail::moments_block;
                    part(state, elements<std::uint8_t>(base::states_[s], i, size));
                    const std::span<float> scales(base::scales_[s].data() + base::first_block_[i],
                                                  (size + block - 1) / block);
                    visit(state + "_scales", detail::array_share(scales, it.share_first / block,
                                                                 (of + block - 1) / block, shared));
                } else {
                    part(state, elements<State>(base::states_[s], i, size));
                }
            }
        });
        if constexpr (Visitor::loads) {
            visitor.when_loaded([this] { base::unscaled_ = false; });
        }
    }

protected:
    /// See optimizer_state.
    optimizer_memory(std::string_view name, const cpu& exec, std::vector<parameter_type> parameters,
                     const std::vector<double>& rates, std::size_t states,
                     weight_update how = weight_update::nearest, std::uint64_t seed = 0)
        : base(std::move(parameters), name, exec, detail::types_of_update<Weight, Gradient, Master, State>,
               detail::gradient_record<Gradient>::record, rates, states, how, seed) {}

    /// With one group.
    optimizer_memory(std::string_view name, const cpu& exec, std::vector<parameter_type> parameters,
                     double rate, std::size_t states, weight_update how = weight_update::nearest,
                     std::uint64_t seed = 0)
        : optimizer_memory(name, exec, std::move(parameters), std::vector<double>{rate}, states, how, seed) {}

    optimizer_memory(optimizer_memory&&) noexcept = default;
    optimizer_memory& operator=(optimizer_memory&&) noexcept = default;
    ~optimizer_memory() = default;

    /// State array `state` of parameter `index`; empty if there is none.
    [[nodiscard]] std::span<const State> state_of(std::string_view function, std::size_t index,
                                                  std::size_t state) const {
        const std::size_t size = base::at(function, index).size;
        if (state >= base::states_.size()) return {};
        return elements<const State>(base::states_[state], index, size);
    }

    /// Divides the states of each parameter that has been updated by divisor(index, state, updates). `memory` is for
    /// the largest parameter; nothing is allocated.
    template <class Divisor>
    void divide_states(std::span<float> memory, const Divisor& divisor) {
        for (std::size_t i = 0; i < base::parameters_.size(); ++i) {
            if (base::updates_[i] == 0) continue;
            const std::span<float> values = memory.first(base::parameters_[i].weights.size());
            for (std::size_t s = 0; s < base::states_.size(); ++s) {
                const double by = divisor(i, s, base::updates_[i]);
                base::copy_state(i, s, 0, values);
                for (float& value : values) {
                    value = static_cast<float>(detail::double_divide(static_cast<double>(value), by));
                }
                base::write_state(i, s, values);
            }
        }
    }

private:
    /// The elements of a parameter in an array of all.
    template <class Value, class Bytes>
    [[nodiscard]] std::span<Value> elements(Bytes& all, std::size_t index, std::size_t size) const {
        return {reinterpret_cast<Value*>(all.data()) + base::layout_.offset(index), size};
    }
};

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Updates a chunk block by block: the rule is a plain float loop, and the conversions before and after it
/// stay in the first-level cache. Rule: (float* weights, const float* gradient, std::array<float*, States>
/// states, std::size_t count).
template <std::size_t States, class Rule>
void update_by_rule(instruction_set isa, const update_arrays& arrays, const Rule& rule) {
    const default_floating_point_modes modes;
    update_buffers buffers(isa, arrays, States);
    alignas(64) float gradient[update_block];
    for (std::size_t at = 0; at < arrays.count; at += update_block) {
        const std::size_t count = (std::min)(update_block, arrays.count - at);
        const update_rows rows = buffers.load(at, count);
        scale_row(rows.gradient, gradient, count, arrays.inverse_scale, arrays.clip_factor);
        std::array<float*, States> states{};
        for (std::size_t s = 0; s != States; ++s) states[s] = rows.states[s];
        rule(rows.weights, static_cast<const float*>(gradient), states, count);
        buffers.store(at, count);
    }
}

}}  // namespace mp::detail

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
class optimizer_base : public optimizer_memory<Weight, Gradient, Master, State> {
    using memory = optimizer_memory<Weight, Gradient, Master, State>;

public:
    using memory::has_master_copy;
    using typename memory::parameter_type;

protected:
    using memory::begin_step;
    using memory::finish_step;
    using memory::memory;
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
        static_assert(!std::is_same_v<State, block_moment>,
                      "mp::optimizer_base::apply: a rule of your own has no moments in blocks; take float, "
                      "bfloat16 or half for State");
        static_assert(States <= detail::max_states, "mp::optimizer_base::apply: a rule has at most 8 states");
        const detail::default_floating_point_modes modes;
        begin_step();
        // Nothing below throws once the first chunk has begun, so a failure to start threads changes nothing.
        memory::layout_.for_each_chunk(
            memory::exec_, detail::update_grain, [&](std::size_t i, std::size_t first, std::size_t last) {
                if (!takes_part(i)) return;
                detail::update_arrays arrays = memory::arrays_of(i, first, last, inverse_scale);
                arrays.how = weight_update::nearest;
                const std::uint64_t update = arrays.update;
                if constexpr (std::invocable<Rule&, std::uint64_t, std::size_t>) {
                    detail::update_by_rule<States>(memory::isa_, arrays,
                                                   rule(update, memory::arrays_[i].group));
                } else {
                    detail::update_by_rule<States>(memory::isa_, arrays, rule(update));
                }
            });
        finish_step();
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
        detail::parallel_for(memory::exec_, memory::arrays_.size(), 1,
                             [&](std::size_t begin, std::size_t end) {
                                 const detail::default_floating_point_modes modes_of_thread;
                                 for (std::size_t i = begin; i < end; ++i) {
                                     if (!takes_part(i)) continue;
                                     const detail::update_arrays arrays =
                                         memory::arrays_of(i, 0, memory::arrays_[i].size, inverse_scale);
                                     f(i, arrays.update, detail::whole_parameter{memory::isa_, arrays});
                                 }
                             });
        finish_step();
    }
};

}}  // namespace mp
