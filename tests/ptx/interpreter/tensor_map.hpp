// SPDX-License-Identifier: MIT
// What a tensor map says, in this machine's own encoding, and swizzled addresses of shared memory.
#pragma once

#include <array>
#include <cstdint>

namespace ptx {

struct tensor_map {
    static constexpr std::uint32_t expected_mark = 0x6D61'7054;

    std::uint64_t address;
    std::array<std::uint64_t, 4> strides;  ///< bytes, from the second dimension on
    std::array<std::uint32_t, 5> last;     ///< sizes minus 1
    std::uint32_t mark;
    std::array<std::uint16_t, 5> box;
    std::uint8_t rank;
    std::uint8_t element_bytes;
    std::uint8_t swizzle_bytes;  ///< 0, 32, 64 or 128
};
static_assert(sizeof(tensor_map) <= 128);

/// Which address of shared memory takes the place of another one: bits 4 to 6 (of 64 bytes 4 and 5, of 32 bytes 4) are
/// exchanged by those three places higher.
constexpr std::uint32_t swizzled(std::uint32_t address, std::uint32_t bytes) {
    const std::uint32_t mask = bytes == 128 ? 0x70U : bytes == 64 ? 0x30U : bytes == 32 ? 0x10U : 0U;
    return address ^ (address >> 3 & mask);
}

}  // namespace ptx
