// SPDX-License-Identifier: MIT
// Numbers for tests of kernels, and how results are compared.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace gpu_test {

/// Random codes of a type: all magnitudes, with infinities and NaNs.
template <class Value>
std::vector<Value> random_codes(std::size_t size, unsigned seed) {
    std::mt19937_64 random(seed);
    std::vector<Value> values(size);
    for (Value& value : values) {
        const std::uint64_t bits = random();
        std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    }
    return values;
}

/// Normally distributed numbers.
template <class Value>
std::vector<Value> normal_values(std::size_t size, unsigned seed, float deviation = 1.0F) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, deviation);
    std::vector<Value> values(size);
    for (Value& value : values) value = Value(normal(random));
    return values;
}

/// Puts infinities of both signs and NaNs at random places.
template <class Value>
void spoil(std::vector<Value>& values, int bad, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < bad && !values.empty(); ++i) {
        const float value =
            i % 3 == 1 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
        values[random() % values.size()] = Value(i % 2 == 0 ? value : -value);
    }
}

inline std::uint32_t bits_of(float x) {
    return mp::detail::bit_cast<std::uint32_t>(x);
}
inline bool is_nan(float x) {
    return (bits_of(x) & 0x7fff'ffffU) > 0x7f80'0000U;
}

/// Elements that differ, where any two NaNs are the same.
template <class Value>
std::size_t differences(const std::vector<Value>& a, const std::vector<Value>& b) {
    if (a.size() != b.size()) return a.size() + b.size();
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::memcmp(&a[i], &b[i], sizeof(Value)) == 0) continue;
        if (is_nan(static_cast<float>(a[i])) && is_nan(static_cast<float>(b[i]))) continue;
        ++count;
    }
    return count;
}

/// Whether all bits are the same.
template <class Value>
bool same_bits(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
}

}  // namespace gpu_test
