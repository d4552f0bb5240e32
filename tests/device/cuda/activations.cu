// SPDX-License-Identifier: MIT
// Functions of single elements.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/activations.hpp>
#include <mp/nn/ops/gpu_casts.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>

#include "device_results.hpp"

namespace {

using device_test::check_op;
using mp::bfloat16;
using mp::half;
using mp::row_major;

template <class X, class Y>
void check_activations(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const auto view = [=](auto* data) { return row_major(data, rows, columns); };
    const auto check = [&](auto forward, auto backward) {
        check_op<X, Y>(size, size, 0, shift,
                       [=](auto exec, const X* x, const X*, Y* y) { forward(exec, view(x), view(y)); });
        check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X* dy, Y* dx) {
            backward(exec, view(x), view(dy), view(dx));
        });
    };
    check([](auto exec, auto x, auto y) { mp::ops::relu(exec, x, y); },
          [](auto exec, auto x, auto dy, auto dx) { mp::ops::relu_backward(exec, x, dy, dx); });
    check([](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y); },
          [](auto exec, auto x, auto dy, auto dx) { mp::ops::gelu_backward(exec, x, dy, dx); });
    constexpr auto tanh = mp::ops::gelu_formula::tanh;
    check([=](auto exec, auto x, auto y) { mp::ops::gelu(exec, x, y, tanh); },
          [=](auto exec, auto x, auto dy, auto dx) { mp::ops::gelu_backward(exec, x, dy, dx, tanh); });
    check([](auto exec, auto x, auto y) { mp::ops::silu(exec, x, y); },
          [](auto exec, auto x, auto dy, auto dx) { mp::ops::silu_backward(exec, x, dy, dx); });
    check([](auto exec, auto x, auto y) { mp::ops::tanh(exec, x, y); },
          [](auto exec, auto x, auto dy, auto dx) { mp::ops::tanh_backward(exec, x, dy, dx); });
    check([](auto exec, auto x, auto y) { mp::ops::sigmoid(exec, x, y); },
          [](auto exec, auto x, auto dy, auto dx) { mp::ops::sigmoid_backward(exec, x, dy, dx); });
}

TEST_CASE("activations on a device give the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_activations<half, half>(7, 100, shift);
        check_activations<bfloat16, bfloat16>(1, 30000, shift);
        check_activations<float, float>(33, 257, shift);
    }
}

}  // namespace
