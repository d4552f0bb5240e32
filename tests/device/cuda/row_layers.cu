// SPDX-License-Identifier: MIT
// Layers that work on rows.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>
#include <mp/nn/ops/reductions/gpu.hpp>
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>
#include <mp/simt.hpp>
#include <mp/workspace.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "device_results.hpp"

namespace {

using device_test::check_op;
using device_test::random_values;
using mp::bfloat16;
using mp::half;
using mp::row_major;
using mp::ops::absent;

template <class X, class Y>
void check_rows(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const auto length = static_cast<std::size_t>(columns);
    const auto view = [=](auto* data) { return row_major(data, rows, columns); };
    CAPTURE(rows);
    CAPTURE(columns);
    check_op<X, Y>(size, size, 0, shift,
                   [=](auto exec, const X* x, const X*, Y* y) { mp::ops::softmax(exec, view(x), view(y)); });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X*, Y* y) {
        mp::ops::log_softmax(exec, view(x), view(y));
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* y, const X* dy, Y* dx) {
        mp::ops::softmax_backward(exec, view(y), view(dy), view(dx));
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* y, const X* dy, Y* dx) {
        mp::ops::log_softmax_backward(exec, view(y), view(dy), view(dx));
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X* g, Y* y) {
        const std::span gamma(g, length);
        mp::ops::layer_norm(exec, view(x), gamma, gamma, view(y));
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X*, Y* y) {
        mp::ops::rms_norm(exec, view(x), absent, view(y));
    });
    const std::size_t workspace = mp::ops::normalization_backward_workspace(rows, columns);
    check_op<X, Y>(size, size + 2 * length, workspace, shift,
                   [=](auto exec, const X* x, const X* dy, Y* out) {
                       const std::span gamma(x, length);
                       const std::span dgamma(out + size, length), dbeta(out + size + length, length);
                       mp::ops::layer_norm_backward(exec, view(x), gamma, view(dy), view(out), dgamma, dbeta);
                   });
    check_op<X, Y>(size, size + length, workspace, shift, [=](auto exec, const X* x, const X* dy, Y* out) {
        const std::span dgamma(out + size, length);
        mp::ops::rms_norm_backward(exec, view(x), absent, view(dy), view(out), dgamma);
    });
    check_op<X, Y>(size, length, mp::ops::sum_workspace(rows, columns, mp::ops::per::column), shift,
                   [=](auto exec, const X* x, const X*, Y* sums) {
                       mp::ops::sum(exec, view(x), std::span(sums, length), mp::ops::per::column);
                   });
    check_op<X, Y>(
        size, static_cast<std::size_t>(rows), 0, shift, [=](auto exec, const X* x, const X*, Y* sums) {
            mp::ops::sum(exec, view(x), std::span(sums, static_cast<std::size_t>(rows)), mp::ops::per::row);
        });
}

TEST_CASE("softmax, norms and sums on a device give the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_rows<half, half>(3, 33, shift);
        check_rows<half, half>(130, 512, shift);
        check_rows<bfloat16, float>(7, 1500, shift);
        check_rows<float, half>(2, 5000, shift);
    }
}

void check_cross_entropy(std::ptrdiff_t columns, const mp::ops::cross_entropy_options& options) {
    constexpr std::ptrdiff_t rows = 37;
    const auto size = static_cast<std::size_t>(rows * columns);
    std::vector<int> labels(rows);
    for (int r = 0; r < rows; ++r) labels[static_cast<std::size_t>(r)] = r * 7 % static_cast<int>(columns);
    labels[5] = -1;
    labels[9] = -100;
    const mp::ops::loss_factors factors{.scale = 256.0F};
    mp::unique_cuda_stream stream;
    const std::vector<half> logits = random_values<half>(size, 4);
    std::vector<half> expected(size);
    std::vector<float> losses(rows + 1);
    mp::host_workspace on_host;
    mp::ops::softmax_cross_entropy_with_gradient(mp::simulated_gpu<mp::arch::sm_80>{.workspace = &on_host},
                                                 row_major(logits.data(), rows, columns), labels,
                                                 &losses[rows], std::span(losses).first(rows),
                                                 row_major(expected.data(), rows, columns), factors, options);
    const mp::device_buffer<half> device_logits(stream, logits);
    const mp::device_buffer<int> device_labels(stream, labels);
    mp::device_buffer<half> gradients(size);
    mp::device_buffer<float> device_losses(rows + 1);
    mp::device_workspace on_device(stream.get());
    mp::cuda_stream exec = stream.get();
    exec.workspace = &on_device;
    mp::ops::softmax_cross_entropy_with_gradient(
        exec, row_major(device_logits.span().data(), rows, columns), device_labels.span(),
        device_losses.span().data() + rows, device_losses.span().first(rows),
        row_major(gradients.span().data(), rows, columns), factors, options);
    const std::vector<half> found = gradients.to_host(stream);
    const std::vector<float> found_losses = device_losses.to_host(stream);
    CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                      size * sizeof(half)) == 0);
    for (std::size_t r = 0; r <= rows; ++r) {
        const bool is_nan = (mp::detail::bit_cast<std::uint32_t>(losses[r]) & 0x7FFF'FFFFU) > 0x7F80'0000U;
        if (!is_nan) CHECK(found_losses[r] == losses[r]);
    }
}

TEST_CASE("cross entropy on a device gives the bits of the simulated GPU") {
    for (const std::ptrdiff_t columns : {10, 1000, 3000}) {
        check_cross_entropy(columns, {});
        check_cross_entropy(columns, {.ignore_index = -100, .label_smoothing = 0.1F});
    }
}

}  // namespace
