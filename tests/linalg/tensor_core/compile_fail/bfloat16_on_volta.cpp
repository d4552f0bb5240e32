// expects: the tensor cores of this architecture do not multiply this type into this accumulator
// SPDX-License-Identifier: MIT
#include <mp/tensor_core.hpp>

void multiply(mp::matrix_view<const mp::bfloat16> a, mp::matrix_view<const mp::bfloat16> b,
              mp::matrix_view<float> c) {
    mp::gemm(mp::emulated<mp::arch::sm_70>{}, 1.0F, a, b, 0.0F, c);
}
