// SPDX-License-Identifier: MIT
/// \file
/// Masters and compensations of weights that something else than the optimizer has written.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/nn/optim/split_master.hpp>
#include <mp/nn/optim/weight_update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The lower half of a split master whose upper half may have been written: it stays, except where no float is split
/// into the two. Next to a zero, for example, a set top bit would stand for a number below it.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint16_t low_half_beside(std::uint16_t high,
                                                                     std::uint16_t low) noexcept {
    return split_master(join_master({high, low})) == split_float{high, low} ? low : std::uint16_t{0};
}

/// Sets masters to the weights: all, or those that do not round to them.
template <class Weight, class Master>
void masters_of_weights(std::span<const Weight> weights, Master* masters, bool all) {
    const default_floating_point_modes modes;
    Weight rounded[update_block];
    for (std::size_t first = 0; first < weights.size(); first += update_block) {
        const std::size_t count = (std::min)(update_block, weights.size() - first);
        copy_block(masters + first, rounded, count);
        for (std::size_t i = 0; i < count; ++i) {
            const Weight& weight = weights[first + i];
            if (all || std::memcmp(rounded + i, &weight, sizeof weight) != 0) {
                masters[first + i] = static_cast<Master>(static_cast<float>(weight));
            }
        }
    }
}

/// Sets compensations, or lower halves of split masters, to zero: all, or those that do not belong to the weights.
template <class Weight>
void compensations_of_weights(std::span<const Weight> weights, Weight* kept, weight_update how, bool all) {
    const default_floating_point_modes modes;
    if (all) {
        std::fill_n(kept, weights.size(), Weight{});
    } else if (how == weight_update::kahan) {
        // A compensation is at most half the spacing there, so that the sum with half of it rounds to the weight.
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const float half_of_it = float_multiply(static_cast<float>(kept[i]), 0.5F);
            const auto sum = static_cast<Weight>(float_add(static_cast<float>(weights[i]), half_of_it));
            if (std::memcmp(&sum, &weights[i], sizeof sum) != 0) kept[i] = Weight{};
        }
    } else if constexpr (sizeof(Weight) == sizeof(std::uint16_t)) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
            const auto high = bit_cast<std::uint16_t>(weights[i]), low = bit_cast<std::uint16_t>(kept[i]);
            kept[i] = bit_cast<Weight>(low_half_beside(high, low));
        }
    }
}

}}  // namespace mp::detail
