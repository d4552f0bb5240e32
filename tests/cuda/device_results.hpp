// SPDX-License-Identifier: MIT
// What a kernel writes on a device, compared with what it writes on the simulated GPU; tests/gpu compares
// that with the CPU and with exact arithmetic.
#pragma once

#include <mp/cuda.hpp>
#include <mp/cuda/launch_kernel.hpp>

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

/// Memory of the host that begins at a multiple of 16 bytes.
struct host_workspace {
    struct alignas(16) quad {
        float values[4];
    };
    std::vector<quad> memory;
    std::span<float> view;
    explicit host_workspace(std::size_t floats)
        : memory(floats / 4 + 1), view(memory.data()->values, floats) {}
};

/// Calls op(exec, x, z, out, workspace) with pointers to two arrays of inputs, one of results and a
/// workspace, on the simulated GPU and on the device, and compares the results. x and z begin `shift`
/// elements behind a multiple of 16 bytes.
template <class X, class Out, class Op>
void check_op(std::size_t in_size, std::size_t out_size, std::size_t floats, std::size_t shift, Op op) {
    const std::vector<X> x = random_values<X>(in_size + shift, 1), z = random_values<X>(in_size + shift, 2);
    std::vector<Out> expected(out_size);
    host_workspace room(floats);
    op(mp::simulated_gpu<mp::arch::sm_80>{}, x.data() + shift, z.data() + shift, expected.data(), room.view);
    mp::unique_cuda_stream stream;
    const mp::device_buffer<X> device_x(stream, x), device_z(stream, z);
    mp::device_buffer<Out> out(out_size);
    mp::device_buffer<float> device_room(floats + 1);
    op(stream.get(), device_x.span().data() + shift, device_z.span().data() + shift, out.span().data(),
       device_room.span().first(floats));
    const std::vector<Out> found = out.to_host(stream);
    CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                      out_size * sizeof(Out)) == 0);
}

}  // namespace device_test
