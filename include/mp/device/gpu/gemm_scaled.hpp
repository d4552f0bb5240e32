// SPDX-License-Identifier: MIT
/// \file
/// Products of 8-bit matrices with scales of blocks of k, on GPUs.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm/block_scales.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warpgroup_product.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/matrix_view.hpp>

#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f.template operator()<Tile>() for the tile of mma.sync with which a scaled product is computed by a plan.
template <class Function>
void with_scaled_tile(const gpu_gemm_plan& plan, Function f) {
    // Where mma.sync goes through half, large tiles take more registers than there are.
    if (plan.tile_columns == 128 && !multiplies_float8_as_half(plan.gpu.capability)) {
        f.template operator()<float8_tile_128>();
    } else if (plan.tile_rows == 16) {
        f.template operator()<mma_tile_16>();
    } else {
        f.template operator()<mma_tile_64>();
    }
}

template <gpu_gemm_kernel Asked, class Executor, class A, class B, class Output, class Epilogue>
void launch_scaled_plan(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                        const product_problem<A, B, Output, Epilogue>& problem, const block_scales& scales) {
    constexpr auto has = [](gpu_gemm_kernel kernel) { return has_kernel<Executor, A, Asked>(kernel); };
    if constexpr (has(gpu_gemm_kernel::mma)) {
        if (plan.kernel == gpu_gemm_kernel::mma) {
            with_scaled_tile(plan, [&]<class Tile>() {
                launch_layouts<scaled_mma_policy, Tile>(function, exec, plan, problem, scales);
            });
        }
    }
    if constexpr (has(gpu_gemm_kernel::wgmma)) {
        if (plan.kernel == gpu_gemm_kernel::wgmma) run_warpgroups(function, exec, plan, problem, scales);
    }
    if constexpr (has(gpu_gemm_kernel::simt)) {
        if (plan.kernel == gpu_gemm_kernel::simt) {
            launch_layouts<scaled_simt_policy, simt_tile_64>(function, exec, plan, problem, scales);
        }
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The product of 8-bit matrices with scales of blocks of k on a GPU, in its tensor cores: the
/// meaning of mp::gemm_scaled on the CPU, with views of device memory, the scales' values included; matrices,
/// plans, epilogues, workspaces and errors are those of mp::gemm on a GPU.
///
///     // x: m x k with scales for 1 x 128, weights: n x k with scales for 128 x 128.
///     mp::gemm_scaled(stream, 1, mp::row_major(x, m, k), {mp::row_major(x_scales, m, k / 128)},
///                     mp::transposed(mp::row_major(w, n, k)),
///                     {mp::transposed(mp::row_major(w_scales, n / 128, k / 128)), 128}, 0, c);
///
/// Numerics: the bits of mp::gemm_scaled on mp::emulated of the device's architecture (with
/// float8_unit::through_half for mma.sync of sm_90 and sm_100): for each block of 128 of k, in
/// ascending order, the tensor core's sums start from zero, the two scales are multiplied and rounded to
/// float, and one fused multiply-add takes the sum to a float that started at +0. By ordinary instructions
/// those of mp::gemm_scaled on mp::cpu with accumulation::ordered. Where k is split, slices are whole
/// blocks, each with these bits, and are added in float, in their order.
///
/// mma.sync of sm_90 and sm_100 multiplies in tiles of 64 x 64 where the plan says 128 x 128, since scaled sums of
/// these do not fit into registers there. One kernel, two with splits; nothing is allocated and nothing
/// waited for. Also throws argument_error for the scales that the CPU refuses.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled(const Executor& exec, const gpu_gemm_plan& plan, float alpha, matrix_view<A> a,
                 const k_block_scales& a_scales, matrix_view<B> b, const k_block_scales& b_scales, float beta,
                 matrix_view<C> c, Epilogue epilogue = {}, std::span<float> workspace = {}) {
    static_assert(sizeof(A) == 1 && sizeof(B) == 1, "mp::gemm_scaled on a GPU: a and b must have 8 bits");
    constexpr std::string_view function = "mp::gemm_scaled";
    detail::check_gpu_product(function, a, b, c, epilogue);
    detail::check_scaled_product(function, detail::extent_of(a), a_scales, detail::extent_of(b), b_scales,
                                 detail::extent_of(c));
    detail::validate_epilogue(epilogue, c, detail::product_input{"a", a}, detail::product_input{"b", b},
                              detail::product_input{"a_scales.values", a_scales},
                              detail::product_input{"b_scales.values", b_scales});
    detail::check_plan<Kernel, Executor, std::remove_const_t<A>>(function, exec, plan, c.rows, c.columns,
                                                                 a.columns, 1, workspace.size());
    if (c.rows == 0 || c.columns == 0) return;
    const detail::block_scales scales{detail::k_scales_of_a(a_scales, c.rows),
                                      detail::k_scales_of_b(b_scales, c.columns)};
    detail::with_row_major_output(alpha, a, b, beta, c, epilogue, {}, [&](const auto& problem) {
        detail::run_in_slices(function, exec, plan, problem, workspace, [&](const auto& slices) {
            detail::launch_scaled_plan<Kernel>(function, exec, plan, slices,
                                               problem.c.swapped ? scales.exchanged() : scales);
        });
    });
}

/// Overload with the plan that plan_gemm makes without options.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_scaled(const Executor& exec, float alpha, matrix_view<A> a, const k_block_scales& a_scales,
                 matrix_view<B> b, const k_block_scales& b_scales, float beta, matrix_view<C> c,
                 Epilogue epilogue = {}) {
    detail::check_gpu_product("mp::gemm_scaled", a, b, c, epilogue);
    gemm_scaled<Kernel>(exec, plan_gemm<Kernel>(exec, a, b), alpha, a, a_scales, b, b_scales, beta, c,
                        epilogue);
}

}}  // namespace mp
