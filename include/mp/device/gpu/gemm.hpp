// SPDX-License-Identifier: MIT
/// \file
/// The general matrix product on GPUs.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/device/gpu/gemm/mixed_policy.hpp>
#include <mp/device/gpu/gemm/mixed_product.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/padded_policies.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/warpgroup_product.hpp>
#include <mp/device/gpu/properties.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/batched.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/matrix_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

namespace mp {

/// An element type of the result of a matrix product on a GPU.
template <class Value>
concept gpu_gemm_output = !std::is_const_v<Value> && (reduced<Value> || std::same_as<Value, float>);

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The plan with the kernel that is taken where wgmma does not take the matrices.
template <class Input>
[[nodiscard]] gpu_gemm_plan without_warpgroups(const gpu_gemm_plan& plan) {
    return plan_with_kernel<Input>(plan.gpu, best_kernel<Input>(plan.gpu.capability), plan.rows, plan.columns,
                                   plan.k, plan.batch, {.splits = plan.splits});
}

template <gpu_gemm_kernel Asked, class Executor, class A, class B, class Output, class Epilogue>
void launch_plan(const Executor& exec, const gpu_gemm_plan& plan,
                 const product_problem<A, B, Output, Epilogue>& problem) {
    constexpr auto has = [](gpu_gemm_kernel kernel) { return has_kernel<Executor, A, Asked>(kernel); };
    if constexpr (has(gpu_gemm_kernel::mma)) {
        if (plan.kernel == gpu_gemm_kernel::mma) {
            mma_tiles<A>::call_for(plan, [&]<class Tile>() {
                launch_layouts<mma_policy, Tile>("mp::gemm", exec, plan, problem, no_scales{});
            });
        }
    }
    if constexpr (has(gpu_gemm_kernel::wgmma)) {
        if (plan.kernel == gpu_gemm_kernel::wgmma) {
            if constexpr (Asked == gpu_gemm_kernel::automatic) {
                if (problem.c.has_product && !(warpgroups_take(problem.a) && warpgroups_take(problem.b))) {
                    // The plan was made for matrices that lie otherwise; the other kernel has the same bits.
                    return launch_plan<Asked>(exec, without_warpgroups<A>(plan), problem);
                }
            }
            run_warpgroups("mp::gemm", exec, plan, problem, no_scales{});
        }
    }
    if constexpr (has(gpu_gemm_kernel::wmma)) {
        static_assert(sizeof(A) != 1, "mp::gemm: nvcuda::wmma does not multiply 8 bits; mma and wgmma do");
        if constexpr (sizeof(A) != 1) {
            if (plan.kernel == gpu_gemm_kernel::wmma) {
                launch_layouts<wmma_policy, wmma_tile_128>("mp::gemm", exec, plan, problem, no_scales{});
            }
        }
    }
    if constexpr (has(gpu_gemm_kernel::simt)) {
        if (plan.kernel == gpu_gemm_kernel::simt) {
            launch_layouts<simt_policy, simt_tile_64>("mp::gemm", exec, plan, problem, no_scales{});
        }
    }
}

/// Throws for everything that the CPU's product refuses, too.
template <class A, class B, class C, class Epilogue>
void check_gpu_product(std::string_view function, const matrix_view<A>& a, const matrix_view<B>& b,
                       const matrix_view<C>& c, const Epilogue& epilogue) {
    static_assert(gpu_gemm_pair<A, B>,
                  "mp::gemm on a GPU: a and b must have the same element type, or both have 8 bits");
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm on a GPU: the epilogue is copied to the device byte by byte");
    check_product(function, extent_of(a), extent_of(b), extent_of(c));
    validate_epilogue(epilogue, c, product_input{"a", a}, product_input{"b", b});
}

/// Throws unless the plan is for these matrices and has its workspace.
template <gpu_gemm_kernel Asked, class Executor, class Input>
void check_plan(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k, std::ptrdiff_t batch,
                std::size_t workspace) {
    const auto check = [&](std::string_view name, std::ptrdiff_t planned, std::ptrdiff_t given) {
        if (planned != given) {
            throw_argument(function, name, planned,
                           "must be that of the product, which is " + error_text(given));
        }
    };
    if (plan.gpu.device != device_number(exec)) {
        throw_argument(function, "plan.gpu.device", plan.gpu.device,
                       "must be the device of the product, which is " + error_text(device_number(exec)));
    }
    check("plan.rows", plan.rows, rows);
    check("plan.columns", plan.columns, columns);
    check("plan.k", plan.k, k);
    check("plan.batch", plan.batch, batch);
    check("plan.tile_k", plan.tile_k, tile_k_of<Input>(plan.kernel));
    if (!can_run<Input>(plan.gpu, plan.kernel) || !has_kernel<Executor, Input, Asked>(plan.kernel)) {
        throw_argument(
            function, "plan.kernel", name_of(plan.kernel),
            "must be one that this device has for operands of this type, and that the call was compiled "
            "with: make the plan by mp::plan_gemm with the template arguments of the product");
    }
    check_tile<Input>(function, plan);
    if (plan.splits < 1 || plan.splits > most_splits) {
        throw_argument(function, "plan.splits", plan.splits, "must be from 1 to " + error_text(most_splits));
    }
    if (workspace < plan.workspace_size()) {
        throw_argument(
            function, "workspace.size()", workspace,
            "must be at least plan.workspace_size(), which is " + error_text(plan.workspace_size()));
    }
}

/// Has run(problem) enqueue a product by the plan, and adds up the slices if the plan divides k.
template <class Executor, class A, class B, class C, class Epilogue, class Run>
void run_in_slices(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                   product_problem<A, B, C, Epilogue> problem, std::span<float> workspace, Run run) {
    problem.splits = plan.splits;
    problem.sums = workspace.data();
    run(problem);
    if (plan.splits == 1) return;
    const split_sum_kernel<C, Epilogue> sum{problem.c, workspace.data(), plan.splits, plan.batch};
    launch(function, exec, simt::launch_size{sum.blocks()}, sum);
}

/// The plan of products of these matrices. Whether wgmma takes them is asked only where that matters.
template <gpu_gemm_kernel Asked, class Executor, class A, class B>
[[nodiscard]] gpu_gemm_plan plan_for(const Executor& exec, matrix_view<A> a, matrix_view<B> b,
                                     std::ptrdiff_t count, const batch_strides& strides,
                                     const gpu_gemm_options& options) {
    static_assert(gpu_gemm_pair<A, B>,
                  "mp::plan_gemm: a and b must have the same element type, or both have 8 bits");
    using input = std::remove_const_t<A>;
    const gpu_properties gpu = properties_of(exec);
    operand_layouts layouts{false, a.order == storage_order::row_major};
    if constexpr (may_take_warpgroups<input, Asked>)
        layouts.warpgroups_take = gpu.has_warpgroups && warpgroups_take(a, b, strides);
    const gpu_gemm_kernel kernel = resolve_kernel<input, Asked>(gpu, layouts, a.rows, b.columns, count);
    return plan_with_kernel<input>(gpu, kernel, a.rows, b.columns, a.columns, count, options, layouts);
}

/// Options of a plan for products with this beta and an epilogue of this type. Threads end a C that is read.
template <class Epilogue>
[[nodiscard]] gpu_gemm_options options_for(float beta) {
    constexpr int of_epilogue = epilogue_instructions<Epilogue>;
    constexpr int of_threads = (std::max)(of_epilogue, least_epilogue_instructions);
    return {.epilogue_instructions = same_value(beta, 0.0F) ? of_epilogue : of_threads};
}

/// Products behind their checks.
template <gpu_gemm_kernel Asked, class Executor, class A, class B, class C, class Epilogue>
void run_plan(const Executor& exec, const gpu_gemm_plan& plan, float alpha, matrix_view<A> a,
              matrix_view<B> b, float beta, matrix_view<C> c, const Epilogue& epilogue,
              std::span<float> workspace, const batch_strides& strides) {
    with_row_major_output(alpha, a, b, beta, c, epilogue, strides, [&](const auto& problem) {
        run_in_slices("mp::gemm", exec, plan, problem, workspace,
                      [&](const auto& slices) { launch_plan<Asked>(exec, plan, slices); });
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Decides how mp::gemm computes products of this shape on the executor's device: see plan_gemm above.
///
///     const mp::gpu_gemm_plan plan = mp::plan_gemm<mp::half>(stream, m, n, k, 1, {.splits = 0});
///     mp::device_buffer<float> workspace(plan.workspace_size());
///     mp::gemm(stream, plan, 1, a, b, 0, c, mp::relu_epilogue{}, workspace.span());
template <gpu_gemm_input Input, gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor>
[[nodiscard]] gpu_gemm_plan plan_gemm(const Executor& exec, std::ptrdiff_t rows, std::ptrdiff_t columns,
                                      std::ptrdiff_t k, std::ptrdiff_t batch = 1,
                                      const gpu_gemm_options& options = {}) {
    return plan_gemm<Input, Kernel>(properties_of(exec), rows, columns, k, batch, options);
}

/// Overload from the matrices themselves, which knows how they lie, and so whether wgmma takes them. The plan is for
/// all matrices of these shapes. Where it has taken wgmma, others than those that are aligned like these are multiplied
/// by another kernel, to the same bits, or refused if wgmma was asked for.
///
///     const mp::gpu_gemm_plan plan = mp::plan_gemm(stream, a, b);
///     mp::gemm(stream, plan, 1, a, b, 0, c);
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B>
[[nodiscard]] gpu_gemm_plan plan_gemm(const Executor& exec, matrix_view<A> a, matrix_view<B> b,
                                      const gpu_gemm_options& options = {}) {
    return detail::plan_for<Kernel>(exec, a, b, 1, {}, options);
}

/// Overload for gemm_batched.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B>
[[nodiscard]] gpu_gemm_plan plan_gemm(const Executor& exec, std::ptrdiff_t count, matrix_batch<A> a,
                                      matrix_batch<B> b, const gpu_gemm_options& options = {}) {
    return detail::plan_for<Kernel>(exec, a.first, b.first, count, {a.stride, b.stride, 0}, options);
}

/// The general matrix product c = epilogue(alpha * a b + beta * c) on a GPU, in its tensor cores: the
/// interface and meaning of mp::gemm on the CPU, with views of device memory.
///
/// Shapes: a is m x k, b is k x n, c is m x n, each in its own storage order with its own leading dimension;
/// any sizes, zero included, and any alignment: matrices whose rows (columns, if column-major) all begin at
/// multiples of 16 bytes are copied in chunks of 16 bytes, others in chunks of 4 bytes or by elements,
/// slower. a and b are both of half, both of bfloat16, both of tfloat32 (an array of floats is one, without
/// its last 13 bits), or of 8 bits, in any mix. What the tensor cores of a device do not take, floats for
/// example, is computed by ordinary instructions, far slower.
///
/// Numerics: a b has the bits of mp::gemm on mp::emulated of the device's architecture (with
/// float8_unit::through_half for 8 bits on sm_90 and sm_100, whose mma.sync is that): each element starts at
/// zero and takes blocks of ascending k. Where k is split, each slice has these bits, and the slices
/// are added in float, in their order. By ordinary instructions: fused multiply-adds in ascending k. alpha,
/// beta, the epilogue and the one rounding to the type of c are those of the CPU, bit for bit.
/// The bits of an element of c depend on its row of a, its column of b, its own c, alpha, beta, the
/// architecture and the number of splits, and on nothing else.
///
/// Accuracy: with the rule of the architecture (block_rule_of), of L products and F fraction bits, the float
/// sum of n = ceil(k / L) blocks is within n ((L + 1) 2^-F + 2^-23) sum |a b| of the exact one, and mostly
/// toward zero; 2^-13 in place of 2^-23 where the rule keeps 13 fraction bits. (Subnormal operands count as
/// the smallest normal number.)
///
/// beta == 0 means that c is not read, and alpha == 0 or k == 0 that a and b are not read. Padding between
/// lines is left alone.
///
/// The epilogue is copied to the device: it must be trivially copyable, callable in device code, and refer to
/// device memory only, as mp::bias_per_column(buffer.span()) does for a device_buffer.
///
/// Enqueues one kernel, two with splits; nothing is allocated and nothing waited for, so it can be captured
/// into a graph. The workspace must stay until the stream has passed. Throws argument_error, with nothing
/// enqueued, for everything that the CPU's mp::gemm refuses, for a plan that does not fit the matrices, the
/// types or the device, and for a workspace that is too small; and cuda_error when the launch fails.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(const Executor& exec, const gpu_gemm_plan& plan, float alpha, matrix_view<A> a, matrix_view<B> b,
          float beta, matrix_view<C> c, Epilogue epilogue = {}, std::span<float> workspace = {}) {
    constexpr std::string_view function = "mp::gemm";
    detail::check_gpu_product(function, a, b, c, epilogue);
    detail::check_plan<Kernel, Executor, std::remove_const_t<A>>(function, exec, plan, c.rows, c.columns,
                                                                 a.columns, 1, workspace.size());
    if (c.rows == 0 || c.columns == 0) return;
    detail::run_plan<Kernel>(exec, plan, alpha, a, b, beta, c, epilogue, workspace, {});
}

/// Overload with the plan that plan_gemm makes without options.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
    requires gpu_gemm_pair<A, B>
void gemm(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::check_gpu_product("mp::gemm", a, b, c, epilogue);
    if (c.rows == 0 || c.columns == 0) return;
    gemm<Kernel>(exec, plan_gemm<Kernel>(exec, a, b, detail::options_for<Epilogue>(beta)), alpha, a, b, beta,
                 c, epilogue);
}

/// Overload for one operand of 16 bits (half or bfloat16) and one of 8 (std::int8_t or the two float8), such as weights that are
/// kept small: these become of 16 bits, exactly, on their way to the tensor cores (mma.sync, from sm_80 on), so that they are
/// fetched as 8. The bits are those of the product with the operand converted. Scales go into alpha, or into
/// mp::scale_per_column and mp::scale_per_row. Older devices multiply numbers as below, and no
/// integers: argument_error.
///
///     mp::gemm(stream, 1, x, mp::transposed(mp::row_major(w, n, k)), 0, y, mp::scale_per_column(w_scales.span()));
template <gpu_executor Executor, class A, class B, gpu_gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires gpu_mixed_pair<A, B>
void gemm(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::multiply_mixed(exec, alpha, a, b, beta, c, epilogue);
}

/// Overload for any other mix of float and reduced formats: a and b are widened to float, in the executor's
/// workspace, and multiplied by ordinary instructions. Throws argument_error where there is no workspace.
template <gpu_executor Executor, class A, class B, gpu_gemm_output C,
          gemm_epilogue Epilogue = identity_epilogue>
    requires(!gpu_gemm_pair<A, B> && !gpu_mixed_pair<A, B> && detail::widens_to_float<A> &&
             detail::widens_to_float<B>)
void gemm(const Executor& exec, float alpha, matrix_view<A> a, matrix_view<B> b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    detail::multiply_widened(exec, alpha, a, b, beta, c, epilogue);
}

/// c[i] = epilogue(alpha * a[i] b[i] + beta * c[i]) for i in [0, plan.batch), in one launch: see gemm_batched
/// on the CPU for batches, and gemm above for the rest. Each product has the bits that gemm gives.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_batched(const Executor& exec, const gpu_gemm_plan& plan, float alpha, matrix_batch<A> a,
                  matrix_batch<B> b, float beta, matrix_batch<C> c, Epilogue epilogue = {},
                  std::span<float> workspace = {}) {
    static_assert(gpu_gemm_pair<A, B>,
                  "mp::gemm_batched: a and b must have the same element type, or both have 8 bits");
    static_assert(std::is_trivially_copyable_v<Epilogue>,
                  "mp::gemm_batched on a GPU: the epilogue is copied to the device byte by byte");
    constexpr std::string_view function = "mp::gemm_batched";
    if (plan.batch == 0) return;
    detail::check_batch(function, plan.batch, a, b, c);
    detail::validate_batch_epilogue(epilogue, plan.batch, c, detail::product_input{"a", a, plan.batch},
                                    detail::product_input{"b", b, plan.batch});
    detail::check_plan<Kernel, Executor, std::remove_const_t<A>>(
        function, exec, plan, c.first.rows, c.first.columns, a.first.columns, plan.batch, workspace.size());
    if (c.first.rows == 0 || c.first.columns == 0) return;
    detail::run_plan<Kernel>(exec, plan, alpha, a.first, b.first, beta, c.first, epilogue, workspace,
                             {a.stride, b.stride, c.stride});
}

/// Overload with the plan that plan_gemm makes without options.
template <gpu_gemm_kernel Kernel = gpu_gemm_kernel::automatic, gpu_executor Executor, gpu_gemm_input A,
          gpu_gemm_input B, gpu_gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm_batched(const Executor& exec, std::ptrdiff_t count, float alpha, matrix_batch<A> a,
                  matrix_batch<B> b, float beta, matrix_batch<C> c, Epilogue epilogue = {}) {
    if (count < 0) detail::throw_argument("mp::gemm_batched", "count", count, "must not be negative");
    gemm_batched<Kernel>(exec, plan_gemm<Kernel>(exec, count, a, b, detail::options_for<Epilogue>(beta)),
                         alpha, a, b, beta, c, epilogue);
}

}}  // namespace mp
