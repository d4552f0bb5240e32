// SPDX-License-Identifier: MIT
/// \file
/// Matrix products on CUDA devices for sources of any C++20 compiler: without nvcc, and without the kernels of
/// <mp/cuda.hpp>, which are compiled once for all sources of a program.
#pragma once

#include <mp/config.hpp>
#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/error.hpp>
#include <mp/device/cuda/stream.hpp>
#include <mp/device/gpu/compiled_product.hpp>
#include <mp/linalg/gemm/matrix_batch.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <type_traits>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The general matrix product c = epilogue(alpha * a b + beta * c) on a CUDA device, by kernels that another source of the
/// program has compiled: shapes, layouts, rounding, bits, errors and stream order are those of mp::gemm in
/// <mp/device/gpu/gemm.hpp>. The header needs the CUDA runtime's headers, and the program its library.
///
///     #include <mp/cuda_gemm.hpp>
///     mp::gemm(stream, 1.0f, x, mp::transposed(w), 0.0f, y,
///              {.bias = bias.span(), .activation = mp::activation::gelu});
///
/// In CMake, mp::compiled_cuda has the kernels. A and B, and C in brackets: half and half, bfloat16 and bfloat16 (float, or
/// that of A), tfloat32 and tfloat32 (float), the float8 e4m3fn and e4m3fn, e4m3fn and e5m2, e5m2 and e4m3fn (float,
/// bfloat16), half or bfloat16 and std::int8_t (that of A). Without it, or for other types, a source for nvcc has an explicit
/// instantiation of mp::compiled_product. Types of which there is none end in an undefined reference to
/// mp::compiled_product<mp::cuda_stream, A, B, C>::multiply, and so do sources where errors are no exceptions beside kernels
/// where they are.
///
/// In sources that include <mp/cuda.hpp> as well, products without an epilogue or with an mp::product_epilogue take these
/// kernels; those with a function object compile theirs.
template <class A, class B, class C>
void gemm(const cuda_stream& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
          matrix_view<C> c, const product_epilogue& epilogue = {}) {
    compiled_product<cuda_stream, std::remove_const_t<A>, std::remove_const_t<B>, C>::multiply(
        exec, alpha, a, b, beta, c, epilogue);
}
/// Overload for the owner of a stream.
template <class A, class B, class C>
void gemm(const unique_cuda_stream& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
          matrix_view<C> c, const product_epilogue& epilogue = {}) {
    gemm(exec.get(), alpha, a, b, beta, c, epilogue);
}

/// c[i] = epilogue(alpha * a[i] b[i] + beta * c[i]) for i in [0, count): see gemm above and gemm_batched in
/// <mp/device/gpu/gemm.hpp>. One launch, except where A and B are two types other than the two float8,
/// which take one each.
template <class A, class B, class C>
void gemm_batched(const cuda_stream& exec, std::ptrdiff_t count, float alpha, matrix_batch<A> a,
                  matrix_batch<B> b, float beta, matrix_batch<C> c, const product_epilogue& epilogue = {}) {
    compiled_product<cuda_stream, std::remove_const_t<A>, std::remove_const_t<B>, C>::multiply_batch(
        exec, count, alpha, {a.first, a.stride}, {b.first, b.stride}, beta, c, epilogue);
}
/// Overload for the owner of a stream.
template <class A, class B, class C>
void gemm_batched(const unique_cuda_stream& exec, std::ptrdiff_t count, float alpha, matrix_batch<A> a,
                  matrix_batch<B> b, float beta, matrix_batch<C> c, const product_epilogue& epilogue = {}) {
    gemm_batched(exec.get(), count, alpha, a, b, beta, c, epilogue);
}

}}  // namespace mp
