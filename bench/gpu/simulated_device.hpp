// SPDX-License-Identifier: MIT
/// \file
/// The simulated GPU as the benchmarks of this folder see a device. What it measures is the time of the
/// simulation: a rehearsal, which shows that the benchmarks run and that what they measure is right.
#pragma once

#include <mp/gpu.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace bench::gpu {

/// Work that is run as often as it is asked for.
struct recorded_work {
    std::function<void()> enqueue;
    int times;
};

template <class Value>
struct device_allocator {
    using value_type = Value;
    static constexpr std::align_val_t alignment{256};  // as cudaMalloc's

    device_allocator() = default;
    template <class Other>
    device_allocator(const device_allocator<Other>&) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] Value* allocate(std::size_t count) {
        return static_cast<Value*>(::operator new(count * sizeof(Value), alignment));
    }
    void deallocate(Value* memory, std::size_t) { ::operator delete(memory, alignment); }

    friend bool operator==(const device_allocator&, const device_allocator&) { return true; }
};

class device {
public:
    static constexpr bool is_simulated = true;
    static constexpr const char* build = "simulated";

    template <class Value>
    class array {
    public:
        explicit array(std::size_t size) : values_(size) {}
        explicit array(const std::vector<Value>& values) : values_(values.begin(), values.end()) {}
        [[nodiscard]] Value* data() { return values_.data(); }
        [[nodiscard]] const Value* data() const { return values_.data(); }
        [[nodiscard]] std::size_t size() const { return values_.size(); }
        [[nodiscard]] std::span<Value> span() { return values_; }
        [[nodiscard]] std::span<const Value> span() const { return values_; }

    private:
        friend class device;
        std::vector<Value, device_allocator<Value>> values_;
    };

    [[nodiscard]] const mp::simulated_gpu<mp::arch::sm_90>& exec() const { return exec_; }
    /// Kernels follow each other here.
    [[nodiscard]] auto overlapping_exec() const { return exec(); }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) const {
        return array<Value>(values);
    }
    template <class Value>
    [[nodiscard]] array<Value> make(std::size_t size) const {
        return array<Value>(size);
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) const {
        return {from.values_.begin(), from.values_.end()};
    }

    void copy(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
    void wait() const {}

    [[nodiscard]] recorded_work record(const std::function<void()>& enqueue, int times) const {
        return {enqueue, times};
    }
    [[nodiscard]] double seconds(const recorded_work& work) const {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < work.times; ++i) work.enqueue();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    [[nodiscard]] int capability() const { return 90; }

    [[nodiscard]] std::string description() const {
        return "simulated GPU of capability 9.0: times are those of the simulation";
    }

private:
    mp::simulated_gpu<mp::arch::sm_90> exec_{.seed = 1};
};

}  // namespace bench::gpu
