// SPDX-License-Identifier: MIT
/// \file
/// A CUDA device as the benchmarks of this folder see it; simulated_device.hpp has the same for the host.
#pragma once

#include <mp/cuda.hpp>

#include <cuda_runtime.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bench::gpu {

/// Work that was recorded once and is run many times: the host takes no part in what is measured.
class recorded_work {
public:
    recorded_work(mp::cuda_stream stream, const std::function<void()>& enqueue, int times) {
        mp::check_cuda(cudaStreamBeginCapture(stream.stream, cudaStreamCaptureModeRelaxed),
                       "cudaStreamBeginCapture");
        for (int i = 0; i < times; ++i) enqueue();
        cudaGraph_t graph = nullptr;
        mp::check_cuda(cudaStreamEndCapture(stream.stream, &graph), "cudaStreamEndCapture");
        const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
        static_cast<void>(cudaGraphDestroy(graph));
        mp::check_cuda(made, "cudaGraphInstantiate");
    }
    recorded_work(recorded_work&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
    recorded_work& operator=(recorded_work&& other) noexcept {
        std::swap(graph_, other.graph_);
        return *this;
    }
    ~recorded_work() {
        if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
    }

    void run(mp::cuda_stream stream) const {
        mp::check_cuda(cudaGraphLaunch(graph_, stream.stream), "cudaGraphLaunch");
    }

private:
    cudaGraphExec_t graph_ = nullptr;
};

class device {
public:
    static constexpr bool is_simulated = false;
    /// For the columns of tables.
    static constexpr const char* build = "cuda";

    template <class Value>
    using array = mp::device_buffer<Value>;

    [[nodiscard]] mp::cuda_stream exec() const { return stream_; }
    /// Whose kernels begin before those before them have ended.
    [[nodiscard]] mp::cuda_stream overlapping_exec() const {
        mp::cuda_stream result = stream_;
        result.programmatic_launch = true;
        return result;
    }

    template <class Value>
    [[nodiscard]] array<Value> put(const std::vector<Value>& values) const {
        return array<Value>(stream_, values);
    }
    template <class Value>
    [[nodiscard]] array<Value> make(std::size_t size) const {
        array<Value> result(size);
        result.fill_bytes(stream_, 0);
        return result;
    }
    template <class Value>
    [[nodiscard]] std::vector<Value> get(const array<Value>& from) const {
        return from.to_host(stream_);
    }

    /// The device's own way to move memory: the limit of passes over arrays.
    void copy(void* to, const void* from, std::size_t bytes) const {
        mp::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_.get().stream),
                       "cudaMemcpyAsync");
    }

    void wait() const { mp::synchronize(stream_); }

    [[nodiscard]] recorded_work record(const std::function<void()>& enqueue, int times) const {
        return {stream_, enqueue, times};
    }

    /// Seconds that the device takes.
    [[nodiscard]] double seconds(const recorded_work& work) {
        begin_.record(stream_);
        work.run(stream_);
        end_.record(stream_);
        end_.synchronize();
        return static_cast<double>(mp::milliseconds_between(begin_, end_)) * 1e-3;
    }

    /// Compute capability of the hardware, which selects the tensor-core model: 90, 100 ... The code can be for an
    /// earlier one.
    [[nodiscard]] int capability() const {
        const cudaDeviceProp it = properties();
        return it.major * 10 + it.minor;
    }

    [[nodiscard]] std::string description() const {
        const cudaDeviceProp it = properties();
        const mp::gpu_properties compiled = mp::properties_of(exec());
        return std::string(it.name) + ", " + std::to_string(it.multiProcessorCount) +
               " multiprocessors, capability " + std::to_string(it.major) + "." + std::to_string(it.minor) +
               ", code for " + std::to_string(compiled.capability) + (compiled.has_warpgroups ? "a" : "");
    }

private:
    static cudaDeviceProp properties() {
        cudaDeviceProp result{};
        int number = 0;
        mp::check_cuda(cudaGetDevice(&number), "cudaGetDevice");
        mp::check_cuda(cudaGetDeviceProperties(&result, number), "cudaGetDeviceProperties");
        return result;
    }

    mp::unique_cuda_stream stream_;
    mp::cuda_event begin_;
    mp::cuda_event end_;
};

}  // namespace bench::gpu
