// SPDX-License-Identifier: MIT
// After the first round, on one thread, no pass of an optimizer allocates.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/optim.hpp>

#include <cstddef>
#include <vector>

#include "count_allocations.hpp"

namespace {

template <class Optimizer, class Options>
void check(const Options& options) {
    std::vector<mp::bfloat16> weights(10001, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> gradient(10001, mp::bfloat16(0.5F));
    std::vector<mp::bfloat16> more_weights(77, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> more_gradient(77, mp::bfloat16(0.5F));
    Optimizer optimizer({{"", weights, gradient}, {"", more_weights, more_gradient}}, options);
    const auto round = [&] {
        static_cast<void>(optimizer.check_gradients(0.5F));
        optimizer.unscale_gradients(0.5F);
        optimizer.clip_gradient_norm(1.0);
        optimizer.set_learning_rate_factor(0.5);
        optimizer.step();
        optimizer.step(0.5F);
        optimizer.skip_step();
        optimizer.zero_gradients();
    };
    round();
    const long before = allocations;
    for (int i = 0; i < 5; ++i) round();
    CHECK(allocations == before);
    // The counter counts.
    int* volatile counted_too = new int(5);
    delete counted_too;
    CHECK(allocations > before);
}

}  // namespace

TEST_CASE("rounds after the first allocate nothing, whichever way weights are updated") {
    check<mp::sgd<mp::bfloat16>>(mp::sgd_options{.momentum = 0.9});
    check<mp::adamw<mp::bfloat16>>(mp::adamw_options{});
    check<mp::adamw<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(mp::adamw_options{});
    check<mp::adafactor<mp::bfloat16>>(mp::adafactor_options{});
    check<mp::lars<mp::bfloat16>>(mp::lars_options{});
    check<mp::lamb<mp::bfloat16>>(mp::lamb_options{});
    check<mp::lamb<mp::bfloat16, mp::bfloat16, float, mp::block_moment>>(mp::lamb_options{});
    using alone = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16>;
    for (const auto how : {mp::weight_update::nearest, mp::weight_update::stochastic,
                           mp::weight_update::kahan, mp::weight_update::split}) {
        check<alone>(mp::adamw_options{.low_precision_update = how});
    }
}

TEST_CASE("clipping by the norm allocates sums of blocks and no copy of the gradients") {
    std::vector<mp::half> weights(1U << 20, mp::half(1.0F));
    std::vector<mp::half> gradient(1U << 20, mp::half(0.5F));
    mp::adamw<mp::half> optimizer({{"", weights, gradient}});
    const std::size_t before = allocated_bytes;
    for (int i = 0; i < 3; ++i) {
        optimizer.unscale_gradients(0.25F);
        CHECK(optimizer.clip_gradient_norm(1.0) == 128.0);
        optimizer.step();
    }
    CHECK(allocated_bytes - before == (1U << 20) / 4096 * sizeof(double));
}

TEST_CASE("averages after the first allocate nothing") {
    std::vector<mp::bfloat16> weights(5000, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> gradient(5000, mp::bfloat16(0.5F));
    mp::sgd<mp::bfloat16> optimizer({{"", weights, gradient}}, {.learning_rate = 0.1});
    mp::weight_average average(optimizer);
    const auto round = [&] {
        optimizer.step();
        average.update();
        const auto applied = average.apply();
    };
    round();
    const long before = allocations;
    for (int i = 0; i < 5; ++i) round();
    CHECK(allocations == before);
}
