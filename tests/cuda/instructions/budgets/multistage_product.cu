// SPDX-License-Identifier: MIT
// The product by mma.sync: 4 x 8 products of 16x8x16 for each 32 bytes of k, 64 a step.
// architecture 80
// budget ptx bfloat16_tiles loop mma.sync most 64 mma.sync
// budget ptx bfloat16_tiles loop mma.sync most 640 .
// budget sass bfloat16_tiles loop HMMA most 740 . per 64 HMMA
// budget sass bfloat16_tiles loop HMMA most 0 LDL|STL
// budget sass bfloat16_tiles function most 0 LDL|STL
// budget sass bfloat16_tiles function most 4000 .
#include <mp/bfloat16.hpp>
#include <mp/cuda/launch_kernel.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gpu/gemm/mma_policy.hpp>
#include <mp/gpu/gemm/multistage_kernel.hpp>
#include <mp/gpu/gemm/plan.hpp>
#include <mp/simt/device/device_thread.hpp>

using mp::bfloat16;
using bfloat16_policy = mp::detail::mma_policy<mp::detail::mma_tile_256, bfloat16, bfloat16, true, true>;
using bfloat16_kernel = mp::detail::multistage_gemm_kernel<bfloat16_policy, bfloat16, mp::identity_epilogue>;

extern "C" __global__ void __launch_bounds__(bfloat16_kernel::threads, bfloat16_kernel::resident_blocks)
    bfloat16_tiles(const __grid_constant__ bfloat16_kernel kernel) {
    kernel(mp::simt::device_thread());
}
