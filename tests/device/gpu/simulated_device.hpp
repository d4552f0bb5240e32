// SPDX-License-Identifier: MIT
// The simulated GPU as the checks of this folder see a device: memory to be filled and read back, and an
// executor. tests/device/cuda/real_device.hpp has the same for CUDA.
#pragma once

#include <mp/simt.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>
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
        : exec_{.seed = seed, .statistics = statistics, .checker = checker_.get()} {}

    /// Memory of the device. It begins at a multiple of 256 bytes, as cudaMalloc's; kernels may touch arrays
    /// alone.
    template <class Value>
    class array {
    public:
        array(const std::vector<Value>& values, std::shared_ptr<mp::simt::memory_checker> checker)
            : values_(values.begin(), values.end()), checker_(std::move(checker)) {
            checker_->add(span(), "an array of the test");
        }
        array(const array&) = delete;
        array& operator=(const array&) = delete;
        array(array&&) noexcept = default;
        array& operator=(array&& other) noexcept {
            values_.swap(other.values_);
            checker_.swap(other.checker_);
            return *this;
        }
        ~array() {
            if (checker_ != nullptr) checker_->remove(values_.data());
        }
        [[nodiscard]] std::span<Value> span() { return values_; }
        [[nodiscard]] Value* data() { return values_.data(); }

    private:
        friend class simulated_device;
        std::vector<Value, device_allocator<Value>> values_;
        std::shared_ptr<mp::simt::memory_checker> checker_;
    };

    [[nodiscard]] const mp::simulated_gpu<mp::arch::sm_80>& exec() const { return exec_; }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) {
        return array<Value>(values, checker_);
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) {
        return {from.values_.begin(), from.values_.end()};
    }

private:
    std::shared_ptr<mp::simt::memory_checker> checker_ = std::make_shared<mp::simt::memory_checker>();
    mp::simulated_gpu<mp::arch::sm_80> exec_;
};

}  // namespace gpu_test
