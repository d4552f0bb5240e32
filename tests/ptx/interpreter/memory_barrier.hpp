// SPDX-License-Identifier: MIT
// Barrier objects (mbarrier) in shared memory: how this machine keeps them in their 64 bits.
#pragma once

#include "machine.hpp"

#include <cstdint>

namespace ptx {

struct memory_barrier {
    std::uint16_t pending = 0;   ///< arrivals that the phase waits for
    std::uint16_t expected = 0;  ///< arrivals of every phase, times 2; its last bit is the phase
    std::int32_t bytes = 0;      ///< that copies have to bring
};

/// The object at an address of shared memory, which must have been initialised.
class barrier_object {
public:
    barrier_object(const warp& w, int lane, std::uint64_t address);
    /// Of a lane that uses it now, which has to know of its initialisation; `how` so that others know of the use.
    barrier_object(warp& w, int lane, std::uint64_t address, access how);
    [[nodiscard]] bool phase() const { return (value_.expected & 1U) != 0; }
    /// Counts, and ends the phase where nothing is left to wait for.
    void change(cluster& all, int arrivals, std::int64_t bytes);
    [[nodiscard]] barrier_record& record() const { return *record_; }
    /// Fails if others than the block's threads may not use it yet.
    void need_fence() const;

private:
    const warp& in_;
    int lane_;
    std::byte* at_;
    barrier_record* record_;
    memory_barrier value_;
};

}  // namespace ptx
