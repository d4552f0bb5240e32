// SPDX-License-Identifier: MIT
/// \file
/// Products of 8-bit matrices on GPUs whose scales live on the device.
#pragma once

#include <mp/base/view_extent.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warpgroup_product.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/unscale.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// a->product_factor is what a product of the codes of a and b is multiplied by: not a number where an operand
/// was not finite, for its codes are, and a loss scaler is to see that.
struct product_factor_kernel {
    static constexpr int threads = simt::warp_size;
    device_tensor_scale* a;
    const device_tensor_scale* b;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        constexpr std::uint32_t infinity = 0x7f800000U;
        const bool finite = thread.load(&a->amax_bits) < infinity && thread.load(&b->amax_bits) < infinity;
        thread.store(&a->product_factor, finite
                                             ? inverse_of_scales(thread.load(&a->used), thread.load(&b->used))
                                             : bit_cast<float>(0x7fc00000U));
    }
};

/// Multiplies by a factor in device memory, and adds a bias or what is in C already: one type for all products of
/// a layer, which are compiled once for each mix of operands.
template <class Output, class Bias>
struct device_factor_epilogue {
    const float* factor;
    const Bias* bias;     ///< for each column; or null
    const Output* added;  ///< C itself, row-major; or null
    std::ptrdiff_t stride;

    MP_HOST_DEVICE float operator()(float value, std::ptrdiff_t row, std::ptrdiff_t column) const {
        product_output<Output, identity_epilogue> ending{};
        ending.has_product = true;
        ending.alpha = *factor;
        ending.beta = added != nullptr ? 1.0F : 0.0F;
        const float c = added != nullptr ? static_cast<float>(added[row * stride + column]) : 0.0F;
        const float scaled = scale_product(ending, value, c);
        return bias != nullptr ? float_add(scaled, static_cast<float>(bias[column])) : scaled;
    }
};

/// Launches a product of 8-bit operands that both lie along k.
template <class Executor, class A, class B, class Output, class Epilogue>
void launch_along_k(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                    const product_problem<A, B, Output, Epilogue>& problem) {
    constexpr auto has = [](gpu_gemm_kernel kernel) {
        return has_kernel<Executor, A, gpu_gemm_kernel::prefer_wgmma>(kernel);
    };
    if constexpr (has(gpu_gemm_kernel::mma)) {
        if (plan.kernel == gpu_gemm_kernel::mma) {
            mma_tiles<A>::call_for(plan, [&]<class Tile>() {
                launch_layout<mma_policy, Tile, true, true>(function, exec, plan, problem, no_scales{});
            });
        }
    }
    if constexpr (has(gpu_gemm_kernel::wgmma)) {
        if (plan.kernel == gpu_gemm_kernel::wgmma) {
            warpgroup_tiles<A>::call_for(plan, [&]<class Tile>() {
                launch_warpgroup_tile<true, true, Tile>(function, exec, plan, problem, no_scales{});
            });
        }
    }
    if constexpr (has(gpu_gemm_kernel::simt)) {
        if (plan.kernel == gpu_gemm_kernel::simt) {
            launch_layout<simt_policy, simt_tile_64, true, true>(function, exec, plan, problem, no_scales{});
        }
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// c = a b / (a_scale b_scale), with a bias for each column, or added to what is in c: the product of two 8-bit
/// matrices that mp::quantize_with_scale made on the device, whose scales the host does not know. Rounded once,
/// as by mp::gemm with 1 / (a_scale b_scale), rounded to float, as alpha. Where an operand was not finite, c is
/// NaN.
///
///     // y = x w^T + bias, and of its gradients dx = dy w and dw += dy^T x: always along k.
///     mp::gemm_tensor_scaled(stream, x, x_scale, mp::transposed(w), w_scale, y, std::span(bias));
///     mp::gemm_tensor_scaled(stream, dy, dy_scale, mp::transposed(w_turned), w_scale, dx);
///     mp::gemm_tensor_scaled(stream, dy_turned, dy_scale, mp::transposed(x_turned), x_scale, dw, {}, true);
///
/// In the tensor cores of 8 bits of the device: from sm_89 on mma.sync, in code for sm_90a wgmma where lines
/// begin at multiples of 16 bytes; ordinary instructions on older ones. The sums are those of
/// mp::gemm<mp::gpu_gemm_kernel::prefer_wgmma>. Two launches; nothing is allocated or waited for.
///
/// \param a        row-major, m x k
/// \param a_scale  of a, in device memory; its product_factor is written
/// \param b        column-major, k x n: a transposed row-major matrix
/// \param c        row-major, m x n
/// \param bias     n numbers in device memory, or none
/// \param add      whether c is added to
/// \throws argument_error  as mp::gemm on a GPU; an order is another one, the bias has another size, or null
/// \throws cuda_error      a launch failed
template <gpu_executor Executor, gpu_gemm_input A, gpu_gemm_input B, gpu_gemm_output C, class Bias = C>
    requires(sizeof(A) == 1 && sizeof(B) == 1)
void gemm_tensor_scaled(const Executor& exec, matrix_view<A> a, device_tensor_scale* a_scale,
                        matrix_view<B> b, const device_tensor_scale* b_scale, matrix_view<C> c,
                        std::span<const Bias> bias = {}, bool add = false) {
    constexpr std::string_view function = "mp::gemm_tensor_scaled";
    const detail::device_factor_epilogue<C, Bias> epilogue{
        a_scale == nullptr ? nullptr : &a_scale->product_factor, bias.empty() ? nullptr : bias.data(),
        add ? c.data : nullptr, c.leading_dimension};
    detail::check_gpu_product(function, a, b, c, epilogue);
    detail::require_memory(function, "a_scale", a_scale, 1);
    detail::require_memory(function, "b_scale", b_scale, 1);
    if (a.order != storage_order::row_major || b.order != storage_order::column_major ||
        c.order != storage_order::row_major) {
        detail::throw_argument(function, "the order of a, b or c", "another one",
                               "must be row_major, column_major and row_major");
    }
    if (!bias.empty()) {
        detail::check_equal_sizes(function, "bias.size()", static_cast<std::ptrdiff_t>(bias.size()),
                                  "c.columns", c.columns);
    }
    if (c.rows == 0 || c.columns == 0) return;
    launch(function, exec, simt::launch_size{}, detail::product_factor_kernel{a_scale, b_scale});
    const gpu_gemm_plan plan = detail::plan_for<gpu_gemm_kernel::prefer_wgmma>(
        exec, a, b, 1, detail::batch_strides{}, gpu_gemm_options{});
    detail::launch_along_k(function, exec, plan,
                           detail::make_product_problem(1.0F, a, b, 0.0F, c, epilogue, {}, false));
}

}}  // namespace mp
