// SPDX-License-Identifier: MIT
// Float masters in two halves: lossless for every float, nearest bfloat16, and the training run of a float
// master copy, to the bit.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/optim.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "nn/optim/executors.hpp"
#include "nn/scaling/thrown.hpp"

namespace {

bool is_nan(std::uint32_t code) {
    return (code & 0x7FFFFFFFU) > 0x7F800000U;
}

/// Adam with float state.
using split_adamw = mp::adamw<mp::bfloat16, mp::bfloat16, mp::bfloat16, float>;

std::vector<float> masters_of(const split_adamw& optimizer, std::size_t index) {
    std::vector<float> result(optimizer.parameters()[index].weights.size());
    optimizer.copy_master_weights(index, 0, result);
    return result;
}

/// Whether a weight is one that a float master copy may have: its nearest bfloat16, either one at a tie.
bool is_nearest(mp::bfloat16 weight, float master) {
    const mp::bfloat16 even(master);
    if (weight.bits() == even.bits()) return true;
    const auto code = std::bit_cast<std::uint32_t>(master);
    return (code & 0xFFFFU) == 0x8000U && weight.bits() == even.bits() + 1;
}

}  // namespace

TEST_CASE("every float comes back from its halves, of which the upper one is the nearest bfloat16") {
    std::uint64_t lost = 0;
    std::uint64_t far = 0;
    std::uint64_t other_ties = 0;
    const auto look_at = [&](std::uint32_t code) {
        const float value = std::bit_cast<float>(code);
        const mp::split_float halves = mp::split_master(value);
        const auto back = std::bit_cast<std::uint32_t>(mp::join_master(halves));
        const std::uint32_t quiet = is_nan(code) ? code | 0x00400000U : code;
        if (back != quiet) ++lost;
        const auto upper = mp::bfloat16::from_bits(halves.high);
        if (is_nan(code)) {
            if ((halves.high & 0x7FFFU) <= 0x7F80U || (halves.high >> 15) != (code >> 31)) ++far;
            return;
        }
        if (halves.high == mp::bfloat16(value).bits()) return;
        // Not what rounding to even gives: a tie, as near on the other side.
        ++other_ties;
        const auto distance = [&](mp::bfloat16 x) {
            return std::fabs(static_cast<double>(static_cast<float>(x)) - static_cast<double>(value));
        };
        if (distance(upper) != distance(mp::bfloat16(value)) || (code & 0xFFFFU) != 0x8000U) ++far;
    };
    // All lower halves for upper halves of every kind, and every upper half around its ties.
    for (const std::uint32_t upper :
         {0x0000U, 0x0001U, 0x007FU, 0x0080U, 0x3F80U, 0x3F81U, 0x7F7EU, 0x7F7FU, 0x7F80U, 0x7FBFU, 0x7FC0U,
          0x7FFFU, 0x8000U, 0x8001U, 0xBF80U, 0xFF7FU, 0xFF80U, 0xFFFFU}) {
        for (std::uint32_t low = 0; low < 0x10000; ++low) look_at(upper << 16 | low);
    }
    other_ties = 0;
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
        for (const std::uint32_t low : {0U, 1U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU}) {
            look_at(upper << 16 | low);
        }
    }
    CHECK(lost == 0);
    CHECK(far == 0);
    CHECK(other_ties == 2 * 0x7F80 / 2);  // of the finite upper halves every other one
    static_assert(mp::split_master(1.0F) == mp::split_float{0x3F80, 0});
    static_assert(mp::join_master({0x3F81, 0xFFFF}) == 0x1.01fffep0F);
}

TEST_CASE("masters and moments have the bits of a run with a float master copy, on every instruction set") {
    constexpr std::size_t count = 1003;
    for (const mp::cpu exec : optimizer_executors()) {
        CAPTURE(mp::name_of(exec.instructions));
        std::mt19937 random(11);
        std::normal_distribution<float> normal;
        std::vector<mp::bfloat16> split_weights(count);
        for (mp::bfloat16& it : split_weights) it = mp::bfloat16(normal(random));
        std::vector<mp::bfloat16> weights = split_weights;
        std::vector<mp::bfloat16> gradient(count);
        std::vector<mp::bfloat16> split_gradient(count);
        split_adamw split(exec, {{"", split_weights, split_gradient}},
                          {.low_precision_update = mp::weight_update::split});
        mp::adamw<mp::bfloat16> copy(exec, {{"", weights, gradient}});
        CHECK(split.bytes_per_parameter() == 2 + 2 + 2 + 8);
        CHECK(copy.bytes_per_parameter() == split.bytes_per_parameter() + 2);
        std::size_t wrong = 0;
        std::size_t ties = 0;
        for (int step = 0; step < 300; ++step) {
            for (std::size_t i = 0; i < count; ++i) {
                gradient[i] = split_gradient[i] = mp::bfloat16(normal(random) * 0.01F);
            }
            for (const auto each : {0, 1}) {
                const auto round = [&](auto& optimizer) {
                    if (step % 2 == 0) return optimizer.step(0.25F);
                    optimizer.unscale_gradients(0.25F);
                    optimizer.clip_gradient_norm(0.03);
                    optimizer.step();
                };
                each == 0 ? round(split) : round(copy);
            }
            const std::vector<float> masters = masters_of(split, 0);
            wrong += std::memcmp(masters.data(), copy.master_weights(0).data(), count * sizeof(float)) != 0;
            wrong += std::memcmp(split.gradient_mean(0).data(), copy.gradient_mean(0).data(),
                                 count * sizeof(float)) != 0;
            wrong += std::memcmp(split.gradient_mean_square(0).data(), copy.gradient_mean_square(0).data(),
                                 count * sizeof(float)) != 0;
            for (std::size_t i = 0; i < count; ++i) {
                wrong += is_nearest(split_weights[i], masters[i]) ? 0U : 1U;
                ties += split_weights[i].bits() != weights[i].bits() ? 1U : 0U;
            }
        }
        CHECK(wrong == 0);
        CHECK(ties > 0);  // some 300000 / 2^17
        CHECK(ties < 20);
    }
}

TEST_CASE("averages are of masters, and weights that were loaded begin new ones") {
    std::vector<mp::bfloat16> weights(10, mp::bfloat16(1.0F));
    std::vector<mp::bfloat16> gradient(10, mp::bfloat16(1.0F));
    mp::sgd<mp::bfloat16, mp::bfloat16, mp::bfloat16> optimizer(
        {{"", weights, gradient}},
        {.learning_rate = 0x1p-12, .low_precision_update = mp::weight_update::split});
    mp::weight_average average(optimizer, {.decay = 0.0});
    optimizer.step();
    CHECK(static_cast<float>(weights[0]) == 1.0F);
    std::vector<float> masters(3);
    optimizer.copy_master_weights(0, 7, masters);
    CHECK(masters == std::vector<float>(3, 1.0F - 0x1p-12F));
    average.update();
    CHECK(average.values(0)[9] == 1.0F - 0x1p-12F);
    optimizer.reload_master_weights();
    optimizer.copy_master_weights(0, 7, masters);
    CHECK(masters == std::vector<float>(3, 1.0F));
    CHECK(thrown<mp::argument_error>([&] { optimizer.copy_master_weights(0, 8, masters); }) ==
          "mp::optimizer_base::copy_master_weights: to.size() is 3; it must be at most the number of weights "
          "from `first` on, which is 2");
    CHECK(holds(thrown<mp::argument_error>([&] { optimizer.copy_master_weights(1, 0, masters); }),
                "mp::optimizer_base::copy_master_weights: index is 1"));
}

TEST_CASE("only bfloat16 without a master copy is split") {
    std::vector<mp::half> weights(2);
    std::vector<mp::half> gradient(2);
    std::vector<mp::bfloat16> more(2);
    std::vector<mp::bfloat16> more_gradient(2);
    CHECK(thrown<mp::argument_error>([&] {
              mp::sgd<mp::half, mp::half, mp::half> optimizer(
                  {{"", weights, gradient}}, {.low_precision_update = mp::weight_update::split});
          }) ==
          "mp::sgd: low_precision_update is 'split'; it must be another: only a bfloat16 is half of a float");
    CHECK(thrown<mp::argument_error>([&] {
              mp::adamw<mp::bfloat16> optimizer({{"", more, more_gradient}},
                                                {.low_precision_update = mp::weight_update::split});
          }) == "mp::adamw: low_precision_update is 'split'; it must be nearest, for there is a master copy");
}
