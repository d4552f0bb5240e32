// SPDX-License-Identifier: MIT
/// \file
/// The tiles of C that kernels compute: what plans choose from.
#pragma once

#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/gpu/properties.hpp>

#include <array>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Tiles of the kernels. Those of mma are large, since each byte that is fetched then serves more products:
/// 64 x 64 sums a warp is what registers have room for.
using mma_tile_256 = gemm_tile<128, 256, 64, 64, 4>;
using mma_tile_128 = gemm_tile<128, 128, 64, 64, 4>;
using mma_tile_64 = gemm_tile<64, 64, 32, 32, 4>;
/// For a vector, or some: many blocks, which read B once.
using mma_tile_16 = gemm_tile<16, 32, 16, 16, 8>;
/// 8 bits: sums that are promoted take twice the registers, and the way through half takes some.
using float8_tile_128 = gemm_tile<128, 128, 32, 64, 4>;
using wmma_tile_128 = gemm_tile<128, 128, 64, 32, 3>;
using simt_tile_64 = gemm_tile<64, 64, 32, 32, 2>;

struct tile_choice {
    int rows;
    int columns;
    /// Multiply-adds per cycle and multiprocessor, relative to the kernel's largest tile. Estimates from how often a
    /// byte of shared memory is used; to be replaced by measurements.
    double rate;
    int resident_blocks;     ///< of a multiprocessor, with which the rate is reached
    int cluster_blocks = 1;  ///< tiles below each other that are computed together
    int stages = 0;          ///< of 64 bytes of k; zero if one block fits wherever the kernel runs
    /// Blocks of a multiprocessor that together take as long as one, since it mostly waits.
    int overlapping = 1;
    bool swapped = false;    ///< see swapped_warpgroup_tile
    bool ping_pong = false;  ///< see warpgroup_tile

    /// Whether shared memory has room for the blocks that are wanted.
    [[nodiscard]] constexpr bool fits(const gpu_properties& gpu) const {
        const int stage_bytes = (rows + columns) * stage_k_bytes;
        const int ring = stages_that_fit(gpu.capability, stage_bytes, stages, resident_blocks) * stage_bytes;
        return stages == 0 || resident_blocks * (ring + 1024) <= shared_bytes_of(gpu);
    }
};

/// A tile of wgmma: of one thread block of a cluster, or with PingPong of one of its warpgroups, which take turns. Both are
/// schedules of one kernel: see warp_specialized_gemm_kernel.
template <int Rows, int Columns, int ClusterBlocks, bool PingPong = false>
struct warpgroup_tile {
    static constexpr bool ping_pong = PingPong;
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
    static constexpr int cluster_blocks = ClusterBlocks;
};

/// One for few rows of C, whose transpose is computed: rows of it are wgmma's columns, of which there may be few.
template <int Rows, int Columns>
struct swapped_warpgroup_tile {
    static constexpr int rows = Rows;
    static constexpr int columns = Columns;
};

template <class Tile>
inline constexpr int stages_of = Tile::stages;
template <int Rows, int Columns>
inline constexpr int stages_of<swapped_warpgroup_tile<Rows, Columns>> = 0;
template <int Rows, int Columns, int ClusterBlocks, bool PingPong>
inline constexpr int stages_of<warpgroup_tile<Rows, Columns, ClusterBlocks, PingPong>> = 0;
template <class Tile>
inline constexpr int cluster_blocks_of = 1;
template <int Rows, int Columns, int ClusterBlocks, bool PingPong>
inline constexpr int cluster_blocks_of<warpgroup_tile<Rows, Columns, ClusterBlocks, PingPong>> =
    ClusterBlocks;

template <class Tile>
inline constexpr bool is_swapped = false;
template <int Rows, int Columns>
inline constexpr bool is_swapped<swapped_warpgroup_tile<Rows, Columns>> = true;
template <class Tile>
inline constexpr bool is_ping_pong = false;
template <int Rows, int Columns, int ClusterBlocks>
inline constexpr bool is_ping_pong<warpgroup_tile<Rows, Columns, ClusterBlocks, true>> = true;

/// A tile of a kernel as a type, with what choosing among them asks.
template <class Tile, int RateInPercent, int ResidentBlocks, int Overlapping = 1>
struct offered_tile {
    using tile = Tile;
    static constexpr tile_choice choice{Tile::rows,     Tile::columns,           RateInPercent / 100.0,
                                        ResidentBlocks, cluster_blocks_of<Tile>, stages_of<Tile>,
                                        Overlapping,    is_swapped<Tile>,        is_ping_pong<Tile>};
};
template <class... Offered>
struct tile_list {
    static constexpr std::array<tile_choice, sizeof...(Offered)> choices{Offered::choice...};

    /// Calls f.template operator()<Tile>() for the tile of the plan.
    template <class Plan, class Function>
    static void call_for(const Plan& plan, Function f) {
        const auto call = [&]<class Tile>() {
            if (plan.tile_rows != Tile::rows || plan.tile_columns != Tile::columns ||
                plan.cluster_blocks != cluster_blocks_of<Tile> || plan.swapped != is_swapped<Tile> ||
                plan.ping_pong != is_ping_pong<Tile>) {
                return false;
            }
            f.template operator()<Tile>();
            return true;
        };
        static_cast<void>((call.template operator()<typename Offered::tile>() || ...));
    }
};

/// Those of mma for operands of 8 bits and for the others: what plans choose from, are checked against, and
/// what is launched.
template <class Input>
using mma_tiles =
    std::conditional_t<sizeof(Input) == 1,
                       tile_list<offered_tile<float8_tile_128, 90, 1>, offered_tile<mma_tile_64, 55, 2>,
                                 offered_tile<mma_tile_16, 25, 4, 3>>,
                       tile_list<offered_tile<mma_tile_256, 100, 1>, offered_tile<mma_tile_128, 90, 2>,
                                 offered_tile<mma_tile_64, 55, 2>, offered_tile<mma_tile_16, 25, 4, 3>>>;
using wmma_tiles = tile_list<offered_tile<wmma_tile_128, 100, 1>>;
using simt_tiles = tile_list<offered_tile<simt_tile_64, 100, 1>>;
/// Those of wgmma for float8, whose promoted sums take the registers of 256 columns, and for the others. What takes the time of
/// those with swapped operands is the way to shared memory: for an element of 16 bits as long as 64 multiply-adds. So one more
/// tile, for 32 rows, would take no less time than the one for 64.
///
/// What bounds the rate of 16 bits, in cycles for each 2^20 multiply-adds, which tensor cores do in 512 (128 x 128 x 64, or
/// 64 x 256 x 64): what an instruction with 64 rows reads of shared memory and what TMA writes there, at 128 bytes
/// a cycle; and what a multiprocessor has of the cache's bandwidth, some 36 bytes a cycle, where a cluster brings
/// columns of B once (Luo et al. as in relative_rate; Chips and Cheese, "Nvidia's H100", 2023).
///
/// | tile | shared memory: read + written | from the cache | rate |
/// |---|---|---|---|
/// | 128 x 256, clusters of 2 | (40 + 24) KiB: 512 | 16 KiB: 455 | 1 |
/// | 64 x 256, clusters of 2, ping-pong | (40 + 40) KiB: 640 | 24 KiB: 683 | 0.75 |
///
/// So ping-pong is for sums whose end takes longer than a third of their products: see estimated_time.
template <class Input>
using warpgroup_tiles = std::conditional_t<is_float8<Input>,
                                           tile_list<offered_tile<warpgroup_tile<128, 128, 2>, 100, 1>,
                                                     offered_tile<warpgroup_tile<128, 128, 1>, 90, 1>,
                                                     offered_tile<swapped_warpgroup_tile<16, 64>, 20, 2>,
                                                     offered_tile<swapped_warpgroup_tile<64, 64>, 50, 2>>,
                                           tile_list<offered_tile<warpgroup_tile<128, 256, 2>, 100, 1>,
                                                     offered_tile<warpgroup_tile<64, 256, 2, true>, 75, 1>,
                                                     offered_tile<warpgroup_tile<128, 128, 1>, 80, 1>,
                                                     offered_tile<swapped_warpgroup_tile<16, 64>, 20, 2>,
                                                     offered_tile<swapped_warpgroup_tile<64, 64>, 50, 2>>>;

}}  // namespace mp::detail
