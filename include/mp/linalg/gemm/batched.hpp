// SPDX-License-Identifier: MIT
/// \file
/// Many products of one shape.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/matrix_batch.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Checks the matrices of a batch of at least one product.
template <class A, class B, class C>
void check_batch(std::string_view function, std::ptrdiff_t count, const matrix_batch<A>& a,
                 const matrix_batch<B>& b, const matrix_batch<C>& c) {
    const auto extent = extent_of(c.first);
    check_view(function, "c", extent);
    const std::ptrdiff_t length = static_cast<std::ptrdiff_t>(extent.byte_count()) / extent.element_size;
    if (count > 1 && (c.stride < 0 ? -c.stride : c.stride) < length) {
        throw_argument(function, "c.stride", c.stride,
                       "must be at least the length of a matrix, which is " + error_text(length));
    }
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        check_product(function, extent_of(a[i]), extent_of(b[i]), extent_of(c[i]));
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// c[i] = epilogue(alpha * a[i] b[i] + beta * c[i]) for i in [0, count), each as mp::gemm computes it, with
/// the same bits. The threads share the products where there are at least as many of them as threads, and
/// else each product.
///
///     // Scores of attention: heads x (tokens x size) by heads x (size x tokens).
///     mp::gemm_batched(exec, heads, 1, mp::matrix_batch{queries, tokens * size},
///                      mp::matrix_batch{mp::transposed(keys), tokens * size}, 0,
///                      mp::matrix_batch{scores, tokens * tokens});
///
/// Throws argument_error, before anything is written, as mp::gemm does for each of the products, for a
/// negative count, and where c's stride, with more than one product, is shorter than its matrix so that
/// results would overlap. Operands must not overlap any result.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_batched(cpu exec, std::ptrdiff_t count, float alpha, matrix_batch<A> a, matrix_batch<B> b,
                  float beta, matrix_batch<C> c, Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm_batched";
    detail::check_threads(function, exec);
    if (count < 0) detail::throw_argument(function, "count", count, "must not be negative");
    if (count == 0) return;
    detail::check_batch(function, count, a, b, c);
    detail::validate_batch_epilogue(epilogue, count, c, detail::product_input{"a", a, count},
                                    detail::product_input{"b", b, count});
    static_cast<void>(detail::isa_of(function, exec));

    cpu inner = exec;
    cpu outer = exec;
    (count >= detail::threads_of(exec) ? inner : outer).threads = 1;
    detail::parallel_for(outer, static_cast<std::size_t>(count), 1, [&](std::size_t begin, std::size_t end) {
        gemm_workspace workspace;
        for (std::size_t i = begin; i < end; ++i) {
            const auto index = static_cast<std::ptrdiff_t>(i);
            gemm(inner, alpha, a[index], b[index], beta, c[index], epilogue, workspace);
        }
    });
}

}}  // namespace mp
