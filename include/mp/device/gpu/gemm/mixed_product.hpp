// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of operands of 16 and 8 bits.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/device/gpu/gemm/launch_layouts.hpp>
#include <mp/device/gpu/gemm/mixed_policy.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/widened_product.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    const matrix_view<const a_value> left = a;
    const matrix_view<const b_value> right = b;
    if (c.order == storage_order::column_major) {
        run(make_product_problem<b_value, a_value>(alpha, transposed(right), transposed(left), beta,
                                                   transposed(c), epilogue, {}, true));
    } else {
        run(make_product_problem<a_value, b_value>(alpha, left, right, beta, c, epilogue, {}, false));
    }
}

}}  // namespace mp::detail
