// SPDX-License-Identifier: MIT
// What gradient_norm has to do, on any device.
#pragma once

#include <device/gpu/loss_scaling_checks.hpp>
#include <device/gpu/values.hpp>

#include <mp/nn/optim/gpu/gradient_norm.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace gpu_test {

/// The norm in the order that <mp/nn/optim/kernels/square_sums.hpp> documents.
inline double documented_norm(const std::vector<std::vector<float>>& gradients) {
    volatile double sums[256] = {};
    std::size_t blocks = 0;
    for (const std::vector<float>& gradient : gradients) {
        for (std::size_t begin = 0; begin < gradient.size(); begin += 4096) {
            const std::size_t end = std::min(begin + 4096, gradient.size());
            volatile double lanes[16] = {};
            for (std::size_t i = begin; i < end; ++i) {
                const double value = static_cast<double>(gradient[i]);
                lanes[(i - begin) % 16] = lanes[(i - begin) % 16] + value * value;
            }
            for (int half = 8; half > 0; half /= 2) {
                for (int lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
            }
            sums[blocks % 256] = sums[blocks % 256] + lanes[0];
            ++blocks;
        }
    }
    for (int half = 128; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) sums[lane] = sums[lane] + sums[lane + half];
    }
    return std::sqrt(sums[0]);
}

/// gradient_norm of gradients of these sizes, `shift` elements behind a multiple of 256 bytes.
template <class Gradient, class Device>
void check_norm(Device& device, const std::vector<std::size_t>& sizes, std::size_t shift, float inverse,
                double max_norm) {
    std::vector<typename Device::template array<Gradient>> memory;
    std::vector<std::vector<Gradient>> gradients;
    std::vector<std::vector<float>> unscaled;
    std::vector<std::vector<float>> weights;
    mp::device_gradient_report expected_report;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        gradients.push_back(normal_values<Gradient>(sizes[i], static_cast<unsigned>(i + 1)));
        unscaled.push_back(unscaled_by_double(gradients[i], inverse));
        look_at(unscaled[i], i + 7, expected_report);
        weights.emplace_back(sizes[i]);
        std::vector<Gradient> shifted(shift, Gradient(1000.0F));
        shifted.insert(shifted.end(), gradients[i].begin(), gradients[i].end());
        memory.push_back(device.put(shifted));
    }
    std::vector<mp::gpu_gradient<Gradient>> list;
    std::vector<mp::parameter<float, Gradient>> parameters;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        list.push_back({memory[i].span().subspan(shift), {}});
        parameters.push_back({"", weights[i], gradients[i]});
    }
    auto inverse_scale = device.put(std::vector<float>{inverse});
    auto result = device.put(std::vector<mp::device_gradient_norm>(1));
    auto report = device.put(std::vector<mp::device_gradient_report>(1));
    auto workspace = device.put(
        std::vector<double>(mp::gradient_norm_workspace(list), std::numeric_limits<double>::quiet_NaN()));
    mp::gradient_norm(device.exec(), list, inverse_scale.data(), workspace.span(), result.data(), max_norm,
                      report.data(), 7);

    mp::sgd<float, Gradient> on_cpu(parameters, {});
    static_cast<void>(on_cpu.unscale_gradients(inverse));
    const double norm = documented_norm(unscaled);
    CAPTURE(shift);
    const mp::device_gradient_norm found = device.get(result)[0];
    CHECK(found.norm == norm);
    CHECK(found.norm == on_cpu.clip_gradient_norm(max_norm));
    CHECK(found.clip_factor == static_cast<float>(std::min(max_norm / (norm + 1e-6), 1.0)));
    CHECK(device.get(report)[0] == expected_report);
}

}  // namespace gpu_test
