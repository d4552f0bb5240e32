// SPDX-License-Identifier: MIT
/// \file
/// Groups of rows or of k of a matrix product, whose sizes are in device memory, and a walk over their tiles.
#pragma once

#include <mp/config.hpp>
#include <mp/gpu/gemm/problem.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A tile of a group. Nothing is to be done where there is none.
struct group_tile {
    bool exists = false;
    std::ptrdiff_t group = 0;
    /// Rows of the product, or what of k, from `begin` to `end`.
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
    tile_coordinate at = {};
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
};

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
        return {true, group_, bounds_.begin, bounds_.end,
                coordinate_of_tile(number_, tiles_ / across, across)};
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

/// Contiguous groups of rows. Blocks of threads are enough for the worst case, which is one tile more than whole ones
/// in each group; those that get none end at once. A block finds its group by going through the offsets, which all blocks read
/// and the cache therefore has.
struct row_groups {
    const std::int32_t* offsets;
    std::ptrdiff_t count;
    static constexpr bool along_k = false;
    /// Of which matrices all groups have one.
    static constexpr bool shares_a = true;
    static constexpr bool shares_b = false;
    static constexpr bool shares_c = true;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks(const tile_shape& shape) const {
        const std::ptrdiff_t partly = count < shape.rows ? count : shape.rows;
        return (shape.rows / shape.tile_rows + partly) * shape.tiles_across;
    }
    /// Groups are asked for in their order; `before` are the bounds of the one before.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_bounds bounds(Thread thread, const tile_shape& shape,
                                                                      std::ptrdiff_t group,
                                                                      const group_bounds& before) const {
        const int begin = group == 0 ? bounded_offset(thread, offsets, 0, shape.rows) : before.end;
        return {begin, bounded_offset(thread, offsets + group + 1, begin, shape.rows)};
    }
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t tiles_down(const tile_shape& shape,
                                                                  const group_bounds& of) {
        return tile_count(of.end - of.begin, static_cast<int>(shape.tile_rows));
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        group_walk<row_groups, Thread> walk(thread, *this, shape);
        walk.advance(static_cast<unsigned>(thread.block()));
        return walk.is_done() ? group_tile{} : walk.current();
    }
};

/// The first rows of each matrix of a batch.
struct masked_groups {
    const std::int32_t* counts;
    std::ptrdiff_t count;
    static constexpr bool along_k = false;
    static constexpr bool shares_a = false;
    static constexpr bool shares_b = false;
    static constexpr bool shares_c = false;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks(const tile_shape& shape) const {
        return tile_count(shape.rows, shape.tile_rows) * shape.tiles_across * count;
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_bounds bounds(Thread thread, const tile_shape& shape,
                                                                      std::ptrdiff_t group,
                                                                      const group_bounds& /*before*/) const {
        return {0, bounded_offset(thread, counts + group, 0, shape.rows)};
    }
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t tiles_down(const tile_shape& shape,
                                                                  const group_bounds& of) {
        return tile_count(of.end, static_cast<int>(shape.tile_rows));
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        const std::ptrdiff_t tiles = tile_count(shape.rows, shape.tile_rows) * shape.tiles_across;
        const std::ptrdiff_t group = thread.block() / tiles;
        const std::ptrdiff_t number = thread.block() % tiles;
        const group_bounds of = bounds(thread, shape, group, {});
        const std::ptrdiff_t down = tiles_down(shape, of);
        if (number >= down * shape.tiles_across) return {};
        return {true, group, of.begin, of.end, coordinate_of_tile(number, down, shape.tiles_across)};
    }
};

/// Contiguous groups along k; each has its own C.
struct k_groups {
    const std::int32_t* offsets;
    std::ptrdiff_t count;
    static constexpr bool along_k = true;
    static constexpr bool shares_a = true;
    static constexpr bool shares_b = true;
    static constexpr bool shares_c = false;

    [[nodiscard]] MP_HOST_DEVICE std::ptrdiff_t blocks(const tile_shape& shape) const {
        return tile_count(shape.rows, shape.tile_rows) * shape.tiles_across * count;
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_bounds bounds(Thread thread, const tile_shape& shape,
                                                                      std::ptrdiff_t group,
                                                                      const group_bounds& /*before*/) const {
        const int begin = bounded_offset(thread, offsets + group, 0, shape.k);
        return {begin, bounded_offset(thread, offsets + group + 1, begin, shape.k)};
    }
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t tiles_down(const tile_shape& shape,
                                                                  const group_bounds& /*of*/) {
        return tile_count(shape.rows, shape.tile_rows);
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        const std::ptrdiff_t down = tiles_down(shape, {});
        const std::ptrdiff_t tiles = down * shape.tiles_across;
        const std::ptrdiff_t group = thread.block() / tiles;
        const group_bounds of = bounds(thread, shape, group, {});
        return {true, group, of.begin, of.end,
                coordinate_of_tile(thread.block() % tiles, down, shape.tiles_across)};
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
