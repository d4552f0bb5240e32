// SPDX-License-Identifier: MIT
/// \file
/// One float under the names that vectors.inl gives to vectors, for kernels on GPUs: the rules of the
/// optimizers, on a device and wherever such a kernel runs on the host. Every operation is rounded by itself;
/// on a device by instructions that neither -fmad nor --use_fast_math changes.
#pragma once

#include <mp/config.hpp>
#include <mp/format/device.hpp>
#include <mp/optim/kernels/coefficients.hpp>
#include <mp/optim/kernels/portable_vectors.hpp>

#include <cstddef>

namespace mp::detail::inline MP_ISA_NAMESPACE::single_floats {

struct floats {
    float value;

    friend MP_HOST_DEVICE MP_ALWAYS_INLINE floats operator*(floats a, floats b) {
        return {float_multiply(a.value, b.value)};
    }
    friend MP_HOST_DEVICE MP_ALWAYS_INLINE floats operator+(floats a, floats b) {
        return {float_add(a.value, b.value)};
    }
    friend MP_HOST_DEVICE MP_ALWAYS_INLINE floats operator-(floats a, floats b) {
        return {float_add(a.value, -b.value)};
    }
};

MP_HOST_DEVICE MP_ALWAYS_INLINE floats all_lanes(float x) {
    return {x};
}

#if MP_DEVICE_CODE

__device__ __forceinline__ floats rounded(floats x) {
    return x;
}
__device__ __forceinline__ floats square_root(floats x) {
    return {float_sqrt(x.value)};
}
__device__ __forceinline__ floats quotient(floats a, floats b) {
    return {float_divide(a.value, b.value)};
}

#else

/// A portable vector with the value in its first lane, and that lane. (all_lanes adds, which a zero of minus
/// sign does not survive.)
MP_HOST_DEVICE inline portable_vectors::floats vector_of(floats x) {
    const float values[portable_vectors::lanes] = {x.value};
    return portable_vectors::load(values);
}
MP_HOST_DEVICE inline floats first_lane(portable_vectors::floats x) {
    float values[portable_vectors::lanes];
    portable_vectors::store(values, x);
    return {values[0]};
}
MP_HOST_DEVICE inline floats rounded(floats x) {
    return first_lane(portable_vectors::rounded(vector_of(x)));
}
MP_HOST_DEVICE inline floats square_root(floats x) {
    return first_lane(portable_vectors::square_root(vector_of(x)));
}
MP_HOST_DEVICE inline floats quotient(floats a, floats b) {
    return first_lane(portable_vectors::quotient(vector_of(a), vector_of(b)));
}

#endif

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::single_floats

#define MP_TARGET single_floats
#include <mp/optim/kernels/update_rules.inl>
#undef MP_TARGET
