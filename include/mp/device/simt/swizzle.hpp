// SPDX-License-Identifier: MIT
/// \file
/// Swizzled layouts of tiles in shared memory, in which neither rows nor columns have bank conflicts.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

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
    constexpr std::uint32_t chunks = RowBytes / 16;
    return offset ^ ((offset >> 7 & (chunks - 1)) << 4);
}

}}  // namespace mp::simt
