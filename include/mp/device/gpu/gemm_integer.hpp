// SPDX-License-Identifier: MIT
/// \file
/// Matrix products of 8-bit integers on GPUs.
#pragma once

#include <mp/device/gpu/gemm.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warpgroup_product.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mp {

/// TMA writes it, as where there is no epilogue.
template <>
inline constexpr int epilogue_instructions<detail::integer_scale> = epilogue_instructions<identity_epilogue>;

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A product of integers behind its checks, into a row-major C. The sums are exact, so the kernels have the same bits.
template <gpu_gemm_kernel Asked, class Executor, class Output, class Epilogue>
void launch_integers(const Executor& exec, const gpu_properties& gpu,
                     const product_problem<std::int8_t, std::int8_t, Output, Epilogue>& problem) {
    constexpr std::string_view function = "mp::gemm";
    const operand_layouts layouts{warpgroups_take(problem.a) && warpgroups_take(problem.b),
                                  problem.a.k_major && !problem.c.swapped};
    const std::ptrdiff_t rows = problem.c.rows;
    const std::ptrdiff_t columns = problem.c.columns;
    const auto kernel = resolve_kernel<std::int8_t, Asked>(gpu, layouts, rows, columns, 1);
    const gpu_gemm_plan plan = plan_with_kernel<std::int8_t>(gpu, kernel, rows, columns, problem.k, 1,
                                                             options_for<Epilogue>(problem.c.beta), layouts);
    if constexpr (has_kernel<Executor, std::int8_t, Asked>(gpu_gemm_kernel::wgmma)) {
        if (kernel == gpu_gemm_kernel::wgmma) run_warpgroups(function, exec, plan, problem, no_scales{});
    }
    if constexpr (has_kernel<Executor, std::int8_t, Asked>(gpu_gemm_kernel::mma)) {
        if (kernel != gpu_gemm_kernel::mma) return;
        mma_tiles<std::int8_t>::call_for(plan, [&]<class Tile>() {
            launch_layouts<mma_policy, Tile>(function, exec, plan, problem, no_scales{});
        });
    }
}

/// Where `Epilogue` is integer_scale, alpha and beta only say whether they are zero.
template <gpu_gemm_kernel Asked, class Executor, class A, class B, class C, class Epilogue>
void multiply_integers_on_gpu(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b,
                              float beta, matrix_view<C> c, const Epilogue& epilogue) {
    constexpr std::string_view function = "mp::gemm";
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm on a GPU: the epilogue is copied to the device byte by byte");
    static_assert(Asked != gpu_gemm_kernel::simt && Asked != gpu_gemm_kernel::wmma,
                  "mp::gemm on a GPU: integers are multiplied by mma or wgmma");
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    validate_epilogue(epilogue, c, product_input{"a", a}, product_input{"b", b});
    const gpu_properties gpu = properties_of(exec);
    if (gpu.capability < 80) {
        throw_argument(function, "exec's capability", gpu.capability,
                       "must be 80 or more, whose mma.sync multiplies 32 integers at a time");
    }
    if (c.rows == 0 || c.columns == 0) return;
    with_row_major_output(alpha, a, b, beta, c, epilogue, {},
                          [&](const auto& problem) { launch_integers<Asked>(exec, gpu, problem); });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The matrix product c = alpha * a b + beta * c of 8-bit integers in 32 bits on a GPU, in its tensor cores (mma.sync, from sm_80
/// on, and wgmma in code for sm_90a): the results of mp::gemm(cpu, ...) of integers, exact, and modulo 2^32 where they do not fit.
/// Views are of device memory; any shapes, storage orders and alignments, as in mp::gemm of other types. One kernel; nothing is
/// allocated and nothing waited for.
///
/// The kernel is chosen by estimate unless `Kernel` says which. wgmma takes matrices whose vectors run along k (a row-major, b
/// column-major) and begin at multiples of 16 bytes.
///
/// Throws argument_error for everything that the CPU refuses, for older devices, and for matrices that wgmma does not take where it
/// was asked for.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, int8_operand A,
          int8_operand B>
void gemm(const Executor& exec, std::int32_t alpha, matrix_view<A> a, matrix_view<B> b, std::int32_t beta,
          matrix_view<std::int32_t> c) {
    detail::multiply_integers_on_gpu<Kernel>(exec, alpha == 0 ? 0.0F : 1.0F, a, b, beta == 0 ? 0.0F : 1.0F, c,
                                             detail::integer_scale{alpha, beta});
}

/// The same into numbers: c = epilogue(alpha * a b + beta * c), where a b are the exact sums of 32 bits, rounded once to float. Scales
/// of the operands go into alpha, or into mp::scale_per_row and mp::scale_per_column. The bits of mp::gemm on mp::emulated.
///
///     mp::gemm(stream, x_scale, x, w, 0, y, mp::scale_per_column(w_scales.span()));
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, int8_operand A,
          int8_operand B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::multiply_integers_on_gpu<Kernel>(exec, alpha, a, b, beta, c, epilogue);
}

}}  // namespace mp
