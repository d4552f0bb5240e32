// SPDX-License-Identifier: MIT
/// \file
/// A thread of a GPU on the host.
#pragma once

#include <mp/device/simt/host/wgmma_operations.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

namespace mp::simt {

/// What kernels get as their thread where they run on the host: the operations of
/// <mp/device/simt/device/device_thread.hpp>, checked.
template <arch Arch>
class simulated_thread : public detail::wgmma_operations<Arch> {
public:
    static constexpr int capability = static_cast<int>(Arch);
    static constexpr bool on_device = false;
    static constexpr bool has_warpgroups = Arch == arch::sm_90;

    explicit simulated_thread(detail::thread_state& state) : detail::wgmma_operations<Arch>(state) {}
};

}  // namespace mp::simt
