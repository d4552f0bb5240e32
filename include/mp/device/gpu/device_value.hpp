// SPDX-License-Identifier: MIT
/// \file
/// A few values in the memory of a GPU executor that code without a toolkit owns.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>

#include <cstddef>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The executor itself, or the one that an owner of a stream stands for.
template <gpu_executor Executor>
auto executor_handle(const Executor& exec) {
    if constexpr (requires { exec.get(); }) {
        return exec.get();
    } else {
        return exec;
    }
}
template <class Executor>
using executor_handle_t = decltype(executor_handle(std::declval<const Executor&>()));

/// Owns `count` Values in device memory, uninitialised.
template <gpu_executor Executor, class Value>
class device_values {
    static_assert(std::is_trivially_copyable_v<Value>);

public:
    device_values(std::string_view owner, const Executor& exec, std::size_t count)
        : memory_(std::static_pointer_cast<Value>(
              executor_memory<Executor>::allocate(exec, (count == 0 ? 1 : count) * sizeof(Value)))) {
        if (memory_ == nullptr) {
            throw_argument(owner, "bytes of device memory", count * sizeof(Value), "must be available");
        }
    }
    device_values(std::string_view owner, const Executor& exec, const Value& value)
        : device_values(owner, exec, std::size_t{1}) {
        write(exec, value);
    }

    [[nodiscard]] Value* data() const { return memory_.get(); }
    /// Enqueued; the value has been read when this returns.
    void write(const Executor& exec, const Value& value) {
        executor_memory<Executor>::copy_to_device(exec, memory_.get(), &value, sizeof value);
    }
    /// The first value; waits for the executor.
    [[nodiscard]] Value read(const Executor& exec) const {
        Value value;
        executor_memory<Executor>::copy_to_host(exec, &value, memory_.get(), sizeof value);
        return value;
    }

private:
    std::shared_ptr<Value> memory_;
};

}}  // namespace mp::detail
