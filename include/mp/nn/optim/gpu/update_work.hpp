// SPDX-License-Identifier: MIT
/// \file
/// The step of an optimizer on a GPU: one pass over all arrays of all parameters.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/split_master.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>
#include <mp/numbers/rules/optimizer_updates.hpp>
#include <mp/numbers/rules/stochastic_rounding.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// How a value is rounded when an update is stored, as the kernels of the CPU do it.
template <weight_update How, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Value rounded_update(float x, std::uint32_t random) {
    if constexpr (std::is_same_v<Value, float>) {
        return x;
    } else if constexpr (How == weight_update::stochastic && has_stochastic_codes<typename Value::format>) {
        const std::uint32_t code =
            single_lane::stochastic_codes<typename Value::format>(single_lane::broadcast(x), random);
        return Value::from_bits(static_cast<std::uint16_t>(code));
    } else if constexpr (How == weight_update::stochastic) {
        return round_to<Value>(x, mp::stochastic(random));
    } else {
        return Value(x);
    }
}

template <weight_update How, class Options, class Parameter>
struct update_work : tensor_work {
    using weight_type = typename Parameter::weight_type;
    using gradient_type = typename Parameter::gradient_type;
    using master_type = typename Parameter::master_type;
    using state_type = typename Parameter::state_type;
    using coefficients = typename optimizer_traits<Options>::coefficients;
    static constexpr int states = static_cast<int>(coefficients::states);
    static constexpr bool kahan = How == weight_update::kahan;
    static constexpr bool split_masters = How == weight_update::split;
    static constexpr bool compensated = kahan || split_masters;
    static constexpr bool stochastic = How == weight_update::stochastic;
    /// Arrays with separate random bits.
    static constexpr int random_arrays =
        stochastic ? (std::is_same_v<state_type, float> ? 1 : 1 + states) : 0;

    struct arrays {
        weight_type* weights;  // null without a master copy
        master_type* masters;  // or the weights themselves
        const gradient_type* gradient;
        state_type* states[coefficients::states];  // null without states
        master_type* compensation;                 // null except for kahan and split
    };
    static constexpr int count = 4;
    /// A call of the generator has the bits of four elements that are sixteen apart, and a thread that needs
    /// them gets all four.
    static constexpr bool interleaved = stochastic;
    static constexpr int in_flight = stochastic ? 4 : 2;
    static constexpr int resident_blocks = random_arrays == 1 ? 2 : 1;

    const device_optimizer<Options>* optimizer;
    const float* inverse_scale;
    const float* clip_factor;
    std::uint64_t seed;
    const std::uint32_t* used;  // of each tensor, whether it takes part; null where all do

    struct thread_data {
        /// What is read for Count elements.
        template <int Count>
        struct operands {
            chunk<gradient_type, Count> gradient;
            chunk<master_type, Count> masters;
            chunk<state_type, Count> states[coefficients::states];
            chunk<master_type, compensated ? Count : 1> compensation;
        };

        bool active;
        float inverse_scale;
        float clip_factor;
        std::uint64_t seed;
        const std::uint32_t* used;
        std::uint64_t number;  // of the update
        coefficients multiply_by;
        philox4x32 calls[std::size_t{random_arrays == 0 ? 1 : random_arrays}][std::size_t{count}];

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE operands<Count> load(const Thread& thread,
                                                             const tensor_entry<arrays>& tensor,
                                                             std::size_t index) const {
            operands<Count> result = {};
            result.gradient = thread.load(chunk_at<Count>(tensor.arrays.gradient + index));
            const master_type* const masters = tensor.arrays.masters;
            result.masters = thread.load(chunk_at<Count>(masters + index));
            if (tensor.arrays.states[0] != nullptr) {
                MP_UNROLL
                for (int s = 0; s < states; ++s) {
                    const state_type* const state = tensor.arrays.states[s];
                    result.states[s] = thread.load(chunk_at<Count>(state + index));
                }
            }
            if constexpr (compensated) {
                const master_type* const compensation = tensor.arrays.compensation;
                result.compensation = thread.load(chunk_at<Count>(compensation + index));
            }
            return result;
        }

        MP_ANY_EXECUTION_SPACE
        template <int Count, class Thread>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void finish(const Thread& thread, const tensor_entry<arrays>& tensor,
                                                    std::size_t index, operands<Count> it, int i) {
            if (used != nullptr && thread.load(used + tensor.number) == 0) return;
            if constexpr (stochastic && Count != 1) {
                if (i == 0) call_generator(tensor, index);
            }
            chunk<weight_type, Count> weights;
            MP_UNROLL
            for (int j = 0; j < Count; ++j) update_element(tensor, index, i, j, it, weights);
            if constexpr (Parameter::has_master_copy) {
                thread.store(chunk_at<Count>(tensor.arrays.weights + index), weights);
            }
            thread.store(chunk_at<Count>(tensor.arrays.masters + index), it.masters);
            if (tensor.arrays.states[0] != nullptr) {
                MP_UNROLL
                for (int s = 0; s < states; ++s) {
                    thread.store(chunk_at<Count>(tensor.arrays.states[s] + index), it.states[s]);
                }
            }
            if constexpr (compensated) {
                thread.store(chunk_at<Count>(tensor.arrays.compensation + index), it.compensation);
            }
        }

        /// The random words of all chunks in flight, of which the first begins at element `index`: a multiple
        /// of 64 up to 12 more.
        MP_HOST_DEVICE MP_ALWAYS_INLINE void call_generator(const tensor_entry<arrays>& tensor,
                                                            std::size_t index) {
            MP_UNROLL
            for (int array = 0; array < random_arrays; ++array) {
                const rounding_stream stream{seed, tensor.number, number, static_cast<std::uint32_t>(array)};
                MP_UNROLL
                for (int j = 0; j < count; ++j) {
                    const std::uint64_t call = index / 64 * 16 + index % 64 + static_cast<std::uint64_t>(j);
                    calls[array][j] = rounding_words(stream, call);
                }
            }
        }

        /// The random word of element j of the i-th chunk in flight, which begins at element `first`.
        template <int Count>
        [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t random_word(
            const tensor_entry<arrays>& tensor, std::size_t first, int i, int j, int array) const {
            if constexpr (!stochastic) {
                return 0;
            } else if constexpr (Count == 1) {
                return random_rounding_bits({seed, tensor.number, number, static_cast<std::uint32_t>(array)},
                                            first);
            } else {
                return calls[array][j].word[i];
            }
        }

        /// Element j of the i-th chunk in flight, in place.
        template <int Count>
        MP_HOST_DEVICE MP_ALWAYS_INLINE void update_element(const tensor_entry<arrays>& tensor,
                                                            std::size_t first, int i, int j,
                                                            operands<Count>& it,
                                                            chunk<weight_type, Count>& weights) const {
            namespace target = single_lane;
            target::vec<float> weight;
            if constexpr (split_masters) {
                weight = {join_master({it.masters.values[j].bits(), it.compensation.values[j].bits()})};
            } else {
                weight = {static_cast<float>(it.masters.values[j])};
            }
            if constexpr (kahan) {
                weight = target::add(weight, static_cast<float>(it.compensation.values[j]));
            }
            target::vec<float> gradient{static_cast<float>(it.gradient.values[j])};
            gradient = target::mul(target::mul(gradient, inverse_scale), clip_factor);
            target::vec<float> moved[coefficients::states];
            for (int s = 0; s < states; ++s) moved[s] = {static_cast<float>(it.states[s].values[j])};
            const target::update_rule<coefficients> rule(multiply_by);
            rule.update(weight, gradient, moved);
            MP_UNROLL
            for (int s = 0; s < states; ++s) {
                std::uint32_t random = 0;  // float states are not rounded
                if constexpr (random_arrays > 1) {
                    if (rule.has_states()) random = random_word<Count>(tensor, first, i, j, s + 1);
                }
                it.states[s].values[j] = rounded_update<How, state_type>(moved[s].value, random);
            }
            if constexpr (split_masters) {
                const split_float halves = split_master(weight.value);
                it.masters.values[j] = master_type::from_bits(halves.high);
                it.compensation.values[j] = master_type::from_bits(halves.low);
            } else {
                it.masters.values[j] = rounded_update<How, master_type>(
                    weight.value, random_word<Count>(tensor, first, i, j, 0));
                const float kept = static_cast<float>(it.masters.values[j]);
                if constexpr (kahan) {
                    it.compensation.values[j] = master_type(target::sub(weight, kept).value);
                }
                if constexpr (Parameter::has_master_copy) weights.values[j] = weight_type(kept);
            }
        }
    };

    [[nodiscard]] static chunk_split split(const arrays& of, std::size_t size) {
        const state_type* const second = of.states[states - 1];
        const chunk_split result = split_together<count>(size, of.weights, of.masters, of.gradient,
                                                         of.states[0], second, of.compensation);
        // Chunks that share calls of the generator begin at its groups.
        if (stochastic && result.head != 0) return {size, 0, size};
        return result;
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE thread_data begin(const Thread& thread) const {
        thread_data result{};
        result.active = thread.load(&optimizer->applied) != 0;
        if (!result.active) return result;
        result.inverse_scale = inverse_scale == nullptr ? 1.0F : thread.load(inverse_scale);
        result.clip_factor = clip_factor == nullptr ? 1.0F : thread.load(clip_factor);
        result.seed = seed;
        result.used = used;
        result.number = thread.load(&optimizer->steps);
        result.multiply_by = uniform_value<coefficients>::load(thread, &optimizer->coefficients);
        return result;
    }
};

/// A launch for every table of parameters.
template <weight_update How, class Options, class Executor, class Parameter>
void update_parameters(const Executor& exec, std::span<const Parameter> list, const Options& options,
                       const device_optimizer<Options>* optimizer, const float* inverse_scale,
                       const float* clip_factor, const std::uint32_t* used) {
    using work = update_work<How, Options, Parameter>;
    const std::size_t states = optimizer_traits<Options>::states(options);
    run_over_tensors(optimizer_traits<Options>::gpu_step, exec,
                     work{{}, optimizer, inverse_scale, clip_factor, options.seed, used}, list.size(),
                     [&](std::size_t i, typename work::arrays& arrays, std::size_t& size) {
                         const Parameter& it = list[i];
                         if constexpr (Parameter::has_master_copy) {
                             arrays.weights = it.weights.data();
                             arrays.masters = it.masters.data();
                         } else {
                             arrays.masters = it.weights.data();
                         }
                         arrays.gradient = it.gradient.data();
                         if (states > 0) arrays.states[0] = it.momentum.data();
                         if (states > 1) arrays.states[work::states - 1] = it.mean_square.data();
                         if (work::compensated) arrays.compensation = it.compensation.data();
                         size = it.gradient.size();
                     });
}

/// The step of an optimizer: its begin, and the updates. With a rate factor, the learning rate is that of the
/// options times it; with `used`, tensors where it is zero do not take part.
template <class Options, class Executor, class Parameter, class Skip>
void run_step(const Executor& exec, std::span<const Parameter> list, const Options& options,
              device_optimizer<Options>* optimizer, const Skip& skip, const float* inverse_scale,
              const float* clip_factor, const double* rate_factor = nullptr,
              const std::uint32_t* used = nullptr) {
    constexpr std::string_view function = optimizer_traits<Options>::gpu_step;
    using master = typename Parameter::master_type;
    constexpr bool weights_can_stall =
        !Parameter::has_master_copy && !std::is_same_v<typename Parameter::weight_type, float>;
    optimizer_traits<Options>::check(function, options);
    require_memory(function, "optimizer", optimizer, 1);
    const weight_update how = options.low_precision_update;
    if (how != weight_update::nearest && !weights_can_stall) {
        throw_argument(function, "low_precision_update", name_of(how),
                       Parameter::has_master_copy ? "must be nearest, for there is a master copy"
                                                  : "must be nearest, for the weights are float");
    }
    constexpr bool masters_can_split = [] {
        if constexpr (weights_can_stall) return is_bfloat16<typename master::format>;
        return false;
    }();
    if (how == weight_update::split && !masters_can_split) {
        throw_argument(function, "low_precision_update", name_of(how),
                       "must be another: only a bfloat16 is half of a float");
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].gradient.empty()) continue;
        check_parameter(function, i, list[i], optimizer_traits<Options>::states(options), how);
    }
    launch(function, exec, simt::launch_size{},
           begin_step_kernel<typename Parameter::state_type, Options, Skip>{options, skip, optimizer,
                                                                            rate_factor});
    const auto update = [&]<weight_update How>(std::integral_constant<weight_update, How>) {
        update_parameters<How>(exec, list, options, optimizer, inverse_scale, clip_factor, used);
    };
    if (how == weight_update::nearest) {
        update(std::integral_constant<weight_update, weight_update::nearest>{});
        return;
    }
    if constexpr (weights_can_stall) {
        if (how == weight_update::stochastic) {
            update(std::integral_constant<weight_update, weight_update::stochastic>{});
        } else if (how == weight_update::split) {
            if constexpr (masters_can_split) {
                update(std::integral_constant<weight_update, weight_update::split>{});
            }
        } else {
            update(std::integral_constant<weight_update, weight_update::kahan>{});
        }
    }
}

}}  // namespace mp::detail
