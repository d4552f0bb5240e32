// SPDX-License-Identifier: MIT
// One product on a CUDA device: with its kernels, or with those of mp::compiled_cuda.
#if defined(MP_COMPILED)
#include <mp/cuda_gemm.hpp>
#else
#include <mp/cuda.hpp>
#endif
#include <mp/half.hpp>

void multiply(mp::cuda_stream stream, const mp::half* a, const mp::half* b, float* c, int n) {
    mp::gemm(stream, 1.0F, mp::row_major(a, n, n), mp::row_major(b, n, n), 0.0F, mp::row_major(c, n, n));
}
