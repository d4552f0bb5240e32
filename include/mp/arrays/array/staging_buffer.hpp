// SPDX-License-Identifier: MIT
/// \file
/// Memory for casts: where the executor's kernels can read it, and copies of it that the host can read.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/workspace.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Elements for a dense copy of an array; uninitialised. From the executor's workspace, until the frame ends
/// that the dispatcher has opened; on a CPU without one from the heap.
template <class Element>
class staging_buffer {
public:
    staging_buffer() = default;
    explicit staging_buffer(std::size_t size)
        : own_(std::make_unique_for_overwrite<Element[]>(size)), elements_(own_.get()), size_(size) {}

    template <executor Executor>
    staging_buffer(const Executor& exec, std::size_t size) : size_(size) {
        if (mp::workspace* const from = workspace_of(exec); from != nullptr) {
            elements_ = from->template allocate<Element>(size);
        } else if constexpr (gpu_executor<Executor>) {
            throw_argument(
                "mp::autocast::call", "exec.workspace", "null",
                "must be a workspace of device memory, since an argument of the op is cast or added to");
        } else {
            own_ = std::make_unique_for_overwrite<Element[]>(size);
            elements_ = own_.get();
        }
    }

    Element* data() const { return elements_; }
    std::span<const Element> elements() const { return {elements_, size_}; }

private:
    std::unique_ptr<Element[]> own_;
    Element* elements_ = nullptr;
    std::size_t size_ = 0;
};

/// The values where the host can read them: themselves for a CPU, a copy in `room` for a GPU, whose stream is
/// waited for.
template <class Value>
std::span<const Value> readable_by_host(const cpu& /*exec*/, std::span<const Value> values,
                                        staging_buffer<Value>& /*room*/) {
    return values;
}
template <gpu_executor Executor, class Value>
std::span<const Value> readable_by_host(const Executor& exec, std::span<const Value> values,
                                        staging_buffer<Value>& room) {
    room = staging_buffer<Value>(values.size());
    executor_memory<Executor>::copy_to_host(exec, room.data(), values.data(), values.size_bytes());
    return room.elements();
}

/// Elements that outlive the call, for casts that are kept; null where there can be none.
template <class Element, class Executor>
std::shared_ptr<Element> allocate_kept(const Executor& exec, std::size_t size) {
    if constexpr (gpu_executor<Executor>) {
        return std::static_pointer_cast<Element>(
            executor_memory<Executor>::allocate(exec, size * sizeof(Element)));
    } else {
        std::shared_ptr<Element[]> elements = std::make_shared_for_overwrite<Element[]>(size);
        return {elements, elements.get()};
    }
}

/// Whether casts may be kept now, and kept ones used.
template <class Executor>
bool can_keep(const Executor& exec) {
    if constexpr (gpu_executor<Executor>) {
        return executor_memory<Executor>::can_keep(exec);
    } else {
        return true;
    }
}

/// What orders the kernels of an executor: casts that are kept are for its kernels alone.
template <class Executor>
const void* queue_of(const Executor& exec) {
    if constexpr (gpu_executor<Executor>) {
        return executor_memory<Executor>::queue(exec);
    } else {
        return nullptr;
    }
}

}}  // namespace mp::detail
