// SPDX-License-Identifier: MIT
/// \file
/// The checksum of what is saved.
#pragma once

#include <mp/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#if MP_CORE_BODIES
#include <array>
#include <cstddef>
#endif

namespace mp::detail { inline namespace MP_CORE_NAMESPACE {

/// The cyclic redundancy check of 64 bits that .xz files end with (CRC-64/XZ: the polynomial of ECMA-182,
/// reflected, all ones before and after), of bytes that come part by part. It detects every change of one or
/// two bits, every odd number of changed bits and everything that stays within 64 bits in a row; of all other
/// damage it misses one in 2^64.
class crc64_stream {
public:
    void add(std::string_view bytes) noexcept;
    [[nodiscard]] MP_ALWAYS_INLINE std::uint64_t value() const noexcept { return ~remainder_; }

private:
    std::uint64_t remainder_ = ~std::uint64_t{0};
};

MP_CORE_FUNCTION std::uint64_t crc64(std::string_view bytes) noexcept;

/// The checksum of two texts, one after the other, from theirs and the length of the second: the remainder of
/// the first moves on by as many places, and the all ones before and after cancel.
MP_CORE_FUNCTION std::uint64_t crc64_of_both(std::uint64_t first, std::uint64_t second,
                                             std::uint64_t second_bytes) noexcept;

/// 16 hexadecimal digits in lower case.
MP_CORE_FUNCTION std::string checksum_text(std::uint64_t checksum);

#if MP_CORE_BODIES
inline constexpr std::uint64_t crc64_polynomial = 0xc96c'5795'd787'0f42U;

/// crc64_tables[n][b] is the remainder of byte b with n zero bytes after it.
inline constexpr std::array<std::array<std::uint64_t, 256>, 8> crc64_tables = [] {
    std::array<std::array<std::uint64_t, 256>, 8> result{};
    for (std::size_t byte = 0; byte < 256; ++byte) {
        std::uint64_t remainder = byte;
        for (int bit = 0; bit < 8; ++bit) {
            remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? crc64_polynomial : 0U);
        }
        result[0][byte] = remainder;
    }
    for (std::size_t n = 1; n < 8; ++n) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint64_t shorter = result[n - 1][byte];
            result[n][byte] = result[0][shorter & 255] ^ shorter >> 8;
        }
    }
    return result;
}();

MP_CORE_FUNCTION void crc64_stream::add(std::string_view bytes) noexcept {
    // Eight bytes at a time: the remainders of their sum are the sum of theirs, each moved to its place.
    while (bytes.size() >= 8) {
        std::uint64_t word = remainder_;
        for (unsigned i = 0; i < 8; ++i) {
            word ^= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
        }
        remainder_ = 0;
        for (unsigned i = 0; i < 8; ++i) remainder_ ^= crc64_tables[7 - i][word >> (8 * i) & 255];
        bytes.remove_prefix(8);
    }
    for (const char byte : bytes) {
        remainder_ = crc64_tables[0][(remainder_ ^ static_cast<unsigned char>(byte)) & 255] ^ remainder_ >> 8;
    }
}

MP_CORE_FUNCTION std::uint64_t crc64(std::string_view bytes) noexcept {
    crc64_stream stream;
    stream.add(bytes);
    return stream.value();
}

MP_CORE_FUNCTION std::uint64_t crc64_of_both(std::uint64_t first, std::uint64_t second,
                                             std::uint64_t second_bytes) noexcept {
    // Polynomials over bits modulo that of the checksum, the highest power in the lowest bit.
    const auto product = [](std::uint64_t a, std::uint64_t b) {
        std::uint64_t sum = 0;
        for (std::uint64_t power = std::uint64_t{1} << 63; power != 0; power >>= 1) {
            if ((a & power) != 0) sum ^= b;
            b = b >> 1 ^ ((b & 1) != 0 ? crc64_polynomial : 0U);
        }
        return sum;
    };
    std::uint64_t square = std::uint64_t{1} << 55;  // x to the power of 8: a byte
    for (; second_bytes != 0; second_bytes >>= 1) {
        if ((second_bytes & 1) != 0) first = product(first, square);
        square = product(square, square);
    }
    return first ^ second;
}

MP_CORE_FUNCTION std::string checksum_text(std::uint64_t checksum) {
    std::string text(16, '0');
    for (auto digit = text.rbegin(); digit != text.rend(); ++digit, checksum >>= 4) {
        *digit = "0123456789abcdef"[checksum & 15];
    }
    return text;
}
#endif

}}  // namespace mp::detail
