// SPDX-License-Identifier: MIT
/// \file
/// Matrix descriptors: the layout of a tile in shared memory, for wgmma; and swizzled layouts, in which neither rows nor
/// columns have bank conflicts.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstdint>

namespace mp::simt {

/// The descriptor of an operand. (PTX ISA, "Matrix descriptor": the address, the leading and the stride byte
/// offset, each divided by 16, in bits 0 to 13, 16 to 29 and 32 to 45; the swizzle in bits 62 and 63.)
struct matrix_descriptor {
    std::uint64_t bits = 0;

    /// The same tile from `bytes` further on: along k, a multiple of 32 bytes within a row.
    [[nodiscard]] MP_HOST_DEVICE constexpr matrix_descriptor advanced(int bytes) const {
        return {bits + static_cast<std::uint64_t>(bytes / 16)};
    }

    friend constexpr bool operator==(matrix_descriptor, matrix_descriptor) = default;
};

}  // namespace mp::simt

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The offset of a byte of a tile with the 16-byte chunks of its rows of `row_bytes` exchanged: see mp::simt::swizzled.
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t exchanged(int row_bytes, std::uint32_t offset) {
    const auto chunks = static_cast<std::uint32_t>(row_bytes / 16);
    return offset ^ ((offset >> 7 & (chunks - 1)) << 4);
}

[[nodiscard]] MP_HOST_DEVICE constexpr std::uint64_t swizzle_code(int swizzle_bytes) {
    return swizzle_bytes == 128 ? 1U : swizzle_bytes == 64 ? 2U : swizzle_bytes == 32 ? 3U : 0U;
}

/// The descriptor of a tile at an address, as the instruction takes it.
[[nodiscard]] MP_HOST_DEVICE constexpr matrix_descriptor describe_tile(std::uint32_t address,
                                                                       int leading_bytes, int stride_bytes,
                                                                       int swizzle_bytes) {
    return {static_cast<std::uint64_t>(address >> 4 & 0x3FFFU) |
            static_cast<std::uint64_t>(leading_bytes / 16 & 0x3FFF) << 16 |
            static_cast<std::uint64_t>(stride_bytes / 16 & 0x3FFF) << 32 | swizzle_code(swizzle_bytes) << 62};
}

}}  // namespace mp::simt::detail

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// Coordinate of accumulator `number` of a thread of a warpgroup in the 64 rows: each warp has 16 of them, in
/// fragments of 8 columns that follow each other, as in mma_c_coordinate.
[[nodiscard]] MP_HOST_DEVICE constexpr fragment_coordinate wgmma_coordinate(int thread, int number) {
    const fragment_coordinate at = mma_c_coordinate(thread % 32, number % 4);
    return {thread / 32 * 16 + at.row, number / 4 * 8 + at.position};
}

/// The offset of a byte of a tile whose rows of `RowBytes` = 16, 32, 64 or 128 bytes follow each other, with
/// the 16-byte chunks of a row exchanged among each other: the patterns that TMA writes and wgmma reads. Its
/// inverse is itself. The tile begins at a multiple of 1024 bytes.
///
/// Eight rows of one column of chunks are what load_matrix reads at a time. The number of a chunk in its 128
/// bytes, three bits, is its column with the number of the 128 bytes added bit by bit (exclusive or), the
/// lowest bits that the row's own number does not reach being as they were; so over eight rows all eight
/// different values appear, and the eight chunks fill all 32 banks. (Rows of one chunk do so as they are.)
template <int RowBytes>
[[nodiscard]] MP_HOST_DEVICE constexpr std::uint32_t swizzled(std::uint32_t offset) {
    static_assert(RowBytes == 16 || RowBytes == 32 || RowBytes == 64 || RowBytes == 128,
                  "mp: rows of 16, 32, 64 or 128 bytes can be swizzled");
    return detail::exchanged(RowBytes, offset);
}

}}  // namespace mp::simt
