// SPDX-License-Identifier: MIT
// What clip_gradients has to do, on any device.
#pragma once

#include <device/gpu/loss_scaling_checks.hpp>
#include <device/gpu/values.hpp>

#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace gpu_test {

/// A whole iteration on gradients of these sizes, `shift` elements behind a multiple of 256 bytes: unscaled,
/// measured and clipped on the device they are the floats of the CPU's optimizer, and nothing around them
/// changes.
template <class Gradient, class Device>
void check_clip(Device& device, const std::vector<std::size_t>& sizes, std::size_t shift, float inverse,
                double max_norm) {
    constexpr std::size_t behind = 3;
    std::vector<typename Device::template array<Gradient>> scaled;
    std::vector<typename Device::template array<float>> memory;
    std::vector<std::vector<Gradient>> gradients;
    std::vector<std::vector<float>> weights;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        gradients.push_back(normal_values<Gradient>(sizes[i], static_cast<unsigned>(i + 1)));
        weights.emplace_back(sizes[i]);
        scaled.push_back(device.put(gradients[i]));
        memory.push_back(device.put(std::vector<float>(shift + sizes[i] + behind, 7.0F)));
    }
    std::vector<mp::gpu_gradient<Gradient>> list;
    std::vector<mp::parameter<float, Gradient>> parameters;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        list.push_back({scaled[i].span(), memory[i].span().subspan(shift, sizes[i])});
        parameters.push_back({"", weights[i], gradients[i]});
    }
    auto inverse_scale = device.put(std::vector<float>{inverse});
    auto norm = device.put(std::vector<mp::device_gradient_norm>(1));
    auto report = device.put(std::vector<mp::device_gradient_report>(1));
    auto workspace = device.put(std::vector<double>(mp::gradient_norm_workspace(list)));
    mp::unscale_and_check(device.exec(), list, inverse_scale.data(), report.data());
    mp::gradient_norm(device.exec(), list, inverse_scale.data(), workspace.span(), norm.data(), max_norm);
    mp::clip_gradients(device.exec(), list, &norm.data()->clip_factor, report.data());

    const float factor = device.get(norm)[0].clip_factor;
    // The product of two floats is exact in double, so this is rounded once. It comes before the CPU's
    // optimizer, which unscales gradients of float where they lie.
    std::vector<std::vector<float>> exact;
    for (const std::vector<Gradient>& gradient : gradients) {
        exact.push_back(unscaled_by_double(gradient, inverse));
        if (factor != 1.0F) exact.back() = unscaled_by_double(exact.back(), factor);
    }
    mp::sgd<float, Gradient> on_cpu(parameters, {});
    static_cast<void>(on_cpu.unscale_gradients(inverse));
    static_cast<void>(on_cpu.clip_gradient_norm(max_norm));
    CAPTURE(shift);
    CAPTURE(factor);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        CAPTURE(sizes[i]);
        std::vector<float> all = device.get(memory[i]);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(shift);
        const std::vector<float> out(begin, begin + static_cast<std::ptrdiff_t>(sizes[i]));
        const std::span<const float> of_cpu = on_cpu.unscaled_gradients()[i];
        CHECK(same_bits(out, std::vector<float>(of_cpu.begin(), of_cpu.end())));
        CHECK(same_bits(out, exact[i]));
        std::fill_n(begin, sizes[i], 7.0F);
        CHECK(same_bits(all, std::vector<float>(all.size(), 7.0F)));
    }
}

/// clip_gradients on spans of numbers of any kind, by a factor that the caller names.
template <class Value, class Device>
void check_clip_of_spans(Device& device, const std::vector<std::size_t>& sizes, std::size_t shift,
                         float factor) {
    std::vector<typename Device::template array<Value>> memory;
    std::vector<std::vector<Value>> before;
    std::vector<std::span<Value>> list;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        before.push_back(normal_values<Value>(shift + sizes[i], static_cast<unsigned>(i + 3)));
        if (i % 2 == 1) spoil(before[i], 2, static_cast<unsigned>(i));
        memory.push_back(device.put(before[i]));
    }
    for (auto& array : memory) list.push_back(array.span().subspan(shift));
    auto clip_factor = device.put(std::vector<float>{factor});
    mp::clip_gradients(device.exec(), list, clip_factor.data());
    CAPTURE(shift);
    CAPTURE(factor);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::vector<Value> expected = before[i];
        for (std::size_t j = shift; j < expected.size(); ++j) {
            const double value = static_cast<double>(static_cast<float>(expected[j]));
            expected[j] = Value(static_cast<float>(value * static_cast<double>(factor)));
        }
        CAPTURE(sizes[i]);
        CHECK(differences(device.get(memory[i]), expected) == 0);
    }
}

}  // namespace gpu_test
