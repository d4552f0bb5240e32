// SPDX-License-Identifier: MIT
/// \file
/// Arrays in the memory of an executor, for code that does not know which one.
#pragma once

#include <mp/executor.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Copies between the host and a device.
class memory_copies {
public:
    memory_copies() = default;
    memory_copies(const memory_copies&) = delete;
    memory_copies& operator=(const memory_copies&) = delete;
    virtual ~memory_copies() = default;

    /// Waits for the device.
    virtual void to_host(void* to, const void* from, std::size_t bytes) const = 0;
    /// Has read the host's memory when it returns.
    virtual void to_device(void* to, const void* from, std::size_t bytes) const = 0;
};

template <gpu_executor Executor>
class executor_copies final : public memory_copies {
public:
    explicit executor_copies(Executor exec) : exec_(exec) {}

    void to_host(void* to, const void* from, std::size_t bytes) const override {
        executor_memory<Executor>::copy_to_host(exec_, to, from, bytes);
    }
    void to_device(void* to, const void* from, std::size_t bytes) const override {
        executor_memory<Executor>::copy_to_device(exec_, to, from, bytes);
    }

private:
    Executor exec_;
};

/// An array there, for checkpoints. With columns it is a matrix of that many.
template <class Value>
struct device_range {
    std::span<Value> values;
    const memory_copies* copies;
    std::size_t columns = 0;
};

template <class Thing>
inline constexpr bool is_device_range = false;
template <class Value>
inline constexpr bool is_device_range<device_range<Value>> = true;

}}  // namespace mp::detail
