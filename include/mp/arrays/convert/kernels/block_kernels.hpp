// SPDX-License-Identifier: MIT
/// \file
/// Blocks of a block-scaled row by vectors: which there are, and what they are told. See block_scales.inl,
/// block_quantize.inl and block_dequantize.inl.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/arrays/convert/kernels/packed_codes.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether rows of such blocks are cut into vectors without a rest, and packed ones into bytes.
template <class BlockScaled>
inline constexpr bool has_block_vectors = [] {
    using element = typename BlockScaled::element_type;
    using format = coding_format<element>;
    using scale = typename BlockScaled::scale_type;
    using scale_layout = layout_of<typename scale::format>;
    constexpr int block = BlockScaled::block_size;
    constexpr int width = BlockScaled::element_width;
    if (block != 16 && block != 32 && block != 64) return false;
    if (width != 4 && width != 6 && width != 8) return false;
    if (layout_of<format>::quantum_exponent < -20 || layout_of<format>::max_exponent > 20) return false;
    if constexpr (is_power_of_two_scale<scale>) {
        return true;
    } else {
        // The kernels compare with thresholds between elements, and multiply element by scale exactly.
        return has_number_vectors<scale> && !scale_layout::has_infinity && scale_layout::precision <= 10 &&
               scale_layout::quantum_exponent >= -30 && scale_layout::max_exponent <= 20 &&
               !std::is_same_v<element, mx_int8> && layout_of<format>::magnitude_bits <= 3 &&
               !layout_of<format>::has_nan && !layout_of<format>::has_infinity;
    }
}();

/// How kernels find the scales of blocks.
struct block_scaling {
    scale_rule rule;        ///< not standard
    std::uint8_t smallest;  ///< code of the smallest scale, where scales are not powers of two
    bool given;             ///< whether the scales have been written already; the others do not matter then
};

/// Whether 2^smallest <= x < 2^largest; not so for NaN.
MP_HOST_DEVICE constexpr bool is_between_powers(float x, int smallest, int largest) noexcept {
    const std::uint32_t first = static_cast<std::uint32_t>(smallest + 127) << 23;
    return bit_cast<std::uint32_t>(x) - first < static_cast<std::uint32_t>(largest - smallest) << 23;
}

/// Whether the vectors of quantisation do with this tensor scale: all thresholds, which are tensor scale *
/// scale * element, are normal floats.
MP_HOST_DEVICE constexpr bool quantizes_with(float tensor_scale) noexcept {
    return is_between_powers(tensor_scale, -70, 80);
}

/// Whether those of dequantisation do: what is left over when a product is rounded is a normal float, too.
constexpr bool dequantizes_with(float tensor_scale) noexcept {
    return is_between_powers(tensor_scale, -40, 80);
}

/// Vectors that are worked on at a time where they lie side by side, so that several lines of memory are read or written
/// one after the other, and elements of each of them.
inline constexpr std::size_t columns_abreast = 128;
inline constexpr std::size_t columns_length = 64;

}}  // namespace mp::detail
