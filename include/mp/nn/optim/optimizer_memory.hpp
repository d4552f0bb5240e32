// SPDX-License-Identifier: MIT
/// \file
/// The memory of an optimizer with its types.
#pragma once

#include <mp/base/array_share.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/optimizer_gradients.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

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
