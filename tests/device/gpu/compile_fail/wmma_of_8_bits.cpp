// expects: nvcuda::wmma does not multiply 8 bits
// SPDX-License-Identifier: MIT
#include <mp/float8.hpp>
#include <mp/gpu.hpp>
#include <mp/matrix_view.hpp>

int main() {
    mp::float8_e4m3fn a[16];
    mp::float8_e4m3fn b[16];
    float c[16];
    mp::gemm<mp::gpu_gemm_kernel::wmma>(mp::simulated_gpu<mp::arch::sm_90>{}, 1, mp::row_major(a, 4, 4),
                                        mp::row_major(b, 4, 4), 0, mp::row_major(c, 4, 4));
}
