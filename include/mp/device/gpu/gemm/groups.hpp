// SPDX-License-Identifier: MIT
/// \file
/// Groups of rows or of k of a matrix product, whose sizes are in device memory, and a walk over their tiles.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/linalg/gemm/k_scales.hpp>
#include <mp/numbers/rules/float_functions.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A tile of a group. Nothing is to be done where there is none.
struct group_tile {
    bool exists = false;
    std::ptrdiff_t group = 0;
    /// Rows of the product, or what of k, from `begin` to `end`.
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
    tile_coordinate at = {};
    bool splits_block = false;  ///< see group_bounds
};

/// What is known of all tiles, whatever their groups are.
struct tile_shape {
    std::ptrdiff_t tile_rows;
    std::ptrdiff_t rows;          ///< of C
    std::ptrdiff_t tiles_across;  ///< columns of tiles
    std::ptrdiff_t k;
};

/// What of the rows, or of k, is a group's. Offsets have 31 bits.
struct group_bounds {
    int begin;
    int end;
    /// Whether an offset lies within a block of k that shares scales: C of the group becomes NaN.
    bool splits_block = false;
};

/// The output of a group with such bounds, which looks at no sums.
template <class Output>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Output output_of_split_block(Output c) {
    c.has_product = false;
    c.beta = float_quiet_nan();
    return c;
}

/// An offset of device memory, which nobody has checked, within what there is.
template <class Thread>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE int bounded_offset(Thread thread, const std::int32_t* offset,
                                                                 int least, std::ptrdiff_t most) {
    const std::int32_t value = thread.load(offset);
    return value < least ? least : value > most ? static_cast<int>(most) : value;
}

/// Goes through the tiles of all groups in their order.
template <class Groups, class Thread>
class group_walk {
public:
    MP_HOST_DEVICE MP_ALWAYS_INLINE group_walk(Thread thread, const Groups& groups, const tile_shape& shape)
        : thread_(thread), groups_(groups), shape_(shape) {
        if (!is_done()) begin_group();
    }
    [[nodiscard]] MP_HOST_DEVICE bool is_done() const { return group_ >= groups_.count; }

    MP_ANY_EXECUTION_SPACE
    MP_HOST_DEVICE MP_ALWAYS_INLINE void advance(unsigned tiles) {
        number_ += tiles;
        while (!is_done() && number_ >= tiles_) {
            number_ -= tiles_;
            ++group_;
            if (!is_done()) begin_group();
        }
    }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile current() const {
        const auto across = static_cast<unsigned>(shape_.tiles_across);
        return {true,
                group_,
                bounds_.begin,
                bounds_.end,
                coordinate_of_tile(number_, tiles_ / across, across),
                bounds_.splits_block};
    }

private:
    MP_ANY_EXECUTION_SPACE
    MP_HOST_DEVICE MP_ALWAYS_INLINE void begin_group() {
        bounds_ = groups_.bounds(thread_, shape_, group_, bounds_);
        tiles_ = static_cast<unsigned>(groups_.tiles_down(shape_, bounds_) * shape_.tiles_across);
    }

    Thread thread_;
    Groups groups_;
    tile_shape shape_;
    std::ptrdiff_t group_ = 0;
    group_bounds bounds_{};
    unsigned tiles_ = 0;   ///< of the group
    unsigned number_ = 0;  ///< of the tile in its group
};

/// What of a product is divided into groups.
enum class group_kind : unsigned char {
    rows,    ///< contiguous groups of rows of A and C, each with its own B
    masked,  ///< the first rows of each matrix of a batch
    k,       ///< contiguous groups along k; each has its own C
    /// The same, of groups that begin at multiples of the scale block of k. C of groups with offsets within a block
    /// becomes NaN.
    blocks_of_k,
};

/// `count` groups, by offsets in device memory, of which group g has those from offsets[g] to offsets[g + 1]; masked ones by
/// counts.
///
/// Blocks of threads are enough for the worst case; those that get no tile end at once. With groups of rows it is one tile more
/// than whole ones in each group, and a block finds its group by going through the offsets, which all blocks read and the
/// cache therefore has.
template <group_kind Kind>
struct group_list {
    const std::int32_t* offsets;
    std::ptrdiff_t count;
    static constexpr bool along_k = Kind == group_kind::k || Kind == group_kind::blocks_of_k;
    /// Whether groups begin and end within steps.
    static constexpr bool has_tails = Kind == group_kind::k;
    /// Whether an offset can split a block of scales.
    static constexpr bool has_blocks = Kind == group_kind::blocks_of_k;
    /// Of which matrices all groups have one.
    static constexpr bool shares_a = Kind != group_kind::masked;
    static constexpr bool shares_b = along_k;
    static constexpr bool shares_c = Kind == group_kind::rows;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks(const tile_shape& shape) const {
        if constexpr (Kind == group_kind::rows) {
            const std::ptrdiff_t partly = count < shape.rows ? count : shape.rows;
            return (shape.rows / shape.tile_rows + partly) * shape.tiles_across;
        } else {
            return tiles_of_matrix(shape) * count;
        }
    }
    /// Groups are asked for in their order; `before` are the bounds of the one before. Groups of rows begin where it ends, so that
    /// no two of them write the same rows.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_bounds
    bounds(Thread thread, const tile_shape& shape, std::ptrdiff_t group,
           [[maybe_unused]] const group_bounds& before) const {
        const std::ptrdiff_t most = along_k ? shape.k : shape.rows;
        bool splits_block = false;
        const auto offset_at = [&](const std::int32_t* from, int least) {
            const int offset = bounded_offset(thread, from, least, most);
            if constexpr (Kind == group_kind::blocks_of_k) {
                const int within = offset == most ? 0 : offset % static_cast<int>(k_per_scale);
                splits_block = splits_block || within != 0;
                return offset - within;
            } else {
                return offset;
            }
        };
        const std::int32_t* end = offsets + group;
        int begin = 0;
        if constexpr (Kind != group_kind::masked) {
            const bool follows = Kind == group_kind::rows && group != 0;
            begin = follows ? before.end : offset_at(end, 0);
            ++end;
        }
        const int bounded_end = offset_at(end, begin);
        return {begin, bounded_end, splits_block};
    }
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t tiles_down(const tile_shape& shape,
                                                                  [[maybe_unused]] const group_bounds& of) {
        if constexpr (along_k) {
            return tile_count(shape.rows, shape.tile_rows);
        } else {
            return tile_count(of.end - of.begin, static_cast<int>(shape.tile_rows));
        }
    }
    /// The tile of a block of threads.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        if constexpr (Kind == group_kind::rows) {
            group_walk<group_list, Thread> walk(thread, *this, shape);
            walk.advance(static_cast<unsigned>(thread.block()));
            return walk.is_done() ? group_tile{} : walk.current();
        } else {
            const std::ptrdiff_t tiles = tiles_of_matrix(shape);
            const std::ptrdiff_t group = thread.block() / tiles;
            const std::ptrdiff_t number = thread.block() % tiles;
            const group_bounds of = bounds(thread, shape, group, {});
            const std::ptrdiff_t down = tiles_down(shape, of);
            if (number >= down * shape.tiles_across) return {};
            return {
                true,           group, of.begin, of.end, coordinate_of_tile(number, down, shape.tiles_across),
                of.splits_block};
        }
    }

private:
    /// Tiles of a matrix of C of which a group has all rows.
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t tiles_of_matrix(const tile_shape& shape) {
        return tile_count(shape.rows, shape.tile_rows) * shape.tiles_across;
    }
};

using row_groups = group_list<group_kind::rows>;
using masked_groups = group_list<group_kind::masked>;
using k_groups = group_list<group_kind::k>;
using k_block_groups = group_list<group_kind::blocks_of_k>;

}}  // namespace mp::detail
