// SPDX-License-Identifier: MIT
/// \file
/// Workspaces in the memory of CUDA devices, and what code that knows no toolkit does with a stream.
#pragma once

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/executor.hpp>
#include <mp/workspace.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether work on the stream is recorded into a graph, where allocating is not allowed. Also where CUDA
/// cannot tell.
inline bool is_capturing(cudaStream_t stream) noexcept {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) != cudaSuccess || status != cudaStreamCaptureStatusNone;
}

template <>
struct executor_memory<cuda_stream> {
    static void copy_to_host(const cuda_stream& exec, void* to, const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, exec.stream), "cudaMemcpyAsync");
        check_cuda(cudaStreamSynchronize(exec.stream), "cudaStreamSynchronize");
    }
    static void copy_to_device(const cuda_stream& exec, void* to, const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, exec.stream), "cudaMemcpyAsync");
    }
    static void clear(const cuda_stream& exec, void* to, std::size_t bytes) {
        if (bytes == 0) return;
        check_cuda(cudaMemsetAsync(to, 0, bytes, exec.stream), "cudaMemsetAsync");
    }
    /// Freed in the order of the stream, behind the kernels that read it.
    static std::shared_ptr<void> allocate(const cuda_stream& exec, std::size_t bytes) {
        void* memory = nullptr;
        if (cudaMallocAsync(&memory, bytes == 0 ? 1 : bytes, exec.stream) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());
            return nullptr;
        }
        return {memory, [stream = exec.stream](void* it) { static_cast<void>(cudaFreeAsync(it, stream)); }};
    }
    static bool can_keep(const cuda_stream& exec) { return !is_capturing(exec.stream); }
    static const void* queue(const cuda_stream& exec) { return exec.stream; }

    using mark = cuda_event;
    static std::shared_ptr<void> allocate_pinned(const cuda_stream& /*exec*/, std::size_t bytes) {
        void* memory = nullptr;
        if (cudaMallocHost(&memory, bytes == 0 ? 1 : bytes) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());
            return nullptr;
        }
        return {memory, [](void* it) { static_cast<void>(cudaFreeHost(it)); }};
    }
    static void copy_pinned(const cuda_stream& exec, void* to, const void* from, std::size_t bytes) {
        copy_to_device(exec, to, from, bytes);
    }
    static void record(const cuda_stream& exec, mark& at) { at.record(exec); }
    static void wait(const mark& at) { at.synchronize(); }
};

template <>
struct executor_memory<unique_cuda_stream> : executor_memory<cuda_stream> {};

}}  // namespace mp::detail

namespace mp {

/// A workspace of device memory that grows: it allocates in the order of the stream, and nothing any more
/// once a step has passed. While a graph is captured it cannot grow: run the step once before, or give its
/// high_water() as `bytes`. The stream must outlive it.
///
///     mp::unique_cuda_stream stream;
///     mp::device_workspace workspace(stream);
///     stream.workspace = &workspace;
///     mp::ops::layer_norm_backward(stream, x, gamma, dy, dx, dgamma, dbeta);
class device_workspace final : public workspace {
public:
    /// Holds `bytes` from the start; argument_error where the device has not that much.
    explicit device_workspace(cuda_stream exec, std::size_t bytes = 0) : stream_(exec.stream) {
        reserve(bytes);
    }
    ~device_workspace() override { release_all(); }

private:
    std::byte* grow(std::size_t bytes) noexcept override {
        void* memory = nullptr;
        if (detail::is_capturing(stream_)) return nullptr;
        if (cudaMallocAsync(&memory, bytes, stream_) != cudaSuccess) {
            static_cast<void>(cudaGetLastError());  // the caller is told
            return nullptr;
        }
        return static_cast<std::byte*>(memory);
    }
    void release(std::byte* memory, std::size_t /*bytes*/) noexcept override {
        static_cast<void>(cudaFreeAsync(memory, stream_));
    }

    cudaStream_t stream_;
};

}  // namespace mp
