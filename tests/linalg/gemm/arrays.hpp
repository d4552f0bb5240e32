// SPDX-License-Identifier: MIT
// Arrays of matrices for tests of grouped products.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace gemm_test {

template <class Value>
std::vector<Value> numbers(std::ptrdiff_t count, std::mt19937& random) {
    std::normal_distribution<float> normal;
    std::vector<Value> result(static_cast<std::size_t>(count));
    for (Value& it : result) it = Value(normal(random));
    return result;
}

template <class Value>
bool same(const std::vector<Value>& a, const std::vector<Value>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0;
}

}  // namespace gemm_test
