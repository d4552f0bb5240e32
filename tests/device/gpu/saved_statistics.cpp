// SPDX-License-Identifier: MIT
// Gradients from saved statistics of rows on the simulated GPU: the checks of the CPU.
#include <mp/nn/ops/attention/gpu.hpp>
#include <mp/nn/ops/normalization/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include "device/gpu/matrices.hpp"
#include "nn/ops/saved_statistics.hpp"

namespace {

using gpu_test::simulated;
using gpu_test::watched;

TEST_CASE(
    "attention with a mask of any magnitude has the CPU's gradients, with and without saved statistics") {
    mp::host_workspace memory;
    statistics_test::check_attention<float>(watched(simulated{.seed = 1, .workspace = &memory}), 5e-6);
}

TEST_CASE(
    "cross entropy of logits of any magnitude has the CPU's gradients, with and without saved statistics") {
    for (const std::ptrdiff_t columns : {2, 8, 300, 1500}) {
        statistics_test::check_cross_entropy<float>(watched(simulated{.seed = 1}), columns, 2e-6);
    }
}

TEST_CASE("norms of rows far from zero have the CPU's gradients, with and without saved statistics") {
    mp::host_workspace memory;
    statistics_test::check_norms<float>(watched(simulated{.seed = 1, .workspace = &memory}), 5e-6);
}

}  // namespace
