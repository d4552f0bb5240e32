// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on the CPU, and the right operand of many products, packed once.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/multiply.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace mp {

/// A matrix in the order in which the kernels of mp::gemm read their right operand, for weights that meet many
/// left operands: products with it neither copy nor convert it again, and few rows on the left run as fast as
/// memory delivers it.
///
/// Takes 4 bytes an element for float and tfloat32 and 2 for all other types, with the numbers of columns and
/// rows rounded up to multiples of 32. The order is the same for all instruction sets. Does not refer to the
/// matrix it was made from. Movable, not copyable; may be used by several threads at once.
///
///     const mp::packed_b<mp::bfloat16> weights(exec, mp::transposed(mp::row_major(w.data(), outputs,
///     inputs))); mp::gemm(exec, 1, x, weights, 0, y);
template <gemm_input Value>
class packed_b {
public:
    /// \param exec  where it is packed
    /// \param b     in either storage order
    /// \throws argument_error  a size is negative, the leading dimension too short or the data null; or the
    ///                         panels would be too large to be addressed
    packed_b(cpu exec, matrix_view<const Value> b) : rows_(b.rows), columns_(b.columns) {
        panels_ = detail::pack_panels_of_matrix(exec, detail::extent_of(b),
                                                detail::product_kernels<Value>::of_operand, memory_);
    }
    packed_b(cpu exec, matrix_view<Value> b) : packed_b(exec, matrix_view<const Value>(b)) {}
    /// Overload for a matrix whose writes are counted, such as weights that are trained: a product with panels that
    /// are no longer those of the matrix throws state_error.
    packed_b(cpu exec, matrix_view<const Value> b, const buffer_version& version) : packed_b(exec, b) {
        version_ = version;
        count_ = version.count();
    }

    /// Rows and columns of the matrix that was packed.
    [[nodiscard]] std::ptrdiff_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::ptrdiff_t columns() const noexcept { return columns_; }
    /// Whether the matrix, where its writes are counted, has not been written since.
    [[nodiscard]] bool is_current() const { return !version_.has_value() || version_->count() == count_; }
    /// Memory that it takes.
    [[nodiscard]] std::size_t size_bytes() const noexcept { return memory_.size(); }

    /// For mp::gemm.
    [[nodiscard]] detail::packed_panels panels() const noexcept { return panels_; }

private:
    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    gemm_workspace memory_;
    detail::packed_panels panels_{};
    std::optional<buffer_version> version_{};
    std::uint64_t count_ = 0;
};

template <class Value>
packed_b(cpu, matrix_view<Value>) -> packed_b<std::remove_const_t<Value>>;
template <class Value>
packed_b(cpu, matrix_view<Value>, const buffer_version&) -> packed_b<std::remove_const_t<Value>>;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Epilogue>
void check_epilogue(const void* epilogue, const product_call& call) {
    validate_epilogue(*static_cast<const Epilogue*>(epilogue), call.c, product_input{"a", call.a},
                      product_input{"b", call.b, call.is_packed ? 0 : 1});
}

/// A product without the types of its operands; the epilogue must outlive it.
template <class A, class B, class C, class Epilogue>
product_call product_of(float alpha, matrix_view<A> a, const view_extent& b, float beta, matrix_view<C> c,
                        const Epilogue& epilogue, gemm_workspace* workspace) {
    return {.alpha = alpha,
            .a = extent_of(a),
            .a_kernels = &product_kernels<std::remove_const_t<A>>::of_operand,
            .b = b,
            .b_kernels = &product_kernels<std::remove_const_t<B>>::of_operand,
            .beta = beta,
            .c = extent_of(c),
            .c_kernels = &product_kernels<C>::of_result,
            .workspace = workspace,
            .epilogue = &epilogue,
            .check = std::is_same_v<Epilogue, identity_epilogue> ? nullptr : &check_epilogue<Epilogue>,
            .apply = apply_of<Epilogue>(),
            .is_packed = false,
            .is_current = true};
}

template <class A, class B, class C, class Epilogue>
void gemm_of_views(const cpu& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
                   matrix_view<C> c, const Epilogue& epilogue, gemm_workspace* workspace) {
    multiply(exec, product_of<A, B>(alpha, a, extent_of(b), beta, c, epilogue, workspace));
}

template <class A, class B, class C, class Epilogue>
void gemm_of_packed(const cpu& exec, float alpha, matrix_view<A> a, const packed_b<B>& b, float beta,
                    matrix_view<C> c, const Epilogue& epilogue, gemm_workspace* workspace) {
    product_call call = product_of<A, B>(alpha, a, {0, sizeof(B), b.rows(), b.columns(), b.columns(), true},
                                         beta, c, epilogue, workspace);
    call.is_packed = true;
    call.is_current = b.is_current();
    call.panels = b.panels();
    multiply(exec, call);
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
/// gemm_workspace is passed; a small product that needs no more than 32 KiB takes it from the stack. Different
/// calls may run concurrently when none writes what another one reads or writes.
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
    return detail::product_kernel_name(exec, detail::product_kernels<std::remove_const_t<A>>::of_operand,
                                       detail::product_kernels<std::remove_const_t<B>>::of_operand, rows);
}

}}  // namespace mp
