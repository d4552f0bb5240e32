// SPDX-License-Identifier: MIT
/// \file
/// The tiles that clusters of blocks compute one after the other.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/problem.hpp>

#include <cstddef>

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

}}  // namespace mp::detail
