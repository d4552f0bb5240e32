// SPDX-License-Identifier: MIT
/// \file
/// The kernels for operands of an element type, as data.
#pragma once

#include <mp/linalg/gemm/kernels/dot_tiles.hpp>
#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// What products need of an operand's element type.
struct operand_kernels {
    operand_facts facts;
    /// Packs rows of A for a kernel.
    pack_rows_function (*pack_rows)(instruction_set, const product_kernel&);
    /// Packs columns of B: into the type's own panel_element, or as floats.
    pack_panels_function (*pack_panels)(instruction_set, panel_element);
    /// Widens panels of the type's own panel_element to panels of floats; null where they are.
    pack_panels_function (*widen_panels)(instruction_set);
    /// Multiply by contiguous columns of B; null where there are none.
    const dot_kernels* (*dots)(instruction_set);
    /// Multiply by contiguous rows of B; null where there are none.
    const row_runs_kernels* (*row_runs)(instruction_set);
    /// Of bfloat16, for AVX-512: dot products by vdpbf16ps, and those of a row of A that is left narrow. Else null.
    const dot_kernel* dots_of_pairs;
    const dot_kernel* narrow_dots;
};

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
struct product_elements {};

template <class Value>
const dot_kernels* dot_kernels_for(instruction_set isa) {
    const dot_kernels* const none = nullptr;
    return MP_SELECT_TARGET(isa, none, dot_kernels_of<Value>);
}

template <class Value>
const row_runs_kernels* row_runs_kernels_for(instruction_set isa) {
    const row_runs_kernels* const none = nullptr;
    return MP_SELECT_TARGET(isa, none, row_runs_kernels_of<Value>);
}

template <class Value>
constexpr operand_kernels make_operand_kernels() {
    operand_kernels kernels{operand_facts_of<Value>(),
                            &pack_rows_for<Value>,
                            &pack_panels_for<Value>,
                            &widen_panels_for<Value>,
                            &dot_kernels_for<Value>,
                            &row_runs_kernels_for<Value>,
                            nullptr,
                            nullptr};
#if MP_BEST_TARGET >= MP_TARGET_AVX512
    if constexpr (holds_bfloat16<Value>) {
        kernels.dots_of_pairs = &avx512::dot_kernel_of_pairs;
        kernels.narrow_dots = &avx512::narrow_dot_kernel;
    }
#endif
    return kernels;
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

template <class Value, class Owner>
constinit const operand_kernels owned_product_kernels<Value, Owner>::of_operand =
    make_operand_kernels<Value>();

}}  // namespace mp::detail
