// SPDX-License-Identifier: MIT
/// \file
/// The passes of all optimizers that apply an update.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/optimizer_memory.hpp>
#include <mp/nn/optim/update_passes.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

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
