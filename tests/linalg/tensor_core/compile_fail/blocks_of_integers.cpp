// expects: tensor cores multiply MXFP8, MXFP6 and MXFP4, each or mixed
// SPDX-License-Identifier: MIT
#include <mp/tensor_core.hpp>

void multiply(const mp::mxint8& a, const mp::mxint8& b, mp::matrix_view<float> c) {
    mp::gemm(mp::emulated<mp::arch::sm_100>{}, 1.0F, a, b, 0.0F, c);
}
