// SPDX-License-Identifier: MIT
/// \file
/// The pass of an optimizer over moments in blocks: each block is floats in the first-level cache while the
/// pass for floats updates it.
#pragma once

#include <mp/base/instruction_set.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/nn/optim/kernels/update.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The scale of a block, and whether anything is to be divided by it: else all codes are zero, as the value
/// is, or the value is NaN.
struct block_scale {
    float value;
    bool divides;
};

/// By the codes of magnitudes, `count` of them.
inline block_scale block_scale_of(const std::uint32_t* magnitudes, std::size_t count) noexcept {
    std::uint32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) largest = (std::max)(largest, magnitudes[i]);
    if (largest >= 0x7F80'0000U) return {bit_cast<float>(0x7FC0'0000U), false};
    return {bit_cast<float>(largest), largest != 0};
}

template <class Codes>
void decode_moment_block_portable(const std::uint8_t* codes, float scale, float* to) {
    const default_floating_point_modes modes;
    for (std::size_t i = 0; i < moments_block; ++i) {
        to[i] = single_lane::decode_moments<Codes>(codes[i], single_lane::broadcast(scale)).value;
    }
}

template <class Codes>
float encode_moment_block_portable(const float* from, std::uint8_t* codes) {
    const default_floating_point_modes modes;
    std::uint32_t magnitudes[moments_block];
    for (std::size_t i = 0; i < moments_block; ++i) {
        magnitudes[i] = bit_cast<std::uint32_t>(from[i]) & 0x7FFF'FFFFU;
    }
    const block_scale scale = block_scale_of(magnitudes, moments_block);
    for (std::size_t i = 0; i < moments_block; ++i) {
        codes[i] = scale.divides ? static_cast<std::uint8_t>(single_lane::encode_moments<Codes>(
                                       single_lane::broadcast(from[i]), single_lane::broadcast(scale.value)))
                                 : std::uint8_t{0};
    }
    return scale.value;
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/nn/optim/kernels/block_moments.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Moments [0, count) of blocks from a boundary on as floats; both have room for whole blocks.
template <class Codes>
auto select_decode(instruction_set isa) noexcept {
    return MP_SELECT_TARGET(isa, &decode_moment_block_portable<Codes>, decode_moment_block<Codes>);
}
template <class Codes>
auto select_encode(instruction_set isa) noexcept {
    return MP_SELECT_TARGET(isa, &encode_moment_block_portable<Codes>, encode_moment_block<Codes>);
}

/// One state of one block on its way through floats.
class moment_window {
public:
    explicit moment_window(instruction_set isa) noexcept
        : decode_{select_decode<signed_moment_codes>(isa), select_decode<square_moment_codes>(isa)},
          encode_{select_encode<signed_moment_codes>(isa), select_encode<square_moment_codes>(isa)} {}

    /// `count` moments, at most a block, as floats into memory for a block; zeros behind them.
    void load(const block_moment* from, float scale, std::size_t count, std::size_t state,
              float* to) const noexcept {
        std::uint8_t codes[moments_block] = {};
        std::memcpy(codes, from, count);
        decode_[is_square(state) ? 1 : 0](codes, scale, to);
        std::fill(to + count, to + moments_block, 0.0F);
    }

    /// Encodes and stores them; what is behind them is zero.
    void store(const float* from, std::size_t count, std::size_t state, block_moment* to,
               float* scale) const noexcept {
        std::uint8_t codes[moments_block];
        *scale = encode_[is_square(state) ? 1 : 0](from, codes);
        std::memcpy(static_cast<void*>(to), codes, count);
    }

    /// The moments `first` to first + to.size() - 1 of a parameter of `size` weights.
    void read(const block_moment* codes, const float* scales, std::size_t size, std::size_t state,
              std::size_t first, std::span<float> to) const noexcept {
        float block[moments_block];
        for (std::size_t i = 0; i < to.size();) {
            const std::size_t begin = (first + i) / moments_block * moments_block;
            const std::size_t count = (std::min)(moments_block, size - begin);
            load(codes + begin, scales[begin / moments_block], count, state, block);
            const std::size_t copied = (std::min)(begin + count - (first + i), to.size() - i);
            std::copy_n(block + (first + i - begin), copied, to.data() + i);
            i += copied;
        }
    }

    /// All moments of a parameter of `size` weights, zeros if there are no values.
    void write(std::span<const float> from, std::size_t size, std::size_t state, block_moment* codes,
               float* scales) const noexcept {
        for (std::size_t at = 0; at < size; at += moments_block) {
            const std::size_t count = (std::min)(moments_block, size - at);
            float block[moments_block] = {};
            if (!from.empty()) std::copy_n(from.data() + at, count, block);
            store(block, count, state, codes + at, scales + at / moments_block);
        }
    }

private:
    void (*decode_[2])(const std::uint8_t*, float, float*);
    float (*encode_[2])(const float*, std::uint8_t*);
};

/// Calls f(block, at, window) on the blocks of a chunk whose states are block_moment, `at` in it; it begins with a
/// block. The states of `block` are floats if `has_states`.
template <class Weight, class Gradient, class Master, std::size_t States, class Function>
void for_each_moment_block(instruction_set isa,
                           const update_arrays<Weight, Gradient, Master, block_moment, States>& a,
                           bool has_states, Function f) {
    const moment_window window(isa);
    alignas(64) float moments[States][moments_block] = {};
    update_arrays<Weight, Gradient, Master, float, States> block{};
    for (std::size_t s = 0; s < States; ++s) block.states[s] = moments[s];
    block.inverse_scale = a.inverse_scale;
    block.clip_factor = a.clip_factor;
    block.seed = a.seed;
    block.parameter = a.parameter;
    block.update = a.update;
    for (std::size_t at = 0; at < a.count; at += moments_block) {
        block.weights = a.weights + at;
        block.masters = a.masters + at;
        block.gradient = a.gradient + at;
        if (a.compensation != nullptr) block.compensation = a.compensation + at;
        block.count = (std::min)(moments_block, a.count - at);
        block.first = a.first + at;
        for (std::size_t s = 0; has_states && s < States; ++s) {
            window.load(a.states[s] + at, a.scales[s][at / moments_block], block.count, s, moments[s]);
        }
        f(block, at, window);
    }
}

/// The pass over such a chunk.
template <weight_update How, class Coefficients, class Weight, class Gradient, class Master,
          std::size_t States>
void update_blocks(instruction_set isa,
                   const update_arrays<Weight, Gradient, Master, block_moment, States>& a,
                   const Coefficients& coefficients) {
    using arrays_of_floats = update_arrays<Weight, Gradient, Master, float, States>;
    const auto update = select_update<How, Coefficients, arrays_of_floats>(isa);
    const bool has_states = single_lane::update_rule<Coefficients>(coefficients).has_states();
    for_each_moment_block(isa, a, has_states,
                          [&](const arrays_of_floats& block, std::size_t at, const moment_window& window) {
                              update(block, coefficients);
                              for (std::size_t s = 0; has_states && s < States; ++s) {
                                  window.store(block.states[s], block.count, s, a.states[s] + at,
                                               a.scales[s] + at / moments_block);
                              }
                          });
}

}}  // namespace mp::detail
