// SPDX-License-Identifier: MIT
/// \file
/// The right operand of many products, packed once.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
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
