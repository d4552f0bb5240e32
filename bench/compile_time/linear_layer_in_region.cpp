// SPDX-License-Identifier: MIT
// A linear layer in a region, forward and backward, with weights of float and of bfloat16.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/ops.hpp>

#include <vector>

namespace {

template <class Value>
struct layer {
    static constexpr int n = 32;
    std::vector<Value> weights = std::vector<Value>(n * n, Value(1.0F));
    std::vector<Value> bias = std::vector<Value>(n, Value(0.0F));
    std::vector<float> weight_gradient = std::vector<float>(n * n);
    std::vector<float> bias_gradient = std::vector<float>(n);

    void forward(const std::vector<Value>& x, std::vector<Value>& y) const {
        mp::ops::linear(mp::cpu{}, mp::row_major(x, n, n), mp::row_major(weights, n, n), bias,
                        mp::row_major(y, n, n));
    }
    void backward(const std::vector<Value>& x, const std::vector<Value>& dy, std::vector<Value>& dx) {
        mp::ops::linear_backward(mp::cpu{}, mp::row_major(x, n, n), mp::row_major(weights, n, n),
                                 mp::row_major(dy, n, n), mp::row_major(dx, n, n),
                                 mp::row_major(weight_gradient, n, n), bias_gradient);
    }
};

template <class Value>
bool layer_is_right() {
    layer<Value> linear;
    const std::vector<Value> x(layer<Value>::n * layer<Value>::n, Value(1.0F));
    std::vector<Value> y(x.size());
    std::vector<Value> dx(x.size());
    linear.forward(x, y);
    linear.backward(x, x, dx);
    return static_cast<float>(y[3]) == 32.0F && static_cast<float>(dx[3]) == 32.0F &&
           linear.bias_gradient[3] == 32.0F;
}

}  // namespace

int main() {
    const mp::autocast_region region(mp::precision::bf16);
    return layer_is_right<float>() && layer_is_right<mp::bfloat16>() ? 0 : 1;
}
