// expects: both operands on a tensor core are of one type
// SPDX-License-Identifier: MIT
#include <mp/tensor_core.hpp>

void multiply(mp::matrix_view<const mp::half> a, mp::matrix_view<const mp::bfloat16> b,
              mp::matrix_view<float> c) {
    mp::gemm(mp::emulated<mp::arch::sm_90>{}, 1.0F, a, b, 0.0F, c);
}
