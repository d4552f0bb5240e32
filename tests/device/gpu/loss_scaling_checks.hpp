// SPDX-License-Identifier: MIT
// What unscale_and_check, check_gradients and convert_and_observe have to do, on any device.
#pragma once

#include <device/gpu/values.hpp>

#include <mp/convert.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/nn/scaling/gpu/device_loss_scale.hpp>
#include <mp/nn/scaling/gpu/observe.hpp>
#include <mp/nn/scaling/gpu/unscale.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace gpu_test {

/// The report that a plain loop makes of unscaled values.
inline void look_at(const std::vector<float>& values, std::size_t parameter,
                    mp::device_gradient_report& report) {
    report.checked += values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint32_t magnitude = bits_of(values[i]) & 0x7fff'ffffU;
        if (magnitude < 0x7f80'0000U) continue;
        ++(magnitude == 0x7f80'0000U ? report.infinities : report.nans);
        report.first = std::min(report.first, (static_cast<unsigned long long>(parameter) << 44) + i);
    }
}

/// gradient * inverse: the product of two floats is exact in double, so this is rounded once.
template <class Gradient>
std::vector<float> unscaled_by_double(const std::vector<Gradient>& gradient, float inverse) {
    std::vector<float> result;
    for (const Gradient value : gradient) {
        result.push_back(static_cast<float>(static_cast<double>(static_cast<float>(value)) *
                                            static_cast<double>(inverse)));
    }
    return result;
}

/// unscale_and_check and check_gradients on tensors of these sizes, each `shift` elements behind a multiple
/// of 16 bytes (the results `to_shift`): values and report are those of the oracle and of the CPU.
template <class Gradient, class Device>
void check_unscale_list(Device& device, const std::vector<std::size_t>& sizes, std::size_t shift,
                        std::size_t to_shift, float inverse, int bad) {
    constexpr std::size_t behind = 3;
    std::vector<std::vector<Gradient>> gradients;
    std::vector<typename Device::template array<Gradient>> on_device;
    std::vector<typename Device::template array<float>> results;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::vector<Gradient> values = random_codes<Gradient>(sizes[i], static_cast<unsigned>(i + 1));
        for (Gradient& value : values) {
            if ((bits_of(static_cast<float>(value)) & 0x7f80'0000U) == 0x7f80'0000U) value = Gradient(1.5F);
        }
        if (i % 2 == sizes.size() % 2) spoil(values, bad, static_cast<unsigned>(i));
        gradients.push_back(values);
        values.insert(values.begin(), shift, Gradient(1.0F));
        on_device.push_back(device.put(values));
        results.push_back(device.put(std::vector<float>(to_shift + sizes[i] + behind, 7.0F)));
    }
    std::vector<mp::gpu_gradient<Gradient>> list;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        list.push_back({on_device[i].span().subspan(shift), results[i].span().subspan(to_shift, sizes[i])});
    }
    auto inverse_scale = device.put(std::vector<float>{inverse});
    auto reports = device.put(std::vector<mp::device_gradient_report>(2));
    mp::unscale_and_check(device.exec(), list, inverse_scale.data(), reports.data(), 5);
    mp::check_gradients(device.exec(), list, inverse_scale.data(), reports.data() + 1, 5);

    mp::device_gradient_report expected;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::vector<float> values = unscaled_by_double(gradients[i], inverse);
        std::vector<float> on_cpu(sizes[i]);
        static_cast<void>(mp::unscale_and_check(mp::cpu{}, gradients[i], on_cpu, inverse));
        look_at(values, 5 + i, expected);
        std::vector<float> all = device.get(results[i]);
        CAPTURE(sizes[i]);
        CAPTURE(shift);
        CAPTURE(to_shift);
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(to_shift);
        const std::vector<float> out(begin, begin + static_cast<std::ptrdiff_t>(sizes[i]));
        CHECK(differences(out, values) == 0);
        CHECK(differences(out, on_cpu) == 0);
        std::fill_n(begin, sizes[i], 7.0F);
        CHECK(same_bits(all, std::vector<float>(all.size(), 7.0F)));
    }
    const std::vector<mp::device_gradient_report> found = device.get(reports);
    CHECK(found[0] == expected);
    CHECK(found[1] == expected);
}

/// What convert_and_observe makes of a value, and counts: by comparisons of doubles.
template <class To>
void observe_by_double(const std::vector<float>& values, const std::vector<To>& rounded, float inverse,
                       double edge, mp::device_gradient_report& report) {
    const mp::range_report range = mp::report_range<To>(mp::cpu{}, values);
    report.values += range.count;
    report.zeros += range.zeros;
    report.flushed += range.flushed;
    report.subnormals += range.subnormals;
    report.overflows += range.overflows;
    double largest = report.largest();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double magnitude = std::fabs(static_cast<double>(values[i]));
        if (!(magnitude <= 1e300)) continue;
        largest = std::max(largest, magnitude * static_cast<double>(inverse));
        if (magnitude > edge && std::fabs(static_cast<double>(static_cast<float>(rounded[i]))) <= 1e300) {
            ++report.large;
        }
    }
    report.largest_bits = mp::detail::bit_cast<std::uint64_t>(largest);
}

/// convert_and_observe, one array at a time and as a list: numbers of mp::convert, counts of the oracle.
template <class From, class To, class Device>
void check_observe_list(Device& device, const std::vector<std::size_t>& sizes, std::size_t shift,
                        float inverse, double edge) {
    std::vector<typename Device::template array<From>> from;
    std::vector<typename Device::template array<To>> to;
    std::vector<typename Device::template array<To>> to_list;
    std::vector<mp::gpu_conversion<From, To>> list;
    std::vector<std::vector<To>> expected_values;
    mp::device_gradient_report expected;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        std::mt19937 random(static_cast<unsigned>(23 + i));
        std::vector<From> values(shift + sizes[i]);
        for (From& value : values) {
            // All exponents of float, some of them often; zeros, infinities and NaNs of both signs.
            std::uint32_t bits = static_cast<std::uint32_t>(random());
            if (random() % 2 == 0) bits = (bits & 0x8fff'ffffU) | 0x3000'0000U;
            if (random() % 16 == 0) bits &= 0x8000'0000U;
            value = From(mp::detail::bit_cast<float>(bits));
        }
        from.push_back(device.put(values));
        to.push_back(device.put(std::vector<To>(sizes[i])));
        to_list.push_back(device.put(std::vector<To>(sizes[i])));
        std::vector<float> floats;
        for (std::size_t j = shift; j < values.size(); ++j) floats.push_back(static_cast<float>(values[j]));
        std::vector<To> rounded(sizes[i]);
        mp::convert(mp::cpu{}, floats, rounded);
        observe_by_double(floats, rounded, inverse, edge, expected);
        expected_values.push_back(rounded);
    }
    auto inverse_scale = device.put(std::vector<float>{inverse});
    auto reports = device.put(std::vector<mp::device_gradient_report>(2));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        list.push_back({from[i].span().subspan(shift), to_list[i].span()});
        mp::convert_and_observe(device.exec(), from[i].span().subspan(shift), to[i].span(),
                                inverse_scale.data(), reports.data(), edge);
    }
    mp::convert_and_observe(device.exec(), list, inverse_scale.data(), reports.data() + 1, edge);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        CAPTURE(sizes[i]);
        CHECK(differences(device.get(to[i]), expected_values[i]) == 0);
        CHECK(differences(device.get(to_list[i]), expected_values[i]) == 0);
    }
    const std::vector<mp::device_gradient_report> found = device.get(reports);
    CHECK(found[0] == expected);
    CHECK(found[1] == expected);
}

}  // namespace gpu_test
