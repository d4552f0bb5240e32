// SPDX-License-Identifier: MIT
// The product by wgmma and TMA: what its loop over k does beside four products of 64x256x16 a step.
// architecture 90a
// budget ptx bfloat16_tiles loop wgmma.mma_async most 0 bar.sync|membar|fence.(acq_rel|sc)|\S*release.cluster
// budget sass bfloat16_tiles loop HGMMA most 0 MEMBAR|CCTL
// budget sass bfloat16_tiles loop HGMMA most 0 LDL|STL
// budget sass bfloat16_tiles loop HGMMA most 65 . per 4 HGMMA
// budget sass bfloat16_tiles function most 0 LDL|STL
// budget sass bfloat16_tiles function most 7150 .
#include <mp/bfloat16.hpp>
#include <mp/cuda/launch_kernel.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gpu/gemm/warp_specialized_kernel.hpp>
#include <mp/simt/device/device_thread.hpp>

using mp::bfloat16;
using bfloat16_kernel = mp::detail::warp_specialized_gemm_kernel<bfloat16, bfloat16, true, true, 256, 2,
                                                                 bfloat16, mp::identity_epilogue>;

extern "C" __global__ void __launch_bounds__(bfloat16_kernel::threads, 1)
    bfloat16_tiles(const __grid_constant__ bfloat16_kernel kernel) {
    kernel(mp::simt::device_thread());
}
