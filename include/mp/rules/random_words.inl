// SPDX-License-Identifier: MIT
// Random words of neighbouring elements by vectors: see random_words.hpp.

namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET {

/// random_bits(seed, 4 * first_block + i) for i in [0, 4 * block_count), in whole vectors: block_count is a
/// multiple of lanes / 2.
inline void random_blocks(std::uint64_t seed, std::uint64_t first_block, std::uint32_t* to,
                          std::size_t block_count) noexcept {
    constexpr std::size_t at_once = lanes / 2;
    constexpr std::uint64_t low_half = 0xffff'ffff;
    longwords index = {};
    for (std::size_t i = 0; i < at_once; ++i) index[i] = i;
    const longwords key_low = longwords{} + static_cast<std::uint32_t>(seed);
    const longwords key_high = longwords{} + static_cast<std::uint32_t>(seed >> 32);
    for (std::size_t block = 0; block < block_count; block += at_once) {
        const longwords counter = (index + (first_block + block)) & last_random_block;
        philox_calls<longwords> calls{counter, counter >> 32, longwords{}, longwords{}};
        philox_rounds(key_low, key_high, calls);
        const longwords first = (calls.word0 & low_half) | (calls.word1 << 32);
        const longwords second = (calls.word2 & low_half) | (calls.word3 << 32);
        const longwords low = interleave_lower(first, second);
        const longwords high = interleave_upper(first, second);
        std::memcpy(to + 4 * block, &low, sizeof low);
        std::memcpy(to + 4 * block + lanes, &high, sizeof high);
    }
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE::MP_TARGET
