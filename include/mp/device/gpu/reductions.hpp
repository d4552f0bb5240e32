// SPDX-License-Identifier: MIT
/// \file
/// One value from those of all threads of a warp or of a block, in an order that is always the same: results
/// do not depend on the schedule, on the device, or on how many blocks run at a time.
///
/// The order is that of a tree. In a warp, lane l combines what it has with what lane l ^ 16 has, then l ^ 8,
/// 4, 2 and 1; in a block each warp does so first, and then the results of the warps w and w ^ (warps / 2)
/// ... w ^ 1 are combined. All threads get the result. `Combine` is a function object of two values whose
/// result has the same bits whichever comes first (a sum, a maximum), since both sides of an exchange
/// calculate.
///
///     struct sum {
///         MP_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
///     };
///     const float total = mp::gpu::warp_reduce(thread, mine, sum{});
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::gpu {

/// Combines the values of the lanes of a warp. All 32 lanes call it. Value is plain bytes of any size.
MP_ANY_EXECUTION_SPACE
template <class Thread, class Value, class Combine>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Value warp_reduce(Thread thread, Value value, Combine combine) {
    MP_UNROLL
    for (int distance = simt::warp_size / 2; distance != 0; distance /= 2) {
        value = combine(value, thread.shuffle_xor(value, distance));
    }
    return value;
}

/// Combines the values of the threads of a block of `Threads` threads, a power of two of warps. All of them
/// call it. `room` is shared memory for a value of each warp, of 1, 2, 4, 8 or 16 bytes; it is free again
/// when the call returns.
MP_ANY_EXECUTION_SPACE
template <int Threads, class Thread, class Value, class Combine>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE Value block_reduce(Thread thread, Value value, Combine combine,
                                                                 simt::shared_pointer<Value> room) {
    constexpr int warps = Threads / simt::warp_size;
    static_assert(Threads % simt::warp_size == 0 && warps <= simt::warp_size && (warps & (warps - 1)) == 0,
                  "mp: a block that is reduced has a power of two of warps");
    value = warp_reduce(thread, value, combine);
    if constexpr (warps == 1) {
        return value;
    } else {
        if (thread.lane() == 0) thread.store(room + thread.warp(), value);
        thread.sync_block();
        value = thread.load(room + thread.lane() % warps);
        MP_UNROLL
        for (int distance = warps / 2; distance != 0; distance /= 2) {
            value = combine(value, thread.shuffle_xor(value, distance));
        }
        thread.sync_block();
        return value;
    }
}

/// The threads that work on a row together, of which a block of block_threads has several (warp_group) or
/// which are the block (block_group). What they have in common is the interface of this struct.
struct warp_group {
    /// Threads of the group.
    static constexpr int size = simt::warp_size;

    /// Groups of a thread block, and the shared memory that they need to reduce.
    [[nodiscard]] static constexpr int of_block(int block_threads) { return block_threads / size; }
    [[nodiscard]] static constexpr std::size_t shared_bytes(int /*block_threads*/) { return 0; }

    /// Number of the thread in its group.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static int rank(Thread thread) {
        return thread.lane();
    }
    /// Number of the group in the grid, and groups of the grid.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t number(Thread thread) {
        return thread.block() * (thread.threads() / size) + thread.warp();
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t count(Thread thread) {
        return thread.blocks() * (thread.threads() / size);
    }
    /// Combines the values of the group; Value has 4, 8 or 16 bytes.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Value, class Combine>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static Value reduce(Thread thread, Value value,
                                                                      Combine combine) {
        return warp_reduce(thread, value, combine);
    }
};

/// A whole block as a group; it reduces in the first bytes of shared memory.
template <int Threads>
struct block_group {
    static constexpr int size = Threads;

    /// Groups of a block, and the shared memory that they reduce in.
    [[nodiscard]] static constexpr int of_block(int /*block_threads*/) { return 1; }
    [[nodiscard]] static constexpr std::size_t shared_bytes(int block_threads) {
        return static_cast<std::size_t>(block_threads / simt::warp_size) * 16;
    }

    /// A thread's place in its group, the group's number among all of the launch, and how many there are.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static int rank(Thread thread) {
        return thread.index();
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t number(Thread thread) {
        return thread.block();
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE static std::ptrdiff_t count(Thread thread) {
        return thread.blocks();
    }
    /// Combines the values of the group; Value has 4, 8 or 16 bytes.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Value, class Combine>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static Value reduce(Thread thread, Value value,
                                                                      Combine combine) {
        return block_reduce<Threads>(thread, value, combine, simt::shared_pointer<Value>{});
    }
};

}  // namespace mp::gpu

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Combines magnitudes, which are ordered as their bits are.
struct larger_word {
    MP_HOST_DEVICE std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const { return a < b ? b : a; }
};

}}  // namespace mp::detail
