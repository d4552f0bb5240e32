// SPDX-License-Identifier: MIT
/// \file
/// Work of a stream that is captured once and launched often.
#pragma once

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/simt/launch_recorder.hpp>
#include <mp/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <exception>
#include <utility>

namespace mp {

/// Owns a CUDA graph that can be launched. Movable, not copyable.
///
///     mp::cuda_graph graph;
///     graph.capture(stream, [&] { step(); });     // enqueued into the graph, not run
///     for (...) graph.launch(stream);
///
/// What is captured must not wait for the stream, nor allocate: run the step once before. Arguments of
/// launches, the addresses among them, are kept as they were; what changes from launch to launch is read from
/// device memory.
class cuda_graph {
public:
    cuda_graph() = default;
    cuda_graph(cuda_graph&& other) noexcept
        : executable_(std::exchange(other.executable_, nullptr)), nodes_(std::exchange(other.nodes_, 0)) {}
    cuda_graph& operator=(cuda_graph&& other) noexcept {
        std::swap(executable_, other.executable_);
        std::swap(nodes_, other.nodes_);
        return *this;
    }
    ~cuda_graph() { release(); }

    /// Captures what body() enqueues on the stream, by this thread, in place of what was captured before: a
    /// graph of the same launches is updated where it is, which is cheaper than making one anew. If that
    /// fails, because other kernels are launched now, it is made anew.
    ///
    /// \returns whether the old graph was updated
    /// \throws cuda_error  CUDA refuses the capture or the graph; and whatever body() throws. The old graph
    ///                     is still there
    template <class Body>
    bool capture(cuda_stream exec, Body&& body) {
        check_cuda(cudaStreamBeginCapture(exec.stream, cudaStreamCaptureModeThreadLocal),
                   "cudaStreamBeginCapture");
        const std::exception_ptr failure = detail::exception_of([&] { body(); });
        captured graph;
        const cudaError_t ended = cudaStreamEndCapture(exec.stream, &graph.it);
        if (failure) {
            static_cast<void>(cudaGetLastError());  // what body() throws says more
            std::rethrow_exception(failure);
        }
        check_cuda(ended, "cudaStreamEndCapture");
        std::size_t count = 0;
        check_cuda(cudaGraphGetNodes(graph.it, nullptr, &count), "cudaGraphGetNodes");
        if (executable_ != nullptr) {
            cudaGraphExecUpdateResultInfo info{};
            if (cudaGraphExecUpdate(executable_, graph.it, &info) == cudaSuccess) {
                nodes_ = count;
                return true;
            }
            static_cast<void>(cudaGetLastError());
        }
        cudaGraphExec_t made = nullptr;
        check_cuda(cudaGraphInstantiate(&made, graph.it, 0), "cudaGraphInstantiate");
        release();
        executable_ = made;
        nodes_ = count;
        return false;
    }

    /// Enqueues what was captured. Throws state_error where nothing was, and cuda_error.
    void launch(cuda_stream exec) const {
        if (executable_ == nullptr) {
            detail::throw_error(state_error("mp::cuda_graph::launch: nothing has been captured yet"));
        }
        check_cuda(cudaGraphLaunch(executable_, exec.stream), "cudaGraphLaunch");
    }

    [[nodiscard]] bool empty() const noexcept { return executable_ == nullptr; }
    /// Number of launches, copies and the like.
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_; }
    [[nodiscard]] cudaGraphExec_t get() const noexcept { return executable_; }

private:
    struct captured {
        cudaGraph_t it = nullptr;
        captured() = default;
        captured(const captured&) = delete;
        captured& operator=(const captured&) = delete;
        ~captured() {
            if (it != nullptr) static_cast<void>(cudaGraphDestroy(it));
        }
    };
    void release() noexcept {
        if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
        executable_ = nullptr;
    }

    cudaGraphExec_t executable_ = nullptr;
    std::size_t nodes_ = 0;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <>
struct graph_of<cuda_stream> {
    using type = cuda_graph;
};
template <>
struct graph_of<unique_cuda_stream> {
    using type = cuda_graph;
};

}}  // namespace mp::detail
