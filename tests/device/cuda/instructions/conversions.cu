// SPDX-License-Identifier: MIT
// Floats, halves and 8-bit numbers become one another two at a time, and NaN is put right by hand:
// architecture 90
// expects 1 cvt.rn.f16x2.f32
// expects 1 cvt.rn.bf16x2.f32
// expects 1 cvt.rn.satfinite.f16x2.f32
// expects 1 cvt.rn.satfinite.e4m3x2.f32
// expects 2 cvt.rn.satfinite.e5m2x2.f32
// expects 1 cvt.rn.f16x2.e4m3x2
// expects 1 cvt.rn.satfinite.e5m2x2.f16x2
// expects 0 cvt.rn.(f16|bf16).f32
#include <mp/device/gpu/convert_chunks.hpp>
#include <mp/float8.hpp>
#include <mp/packed2.hpp>

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::half;
using mp::packed2;

__global__ void narrow(float x, float y, packed2<half>* halves, packed2<bfloat16>* bfloats,
                       packed2<float8_e4m3fn>* e4m3, packed2<float8_e5m2>* e5m2) {
    *halves = packed2<half>(x, y);
    *bfloats = packed2<bfloat16>(x, y);
    *e4m3 = packed2<float8_e4m3fn>(x, y);
    *e5m2 = packed2<float8_e5m2>(x, y);
}

__global__ void widen(packed2<float8_e4m3fn> x, mp::float_pair* out) {
    *out = x.floats();
}

__global__ void narrow_halves(packed2<half> x, packed2<float8_e5m2>* out) {
    *out = packed2<float8_e5m2>(x);
}

__global__ void saturate(mp::detail::chunk<float, 2> x, mp::detail::chunk<half, 2>* out) {
    const mp::projection saturating{mp::rounding::nearest_even, mp::saturation::finite};
    *out = mp::detail::nearest_even_conversion{saturating}.convert<half>(x, 0);
}
