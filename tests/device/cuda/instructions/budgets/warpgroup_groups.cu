// SPDX-License-Identifier: MIT
// Groups by wgmma: the loops over k are those of warpgroup_product.cu; the second loop of groups of k is for a step that a
// group has in part.
// architecture 90a
// budget sass row_tiles loop HGMMA most 52 . per 4 HGMMA
// budget sass row_tiles function most 0 LDL|STL|CALL.REL.NOINC
// budget sass row_tiles function most 2940 .
// budget sass k_tiles function most 0 LDL|STL|CALL.REL.NOINC
// budget sass k_tiles function most 3280 .
#include <mp/bfloat16.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/gpu/gemm/cluster_work.hpp>
#include <mp/device/gpu/gemm/warp_specialized_kernel.hpp>
#include <mp/device/simt/device/device_thread.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

using mp::bfloat16;
using namespace mp::detail;

using rows = warp_specialized_gemm_kernel<bfloat16, bfloat16, true, true, 256, 2, bfloat16,
                                          mp::identity_epilogue, no_scales, false, row_groups>;
extern "C" __global__ void __launch_bounds__(rows::threads, 1)
    row_tiles(const __grid_constant__ rows kernel) {
    kernel(mp::simt::device_thread());
}

using along_k = warp_specialized_gemm_kernel<bfloat16, bfloat16, false, false, 256, 2, bfloat16,
                                             mp::identity_epilogue, no_scales, false, k_groups>;
extern "C" __global__ void __launch_bounds__(along_k::threads, 1)
    k_tiles(const __grid_constant__ along_k kernel) {
    kernel(mp::simt::device_thread());
}
