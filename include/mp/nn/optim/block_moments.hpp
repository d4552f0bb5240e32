// SPDX-License-Identifier: MIT
/// \file
/// Moments of optimizers in 8 bits, with a scale for every block.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>

#if MP_CORE_BODIES
#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/numbers/rules/block_moments.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#endif

namespace mp {

/// State of an optimizer in 8 bits, as in bitsandbytes' 8-bit Adam (Dettmers et al. 2022): a code of the ratio
/// to the largest magnitude of its block, which the block keeps as a float. 1.016 bytes an element.
///
///     mp::adamw<mp::bfloat16, mp::bfloat16, float, mp::block_moment> optimizer({{"w", weights, gradient}});
///
/// Blocks are 256 consecutive elements of a parameter, the last one maybe shorter. The update is computed in
/// float; then the scale is the largest magnitude of the new moments in the block, and x / scale, rounded to
/// float and then to nearest, ties to even, is kept: of a first moment (mean of gradients, momentum) in 1 + 4
/// + 3 bits of sign, exponent and fraction, from 2^-17 to 1, so that it errs by at most 1/16, and what is
/// below 2^-18 is zero; of the mean of squares in 4 + 4 bits, from 2^-18 to 1, so that its root errs by at
/// most 1/64. A mean of squares that is not zero never becomes zero, by whose root a step would be divided:
/// elements whose gradients are below 2^-9 of the largest in their block take smaller steps.
///
/// Scales move in float, so moments that keep their ratios lose nothing. A ratio that changes by less than
/// 1/32 in a step, as it does after some 30 steps with beta2 = 0.999, stays: bits went to the fraction rather
/// than to range because of that. With beta2 = 0.95 it does not matter.
///
/// Blocks with an infinity or NaN are NaN from then on: look for them, as loss scalers do. The results have
/// the same bits on every machine and with any number of threads. Only on CPUs, for the library's own rules.
struct block_moment {
    std::uint8_t code = 0;  ///< optimizer_base::copy_state has the values

    friend constexpr bool operator==(const block_moment&, const block_moment&) = default;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Elements that share a scale.
inline constexpr std::size_t moments_block = 256;

/// Whether the state of this number is a mean of squares, which has no sign; the first one has.
constexpr bool is_square(std::size_t state) noexcept {
    return state != 0;
}

}}  // namespace mp::detail

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
