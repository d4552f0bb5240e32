// SPDX-License-Identifier: MIT
/// \file
/// A float master weight as the bfloat16 that the forward pass reads, and 16 bits more.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/rules/split_master.hpp>

#include <cstdint>

namespace mp {

/// A float in two halves, see split_master.
struct split_float {
    std::uint16_t high = 0;  ///< code of a bfloat16: the float rounded to nearest, ties away from zero
    std::uint16_t low = 0;   ///< the lower half of the float's code

    friend constexpr bool operator==(const split_float&, const split_float&) = default;
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Splits a float, without loss, into the code of the nearest bfloat16 and 16 bits more.
///
/// With c the float's code, high is (c + 2^15) / 2^16 and low is c mod 2^16. Adding 2^15 carries into the
/// upper half exactly if the top bit of low is set, so join_master takes one off there and has c again. Of
/// the infinities low is 0, and no number's code rounds to that of a NaN. A NaN is cut off instead, made
/// quiet, so that its high is the code of a NaN; then nothing has carried.
///
/// Ties go away from zero, not to even as a conversion to bfloat16 has them: no code of 16 + 16 bits can do
/// that without loss. The floats that round to an even bfloat16 then are 2^16 + 1 in number, for both ties
/// belong to it, but there are only 2^16 values of low. Ties are one float in 2^16, and half of them go the
/// same way in both.
[[nodiscard]] MP_HOST_DEVICE constexpr split_float split_master(float master) noexcept {
    const auto code = detail::bit_cast<std::uint32_t>(master);
    return {static_cast<std::uint16_t>(detail::single_lane::high_of_master(code)),
            static_cast<std::uint16_t>(detail::single_lane::low_of_master(code))};
}

/// The float that split_master has split, to the bit; a signalling NaN has become quiet.
[[nodiscard]] MP_HOST_DEVICE constexpr float join_master(split_float halves) noexcept {
    return detail::bit_cast<float>(detail::single_lane::join_codes(halves.high, halves.low));
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The lower half of a split master whose upper half may have been written: it stays, except where no float is split
/// into the two. Next to a zero, for example, a set top bit would stand for a number below it.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint16_t low_half_beside(std::uint16_t high,
                                                                     std::uint16_t low) noexcept {
    return split_master(join_master({high, low})) == split_float{high, low} ? low : std::uint16_t{0};
}

}}  // namespace mp::detail
