// SPDX-License-Identifier: MIT
/// \file
/// Labels of the kernels of matrix products, by which kernels whose results are wrong are excluded from benchmarks.
#pragma once

#include <mp/device/gpu/gemm/plan.hpp>
#include <mp/numbers/format/descriptor.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace bench::gpu {

/// Slices of k of the plans that stand for all split-k plans.
inline constexpr int label_splits = 3;

/// Label of the kernel of a plan, such as "bfloat16.wgmma.128x256x64.cluster2"; plans that split k end with ".split3",
/// whatever the number of slices.
template <class Input>
std::string kernel_label(mp::gpu_gemm_plan plan) {
    if (plan.splits != 1) plan.splits = label_splits;
    return std::string(mp::detail::format_of_t<Input>::name) + "." + plan.kernel_name();
}

/// Returns true if the environment variable MP_EXCLUDED_KERNELS, labels separated by spaces, has the label of the plan's
/// kernel, with or without split k, and prints "without <label>" in this case.
template <class Input>
bool is_excluded(mp::gpu_gemm_plan plan) {
    const char* const excluded = std::getenv("MP_EXCLUDED_KERNELS");
    if (excluded == nullptr) return false;
    const std::string label = kernel_label<Input>(plan);
    plan.splits = 1;
    const std::string unsplit = kernel_label<Input>(plan);
    std::istringstream words(excluded);
    for (std::string word; words >> word;) {
        if (word != label && word != unsplit) continue;
        std::printf("without %s\n", word.c_str());
        return true;
    }
    return false;
}

}  // namespace bench::gpu
