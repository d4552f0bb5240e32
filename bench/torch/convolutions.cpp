// SPDX-License-Identifier: MIT
// The convolutions that convolutions.py measures beside torch's, as functions of a shared library; float, square
// kernels. `numbers` are images, channels, height, width, outputs, kernel, padding, stride.
#include <mp/nn/ops/convolution.hpp>
#include <mp/thread_pool.hpp>
#include <mp/workspace.hpp>

#include <cstddef>

namespace {

mp::cpu executor(int threads) {
    static mp::host_workspace workspace;
    static mp::thread_pool pool;
    return {.threads = threads, .workspace = &workspace, .pool = threads > 1 ? &pool : nullptr};
}

struct layer {
    mp::ops::conv2d_geometry geometry;
    std::ptrdiff_t images, pixels, outputs, positions;

    explicit layer(const std::ptrdiff_t* n)
        : geometry{.channels = n[1],
                   .height = n[2],
                   .width = n[3],
                   .kernel = {n[5], n[5]},
                   .stride = {n[7], n[7]},
                   .padding = {n[6], n[6]}},
          images(n[0]),
          pixels(geometry.image_size()),
          outputs(n[4]),
          positions(geometry.output_positions()) {}

    template <class Value>
    auto x(Value* data) const {
        return mp::row_major(data, images, pixels);
    }
    template <class Value>
    auto w(Value* data) const {
        return mp::row_major(data, outputs, geometry.patch_size());
    }
    template <class Value>
    auto y(Value* data) const {
        return mp::row_major(data, images, outputs * positions);
    }
};

}  // namespace

extern "C" void mp_conv2d(int threads, const std::ptrdiff_t* numbers, const float* x, const float* w,
                          float* y) {
    const layer l(numbers);
    mp::ops::conv2d(executor(threads), l.x(x), l.w(w), mp::ops::absent, l.y(y), l.geometry);
}
extern "C" void mp_conv2d_dx(int threads, const std::ptrdiff_t* numbers, const float* x, const float* w,
                             const float* dy, float* dx) {
    const layer l(numbers);
    mp::ops::conv2d_backward(executor(threads), l.x(x), l.w(w), l.y(dy), l.x(dx), mp::ops::absent,
                             mp::ops::absent, l.geometry);
}
extern "C" void mp_conv2d_dw(int threads, const std::ptrdiff_t* numbers, const float* x, const float* w,
                             const float* dy, float* dw) {
    const layer l(numbers);
    mp::ops::conv2d_backward(executor(threads), l.x(x), l.w(w), l.y(dy), mp::ops::absent, l.w(dw),
                             mp::ops::absent, l.geometry);
}
