// SPDX-License-Identifier: MIT
/// \file
/// The fused pass of the built-in optimizers over a chunk of a parameter: read gradient, weight and state,
/// take the scale out of the gradient, update, write state, weight and its low-precision copy. The rule runs over rows
/// of floats; arrays of other types become floats, and are rounded from them, a block at a time in the first-level
/// cache. Every instruction set gives the same bits, except for the payload of a NaN that comes from two.
#pragma once

#include <mp/arrays/array/row_type.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/projection.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Most arrays of state that a rule has.
inline constexpr std::size_t max_states = 8;

/// Elements of a block as floats: buffers for a weight, a gradient, two states and a compensation fit in a first-level cache
/// of 32 KiB.
inline constexpr std::size_t update_block = 1024;
static_assert(update_block % moments_block == 0 && update_block % random_group == 0);

/// Rounds floats stochastically to the elements `first` ... of a parameter, a multiple of random_group.
using stochastic_rounding = void (*)(instruction_set isa, const float* from, void* to, std::size_t count,
                                     const rounding_stream& stream, std::uint64_t first);

/// The types of an optimizer's arrays, and the functions that not all need.
struct update_types {
    const row_type* weight;
    const row_type* gradient;
    const row_type* master;
    const row_type* state;  ///< null for block_moment
    bool has_master_copy;
    bool weight_is_float;
    bool gradient_is_float;
    bool master_is_float;
    bool state_is_float;
    bool is_half;  // weights and gradients are half, masters float
    // For weights of a reduced format without master copy, null for others:
    stochastic_rounding round_master;
    stochastic_rounding round_state;
    // For bfloat16 among these; split masters, high and low halves, as floats and back:
    void (*join)(instruction_set isa, const void* high, const void* low, float* masters, std::size_t count);
    void (*split)(instruction_set isa, const float* masters, void* high, void* low, std::size_t count);
    // For block_moment; `count` moments, at most a block, as floats in memory for a block, and back:
    void (*load_moments)(instruction_set isa, const block_moment* from, float scale, std::size_t count,
                         std::size_t state, float* to);
    void (*store_moments)(instruction_set isa, const float* from, std::size_t count, std::size_t state,
                          block_moment* to, float* scale);
};

/// A chunk of a parameter and all that belongs to it.
struct update_arrays {
    const update_types* types;
    void* weights;              // written if there is a master copy
    void* masters;              // or the weights themselves
    const void* gradient;       // of types->gradient,
    bool gradient_is_float;     // or of floats
    void* states[max_states];   // null for those that there are not
    float* scales[max_states];  // of the blocks of block_moment
    void* compensation;         // for weight_update::kahan, and codes of lower halves for split
    std::size_t count;
    float inverse_scale;  // the gradient is multiplied by it,
    float clip_factor;    // and the rounded product by this
    weight_update how;
    // For random bits:
    std::uint64_t first;  // index of the first element in its parameter, a multiple of random_group
    std::uint64_t seed;
    std::uint32_t parameter;
    std::uint64_t update;
};

/// Rows of floats that a rule updates. The gradient has its scale.
struct update_rows {
    float* weights;
    const float* gradient;
    float* states[max_states];
    // In a fused pass, in place of gradient:
    const void* gradient_numbers;
    void* copy;  // of the weights
};

/// Blocks of a chunk as floats: the arrays themselves where they are floats, else copies.
class update_buffers {
public:
    /// \param states  arrays of state to be read and written
    /// \param fused   whether the pass over the rows reads the gradient and writes the copy of the weights itself
    MP_ALWAYS_INLINE update_buffers(instruction_set isa, const update_arrays& arrays, std::size_t states,
                                    bool fused = false) noexcept
        : isa_(isa),
          arrays_(arrays),
          states_(states),
          fused_(fused),
          copies_weights_(!arrays.types->master_is_float),
          copies_gradient_(!fused && !arrays.gradient_is_float),
          copies_states_(states != 0 && !arrays.types->state_is_float) {
        const bool copies = copies_weights_ || copies_gradient_ || copies_states_ ||
                            (!fused && arrays.types->has_master_copy);
        block_ = copies || arrays.count == 0 ? update_block : arrays.count;
    }

    /// Elements of a block: all where no array is copied.
    [[nodiscard]] MP_ALWAYS_INLINE std::size_t block() const noexcept { return block_; }
    /// The `count` elements, at most block(), starting at `at`, a multiple of update_block.
    update_rows load(std::size_t at, std::size_t count) noexcept;
    /// Rounds the weights and states of the last block to their arrays.
    void store(std::size_t at, std::size_t count) noexcept;

private:
    void load_state(std::size_t state, std::size_t at, std::size_t count) noexcept;
    void store_state(std::size_t state, std::size_t at, std::size_t count) noexcept;
    void store_weights(std::size_t at, std::size_t count) noexcept;

    instruction_set isa_;
    const update_arrays& arrays_;
    std::size_t states_;
    std::size_t block_;
    bool fused_, copies_weights_, copies_gradient_, copies_states_;
    alignas(64) float weights_[update_block];
    alignas(64) float gradient_[update_block];
    alignas(64) float state_[max_states][update_block];
    alignas(64) float compensation_[update_block];
};

/// Fewest elements that are worth a thread.
inline constexpr std::size_t update_grain = std::size_t{1} << 15;

/// Multiplies floats by the factors of a gradient, each product rounded.
MP_CORE_FUNCTION void scale_row(const float* from, float* to, std::size_t count, float inverse_scale,
                                float clip_factor) noexcept;

/// All elements of a parameter, for updates that use more than one of them.
struct whole_parameter {
    instruction_set isa;
    const update_arrays& arrays;

    /// The gradient as floats as an update uses it.
    void gradient(std::size_t first, std::size_t count, float* to) const;
    /// The weights in the precision in which they are trained, for updates to nearest.
    void weights(std::size_t first, std::size_t count, float* to) const;
    /// Rounds the weights to nearest, and to their low-precision copy.
    void set_weights(std::size_t first, std::size_t count, const float* from) const;
};

/// Split masters, high and low halves, as floats and back.
MP_CORE_FUNCTION void join_master_rows(instruction_set isa, const void* high, const void* low, float* masters,
                                       std::size_t count);
MP_CORE_FUNCTION void split_master_rows(instruction_set isa, const float* masters, void* high, void* low,
                                        std::size_t count);

/// `count` moments, at most a block, as floats in memory for a block, zeros after them, and back.
MP_CORE_FUNCTION void load_moments(instruction_set isa, const block_moment* from, float scale,
                                   std::size_t count, std::size_t state, float* to);
MP_CORE_FUNCTION void store_moments(instruction_set isa, const float* from, std::size_t count,
                                    std::size_t state, block_moment* to, float* scale);

/// stochastic_rounding of half and bfloat16.
template <class Value>
void core_round_stochastically(instruction_set isa, const float* from, void* to, std::size_t count,
                               const rounding_stream& stream, std::uint64_t first);

}}  // namespace mp::detail

#if MP_CORE_BODIES
#include <mp/nn/optim/kernels/block_moments.hpp>
#include <mp/nn/optim/kernels/update_functions.hpp>
#endif

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The rounding of a format that has no kernel for it.
template <class Value>
void round_by_elements(instruction_set /*isa*/, const float* from, void* to, std::size_t count,
                       const rounding_stream& stream, std::uint64_t first) {
    auto* const values = static_cast<Value*>(to);
    for (std::size_t group = 0; group < count; group += random_group) {
        const std::size_t size = (std::min)(random_group, count - group);
        for (std::size_t call = 0; call < random_group / 4; ++call) {
            const philox4x32 words = rounding_words(stream, (first + group) / 4 + call);
            for (std::size_t i = call; i < size; i += random_group / 4) {
                const std::uint32_t word = words.word[i / (random_group / 4)];
                values[group + i] = round_to<Value>(from[group + i], stochastic(word));
            }
        }
    }
}

template <class Value>
constexpr stochastic_rounding stochastic_rounding_of() {
    if constexpr (!reduced<Value>) {
        return nullptr;
    } else if constexpr (is_binary16<typename Value::format> || is_bfloat16<typename Value::format>) {
        return &core_round_stochastically<Value>;
    } else {
        return &round_by_elements<Value>;
    }
}

/// The types of an optimizer.
template <class Weight, class Gradient, class Master, class State>
inline constexpr update_types types_of_update = [] {
    update_types types{};
    types.weight = &row_record<Weight>::record;
    types.gradient = &row_record<Gradient>::record;
    types.master = &row_record<Master>::record;
    types.has_master_copy = !std::is_same_v<Weight, Master>;
    types.weight_is_float = std::is_same_v<Weight, float>;
    types.gradient_is_float = std::is_same_v<Gradient, float>;
    types.master_is_float = std::is_same_v<Master, float>;
    types.state_is_float = std::is_same_v<State, float>;
    types.is_half = std::is_same_v<Weight, basic_float<formats::binary16>> &&
                    std::is_same_v<Gradient, Weight> && std::is_same_v<Master, float>;
    if constexpr (std::is_same_v<State, block_moment>) {
        types.load_moments = &load_moments;
        types.store_moments = &store_moments;
    } else {
        types.state = &row_record<State>::record;
    }
    if constexpr (reduced<Weight> && std::is_same_v<Weight, Master>) {
        types.round_master = stochastic_rounding_of<Master>();
        if constexpr (reduced<State>) types.round_state = stochastic_rounding_of<State>();
        if constexpr (is_bfloat16<typename Weight::format>) {
            types.join = &join_master_rows;
            types.split = &split_master_rows;
        }
    }
    return types;
}();

}}  // namespace mp::detail
