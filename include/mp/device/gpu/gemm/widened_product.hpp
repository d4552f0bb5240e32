// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of operands that are widened to float.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/linalg/gemm/epilogue_operands.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Value>
concept widens_to_float =
    reduced<std::remove_const_t<Value>> || std::same_as<std::remove_const_t<Value>, float>;

/// The matrix in floats: itself, or a dense copy in the workspace.
template <class Executor, class Value>
matrix_view<const float> widened(const Executor& exec, matrix_view<Value> matrix) {
    if constexpr (std::same_as<std::remove_const_t<Value>, float>) {
        return matrix;
    } else {
        auto* const floats =
            take_workspace<float>("mp::gemm", exec, static_cast<std::size_t>(matrix.rows * matrix.columns));
        const bool by_rows = matrix.order == storage_order::row_major;
        const matrix_view<float> copy{floats, matrix.rows, matrix.columns,
                                      by_rows ? matrix.columns : matrix.rows, matrix.order};
        map_elements(identity_function{}, exec, copy, matrix_view<const std::remove_const_t<Value>>(matrix));
        return copy;
    }
}

/// A product of operands that are widened to float, in the executor's workspace.
template <class Executor, class A, class B, class C, class Epilogue>
void multiply_widened(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
                      matrix_view<C> c, const Epilogue& epilogue) {
    check_product("mp::gemm", extent_of(a), extent_of(b), extent_of(c));
    validate_epilogue(epilogue, c, product_input{"a", a}, product_input{"b", b});
    const workspace::frame frame(workspace_of(exec));
    const matrix_view<const float> left = widened(exec, a);
    const matrix_view<const float> right = widened(exec, b);
    gemm(exec, alpha, left, right, beta, c, epilogue);
}

}}  // namespace mp::detail
