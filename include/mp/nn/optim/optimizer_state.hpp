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
#include <mp/nn/optim/optimizer_state_functions.hpp>
#endif
