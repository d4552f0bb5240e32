// SPDX-License-Identifier: MIT
// What a kernel writes on a device, compared with what it writes on the simulated GPU; tests/device/gpu compares
// that with the CPU and with exact arithmetic.
#pragma once

#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace device_test {

template <class Value>
std::vector<Value> random_values(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Value> values(size);
    for (Value& value : values)
        value = static_cast<Value>(static_cast<float>(random() >> 8) * 0x1p-21F - 4.0F);
    return values;
}

/// Calls op(exec, x, z, out) with pointers to two arrays of inputs and one of results, on the simulated GPU
/// and on the device, with a workspace of `workspace` bytes, and compares the results. x and z begin `shift`
/// elements behind a multiple of 16 bytes.
template <class X, class Out, class Op>
void check_op(std::size_t in_size, std::size_t out_size, std::size_t workspace, std::size_t shift, Op op) {
    const std::vector<X> x = random_values<X>(in_size + shift, 1), z = random_values<X>(in_size + shift, 2);
    // What an op leaves alone has to stay as it was.
    std::vector<Out> expected(out_size);
    std::memset(static_cast<void*>(expected.data()), 0xFF, out_size * sizeof(Out));
    const std::vector<Out> before = expected;
    mp::host_workspace host_room(workspace);
    op(mp::simulated_gpu<mp::arch::sm_80>{.workspace = &host_room}, x.data() + shift, z.data() + shift,
       expected.data());
    mp::unique_cuda_stream stream;
    const mp::device_buffer<X> device_x(stream, x), device_z(stream, z);
    mp::device_buffer<Out> out(stream, before);
    mp::device_workspace device_room(stream, workspace);
    stream.workspace = &device_room;
    op(stream.get(), device_x.span().data() + shift, device_z.span().data() + shift, out.span().data());
    const std::vector<Out> found = out.to_host(stream);
    CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                      out_size * sizeof(Out)) == 0);
}

}  // namespace device_test
