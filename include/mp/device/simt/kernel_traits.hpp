// SPDX-License-Identifier: MIT
/// \file
/// The properties of a kernel, and the parameters of a launch.
#pragma once

#include <mp/error.hpp>

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

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

/// Parameters of a launch; the rest are properties of the kernel.
struct launch_size {
    std::ptrdiff_t blocks = 1;
    std::size_t shared_bytes = 0;  ///< shared memory of each block
};

/// A kernel is a function object without anything that cannot be copied byte by byte, since it goes to the
/// device as the parameter of the launch: at most 4 KiB. It has
///  - `static constexpr int threads`: threads of a block, a multiple of 32, at most 1024;
///  - optionally `static constexpr int resident_blocks`: blocks that a multiprocessor is to hold at a time,
///    from which the compiler takes the most registers that a thread may use;
///  - optionally `static constexpr int cluster_blocks`: blocks of a cluster;
///  - optionally `static constexpr bool waits_for_dependencies = true`: every thread calls wait_dependencies()
///    before it touches global memory, so that what the kernel does before that may overlap the kernel before it
///    on the stream. For other kernels the launch does so before they begin;
///  - `template <class Thread> MP_HOST_DEVICE void operator()(Thread thread) const`, which every thread runs.
///    <mp/device/simt/device/device_thread.hpp> documents the operations of a thread.
template <class Kernel>
concept kernel = std::is_trivially_copyable_v<Kernel> && sizeof(Kernel) <= 4096 && requires {
    { Kernel::threads + 0 } -> std::same_as<int>;
};

/// One that calls wait_dependencies() by itself.
template <class Kernel>
concept waiting_kernel = requires { requires Kernel::waits_for_dependencies; };

}  // namespace mp::simt

namespace mp::simt { inline namespace MP_ISA_NAMESPACE {

template <class Kernel>
[[nodiscard]] constexpr int resident_blocks_of() {
    if constexpr (requires { Kernel::resident_blocks; }) return Kernel::resident_blocks;
    return 1;
}

template <class Kernel>
[[nodiscard]] constexpr int cluster_blocks_of() {
    if constexpr (requires { Kernel::cluster_blocks; }) return Kernel::cluster_blocks;
    return 1;
}

/// The launch configuration for `threads` threads per block and `cluster` blocks per cluster. Throws argument_error in the
/// name of `function` for a configuration that no device can run.
[[nodiscard]] inline launch_shape shape_of_launch(std::string_view function, const launch_size& size,
                                                  int threads, int cluster) {
    // What a grid can have in its first dimension.
    constexpr std::ptrdiff_t most_blocks = 0x7FFF'FFFF;
    // sm_90 and sm_100 have the most: 227 KiB.
    constexpr std::size_t most_shared_bytes = std::size_t{227} << 10;
    if (size.blocks < 1 || size.blocks > most_blocks || size.blocks % cluster != 0) {
        mp::detail::throw_argument(function, "size.blocks", size.blocks,
                                   "must be a positive multiple of the blocks of a cluster, below 2^31");
    }
    if (size.shared_bytes > most_shared_bytes) {
        mp::detail::throw_argument(function, "size.shared_bytes", size.shared_bytes,
                                   "must be at most 227 KiB, which is all that a block can have");
    }
    return {size.blocks, threads, size.shared_bytes, cluster};
}

/// Does not compile for a kernel that no device can run.
template <kernel Kernel>
constexpr void check_kernel() {
    constexpr int cluster = cluster_blocks_of<Kernel>();
    static_assert(Kernel::threads > 0 && Kernel::threads % warp_size == 0 && Kernel::threads <= 1024,
                  "mp: the threads of a block are a multiple of 32, at most 1024");
    static_assert(cluster >= 1 && cluster <= 8, "mp: a cluster has one to eight blocks");
}

/// The shape of a launch of a kernel.
template <kernel Kernel>
[[nodiscard]] launch_shape shape_of_launch(std::string_view function, const launch_size& size) {
    check_kernel<Kernel>();
    return shape_of_launch(function, size, Kernel::threads, cluster_blocks_of<Kernel>());
}

}}  // namespace mp::simt
