// SPDX-License-Identifier: MIT
#include "pinned.hpp"
#include "state.hpp"

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace ptx::runtime { namespace {

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

/// Where a copy begins or ends: in device memory, or else in the host's.
struct copied_bytes {
    allocation* in;
    std::size_t offset = 0;
    copied_bytes(const void* at, std::size_t bytes) : in(device_range(at, bytes)) {
        if (in != nullptr) offset = reinterpret_cast<std::uint64_t>(at) - in->begin;
    }
};

void copy_now(CUstream_st& stream, std::string_view name, void* to, const void* from, std::size_t bytes) {
    const copied_bytes target(to, bytes), source(from, bytes);
    if (source.in == nullptr) show_pinned(from, bytes);
    std::uint32_t& clock = state().memory.clock;
    state().order->run(stream, name, nullptr, clock, [&](const stream_position& where) {
        ++clock;
        if (source.in != nullptr)
            note_copy(*source.in, source.offset, bytes, access::read, name, where, clock);
        if (target.in != nullptr)
            note_copy(*target.in, target.offset, bytes, access::write, name, where, clock);
    });
    std::memmove(to, from, bytes);
    if (source.in == nullptr && is_pinned(from)) read_pinned(stream, name, from, bytes);
    if (target.in == nullptr) {
        if (is_pinned(to)) write_pinned(stream, to, bytes);
    } else if (source.in != nullptr) {
        std::memmove(states_of(*target.in, to), states_of(*source.in, from), bytes);
    } else {
        std::memset(states_of(*target.in, to), 1, bytes);
    }
}

/// What the host has waited for when a copy returns, as CUDA's documentation says of each kind of memory.
void wait_for_copy(CUstream_st& stream, const progress& before, const void* to, const void* from,
                   std::size_t bytes, bool asynchronous) {
    const bool to_host = device_range(to, bytes) == nullptr, from_host = device_range(from, bytes) == nullptr;
    if (to_host && (!asynchronous || !is_pinned(to))) {
        state().order->host_waits_for(stream.knows);
    } else if (from_host && !asynchronous) {
        // From pageable memory the copy itself may still go on when the host does.
        state().order->host_waits_for(is_pinned(from) ? stream.knows : before);
    }
}

cudaError_t copy(std::string_view name, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream, bool asynchronous) {
    if (state().sticky != cudaSuccess) return state().sticky;
    if (bytes == 0) return cudaSuccess;
    const bool target = device_range(to, bytes) != nullptr, source = device_range(from, bytes) != nullptr;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind != cudaMemcpyDefault && (to_device != target || from_device != source)) {
        return report(cudaErrorInvalidValue);
    }
    CUstream_st& in = stream_of(stream);
    state().order->prepare(in);
    const progress before = in.knows;
    const cudaError_t status = enqueue(stream, [=](CUstream_st& it) {
        // Looked up again: a graph is launched later.
        if ((device_range(to, bytes) != nullptr) != target ||
            (device_range(from, bytes) != nullptr) != source)
            throw failure(std::string(name) + ": memory of the device has been freed");
        copy_now(it, name, to, from, bytes);
    });
    if (!in.is_capturing()) wait_for_copy(in, before, to, from, bytes, asynchronous);
    return status;
}

cudaError_t set(std::string_view name, void* to, int value, std::size_t bytes, cudaStream_t stream) {
    if (state().sticky != cudaSuccess) return state().sticky;
    if (bytes == 0) return cudaSuccess;
    if (device_range(to, bytes) == nullptr) return report(cudaErrorInvalidValue);
    return enqueue(stream, [=](CUstream_st& in) {
        const copied_bytes target(to, bytes);
        if (target.in == nullptr) throw failure(std::string(name) + ": memory of the device has been freed");
        std::uint32_t& clock = state().memory.clock;
        state().order->run(in, name, nullptr, clock, [&](const stream_position& where) {
            note_copy(*target.in, target.offset, bytes, access::write, name, where, ++clock);
        });
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
    CUstream_st& in = stream_of(stream);
    if (in.is_capturing()) return report(cudaErrorStreamCaptureUnsupported);
    const cudaError_t status = allocate(to, bytes);
    if (status != cudaSuccess || *to == nullptr) return status;
    run_work(
        [=, made = *to](CUstream_st& it) {
            std::uint32_t& clock = state().memory.clock;
            state().order->run(it, "cudaMallocAsync", nullptr, clock, [&](const ptx::stream_position&) {
                ptx::note_allocation(*device_range(made, bytes), ++clock);
            });
        },
        in);
    return status;
}
cudaError_t cudaFree(void* at) {
    return release(at);
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t stream) {
    if (stream != nullptr && !state().order->is_open(stream)) return report(cudaErrorInvalidResourceHandle);
    if (const ptx::allocation* const it = device_range(at, 1);
        it != nullptr && !stream_of(stream).is_capturing()) {
        run_work(
            [=](CUstream_st& in) {
                std::uint32_t& clock = state().memory.clock;
                state().order->run(in, "cudaFreeAsync", nullptr, clock,
                                   [&](const ptx::stream_position& where) {
                                       ++clock;
                                       ptx::check_release(*it, "cudaFreeAsync", where);
                                   });
            },
            stream_of(stream));
    }
    return release(at);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return copy("cudaMemcpy", to, from, bytes, kind, nullptr, false);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy("cudaMemcpyAsync", to, from, bytes, kind, stream, true);
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    return set("cudaMemset", to, value, bytes, nullptr);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
    return set("cudaMemsetAsync", to, value, bytes, stream);
}

}  // extern "C"
