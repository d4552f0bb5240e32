// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on the CPU.
#pragma once

#include <mp/detail/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/format/basic_float.hpp>
#include <mp/gemm/blocked_product.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gemm/micro_kernel.hpp>
#include <mp/gemm/packing.hpp>
#include <mp/gemm/tile_output.hpp>
#include <mp/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace mp {
namespace detail {

/// c = epilogue(beta * c), or epilogue(0) where beta is 0: the product without its factors.
inline void scale_output(const tile_output& c, std::ptrdiff_t rows, std::ptrdiff_t columns) {
    constexpr std::ptrdiff_t run = most_tile_columns;
    float tile[run];
    for (std::ptrdiff_t row = 0; row < rows; ++row) {
        for (std::ptrdiff_t column = 0; column < columns; column += run) {
            c.finish(c, tile, run, false, row, column, 1, std::min(run, columns - column));
        }
    }
}

/// mp::gemm with a chosen micro-kernel.
template <class Kernel, class A, class B, class C, class Epilogue>
void gemm_with(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
               const Epilogue& epilogue) {
    constexpr std::string_view function = "mp::gemm";
    check_threads(function, exec);
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    if constexpr (requires { epilogue.validate(c.rows, c.columns); }) epilogue.validate(c.rows, c.columns);
    if (c.rows == 0 || c.columns == 0) return;

    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    const bool swapped = c.order == storage_order::column_major;
    const tile_output output = make_tile_output(c.data, c.leading_dimension, swapped, alpha, beta, epilogue);
    const std::ptrdiff_t rows = swapped ? c.columns : c.rows;
    const std::ptrdiff_t columns = swapped ? c.rows : c.columns;
    if (alpha == 0.0F || a.columns == 0) {
        scale_output(output, rows, columns);
        return;
    }
    product_task task{{}, {}, output, rows, columns, a.columns};
    if (swapped) {  // the transposed product: c^T = b^T a^T
        task.a = make_panel_source<Kernel::rows, b_value>(b.data, b.column_stride(), b.row_stride());
        task.b = make_panel_source<Kernel::width, a_value>(a.data, a.row_stride(), a.column_stride());
    } else {
        task.a = make_panel_source<Kernel::rows, a_value>(a.data, a.row_stride(), a.column_stride());
        task.b = make_panel_source<Kernel::width, b_value>(b.data, b.column_stride(), b.row_stride());
    }
    multiply_blocked<Kernel>(exec, task);
}

}  // namespace detail

/// An element type of the factors of a matrix product: float, or a reduced format, of which float holds every
/// value.
template <class Value>
concept gemm_input = number<Value> && !std::is_same_v<std::remove_cv_t<Value>, double>;

/// An element type of the result of a matrix product.
template <class Value>
concept gemm_output = number<Value> && !std::is_const_v<Value>;

/// The general matrix product c = epilogue(alpha * a b + beta * c), for any mix of element types.
///
/// Shapes: a is m x k, b is k x n, c is m x n, each in its own storage order with its own leading dimension;
/// any sizes, zero included, and any alignment. mp::transposed(view) gives the products with transposed
/// factors.
///
/// Numerics: elements of a and b are exact in float. The products of one element of c are added in float in
/// ascending k, starting from zero and rounding to nearest after each step; a step is one fused multiply-add
/// where the compiler may contract for the target, else a multiplication and an addition. So a b has an error
/// of at most g sum |a||b| with g = (k + 1) u / (1 - (k + 1) u), u = 2^-24, as long as nothing overflows or
/// becomes subnormal on the way. Then alpha * ab + beta * c is formed from exact products and rounded to
/// float (a double c takes part rounded to float), the epilogue works in float, and the result is rounded
/// once to the type of c, nearest-even; overflow gives infinity, or NaN in formats without infinity. The bits
/// of an element (other than those of a NaN) depend on its row of a, its column of b, its own c, alpha and
/// beta and on nothing else: not on the number of threads, the shape around it, leading dimensions or storage
/// orders.
///
/// As in BLAS, beta == 0 means that c is not read, so that NaN in uninitialised memory does no harm, and
/// alpha == 0 or k == 0 that a and b are not read: c = epilogue(beta * c). Infinities and NaN propagate as
/// the sum demands. Padding between the lines of c is left alone.
///
/// Runs on exec.threads threads, fewer where the product is small. Memory for packed blocks is taken from the
/// heap unless they fit in 32 KiB of stack; on one thread it is at most about 10 MiB. Different calls may run
/// concurrently when none writes what another one reads or writes.
///
/// Throws argument_error, before anything is written, for: fewer than one thread; a negative size; a leading
/// dimension shorter than a line; null data with a non-zero size; b.rows or c's shape that does not fit; a c
/// that overlaps a or b (blocks that interleave in one larger matrix of equal leading dimension, in the same
/// order, are told apart exactly; otherwise the ranges from first to last byte must be disjoint); an epilogue
/// that rejects the shape of c. std::bad_alloc, too, leaves c as it was.
///
/// Kernel is not for users to choose: it makes code that is compiled for different instruction sets different
/// functions to the linker.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue,
          class Kernel = detail::native_kernel>
void gemm(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::gemm_with<Kernel>(exec, alpha, a, b, beta, c, epilogue);
}

/// Name of the micro-kernel with which mp::gemm runs in this translation unit: where it runs, the type of its
/// accumulators, the instruction set that the compiler was told to use, and rows x columns of its register
/// tile.
template <class Kernel = detail::native_kernel>
[[nodiscard]] constexpr std::string_view gemm_kernel_name() {
    return Kernel::name;
}

}  // namespace mp
