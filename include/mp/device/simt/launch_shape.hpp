// SPDX-License-Identifier: MIT
/// \file
/// How many threads run a kernel, and what they share.
#pragma once

#include <cstddef>

namespace mp::simt {

/// Lanes of a warp, on every device.
inline constexpr int warp_size = 32;
/// Threads of the four warps that wgmma takes together.
inline constexpr int warpgroup_size = 128;
/// Barriers of a block: sync_block() is number 0, the others are for sync_threads and arrive_threads.
inline constexpr int block_barriers = 16;

/// The threads of a launch.
struct launch_shape {
    std::ptrdiff_t blocks = 1;     ///< a multiple of cluster_blocks
    int threads = warp_size;       ///< of each block: a multiple of 32, at most 1024
    std::size_t shared_bytes = 0;  ///< shared memory of each block; it begins at a multiple of 1024 bytes
    int cluster_blocks = 1;        ///< blocks that see each other's shared memory (sm_90); at most 8
};

}  // namespace mp::simt
