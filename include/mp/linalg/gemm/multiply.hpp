// SPDX-License-Identifier: MIT
/// \file
/// All products on the CPU: checks, the choice among the ways to compute one, and the packing of a B for many products.
#pragma once

#include <mp/base/argument_checks.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/blocked_product.hpp>
#include <mp/linalg/gemm/choose_kernel.hpp>
#include <mp/linalg/gemm/operand_kernels.hpp>
#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/skinny.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The task of a row-major product, or of the transposed one, without its operands' types. The product that
/// is computed has A's rows and B's columns as given here.
inline product_task make_product_task(const product_kernel& kernel, instruction_set isa,
                                      const product_operand_source& a, const operand_kernels& of_a,
                                      const product_operand_source& b, const operand_kernels& of_b,
                                      const tile_output& output, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      std::ptrdiff_t k) {
    tile_output c = output;
    if (kernel.normal_sums && !c.prepares() && c.write_normal != nullptr) c.write = c.write_normal;
    const bool b_is_its_panel = of_b.facts.is_float || of_b.facts.panel == panel_element::binary16;
    return {
        &kernel,
        a,
        of_a.pack_rows(isa, kernel),
        kernel.any_strides && a.k_stride == 1 &&
            (kernel.a_element == panel_element::float32 ? of_a.facts.is_float : of_a.facts.holds_bfloat16),
        b,
        of_b.pack_panels(isa, kernel.b_element),
        kernel.any_strides && b.vector_stride == 1 && b_is_its_panel && kernel.b_element == of_b.facts.panel,
        {},
        c,
        rows,
        columns,
        k};
}

/// A product of rows of A with contiguous columns of B, by dot products.
inline void multiply_dots_of(const cpu& exec, instruction_set isa, const dot_kernels& kernels,
                             const product_operand_source& a, const operand_kernels& of_a,
                             const product_operand_source& b, const operand_kernels& of_b,
                             const tile_output& output, std::ptrdiff_t rows, std::ptrdiff_t columns,
                             std::ptrdiff_t k, gemm_workspace* workspace) {
    const dot_choice choice = choose_dots(isa, kernels, of_a, of_b, rows, columns, k);
    product_task task = make_product_task(*choice.rows, isa, a, of_a, b, of_b, output, rows, columns, k);
    task.c = output;  // what is added up may be subnormal
    multiply_dots(exec, task, of_b.facts.size, *choice.dots, workspace);
}

/// Most rows of a column-major C that are computed as rows.
inline constexpr std::ptrdiff_t most_rows_by_column = 8;

/// A product after the checks: C has its rows and columns.
inline void multiply_checked(const cpu& exec, instruction_set isa, const product_call& call) {
    const operand_kernels& of_a = *call.a_kernels;
    const operand_kernels& of_b = *call.b_kernels;
    gemm_workspace* const workspace = call.workspace;
    tile_output output =
        make_tile_output(isa, *call.c_kernels, memory_of(call.c), call.c.leading_dimension, !call.c.row_major,
                         call.alpha, call.beta, call.epilogue, call.apply);
    const std::ptrdiff_t rows = call.a.rows;
    const std::ptrdiff_t columns = call.b.columns;
    const std::ptrdiff_t k = call.a.columns;
    const auto row_stride = [](const view_extent& x) { return x.row_major ? x.leading_dimension : 1; };
    const auto column_stride = [](const view_extent& x) { return x.row_major ? 1 : x.leading_dimension; };
    const product_operand_source a_rows{memory_of(call.a), row_stride(call.a), column_stride(call.a)};
    const product_operand_source b_columns{memory_of(call.b), column_stride(call.b), row_stride(call.b)};
    // Where transposed, c^T = b^T a^T is computed, which has its rows where c has its columns; unless c has so
    // few rows that b is better read where it lies.
    const bool can_be_dots = exec.products == accumulation::fastest && !call.is_packed;
    const dot_kernels* const dots =
        can_be_dots && b_columns.k_stride == 1 && suits_dots(rows, columns, k) ? of_b.dots(isa) : nullptr;
    const dot_kernels* const transposed_dots =
        can_be_dots && a_rows.k_stride == 1 && suits_dots(columns, rows, k) ? of_a.dots(isa) : nullptr;
    output.transposed =
        dots == nullptr && (transposed_dots != nullptr ||
                            (output.column_major && !call.is_packed && rows > most_rows_by_column));
    if (same_value(output.alpha, 0.0F) || k == 0) return finish_without_product(output, rows, columns);
    if (dots != nullptr) {
        return multiply_dots_of(exec, isa, *dots, a_rows, of_a, b_columns, of_b, output, rows, columns, k,
                                workspace);
    }
    if (transposed_dots != nullptr) {
        return multiply_dots_of(exec, isa, *transposed_dots, b_columns, of_b, a_rows, of_a, output, columns,
                                rows, k, workspace);
    }
    if (output.transposed) {
        const auto& kernel = choose_kernel(isa, exec.products, of_b.facts, of_a.facts, rows);
        multiply_blocked(
            exec, make_product_task(kernel, isa, b_columns, of_b, a_rows, of_a, output, columns, rows, k),
            workspace);
        return;
    }
    const auto& kernel = choose_kernel(isa, exec.products, of_a.facts, of_b.facts, rows);
    product_task task =
        make_product_task(kernel, isa, a_rows, of_a, b_columns, of_b, output, rows, columns, k);
    const row_runs_kernels* const runs =
        !call.is_packed && b_columns.vector_stride == 1 ? of_b.row_runs(isa) : nullptr;
    const bool from_memory = call.is_packed && rows <= most_direct_rows && is_far(call.panels, columns);
    const bool takes_floats = kernel.a_element == panel_element::float32;
    const bool suits_direct = kernel.layout == a_layout::rows &&
                              (from_memory || (takes_floats && rows <= most_direct_rows_in_caches));
    const bool is_panel = kernel.b_element == of_b.facts.panel;
    const product_kernel* const direct = call.is_packed && is_panel && suits_direct ? &kernel : nullptr;
    if (rows <= most_direct_rows && (direct != nullptr || (runs != nullptr && takes_floats))) {
        task.packed_b = call.panels;
        const row_runs_kernel* const of_rows = runs == nullptr ? nullptr
                                               : rows == 1     ? &runs->of_row
                                                               : &runs->of_rows;
        multiply_skinny(exec, task, {direct, of_rows, of_b.facts.size, from_memory}, workspace);
        return;
    }
    if (call.is_packed && !is_panel) {
        task.b = {call.panels.data, call.panels.panel_bytes, 0};
        task.pack_b = of_b.widen_panels(isa);
    } else if (call.is_packed) {
        task.packed_b = call.panels;
    }
    multiply_blocked(exec, task, workspace);
}

inline void check_packed_product(std::string_view function, const product_call& call) {
    check_view(function, "a", call.a);
    check_view(function, "c", call.c);
    check_equal_sizes(function, "b.rows()", call.b.rows, "a.columns", call.a.columns);
    check_equal_sizes(function, "c.rows", call.c.rows, "a.rows", call.a.rows);
    check_equal_sizes(function, "c.columns", call.c.columns, "b.columns()", call.b.columns);
    check_no_overlap(function, call.c, "a", call.a);
    if (!call.is_current) {
        throw_joined<state_error>(
            {function, ": the matrix that b was packed of has been written since; pack it again"});
    }
}

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void multiply(const cpu& exec, const product_call& call) {
    constexpr std::string_view function = "mp::gemm";
    check_threads(function, exec);
    if (call.is_packed) {
        check_packed_product(function, call);
    } else {
        check_product(function, call.a, call.b, call.c);
    }
    if (call.check != nullptr) call.check(call.epilogue, call);
    if (call.c.empty()) return;
    multiply_checked(exec, isa_of(function, exec), call);
}

MP_CORE_FUNCTION packed_panels pack_panels_of_matrix(const cpu& exec, const view_extent& b,
                                                     const operand_kernels& kernels, gemm_workspace& memory) {
    constexpr std::string_view function = "mp::packed_b";
    constexpr std::ptrdiff_t k_unit = 32;  // a multiple of every kernel's
    check_threads(function, exec);
    check_view(function, "b", b);
    const instruction_set isa = isa_of(function, exec);
    if (b.empty()) return {};
    // Rounded up to units and panels, in 4 bytes at most: less than 4 (rows + 32) (columns + 32) bytes.
    const auto padded_rows = static_cast<std::size_t>(b.rows) + k_unit;
    static_cast<void>(addressable(function, "b.rows", padded_rows, 64));
    static_cast<void>(addressable(function, "b.columns", static_cast<std::size_t>(b.columns) + panel_width,
                                  64 * padded_rows));
    const std::ptrdiff_t k = round_up(b.rows, k_unit);
    const panel_element element = kernels.facts.panel;
    const std::ptrdiff_t panel_bytes = panel_bytes_of(element, k);
    const std::ptrdiff_t count = divide_up(b.columns, panel_width);
    std::byte* const to = memory.reserve(static_cast<std::size_t>(count * panel_bytes));
    const product_operand_source source{memory_of(b), b.row_major ? 1 : b.leading_dimension,
                                        b.row_major ? b.leading_dimension : 1};
    const auto pack = kernels.pack_panels(isa, element);
    constexpr std::size_t grain = 8;
    parallel_for(exec, static_cast<std::size_t>(count), grain, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(begin) * panel_width;
        const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(end) * panel_width;
        pack(source, {first, (std::min)(last, b.columns) - first, last - first, 0, b.rows, k},
             to + static_cast<std::ptrdiff_t>(begin) * panel_bytes, panel_bytes);
    });
    return {to, panel_bytes};
}

MP_CORE_FUNCTION std::string_view product_kernel_name(const cpu& exec, const operand_kernels& a,
                                                      const operand_kernels& b, std::ptrdiff_t rows) {
    return choose_kernel(isa_of("mp::gemm_kernel_name", exec), exec.products, a.facts, b.facts, rows).name;
}

}}  // namespace mp::detail
#endif
