// SPDX-License-Identifier: MIT
/// \file
/// Single operations of float and double on devices, as instructions of PTX: what float_arithmetic.hpp, which
/// includes this there, has for hosts. An explicit `.rn` without `.ftz` keeps the results the same under
/// nvcc's -ftz, -prec-div and --use_fast_math, and a product and a sum apart.
#pragma once

#include <mp/config.hpp>

#if MP_DEVICE_CODE

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr bool float_arithmetic_rounds_to_nearest = true;

__device__ __forceinline__ float added_by_instruction(float a, float b) {
    float result;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float subtracted_by_instruction(float a, float b) {
    float result;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float multiplied_by_instruction(float a, float b) {
    float result;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float float_multiply_add(float a, float b, float c) {
    float result;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
    return result;
}
__device__ __forceinline__ float divided_by_instruction(float a, float b) {
    float result;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
    return result;
}
__device__ __forceinline__ float root_by_instruction(float a) {
    float result;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(a));
    return result;
}

__device__ __forceinline__ double added_by_instruction(double a, double b) {
    double result;
    asm("add.rn.f64 %0, %1, %2;" : "=d"(result) : "d"(a), "d"(b));
    return result;
}
__device__ __forceinline__ double subtracted_by_instruction(double a, double b) {
    double result;
    asm("sub.rn.f64 %0, %1, %2;" : "=d"(result) : "d"(a), "d"(b));
    return result;
}
__device__ __forceinline__ double multiplied_by_instruction(double a, double b) {
    double result;
    asm("mul.rn.f64 %0, %1, %2;" : "=d"(result) : "d"(a), "d"(b));
    return result;
}
__device__ __forceinline__ double divided_by_instruction(double a, double b) {
    double result;
    asm("div.rn.f64 %0, %1, %2;" : "=d"(result) : "d"(a), "d"(b));
    return result;
}
__device__ __forceinline__ double root_by_instruction(double a) {
    double result;
    asm("sqrt.rn.f64 %0, %1;" : "=d"(result) : "d"(a));
    return result;
}

__device__ __forceinline__ double double_from_float(float a) {
    double result;
    asm("cvt.f64.f32 %0, %1;" : "=d"(result) : "f"(a));
    return result;
}
__device__ __forceinline__ float float_from_double(double a) {
    float result;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(result) : "d"(a));
    return result;
}

}}  // namespace mp::detail

#endif
