// SPDX-License-Identifier: MIT
// Moments of blocks as floats and back, on vectors.

namespace mp::detail { inline namespace MP_ISA_NAMESPACE { namespace MP_TARGET {

/// moments_block numbers.
template <class Codes>
void decode_moment_block(const std::uint8_t* codes, float scale, float* to) {
    const default_floating_point_modes modes;
    const vec<float> scales = broadcast(scale);
    for (std::size_t i = 0; i < moments_block; i += lanes) {
        store(to + i, decode_moments<Codes>(widen(load(codes + i)), scales));
    }
}

/// Floats to codes; returns the scale.
template <class Codes>
float encode_moment_block(const float* from, std::uint8_t* codes) {
    const default_floating_point_modes modes;
    vec<std::uint32_t> largest{};
    for (std::size_t i = 0; i < moments_block; i += lanes) {
        const vec<std::uint32_t> magnitude = as_uint32(load(from + i)) & 0x7FFF'FFFFU;
        largest = magnitude > largest ? magnitude : largest;
    }
    std::uint32_t words[lanes];
    store(words, largest);
    const block_scale scale = block_scale_of(words, lanes);
    if (!scale.divides) {
        std::memset(codes, 0, moments_block);
        return scale.value;
    }
    const vec<float> scales = broadcast(scale.value);
    for (std::size_t i = 0; i < moments_block; i += lanes) {
        store(codes + i, narrow_to_bytes(encode_moments<Codes>(load(from + i), scales)));
    }
    return scale.value;
}

}}}  // namespace mp::detail::MP_TARGET
