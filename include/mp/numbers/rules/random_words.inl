// SPDX-License-Identifier: MIT
// Random words of neighbouring elements by vectors: see random_words.hpp.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// random_bits(seed, 4 * first_block + i) for i in [0, 4 * block_count), in whole vectors: block_count is a
/// multiple of lanes / 2.
inline void random_blocks(std::uint64_t seed, std::uint64_t first_block, std::uint32_t* to,
                          std::size_t block_count) noexcept {
    constexpr std::size_t at_once = lanes / 2;
    constexpr std::uint64_t low_half = 0xffff'ffff;
    uint64_lanes index = {};
    for (std::size_t i = 0; i < at_once; ++i) index[i] = i;
    const uint64_lanes key_low = uint64_lanes{} + static_cast<std::uint32_t>(seed);
    const uint64_lanes key_high = uint64_lanes{} + static_cast<std::uint32_t>(seed >> 32);
    for (std::size_t block = 0; block < block_count; block += at_once) {
        const uint64_lanes counter = (index + (first_block + block)) & last_random_block;
        philox_calls<uint64_lanes> calls{counter, counter >> 32, uint64_lanes{}, uint64_lanes{}};
        philox_rounds(key_low, key_high, calls);
        const uint64_lanes first = (calls.word0 & low_half) | (calls.word1 << 32);
        const uint64_lanes second = (calls.word2 & low_half) | (calls.word3 << 32);
        const uint64_lanes low = interleave_lower(first, second);
        const uint64_lanes high = interleave_upper(first, second);
        std::memcpy(to + 4 * block, &low, sizeof low);
        std::memcpy(to + 4 * block + lanes, &high, sizeof high);
    }
}

}}}  // namespace mp::detail::MP_TARGET
