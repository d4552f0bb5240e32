// SPDX-License-Identifier: MIT
// Losses of numbers, pooling, and the columns of the largest values.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/argmax/gpu.hpp>
#include <mp/nn/ops/losses/gpu.hpp>
#include <mp/nn/ops/pooling/gpu.hpp>
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

template <class X, class Y>
void check_pooling(const mp::ops::pool2d_geometry& g, std::ptrdiff_t batch, std::size_t shift) {
    const std::ptrdiff_t cells = g.channels * g.height * g.width;
    const std::ptrdiff_t pooled = g.channels * g.output_size().height * g.output_size().width;
    const auto size = static_cast<std::size_t>(batch * cells);
    const auto image = [=](auto* data) { return row_major(data, batch, cells); };
    const auto result = [=](auto* data) { return row_major(data, batch, pooled); };
    const auto over = mp::ops::average_over::pixels_inside;
    check_op<X, Y>(
        size, static_cast<std::size_t>(batch * pooled), 0, shift,
        [=](auto exec, const X* x, const X*, Y* y) { mp::ops::max_pool2d(exec, image(x), result(y), g); });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X* dy, Y* dx) {
        mp::ops::max_pool2d_backward(exec, image(x), result(dy), image(dx), g);
    });
    check_op<X, Y>(size, static_cast<std::size_t>(batch * pooled), 0, shift,
                   [=](auto exec, const X* x, const X*, Y* y) {
                       mp::ops::average_pool2d(exec, image(x), result(y), g, over);
                   });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X*, const X* dy, Y* dx) {
        mp::ops::average_pool2d_backward(exec, result(dy), image(dx), g, over);
    });
}

TEST_CASE("pooling on a device gives the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_pooling<half, half>({.channels = 3, .height = 33, .width = 31, .kernel = {2, 2}}, 5, shift);
        check_pooling<bfloat16, float>(
            {.channels = 2, .height = 14, .width = 14, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
            2, shift);
        check_pooling<float, float>({.height = 7, .width = 9, .kernel = {3, 4}, .stride = {1, 2}}, 1, shift);
    }
}

template <class X>
void check_argmax(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift) {
    const auto size = static_cast<std::size_t>(rows * columns);
    check_op<X, int>(size, static_cast<std::size_t>(rows), 0, shift,
                     [=](auto exec, const X* x, const X*, int* indices) {
                         mp::ops::argmax(exec, row_major(x, rows, columns),
                                         std::span(indices, static_cast<std::size_t>(rows)));
                     });
}

TEST_CASE("the columns of the largest values are those of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_argmax<half>(33, 130, shift);
        check_argmax<bfloat16>(5, 3000, shift);
        check_argmax<float>(130, 31, shift);
    }
}

}  // namespace
