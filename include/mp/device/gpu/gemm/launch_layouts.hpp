// SPDX-License-Identifier: MIT
/// \file
/// Launching multistage_gemm_kernel.
#pragma once

#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Launches the kernel of a policy for layouts that are known.
template <template <class, class, class, bool, bool> class Policy, class Tile, bool AKMajor, bool BKMajor,
          class Executor, class A, class B, class Output, class Epilogue, class Scales>
void launch_layout(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                   const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales) {
    using policy = Policy<Tile, A, B, AKMajor, BKMajor>;
    using kernel = multistage_gemm_kernel<policy, Output, Epilogue, Scales>;
    const kernel it{problem, scales};
    launch(function, exec,
           simt::launch_size{it.blocks(plan.batch), kernel::shared_bytes(plan.gpu.capability)}, it);
}

/// For those of the problem.
template <template <class, class, class, bool, bool> class Policy, class Tile, class Executor, class A,
          class B, class Output, class Epilogue, class Scales>
void launch_layouts(std::string_view function, const Executor& exec, const gpu_gemm_plan& plan,
                    const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales) {
    with_layouts(problem, [&]<bool AKMajor, bool BKMajor>() {
        launch_layout<Policy, Tile, AKMajor, BKMajor>(function, exec, plan, problem, scales);
    });
}

}}  // namespace mp::detail
