// SPDX-License-Identifier: MIT
/// \file
/// Random bits for stochastic rounding from a counter: the bits of element i are a function of (seed, i)
/// alone, so that they are the same on every machine, for every number of threads, on CPU and GPU.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp {

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// ten rounds that turn a 128-bit counter and a 64-bit key into four random words.
struct philox4x32 {
    std::uint32_t word[4];

    /// The four words for this counter and key, lowest word first.
    [[nodiscard]] MP_HOST_DEVICE static constexpr philox4x32 generate(philox4x32 counter,
                                                                      std::uint32_t key_low,
                                                                      std::uint32_t key_high) noexcept {
        // Multipliers and key increments of the paper, table 2 and section 4.2.
        constexpr std::uint64_t multiplier_0 = 0xd2511f53;
        constexpr std::uint64_t multiplier_1 = 0xcd9e8d57;
        constexpr std::uint32_t golden_ratio = 0x9e3779b9;
        constexpr std::uint32_t square_root_of_three = 0xbb67ae85;
        for (int round = 0; round < 10; ++round) {
            const std::uint64_t product_0 = multiplier_0 * counter.word[0];
            const std::uint64_t product_1 = multiplier_1 * counter.word[2];
            counter = {{static_cast<std::uint32_t>(product_1 >> 32) ^ counter.word[1] ^ key_low,
                        static_cast<std::uint32_t>(product_1),
                        static_cast<std::uint32_t>(product_0 >> 32) ^ counter.word[3] ^ key_high,
                        static_cast<std::uint32_t>(product_0)}};
            key_low += golden_ratio;
            key_high += square_root_of_three;
        }
        return counter;
    }
};

}  // namespace mp

namespace mp::inline MP_ISA_NAMESPACE {

/// 32 random bits for element `index` of the stream that `seed` names.
///
///     mp::round_to<mp::bfloat16>(x[i], mp::stochastic(mp::random_bits(seed, i)));
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t random_bits(std::uint64_t seed,
                                                                 std::uint64_t index) noexcept {
    const std::uint64_t block = index / 4;
    const philox4x32 counter{
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}};
    return philox4x32::generate(counter, static_cast<std::uint32_t>(seed),
                                static_cast<std::uint32_t>(seed >> 32))
        .word[index % 4];
}

}  // namespace mp::inline MP_ISA_NAMESPACE
