// SPDX-License-Identifier: MIT
// The product by wgmma and TMA: what its loop over k does beside four products of 64x256x16 a step, and what it takes
// to end elements of C: 32 of a thread in a tile for TMA, 8 in a chunk, of which half runs for NaNs only.
// architecture 90a
// budget ptx bfloat16_tiles loop wgmma.mma_async most 0 bar.sync|membar|fence.(acq_rel|sc)|\S*release.cluster
// budget sass bfloat16_tiles loop HGMMA most 0 MEMBAR|CCTL
// budget sass bfloat16_tiles loop HGMMA most 0 LDL|STL
// budget sass bfloat16_tiles loop HGMMA most 52 . per 4 HGMMA
// budget sass bfloat16_tiles function most 0 LDL|STL|CALL.REL.NOINC
// budget sass bfloat16_tiles function most 3500 .
// budget sass few_rows loop HGMMA most 0 MEMBAR|CCTL|LDL|STL
// budget sass few_rows loop HGMMA most 44 . per 4 HGMMA
// budget sass few_rows function most 0 LDL|STL|CALL.REL.NOINC
// budget sass few_rows function most 1700 .
// budget sass integer_tiles loop IGMMA most 0 MEMBAR|CCTL|LDL|STL
// budget sass integer_tiles loop IGMMA most 48 . per 4 IGMMA
// budget sass integer_tiles function most 0 LDL|STL|CALL.REL.NOINC
// budget sass integer_tiles function most 1940 .
// budget ptx end_tile function most 16 cvt.rn.bf16x2.f32
// budget sass end_tile function least 4 STSM
// budget sass end_tile function most 98 .
// budget sass end_chunk function most 164 .
// budget ptx end_two_chunks function least 2 st.global.v4
// budget ptx end_gradient function least 1 ld.global.v4
#include <mp/bfloat16.hpp>
#include <mp/device/cuda/launch_kernel.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/warp_output.hpp>
#include <mp/device/gpu/gemm/warp_specialized_kernel.hpp>
#include <mp/device/simt/device/device_thread.hpp>
#include <mp/linalg/gemm/epilogue.hpp>

#include <cstdint>

using mp::bfloat16;
using mp::simt::device_thread;
using bfloat16_kernel = mp::detail::warp_specialized_gemm_kernel<bfloat16, bfloat16, true, true, 256, 2,
                                                                 bfloat16, mp::identity_epilogue>;

extern "C" __global__ void __launch_bounds__(bfloat16_kernel::threads, 1)
    bfloat16_tiles(const __grid_constant__ bfloat16_kernel kernel) {
    kernel(device_thread());
}

using few_rows_kernel =
    mp::detail::warp_specialized_gemm_kernel<bfloat16, bfloat16, true, true, 16, 1, bfloat16,
                                             mp::identity_epilogue, mp::detail::no_scales, true>;

extern "C" __global__ void __launch_bounds__(few_rows_kernel::threads, few_rows_kernel::resident_blocks)
    few_rows(const __grid_constant__ few_rows_kernel kernel) {
    kernel(device_thread());
}

using integer_kernel = mp::detail::warp_specialized_gemm_kernel<std::int8_t, std::int8_t, true, true, 256, 2,
                                                                std::int32_t, mp::detail::integer_scale>;

extern "C" __global__ void __launch_bounds__(integer_kernel::threads, 1)
    integer_tiles(const __grid_constant__ integer_kernel kernel) {
    kernel(device_thread());
}

using sums = mp::detail::chunk<float, 32>;

extern "C" __global__ void end_tile(const sums* from, float alpha) {
    const sums sum = from[threadIdx.x];
    mp::detail::stored_tile<bfloat16>::write(device_thread(), mp::simt::shared_pointer<bfloat16>{0}, alpha,
                                             sum.values, 0);
}

using relu_output = mp::detail::product_output<bfloat16, mp::relu_epilogue>;

extern "C" __global__ void end_chunk(const mp::detail::chunk<float, 8>* from, relu_output c, int column) {
    c.beta = 0;
    mp::detail::tile_state<mp::relu_epilogue> state;
    mp::detail::finish_inner_chunk(device_thread(), c, from[threadIdx.x].values, {}, threadIdx.x, column,
                                   state);
}

// A chunk of C and one of an auxiliary matrix.
using two_outputs = mp::detail::product_output<bfloat16, mp::store_auxiliary_epilogue<bfloat16>>;

extern "C" __global__ void end_two_chunks(const mp::detail::chunk<float, 8>* from, two_outputs c,
                                          int column) {
    c.beta = 0;
    mp::detail::tile_state<mp::store_auxiliary_epilogue<bfloat16>> state;
    mp::detail::finish_inner_chunk(device_thread(), c, from[threadIdx.x].values, {}, threadIdx.x, column,
                                   state);
}

// A chunk of C times slopes at one of another matrix.
using gradient_epilogue =
    mp::activation_gradient_epilogue<mp::detail::slope_of_function<mp::detail::relu_function>, bfloat16>;
using gradient_output = mp::detail::product_output<bfloat16, gradient_epilogue>;

extern "C" __global__ void end_gradient(const mp::detail::chunk<float, 8>* from, gradient_output c,
                                        int column) {
    c.beta = 0;
    mp::detail::tile_state<gradient_epilogue> state;
    mp::detail::finish_inner_chunk(device_thread(), c, from[threadIdx.x].values, {}, threadIdx.x, column,
                                   state);
}
