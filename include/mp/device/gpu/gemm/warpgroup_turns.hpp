// SPDX-License-Identifier: MIT
/// \file
/// The order of two warpgroups that multiply tiles of C by turns.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Two barrier objects from `Begin` on, of which each ends a phase when the other group has begun all products of a tile.
///
/// Turns are not only for speed. A barrier object tells the parity of a phase, so that whoever waits has to be at most a phase
/// ahead of it. A group that has passed over a tile of the other's may wait for a stage only when the other one has
/// seen all stages before it arrive.
template <std::uint32_t Begin>
class warpgroup_turns {
public:
    static constexpr int bytes = 16;

    /// Makes the barrier objects. By one thread.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void init(Thread thread) {
        for (int group = 0; group < 2; ++group) thread.init_barrier(turn_of(group), 4);
    }

    /// The first turn is group 0's: the phase before the first one counts as ended.
    MP_HOST_DEVICE MP_ALWAYS_INLINE explicit warpgroup_turns(int group)
        : group_(group), parity_(group == 0) {}

    /// Waits for the group's next turn.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void wait(Thread thread) {
        thread.wait_barrier(turn_of(group_), parity_);
        parity_ = !parity_;
    }
    /// Says that it is the other group's turn. By all warps of the group.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE void pass(Thread thread) const {
        if (thread.lane() == 0) thread.arrive(turn_of(1 - group_));
    }

private:
    MP_HOST_DEVICE static constexpr simt::shared_pointer<simt::memory_barrier> turn_of(int group) {
        return {Begin + static_cast<std::uint32_t>(group) * 8};
    }

    int group_;
    bool parity_;
};

}}  // namespace mp::detail
