// SPDX-License-Identifier: MIT
// One linear layer of float arrays, which a region takes to bfloat16.
#include <mp/autocast.hpp>
#include <mp/ops.hpp>

#include <vector>

int main() {
    const int n = 32;
    const std::vector<float> x(n * n, 1.0F);
    const std::vector<float> weights(n * n, 1.0F);
    const std::vector<float> bias(n, 0.0F);
    std::vector<float> y(n * n);
    const mp::autocast_region region(mp::precision::bf16);
    mp::ops::linear(mp::cpu{}, mp::row_major(x, n, n), mp::row_major(weights, n, n), bias,
                    mp::row_major(y, n, n));
    return y[3] == 32.0F ? 0 : 1;
}
