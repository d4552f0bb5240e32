// SPDX-License-Identifier: MIT
/// \file
/// The fused pass of the built-in optimizers over a chunk of a parameter: read gradient, weight and state,
/// take the scale out of the gradient, update, write state, weight and its low-precision copy. Every
/// instruction set gives the same bits, except for the payload of a NaN that comes from two.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/nn/optim/split_master.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>
#include <mp/numbers/rules/optimizer_updates.hpp>
#include <mp/numbers/rules/random_words.hpp>
#include <mp/numbers/rules/stochastic_rounding.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A chunk of a parameter and all that belongs to it.
template <class Weight, class Gradient, class Master, class State, std::size_t States>
struct update_arrays {
    using weight_type = Weight;
    using gradient_type = Gradient;
    using master_type = Master;
    using state_type = State;
    static constexpr std::size_t states_of_rule = States;
    static constexpr bool has_master_copy = !std::is_same_v<Weight, Master>;
    static constexpr bool master_is_float = std::is_same_v<Master, float>;
    /// Arrays with separate random bits under stochastic rounding.
    static constexpr std::size_t random_arrays = std::is_same_v<State, float> ? 1 : 1 + States;

    Weight* weights;  // written if there is a master copy
    Master* masters;  // or the weights themselves
    const Gradient* gradient;
    State* states[States == 0 ? 1 : States];
    float* scales[States == 0 ? 1 : States];  // of the blocks of block_moment
    Master* compensation;                     // for weight_update::kahan, and codes of lower halves for split
    std::size_t count;
    float inverse_scale;  // the gradient is multiplied by it,
    float clip_factor;    // and the rounded product by this
    // For random bits:
    std::uint64_t first;  // index of the first element in its parameter, a multiple of random_group
    std::uint64_t seed;
    std::uint32_t parameter;
    std::uint64_t update;
};

/// Copies of the last few elements of a chunk, in memory that has room for a vector.
template <class Arrays, std::size_t Room>
class last_elements {
public:
    last_elements(const Arrays& all, std::size_t from) noexcept : all_(all), from_(from), copy_(all) {
        copy_.weights = weights_;
        copy_.masters = masters_;
        copy_.gradient = gradient_;
        copy_.compensation = compensation_;
        copy(all.masters + from, masters_);
        copy(all.gradient + from, gradient_);
        if (all.compensation != nullptr) copy(all.compensation + from, compensation_);
        for (std::size_t s = 0; s != Arrays::states_of_rule; ++s) {
            copy_.states[s] = states_[s];
            if (all.states[s] != nullptr) copy(all.states[s] + from, states_[s]);
        }
    }

    [[nodiscard]] const Arrays& arrays() const noexcept { return copy_; }

    void put_back() const noexcept {
        if constexpr (Arrays::has_master_copy) copy(weights_, all_.weights + from_);
        copy(masters_, all_.masters + from_);
        if (all_.compensation != nullptr) copy(compensation_, all_.compensation + from_);
        for (std::size_t s = 0; s != Arrays::states_of_rule; ++s) {
            if (all_.states[s] != nullptr) copy(states_[s], all_.states[s] + from_);
        }
    }

private:
    template <class Value>
    void copy(const Value* from, Value* to) const noexcept {
        for (std::size_t i = 0; i < all_.count - from_; ++i) to[i] = from[i];
    }

    const Arrays& all_;
    std::size_t from_;
    Arrays copy_;
    typename Arrays::weight_type weights_[Room] = {};
    typename Arrays::master_type masters_[Room] = {};
    typename Arrays::gradient_type gradient_[Room] = {};
    typename Arrays::master_type compensation_[Room] = {};
    typename Arrays::state_type states_[(std::max)(Arrays::states_of_rule, std::size_t{1})][Room] = {};
};

/// Formats for which there is stochastic rounding on vectors.
template <class Value>
inline constexpr bool has_stochastic_vectors = [] {
    if constexpr (reduced<Value>) return has_stochastic_codes<typename Value::format>;
    return false;
}();

/// Whether the pass has versions for instruction sets; otherwise the portable one serves for all.
template <weight_update How, class Arrays>
inline constexpr bool has_update_kernels = [] {
    using master = typename Arrays::master_type;
    using state = typename Arrays::state_type;
    const bool vectors = has_number_vectors<typename Arrays::weight_type> &&
                         has_number_vectors<typename Arrays::gradient_type> && has_number_vectors<master> &&
                         has_number_vectors<state>;
    const bool rounds =
        has_stochastic_vectors<master> && (std::is_same_v<state, float> || has_stochastic_vectors<state>);
    return vectors && (How != weight_update::stochastic || rounds);
}();

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/random_rounding.inl>
#include <mp/numbers/simd/for_each_target.inl>
#define MP_KERNEL_FILE <mp/nn/optim/kernels/update.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Elements that the portable pass converts to float at a time; some such buffers fit in the first-level
/// cache.
inline constexpr std::size_t update_block = 512;

/// Numbers of any format as floats, and back to nearest even; floats keep their bits.
template <class From, class To>
void copy_block(const From* from, To* to, std::size_t count) noexcept {
    if constexpr (std::is_same_v<From, To>) {
        std::memcpy(to, from, count * sizeof(From));
    } else {
        convert_nearest(from, to, count);
    }
}

/// The same with stochastic rounding, from element `first` of the parameter on, which is a multiple of
/// random_group. Reads whole groups.
template <class Value>
void round_block_stochastically(const float* from, Value* to, std::size_t count,
                                const rounding_stream& stream, std::uint64_t first) noexcept {
    namespace target = portable_vectors;
    for (std::size_t group = 0; group < count; group += random_group) {
        // random_rounding_bits, sixteen calls at a time; then the codes.
        std::uint32_t words[random_group];
        for (std::size_t call = 0; call < random_group / 4; ++call) {
            const philox4x32 calls = rounding_words(stream, (first + group) / 4 + call);
            for (std::size_t i = 0; i < 4; ++i) words[16 * i + call] = calls.word[i];
        }
        const std::size_t size = (std::min)(random_group, count - group);
        if constexpr (has_stochastic_vectors<Value>) {
            for (std::size_t i = 0; i < random_group; i += target::lanes) {
                target::vec<std::uint32_t> codes;
                std::memcpy(&codes, words + i, sizeof codes);
                codes =
                    target::stochastic_codes<typename Value::format>(target::load(from + group + i), codes);
                std::memcpy(words + i, &codes, sizeof codes);
            }
            for (std::size_t i = 0; i < size; ++i) {
                to[group + i] = Value::from_bits(static_cast<storage_of<typename Value::format>>(words[i]));
            }
        } else {
            for (std::size_t i = 0; i < size; ++i) {
                to[group + i] = round_to<Value>(from[group + i], stochastic(words[i]));
            }
        }
    }
}

/// Masters in two halves as floats, and back.
template <class Value>
void join_masters(const Value* high, const Value* low, float* masters, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) masters[i] = join_master({high[i].bits(), low[i].bits()});
}
template <class Value>
void split_masters(const float* masters, Value* high, Value* low, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) {
        const split_float halves = split_master(masters[i]);
        high[i] = Value::from_bits(halves.high);
        low[i] = Value::from_bits(halves.low);
    }
}

/// A block of a chunk as floats.
template <weight_update How, std::size_t States>
struct float_block {
    alignas(64) float weights[update_block] = {};
    alignas(64) float gradient[update_block] = {};
    alignas(64) float states[States == 0 ? 1 : States][update_block] = {};
    alignas(64) float compensation[How == weight_update::kahan ? update_block : 1] = {};

    template <class Arrays>
    void load(const Arrays& a, std::size_t at, std::size_t count, bool has_states) noexcept {
        if constexpr (How == weight_update::split) {
            join_masters(a.masters + at, a.compensation + at, weights, count);
        } else {
            copy_block(a.masters + at, weights, count);
        }
        copy_block(a.gradient + at, gradient, count);
        if constexpr (How == weight_update::kahan) copy_block(a.compensation + at, compensation, count);
        if (has_states) {
            for (std::size_t s = 0; s != States; ++s) copy_block(a.states[s] + at, states[s], count);
        }
    }

    /// The weights i, i + 1 ... in the precision in which they are trained.
    [[nodiscard]] portable_vectors::vec<float> weight(std::size_t i) const noexcept {
        namespace target = portable_vectors;
        const target::vec<float> rounded = target::load(weights + i);
        if constexpr (How == weight_update::kahan)
            return target::add(rounded, target::load(compensation + i));
        return rounded;
    }
};

template <weight_update How, class Coefficients, class Arrays>
void update_array_portable(const Arrays& a, const Coefficients& coefficients) {
    namespace target = portable_vectors;
    constexpr std::size_t states_of_rule = Arrays::states_of_rule;
    const default_floating_point_modes modes;
    const target::update_rule<Coefficients> rule(coefficients);
    const target::vec<float> inverse_scale = target::broadcast(a.inverse_scale);
    const target::vec<float> clip_factor = target::broadcast(a.clip_factor);
    float_block<How, states_of_rule> block;
    auto& [weights, gradient, states, compensation] = block;
    for (std::size_t at = 0; at < a.count; at += update_block) {
        const std::size_t count = (std::min)(update_block, a.count - at);
        block.load(a, at, count, rule.has_states());
        // Also runs on the padding; its results are not stored.
        for (std::size_t i = 0; i < count; i += target::lanes) {
            target::vec<float> weight = block.weight(i);
            target::vec<float> state[states_of_rule];
            for (std::size_t s = 0; s < states_of_rule; ++s) state[s] = target::load(states[s] + i);
            rule.update(weight,
                        target::mul(target::mul(target::load(gradient + i), inverse_scale), clip_factor),
                        state);
            for (std::size_t s = 0; s < states_of_rule; ++s) target::store(states[s] + i, state[s]);
            target::store(weights + i, weight);
        }
        if (rule.has_states()) {
            for (std::size_t s = 0; s < states_of_rule; ++s) {
                if constexpr (How == weight_update::stochastic && Arrays::random_arrays > 1) {
                    const auto array = static_cast<std::uint32_t>(s + 1);
                    round_block_stochastically(states[s], a.states[s] + at, count,
                                               {a.seed, a.parameter, a.update, array}, a.first + at);
                } else {
                    copy_block(states[s], a.states[s] + at, count);
                }
            }
        }
        if constexpr (How == weight_update::stochastic) {
            round_block_stochastically(weights, a.masters + at, count, {a.seed, a.parameter, a.update, 0},
                                       a.first + at);
        } else if constexpr (How == weight_update::split) {
            split_masters(weights, a.masters + at, a.compensation + at, count);
        } else {
            copy_block(weights, a.masters + at, count);
        }
        if constexpr (How == weight_update::kahan) {
            copy_block(a.masters + at, compensation, count);
            for (std::size_t i = 0; i < count; i += target::lanes) {
                const target::vec<float> kept = target::load(compensation + i);
                target::store(compensation + i, target::sub(target::load(weights + i), kept));
            }
            copy_block(compensation, a.compensation + at, count);
        }
        if constexpr (Arrays::has_master_copy) copy_block(a.masters + at, a.weights + at, count);
    }
}

/// The pass for an instruction set.
template <weight_update How, class Coefficients, class Arrays>
auto select_update(instruction_set isa) noexcept {
    if constexpr (has_update_kernels<How, Arrays>) {
        return MP_SELECT_TARGET(isa, (&update_array_portable<How, Coefficients, Arrays>),
                                update_array<How, Coefficients, Arrays>);
    } else {
        static_cast<void>(isa);
        return &update_array_portable<How, Coefficients, Arrays>;
    }
}

}}  // namespace mp::detail
