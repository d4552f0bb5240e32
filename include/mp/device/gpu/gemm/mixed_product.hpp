// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of operands of 16 and 8 bits, and of other mixes of types, whose operands are widened to float.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/device/gpu/gemm/mixed_policy.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/map_elements.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/epilogue_operands.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/basic_float.hpp>
#include <mp/workspace.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
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

/// A product of operands of 16 and 8 bits.
template <class Executor, class A, class B, class C, class Epilogue>
void multiply_mixed(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta,
                    matrix_view<C> c, const Epilogue& epilogue) {
    constexpr std::string_view function = "mp::gemm";
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm on a GPU: the epilogue is copied to the device byte by byte");
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    validate_epilogue(epilogue, c, product_input{"a", a}, product_input{"b", b});
    const gpu_properties gpu = properties_of(exec);
    if (gpu.capability < 80) {
        if constexpr (widens_to_float<A> && widens_to_float<B>) {
            multiply_widened(exec, alpha, a, b, beta, c, epilogue);
            return;
        }
        throw_argument(function, "exec's capability", gpu.capability,
                       "must be 80 or more for operands of 16 bits and integers of 8");
    }
    if (c.rows == 0 || c.columns == 0) return;
    const auto run = [&]<class Left, class Right>(const product_problem<Left, Right, C, Epilogue>& problem) {
        using tiles = mixed_tiles<Left>;
        const tile_choice tile =
            choose_tile(tiles::choices, gpu, gpu_gemm_kernel::mma, problem.c.rows, problem.c.columns, 1).tile;
        const gpu_gemm_plan plan{
            .tile_rows = tile.rows, .tile_columns = tile.columns, .batch = 1, .gpu = gpu};
        tiles::call_for(plan, [&]<class Tile>() {
            launch_layouts<mixed_policy, Tile>(function, exec, plan, problem, no_scales{});
        });
    };
    with_row_major_output(alpha, a, b, beta, c, epilogue, {}, run);
}

}}  // namespace mp::detail
