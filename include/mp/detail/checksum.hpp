// SPDX-License-Identifier: MIT
/// \file
/// The checksum of what is saved.
#pragma once

#include <mp/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The cyclic redundancy check of 64 bits that .xz files end with (CRC-64/XZ: the polynomial of ECMA-182,
/// reflected, all ones before and after). It tells every change of one or two bits, every odd number of
/// changed bits and everything that stays within 64 bits in a row; of all other damage it misses one in 2^64.
constexpr std::uint64_t crc64(std::string_view bytes) noexcept {
    constexpr std::uint64_t polynomial = 0xc96c'5795'd787'0f42;
    std::uint64_t remainder = ~std::uint64_t{0};
    for (const char byte : bytes) {
        remainder ^= static_cast<unsigned char>(byte);
        // Bit by bit: what is saved so far is a page of text.
        for (int bit = 0; bit < 8; ++bit) {
            remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? polynomial : 0);
        }
    }
    return ~remainder;
}

/// 16 hexadecimal digits in lower case.
inline std::string checksum_text(std::uint64_t checksum) {
    std::string text(16, '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, checksum >>= 4) {
        *digit = "0123456789abcdef"[checksum & 15];
    }
    return text;
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
