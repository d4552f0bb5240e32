// SPDX-License-Identifier: MIT
/// \file
/// Moments in blocks as floats, and floats as moments in blocks.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/config.hpp>
#include <mp/nn/optim/block_moments.hpp>
#include <mp/numbers/rules/block_moments.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if MP_CORE_BODIES
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

template <class Codes>
void decode_moments_on(instruction_set isa, const std::uint8_t* codes, float scale, float* to) {
    MP_SELECT_TARGET(isa, &decode_moment_block_portable<Codes>, decode_moment_block<Codes>)(codes, scale, to);
}
template <class Codes>
float encode_moments_on(instruction_set isa, const float* from, std::uint8_t* codes) {
    return MP_SELECT_TARGET(isa, &encode_moment_block_portable<Codes>, encode_moment_block<Codes>)(from,
                                                                                                   codes);
}

}}  // namespace mp::detail

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// Converts `count` moments, at most a block, to floats in memory for a block; zeros after them.
MP_CORE_FUNCTION void load_moments(instruction_set isa, const block_moment* from, float scale,
                                   std::size_t count, std::size_t state, float* to) {
    std::uint8_t codes[moments_block] = {};
    std::memcpy(codes, from, count);
    if (is_square(state)) {
        decode_moments_on<square_moment_codes>(isa, codes, scale, to);
    } else {
        decode_moments_on<signed_moment_codes>(isa, codes, scale, to);
    }
    std::fill(to + count, to + moments_block, 0.0F);
}

/// Encodes and stores them; past the end there are zeros.
MP_CORE_FUNCTION void store_moments(instruction_set isa, const float* from, std::size_t count,
                                    std::size_t state, block_moment* to, float* scale) {
    std::uint8_t codes[moments_block];
    *scale = is_square(state) ? encode_moments_on<square_moment_codes>(isa, from, codes)
                              : encode_moments_on<signed_moment_codes>(isa, from, codes);
    std::memcpy(static_cast<void*>(to), codes, count);
}

}}  // namespace mp::detail
#endif
