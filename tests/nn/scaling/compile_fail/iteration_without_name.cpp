// expects: ignoring return value of .*training_iteration|ignoring temporary created by a constructor declared with 'nodiscard'
// SPDX-License-Identifier: MIT
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>
#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

void bad(mp::loss_scaler<mp::pytorch_policy>& scaler, mp::sgd<float>& optimizer) {
    mp::training_iteration(scaler, optimizer);
}
