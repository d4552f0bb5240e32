// SPDX-License-Identifier: MIT
/// \file
/// An array in the memory of a CUDA device.
#pragma once

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp {

/// Owns `size` elements on the device that is current when it is made. Movable, not copyable. The elements
/// are uninitialised until something is copied in; the host can copy them, but not look at them.
///
///     mp::device_buffer<mp::half> weights(stream, host_weights);
///     mp::unscale_and_check(stream, gradients.span(), unscaled.span(), ...);
///     std::vector<mp::half> back = weights.to_host(stream);
template <class Value>
class device_buffer {
    static_assert(std::is_trivially_copyable_v<Value> && !std::is_const_v<Value>,
                  "mp::device_buffer holds types that can be copied byte by byte");

public:
    using value_type = Value;

    /// No elements and no memory.
    device_buffer() = default;

    /// Uninitialised elements. Throws cuda_error, or argument_error when the size cannot be addressed.
    explicit device_buffer(std::size_t size) : size_(size) {
        if (size > (std::numeric_limits<std::size_t>::max)() / sizeof(Value)) {
            detail::throw_argument("mp::device_buffer", "size", size, "must be small enough to be addressed");
        }
        if (size == 0) return;
        void* memory = nullptr;
        check_cuda(cudaMalloc(&memory, size * sizeof(Value)), "cudaMalloc");
        data_ = static_cast<Value*>(memory);
    }

    /// Copies of the host's elements, as copy_from.
    device_buffer(cuda_stream exec, std::span<const Value> values) : device_buffer(values.size()) {
        copy_from(exec, values);
    }

    device_buffer(device_buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    device_buffer& operator=(device_buffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    /// Waits for the device, as cudaFree does.
    ~device_buffer() {
        if (data_ != nullptr) static_cast<void>(cudaFree(data_));
    }

    /// Device pointer to the first element; null without elements.
    [[nodiscard]] Value* data() noexcept { return data_; }
    [[nodiscard]] const Value* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// The elements as the bulk algorithms take them.
    [[nodiscard]] std::span<Value> span() noexcept { return {data_, size_}; }
    [[nodiscard]] std::span<const Value> span() const noexcept { return {data_, size_}; }

    /// Enqueues a copy of the host's elements into this buffer. From ordinary (pageable) memory the elements
    /// have been read when this returns; memory from cudaMallocHost must stay as it is until the stream has
    /// passed. Throws argument_error when the sizes differ, and cuda_error.
    void copy_from(cuda_stream exec, std::span<const Value> values) {
        check_size("mp::device_buffer::copy_from", values.size());
        if (empty()) return;
        check_cuda(
            cudaMemcpyAsync(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, exec.stream),
            "cudaMemcpyAsync");
    }

    /// Enqueues a copy of the elements into host memory, which may be read once the stream has been waited
    /// for. Throws argument_error when the sizes differ, and cuda_error.
    void copy_to(cuda_stream exec, std::span<Value> values) const {
        check_size("mp::device_buffer::copy_to", values.size());
        if (empty()) return;
        check_cuda(
            cudaMemcpyAsync(values.data(), data_, values.size_bytes(), cudaMemcpyDeviceToHost, exec.stream),
            "cudaMemcpyAsync");
    }

    /// The elements on the host; waits for the stream.
    [[nodiscard]] std::vector<Value> to_host(cuda_stream exec) const {
        std::vector<Value> values(size_);
        copy_to(exec, values);
        synchronize(exec);
        return values;
    }

    /// Enqueues setting every byte to `byte`: 0 makes zeros, 0xFF makes NaNs.
    void fill_bytes(cuda_stream exec, unsigned char byte) {
        if (empty()) return;
        check_cuda(cudaMemsetAsync(data_, byte, size_ * sizeof(Value), exec.stream), "cudaMemsetAsync");
    }

private:
    void check_size(std::string_view function, std::size_t size) const {
        if (size == size_) return;
        detail::throw_argument(function, "values.size()", size,
                               "must equal the size of the buffer, which is " + detail::error_text(size_));
    }

    Value* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace mp
