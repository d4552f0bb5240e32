// SPDX-License-Identifier: MIT
/// \file
/// Types of the elements of GGUF files, and the values of their blocks.
///
/// Sources: https://github.com/ggml-org/ggml, include/ggml.h for the numbers, src/ggml-common.h for the layouts,
/// dequantize_row_* of src/ggml-quants.c for the values.
#pragma once

#include <mp/config.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Unsigned byte `i` of a block.
inline unsigned block_byte(const std::byte* block, std::size_t i) noexcept {
    return std::to_integer<unsigned>(block[i]);
}
/// Signed byte `i` of a block.
inline int block_int8(const std::byte* block, std::size_t i) noexcept {
    return static_cast<int>(block_byte(block, i) ^ 0x80U) - 0x80;
}
/// Little-endian fp16 number at byte `i` of a block.
inline double block_half(const std::byte* block, std::size_t i) noexcept {
    return static_cast<double>(
        half::from_bits(static_cast<std::uint16_t>(block_byte(block, i) | block_byte(block, i + 1) << 8)));
}

// Every function computes the values of a block exactly: scales have up to 11 + 8 significant bits, codes up
// to 8, and the difference of two products of Q4_K is a multiple of 2^-24 below 2^27. Rounded to float, they
// are the bits of ggml, which rounds at most once.

/// Q8_0: a scale, 32 int8 codes.
inline void decode_q8_0(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    for (std::size_t i = 0; i < 32; ++i) values[i] = scale * block_int8(block, 2 + i);
}
/// Q4_0: a scale, 16 bytes; byte i has the codes i and i + 16, each 8 too large.
inline void decode_q4_0(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    for (std::size_t i = 0; i < 16; ++i) {
        const unsigned codes = block_byte(block, 2 + i);
        values[i] = scale * (static_cast<int>(codes & 15) - 8);
        values[i + 16] = scale * (static_cast<int>(codes >> 4) - 8);
    }
}
/// Q4_K: scales of the factors and of the minima, 8 pairs of a factor and a minimum in 6 bits each, 128 bytes
/// with the codes of 4 x 64 values, the first 32 of which are in low halves.
inline void decode_q4_k(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 0);
    const double minimum_scale = block_half(block, 2);
    const auto packed = [&](std::size_t i) { return block_byte(block, 4 + i); };
    for (std::size_t group = 0; group < 8; ++group) {
        unsigned factor = packed(group) & 63;
        unsigned minimum = packed(group + 4) & 63;
        if (group >= 4) {
            factor = (packed(group + 4) & 15) | packed(group - 4) >> 6 << 4;
            minimum = packed(group + 4) >> 4 | packed(group) >> 6 << 4;
        }
        const unsigned shift = group % 2 == 0 ? 0 : 4;
        for (std::size_t i = 0; i < 32; ++i) {
            const unsigned code = block_byte(block, 16 + group / 2 * 32 + i) >> shift & 15;
            values[group * 32 + i] = scale * factor * code - minimum_scale * minimum;
        }
    }
}
/// Q6_K: 128 bytes with the lower 4 bits of codes, 64 with the upper 2, 16 int8 factors, their scale. Codes are
/// 32 too large. A run of 32 values has its lower bits in 32 halves of bytes, and its upper bits in 32 quarters.
inline void decode_q6_k(const std::byte* block, double* values) noexcept {
    const double scale = block_half(block, 208);
    for (std::size_t run = 0; run < 8; ++run) {
        const std::size_t lower = run / 4 * 64 + run % 2 * 32;
        const std::size_t upper = 128 + run / 4 * 32;
        const auto lower_shift = static_cast<unsigned>(run % 4 / 2 * 4);
        const auto upper_shift = static_cast<unsigned>(run % 4 * 2);
        for (std::size_t i = 0; i < 32; ++i) {
            const unsigned code = (block_byte(block, lower + i) >> lower_shift & 15) |
                                  (block_byte(block, upper + i) >> upper_shift & 3) << 4;
            const int factor = block_int8(block, 192 + run * 2 + i / 16);
            values[run * 32 + i] = scale * factor * (static_cast<int>(code) - 32);
        }
    }
}
/// Values of `bytes` bytes with two codes of E2M1 each, the second of which is `bytes` elements after the
/// first. The code of -0 is 0, as in ggml.
inline void decode_e2m1(const std::byte* codes, std::size_t bytes, double scale, double* values) noexcept {
    constexpr signed char doubled[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    for (std::size_t i = 0; i < bytes; ++i) {
        const unsigned both = block_byte(codes, i);
        values[i] = scale / 2 * doubled[both & 15];
        values[i + bytes] = scale / 2 * doubled[both >> 4];
    }
}
/// MXFP4: a scale of E8M0, 16 bytes of E2M1. The scale 255 is NaN, as in the MX specification; in ggml it is 2^128.
inline void decode_mxfp4(const std::byte* block, double* values) noexcept {
    const auto scale = float8_e8m0fnu::from_bits(static_cast<std::uint8_t>(block_byte(block, 0)));
    decode_e2m1(block + 1, 16, static_cast<double>(scale), values);
}
/// NVFP4: 4 scales of UE4M3, 4 x 8 bytes of E2M1. UE4M3 is E4M3 whose sign is not read; the code 0x7F is 0.
inline void decode_nvfp4(const std::byte* block, double* values) noexcept {
    for (std::size_t i = 0; i < 4; ++i) {
        const unsigned code = block_byte(block, i);
        const unsigned exponent = code >> 3 & 15;
        const unsigned significand = (code & 7) + (exponent == 0 ? 0 : 8);
        const unsigned scale = code == 0x7F ? 0 : significand << (exponent == 0 ? 1 : exponent);
        decode_e2m1(block + 4 + 8 * i, 8, scale / 1024.0, values + 16 * i);
    }
}

/// A type of ggml.
struct gguf_type {
    std::uint32_t number;
    std::string_view name;
    std::uint32_t block;  ///< elements of a block
    std::uint32_t bytes;  ///< of a block
    /// Computes the values of a block; null for numbers, which convert() reads, and for unsupported blocks.
    void (*decode)(const std::byte* block, double* values) noexcept = nullptr;
};

inline constexpr gguf_type gguf_types[] = {{0, "F32", 1, 4},
                                           {1, "F16", 1, 2},
                                           {2, "Q4_0", 32, 18, decode_q4_0},
                                           {3, "Q4_1", 32, 20},
                                           {6, "Q5_0", 32, 22},
                                           {7, "Q5_1", 32, 24},
                                           {8, "Q8_0", 32, 34, decode_q8_0},
                                           {9, "Q8_1", 32, 36},
                                           {10, "Q2_K", 256, 84},
                                           {11, "Q3_K", 256, 110},
                                           {12, "Q4_K", 256, 144, decode_q4_k},
                                           {13, "Q5_K", 256, 176},
                                           {14, "Q6_K", 256, 210, decode_q6_k},
                                           {15, "Q8_K", 256, 292},
                                           {16, "IQ2_XXS", 256, 66},
                                           {17, "IQ2_XS", 256, 74},
                                           {18, "IQ3_XXS", 256, 98},
                                           {19, "IQ1_S", 256, 50},
                                           {20, "IQ4_NL", 32, 18},
                                           {21, "IQ3_S", 256, 110},
                                           {22, "IQ2_S", 256, 82},
                                           {23, "IQ4_XS", 256, 136},
                                           {24, "I8", 1, 1},
                                           {25, "I16", 1, 2},
                                           {26, "I32", 1, 4},
                                           {27, "I64", 1, 8},
                                           {28, "F64", 1, 8},
                                           {29, "IQ1_M", 256, 56},
                                           {30, "BF16", 1, 2},
                                           {34, "TQ1_0", 256, 54},
                                           {35, "TQ2_0", 256, 66},
                                           {39, "MXFP4", 32, 17, decode_mxfp4},
                                           {40, "NVFP4", 64, 36, decode_nvfp4},
                                           {41, "Q1_0", 128, 18},
                                           {42, "Q2_0", 64, 18}};

/// Returns the type of that number, or null.
constexpr const gguf_type* find_gguf_type(std::uint32_t number) {
    for (const gguf_type& it : gguf_types) {
        if (it.number == number) return &it;
    }
    return nullptr;
}
/// Returns the type of that name, or null.
constexpr const gguf_type* find_gguf_type(std::string_view name) {
    for (const gguf_type& it : gguf_types) {
        if (it.name == name) return &it;
    }
    return nullptr;
}

/// Copies `bytes` bytes with two 4-bit codes each: the codes in low halves, then the ones in high halves,
/// become packed codes in this order.
inline void reorder_codes(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
    constexpr std::byte low{15};
    for (std::size_t i = 0; i < bytes; i += 2) {
        to[i / 2] = (from[i] & low) | (from[i + 1] & low) << 4;
        to[bytes / 2 + i / 2] = from[i] >> 4 | (from[i + 1] & ~low);
    }
}

}}  // namespace mp::detail
