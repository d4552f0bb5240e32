// SPDX-License-Identifier: MIT
/// \file
/// The right operand of many products, packed once.
#pragma once

#include <mp/base/buffer_version.hpp>
#include <mp/base/container_size.hpp>
#include <mp/base/parallel.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/blocked_product.hpp>
#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>

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
        constexpr std::string_view function = "mp::packed_b";
        detail::check_threads(function, exec);
        detail::check_view(function, "b", detail::extent_of(b));
        const instruction_set isa = detail::isa_of(function, exec);
        if (rows_ == 0 || columns_ == 0) return;
        // Rounded up to units and panels, in 4 bytes at most: less than 4 (rows + 32) (columns + 32) bytes.
        const auto padded_rows = static_cast<std::size_t>(rows_) + k_unit;
        static_cast<void>(detail::addressable(function, "b.rows", padded_rows, 64));
        static_cast<void>(detail::addressable(function, "b.columns",
                                              static_cast<std::size_t>(columns_) + detail::panel_width,
                                              64 * padded_rows));
        const std::ptrdiff_t k = detail::round_up(rows_, k_unit);
        panel_bytes_ = detail::panel_bytes_of(element, k);
        const std::ptrdiff_t count = detail::divide_up(columns_, detail::panel_width);
        std::byte* const to = memory_.reserve(static_cast<std::size_t>(count * panel_bytes_));
        const detail::product_operand_source source{b.data, b.column_stride(), b.row_stride()};
        const auto pack = detail::pack_panels_for<Value>(isa, element);
        constexpr std::size_t grain = 8;
        detail::parallel_for(
            exec, static_cast<std::size_t>(count), grain, [&](std::size_t begin, std::size_t end) {
                const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(begin) * detail::panel_width;
                const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(end) * detail::panel_width;
                pack(source, {first, (std::min)(last, columns_) - first, last - first, 0, rows_, k},
                     to + static_cast<std::ptrdiff_t>(begin) * panel_bytes_, panel_bytes_);
            });
        data_ = to;
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
    [[nodiscard]] detail::packed_panels panels() const noexcept { return {data_, panel_bytes_}; }

private:
    static constexpr detail::panel_element element = detail::panel_element_of<Value>();
    static constexpr std::ptrdiff_t k_unit = 32;  // a multiple of every kernel's

    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    std::ptrdiff_t panel_bytes_ = 0;
    gemm_workspace memory_;
    const std::byte* data_ = nullptr;
    std::optional<buffer_version> version_{};
    std::uint64_t count_ = 0;
};

template <class Value>
packed_b(cpu, matrix_view<Value>) -> packed_b<std::remove_const_t<Value>>;
template <class Value>
packed_b(cpu, matrix_view<Value>, const buffer_version&) -> packed_b<std::remove_const_t<Value>>;

}  // namespace mp
