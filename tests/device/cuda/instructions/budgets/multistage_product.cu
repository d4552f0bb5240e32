// SPDX-License-Identifier: MIT
// The product by mma.sync: 4 x 8 products of 16x8x16 for each 32 bytes of k, 64 a step. Copies of aligned operands
// are the way through the loop that counts; others fill their chunks with zeros.
// architecture 80
// budget ptx bfloat16_tiles loop mma.sync most 64 mma.sync
// budget sass bfloat16_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass bfloat16_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 128 .
// budget sass bfloat16_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 16 LDSM
// budget sass bfloat16_tiles function most 0 LDL|STL
// budget sass bfloat16_tiles function most 3600 .
// budget sass bfloat16_columns loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass bfloat16_columns loop HMMA through LDGSTS(?!.*ZFILL) most 148 .
// budget sass bfloat16_columns loop HMMA through LDGSTS(?!.*ZFILL) most 16 LDSM
// budget sass bfloat16_columns function most 0 LDL|STL
// budget sass wmma_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 32 HMMA
// budget sass wmma_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 132 .
// budget sass wmma_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 12 LDSM
// budget sass wmma_tiles function most 0 LD$|LD[.]|LDL|STL
#include <mp/bfloat16.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/padded_policies.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/device/simt/device/device_thread.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

using mp::bfloat16;
template <class Policy>
using kernel_of = mp::detail::multistage_gemm_kernel<Policy, bfloat16, mp::identity_epilogue>;

using tiles = kernel_of<mp::detail::mma_policy<mp::detail::mma_tile_256, bfloat16, bfloat16, true, true>>;
extern "C" __global__ void __launch_bounds__(tiles::threads, tiles::resident_blocks)
    bfloat16_tiles(const __grid_constant__ tiles kernel) {
    kernel(mp::simt::device_thread());
}

using columns = kernel_of<mp::detail::mma_policy<mp::detail::mma_tile_128, bfloat16, bfloat16, false, false>>;
extern "C" __global__ void __launch_bounds__(columns::threads, columns::resident_blocks)
    bfloat16_columns(const __grid_constant__ columns kernel) {
    kernel(mp::simt::device_thread());
}

using wmma = kernel_of<mp::detail::wmma_policy<mp::detail::wmma_tile_128, bfloat16, bfloat16, true, true>>;
extern "C" __global__ void __launch_bounds__(wmma::threads, wmma::resident_blocks)
    wmma_tiles(const __grid_constant__ wmma kernel) {
    kernel(mp::simt::device_thread());
}
