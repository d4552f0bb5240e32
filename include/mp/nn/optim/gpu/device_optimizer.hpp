// SPDX-License-Identifier: MIT
/// \file
/// What an optimizer keeps on a device besides its arrays, and the step's begin: whether there is one, its
/// number, and what it multiplies by.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/nn/optim/gradient_limits.hpp>
#include <mp/nn/optim/optimizer_options.hpp>
#include <mp/nn/optim/optimizer_traits.hpp>
#include <mp/nn/scaling/gpu/device_gradient_report.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/policy.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A value that all threads of a launch read, in as few accesses as there are.
template <class Value>
struct alignas(16) uniform_value {
    Value value;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static Value load(const Thread& thread, const uniform_value* from) {
        using words = chunk<std::uint32_t, 4>;
        struct all_words {
            words parts[sizeof(uniform_value) / sizeof(words)];
        } loaded;
        for (std::size_t i = 0; i < sizeof(uniform_value) / sizeof(words); ++i) {
            loaded.parts[i] = thread.load(reinterpret_cast<const words*>(from) + i);
        }
        return bit_cast<uniform_value>(loaded).value;
    }
};

}}  // namespace mp::detail

namespace mp {

/// What an optimizer keeps in device memory besides its arrays: put make_device_optimizer's result there. The
/// kernels count steps and calculate bias corrections themselves, so an iteration that is captured into a
/// graph goes on as it should when it is replayed.
///
/// \tparam Options  adamw_options, sgd_options or lion_options
template <class Options>
struct device_optimizer {
    /// Of the next step; the host may copy in another one between steps, within the range of its options'.
    /// Where a schedule's factor is in device memory, that of the last step: the options' times the factor.
    double learning_rate = 0;
    unsigned long long steps = 0;  ///< steps applied; skipped ones do not count
    /// Whether the last step was applied. With the learning rate, the only thing that a skipped step writes.
    std::uint32_t applied = 0;
    /// Of the last step that was applied.
    detail::uniform_value<typename detail::optimizer_traits<Options>::coefficients> coefficients = {};
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The beginning of a training run; set `steps` to continue one. Throws argument_error if an option is out of
/// range.
template <class Options>
[[nodiscard]] device_optimizer<Options> make_device_optimizer(const Options& options) {
    static_assert(
        !detail::layerwise_options<Options>,
        "mp::gpu_optimizer: LARS and LAMB are for CPUs: there is no pass here for the norms of layers");
    static_assert(std::is_trivially_copyable_v<device_optimizer<Options>>);
    detail::optimizer_traits<Options>::check("mp::make_device_optimizer", options);
    device_optimizer<Options> result;
    result.learning_rate = options.learning_rate;
    return result;
}

/// The largest gradient, without its scale and clipped, by which a step of these options leaves states and weights that
/// training goes on from, for check_gradients and gradient_norm. See mp::optimizer_base::check_gradients.
///
/// \param optimizer  in device memory, where the learning rate is read in each check; null for the rate of the options
template <class Parameter, class Options>
[[nodiscard]] device_gradient_limit gradient_limit(const Options& options,
                                                   const device_optimizer<Options>* optimizer = nullptr) {
    device_gradient_limit result;
    result.limits =
        detail::gradient_limits_of<typename Parameter::weight_type, typename Parameter::master_type,
                                   typename Parameter::state_type>(options);
    if (optimizer == nullptr) {
        result.learning_rate = options.learning_rate;
    } else {
        result.rate_factor = &optimizer->learning_rate;
    }
    return result;
}

}}  // namespace mp

namespace mp {

/// Inputs of a step about its gradients, all in device memory; null where absent.
struct gpu_gradient_state {
    const float* inverse_scale = nullptr;  ///< the gradients are multiplied by it; null for 1
    const float* clip_factor = nullptr;    ///< and by this then; see device_gradient_norm. Null for 1
    /// The step is skipped if it has an infinity, a NaN or an excess; null: there is always a step.
    const device_gradient_report* report = nullptr;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Skips a step by what a report has found.
struct skip_by_report {
    const device_gradient_report* report;

    MP_HOST_DEVICE bool operator()() const {
        return report != nullptr && (report->found() || report->exceeds_limit());
    }
};

/// Skips a step as the policy of a loss scale wants.
template <class Policy, std::size_t Events>
struct skip_by_policy {
    rules_type<Policy> rules;
    const device_loss_scale<Policy, Events>* scale;

    MP_HOST_DEVICE bool operator()() const { return scale->skips(rules); }
};

/// One thread decides, counts, and calculates the coefficients, on memory that nobody else touches meanwhile.
template <class State, class Options, class Skip>
struct begin_step_kernel {
    static constexpr int threads = 32;
    Options options;
    Skip skip;
    device_optimizer<Options>* optimizer;
    const double* rate_factor;  ///< what a schedule says, or null

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        if (rate_factor != nullptr) {
            optimizer->learning_rate = double_multiply(options.learning_rate, thread.load(rate_factor));
        }
        const bool applies = !skip();
        optimizer->applied = applies ? 1 : 0;
        if (!applies) return;
        ++optimizer->steps;
        optimizer->coefficients.value =
            coefficients_for<State>(options, optimizer->learning_rate, optimizer->steps);
    }
};

}}  // namespace mp::detail
