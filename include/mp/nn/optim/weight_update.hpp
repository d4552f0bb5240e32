// SPDX-License-Identifier: MIT
/// \file
/// What becomes of updates that are smaller than the spacing of the weights' format, when there is no master
/// copy that keeps them.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/split_master.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp {

/// How weights of a reduced format that have no master copy are rounded when an optimizer updates them. Every
/// update is computed in float first. u below is the unit roundoff of the weights' format: 2^-8 for bfloat16,
/// 2^-11 for half.
enum class weight_update : unsigned char {
    /// To nearest, ties to even. An update below u / 2 times the weight changes nothing, however often it
    /// comes: training stalls.
    nearest,
    /// To one of the two neighbours, with a probability that makes the stored weight the unrounded one on
    /// average over the seeds, to 2^-32 of the spacing (rounding::stochastic_a with 32 random bits). So small
    /// updates add up. The price is noise: the variance of a weight grows in every step by at most the
    /// spacing of the format at the weight times the magnitude of the update. State in a reduced format is
    /// rounded in the same way, which the mean square of Adam needs in bfloat16.
    ///
    /// The random bits are a function of the options' seed, the index of the parameter, the number of its
    /// update, the array and the index of the element alone (see random_rounding_bits): the same on every
    /// machine, with every instruction set and number of threads.
    stochastic,
    /// To nearest, and a second array of the weights' format keeps what the rounding has taken away, to be
    /// added back before the next update (Kahan 1965). An update errs by at most u^2 times the weight, 2^-16
    /// with bfloat16 and 2^-22 with half, as long as compensations are not subnormal; updates below a quarter
    /// of that stall. Costs as much memory again as the weights; state in a reduced format is rounded to
    /// nearest. A weight that overflows is NaN after the next update.
    kahan,
    /// As with a float master copy, in 2 bytes less: the master is the weight, a bfloat16, and 16 bits more,
    /// see split_master. Masters and state have the bits that they have with a float master copy for the same
    /// gradients; nothing is lost and nothing stalls. Weights are the masters rounded to nearest, ties away
    /// from zero instead of to even, for which 16 more bits are too few; so a run whose gradients depend on
    /// the weights is as good as one with float masters, but not the same one. State in a reduced format is
    /// rounded to nearest.
    split,
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The name of a way to update: "stochastic".
[[nodiscard]] constexpr std::string_view name_of(weight_update how) noexcept {
    return how == weight_update::stochastic ? "stochastic"
           : how == weight_update::kahan    ? "kahan"
           : how == weight_update::split    ? "split"
                                            : "nearest";
}

}}  // namespace mp

namespace mp {

/// The use of random bits in an optimizer.
struct rounding_stream {
    std::uint64_t seed = 0;       ///< the options' seed
    std::uint32_t parameter = 0;  ///< index of the parameter
    std::uint64_t update = 1;     ///< number of this update of the parameter, from 1 on, modulo 2^32
    std::uint32_t array = 0;      ///< 0 for the weights, 1 for the first state, 2 for the second
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether a second array is kept beside the weights.
[[nodiscard]] constexpr bool keeps_compensation(weight_update how) noexcept {
    return how == weight_update::kahan || how == weight_update::split;
}

/// Elements that share sixteen calls of the generator, in a layout that suits vectors of up to sixteen lanes.
inline constexpr std::size_t random_group = 64;

/// The counter of call `call` of the stream.
MP_HOST_DEVICE constexpr philox4x32 rounding_counter(const rounding_stream& stream,
                                                     std::uint64_t call) noexcept {
    return {{static_cast<std::uint32_t>(call), static_cast<std::uint32_t>(call >> 32) | stream.array << 28,
             stream.parameter, static_cast<std::uint32_t>(stream.update)}};
}
/// That call.
MP_HOST_DEVICE constexpr philox4x32 rounding_words(const rounding_stream& stream,
                                                   std::uint64_t call) noexcept {
    return philox4x32::generate(rounding_counter(stream, call), static_cast<std::uint32_t>(stream.seed),
                                static_cast<std::uint32_t>(stream.seed >> 32));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The 32 random bits with which weight_update::stochastic rounds element `element` (below 2^60): word
/// (element / 16) mod 4 of philox4x32 with the seed as key and the counter
/// {c mod 2^32, c / 2^32 + array * 2^28, parameter, update}, where c = element / 64 * 16 + element mod 16.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t random_rounding_bits(const rounding_stream& stream,
                                                                          std::uint64_t element) noexcept {
    return detail::rounding_words(stream, element / 64 * 16 + element % 16).word[element / 16 % 4];
}

}}  // namespace mp

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
