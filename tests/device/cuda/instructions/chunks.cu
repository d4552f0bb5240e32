// SPDX-License-Identifier: MIT
// Chunks are converted in pairs to nearest even, and in other roundings by code that is there once:
// architecture 90
// expects 4 cvt.rn.f16x2.f32
// expects 4 cvt.rn.satfinite.e4m3x2.f16x2
// expects 1 cvt.rz.bf16.f32
// expects 1 cvt.rp.bf16.f32
// expects 0 [.]local
#include <mp/bfloat16.hpp>
#include <mp/device/gpu/convert_chunks.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::half;
using mp::detail::chunk;

__global__ void nearest(chunk<float, 8> x, chunk<half, 8>* out) {
    *out = mp::detail::nearest_conversion{}.convert<half>(x, 0);
}

__global__ void saturating(chunk<half, 8> x, chunk<float8_e4m3fn, 8>* out) {
    const mp::projection p{mp::rounding::nearest_even, mp::saturation::finite};
    *out = mp::detail::nearest_even_conversion{p}.convert<float8_e4m3fn>(x, 0);
}

__global__ void any(chunk<float, 4> x, mp::projection p, chunk<bfloat16, 4>* out) {
    *out = mp::detail::any_conversion{p}.convert<bfloat16>(x, 0);
}
