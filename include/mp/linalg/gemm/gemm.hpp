// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on the CPU.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/blocked_product.hpp>
#include <mp/linalg/gemm/choose_kernel.hpp>
#include <mp/linalg/gemm/dot_products.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/packed_b.hpp>
#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/skinny.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp {

/// An element type of the result of a matrix product.
template <class Value>
concept gemm_output = number<Value> && !std::is_const_v<Value>;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The task of a row-major product, or of the transposed one, without its operands' types. The product that
/// is computed has A's rows and B's columns as given here.
template <class A, class B>
product_task make_product_task(const product_kernel& kernel, instruction_set isa,
                               const product_operand_source& a, const product_operand_source& b,
                               const tile_output& output, std::ptrdiff_t rows, std::ptrdiff_t columns,
                               std::ptrdiff_t k) {
    constexpr bool a_is_bfloat16 = holds_bfloat16<A>;
    constexpr bool a_is_float = std::is_same_v<A, float>;
    tile_output c = output;
    if (kernel.normal_sums && !c.prepares() && c.write_normal != nullptr) c.write = c.write_normal;
    constexpr bool b_is_its_panel =
        std::is_same_v<B, float> || panel_element_of<B>() == panel_element::binary16;
    return {&kernel,
            a,
            pack_rows_for<A>(isa, kernel),
            kernel.any_strides && a.k_stride == 1 &&
                (kernel.a_element == panel_element::float32 ? a_is_float : a_is_bfloat16),
            b,
            pack_panels_for<B>(isa, kernel.b_element),
            kernel.any_strides && b.vector_stride == 1 && b_is_its_panel &&
                kernel.b_element == panel_element_of<B>(),
            {},
            c,
            rows,
            columns,
            k};
}

/// A product of rows of A with contiguous columns of B, by dot products.
template <class A, class B>
void multiply_dots_of(const cpu& exec, instruction_set isa, const dot_kernels& kernels,
                      const product_operand_source& a, const product_operand_source& b,
                      const tile_output& output, std::ptrdiff_t rows, std::ptrdiff_t columns,
                      std::ptrdiff_t k, gemm_workspace* workspace) {
    const dot_choice choice = choose_dots<A, B>(isa, kernels, rows, columns, k);
    product_task task = make_product_task<A, B>(*choice.rows, isa, a, b, output, rows, columns, k);
    task.c = output;  // what is added up may be subnormal
    multiply_dots(exec, task, sizeof(B), *choice.dots, workspace);
}

/// Most rows of a column-major C that are computed as rows.
inline constexpr std::ptrdiff_t most_rows_by_column = 8;

/// A product behind the checks of mp::gemm, for all results and epilogues, which `output` knows: C has its rows
/// and columns. `packed` is B if it is packed already, else null; then b has its shape.
template <class A, class B>
MP_NEVER_INLINE void multiply_operands(cpu exec, instruction_set isa, matrix_view<const A> a,
                                       matrix_view<const B> b, const packed_panels& packed,
                                       tile_output output, gemm_workspace* workspace) {
    const std::ptrdiff_t rows = a.rows;
    const std::ptrdiff_t columns = b.columns;
    const std::ptrdiff_t k = a.columns;
    const bool is_packed = packed.data != nullptr;
    // Where transposed, c^T = b^T a^T is computed, which has its rows where c has its columns; unless c has so
    // few rows that b is better read where it lies.
    const bool can_be_dots = exec.products == accumulation::fastest && !is_packed;
    const dot_kernels* const dots = can_be_dots && b.row_stride() == 1 && suits_dots(rows, columns, k)
                                        ? dot_kernels_for<B>(isa)
                                        : nullptr;
    const dot_kernels* const transposed_dots =
        can_be_dots && a.column_stride() == 1 && suits_dots(columns, rows, k) ? dot_kernels_for<A>(isa)
                                                                              : nullptr;
    output.transposed =
        dots == nullptr &&
        (transposed_dots != nullptr || (output.column_major && !is_packed && rows > most_rows_by_column));
    if (same_value(output.alpha, 0.0F) || k == 0) {
        const default_floating_point_modes modes;
        finish_without_product(output, rows, columns);
        return;
    }
    const product_operand_source a_rows{a.data, a.row_stride(), a.column_stride()};
    const product_operand_source b_columns{b.data, b.column_stride(), b.row_stride()};
    if (dots != nullptr) {
        return multiply_dots_of<A, B>(exec, isa, *dots, a_rows, b_columns, output, rows, columns, k,
                                      workspace);
    }
    if (transposed_dots != nullptr) {
        return multiply_dots_of<B, A>(exec, isa, *transposed_dots, b_columns, a_rows, output, columns, rows,
                                      k, workspace);
    }
    if (output.transposed) {
        const auto& kernel = choose_kernel(isa, exec.products, product_types_of<B, A>, rows);
        multiply_blocked(exec,
                         make_product_task<B, A>(kernel, isa, b_columns, a_rows, output, columns, rows, k),
                         workspace);
        return;
    }
    const auto& kernel = choose_kernel(isa, exec.products, product_types_of<A, B>, rows);
    product_task task = make_product_task<A, B>(kernel, isa, a_rows, b_columns, output, rows, columns, k);
    const row_runs_kernels* const runs =
        !is_packed && b_columns.vector_stride == 1 ? row_runs_kernels_for<B>(isa) : nullptr;
    const bool from_memory = is_packed && rows <= most_direct_rows && is_far(packed, columns);
    const bool takes_floats = kernel.a_element == panel_element::float32;
    const bool suits_direct = kernel.layout == a_layout::rows &&
                              (from_memory || (takes_floats && rows <= most_direct_rows_in_caches));
    const product_kernel* const direct =
        is_packed && kernel.b_element == panel_element_of<B>() && suits_direct ? &kernel : nullptr;
    if (rows <= most_direct_rows && (direct != nullptr || (runs != nullptr && takes_floats))) {
        task.packed_b = packed;
        const row_runs_kernel* const of_rows = runs == nullptr ? nullptr
                                               : rows == 1     ? &runs->of_row
                                                               : &runs->of_rows;
        multiply_skinny(exec, task, {direct, of_rows, sizeof(B), from_memory}, workspace);
        return;
    }
    if (is_packed && task.kernel->b_element != panel_element_of<B>()) {
        task.b = {packed.data, packed.panel_bytes, 0};
        task.pack_b = widen_panels_for<B>(isa);
    } else if (is_packed) {
        task.packed_b = packed;
    }
    multiply_blocked(exec, task, workspace);
}

/// mp::gemm behind its checks. See multiply_operands() for `packed` and b.
template <class A, class B, class C, class Epilogue>
void gemm_checked(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, const packed_panels& packed,
                  float beta, matrix_view<C> c, const Epilogue& epilogue, gemm_workspace* workspace) {
    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    validate_epilogue(epilogue, c, product_input{"a", a},
                      product_input{"b", b, packed.data == nullptr ? 1 : 0});
    if (c.rows == 0 || c.columns == 0) return;
    const instruction_set isa = isa_of("mp::gemm", exec);
    const tile_output output =
        make_tile_output(isa, c.data, c.leading_dimension, c.order == storage_order::column_major, false,
                         alpha, beta, epilogue);
    multiply_operands<a_value, b_value>(exec, isa, a, b, packed, output, workspace);
}

template <class A, class B, class C, class Epilogue>
void gemm_of_views(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
                   const Epilogue& epilogue, gemm_workspace* workspace) {
    constexpr std::string_view function = "mp::gemm";
    check_threads(function, exec);
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    gemm_checked(exec, alpha, a, b, {}, beta, c, epilogue, workspace);
}

template <class A, class B, class C, class Epilogue>
void gemm_of_packed(cpu exec, float alpha, matrix_view<A> a, const packed_b<B>& b, float beta,
                    matrix_view<C> c, const Epilogue& epilogue, gemm_workspace* workspace) {
    constexpr std::string_view function = "mp::gemm";
    check_threads(function, exec);
    check_view(function, "a", extent_of(a));
    check_view(function, "c", extent_of(c));
    check_equal_sizes(function, "b.rows()", b.rows(), "a.columns", a.columns);
    check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows);
    check_equal_sizes(function, "c.columns", c.columns, "b.columns()", b.columns());
    check_no_overlap(function, extent_of(c), "a", extent_of(a));
    if (!b.is_current()) {
        throw_error(state_error(std::string(function) +
                                ": the matrix that b was packed of has been written since; pack it again"));
    }
    gemm_checked(exec, alpha, a, matrix_view<const B>{nullptr, b.rows(), b.columns(), b.columns()},
                 b.panels(), beta, c, epilogue, workspace);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The general matrix product c = epilogue(alpha * a b + beta * c), for any mix of element types.
///
/// Shapes: a is m x k, b is k x n, c is m x n, each in its own storage order with its own leading dimension;
/// any sizes, zero included, and any alignment. mp::transposed(view) gives the products with transposed
/// operands.
///
/// Numerics: elements of a and b are exact in float. The products of one element of c are added in float,
/// rounding to nearest even after each step, in an order that exec.products chooses:
/// - accumulation::ordered: one fused multiply-add after the other, in ascending k from zero. The same bits
///   on every processor.
/// - accumulation::fastest (the default): the same, except for three cases. Where both types are bfloat16 or
///   hold only normal numbers of it (all of 8 bits and fewer, std::int8_t), c has more than four rows,
///   and the processor has dot products that are faster, these are used: vdpbf16ps adds the odd k of a pair
///   before the even one, tdpbf16ps (AMX) adds up the even and the odd k of 32 apart and then their sum; both
///   take subnormal numbers for zero. Where c has at most 16 rows and the columns of b are contiguous, 32
///   elements or more each and 8192 in all, as with some samples and weights that are stored output by output,
///   or else where c has at most 16 columns and so has a its rows, an element is the sum of 16 such sums, of
///   every sixteenth k, added up as a tree (i and i + 8, then i and i + 4 ...), and of 32 where the 16 would be
///   1: b is then read as fast as memory delivers it, and this goes before the first case. Where these columns
///   (or rows) are of bfloat16, the other operand is as in the first case, there are more than four of its rows
///   (or columns), and vdpbf16ps is faster, it adds up the 16, of every sixteenth pair of k. And at
///   instruction_set::portable a step is a multiplication and an addition unless the compiler fuses them for its
///   target, and the second case is none.
///
/// So a b has an error of at most g sum |a||b| with g = (k + 1) u / (1 - (k + 1) u), u = 2^-24, as long as
/// nothing overflows or becomes subnormal on the way. Then alpha * ab + beta * c is formed from exact
/// products and rounded to float (a double c takes part rounded to float), the epilogue works in float, and
/// the result is rounded once to the type of c, nearest-even; overflow gives infinity, or NaN in formats
/// without infinity. The bits of an element (other than those of a NaN) depend on its row of a, its column of
/// b, its own c, alpha and beta and on nothing else: not on the number of threads, the shape around it,
/// leading dimensions or storage orders, except in the cases above. The caller's rounding direction and
/// flushing of subnormals play no part and stay as they are.
///
/// As in BLAS, beta == 0 means that c is not read, so that NaN in uninitialised memory does no harm, and
/// alpha == 0 or k == 0 that a and b are not read: c = epilogue(beta * c). Infinities and NaN propagate as
/// the sum demands. Padding up to the leading dimension of c is left alone.
///
/// Runs on exec.threads threads, fewer where the product is small. Fastest where the rows (of column-major
/// matrices, the columns) begin at multiples of 64 bytes: bfloat16 by AMX is then up to 1.4 times as fast.
/// Memory for packed blocks is taken from the heap, on one thread at most about 10 MiB, unless a
/// gemm_workspace is passed; a small product of more than a few rows that needs no more than 32 KiB takes
/// them from the stack. Different calls may run concurrently when none writes what another one reads or
/// writes.
///
/// Throws argument_error, before anything is written, for: fewer than one thread; instructions that the
/// processor lacks; a negative size; a leading dimension that is too small; null data with a non-zero size;
/// b.rows or c's shape that does not fit; a c that overlaps a or b (blocks that interleave in one larger
/// matrix of equal leading dimension, in the same order, are told apart exactly; otherwise the ranges from
/// first to last byte must be disjoint); an epilogue that rejects the shape of c; an operand of an epilogue
/// that overlaps c (a matrix that is read for the same element may be c itself: the same elements in the same
/// places); an output of an epilogue that overlaps a, b, c or another operand of the epilogue, unless it replaces
/// a matrix that is read for the same element. std::bad_alloc, too, leaves c as it was.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::gemm_of_views(exec, alpha, a, b, beta, c, epilogue, nullptr);
}

/// Overload with memory of the caller's for packed blocks, which grows where it is too small: see
/// gemm_workspace.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(cpu exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue, gemm_workspace& workspace) {
    detail::gemm_of_views(exec, alpha, a, b, beta, c, epilogue, &workspace);
}

/// Overload with a B that was packed before: see packed_b. The bits are those of the product with b as it
/// was. Throws state_error where its writes are counted, and it has been written since.
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(cpu exec, float alpha, matrix_view<A> a, const packed_b<B>& b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::gemm_of_packed(exec, alpha, a, b, beta, c, epilogue, nullptr);
}
template <gemm_input A, gemm_input B, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(cpu exec, float alpha, matrix_view<A> a, const packed_b<B>& b, float beta, matrix_view<C> c,
          Epilogue epilogue, gemm_workspace& workspace) {
    detail::gemm_of_packed(exec, alpha, a, b, beta, c, epilogue, &workspace);
}

/// Name of the kernel with which mp::gemm multiplies matrices of these types for m = `rows`:
/// where it runs, what it reads of B, the instruction set, and rows x columns of its tile.
/// `cpu.bf16.amx.32x32`.
template <gemm_input A, gemm_input B>
[[nodiscard]] std::string_view gemm_kernel_name(cpu exec, std::ptrdiff_t rows = 1024) {
    return detail::choose_kernel(detail::isa_of("mp::gemm_kernel_name", exec), exec.products,
                                 detail::product_types_of<std::remove_const_t<A>, std::remove_const_t<B>>,
                                 rows)
        .name;
}

}}  // namespace mp
