// SPDX-License-Identifier: MIT
// A device for programs of the CUDA runtime on a machine without one: this stands in for cudart, and the interpreter runs
// the PTX that the program carries. Work on a stream is done when it is enqueued.
#pragma once

#include "../interpreter/machine.hpp"
#include "order.hpp"

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptx::runtime {

/// What nvcc put into the program for one source.
struct fat_binary {
    const void* data = nullptr;
    std::unique_ptr<program> loaded{};
};

inline constexpr int shared_without_asking = 48 << 10;

struct kernel {
    fat_binary* in = nullptr;
    std::string name{};
    int most_dynamic_shared = shared_without_asking;
};

struct device_state {
    global_memory memory{};
    std::vector<std::unique_ptr<fat_binary>> binaries{};
    std::unordered_map<const void*, kernel> kernels{};  ///< by the host's function
    cudaError_t last = cudaSuccess;
    cudaError_t sticky = cudaSuccess;
    std::string failure{};  ///< why all calls fail
    std::unique_ptr<device_order> order = std::make_unique<device_order>();
};

device_state& state();

/// Remembers an error for cudaGetLastError and returns it.
cudaError_t report(cudaError_t status);
/// What a failure of an interpreted kernel does: it is told, and all calls fail from then on.
void break_device(std::string_view message);
program& program_of(kernel& it);

inline constexpr int multiprocessors = 8;
/// The architecture that the program's PTX is for: 80, 90 ...
int architecture();
inline int shared_per_block() {
    return architecture() >= 90 ? 227 << 10 : 163 << 10;
}
inline constexpr std::size_t memory_bytes = std::size_t{16} << 30;

/// Does the work now, or when the graph is launched that the stream is recorded into. A failure breaks the device.
cudaError_t enqueue(cudaStream_t stream, graph_work work);
/// Does it now.
void run_work(const graph_work& work, CUstream_st& in);
CUstream_st& stream_of(cudaStream_t stream);

}  // namespace ptx::runtime
