// SPDX-License-Identifier: MIT
/// \file
/// Tensor maps: the description of a matrix for TMA (sm_90), which copies its tiles; and those that are kept, so that
/// the driver encodes each of them once.
#pragma once

#include <mp/device/simt/simulated_gpu.hpp>
#include <mp/error.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>

namespace mp::simt {

/// A matrix in global memory, or several of one shape, and the tiles in which it is copied to and from shared
/// memory: rows of contiguous elements. Shared memory holds the rows of a tile one after the other,
/// swizzled: see mp::simt::swizzled.
struct tensor_tiles {
    const void* data = nullptr;  ///< a multiple of 16 bytes
    int element_bytes = 0;       ///< 1, 2, 4 or 8
    std::int64_t length = 0;     ///< elements of a row
    std::int64_t rows = 0;
    std::int64_t row_bytes = 0;  ///< from one row to the next: a multiple of 16
    int tile_length = 0;         ///< elements of a row of a tile; its bytes are a multiple of 16
    int tile_rows = 0;           ///< at most 256
    /// 0, 32, 64 or 128: rows of tiles have that many bytes at most.
    int swizzle_bytes = 0;
    /// With more than zero matrices, even if it is one, copies say from which of them; a tile is of one.
    std::int64_t matrices = 0;
    std::int64_t matrix_bytes = 0;  ///< from one matrix to the next: a positive multiple of 16

    [[nodiscard]] int tile_row_bytes() const { return tile_length * element_bytes; }
    [[nodiscard]] int tile_bytes() const { return tile_row_bytes() * tile_rows; }

    friend auto operator<=>(const tensor_tiles&, const tensor_tiles&) = default;
};

/// The same as the unit takes it: made by make_tensor_map for the executor on which it is used, and passed to
/// a kernel as a member of the kernel. Its contents are the device's business.
struct alignas(64) tensor_map {
    unsigned char opaque[128];
};

/// How long the cache of the device (L2) keeps what a copy of tiles brings: policies as createpolicy.fractional makes them
/// for all of the bytes. (CUTLASS 3.5, cute/arch/copy_sm90_desc.hpp: TMA::CacheHintSm90.)
enum class cache_hint : std::uint64_t {
    evict_normal = 0x1000'0000'0000'0000,
    evict_first = 0x12F0'0000'0000'0000,  ///< what is read once
    evict_last = 0x14F0'0000'0000'0000,   ///< what is read again
};

}  // namespace mp::simt

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

/// Throws argument_error for what the unit does not take.
inline void check_tensor_tiles(std::string_view function, const tensor_tiles& tiles) {
    const auto demand = [&](bool met, std::string_view name, std::int64_t value, std::string_view expected) {
        if (!met) mp::detail::throw_argument(function, name, value, expected);
    };
    const int size = tiles.element_bytes;
    demand(size == 1 || size == 2 || size == 4 || size == 8, "tiles.element_bytes", size,
           "must be 1, 2, 4 or 8");
    demand(reinterpret_cast<std::uintptr_t>(tiles.data) % 16 == 0 && tiles.data != nullptr, "tiles.data % 16",
           static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tiles.data) % 16),
           "must be zero, and tiles.data not null");
    demand(tiles.length > 0 && tiles.length <= std::int64_t{1} << 32, "tiles.length", tiles.length,
           "must be from 1 to 2^32");
    demand(tiles.rows > 0 && tiles.rows <= std::int64_t{1} << 32, "tiles.rows", tiles.rows,
           "must be from 1 to 2^32");
    demand(tiles.row_bytes % 16 == 0 && tiles.row_bytes >= tiles.length * size, "tiles.row_bytes",
           tiles.row_bytes, "must be a multiple of 16, and no less than a row has");
    demand(tiles.tile_length > 0 && tiles.tile_length <= 256 && tiles.tile_row_bytes() % 16 == 0,
           "tiles.tile_length", tiles.tile_length, "must be from 1 to 256, and a multiple of 16 bytes");
    demand(tiles.tile_rows > 0 && tiles.tile_rows <= 256, "tiles.tile_rows", tiles.tile_rows,
           "must be from 1 to 256");
    const int swizzle = tiles.swizzle_bytes;
    demand(swizzle == 0 || swizzle == 32 || swizzle == 64 || swizzle == 128, "tiles.swizzle_bytes", swizzle,
           "must be 0, 32, 64 or 128");
    demand(swizzle == 0 || tiles.tile_row_bytes() <= swizzle, "tiles.tile_length", tiles.tile_length,
           "must be no more than tiles.swizzle_bytes have room for");
    demand(tiles.matrices >= 0 && tiles.matrices <= std::int64_t{1} << 32, "tiles.matrices", tiles.matrices,
           "must be from 0 to 2^32");
    demand(tiles.matrices == 0 || (tiles.matrix_bytes > 0 && tiles.matrix_bytes % 16 == 0),
           "tiles.matrix_bytes", tiles.matrix_bytes, "must be a positive multiple of 16");
    constexpr std::int64_t most_bytes = (std::int64_t{1} << 40) - 1;
    demand(tiles.row_bytes <= most_bytes, "tiles.row_bytes", tiles.row_bytes, "must be below 2^40");
    demand(tiles.matrices == 0 || tiles.matrix_bytes <= most_bytes, "tiles.matrix_bytes", tiles.matrix_bytes,
           "must be below 2^40");
}

/// The map for the simulated GPU. Throws argument_error for what the unit does not take.
template <arch Arch>
[[nodiscard]] tensor_map make_tensor_map(simulated_gpu<Arch>, const tensor_tiles& tiles) {
    static_assert(sizeof(tensor_tiles) <= sizeof(tensor_map));
    check_tensor_tiles("mp::simt::make_tensor_map", tiles);
    tensor_map map{};
    std::memcpy(map.opaque, &tiles, sizeof tiles);
    return map;
}

}}  // namespace mp::simt

namespace mp::simt {

/// Tensor maps by what they describe. A map follows from its description alone, the address included, and says nothing
/// of what memory holds; so one that is found is right, whatever became of the memory meanwhile. At most 4096
/// of them: then all are forgotten. For one thread at a time, and one device.
class tensor_map_cache {
public:
    static constexpr std::size_t most = 4096;

    /// The map of these tiles, by make() where it is not known.
    template <class Make>
    [[nodiscard]] tensor_map find(const tensor_tiles& tiles, Make make) {
        const auto known = maps_.find(tiles);
        if (known != maps_.end()) return known->second;
        const tensor_map map = make();
        if (maps_.size() == most) maps_.clear();
        maps_.emplace(tiles, map);
        return map;
    }
    /// Number of maps.
    [[nodiscard]] std::size_t size() const noexcept { return maps_.size(); }

private:
    std::map<tensor_tiles, tensor_map> maps_;
};

}  // namespace mp::simt
