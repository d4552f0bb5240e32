// SPDX-License-Identifier: MIT
// One instruction for both numbers of a pair, and none but these:
// architecture 90
// expects 1 add.rn.f16x2
// expects 1 sub.rn.f16x2
// expects 1 mul.rn.f16x2
// expects 1 fma.rn.f16x2
// expects 1 min.NaN.f16x2
// expects 1 set.lt.u32.f16x2
// expects 4 fma.rn.bf16x2
// expects 1 max.bf16x2
// expects 0 cvt[.]
// expects 0 [.](f16|bf16|f32) %
// expects 0 [ \t](bra|call|prmt)
#include <mp/packed2.hpp>

using mp::bfloat162;
using mp::half2;

__global__ void halves(half2 a, half2 b, half2 c, half2* out, unsigned* masks) {
    out[0] = a + b;
    out[1] = a - b;
    out[2] = a * b;
    out[3] = mp::fma(a, b, c);
    out[4] = mp::minimum(a, b);
    out[5] = -a;
    out[6] = mp::fabs(a);
    masks[0] = mp::less_mask(a, b);
}

__global__ void bfloats(bfloat162 a, bfloat162 b, bfloat162 c, bfloat162* out) {
    out[0] = a + b;
    out[1] = a - b;
    out[2] = a * b;
    out[3] = mp::fma(a, b, c);
    out[4] = mp::fmax(a, b);
}
