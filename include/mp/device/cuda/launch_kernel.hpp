// SPDX-License-Identifier: MIT
/// \file
/// Launching a kernel of the warp-level vocabulary on a CUDA device.
#pragma once

#include <mp/device/simt/device/compiler.hpp>

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/simt/device/device_thread.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string_view>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, resident_blocks_of<Kernel>())
    run_kernel([[maybe_unused]] const __grid_constant__ Kernel kernel) {
#if MP_DEVICE_CODE
    const device_thread thread{};
    if constexpr (!waiting_kernel<Kernel>) {
        thread.wait_dependencies();
        // Behind the wait, so that no more than one kernel lies ready while another works.
        thread.launch_dependents();
    }
    kernel(thread);
#endif
}

/// The shared memory that a kernel may have on a device by what was said last. Saying it takes as long as a launch does,
/// so it is said only where a launch wants more.
class shared_memory_limit {
public:
    /// Calls raise(), which has the runtime know of `bytes` and returns its answer, unless it knows of as many.
    template <class Raise>
    cudaError_t at_least(int device, int bytes, Raise raise) {
        const bool known = device >= 0 && static_cast<std::size_t>(device) < said_.size();
        std::atomic<int>* const said = known ? &said_[static_cast<std::size_t>(device)] : nullptr;
        if (known && said->load(std::memory_order_acquire) >= bytes) return cudaSuccess;
        const std::lock_guard lock(raising_);
        if (known && said->load(std::memory_order_relaxed) >= bytes) return cudaSuccess;
        const cudaError_t status = raise();
        if (known && status == cudaSuccess) said->store(bytes, std::memory_order_release);
        return status;
    }
    /// What was said is not true any more: the device has been reset.
    void forget(int device) {
        if (device >= 0 && static_cast<std::size_t>(device) < said_.size()) {
            said_[static_cast<std::size_t>(device)].store(0, std::memory_order_release);
        }
    }

private:
    std::array<std::atomic<int>, 32> said_{};
    std::mutex raising_;
};

/// The architecture that the code of a kernel was compiled for, which each device is asked for once.
class code_architecture {
public:
    /// ask() returns it.
    template <class Ask>
    [[nodiscard]] int on(int device, Ask ask) {
        if (device < 0 || static_cast<std::size_t>(device) >= known_.size()) return ask();
        std::atomic<int>& it = known_[static_cast<std::size_t>(device)];
        int result = it.load(std::memory_order_relaxed);
        if (result == 0) {
            result = ask();
            it.store(result, std::memory_order_relaxed);
        }
        return result;
    }

private:
    std::array<std::atomic<int>, 32> known_{};
};

inline void check_launch(std::string_view function, cudaError_t status) {
    if (status == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());  // an error that is thrown is not left behind
    mp::detail::throw_error(cuda_error(function, status));
}

}}  // namespace mp::simt::detail

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// Enqueues a kernel: what it is made of is said at mp::simt::kernel, an example is at the launch on the
/// host. Throws argument_error for what no device can run, and cuda_error in the name of `function` if this
/// launch is refused. Errors that earlier calls left behind are not mistaken for its own. What goes wrong
/// while the kernel runs shows at a later call or when the stream is waited for, as always in CUDA.
template <class Kernel>
void launch(std::string_view function, cuda_stream exec, const launch_size& size, const Kernel& kernel) {
    const launch_shape shape = shape_of_launch<Kernel>(function, size);
    const auto entry = &detail::run_kernel<Kernel>;
    const auto* const function_address = reinterpret_cast<const void*>(entry);
    // Up to 48 KiB every kernel may have; more has to be said, for each device.
    const bool needs_more = shape.shared_bytes > (std::size_t{48} << 10);
    static detail::shared_memory_limit limit;
    static detail::code_architecture architecture;
    int device = 0;
    if (needs_more || exec.programmatic_launch) detail::check_launch(function, cudaGetDevice(&device));
    const auto allow = [&] {
        const auto bytes = static_cast<int>(shape.shared_bytes);
        detail::check_launch(function, limit.at_least(device, bytes, [&] {
            return cudaFuncSetAttribute(function_address, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        }));
    };
    if (needs_more) allow();
    cudaLaunchConfig_t configuration{};
    configuration.gridDim = dim3(static_cast<unsigned>(shape.blocks));
    configuration.blockDim = dim3(static_cast<unsigned>(shape.threads));
    configuration.dynamicSmemBytes = shape.shared_bytes;
    configuration.stream = exec.stream;
    cudaLaunchAttribute attributes[2] = {};
    configuration.attrs = attributes;
    if (shape.cluster_blocks > 1) {
        cudaLaunchAttribute& it = attributes[configuration.numAttrs++];
        it.id = cudaLaunchAttributeClusterDimension;
        it.val.clusterDim.x = static_cast<unsigned>(shape.cluster_blocks);
        it.val.clusterDim.y = 1;
        it.val.clusterDim.z = 1;
    }
    // A device may run code of an architecture whose kernels cannot wait.
    if (exec.programmatic_launch && architecture.on(device, [&] {
            cudaFuncAttributes facts{};
            detail::check_launch(function, cudaFuncGetAttributes(&facts, function_address));
            return facts.ptxVersion;
        }) >= 90) {
        cudaLaunchAttribute& it = attributes[configuration.numAttrs++];
        it.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        it.val.programmaticStreamSerializationAllowed = 1;
    }
    Kernel parameters = kernel;
    void* arguments[] = {&parameters};
    cudaError_t status = cudaLaunchKernelExC(&configuration, function_address, arguments);
    if (status == cudaErrorInvalidValue && needs_more) {
        static_cast<void>(cudaGetLastError());  // nor is one that the second try mends
        limit.forget(device);
        allow();
        status = cudaLaunchKernelExC(&configuration, function_address, arguments);
    }
    detail::check_launch(function, status);
}

}}  // namespace mp::simt
