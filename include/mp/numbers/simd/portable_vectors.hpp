// SPDX-License-Identifier: MIT
/// \file
/// Four floats in the vector types of g++ and clang, which every processor has or does without: SSE2, NEON
/// and others. Where there are none (nvcc), or floats are calculated by the x87 unit, portable_vectors is
/// another name of single_lane.
///
/// Every operation is rounded to float by itself, whatever the compiler was told about fused operations,
/// reciprocals and the order of sums (-ffp-contract, -ffast-math): so that all kernels have the same bits.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/single_lane.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__CUDACC__) && !MP_X87_ARITHMETIC
#define MP_PORTABLE_VECTORS 1

#define MP_TARGET portable_vectors
#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#include <mp/numbers/simd/vector_types.inl>
#undef MP_TARGET
#undef MP_TARGET_NUMBER

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace portable_vectors {

/// The value, opaque to the optimiser, so that it is rounded as if it were stored.
template <class Vector>
MP_ALWAYS_INLINE Vector opt_barrier(Vector x) {
#if defined(__SSE2__)
    __asm__("" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("" : "+w"(x));
#else
    __asm__("" : "+m"(x));
#endif
    return x;
}

MP_ALWAYS_INLINE doubles widen_half(half_floats x) {
    return __builtin_convertvector(x, doubles);
}
MP_ALWAYS_INLINE half_floats narrow_to_half(doubles x) {
    return __builtin_convertvector(x, half_floats);
}

/// The square root and the quotient, correctly rounded.
MP_ALWAYS_INLINE vec<float> sqrt(vec<float> x) {
#if defined(__AVX__)
    __asm__("vsqrtps %0, %0" : "+x"(x));
#elif defined(__SSE2__)
    __asm__("sqrtps %0, %0" : "+x"(x));
#elif defined(__aarch64__)
    __asm__("fsqrt %0.4s, %0.4s" : "+w"(x));
#else
    for (std::size_t i = 0; i < lanes; ++i) x[i] = float_sqrt(x[i]);
#endif
    return x;
}
MP_ALWAYS_INLINE vec<float> div(vec<float> a, vec<float> b) {
#if defined(__AVX__)
    __asm__("vdivps %1, %0, %0" : "+x"(a) : "x"(b));
#elif defined(__SSE2__)
    __asm__("divps %1, %0" : "+x"(a) : "x"(b));
#elif defined(__aarch64__)
    __asm__("fdiv %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(b));
#else
    a = opt_barrier(a / b);
#endif
    return a;
}
/// Whether a comparison holds in some lane.
MP_ALWAYS_INLINE bool any(vec<std::int32_t> mask) {
#if defined(__SSE2__)
    int bits = 0;
    __asm__("movmskps %1, %0" : "=r"(bits) : "x"(mask));
    return bits != 0;
#else
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
#endif
}
/// a b + c, rounded once.
///
/// On x86-64 without an instruction for it: the products are exact in double, and the sums, rounded to
/// double, round to the floats that the exact sums round to: the midpoint between two floats is a double, and
/// rounding is monotonic, so that only a rounded sum that is a midpoint itself may hide on which side the
/// exact one lies. Those, and subnormal floats, whose midpoints are others, go one by one.
MP_ALWAYS_INLINE vec<float> multiply_add(vec<float> a, vec<float> b, vec<float> c) {
#if defined(__FMA__)
    __asm__("vfmadd213ps %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
#elif defined(__aarch64__)
    __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b));
    return c;
#else
#if defined(__x86_64__)
    const auto sum_of = [](half_floats x, half_floats y, half_floats z) {
        return opt_barrier(opt_barrier(widen_half(x) * widen_half(y)) + widen_half(z));
    };
    const doubles low = sum_of(low_half(a), low_half(b), low_half(c));
    const doubles high = sum_of(high_half(a), high_half(b), high_half(c));
    using words = vec<std::uint32_t>;
    const words last =
        __builtin_shufflevector(reinterpret_cast<words>(low), reinterpret_cast<words>(high), 0, 2, 4, 6);
    const words first =
        __builtin_shufflevector(reinterpret_cast<words>(low), reinterpret_cast<words>(high), 1, 3, 5, 7);
    const auto is_midpoint = (last & 0x1FFF'FFFFU) == 0x1000'0000U;
    const auto is_tiny = (first & 0x7FFF'FFFFU) - 1U < 0x3820'0000U - 1U;  // below 2^-125, but not 0
    if (!any(is_midpoint | is_tiny)) return join_halves(narrow_to_half(low), narrow_to_half(high));
#endif
    for (std::size_t i = 0; i < lanes; ++i) c[i] = float_multiply_add(a[i], b[i], c[i]);
    return c;
#endif
}
/// The larger ones, for a with a negative sign; b where it is NaN. The codes of what is smaller follow it, up
/// to that of -infinity.
MP_ALWAYS_INLINE vec<float> larger_or_second(vec<float> a, vec<float> b) {
    const vec<std::uint32_t> beyond = as_uint32(b) - as_uint32(a);
    return beyond <= 0xFF80'0000U - as_uint32(a) ? a : b;
}
MP_ALWAYS_INLINE vec<std::uint32_t>(min)(vec<std::uint32_t> a, vec<std::uint32_t> b) {
    return a < b ? a : b;
}
MP_ALWAYS_INLINE vec<std::int32_t>(min)(vec<std::int32_t> a, vec<std::int32_t> b) {
    return a < b ? a : b;
}
MP_ALWAYS_INLINE vec<std::int32_t>(max)(vec<std::int32_t> a, vec<std::int32_t> b) {
    return a > b ? a : b;
}
/// The largest lane.
MP_ALWAYS_INLINE std::int32_t reduce_max(vec<std::int32_t> x) {
    const std::int32_t low = x[0] > x[1] ? x[0] : x[1];
    const std::int32_t high = x[2] > x[3] ? x[2] : x[3];
    return low > high ? low : high;
}

/// The first n elements, n less than the number of lanes; zeros in the other lanes.
MP_ALWAYS_INLINE vec<float> load_partial(const float* from, std::size_t n) {
    float values[lanes] = {};
    std::memcpy(values, from, n * sizeof(float));
    return load(values);
}
MP_ALWAYS_INLINE void store_partial(float* to, vec<float> x, std::size_t n) {
    float values[lanes];
    store(values, x);
    std::memcpy(to, values, n * sizeof(float));
}

/// As many doubles as a register holds, at most.
MP_ALWAYS_INLINE doubles load_partial(const double* from, std::size_t n) {
    doubles x{};
    for (std::size_t i = 0; i < n; ++i) x[i] = from[i];
    return x;
}
MP_ALWAYS_INLINE void store_partial(double* to, doubles x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] = x[i];
}
/// The first n lanes, and `fill`.
MP_ALWAYS_INLINE doubles or_fill(doubles x, std::size_t n, double fill) {
    for (std::size_t i = n; i < 2; ++i) x[i] = fill;
    return x;
}

}}}  // namespace mp::detail::portable_vectors

#else
#define MP_PORTABLE_VECTORS 0

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {
namespace portable_vectors = single_lane;
}}

#endif
