// SPDX-License-Identifier: MIT
// Losses of numbers.
#include <mp/cuda.hpp>
#include <mp/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops/losses/gpu.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>

#include "device_results.hpp"

namespace {

using device_test::check_op;
using mp::bfloat16;
using mp::half;
using mp::row_major;

template <class X>
void check_losses(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const auto view = [=](auto* data) { return row_major(data, rows, columns); };
    const std::size_t workspace = mp::ops::regression_loss_workspace(rows, columns);
    check_op<X, float>(size, 2, workspace, shift, [=](auto exec, const X* x, const X* t, float* loss) {
        mp::ops::mean_squared_error(exec, view(x), view(t), loss, {.weight = 0.3F});
        mp::ops::mean_absolute_error(exec, view(x), view(t), loss + 1);
    });
    check_op<X, X>(size, size, 0, shift, [=](auto exec, const X* x, const X* t, X* dx) {
        mp::ops::mean_squared_error_backward(exec, view(x), view(t), view(dx), {.scale = 1024.0F});
    });
    check_op<X, X>(size, size, 0, shift, [=](auto exec, const X* x, const X* t, X* dx) {
        mp::ops::mean_absolute_error_backward(exec, view(x), view(t), view(dx), {.scale = 1024.0F});
    });
}

TEST_CASE("losses of numbers on a device give the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_losses<half>(33, 130, shift);
        check_losses<bfloat16>(1000, 1, shift);
        check_losses<float>(1, 20000, shift);
    }
}

}  // namespace
