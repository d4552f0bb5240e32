// SPDX-License-Identifier: MIT
// <mp/optim.hpp> alone declares the numbers that optimizers are made of: compiled, not run.
#include <mp/optim.hpp>

int optimizers() {
    mp::bfloat16 weights[2]{}, gradient[2]{};
    mp::half low[2]{}, slopes[2]{};
    mp::adamw<mp::bfloat16> adamw({{"w", weights, gradient}});
    mp::sgd<mp::half> sgd({{"w", low, slopes}});
    adamw.step();
    sgd.step();
    return adamw.step_count() == sgd.step_count() ? 0 : 1;
}
