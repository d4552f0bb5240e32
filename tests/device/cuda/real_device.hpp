// SPDX-License-Identifier: MIT
// A CUDA device as the checks of tests/device/gpu see it; tests/device/gpu/simulated_device.hpp has the same for the host.
#pragma once

#include <mp/cuda.hpp>

#include <vector>

namespace gpu_test {

class real_device {
public:
    template <class Value>
    using array = mp::device_buffer<Value>;

    [[nodiscard]] mp::cuda_stream exec() const { return stream_; }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) {
        return array<Value>(stream_, values);
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) {
        return from.to_host(stream_);
    }

private:
    mp::unique_cuda_stream stream_;
};

}  // namespace gpu_test
