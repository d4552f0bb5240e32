// SPDX-License-Identifier: MIT
/// \file
/// The executor for CUDA devices, and owners of streams and events.
#pragma once

#include <mp/device/cuda/error.hpp>
#include <mp/executor.hpp>

#include <cuda_runtime_api.h>

#include <type_traits>
#include <utility>

namespace mp {

/// Runs on a CUDA device, in the order of a stream. A bulk algorithm with this executor only enqueues its
/// kernels: it returns before they have run, allocates nothing, waits for nothing, and can be captured into a
/// graph. All pointers that it is given are to memory that the device can reach and must stay valid until the
/// stream has passed. The stream belongs to the device that is current in the calling thread.
///
///     mp::gemm(mp::cuda_stream{stream}, 1.0f, a, b, 0.0f, c);
///
/// Ops that cast their arguments, or add up in parts, take device memory from the executor's workspace:
///
///     mp::device_workspace workspace(stream);
///     const mp::cuda_stream exec{stream, &workspace};
///     mp::autocast_region region(mp::precision::bf16);
///     mp::ops::linear(exec, x, w, b, y);
struct cuda_stream {
    cudaStream_t stream = nullptr;       ///< null is the default stream
    mp::workspace* workspace = nullptr;  ///< device memory for what ops need while they run
    /// From sm_90 on: kernels are launched before the one before them on the stream has ended (programmatic dependent
    /// launch). They wait for its end before they touch memory, so that results are the same; what they do before, and
    /// the launch itself, is hidden behind it. Kernels that others enqueue on the stream are not concerned.
    bool programmatic_launch = false;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct is_gpu_executor<cuda_stream> : std::true_type {};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Waits until everything enqueued on the stream so far is done, and throws cuda_error if any of it failed.
inline void synchronize(cuda_stream exec) {
    check_cuda(cudaStreamSynchronize(exec.stream), "cudaStreamSynchronize");
}

}}  // namespace mp

namespace mp {

/// Owns a stream that does not synchronise with the default stream. Movable, not copyable; destroying it lets
/// the work that is enqueued finish.
class unique_cuda_stream {
public:
    /// Throws cuda_error.
    unique_cuda_stream() {
        check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    }
    unique_cuda_stream(unique_cuda_stream&& other) noexcept
        : workspace(std::exchange(other.workspace, nullptr)),
          programmatic_launch(other.programmatic_launch),
          stream_(std::exchange(other.stream_, nullptr)) {}
    unique_cuda_stream& operator=(unique_cuda_stream&& other) noexcept {
        std::swap(workspace, other.workspace);
        std::swap(programmatic_launch, other.programmatic_launch);
        std::swap(stream_, other.stream_);
        return *this;
    }
    ~unique_cuda_stream() {
        if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
    }

    /// The executor of this stream.
    [[nodiscard]] cuda_stream get() const noexcept { return {stream_, workspace, programmatic_launch}; }
    operator cuda_stream() const noexcept { return get(); }  // NOLINT(google-explicit-constructor)

    /// Device memory for what ops on this stream need while they run.
    mp::workspace* workspace = nullptr;
    /// See cuda_stream.
    bool programmatic_launch = false;

private:
    cudaStream_t stream_ = nullptr;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An owner stands for its stream.
template <>
struct is_gpu_executor<unique_cuda_stream> : std::true_type {};

}}  // namespace mp::detail

namespace mp {

/// Owns an event: a mark in a stream that can be waited for and whose time is taken. Movable, not copyable.
class cuda_event {
public:
    /// Throws cuda_error.
    cuda_event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
    cuda_event(cuda_event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    cuda_event& operator=(cuda_event&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }
    ~cuda_event() {
        if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
    }

    [[nodiscard]] cudaEvent_t get() const noexcept { return event_; }

    /// Puts the mark behind everything that is enqueued so far.
    void record(cuda_stream exec) { check_cuda(cudaEventRecord(event_, exec.stream), "cudaEventRecord"); }

    /// Blocks the calling thread until the device has passed the mark.
    void synchronize() const { check_cuda(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

    /// Lets what is enqueued on `exec` from now on run only when the device has passed the mark.
    void block(cuda_stream exec) const {
        check_cuda(cudaStreamWaitEvent(exec.stream, event_, 0), "cudaStreamWaitEvent");
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Milliseconds between two marks that the device has passed, to about half a microsecond.
[[nodiscard]] inline float milliseconds_between(const cuda_event& begin, const cuda_event& end) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
    return milliseconds;
}

}}  // namespace mp
