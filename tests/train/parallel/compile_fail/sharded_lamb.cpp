// expects: mp::sharded_optimizer: this optimizer looks at whole parameters
// SPDX-License-Identifier: MIT
#include <mp/optim.hpp>
#include <mp/parallel.hpp>

void f(mp::gradient_reduction<mp::single_rank>& reduction, mp::parameter_store<float>& store) {
    auto optimizer = mp::shard<mp::lamb<float>>(mp::cpu{}, reduction, store);
}
