// SPDX-License-Identifier: MIT
/// \file
/// How the tiles lie that copies have brought to shared memory, so that descriptors of matrices can be compared
/// with them.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/host/access_history.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

inline tensor_tiles tiles_of(const tensor_map& map) {
    tensor_tiles tiles;
    std::memcpy(&tiles, map.opaque, sizeof tiles);
    return tiles;
}

/// A swizzled offset, and the other way round.
inline std::uint32_t exchanged(int swizzle_bytes, std::uint32_t offset) {
    switch (swizzle_bytes) {
        case 32:
            return swizzled<32>(offset);
        case 64:
            return swizzled<64>(offset);
        case 128:
            return swizzled<128>(offset);
        default:
            return offset;
    }
}

/// Where byte `byte` of row `row` of a tile lies in shared memory, from the beginning of the tile.
inline std::uint32_t tile_offset(const tensor_tiles& tiles, int row, int byte) {
    return exchanged(tiles.swizzle_bytes, static_cast<std::uint32_t>(row * tiles.tile_row_bytes() + byte));
}

class tile_layouts {
public:
    struct layout {
        std::uint32_t begin;
        int row_bytes;
        int rows;
        int swizzle_bytes;
        site where;  ///< of the last copy that brought it
    };
    /// 16 bytes of a tile.
    struct chunk {
        const layout* tile;
        int row;
        int byte;
    };

    void reset() {
        layouts_.clear();
        layout_of_.clear();
    }
    /// A tile has arrived, in memory of so many bytes.
    void note(std::size_t memory, std::uint32_t begin, const tensor_tiles& tiles, const site& where) {
        if (layout_of_.empty()) layout_of_.resize(memory / granule_bytes + 1);
        const layout it{begin, tiles.tile_row_bytes(), tiles.tile_rows, tiles.swizzle_bytes, where};
        std::size_t number = 0;
        while (number < layouts_.size() && !same(layouts_[number], it)) ++number;
        if (number == layouts_.size()) layouts_.push_back(it);
        layouts_[number].where = where;
        const std::size_t first = begin / granule_bytes;
        const auto chunks = static_cast<std::size_t>(tiles.tile_bytes()) / granule_bytes;
        for (std::size_t i = 0; i < chunks; ++i) {
            layout_of_[first + i] = static_cast<std::uint32_t>(number + 1);
        }
    }
    /// Whether no tile has come.
    [[nodiscard]] bool empty() const { return layout_of_.empty(); }
    /// A thread has written here.
    void forget(std::uint32_t offset, std::size_t bytes) {
        if (layout_of_.empty()) return;
        for (std::size_t i = offset / granule_bytes; i <= (offset + bytes - 1) / granule_bytes; ++i) {
            layout_of_[i] = 0;
        }
    }
    /// What of which tile lies at an offset, if a copy brought it.
    [[nodiscard]] std::optional<chunk> at(std::uint32_t offset) const {
        if (layout_of_.empty() || layout_of_[offset / granule_bytes] == 0) return std::nullopt;
        const layout& it = layouts_[layout_of_[offset / granule_bytes] - 1];
        const auto place = static_cast<int>(exchanged(it.swizzle_bytes, offset - it.begin));
        return chunk{&it, place / it.row_bytes, place % it.row_bytes};
    }

private:
    static bool same(const layout& a, const layout& b) {
        return a.begin == b.begin && a.row_bytes == b.row_bytes && a.rows == b.rows &&
               a.swizzle_bytes == b.swizzle_bytes;
    }

    std::vector<layout> layouts_;
    std::vector<std::uint32_t> layout_of_;  ///< by granules: one more than the number, or zero
};

}}  // namespace mp::simt::detail
