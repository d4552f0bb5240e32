// SPDX-License-Identifier: MIT
/// \file
/// The memory of all optimizers, whatever their types: parameters, master weights, state, and unscaled gradients.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/optimizer_record.hpp>
#include <mp/nn/optim/parameter.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/kernels/unscale.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#if MP_CORE_BODIES
#include <mp/arrays/array/row_type.hpp>
#include <mp/base/argument_checks.hpp>
#include <mp/base/bits.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstring>
#include <utility>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Factors of gradients that an update applies, each product rounded to float: first the inverse scale, then the
/// clip factor.
struct pending_factors {
    float inverse_scale = 1.0F;
    float clip_factor = 1.0F;
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

/// The parameters and the state of an optimizer, in the functions that do not depend on their types. See
/// optimizer_memory, which has the types, and optimizer_base.
class optimizer_state : public optimizer_record {
public:
    /// The present learning rate of a group. Throws argument_error if there is no such group.
    [[nodiscard]] double learning_rate(std::size_t group = 0) const;

    /// Sets the learning rate of the following steps, of all groups; finite and not negative, and so is as a
    /// float whatever an update makes of it, else argument_error.
    void set_learning_rate(double rate);
    /// Sets that of one group. Throws argument_error also if there is no such group.
    void set_learning_rate(double rate, std::size_t group);

    /// Steps applied so far; skipped ones do not count.
    [[nodiscard]] MP_ALWAYS_INLINE std::uint64_t step_count() const noexcept { return steps_; }

    /// Copies the weights in the precision in which they are trained, as floats: elements `first` to
    /// first + to.size() - 1. With weight_update::split this is the only way to them: master_weights are the weights
    /// then.
    ///
    /// \throws argument_error  there is no such parameter, or it has fewer elements
    void copy_master_weights(std::size_t index, std::size_t first, std::span<float> to) const;

    /// Brings masters and compensations up to date with weights that something else has written, as their
    /// versions tell (mp::parameter::version). A master stays where it still rounds to the weight, and a
    /// compensation where it is at most half the spacing of numbers there; elsewhere the master is the weight
    /// and the compensation zero. After buffer_version::replaced(), such as by broadcast_weights(), all are.
    /// State such as momentum stays. Steps, checkpoints and what reads masters call it, so that reading them is
    /// not for several threads until one has called it; without a write it costs one comparison a parameter.
    void follow_weights() const;

    /// Whether no weights have been written by anything else since follow_weights().
    [[nodiscard]] bool masters_are_current() const noexcept;

    /// Takes masters and compensations as they are for those of the weights: for objects that have exchanged the
    /// weights for a while and restored them.
    void adopt_weight_versions() noexcept;

    /// Takes over weights that were written without advancing their versions: sets the master copy to the weights,
    /// and compensations and lower halves to zero. State such as momentum stays.
    void reload_master_weights() noexcept;

    /// Copies a state of a parameter as floats, elements `first` to first + to.size() - 1: 0 is the mean of
    /// the gradients or the momentum, 1 the mean of their squares.
    ///
    /// \throws argument_error  there is no such parameter or state, or the parameter has fewer elements
    void copy_state(std::size_t index, std::size_t state, std::size_t first, std::span<float> to) const;

    /// Continues a run of another program: sets all states, rounded to nearest, and the numbers of updates. States
    /// are those of copy_state(); see state_divisor() of optimizers whose means are kept in a reduced format.
    ///
    /// \param states   of parameter after parameter; an empty one stands for zeros. Of parameters that have no
    ///                 state here, such as momentum, all are empty
    /// \param updates  of every parameter; step_count() becomes the largest
    /// \throws state_error     the gradients are unscaled: an iteration is under way
    /// \throws argument_error  there are more or fewer of either, or of values; a value is not finite, or not in the
    ///                         range of the state; a mean of squares is negative; nothing has changed
    void set_states(std::span<const std::vector<float>> states, std::span<const std::uint64_t> updates);

    /// Bytes of what this optimizer keeps: master copy or compensation, and state.
    [[nodiscard]] std::size_t state_bytes() const noexcept;

    /// Memory that training takes for each weight, in bytes: weight, gradient, master copy or compensation,
    /// state, and the unscaled gradients once they have been used.
    [[nodiscard]] double bytes_per_parameter() const noexcept;

    /// Whether a parameter takes part in a step now: it has a gradient, here or on other ranks, and is used.
    [[nodiscard]] MP_ALWAYS_INLINE bool is_used(std::size_t index) const noexcept {
        return is_used(index, writes_);
    }
    [[nodiscard]] bool is_used(std::size_t index, const detail::gradient_writes& writes) const noexcept;
    /// Has the next step take part or not for each parameter, instead of is_used(): for ranks that agree on it.
    void set_used(std::span<const std::uint64_t> used);

    /// Whether set_used() was called for the next step.
    [[nodiscard]] MP_ALWAYS_INLINE bool used_is_agreed() const noexcept { return !agreed_.empty(); }

protected:
    /// Takes over the parameters and initialises the master copy from the weights.
    ///
    /// \param name    of the derived class, for messages
    /// \param rates   the learning rate of each group, checked already
    /// \param states  number of state arrays, all zero at the start
    /// \param how     what becomes of small updates; nearest unless Weight is a reduced format without master
    ///                copy
    /// \param seed    of the random bits of weight_update::stochastic
    optimizer_state(std::vector<detail::untyped_parameter> parameters, std::string_view name, const cpu& exec,
                    const detail::update_types& types, const detail::gradient_type& gradient,
                    const std::vector<double>& rates, std::size_t states, weight_update how,
                    std::uint64_t seed);
    optimizer_state(optimizer_state&&) noexcept;
    optimizer_state& operator=(optimizer_state&&) noexcept;
    ~optimizer_state();

    /// Has set_learning_rate refuse rates of a group that times `factor`, which is at least 1, are beyond
    /// float.
    MP_ALWAYS_INLINE void limit_learning_rate(double factor, std::size_t group = 0) noexcept {
        largest_factors_[group] = factor;
    }

    /// Starts a step: finds the parameters that take part, and brings their masters up to date.
    ///
    /// \throws state_error  the weights are temporary; or an iteration is open and does not step
    void begin_step();
    /// Whether this step updates elements of a parameter here.
    [[nodiscard]] MP_ALWAYS_INLINE bool takes_part(std::size_t index) const noexcept {
        return takes_part_[index] != 0 && arrays_[index].gradient_size != 0;
    }
    /// Ends a step that was applied.
    void finish_step() noexcept;

    /// follow_weights() for one parameter.
    void follow_weights_of(std::size_t index) const;

    /// Elements first to last - 1 of a parameter, with the gradient that an update uses: the unscaled one if it is
    /// there, else its own times `inverse_scale`.
    [[nodiscard]] detail::update_arrays arrays_of(std::size_t index, std::size_t first, std::size_t last,
                                                  float inverse_scale) noexcept;

    /// Arrays of state that there is memory for.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t state_count() const noexcept { return states_.size(); }

    /// Memory for the unscaled gradients; allocates at the first call only.
    void allocate_unscaled();
    /// Memory for the norm of the gradients; allocates at the first call only.
    MP_ALWAYS_INLINE void allocate_square_sums() { square_sums_.resize(layout_.chunks()); }

    /// Sets a state, rounded to nearest; no values stand for zeros.
    void write_state(std::size_t index, std::size_t state, std::span<const float> from) noexcept;

    [[nodiscard]] MP_ALWAYS_INLINE bool has_block_moments() const noexcept {
        return types_->state == nullptr;
    }
    /// The master of a parameter's first weight, or the weight.
    [[nodiscard]] void* masters_of(std::size_t index) const noexcept;

    const detail::update_types* types_;
    const detail::gradient_type* gradient_type_;
    cpu exec_;
    instruction_set isa_ = instruction_set::portable;
    // Mutable, since reading masters brings them up to date.
    mutable std::vector<std::byte> masters_;       // empty without a master copy
    mutable std::vector<std::byte> compensation_;  // empty except for weight_update::kahan and split
    std::vector<std::vector<std::byte>> states_;
    std::vector<std::vector<float>> scales_;  // of the blocks of states that are block_moment
    std::vector<std::size_t> first_block_;    // of each parameter in them
    std::vector<float> unscaled_memory_;      // empty for float gradients, and until they are first read
    std::vector<std::span<float>> unscaled_spans_;
    std::vector<double> square_sums_;       // of the blocks of the unscaled gradients
    std::vector<double> largest_factors_;   // that an update multiplies the rate of a group by
    std::vector<std::uint8_t> takes_part_;  // in this step, by parameter
    std::vector<std::uint64_t> agreed_;     // by all ranks; empty where it is not
    bool unscaled_ = false;                 // the gradients count as unscaled,
    bool has_copy_ = false;                 // and are in unscaled_spans_,
    detail::pending_factors pending_;       // or are the parameters' own times these

private:
    void take_weights(std::size_t index, bool all) const;
    void require_room(std::string_view function, std::size_t index, std::size_t first,
                      std::span<float> to) const;
    [[nodiscard]] std::size_t state_size() const noexcept;
};

}}  // namespace mp

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Sets masters to the weights, or compensations and lower halves of split masters to zero: all, or those that do not
/// belong to the weights. With kahan and split, `kept` are compensations and halves.
inline void masters_of_weights(instruction_set isa, const row_type& weight_type, const void* weights,
                               const row_type& kept_type, void* kept, std::size_t count, weight_update how,
                               bool all) {
    const default_floating_point_modes modes;
    if (how == weight_update::split && !all) {
        const auto* const high = static_cast<const std::uint16_t*>(weights);
        auto* const low = static_cast<std::uint16_t*>(kept);
        for (std::size_t i = 0; i < count; ++i) low[i] = low_half_beside(high[i], low[i]);
        return;
    }
    alignas(64) float values[update_block];
    alignas(64) float sums[update_block];
    alignas(64) std::byte rounded[update_block * sizeof(float)];
    alignas(64) std::byte fresh[update_block * sizeof(float)] = {};
    const std::size_t size = weight_type.size, kept_size = kept_type.size;
    for (std::size_t first = 0; first < count; first += update_block) {
        const std::size_t length = (std::min)(update_block, count - first);
        const std::byte* const weight = static_cast<const std::byte*>(weights) + first * size;
        std::byte* const to = static_cast<std::byte*>(kept) + first * kept_size;
        weight_type.widen(isa, weight, values, length);
        kept_type.widen(isa, to, sums, length);
        if (keeps_compensation(how)) {
            // A compensation is at most half the spacing there, so that the sum with half of it rounds to the weight.
            for (std::size_t i = 0; i < length; ++i) {
                sums[i] = float_add(values[i], float_multiply(sums[i], 0.5F));
            }
        } else {
            kept_type.narrow(isa, values, fresh, length);
        }
        weight_type.narrow(isa, sums, rounded, length);
        for (std::size_t i = 0; i < length; ++i) {
            if (!all && std::memcmp(rounded + i * size, weight + i * size, size) == 0) continue;
            std::memcpy(to + i * kept_size, fresh + i * kept_size, kept_size);
        }
    }
}

/// Whether an array has an element that is not zero, by bits: comparisons take subnormal numbers for zero where the
/// caller's modes or options say so.
inline bool has_nonzero(instruction_set isa, const row_type& type, const void* values,
                        std::size_t count) noexcept {
    alignas(64) float block[update_block];
    for (std::size_t at = 0; at < count; at += update_block) {
        const std::size_t length = (std::min)(update_block, count - at);
        type.load(isa, values, at, length, block);
        if (std::any_of(block, block + length,
                        [](float x) { return bit_cast<std::uint32_t>(x) << 1 != 0; })) {
            return true;
        }
    }
    return false;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION optimizer_state::optimizer_state(std::vector<detail::untyped_parameter> parameters,
                                                  std::string_view name, const cpu& exec,
                                                  const detail::update_types& types,
                                                  const detail::gradient_type& gradient,
                                                  const std::vector<double>& rates, std::size_t states,
                                                  weight_update how, std::uint64_t seed)
    : optimizer_record(std::move(parameters), name, types.weight->size, types.gradient->size, rates, how,
                       seed, 1),
      types_(&types),
      gradient_type_(&gradient),
      exec_(exec),
      largest_factors_(rates.size(), 1.0) {
    detail::check_threads(name, exec);
    isa_ = detail::isa_of(name, exec);
    detail::check_weight_update(name, how, types.has_master_copy, types.weight_is_float,
                                types.split != nullptr);
    std::size_t blocks = 0;
    for (const detail::untyped_parameter& it : arrays_) {
        first_block_.push_back(blocks);
        blocks += (it.size + detail::moments_block - 1) / detail::moments_block;
    }
    takes_part_.resize(arrays_.size());
    unscaled_spans_.resize(arrays_.size());
    states_.assign(states, std::vector<std::byte>(layout_.total() * state_size()));
    if (has_block_moments()) scales_.assign(states, std::vector<float>(blocks));
    const std::size_t master_bytes = layout_.total() * types.master->size;
    if (types.has_master_copy) masters_.resize(master_bytes);
    if (detail::keeps_compensation(how)) compensation_.resize(master_bytes);
    reload_master_weights();
}

MP_CORE_FUNCTION optimizer_state::optimizer_state(optimizer_state&&) noexcept = default;
MP_CORE_FUNCTION optimizer_state& optimizer_state::operator=(optimizer_state&&) noexcept = default;
MP_CORE_FUNCTION optimizer_state::~optimizer_state() = default;

MP_CORE_FUNCTION double optimizer_state::learning_rate(std::size_t group) const {
    require_group("mp::optimizer_base::learning_rate", group);
    return rates_[group];
}

MP_CORE_FUNCTION void optimizer_state::set_learning_rate(double rate) {
    for (const double factor : largest_factors_) {
        detail::require_learning_rate("mp::optimizer_base::set_learning_rate", "rate", rate, factor);
    }
    std::fill(rates_.begin(), rates_.end(), rate);
}

MP_CORE_FUNCTION void optimizer_state::set_learning_rate(double rate, std::size_t group) {
    constexpr std::string_view function = "mp::optimizer_base::set_learning_rate";
    require_group(function, group);
    detail::require_learning_rate(function, "rate", rate, largest_factors_[group]);
    rates_[group] = rate;
}

MP_CORE_FUNCTION void* optimizer_state::masters_of(std::size_t index) const noexcept {
    if (!types_->has_master_copy) return arrays_[index].weights;
    return masters_.data() + layout_.offset(index) * types_->master->size;
}

MP_CORE_FUNCTION void optimizer_state::copy_master_weights(std::size_t index, std::size_t first,
                                                           std::span<float> to) const {
    require_room("mp::optimizer_base::copy_master_weights", index, first, to);
    follow_weights_of(index);
    if (how_ == weight_update::split) {
        const auto* const low =
            compensation_.data() + (layout_.offset(index) + first) * sizeof(std::uint16_t);
        const auto* const high = static_cast<const std::uint16_t*>(masters_of(index)) + first;
        return types_->join(isa_, high, low, to.data(), to.size());
    }
    types_->master->load(isa_, masters_of(index), first, to.size(), to.data());
}

MP_CORE_FUNCTION void optimizer_state::follow_weights() const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) follow_weights_of(i);
}

MP_CORE_FUNCTION void optimizer_state::follow_weights_of(std::size_t index) const {
    const buffer_version& version = arrays_[index].version;
    if (version.is_temporary()) return;  // masters are those of the lasting weights
    const detail::followed_version now(version);
    if (now == followed_[index]) return;
    take_weights(index, now.replacements != followed_[index].replacements);
    followed_[index] = now;
}

/// Sets the masters and compensations of a parameter from its weights: all, or those that do not belong to them.
MP_CORE_FUNCTION void optimizer_state::take_weights(std::size_t index, bool all) const {
    if (!types_->has_master_copy && compensation_.empty()) return;
    const std::size_t at = layout_.offset(index) * types_->master->size;
    void* const kept = types_->has_master_copy ? masters_of(index) : compensation_.data() + at;
    detail::masters_of_weights(isa_, *types_->weight, arrays_[index].weights, *types_->master, kept,
                               arrays_[index].size, how_, all);
}

MP_CORE_FUNCTION bool optimizer_state::masters_are_current() const noexcept {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (detail::followed_version(arrays_[i].version) != followed_[i]) return false;
    }
    return true;
}

MP_CORE_FUNCTION void optimizer_state::adopt_weight_versions() noexcept {
    for (std::size_t i = 0; i < arrays_.size(); ++i) follow_version(i, false);
}

MP_CORE_FUNCTION void optimizer_state::reload_master_weights() noexcept {
    for (std::size_t i = 0; i < arrays_.size(); ++i) take_weights(i, true);
    adopt_weight_versions();
}

MP_CORE_FUNCTION std::size_t optimizer_state::state_size() const noexcept {
    return has_block_moments() ? sizeof(block_moment) : types_->state->size;
}

MP_CORE_FUNCTION void optimizer_state::copy_state(std::size_t index, std::size_t state, std::size_t first,
                                                  std::span<float> to) const {
    constexpr std::string_view function = "mp::optimizer_base::copy_state";
    require_room(function, index, first, to);
    if (state >= states_.size()) {
        detail::throw_argument(
            function, "state", state,
            "must be less than the number of states, which is " + detail::error_text(states_.size()));
    }
    const std::byte* const from = states_[state].data() + layout_.offset(index) * state_size();
    if (has_block_moments()) {
        const auto* const codes = reinterpret_cast<const block_moment*>(from);
        const float* const scales = scales_[state].data() + first_block_[index];
        float block[detail::moments_block];
        for (std::size_t i = 0; i < to.size();) {
            const std::size_t begin = (first + i) / detail::moments_block * detail::moments_block;
            const std::size_t count = (std::min)(detail::moments_block, arrays_[index].size - begin);
            types_->load_moments(isa_, codes + begin, scales[begin / detail::moments_block], count, state,
                                 block);
            const std::size_t copied = (std::min)(begin + count - (first + i), to.size() - i);
            std::copy_n(block + (first + i - begin), copied, to.data() + i);
            i += copied;
        }
    } else {
        types_->state->load(isa_, from, first, to.size(), to.data());
    }
}

MP_CORE_FUNCTION void optimizer_state::write_state(std::size_t index, std::size_t state,
                                                   std::span<const float> from) noexcept {
    const std::size_t size = arrays_[index].size;
    std::byte* const to = states_[state].data() + layout_.offset(index) * state_size();
    if (has_block_moments()) {
        float* const scales = scales_[state].data() + first_block_[index];
        for (std::size_t first = 0; first < size; first += detail::moments_block) {
            const std::size_t count = (std::min)(detail::moments_block, size - first);
            float block[detail::moments_block] = {};
            if (!from.empty()) std::copy_n(from.data() + first, count, block);
            types_->store_moments(isa_, block, count, state, reinterpret_cast<block_moment*>(to) + first,
                                  scales + first / detail::moments_block);
        }
    } else if (from.empty()) {
        std::memset(to, 0, size * state_size());
    } else {
        types_->state->store(isa_, from.data(), to, 0, size);
    }
}

MP_CORE_FUNCTION void optimizer_state::set_states(std::span<const std::vector<float>> states,
                                                  std::span<const std::uint64_t> updates) {
    constexpr std::string_view function = "mp::optimizer_base::set_states";
    const std::size_t count = arrays_.size();
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
        const std::size_t size = i % each < states_.size() ? arrays_[i / each].size : 0;
        if (states[i].empty() || states[i].size() == size) continue;
        detail::throw_argument(function, "states[" + detail::error_text(i) + "].size()", states[i].size(),
                               size == 0 ? std::string("must be 0, for there is no such state here")
                                         : "must be 0 or " + detail::error_text(size));
    }
    // Scales of block_moment are float.
    const detail::row_type& of_floats = detail::row_record<float>::record;
    const double largest = (has_block_moments() ? of_floats : *types_->state).largest;
    for (std::size_t i = 0; i < states.size(); ++i) {
        detail::require_moments(function, "states[" + detail::error_text(i) + "]", states[i], largest,
                                detail::is_square(i % each));
    }
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t s = 0; s < states_.size(); ++s) write_state(i, s, states[i * each + s]);
    }
    std::copy(updates.begin(), updates.end(), updates_.begin());
    steps_ = updates.empty() ? 0 : *std::max_element(updates.begin(), updates.end());
}

MP_CORE_FUNCTION std::size_t optimizer_state::state_bytes() const noexcept {
    std::size_t bytes = masters_.size() + compensation_.size();
    for (const std::vector<std::byte>& state : states_) bytes += state.size();
    for (const std::vector<float>& scales : scales_) bytes += scales.size() * sizeof(float);
    return bytes;
}

MP_CORE_FUNCTION double optimizer_state::bytes_per_parameter() const noexcept {
    std::size_t bytes = state_bytes() + unscaled_memory_.size() * sizeof(float);
    for (const detail::untyped_parameter& it : arrays_) {
        bytes += it.size * types_->weight->size + it.gradient_size * types_->gradient->size;
    }
    const std::size_t total = layout_.total();
    return total == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(total);
}

MP_CORE_FUNCTION bool optimizer_state::is_used(std::size_t index,
                                               const detail::gradient_writes& writes) const noexcept {
    const detail::untyped_parameter& it = arrays_[index];
    if (!it.trained()) return false;
    if (steps_unused_ || !writes.watched() || writes.written(index)) return true;
    if (unscaled_ && has_copy_) {
        return detail::has_nonzero(isa_, detail::row_record<float>::record, unscaled_spans_[index].data(),
                                   unscaled_spans_[index].size());
    }
    return detail::has_nonzero(isa_, *types_->gradient, it.gradient, it.gradient_size);
}

MP_CORE_FUNCTION void optimizer_state::set_used(std::span<const std::uint64_t> used) {
    agreed_.assign(used.begin(), used.end());
}

MP_CORE_FUNCTION void optimizer_state::begin_step() {
    require_lasting_weights("mp::optimizer_base::step");
    writes_.require_step_allowed("mp::optimizer_base::step");
    follow_weights();
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        takes_part_[i] = static_cast<std::uint8_t>(agreed_.empty() ? is_used(i) : agreed_[i] != 0);
    }
}

MP_CORE_FUNCTION void optimizer_state::finish_step() noexcept {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        if (takes_part_[i] == 0) continue;
        ++updates_[i];
        follow_version(i, true);
    }
    ++steps_;
    unscaled_ = false;
    agreed_.clear();
}

/// Throws unless the elements of a parameter from `first` on are at least to.size().
MP_CORE_FUNCTION void optimizer_state::require_room(std::string_view function, std::size_t index,
                                                    std::size_t first, std::span<float> to) const {
    const std::size_t size = at(function, index).size;
    if (first > size || to.size() > size - first) {
        detail::throw_argument(function, "to.size()", to.size(),
                               "must be at most the number of weights from `first` on, which is " +
                                   detail::error_text(first > size ? 0 : size - first));
    }
}

MP_CORE_FUNCTION void optimizer_state::allocate_unscaled() {
    const bool in_place = types_->gradient_is_float;
    if (!in_place) unscaled_memory_.resize(layout_.total());
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        float* const values =
            in_place ? static_cast<float*>(arrays_[i].gradient) : unscaled_memory_.data() + layout_.offset(i);
        unscaled_spans_[i] = {values, arrays_[i].gradient_size};
    }
}

MP_CORE_FUNCTION detail::update_arrays optimizer_state::arrays_of(std::size_t index, std::size_t first,
                                                                  std::size_t last,
                                                                  float inverse_scale) noexcept {
    const std::size_t at = layout_.offset(index) + first;
    const detail::untyped_parameter& it = arrays_[index];
    detail::update_arrays result{};
    result.types = types_;
    result.weights = static_cast<std::byte*>(it.weights) + first * types_->weight->size;
    result.masters = static_cast<std::byte*>(masters_of(index)) + first * types_->master->size;
    detail::pending_factors by{inverse_scale, 1.0F};
    if (unscaled_ && has_copy_) {
        by = {};
        result.gradient_is_float = true;
        result.gradient = unscaled_spans_[index].data() + first;
    } else {
        if (unscaled_) by = pending_;
        result.gradient_is_float = types_->gradient_is_float;
        result.gradient = static_cast<const std::byte*>(it.gradient) + first * types_->gradient->size;
    }
    for (std::size_t s = 0; s < states_.size(); ++s) {
        result.states[s] = states_[s].data() + at * state_size();
        if (has_block_moments()) {
            result.scales[s] = scales_[s].data() + first_block_[index] + first / detail::moments_block;
        }
    }
    result.compensation = compensation_.empty() ? nullptr : compensation_.data() + at * types_->master->size;
    result.count = last - first;
    result.inverse_scale = by.inverse_scale;
    result.clip_factor = by.clip_factor;
    result.how = how_;
    result.first = it.share_first + first;
    result.seed = seed_;
    result.parameter = static_cast<std::uint32_t>(index);
    result.update = updates_[index] + 1;
    return result;
}

}}  // namespace mp
#endif
