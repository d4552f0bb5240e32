// SPDX-License-Identifier: MIT
// Linear layers in a region, of eight combinations of types.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <vector>

namespace {

template <class X, class W, class Bias, class Y>
bool layer_is_right() {
    const int n = 32;
    const std::vector<X> x(n * n, X(1.0F));
    const std::vector<W> weights(n * n, W(1.0F));
    const std::vector<Bias> bias(n, Bias(0.0F));
    std::vector<Y> y(n * n);
    mp::ops::linear(mp::cpu{}, mp::row_major(x, n, n), mp::row_major(weights, n, n), bias,
                    mp::row_major(y, n, n));
    return static_cast<float>(y[3]) == 32.0F;
}

}  // namespace

int main() {
    using mp::bfloat16;
    using mp::half;
    const mp::autocast_region region(mp::precision::bf16);
    const bool all =
        layer_is_right<float, float, float, float>() && layer_is_right<half, half, half, half>() &&
        layer_is_right<bfloat16, bfloat16, bfloat16, bfloat16>() &&
        layer_is_right<bfloat16, float, float, bfloat16>() && layer_is_right<half, float, float, half>() &&
        layer_is_right<float, bfloat16, float, float>() && layer_is_right<float, half, float, float>() &&
        layer_is_right<bfloat16, bfloat16, float, float>();
    return all ? 0 : 1;
}
