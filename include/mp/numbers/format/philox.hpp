// SPDX-License-Identifier: MIT
/// \file
/// Random bits for stochastic rounding from a counter: the bits of element i are a function of (seed, i)
/// alone, so that they are the same on every machine, for every number of threads, on CPU and GPU.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace single_lane {

MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr std::uint64_t multiply_low_halves(std::uint32_t a,
                                                                            std::uint32_t b) {
    return std::uint64_t{a} * b;
}

}}}  // namespace mp::detail::single_lane

#define MP_TARGET single_lane
#include <mp/numbers/format/philox_rounds.inl>
#undef MP_TARGET

namespace mp {

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// ten rounds that turn a 128-bit counter and a 64-bit key into four random words.
struct philox4x32 {
    std::uint32_t word[4];

    /// The four words for this counter and key, lowest word first.
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static constexpr philox4x32 generate(
        philox4x32 counter, std::uint32_t key_low, std::uint32_t key_high) noexcept {
        detail::single_lane::philox_calls<std::uint32_t> call{counter.word[0], counter.word[1],
                                                              counter.word[2], counter.word[3]};
        detail::single_lane::philox_rounds(key_low, key_high, call);
        return {{call.word0, call.word1, call.word2, call.word3}};
    }
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The words for a counter of 64 bits and two words, with the seed as key.
[[nodiscard]] MP_HOST_DEVICE constexpr philox4x32 random_block(std::uint64_t seed, std::uint64_t counter,
                                                               std::uint32_t third = 0,
                                                               std::uint32_t fourth = 0) noexcept {
    return philox4x32::generate(
        {{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), third, fourth}},
        static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// 32 random bits for element `index` of the stream that `seed` names.
///
///     mp::round_to<mp::bfloat16>(x[i], mp::stochastic(mp::random_bits(seed, i)));
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t random_bits(std::uint64_t seed,
                                                                 std::uint64_t index) noexcept {
    return detail::random_block(seed, index / 4).word[index % 4];
}

}}  // namespace mp
