// SPDX-License-Identifier: MIT
#include "state.hpp"

#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace ptx::runtime { namespace {

struct call_configuration {
    dim3 grid, threads;
    std::size_t shared;
    cudaStream_t stream;
};
std::vector<call_configuration>& call_configurations() {
    static std::vector<call_configuration> list;
    return list;
}

std::uint64_t seed() {
    const char* const said = std::getenv("MP_PTX_SEED");
    return said == nullptr ? 1 : std::strtoull(said, nullptr, 10);
}

std::array<std::uint32_t, 3> sizes(dim3 it) {
    return {it.x, it.y, it.z};
}

/// What a device checks before it takes a launch.
cudaError_t check(const kernel& it, const function& code, const launch_configuration& shape) {
    const auto threads = std::uint64_t{shape.threads[0]} * shape.threads[1] * shape.threads[2];
    if (threads == 0 || threads > 1024 || shape.grid[0] == 0 || shape.grid[1] == 0 || shape.grid[2] == 0 ||
        shape.grid[1] > 65535 || shape.grid[2] > 65535 || shape.grid[0] > 0x7FFF'FFFFU) {
        return cudaErrorInvalidConfiguration;
    }
    if (code.source->required_threads != 0 &&
        threads > static_cast<std::uint64_t>(code.source->required_threads)) {
        return cudaErrorInvalidValue;
    }
    if (shape.dynamic_shared > static_cast<std::size_t>(it.most_dynamic_shared) ||
        shape.dynamic_shared + code.shared_bytes > static_cast<std::size_t>(shared_per_block())) {
        return cudaErrorInvalidValue;
    }
    if (shape.cluster == 0 || shape.cluster > 8 || shape.grid[0] % shape.cluster != 0)
        return cudaErrorInvalidClusterSize;
    return cudaSuccess;
}

cudaError_t launch_kernel(kernel* it, launch_configuration shape, void** arguments, cudaStream_t stream) {
    if (it == nullptr) return report(cudaErrorInvalidDeviceFunction);
    if (state().sticky != cudaSuccess) return state().sticky;
    try {
        program& code = program_of(*it);
        const function& entry = code.find(it->name);
        const cudaError_t status = check(*it, entry, shape);
        if (status != cudaSuccess) return report(status);
        std::vector<std::byte> parameters(entry.parameter_bytes);
        for (std::size_t k = 0; k < entry.parameter_offsets.size(); ++k) {
            std::memcpy(parameters.data() + entry.parameter_offsets[k], arguments[k],
                        entry.source->parameters[k].bytes());
        }
        // Tensor maps lie at multiples of 64 bytes, which a vector does not promise; addresses in the window do.
        shape.seed = seed();
        return enqueue(stream, [&code, &entry, it, shape, parameters](CUstream_st& in) {
            state().order->run(in, it->name, &entry, code.memory.clock, [&](const stream_position& where) {
                launch(code, it->name, shape, parameters, where);
            });
        });
    } catch (const failure& error) {
        break_device(error.what());
        return cudaErrorLaunchFailure;
    }
}

kernel* kernel_of(const void* host) {
    const auto found = state().kernels.find(host);
    return found == state().kernels.end() ? nullptr : &found->second;
}

}  // namespace

}  // namespace ptx::runtime

using namespace ptx::runtime;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 threads, size_t shared, cudaStream_t stream) {
    call_configurations().push_back({grid, threads, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* threads, size_t* shared, void* stream) {
    const call_configuration it = call_configurations().back();
    call_configurations().pop_back();
    *grid = it.grid;
    *threads = it.threads;
    *shared = it.shared;
    *static_cast<cudaStream_t*>(stream) = it.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* to, const void* host) {
    *to = reinterpret_cast<cudaKernel_t>(kernel_of(host));
    return *to == nullptr ? cudaErrorInvalidDeviceFunction : cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t it, dim3 grid, dim3 threads, void** arguments, size_t shared,
                               cudaStream_t stream) {
    return launch_kernel(reinterpret_cast<kernel*>(it), {sizes(grid), sizes(threads), 1, shared}, arguments,
                         stream);
}
cudaError_t cudaLaunchKernel(const void* host, dim3 grid, dim3 threads, void** arguments, size_t shared,
                             cudaStream_t stream) {
    return launch_kernel(kernel_of(host), {sizes(grid), sizes(threads), 1, shared}, arguments, stream);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* host, void** arguments) {
    ptx::launch_configuration shape{sizes(configuration->gridDim), sizes(configuration->blockDim), 1,
                                    configuration->dynamicSmemBytes};
    for (unsigned k = 0; k < configuration->numAttrs; ++k) {
        const cudaLaunchAttribute& it = configuration->attrs[k];
        if (it.id == cudaLaunchAttributeProgrammaticStreamSerialization && architecture() >= 90) {
            shape.is_programmatic = it.val.programmaticStreamSerializationAllowed != 0;
            continue;
        }
        if (it.id != cudaLaunchAttributeClusterDimension || it.val.clusterDim.y != 1 ||
            it.val.clusterDim.z != 1) {
            return report(cudaErrorNotSupported);
        }
        shape.cluster = it.val.clusterDim.x;
    }
    return launch_kernel(kernel_of(host), shape, arguments, configuration->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* to, const void* host) {
    kernel* const it = kernel_of(host);
    if (it == nullptr) return report(cudaErrorInvalidDeviceFunction);
    try {
        const ptx::function& entry = program_of(*it).find(it->name);
        *to = {};
        to->sharedSizeBytes = entry.shared_bytes;
        to->maxThreadsPerBlock = entry.source->required_threads != 0 ? entry.source->required_threads : 1024;
        to->numRegs = 64;
        to->ptxVersion = architecture();
        to->binaryVersion = architecture();
        to->maxDynamicSharedSizeBytes = it->most_dynamic_shared;
        return cudaSuccess;
    } catch (const ptx::failure& error) {
        break_device(error.what());
        return cudaErrorLaunchFailure;
    }
}
cudaError_t cudaFuncSetAttribute(const void* host, cudaFuncAttribute what, int value) {
    kernel* const it = kernel_of(host);
    if (it == nullptr) return report(cudaErrorInvalidDeviceFunction);
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > shared_per_block()) return report(cudaErrorInvalidValue);
    it->most_dynamic_shared = value;
    return cudaSuccess;
}

}  // extern "C"
