// SPDX-License-Identifier: MIT
/// \file
/// Vectors of one lane, under the names that vec.inl gives to wider ones: for code on GPUs, where a thread is
/// a lane, and for hosts without vector types. Every operation is rounded by itself; on a device by
/// instructions that neither -fmad, -ftz nor --use_fast_math changes.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace single_lane {

inline constexpr std::size_t lanes = 1;

/// A float whose only operators are comparisons: arithmetic is by functions, as with the vectors.
struct float_lane {
    float value;

    friend MP_HOST_DEVICE MP_ALWAYS_INLINE bool operator>(float_lane a, float b) { return a.value > b; }
    friend MP_HOST_DEVICE MP_ALWAYS_INLINE bool operator<(float_lane a, float b) { return a.value < b; }
};

template <class T>
struct vec_of {
    using type = T;
};
template <>
struct vec_of<float> {
    using type = float_lane;
};
template <class T>
using vec = typename vec_of<T>::type;

MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<float> broadcast(float x) {
    return float_lane{x};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<float> broadcast(vec<float> x) {
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> broadcast(std::uint32_t x) {
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> as_uint32(vec<float> x) {
    return bit_cast<std::uint32_t>(x.value);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::int32_t> as_int32(vec<float> x) {
    return bit_cast<std::int32_t>(x.value);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::int32_t> as_int32(vec<std::uint32_t> x) {
    return static_cast<std::int32_t>(x);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::uint32_t> as_uint32(vec<std::int32_t> x) {
    return static_cast<std::uint32_t>(x);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<float> as_float(vec<std::uint32_t> x) {
    return float_lane{bit_cast<float>(x)};
}
/// A number that fits, cut to an integer, and back.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<std::int32_t> truncate(vec<float> x) {
    return static_cast<std::int32_t>(x.value);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<float> to_floats(vec<std::int32_t> x) {
    return float_lane{static_cast<float>(x)};
}

template <class A, class B>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> add(A a, B b) {
    return float_lane{float_add(broadcast(a).value, broadcast(b).value)};
}
template <class A, class B>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> sub(A a, B b) {
    return float_lane{float_subtract(broadcast(a).value, broadcast(b).value)};
}
template <class A, class B>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> mul(A a, B b) {
    return float_lane{float_multiply(broadcast(a).value, broadcast(b).value)};
}
template <class A, class B>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> div(A a, B b) {
    return float_lane{float_divide(broadcast(a).value, broadcast(b).value)};
}
template <class A, class B, class C>
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> fma(A a, B b, C c) {
    return float_lane{float_multiply_add(broadcast(a).value, broadcast(b).value, broadcast(c).value)};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> sqrt(vec<float> x) {
    return float_lane{float_sqrt(x.value)};
}

/// Whether a comparison holds in some lane.
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr bool any(bool mask) {
    return mask;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr vec<float> select(bool mask, vec<float> a, vec<float> b) {
    return mask ? a : b;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> select_by_sign(vec<float> x, vec<float> a, vec<float> b) {
    return as_int32(x) < 0 ? a : b;
}
/// The larger one of x and a limit with a negative sign; NaN stays. The codes of what is smaller than the
/// limit follow it, up to that of -infinity.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> max_or_nan(float limit, vec<float> x) {
    const auto first = bit_cast<std::uint32_t>(limit);
    return as_uint32(x) - first <= 0xFF80'0000U - first ? broadcast(limit) : x;
}
/// x where d is above the limit, which has a negative sign, or NaN; else 0.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> zero_unless_above(float limit, vec<float> d, vec<float> x) {
    const auto first = bit_cast<std::uint32_t>(limit);
    return as_uint32(d) - first <= 0xFF80'0000U - first ? broadcast(0.0F) : x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::uint32_t>(min)(vec<std::uint32_t> a, vec<std::uint32_t> b) {
    return a < b ? a : b;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::int32_t>(min)(vec<std::int32_t> a, vec<std::int32_t> b) {
    return a < b ? a : b;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<std::int32_t>(max)(vec<std::int32_t> a, vec<std::int32_t> b) {
    return a > b ? a : b;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE std::int32_t reduce_max(vec<std::int32_t> x) {
    return x;
}

MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> load(const float* from) {
    return float_lane{*from};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE void store(float* to, vec<float> x) {
    *to = x.value;
}
// Doubles.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> broadcast(double x) {
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> widen(vec<float> x) {
    return static_cast<double>(x.value);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> load_wide(const float* from) {
    return static_cast<double>(*from);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> narrow(vec<double> x) {
    return float_lane{static_cast<float>(x)};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> add(vec<double> a, vec<double> b) {
    return double_add(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> sub(vec<double> a, vec<double> b) {
    return double_subtract(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> mul(vec<double> a, vec<double> b) {
    return double_multiply(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double reduce_add(vec<double> x) {
    return x;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double div(double a, double b) {
    return double_divide(a, b);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE double sqrt(double x) {
    return double_sqrt(x);
}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> load_doubles(const double* from) {
    return *from;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE void store(double* to, vec<double> x) {
    *to = x;
}

/// A vector of one lane has no part but none.
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<float> load_partial(const float* /*from*/, std::size_t /*n*/) {
    return float_lane{0.0F};
}
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_partial(float* /*to*/, vec<float> /*x*/, std::size_t /*n*/) {}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> load_partial_doubles(const double* /*from*/, std::size_t /*n*/) {
    return 0.0;
}
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_partial(double* /*to*/, vec<double> /*x*/, std::size_t /*n*/) {}
MP_HOST_DEVICE MP_ALWAYS_INLINE vec<double> or_fill(vec<double> /*x*/, std::size_t /*n*/, double fill) {
    return fill;
}

}}}  // namespace mp::detail::single_lane
