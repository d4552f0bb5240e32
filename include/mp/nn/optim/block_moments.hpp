// SPDX-License-Identifier: MIT
/// \file
/// Moments of optimizers in 8 bits, with a scale for every block.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>

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
