// SPDX-License-Identifier: MIT
// The cross entropy of a nearly certain label on the simulated GPU: the checks of the CPU.
#include <mp/nn/ops/softmax/gpu.hpp>
#include <mp/nn/ops/softmax_cross_entropy/gpu.hpp>

#include "device/gpu/matrices.hpp"
#include "nn/ops/certain_label.hpp"

namespace {

TEST_CASE("the loss and the gradient of a nearly certain label come from the other classes") {
    for (const std::size_t columns : {2U, 3U, 17U, 300U, 2500U}) {
        for (const double smoothing : {0.0, 0.1}) {
            certain_label_test::check<float>(gpu_test::watched(gpu_test::simulated{.seed = 1}), columns,
                                             smoothing, 2e-5);
        }
    }
}

}  // namespace
