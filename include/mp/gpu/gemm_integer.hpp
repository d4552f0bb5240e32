// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of 8-bit integers on GPUs.
#pragma once

#include <mp/error.hpp>
#include <mp/gemm/epilogue.hpp>
#include <mp/gemm/integer.hpp>
#include <mp/gemm/validation.hpp>
#include <mp/gpu/gemm.hpp>
#include <mp/gpu/gemm/integer_output.hpp>
#include <mp/gpu/gemm/launch_layouts.hpp>
#include <mp/gpu/gemm/mma_policy.hpp>
#include <mp/gpu/gemm/plan.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/properties.hpp>
#include <mp/matrix_view.hpp>
#include <mp/simt/gpu_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A product of integers behind its checks, into a row-major C.
template <class Executor, class Output, class Epilogue>
void launch_integers(const Executor& exec, const gpu_properties& gpu,
                     const product_problem<std::int8_t, std::int8_t, Output, Epilogue>& problem) {
    using tiles = mma_tiles<std::int8_t>;
    const tile_choice tile =
        choose_tile(tiles::choices, gpu, gpu_gemm_kernel::mma, problem.c.rows, problem.c.columns, 1).tile;
    const gpu_gemm_plan plan{.tile_rows = tile.rows, .tile_columns = tile.columns, .batch = 1, .gpu = gpu};
    tiles::call_for(plan, [&]<class Tile>() {
        launch_layouts<mma_policy, Tile>("mp::gemm", exec, plan, problem, no_scales{});
    });
}

/// Where `Epilogue` is integer_scale, alpha and beta only say whether they are zero.
template <class Executor, class A, class B, class C, class Epilogue>
void multiply_integers_on_gpu(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b,
                              float beta, matrix_view<C> c, const Epilogue& epilogue) {
    constexpr std::string_view function = "mp::gemm";
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm on a GPU: the epilogue is copied to the device byte by byte");
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    validate_epilogue(epilogue, c);
    const gpu_properties gpu = properties_of(exec);
    if (gpu.capability < 80) {
        throw_argument(function, "exec's capability", gpu.capability,
                       "must be 80 or more, whose mma.sync multiplies 32 integers at a time");
    }
    if (c.rows == 0 || c.columns == 0) return;
    const matrix_view<const std::int8_t> left = a;
    const matrix_view<const std::int8_t> right = b;
    if (c.order == storage_order::column_major) {
        launch_integers(
            exec, gpu,
            make_product_problem<std::int8_t, std::int8_t>(alpha, transposed(right), transposed(left), beta,
                                                           transposed(c), epilogue, {}, true));
    } else {
        launch_integers(
            exec, gpu,
            make_product_problem<std::int8_t, std::int8_t>(alpha, left, right, beta, c, epilogue, {}, false));
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE

namespace mp::inline MP_ISA_NAMESPACE {

/// The matrix product c = alpha * a b + beta * c of 8-bit integers in 32 bits on a GPU, in its tensor cores (mma.sync, from sm_80
/// on): the results of mp::gemm(cpu, ...) of integers, exact, and modulo 2^32 where they do not fit. Views are of device memory;
/// any shapes, storage orders and alignments, as in mp::gemm of other types. One kernel; nothing is allocated and nothing waited
/// for.
///
/// Throws argument_error for everything that the CPU refuses, and for older devices.
template <gpu_executor Executor, int8_operand A, int8_operand B>
void gemm(const Executor& exec, std::int32_t alpha, matrix_view<A> a, matrix_view<B> b, std::int32_t beta,
          matrix_view<std::int32_t> c) {
    detail::multiply_integers_on_gpu(exec, alpha == 0 ? 0.0F : 1.0F, a, b, beta == 0 ? 0.0F : 1.0F, c,
                                     detail::integer_scale{alpha, beta});
}

/// The same into numbers: c = epilogue(alpha * a b + beta * c), where a b are the exact sums of 32 bits, rounded once to float. Scales
/// of the operands go into alpha, or into mp::scale_per_row and mp::scale_per_column. The bits of mp::gemm on mp::emulated.
///
///     mp::gemm(stream, x_scale, x, w, 0, y, mp::scale_per_column(w_scales.span()));
template <gpu_executor Executor, int8_operand A, int8_operand B, gpu_gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
void gemm(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::multiply_integers_on_gpu(exec, alpha, a, b, beta, c, epilogue);
}

}  // namespace mp::inline MP_ISA_NAMESPACE
