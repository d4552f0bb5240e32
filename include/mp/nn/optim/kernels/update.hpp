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

#if MP_CORE_BODIES
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/bits.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/rules/optimizer_updates.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/rules/stochastic_rounding.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstring>
#endif

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
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline void join_masters_portable(const std::uint16_t* high, const std::uint16_t* low, float* masters,
                                  std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) masters[i] = join_master({high[i], low[i]});
}
inline void split_masters_portable(const float* masters, std::uint16_t* high, std::uint16_t* low,
                                   std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        const split_float halves = split_master(masters[i]);
        high[i] = halves.high;
        low[i] = halves.low;
    }
}

inline void add_row_portable(float* to, const float* other, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = float_add(to[i], other[i]);
}
inline void subtract_row_portable(const float* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = float_subtract(from[i], to[i]);
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/update_floats.inl>
#include <mp/numbers/simd/for_each_vec.inl>
#define MP_KERNEL_FILE <mp/nn/optim/kernels/master_rows.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
void round_stochastically_portable(const float* from, Value* to, std::size_t count,
                                   const rounding_stream& stream, std::uint64_t first) {
    namespace target = portable_vectors;
    for (std::size_t group = 0; group < count; group += random_group) {
        // random_rounding_bits, sixteen calls at a time; then the codes.
        std::uint32_t words[random_group];
        for (std::size_t call = 0; call < random_group / 4; ++call) {
            const philox4x32 calls = rounding_words(stream, (first + group) / 4 + call);
            for (std::size_t i = 0; i < 4; ++i) words[16 * i + call] = calls.word[i];
        }
        const std::size_t size = (std::min)(random_group, count - group);
        float values[random_group] = {};
        std::memcpy(values, from + group, size * sizeof(float));
        for (std::size_t i = 0; i < random_group; i += target::lanes) {
            target::vec<std::uint32_t> codes;
            std::memcpy(&codes, words + i, sizeof codes);
            codes = target::stochastic_codes<typename Value::format>(target::load(values + i), codes);
            std::memcpy(words + i, &codes, sizeof codes);
        }
        for (std::size_t i = 0; i < size; ++i) {
            to[group + i] = Value::from_bits(static_cast<storage_of<typename Value::format>>(words[i]));
        }
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void join_master_rows(instruction_set isa, const void* high, const void* low, float* masters,
                                       std::size_t count) {
    const auto join = MP_SELECT_TARGET(isa, &join_masters_portable, join_masters);
    join(static_cast<const std::uint16_t*>(high), static_cast<const std::uint16_t*>(low), masters, count);
    clear_upper_halves();
}
MP_CORE_FUNCTION void split_master_rows(instruction_set isa, const float* masters, void* high, void* low,
                                        std::size_t count) {
    const auto split = MP_SELECT_TARGET(isa, &split_masters_portable, split_masters);
    split(masters, static_cast<std::uint16_t*>(high), static_cast<std::uint16_t*>(low), count);
    clear_upper_halves();
}

template <class Value>
void core_round_stochastically(instruction_set isa, const float* from, void* to, std::size_t count,
                               const rounding_stream& stream, std::uint64_t first) {
    const auto round =
        MP_SELECT_TARGET(isa, &round_stochastically_portable<Value>, round_stochastically<Value>);
    round(from, static_cast<Value*>(to), count, stream, first);
}

MP_CORE_FUNCTION void scale_row(const float* from, float* to, std::size_t count, float inverse_scale,
                                float clip_factor) noexcept {
    namespace target = portable_vectors;
    std::size_t i = 0;
    for (; i + target::lanes <= count; i += target::lanes) {
        const auto scaled = target::mul(target::load(from + i), target::broadcast(inverse_scale));
        target::store(to + i, target::mul(scaled, target::broadcast(clip_factor)));
    }
    for (; i < count; ++i) to[i] = float_multiply(float_multiply(from[i], inverse_scale), clip_factor);
}

MP_CORE_FUNCTION void whole_parameter::gradient(std::size_t first, std::size_t count, float* to) const {
    if (arrays.gradient_is_float) {
        std::copy_n(static_cast<const float*>(arrays.gradient) + first, count, to);
    } else {
        arrays.types->gradient->load(isa, arrays.gradient, first, count, to);
    }
    if (same_value(arrays.inverse_scale, 1.0F) && same_value(arrays.clip_factor, 1.0F)) return;
    scale_row(to, to, count, arrays.inverse_scale, arrays.clip_factor);
}
MP_CORE_FUNCTION void whole_parameter::weights(std::size_t first, std::size_t count, float* to) const {
    arrays.types->master->load(isa, arrays.masters, first, count, to);
}
MP_CORE_FUNCTION void whole_parameter::set_weights(std::size_t first, std::size_t count,
                                                   const float* from) const {
    const update_types& types = *arrays.types;
    types.master->store(isa, from, arrays.masters, first, count);
    if (!types.has_master_copy) return;
    alignas(64) float rounded[update_block];
    for (std::size_t i = 0; i < count; i += update_block) {
        const std::size_t length = (std::min)(update_block, count - i);
        types.master->load(isa, arrays.masters, first + i, length, rounded);
        types.weight->store(isa, rounded, arrays.weights, first + i, length);
    }
}

MP_CORE_FUNCTION update_rows update_buffers::load(std::size_t at, std::size_t count) noexcept {
    const update_arrays& a = arrays_;
    update_rows rows{};
    rows.weights = weights_;
    rows.gradient = gradient_;
    if (!copies_weights_) {
        rows.weights = static_cast<float*>(a.masters) + at;
    } else if (a.how == weight_update::split) {
        a.types->join(isa_, static_cast<const std::uint16_t*>(a.masters) + at,
                      static_cast<const std::uint16_t*>(a.compensation) + at, weights_, count);
    } else {
        a.types->master->load(isa_, a.masters, at, count, weights_);
        if (a.how == weight_update::kahan) {
            a.types->master->load(isa_, a.compensation, at, count, compensation_);
            MP_SELECT_TARGET(isa_, &add_row_portable, add_row)(weights_, compensation_, count);
        }
    }
    if (fused_) {
        rows.gradient_numbers = static_cast<const std::byte*>(a.gradient) + at * a.types->gradient->size;
        rows.copy = static_cast<std::byte*>(a.weights) + at * a.types->weight->size;
    } else if (copies_gradient_) {
        a.types->gradient->load(isa_, a.gradient, at, count, gradient_);
    } else {
        rows.gradient = static_cast<const float*>(a.gradient) + at;
    }
    for (std::size_t s = 0; s < states_; ++s) {
        if (a.states[s] == nullptr) continue;
        if (copies_states_) load_state(s, at, count);
        rows.states[s] = copies_states_ ? state_[s] : static_cast<float*>(a.states[s]) + at;
    }
    return rows;
}

MP_CORE_FUNCTION void update_buffers::load_state(std::size_t state, std::size_t at,
                                                 std::size_t count) noexcept {
    const update_arrays& a = arrays_;
    if (a.types->state != nullptr) {
        return a.types->state->load(isa_, a.states[state], at, count, state_[state]);
    }
    for (std::size_t i = 0; i < count; i += moments_block) {
        a.types->load_moments(isa_, static_cast<const block_moment*>(a.states[state]) + at + i,
                              a.scales[state][(at + i) / moments_block], (std::min)(moments_block, count - i),
                              state, state_[state] + i);
    }
}

MP_CORE_FUNCTION void update_buffers::store_state(std::size_t state, std::size_t at,
                                                  std::size_t count) noexcept {
    const update_arrays& a = arrays_;
    if (a.types->state == nullptr) {
        for (std::size_t i = 0; i < count; i += moments_block) {
            const std::size_t size = (std::min)(moments_block, count - i);
            std::fill(state_[state] + i + size, state_[state] + i + moments_block, 0.0F);
            a.types->store_moments(isa_, state_[state] + i, size, state,
                                   static_cast<block_moment*>(a.states[state]) + at + i,
                                   a.scales[state] + (at + i) / moments_block);
        }
    } else if (a.how == weight_update::stochastic) {
        auto* const to = static_cast<std::byte*>(a.states[state]) + at * a.types->state->size;
        const rounding_stream stream{a.seed, a.parameter, a.update, static_cast<std::uint32_t>(state + 1)};
        a.types->round_state(isa_, state_[state], to, count, stream, a.first + at);
    } else {
        a.types->state->store(isa_, state_[state], a.states[state], at, count);
    }
}

MP_CORE_FUNCTION void update_buffers::store_weights(std::size_t at, std::size_t count) noexcept {
    const update_arrays& a = arrays_;
    if (a.how == weight_update::split) {
        return a.types->split(isa_, weights_, static_cast<std::uint16_t*>(a.masters) + at,
                              static_cast<std::uint16_t*>(a.compensation) + at, count);
    }
    if (a.how == weight_update::stochastic) {
        auto* const to = static_cast<std::byte*>(a.masters) + at * a.types->master->size;
        const rounding_stream stream{a.seed, a.parameter, a.update, 0};
        return a.types->round_master(isa_, weights_, to, count, stream, a.first + at);
    }
    a.types->master->store(isa_, weights_, a.masters, at, count);
    if (a.how != weight_update::kahan) return;
    a.types->master->load(isa_, a.masters, at, count, compensation_);
    MP_SELECT_TARGET(isa_, &subtract_row_portable, subtract_row)(weights_, compensation_, count);
    a.types->master->store(isa_, compensation_, a.compensation, at, count);
}

MP_CORE_FUNCTION void update_buffers::store(std::size_t at, std::size_t count) noexcept {
    const update_arrays& a = arrays_;
    for (std::size_t s = 0; copies_states_ && s < states_; ++s) {
        if (a.states[s] != nullptr) store_state(s, at, count);
    }
    if (copies_weights_) store_weights(at, count);
    if (!a.types->has_master_copy || fused_) return;
    const float* masters = static_cast<const float*>(a.masters) + at;
    if (copies_weights_) {
        a.types->master->load(isa_, a.masters, at, count, weights_);  // rounded
        masters = weights_;
    }
    a.types->weight->store(isa_, masters, a.weights, at, count);
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Coefficients>
using row_update = void (*)(const update_rows& rows, std::size_t count, float inverse_scale,
                            float clip_factor, const Coefficients& coefficients);

/// The pass that reads gradients of half and writes a copy of the weights itself, which takes less time where the rule is
/// short and there are instructions for half: a third of SGD in the caches. Null for others.
template <class Coefficients>
row_update<Coefficients> fused_update(instruction_set isa, const update_arrays& arrays) noexcept {
    constexpr row_update<Coefficients> none = nullptr;
    if constexpr (Coefficients::states <= 1) {
        if (arrays.types->is_half && !arrays.gradient_is_float) {
            return MP_SELECT_TARGET(isa, none, update_floats<Coefficients, basic_float<formats::binary16>>);
        }
    }
    return none;
}

/// Updates a chunk by the rule of the coefficients.
template <class Coefficients>
void update_chunk(instruction_set isa, const update_arrays& arrays,
                  const Coefficients& coefficients) noexcept {
    const default_floating_point_modes modes;
    const row_update<Coefficients> fused = fused_update<Coefficients>(isa, arrays);
    const row_update<Coefficients> update =
        fused != nullptr ? fused
                         : MP_SELECT_TARGET(isa, (&portable_vectors::update_floats<Coefficients, float>),
                                            update_floats<Coefficients, float>);
    const bool has_states = single_lane::update_rule<Coefficients>(coefficients).has_states();
    update_buffers buffers(isa, arrays, has_states ? Coefficients::states : 0, fused != nullptr);
    for (std::size_t at = 0; at < arrays.count; at += buffers.block()) {
        const std::size_t count = (std::min)(buffers.block(), arrays.count - at);
        const update_rows rows = buffers.load(at, count);
        update(rows, count, arrays.inverse_scale, arrays.clip_factor, coefficients);
        buffers.store(at, count);
    }
}

}}  // namespace mp::detail
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
