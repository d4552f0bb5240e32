// SPDX-License-Identifier: MIT
// The convolution on a device: of floats the bits of the simulated GPU; products in tensor cores, whose sums
// differ from one architecture to the next, are compared by tests/device/cuda/gemm.cu, and here those of small
// integers.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/half.hpp>
#include <mp/nn/ops/convolution.hpp>
#include <mp/nn/ops/convolution/gpu.hpp>
#include <mp/simt.hpp>
#include <mp/workspace.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "device_results.hpp"

namespace {

using mp::half;
using mp::row_major;

constexpr std::ptrdiff_t batch = 5;
constexpr std::ptrdiff_t out_channels = 6;
constexpr mp::ops::conv2d_geometry geometry{.channels = 4,
                                            .height = 9,
                                            .width = 7,
                                            .kernel = {3, 2},
                                            .stride = {1, 2},
                                            .padding = {2, 3},
                                            .dilation = {2, 3},
                                            .groups = 2};

/// Numbers whose products add up exactly in every format and order.
template <class Value>
std::vector<Value> small_integers(std::ptrdiff_t size, int seed) {
    std::vector<Value> values(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<Value>(static_cast<float>((static_cast<int>(i) * 7 + seed) % 5 - 2));
    }
    return values;
}

template <class Value>
void check() {
    const std::ptrdiff_t image = geometry.image_size(), patch = geometry.patch_size();
    const std::ptrdiff_t output = out_channels * geometry.output_positions();
    const auto x = small_integers<Value>(batch * image, 1),
               w = small_integers<Value>(out_channels * patch, 2),
               dy = small_integers<Value>(batch * output, 3);
    const std::ptrdiff_t sizes[] = {batch * output, batch * image, out_channels * patch, out_channels};
    const auto size = static_cast<std::size_t>(sizes[0] + sizes[1] + sizes[2] + sizes[3]);
    const auto run = [&](const auto& exec, const Value* px, const Value* pw, const Value* pdy, Value* out) {
        const auto vx = row_major(px, batch, image), vw = row_major(pw, out_channels, patch);
        mp::ops::conv2d<mp::autocast::off>(exec, vx, vw,
                                           std::span(pw, static_cast<std::size_t>(out_channels)),
                                           row_major(out, batch, output), geometry);
        Value* const dx = out + sizes[0];
        Value* const dw = dx + sizes[1];
        std::span db(dw + sizes[2], static_cast<std::size_t>(out_channels));
        mp::ops::conv2d_backward<mp::autocast::off>(exec, vx, vw, row_major(pdy, batch, output),
                                                    row_major(dx, batch, image),
                                                    row_major(dw, out_channels, patch), db, geometry);
    };
    std::vector<Value> expected(size);
    mp::host_workspace on_host;
    run(mp::simulated_gpu<mp::arch::sm_80>{.workspace = &on_host}, x.data(), w.data(), dy.data(),
        expected.data());
    mp::unique_cuda_stream stream;
    mp::device_workspace on_device(stream.get());
    mp::cuda_stream exec = stream.get();
    exec.workspace = &on_device;
    const mp::device_buffer<Value> device_x(stream, x), device_w(stream, w), device_dy(stream, dy);
    mp::device_buffer<Value> out(size);
    run(exec, device_x.span().data(), device_w.span().data(), device_dy.span().data(), out.span().data());
    const std::vector<Value> found = out.to_host(stream);
    CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                      size * sizeof(Value)) == 0);
}

TEST_CASE("the convolution on a device gives the results of the simulated GPU") {
    check<float>();
    check<half>();
}

}  // namespace
