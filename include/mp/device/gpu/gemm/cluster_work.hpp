// SPDX-License-Identifier: MIT
/// \file
/// The tiles that clusters of blocks compute one after the other: those of products, and those of groups.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/groups.hpp>
#include <mp/device/gpu/gemm/problem.hpp>

#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A tile of one of the products, and a slice of k.
struct tile_work {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    int slice;  ///< of all slices of all products
    int product;
    int begin;  ///< of the steps
    int end;
};

/// The work of a block of a cluster, whose tiles of `rows` x Columns lie below each other: first number `number`
/// of the work, then every `clusters` further.
template <int Columns, int ClusterBlocks>
struct cluster_work {
    int rows;
    unsigned cluster_rows;  ///< tiles of a cluster
    unsigned cluster_columns;
    unsigned splits;
    unsigned number;
    unsigned clusters;
    unsigned end;
    unsigned own;  ///< number of the block in its cluster
    int steps;
    int steps_of_slice;

    [[nodiscard]] MP_HOST_DEVICE bool is_done() const { return number >= end; }
    MP_HOST_DEVICE void advance() { number += clusters; }
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE tile_work current() const {
        const unsigned tiles = cluster_rows * cluster_columns;
        const unsigned slice = number / tiles;
        const tile_coordinate at = coordinate_of_tile(number - slice * tiles, cluster_rows, cluster_columns);
        const unsigned product = slice / splits;
        tile_work work{(at.row * ClusterBlocks + own) * rows,
                       at.column * Columns,
                       static_cast<int>(slice),
                       static_cast<int>(product),
                       static_cast<int>(slice - product * splits) * steps_of_slice,
                       0};
        work.end = work.begin + steps_of_slice < steps ? work.begin + steps_of_slice : steps;
        return work;
    }
};

/// One product, or a batch of them: cluster_work.
struct no_groups {
    static constexpr bool along_k = false;
    static constexpr bool has_tails = false;
    static constexpr bool has_blocks = false;
    static constexpr bool shares_c = false;
};

template <class Groups>
inline constexpr bool is_grouped = !std::is_same_v<Groups, no_groups>;

/// A tile of a group; its steps begin at `first` of k. With swapped operands its rows are columns of C, its columns rows of C.
struct group_tile_work : tile_work {
    int first;
    /// Elements of k in a step behind `end` that the group has only in part; zero if there is none.
    int tail;
    std::ptrdiff_t end_of_rows;  ///< of C
    bool splits_block;           ///< see group_bounds
};

/// Where the steps of a tile begin in k, and where they end with the one that a group has in part.
template <class Groups, class Work>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE int first_k([[maybe_unused]] const Work& work) {
    if constexpr (Groups::along_k) {
        return work.first;
    } else {
        return 0;
    }
}
template <class Groups, class Work>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE int end_of_steps(const Work& work) {
    if constexpr (Groups::along_k) {
        return work.end + (work.tail != 0 ? 1 : 0);
    } else {
        return work.end;
    }
}

/// The work of a block of a cluster as cluster_work, of groups: every thread goes through the offsets by itself, and so do
/// all blocks of a cluster, whose tiles are of one group. Steps are of StepK elements.
///
/// With `Swapped` the walk goes through tiles of Columns rows of C and Rows columns, as the groups divide C.
template <class Groups, int Rows, int Columns, int ClusterBlocks, int StepK, bool Swapped, class Thread>
class group_work {
public:
    MP_HOST_DEVICE MP_ALWAYS_INLINE group_work(Thread thread, const Groups& groups, const tile_shape& shape)
        : walk_(thread, groups, shape),
          clusters_(static_cast<unsigned>(thread.blocks()) / ClusterBlocks),
          own_(ClusterBlocks == 1 ? 0 : thread.block_in_cluster()),
          end_of_rows_(shape.rows),
          k_(static_cast<int>(shape.k)) {
        walk_.advance(static_cast<unsigned>(thread.block()) / ClusterBlocks);
    }
    [[nodiscard]] MP_HOST_DEVICE bool is_done() const { return walk_.is_done(); }
    MP_HOST_DEVICE MP_ALWAYS_INLINE void advance() { walk_.advance(clusters_); }

    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile_work current() const {
        const group_tile tile = walk_.current();
        const auto begin = static_cast<int>(tile.begin);
        const auto end = static_cast<int>(tile.end);
        group_tile_work work{};
        work.row = ((Swapped ? tile.at.column : tile.at.row) * ClusterBlocks + own_) * Rows;
        work.column = (Swapped ? tile.at.row : tile.at.column) * Columns;
        work.product = static_cast<int>(tile.group);
        if constexpr (Groups::along_k) {
            work.first = begin;
            // Without tails a step that is not whole is the last one of k.
            work.end = Groups::has_tails ? (end - begin) / StepK : tile_count(end - begin, StepK);
            work.tail = Groups::has_tails ? (end - begin) % StepK : 0;
            work.end_of_rows = end_of_rows_;
            work.splits_block = tile.splits_block;
        } else {
            (Swapped ? work.column : work.row) += begin;
            work.end = tile_count(k_, StepK);
            work.end_of_rows = end;
        }
        return work;
    }

private:
    group_walk<Groups, Thread> walk_;
    unsigned clusters_;
    int own_;
    std::ptrdiff_t end_of_rows_;
    int k_;
};

}}  // namespace mp::detail
