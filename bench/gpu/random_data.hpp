// SPDX-License-Identifier: MIT
/// \file
/// Random numbers in device memory. A device draws less power, and is faster, on zeros.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "device.hpp"

namespace bench::gpu {

/// Numbers from the normal distribution with this deviation, the same for the same seed. A million and a few
/// different ones, which repeat: the period has no factor in common with the sizes of tiles.
template <class Value>
device::array<Value> random_array(device& on, std::size_t size, unsigned seed, float deviation = 1) {
    constexpr std::size_t period = 1'000'003;
    std::mt19937 random(seed);
    std::normal_distribution<float> draw(0, deviation);
    std::vector<Value> values(std::min(size, period));
    for (Value& value : values) value = static_cast<Value>(draw(random));
    const device::array<Value> source = on.put(values);
    device::array<Value> result = on.make<Value>(size);
    for (std::size_t begin = 0; begin < size; begin += values.size()) {
        on.copy(result.data() + begin, source.data(), std::min(values.size(), size - begin) * sizeof(Value));
    }
    on.wait();
    return result;
}

/// The first elements of an array, at most `count`.
template <class Value>
std::vector<Value> first_elements(device& on, const device::array<Value>& array, std::size_t count) {
    const std::size_t size = std::min(count, array.size());
    device::array<Value> part = on.make<Value>(size);
    on.copy(part.data(), array.data(), size * sizeof(Value));
    return on.get(part);
}

}  // namespace bench::gpu
