// SPDX-License-Identifier: MIT
// Products by mma.sync of 8-bit integers, of bfloat16 with such, and of groups of rows.
// architecture 80
// budget ptx integer_tiles loop mma.sync most 32 mma.sync
// budget sass integer_tiles loop IMMA through LDGSTS(?!.*ZFILL) least 32 IMMA
// budget sass integer_tiles loop IMMA through LDGSTS(?!.*ZFILL) most 90 .
// budget sass integer_tiles function most 0 LDL|STL
// budget sass mixed_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass mixed_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 320 .
// budget sass mixed_tiles function most 0 LDL|STL
// budget sass grouped_tiles loop HMMA through LDGSTS(?!.*ZFILL) least 64 HMMA
// budget sass grouped_tiles loop HMMA through LDGSTS(?!.*ZFILL) most 128 .
// budget sass grouped_tiles function most 0 LDL|STL
#include <mp/bfloat16.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/gpu/gemm/grouped_kernel.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/mixed_policy.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/device/simt/device/device_thread.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <cstdint>

using mp::bfloat16;
using namespace mp::detail;

using integers = multistage_gemm_kernel<mma_policy<float8_tile_128, std::int8_t, std::int8_t, true, true>,
                                        std::int32_t, integer_scale>;
extern "C" __global__ void __launch_bounds__(integers::threads, integers::resident_blocks)
    integer_tiles(const __grid_constant__ integers kernel) {
    kernel(mp::simt::device_thread());
}

using mixed = multistage_gemm_kernel<mixed_policy<mma_tile_128, bfloat16, std::int8_t, true, true>, bfloat16,
                                     mp::identity_epilogue>;
extern "C" __global__ void __launch_bounds__(mixed::threads, mixed::resident_blocks)
    mixed_tiles(const __grid_constant__ mixed kernel) {
    kernel(mp::simt::device_thread());
}

using grouped =
    grouped_gemm_kernel<multistage_gemm_kernel<mma_policy<mma_tile_256, bfloat16, bfloat16, true, true>,
                                               bfloat16, mp::identity_epilogue>,
                        row_groups>;
extern "C" __global__ void __launch_bounds__(grouped::threads, grouped::resident_blocks)
    grouped_tiles(const __grid_constant__ grouped kernel) {
    kernel(mp::simt::device_thread());
}
