// SPDX-License-Identifier: MIT
/// \file
/// Properties of GPUs on which the choice of algorithms depends.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <array>

namespace mp {

/// Properties that decide on kernels and the division of work.
struct gpu_properties {
    /// Compute capability that the kernels in this program were compiled for, as far as the device takes it:
    /// 75, 80, 90 ... A device may run code of an earlier one.
    int capability = 0;
    int multiprocessors = 1;
    /// Whether the code has wgmma and copies of tiles to several blocks: that for sm_90a.
    bool has_warpgroups = false;
    /// Which device of the executor's kind these are the properties of: see device_number.
    int device = 0;
    /// Shared memory of a multiprocessor; zero stands for that of devices for which the code was compiled.
    int shared_bytes = 0;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Shared memory of a multiprocessor of a capability, in bytes. (CUDA Programming Guide, "Technical Specifications per
/// Compute Capability".)
[[nodiscard]] MP_HOST_DEVICE constexpr int shared_bytes_of(int capability) {
    constexpr int kibibyte = 1024;
    if (capability < 75) return 96 * kibibyte;
    if (capability < 80) return 64 * kibibyte;
    if (capability == 80 || capability == 87) return 164 * kibibyte;
    if (capability < 90 || capability >= 120) return 100 * kibibyte;
    return 228 * kibibyte;
}
[[nodiscard]] constexpr int shared_bytes_of(const gpu_properties& gpu) {
    return gpu.shared_bytes != 0 ? gpu.shared_bytes : shared_bytes_of(gpu.capability);
}

/// Those of the largest device of an architecture. (CUDA Programming Guide, "Technical Specifications per
/// Compute Capability"; data sheets for multiprocessors.)
[[nodiscard]] constexpr gpu_properties largest_device(arch architecture) {
    const int capability = static_cast<int>(architecture);
    switch (architecture) {
        case arch::sm_70:
            return {capability, 80, false, capability};
        case arch::sm_75:
            return {capability, 72, false, capability};
        case arch::sm_80:
            return {capability, 108, false, capability};
        case arch::sm_86:
            return {capability, 84, false, capability};
        case arch::sm_87:
            return {capability, 16, false, capability};
        case arch::sm_89:
            return {capability, 142, false, capability};
        case arch::sm_90:
            return {capability, 132, true, capability};
        case arch::sm_100:
            return {capability, 148, false, capability};
        case arch::sm_103:
            return {capability, 148, false, capability};
        case arch::sm_110:
            return {capability, 20, false, capability};
        case arch::sm_120:
            return {capability, 188, false, capability};
        case arch::sm_121:
            return {capability, 48, false, capability};
    }
    return {capability, 1, false, capability};
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The device of an executor; cheap, unlike its properties. A simulated GPU is one for each architecture.
template <arch Arch>
[[nodiscard]] constexpr int device_number(const simulated_gpu<Arch>&) {
    return static_cast<int>(Arch);
}

/// Those of the simulated GPU.
template <arch Arch>
[[nodiscard]] constexpr gpu_properties properties_of(const simulated_gpu<Arch>& exec) {
    gpu_properties result = detail::largest_device(Arch);
    if (exec.multiprocessors > 0) result.multiprocessors = exec.multiprocessors;
    return result;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The capabilities that the kernels for an executor are compiled for.
template <class Executor>
inline constexpr std::array<int, 0> compiled_capabilities{};
template <arch Arch>
inline constexpr std::array<int, 1> compiled_capabilities<simulated_gpu<Arch>>{static_cast<int>(Arch)};

}}  // namespace mp::detail
