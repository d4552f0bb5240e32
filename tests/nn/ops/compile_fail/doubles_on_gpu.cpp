// expects: a GPU computes in float, and this op \(the one that takes_doubles names\) has an operand of doubles
// SPDX-License-Identifier: MIT
#include <mp/gpu.hpp>
#include <mp/ops.hpp>

void bad(mp::matrix_view<const double> x, mp::matrix_view<double> y) {
    mp::ops::silu(mp::simulated_gpu<mp::arch::sm_80>{}, x, y);
}
