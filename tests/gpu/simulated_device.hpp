// SPDX-License-Identifier: MIT
// The simulated GPU as the checks of this folder see a device: memory to be filled and read back, and an
// executor. tests/cuda/real_device.hpp has the same for CUDA.
#pragma once

#include <mp/simt.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

namespace gpu_test {

template <class Value>
struct device_allocator {
    using value_type = Value;
    static constexpr std::align_val_t alignment{256};

    device_allocator() = default;
    template <class Other>
    device_allocator(const device_allocator<Other>&) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] Value* allocate(std::size_t count) {
        return static_cast<Value*>(::operator new(count * sizeof(Value), alignment));
    }
    void deallocate(Value* memory, std::size_t) { ::operator delete(memory, alignment); }

    friend bool operator==(const device_allocator&, const device_allocator&) { return true; }
};

class simulated_device {
public:
    explicit simulated_device(std::uint64_t seed = 0, mp::simt::access_statistics* statistics = nullptr)
        : exec_{.seed = seed, .statistics = statistics} {}

    /// Memory of the device. It begins at a multiple of 256 bytes, as cudaMalloc's, and ends where
    /// AddressSanitizer says.
    template <class Value>
    class array {
    public:
        explicit array(const std::vector<Value>& values) : values_(values.begin(), values.end()) {}
        [[nodiscard]] std::span<Value> span() { return values_; }
        [[nodiscard]] Value* data() { return values_.data(); }

    private:
        friend class simulated_device;
        std::vector<Value, device_allocator<Value>> values_;
    };

    [[nodiscard]] const mp::simulated_gpu<mp::arch::sm_80>& exec() const { return exec_; }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) {
        return array<Value>(values);
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) {
        return {from.values_.begin(), from.values_.end()};
    }

private:
    mp::simulated_gpu<mp::arch::sm_80> exec_;
};

}  // namespace gpu_test
