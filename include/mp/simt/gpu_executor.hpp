// SPDX-License-Identifier: MIT
/// \file
/// The simulated GPU as an executor. Algorithms for GPUs launch kernels by the unqualified call
/// launch("mp::function", exec, simt::launch_size{...}, kernel), which finds mp::simt::launch by its
/// arguments.
#pragma once

#include <mp/executor.hpp>
#include <mp/simt/simulated_gpu.hpp>
#include <mp/tensor_core/arch.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

template <arch Arch>
struct is_gpu_executor<simulated_gpu<Arch>> : std::true_type {};

/// Global memory is that of the program.
template <arch Arch>
struct executor_memory<simulated_gpu<Arch>> {
    using executor = simulated_gpu<Arch>;
    static void copy_to_host(const executor&, void* to, const void* from, std::size_t bytes) {
        if (bytes != 0) std::memcpy(to, from, bytes);
    }
    static void copy_to_device(const executor&, void* to, const void* from, std::size_t bytes) {
        if (bytes != 0) std::memcpy(to, from, bytes);
    }
    static std::shared_ptr<void> allocate(const executor&, std::size_t bytes) {
        constexpr std::size_t line = 256;  // as a device's allocations are aligned
        struct alignas(line) unit {
            std::byte bytes[line];
        };
        const std::shared_ptr<unit[]> units =
            std::make_shared_for_overwrite<unit[]>((bytes + line - 1) / line);
        return {units, units.get()};
    }
    static bool can_keep(const executor&) { return true; }
    static const void* queue(const executor&) { return nullptr; }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
