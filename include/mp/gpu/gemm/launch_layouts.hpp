// SPDX-License-Identifier: MIT
/// \file
/// Launching ring_gemm_kernel.
#pragma once

#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/ring_kernel.hpp>
#include <mp/simt/kernel_traits.hpp>

#include <cstddef>
#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Launches the kernel of an engine for the layouts of a problem.
template <template <class, class, class, bool, bool> class Engine, class Tile, class Executor, class A,
          class B, class Output, class Epilogue, class Scales>
void launch_layouts(std::string_view function, const Executor& exec,
                    const product_problem<A, B, Output, Epilogue>& problem, const Scales& scales,
                    std::ptrdiff_t batch) {
    with_layouts(problem, [&]<bool ADepthContiguous, bool BDepthContiguous>() {
        using engine = Engine<Tile, A, B, ADepthContiguous, BDepthContiguous>;
        using kernel = ring_gemm_kernel<engine, Output, Epilogue, Scales>;
        const kernel it{problem, scales};
        launch(function, exec, simt::launch_size{it.blocks(batch), kernel::shared_bytes}, it);
    });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
