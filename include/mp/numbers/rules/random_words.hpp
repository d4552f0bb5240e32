// SPDX-License-Identifier: MIT
/// \file
/// Random bits of neighbouring elements, by vectors: random_bits() of <mp/numbers/format/philox.hpp>, whose rounds are one
/// text for vectors and single words.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/instruction_set.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The block of four words that the last index is in, before index 0.
inline constexpr std::uint64_t last_random_block = ~std::uint64_t{0} / 4;

/// The room that random_words() wants for up to `count` words, a multiple of 32: those of whole vectors.
constexpr std::size_t random_room(std::size_t count) noexcept {
    return count + 32;
}

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/numbers/format/philox_rounds.inl>
#include <mp/numbers/simd/for_each_target.inl>
#define MP_KERNEL_FILE <mp/numbers/rules/random_words.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The words of `blocks` blocks of four from first_block on, past the last of which the first one follows.
inline void random_blocks_portably(std::uint64_t seed, std::uint64_t first_block, std::uint32_t* to,
                                   std::size_t blocks) noexcept {
    for (std::size_t i = 0; i < blocks; ++i) {
        const philox4x32 words = random_block(seed, (first_block + i) & last_random_block);
        std::memcpy(to + 4 * i, words.word, sizeof words.word);
    }
}

/// random_bits(seed, first + i) for i in [0, count), which lie in `room` from the returned place on.
inline const std::uint32_t* random_words(instruction_set isa, std::uint64_t seed, std::uint64_t first,
                                         std::size_t count, std::uint32_t* room) noexcept {
    const auto skipped = as<std::size_t>(first % 4);
    const auto kernel = MP_SELECT_TARGET(isa, &random_blocks_portably, random_blocks);
    kernel(seed, first / 4, room, (skipped + count + 31) / 32 * 8);
    return room + skipped;
}

}}  // namespace mp::detail
