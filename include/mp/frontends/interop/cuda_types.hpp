// SPDX-License-Identifier: MIT
/// \file
/// The number types of the CUDA headers, without a copy: __half, __nv_bfloat16, and the 8-, 6- and 4-bit
/// types. For every compiler that can read those headers, on host and device.
///
/// The bits mean the same on both sides. The conversions of the CUDA headers, which are not used here, differ
/// from this library's in that they saturate by default, drop the sign of NaN, and turn NaN into the largest
/// number of the 6- and 4-bit formats with a sign of its own.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/interop/same_layout.hpp>
#include <mp/half.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>

namespace mp {

namespace detail {

/// The CUDA type of a number of this library, and the other way round.
template <class T>
struct cuda_counterpart;
template <class T>
struct counterpart_of_cuda;

// One pair of types.
#define MP_CUDA_COUNTERPART(Ours, Theirs)                                             \
    template <>                                                                       \
    struct cuda_counterpart<Ours> {                                                   \
        using type = Theirs;                                                          \
    };                                                                                \
    template <>                                                                       \
    struct counterpart_of_cuda<Theirs> {                                              \
        using type = Ours;                                                            \
    };                                                                                \
    static_assert(sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs), \
                  "mp: a number has another size or alignment than its counterpart in CUDA")

MP_CUDA_COUNTERPART(half, __half);
MP_CUDA_COUNTERPART(bfloat16, __nv_bfloat16);
MP_CUDA_COUNTERPART(float8_e4m3fn, __nv_fp8_e4m3);
MP_CUDA_COUNTERPART(float8_e5m2, __nv_fp8_e5m2);
MP_CUDA_COUNTERPART(float8_e8m0fnu, __nv_fp8_e8m0);
MP_CUDA_COUNTERPART(float6_e2m3fn, __nv_fp6_e2m3);
MP_CUDA_COUNTERPART(float6_e3m2fn, __nv_fp6_e3m2);
MP_CUDA_COUNTERPART(float4_e2m1fn, __nv_fp4_e2m1);
#undef MP_CUDA_COUNTERPART

template <class T>
using cuda_counterpart_t = typename cuda_counterpart<std::remove_const_t<T>>::type;
template <class T>
using counterpart_of_cuda_t = typename counterpart_of_cuda<std::remove_const_t<T>>::type;

}  // namespace detail

/// A number of this library that the CUDA headers have a type for, and such a type.
template <class T>
concept has_cuda_type = requires { typename detail::cuda_counterpart_t<T>; };
template <class T>
concept cuda_number = requires { typename detail::counterpart_of_cuda_t<T>; };

/// The same bits as a number of CUDA.
///
///     __half h = mp::to_cuda(mp::half{0.1f});
template <has_cuda_type T>
[[nodiscard]] MP_HOST_DEVICE constexpr detail::cuda_counterpart_t<T> to_cuda(T x) noexcept {
    return detail::bit_cast<detail::cuda_counterpart_t<T>>(x);
}

/// The same bits as a number of this library. What lies above the 6 or 4 bits of a small one is dropped.
template <cuda_number T>
[[nodiscard]] MP_HOST_DEVICE constexpr detail::counterpart_of_cuda_t<T> from_cuda(T x) noexcept {
    using number = detail::counterpart_of_cuda_t<T>;
    return number::from_bits(detail::bit_cast<typename number::storage>(x));
}

/// The same memory under the other type. See view_as in same_layout.hpp for what to mind.
///
///     cublas_call(mp::as_cuda(weights.data()), ...);               // const mp::half* to const __half*
template <has_cuda_type T>
[[nodiscard]] MP_HOST_DEVICE auto as_cuda(T* x) noexcept {
    return reinterpret_cast<detail::with_constness_of<detail::cuda_counterpart_t<T>, T>*>(x);
}
template <cuda_number T>
[[nodiscard]] MP_HOST_DEVICE auto view_of_cuda(T* x) noexcept {
    return reinterpret_cast<detail::with_constness_of<detail::counterpart_of_cuda_t<T>, T>*>(x);
}
template <has_cuda_type T>
[[nodiscard]] auto as_cuda(std::span<T> x) noexcept {
    return detail::view_as<detail::cuda_counterpart_t<T>>(x);
}
template <cuda_number T>
[[nodiscard]] auto view_of_cuda(std::span<T> x) noexcept {
    return detail::view_as<detail::counterpart_of_cuda_t<T>>(x);
}

}  // namespace mp
