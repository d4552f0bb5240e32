// SPDX-License-Identifier: MIT
/// \file
/// The step of an optimizer on a GPU, one pass over all arrays of all parameters, its functions for lists of them, and the
/// optimizer as an object: its parameters, options and the state that the device keeps.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/device_value.hpp>
#include <mp/device/gpu/tensor_list.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/nn/optim/gpu/device_optimizer.hpp>
#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/optim/gpu/parameter.hpp>
#include <mp/nn/optim/optimizer_options.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/nn/scaling/gradient_writes.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/optimizer_coefficients.hpp>
#include <mp/numbers/rules/optimizer_updates.hpp>
#include <mp/numbers/rules/stochastic_rounding.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

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
    constexpr bool masters_can_split = [] {
        if constexpr (weights_can_stall) return is_bfloat16<typename master::format>;
        return false;
    }();
    const weight_update how = options.low_precision_update;
    check_weight_update(function, how, Parameter::has_master_copy, !weights_can_stall, masters_can_split);
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].gradient.empty()) continue;
        check_parameter(function, i, list[i], optimizer_traits<Options>::states(options), how);
    }
    launch(function, exec, simt::launch_size{},
           begin_step_kernel<typename Parameter::state_type, Options, Skip>{options, skip, optimizer,
                                                                            rate_factor});
    const auto update = [&]<weight_update How>(std::integral_constant<weight_update, How>) {
        if (how != How) return;
        update_parameters<How>(exec, list, options, optimizer, inverse_scale, clip_factor, used);
    };
    update(std::integral_constant<weight_update, weight_update::nearest>{});
    if constexpr (weights_can_stall) {
        update(std::integral_constant<weight_update, weight_update::stochastic>{});
        update(std::integral_constant<weight_update, weight_update::kahan>{});
    }
    if constexpr (masters_can_split) update(std::integral_constant<weight_update, weight_update::split>{});
}

/// Bodies of the steps below: skipped by a report, and by the policy of a loss scale.
template <class Executor, class List, class Options>
void step_list(const Executor& exec, const List& parameters, const Options& options,
               device_optimizer<Options>* optimizer, const gpu_gradient_state& gradients) {
    using parameter = std::remove_cv_t<contiguous_element<const List>>;
    run_step(exec, std::span<const parameter>(as_span(parameters)), options, optimizer,
             skip_by_report{gradients.report}, gradients.inverse_scale, gradients.clip_factor);
}
template <class Executor, class List, class Options, class Policy, std::size_t Events>
void step_list(const Executor& exec, const List& parameters, const Options& options,
               device_optimizer<Options>* optimizer, const Policy& policy,
               const device_loss_scale<Policy, Events>* scale, const float* clip_factor) {
    using parameter = std::remove_cv_t<contiguous_element<const List>>;
    require_memory(optimizer_traits<Options>::gpu_step, "scale", scale, 1);
    policy.validate();
    run_step(exec, std::span<const parameter>(as_span(parameters)), options, optimizer,
             skip_by_policy<Policy, Events>{rules_of(policy), scale}, &scale->inverse_scale, clip_factor);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Updates all parameters of a list that have a gradient, as mp::adamw does on a CPU: the stored values have
/// the same bits (except for payloads of NaNs, and as long as all parameters have had as many updates).
/// One launch that decides, counts and calculates the coefficients, and one pass over the arrays for some
/// sixty parameters: it reads gradient, master copy and state, multiplies the gradient by the inverse scale
/// and then by the clip factor, each product rounded to float, and writes master copy, state and weights.
/// With half weights and gradients, float masters and state these are 28 bytes an element.
///
/// If the report has found an infinity, a NaN or a gradient above its limit, nothing is written and the step does
/// not count. Nothing waits, nothing is allocated, and everything may be captured into a graph: the learning
/// rate is that in device memory, the other options are copied into the launches.
///
///     mp::check_gradients(stream, parameters, scale.data());
///     mp::adamw_step(stream, parameters, options, optimizer.data(), policy, scale.data());
///     mp::update_scale(stream, policy, scale.data());
///
/// \param exec        mp::cuda_stream or mp::simulated_gpu
/// \param parameters  contiguous range of gpu_parameter of one type; the host's, and read before this
///                    returns. For several types, make several lists, with a device_optimizer each
/// \param options     see adamw_options; the learning rate is that of `optimizer`. With
///                    weight_update::stochastic random bits belong to the index in the list
/// \param optimizer   one in device memory; the kernels that read and write it must be ordered
/// \param gradients   what is known about the gradients
/// \throws argument_error  an option is out of range; an array is null or has another size than the weights;
///                         optimizer is null
/// \throws cuda_error  a launch failed
template <gpu_executor Executor, detail::parameter_list List>
void adamw_step(const Executor& exec, const List& parameters, const adamw_options& options,
                device_optimizer<adamw_options>* optimizer, const gpu_gradient_state& gradients = {}) {
    detail::step_list(exec, parameters, options, optimizer, gradients);
}

/// Overload with the inverse scale of a device_loss_scale, whose policy decides whether the step is skipped.
///
/// \param clip_factor  one float in device memory, or null
template <gpu_executor Executor, detail::parameter_list List, scale_policy Policy, std::size_t Events>
void adamw_step(const Executor& exec, const List& parameters, const adamw_options& options,
                device_optimizer<adamw_options>* optimizer, const Policy& policy,
                const device_loss_scale<Policy, Events>* scale, const float* clip_factor = nullptr) {
    detail::step_list(exec, parameters, options, optimizer, policy, scale, clip_factor);
}

/// Updates all parameters of a list that have a gradient, as mp::sgd does on a CPU; see adamw_step for the arguments.
/// With half weights and gradients, float masters and momentum it moves 20 bytes an element.
template <gpu_executor Executor, detail::parameter_list List>
void sgd_step(const Executor& exec, const List& parameters, const sgd_options& options,
              device_optimizer<sgd_options>* optimizer, const gpu_gradient_state& gradients = {}) {
    detail::step_list(exec, parameters, options, optimizer, gradients);
}
template <gpu_executor Executor, detail::parameter_list List, scale_policy Policy, std::size_t Events>
void sgd_step(const Executor& exec, const List& parameters, const sgd_options& options,
              device_optimizer<sgd_options>* optimizer, const Policy& policy,
              const device_loss_scale<Policy, Events>* scale, const float* clip_factor = nullptr) {
    detail::step_list(exec, parameters, options, optimizer, policy, scale, clip_factor);
}

/// Base of the optimizers on a GPU: the list of their parameters, and what gpu_loss_scaler calls before a step.
/// Derived::limit() is the largest gradient that a step takes.
template <class Derived, gpu_executor Executor, class Parameter>
class gpu_gradients {
public:
    /// Adds the infinities, NaNs and excesses of the gradients to the findings of the scale.
    template <scale_policy Policy, std::size_t Events>
    void check_gradients(device_loss_scale<Policy, Events>* scale) {
        mp::check_gradients(exec_, list_, scale, 0, limit());
    }
    /// Does as check_gradients(), and finds the factor by which the next step clips the norm of the gradients.
    template <scale_policy Policy, std::size_t Events>
    void clip_gradient_norm(device_loss_scale<Policy, Events>* scale, double max_norm) {
        detail::run_gradient_norm(exec_, list_, &scale->inverse_scale,
                                  std::span<double>(sums_.data(), gradient_norm_workspace(list_)),
                                  norm_.data(), max_norm, &scale->seen, 0, limit(),
                                  !detail::is_non_finite(max_norm));
        clipped_ = true;
    }
    /// The norm of the gradients in device memory, and the factor by which the step clips them, which may be that of a
    /// norm over several optimizers.
    [[nodiscard]] device_gradient_norm* clipping() { return norm_.data(); }
    [[nodiscard]] const device_gradient_norm* gradient_norm() const { return norm_.data(); }
    /// Copies gradient_norm() to the host; waits.
    [[nodiscard]] device_gradient_norm read_gradient_norm() const { return norm_.read(exec_); }

protected:
    gpu_gradients(std::string_view function, Executor exec, std::vector<Parameter> list)
        : exec_(exec),
          list_(std::move(list)),
          norm_(function, exec, device_gradient_norm{}),
          sums_(function, exec, gradient_norm_workspace(list_)) {}

    /// The factor in device memory if gradients are clipped, else null.
    [[nodiscard]] const float* clip_factor() const { return clipped_ ? &norm_.data()->clip_factor : nullptr; }

    Executor exec_;
    std::vector<Parameter> list_;
    bool clipped_ = false;

private:
    [[nodiscard]] device_gradient_limit limit() const { return static_cast<const Derived&>(*this).limit(); }

    detail::device_values<Executor, device_gradient_norm> norm_;
    detail::device_values<Executor, double> sums_;
};

/// AdamW, SGD or Lion for parameters of one type on a GPU, driven by a gpu_loss_scaler as mp::adamw and
/// mp::sgd are by a loss_scaler, with their bits. Gradients stay as they are, scaled: the step takes the
/// scale and the clip factor out while it updates.
///
///     mp::gpu_optimizer optimizer(stream, std::vector{first, second}, mp::adamw_options{.learning_rate =
///     1e-3}); mp::gpu_loss_scaler scaler(stream, mp::pytorch_policy{});
///
/// Device memory is allocated when it is made, and never later. Every call only enqueues, but where it says
/// that it waits, and can be captured into a graph. Copies share the state.
template <gpu_executor Executor, class Parameter, class Options>
class gpu_optimizer : public gpu_gradients<gpu_optimizer<Executor, Parameter, Options>, Executor, Parameter> {
    using base = gpu_gradients<gpu_optimizer, Executor, Parameter>;
    friend base;
    static constexpr std::string_view function = "mp::gpu_optimizer";

public:
    using state_type = device_optimizer<Options>;

    /// \param parameters  see gpu_parameter; their memory must outlive this object
    /// \throws argument_error  an option is out of range; there is not enough device memory
    gpu_optimizer(Executor exec, std::vector<Parameter> parameters, const Options& options)
        : base(function, exec, std::move(parameters)),
          options_(options),
          state_(function, exec, make_device_optimizer(options)) {
        for (const Parameter& it : base::list_) writes_.add(it.gradient.data(), it.gradient.size_bytes());
    }

    [[nodiscard]] std::span<const Parameter> parameters() const { return base::list_; }
    [[nodiscard]] const Options& options() const { return options_; }

    /// Counts of the steps and the learning rate; waits.
    [[nodiscard]] state_type state() const { return state_.read(base::exec_); }
    /// Continues a run.
    void set_state(const state_type& state) { state_.write(base::exec_, state); }
    /// Sets that of the steps from now on. Not for graphs: what they replay reads the device's. Waits.
    void set_learning_rate(double learning_rate) {
        Options changed = options_;
        changed.learning_rate = learning_rate;
        detail::optimizer_traits<Options>::check(function, changed);
        state_type now = state();
        now.learning_rate = learning_rate;
        set_state(now);
    }

    // --- for gpu_loss_scaler

    /// The update, if the policy lets it happen.
    template <scale_policy Policy, std::size_t Events>
    void step(const Policy& policy, const device_loss_scale<Policy, Events>* scale) {
        detail::run_step(base::exec_, parameters(), options_, state_.data(),
                         detail::skip_by_policy<Policy, Events>{detail::rules_of(policy), scale},
                         &scale->inverse_scale, base::clip_factor());
        skip_step();
    }
    /// Forgets the clip factor.
    void skip_step() { base::clipped_ = false; }

    // --- for training_iteration

    [[nodiscard]] detail::gradient_writes& gradient_writes() noexcept { return writes_; }

private:
    [[nodiscard]] device_gradient_limit limit() const {
        return gradient_limit<Parameter>(options_, state_.data());
    }

    Options options_;
    detail::device_values<Executor, state_type> state_;
    detail::gradient_writes writes_;
};

template <gpu_executor Executor, class Parameter, class Options>
gpu_optimizer(const Executor&, std::vector<Parameter>, const Options&)
    -> gpu_optimizer<detail::executor_handle_t<Executor>, Parameter, Options>;

}}  // namespace mp
