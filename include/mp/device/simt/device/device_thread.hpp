// SPDX-License-Identifier: MIT
/// \file
/// A thread of a GPU, as kernels see it. The functions of mp::simt::device_thread are the plain instructions;
/// where a kernel runs on the host it gets an mp::simt::simulated_thread, which has the same ones and checks
/// them. What they mean is said in basics.hpp (who; warp, block and memory), barriers.hpp, matrices.hpp and wgmma.hpp.
///
/// Everything that is said of a warp holds for all 32 lanes: operations of a warp are called by all of them,
/// at the same place of the kernel. Lanes that have left it are not waited for by shuffles, votes and
/// sync_warp(), say nothing and have no value that could be taken; matrices want all 32 lanes. (CUDA also lets
/// parts of a warp work together, given their mask. That is not offered here: kernels that need it are rare,
/// and mistakes with it are not.)
#pragma once

#include <mp/device/simt/device/compiler.hpp>

#include <mp/device/simt/device/wgmma.hpp>

namespace mp::simt {

/// What kernels get as their thread on a device: no data, functions that are the instructions.
class device_thread : public detail::device_wgmma {
public:
    /// The architecture that is compiled for: 75, 80 ...
#if defined(__CUDA_ARCH__)
    static constexpr int capability = __CUDA_ARCH__ / 10;
#else
    static constexpr int capability = 0;
#endif
    static constexpr bool on_device = true;
    /// Whether the code is for sm_90a, which has wgmma and copies of tiles to several blocks.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    static constexpr bool has_warpgroups = true;
#else
    static constexpr bool has_warpgroups = false;
#endif
};

}  // namespace mp::simt
