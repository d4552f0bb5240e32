// SPDX-License-Identifier: MIT
// After construction and the first iteration, a training loop under loss scaling allocates nothing.
#include <doctest/doctest.h>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/optim.hpp>

#include <cstddef>
#include <limits>
#include <vector>

#include "count_allocations.hpp"

TEST_CASE("an iteration allocates nothing, whether it is applied, skipped or clipped") {
    std::vector<mp::half> weights(64, mp::half(1.0F));
    std::vector<mp::half> gradient(64, mp::half(0.5F));
    mp::sgd<mp::half> first({{"first", weights, gradient}}, {});
    std::vector<mp::half> more_weights(64, mp::half(1.0F));
    std::vector<mp::half> more_gradient(64, mp::half(0.5F));
    mp::sgd<mp::half> second({{"second", more_weights, more_gradient}}, {});
    mp::loss_scaler scaler(mp::pytorch_policy{.growth_interval = 7});
    const auto iterate = [&](bool bad, bool clip) {
        mp::training_iteration iteration(scaler, first, second);
        float scaled = iteration.scale(1.0F);
        static_cast<void>(scaled);
        gradient[3] = bad ? std::numeric_limits<mp::half>::infinity() : mp::half(0.5F);
        if (clip) iteration.clip_gradient_norm(1.0);
        return static_cast<bool>(iteration.finish());
    };
    iterate(false, true);  // makes the memory for unscaled gradients
    const long before = allocations;
    int applied = 0;
    for (int i = 0; i < 100; ++i) applied += iterate(i % 10 == 3, i % 3 == 0) ? 1 : 0;
    const long after = allocations;
    CHECK(after == before);
    CHECK(applied == 90);
    // The counter counts.
    int* volatile counted_too = new int(5);
    delete counted_too;
    CHECK(allocations > after);
}
