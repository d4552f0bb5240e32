// SPDX-License-Identifier: MIT
/// \file
/// What algorithms have to know of a CUDA device.
#pragma once

#include <mp/device/simt/device/compiler.hpp>

#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/gpu/properties.hpp>

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Compiled as every other kernel is, and asked what for.
struct probe_kernel {
    static constexpr int threads = simt::warp_size;

    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread) const {}
};

/// Code for sm_90a tells so by its shared memory, the only thing of a kernel that a program can ask for and
/// that sources can choose.
template <class>
__global__ void warpgroups_probe() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ volatile int used[simt::warp_size];
    used[threadIdx.x] = 0;
#endif
}

[[nodiscard]] inline gpu_properties ask_for_properties(int device) {
    gpu_properties result;
    result.device = device;
    // What counts is the architecture that the code in this program was compiled for: a device may run code
    // of an earlier one.
    cudaFuncAttributes attributes{};
    check_cuda(cudaFuncGetAttributes(&attributes,
                                     reinterpret_cast<const void*>(&simt::detail::run_kernel<probe_kernel>)),
               "cudaFuncGetAttributes");
    result.capability = attributes.ptxVersion;
    check_cuda(cudaDeviceGetAttribute(&result.multiprocessors, cudaDevAttrMultiProcessorCount, device),
               "cudaDeviceGetAttribute");
    check_cuda(
        cudaDeviceGetAttribute(&result.shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device),
        "cudaDeviceGetAttribute");
    cudaFuncAttributes probe{};
    check_cuda(cudaFuncGetAttributes(&probe, reinterpret_cast<const void*>(&warpgroups_probe<void>)),
               "cudaFuncGetAttributes");
    result.has_warpgroups = probe.sharedSizeBytes != 0;
    return result;
}

/// Properties of devices, which stay as they are while a program runs.
class known_properties {
public:
    template <class Ask>
    [[nodiscard]] gpu_properties of(int device, Ask ask) {
        if (device < 0 || static_cast<std::size_t>(device) >= devices_.size()) return ask();
        entry& it = devices_[static_cast<std::size_t>(device)];
        if (it.is_known.load(std::memory_order_acquire)) return it.properties;
        const gpu_properties answer = ask();
        const std::lock_guard lock(writing_);
        if (!it.is_known.load(std::memory_order_relaxed)) {
            it.properties = answer;
            it.is_known.store(true, std::memory_order_release);
        }
        return answer;
    }

private:
    struct entry {
        std::atomic<bool> is_known = false;
        gpu_properties properties;
    };
    std::array<entry, 32> devices_;
    std::mutex writing_;
};

#if defined(__CUDA_ARCH_LIST__)
template <int... Architectures>
struct architecture_list {
    static constexpr std::array<int, sizeof...(Architectures)> capabilities{(Architectures / 10)...};
};
template <>
inline constexpr auto compiled_capabilities<cuda_stream> =
    architecture_list<__CUDA_ARCH_LIST__>::capabilities;
#else
// Other compilers than nvcc do not tell: every kind of kernel.
template <>
inline constexpr std::array<int, 4> compiled_capabilities<cuda_stream>{75, 80, 89, 90};
#endif
template <>
inline constexpr auto compiled_capabilities<unique_cuda_stream> = compiled_capabilities<cuda_stream>;

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The device that is current in the calling thread, to which the stream belongs. Throws cuda_error.
[[nodiscard]] inline int device_number(cuda_stream) {
    int device = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    return device;
}

/// The properties of the device that is current in the calling thread, which is asked for them once. Throws cuda_error,
/// where this program has no code for the device among other reasons.
[[nodiscard]] inline gpu_properties properties_of(cuda_stream exec) {
    static detail::known_properties known;
    const int device = device_number(exec);
    return known.of(device, [&] { return detail::ask_for_properties(device); });
}

}}  // namespace mp
