// SPDX-License-Identifier: MIT
#include "state.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace ptx::runtime {

namespace {

allocation* device_range(const void* at, std::size_t bytes) {
    return state().memory.find(reinterpret_cast<std::uint64_t>(at), bytes);
}

std::uint8_t* states_of(allocation& it, const void* at) {
    return it.states.get() + (reinterpret_cast<std::uint64_t>(at) - it.begin);
}

cudaError_t allocate(void** to, std::size_t bytes) {
    if (state().sticky != cudaSuccess) return state().sticky;
    *to = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (bytes > memory_bytes || state().memory.allocated() + bytes > memory_bytes)
        return report(cudaErrorMemoryAllocation);
    const std::uint64_t address = state().memory.allocate(bytes);
    if (address == 0) return report(cudaErrorMemoryAllocation);
    *to = reinterpret_cast<void*>(address);
    return cudaSuccess;
}

cudaError_t release(void* at) {
    if (at == nullptr || state().memory.free(reinterpret_cast<std::uint64_t>(at))) return state().sticky;
    return report(cudaErrorInvalidValue);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    if (state().sticky != cudaSuccess) return state().sticky;
    if (bytes == 0) return cudaSuccess;
    allocation* const target = device_range(to, bytes);
    allocation* const source = device_range(from, bytes);
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault &&
        (to_device != (target != nullptr) || from_device != (source != nullptr))) {
        return report(cudaErrorInvalidValue);
    }
    return enqueue(stream, [=] {
        // Looked up again: a graph is launched later.
        allocation* const writes = device_range(to, bytes);
        allocation* const reads = device_range(from, bytes);
        std::memmove(to, from, bytes);
        if (writes == nullptr) return;
        if (reads != nullptr)
            std::memmove(states_of(*writes, to), states_of(*reads, from), bytes);
        else
            std::memset(states_of(*writes, to), 1, bytes);
    });
}

cudaError_t set(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    if (state().sticky != cudaSuccess) return state().sticky;
    if (bytes == 0) return cudaSuccess;
    if (device_range(to, bytes) == nullptr) return report(cudaErrorInvalidValue);
    return enqueue(stream, [=] {
        std::memset(to, value, bytes);
        state().memory.mark_written(reinterpret_cast<std::uint64_t>(to), bytes);
    });
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

cudaError_t cudaMalloc(void** to, size_t bytes) {
    return allocate(to, bytes);
}
cudaError_t cudaMallocAsync(void** to, size_t bytes, cudaStream_t stream) {
    if (stream_of(stream).is_capturing) return report(cudaErrorStreamCaptureUnsupported);
    return allocate(to, bytes);
}
cudaError_t cudaFree(void* at) {
    return release(at);
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t) {
    return release(at);
}
cudaError_t cudaMallocHost(void** to, size_t bytes) {
    *to = ::operator new(bytes, std::nothrow);
    return *to == nullptr ? report(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaFreeHost(void* at) {
    ::operator delete(at);
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return copy(to, from, bytes, kind, nullptr);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(to, from, bytes, kind, stream);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    return set(to, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return set(to, value, bytes, stream);
}

}  // extern "C"
