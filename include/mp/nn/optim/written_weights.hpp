// SPDX-License-Identifier: MIT
/// \file
/// Masters and compensations of weights that something else than the optimizer has written.
#pragma once

#include <mp/arrays/array/row_type.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/split_master.hpp>
#include <mp/nn/optim/weight_update.hpp>

#if MP_CORE_BODIES
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstring>
#endif

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The lower half of a split master whose upper half may have been written: it stays, except where no float is split
/// into the two. Next to a zero, for example, a set top bit would stand for a number below it.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint16_t low_half_beside(std::uint16_t high,
                                                                     std::uint16_t low) noexcept {
    return split_master(join_master({high, low})) == split_float{high, low} ? low : std::uint16_t{0};
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Sets masters to the weights: all, or those that do not round to them.
MP_CORE_FUNCTION void masters_of_weights(instruction_set isa, const row_type& weight_type,
                                         const void* weights, const row_type& master_type, void* masters,
                                         std::size_t count, bool all);

/// Sets compensations, or lower halves of split masters, to zero: all, or those that do not belong to the weights.
MP_CORE_FUNCTION void compensations_of_weights(instruction_set isa, const row_type& type, const void* weights,
                                               void* kept, std::size_t count, weight_update how, bool all);

}}  // namespace mp::detail

#if MP_CORE_BODIES
namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Copies the elements of `from` to `to` for which `differs` is true of their index.
template <class Predicate>
void copy_where(const Predicate& differs, const std::byte* from, std::byte* to, std::size_t size,
                std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (differs(i)) std::memcpy(to + i * size, from + i * size, size);
    }
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

MP_CORE_FUNCTION void masters_of_weights(instruction_set isa, const row_type& weight_type,
                                         const void* weights, const row_type& master_type, void* masters,
                                         std::size_t count, bool all) {
    const default_floating_point_modes modes;
    const std::size_t size = weight_type.size;
    alignas(64) float values[update_block];
    alignas(64) std::byte rounded[update_block * sizeof(float)];
    for (std::size_t first = 0; first < count; first += update_block) {
        const std::size_t length = (std::min)(update_block, count - first);
        const std::byte* const weight = static_cast<const std::byte*>(weights) + first * size;
        std::byte* const master = static_cast<std::byte*>(masters) + first * master_type.size;
        alignas(64) bool stays[update_block] = {};
        if (!all) {
            master_type.widen(isa, master, values, length);
            weight_type.narrow(isa, values, rounded, length);
            for (std::size_t i = 0; i < length; ++i) {
                stays[i] = std::memcmp(rounded + i * size, weight + i * size, size) == 0;
            }
        }
        weight_type.widen(isa, weight, values, length);
        master_type.narrow(isa, values, rounded, length);
        copy_where([&](std::size_t i) { return !stays[i]; }, rounded, master, master_type.size, length);
    }
}

MP_CORE_FUNCTION void compensations_of_weights(instruction_set isa, const row_type& type, const void* weights,
                                               void* kept, std::size_t count, weight_update how, bool all) {
    const default_floating_point_modes modes;
    if (all) {
        std::memset(kept, 0, count * type.size);
    } else if (how == weight_update::kahan) {
        // A compensation is at most half the spacing there, so that the sum with half of it rounds to the weight.
        alignas(64) float values[update_block];
        alignas(64) float halves[update_block];
        alignas(64) std::byte sums[update_block * sizeof(float)];
        constexpr std::byte zeros[update_block * sizeof(float)] = {};
        for (std::size_t first = 0; first < count; first += update_block) {
            const std::size_t length = (std::min)(update_block, count - first);
            const std::byte* const weight = static_cast<const std::byte*>(weights) + first * type.size;
            std::byte* const compensation = static_cast<std::byte*>(kept) + first * type.size;
            type.widen(isa, weight, values, length);
            type.widen(isa, compensation, halves, length);
            for (std::size_t i = 0; i < length; ++i) {
                values[i] = float_add(values[i], float_multiply(halves[i], 0.5F));
            }
            type.narrow(isa, values, sums, length);
            const auto differs = [&](std::size_t i) {
                return std::memcmp(sums + i * type.size, weight + i * type.size, type.size) != 0;
            };
            copy_where(differs, zeros, compensation, type.size, length);
        }
    } else {
        const auto* const high = static_cast<const std::uint16_t*>(weights);
        auto* const low = static_cast<std::uint16_t*>(kept);
        for (std::size_t i = 0; i < count; ++i) low[i] = low_half_beside(high[i], low[i]);
    }
}

}}  // namespace mp::detail
#endif
