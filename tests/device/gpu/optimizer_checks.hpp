// SPDX-License-Identifier: MIT
// What adamw_step, sgd_step and gradient_norm have to do, on any device: train as the CPU's optimizers do and
// as the oracle of tests/nn/optim does, to the bit.
#pragma once

#include <device/gpu/values.hpp>
#include <nn/optim/update_oracle.hpp>

#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/optim/gpu/optimizer.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace gpu_test {

template <class Parameter>
using adamw_on_cpu = mp::adamw<typename Parameter::weight_type, typename Parameter::gradient_type,
                               typename Parameter::master_type, typename Parameter::state_type>;
template <class Parameter>
using sgd_on_cpu = mp::sgd<typename Parameter::weight_type, typename Parameter::gradient_type,
                           typename Parameter::master_type, typename Parameter::state_type>;

/// One function for both steps.
template <class Device, class List>
void step_on(Device& device, const List& list, const mp::adamw_options& options,
             mp::device_optimizer<mp::adamw_options>* optimizer, const mp::gpu_gradient_state& state) {
    mp::adamw_step(device.exec(), list, options, optimizer, state);
}
template <class Device, class List>
void step_on(Device& device, const List& list, const mp::sgd_options& options,
             mp::device_optimizer<mp::sgd_options>* optimizer, const mp::gpu_gradient_state& state) {
    mp::sgd_step(device.exec(), list, options, optimizer, state);
}

template <class Value, class Array>
std::vector<Value> all_of(const Array& values) {
    return {values.begin(), values.end()};
}

/// The arrays of all parameters on a device.
template <class Parameter, class Device>
struct arrays_on_device {
    using weight = typename Parameter::weight_type;
    using gradient_value = typename Parameter::gradient_type;
    using master = typename Parameter::master_type;
    using state = typename Parameter::state_type;
    template <class Value>
    using array = typename Device::template array<Value>;

    Device* device;
    std::size_t shift;
    bool has_compensation;
    std::vector<array<weight>> weights;
    std::vector<array<gradient_value>> gradients;
    std::vector<array<master>> masters;
    std::vector<array<state>> momentum;
    std::vector<array<state>> mean_square;
    std::vector<array<master>> compensation;
    std::vector<std::size_t> sizes;

    arrays_on_device(Device& on, std::size_t shifted, bool compensated)
        : device(&on), shift(shifted), has_compensation(compensated) {}

    void add(const std::vector<weight>& values) {
        const std::size_t size = shift + values.size();
        std::vector<weight> shifted(shift, weight(0.0F));
        shifted.insert(shifted.end(), values.begin(), values.end());
        std::vector<master> master_values;
        for (const weight value : shifted) master_values.push_back(master(static_cast<float>(value)));
        weights.push_back(device->put(shifted));
        gradients.push_back(device->put(std::vector<gradient_value>(size)));
        masters.push_back(device->put(master_values));
        momentum.push_back(device->put(std::vector<state>(size)));
        mean_square.push_back(device->put(std::vector<state>(size)));
        compensation.push_back(device->put(std::vector<master>(size)));
        sizes.push_back(values.size());
    }

    void set_gradient(std::size_t i, const std::vector<gradient_value>& values) {
        std::vector<gradient_value> shifted(shift, gradient_value(0.0F));
        shifted.insert(shifted.end(), values.begin(), values.end());
        gradients[i] = device->put(shifted);
    }

    std::vector<Parameter> list() {
        std::vector<Parameter> result;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            Parameter it;
            it.weights = weights[i].span().subspan(shift);
            it.gradient = gradients[i].span().subspan(shift);
            if constexpr (Parameter::has_master_copy) it.masters = masters[i].span().subspan(shift);
            it.momentum = momentum[i].span().subspan(shift);
            it.mean_square = mean_square[i].span().subspan(shift);
            if (has_compensation) it.compensation = compensation[i].span().subspan(shift);
            result.push_back(it);
        }
        return result;
    }

    template <class Value>
    std::vector<Value> read(const array<Value>& from) const {
        const std::vector<Value> all = device->get(from);
        return {all.begin() + static_cast<std::ptrdiff_t>(shift), all.end()};
    }

    /// All bytes that a step may write.
    std::vector<unsigned char> bytes() const {
        std::vector<unsigned char> result;
        const auto append = [&](const auto& values) {
            const auto* const begin = reinterpret_cast<const unsigned char*>(values.data());
            result.insert(result.end(), begin, begin + values.size() * sizeof values[0]);
        };
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            append(device->get(weights[i]));
            append(device->get(masters[i]));
            append(device->get(momentum[i]));
            append(device->get(mean_square[i]));
            append(device->get(compensation[i]));
        }
        return result;
    }
};

/// What a training run is like.
struct run {
    std::vector<std::size_t> sizes{1, 2, 3, 5, 33, 2100, 64, 4099};
    std::size_t shift = 0;  ///< elements between a multiple of 256 bytes and the beginning of every array
    int steps = 4;
    int bad_step = 2;     ///< its gradients have a NaN, so that it is skipped
    double max_norm = 0;  ///< 0: gradients are not clipped
    float inverse_scale = 1.0F / 3.0F;
};

/// Trains on the device, on the CPU, and, if gradients are not clipped, with the oracle.
template <class Parameter, class Optimizer, class Device, class Options>
void check_training(Device& device, const Options& options, const run& how) {
    using weight = typename Parameter::weight_type;
    using gradient_value = typename Parameter::gradient_type;
    using master = typename Parameter::master_type;
    using state = typename Parameter::state_type;
    const bool compensated = options.low_precision_update == mp::weight_update::kahan ||
                             options.low_precision_update == mp::weight_update::split;
    constexpr bool is_adam = std::is_same_v<Options, mp::adamw_options>;
    bool has_states = is_adam;
    if constexpr (!is_adam) has_states = options.momentum != 0.0;
    CAPTURE(how.shift);

    arrays_on_device<Parameter, Device> arrays(device, how.shift, compensated);
    std::vector<std::vector<weight>> weights;
    std::vector<std::vector<gradient_value>> gradients;
    std::vector<oracle::parameter_state<weight, master, state>> plain;
    for (std::size_t i = 0; i < how.sizes.size(); ++i) {
        weights.push_back(normal_values<weight>(how.sizes[i], static_cast<unsigned>(i + 7), 2.0F));
        gradients.emplace_back(how.sizes[i]);
        arrays.add(weights[i]);
        oracle::parameter_state<weight, master, state> it;
        it.weights = weights[i];
        for (const weight value : weights[i]) it.masters.push_back(master(static_cast<float>(value)));
        it.compensation.resize(how.sizes[i]);
        for (auto& states : it.states) states.resize(how.sizes[i]);
        it.index = static_cast<std::uint32_t>(i);
        plain.push_back(it);
    }
    std::vector<mp::parameter<weight, gradient_value>> parameters;
    for (std::size_t i = 0; i < how.sizes.size(); ++i) parameters.push_back({"", weights[i], gradients[i]});
    Optimizer on_cpu(parameters, options);
    auto optimizer = device.put(std::vector{mp::make_device_optimizer(options)});
    auto inverse_scale = device.put(std::vector<float>{how.inverse_scale});
    auto norm = device.put(std::vector<mp::device_gradient_norm>(1));
    auto workspace = device.put(std::vector<double>(mp::gradient_norm_workspace(arrays.list()),
                                                    std::numeric_limits<double>::quiet_NaN()));

    std::mt19937 random(static_cast<unsigned>(how.shift + 1));
    unsigned long long applied = 0;
    for (int step = 0; step < how.steps; ++step) {
        CAPTURE(step);
        for (std::size_t i = 0; i < how.sizes.size(); ++i) {
            for (gradient_value& value : gradients[i]) {
                value = gradient_value(oracle::some_value(random));
                const std::uint32_t bits = bits_of(static_cast<float>(value));
                if ((bits & 0x7f80'0000U) == 0x7f80'0000U) value = gradient_value(-0.75F);
            }
        }
        if (step == how.bad_step) gradients[5][17] = gradient_value(std::numeric_limits<float>::quiet_NaN());
        for (std::size_t i = 0; i < how.sizes.size(); ++i) arrays.set_gradient(i, gradients[i]);
        const std::vector<unsigned char> before = arrays.bytes();
        const auto optimizer_before = device.get(optimizer)[0];

        const std::vector<Parameter> list = arrays.list();
        auto report = device.put(std::vector<mp::device_gradient_report>(1));
        mp::gpu_gradient_state known{inverse_scale.data(), nullptr, report.data()};
        if (how.max_norm > 0) {
            mp::gradient_norm(device.exec(), list, inverse_scale.data(), workspace.span(), norm.data(),
                              how.max_norm, report.data());
            known.clip_factor = &norm.data()->clip_factor;
        } else {
            mp::check_gradients(device.exec(), list, inverse_scale.data(), report.data());
        }
        step_on(device, list, options, optimizer.data(), known);
        const auto optimizer_after = device.get(optimizer)[0];

        const std::vector<std::vector<gradient_value>> scaled = gradients;  // floats are unscaled in place
        const mp::gradient_report found = on_cpu.unscale_gradients(how.inverse_scale);
        REQUIRE(found.found() == (step == how.bad_step));
        CHECK(device.get(report)[0].on_host().checked == found.checked);
        CHECK(device.get(report)[0].nans == found.nans);
        if (found.found()) {
            // Otherwise the CPU's optimizer names gradients above its limit, which these checks were not given.
            CHECK(device.get(report)[0].first_parameter() == found.first_parameter);
            CHECK(device.get(report)[0].first_element() == found.first_element);
            on_cpu.skip_step();
            CHECK(arrays.bytes() == before);
            CHECK(optimizer_after.steps == applied);
            CHECK(optimizer_after.applied == 0);
            CHECK(std::memcmp(&optimizer_before.coefficients, &optimizer_after.coefficients,
                              sizeof optimizer_after.coefficients) == 0);
            continue;
        }
        ++applied;
        CHECK(optimizer_after.steps == applied);
        CHECK(optimizer_after.applied == 1);
        if (how.max_norm > 0) {
            const double expected = on_cpu.clip_gradient_norm(how.max_norm);
            CHECK(device.get(norm)[0].norm == expected);
        }
        on_cpu.step();
        for (std::size_t i = 0; i < how.sizes.size(); ++i) {
            oracle::step(plain[i], std::span<const gradient_value>(scaled[i]), how.inverse_scale,
                         options.low_precision_update, options.seed, has_states, oracle::rule_of(options));
        }
        for (std::size_t i = 0; i < how.sizes.size(); ++i) {
            CAPTURE(i);
            const auto device_weights = arrays.read(arrays.weights[i]);
            const auto device_masters = arrays.read(arrays.masters[i]);
            const auto device_momentum = arrays.read(arrays.momentum[i]);
            const auto device_mean_square = arrays.read(arrays.mean_square[i]);
            CHECK(differences(device_weights, weights[i]) == 0);
            if (Parameter::has_master_copy) {
                CHECK(differences(device_masters, all_of<master>(on_cpu.master_weights(i))) == 0);
            }
            if constexpr (is_adam) {
                CHECK(differences(device_momentum, all_of<state>(on_cpu.gradient_mean(i))) == 0);
                CHECK(differences(device_mean_square, all_of<state>(on_cpu.gradient_mean_square(i))) == 0);
            } else if (has_states) {
                CHECK(differences(device_momentum, all_of<state>(on_cpu.momentum(i))) == 0);
            }
            if (compensated) {
                CHECK(differences(arrays.read(arrays.compensation[i]),
                                  all_of<master>(on_cpu.weight_compensation(i))) == 0);
            }
            if (how.max_norm > 0) continue;
            CHECK(differences(device_weights, plain[i].weights) == 0);
            if (has_states) CHECK(differences(device_momentum, plain[i].states[0]) == 0);
        }
    }
}

template <class Parameter, class Device>
void check_adamw(Device& device, const mp::adamw_options& options, const run& how) {
    check_training<Parameter, adamw_on_cpu<Parameter>>(device, options, how);
}
template <class Parameter, class Device>
void check_sgd(Device& device, const mp::sgd_options& options, const run& how) {
    check_training<Parameter, sgd_on_cpu<Parameter>>(device, options, how);
}

}  // namespace gpu_test
