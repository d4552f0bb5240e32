// SPDX-License-Identifier: MIT
// What happens before what. Everybody who accesses memory is an agent with a clock: the threads of a cluster, the unit
// that multiplies for a warp, and for each barrier object the unit whose copies it counts. An access has happened before
// what an agent does if it is the agent's own, or the agent knows a clock of its maker that is not less. Barriers, barrier
// objects, and fences with atomic accesses hand that knowledge on; all else that two agents do to the same bytes, and one
// of them writes, is a race. Clocks never go back, so whatever an earlier launch did is below the clock at which this began;
// it has happened, unless it is of another stream and nothing orders the two (streams.hpp).
#pragma once

#include "history.hpp"
#include "streams.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ptx {

struct warp;
struct cluster;
struct place;
enum class access : std::uint8_t;
using lane_mask = std::uint32_t;

/// Never changed once agents share it.
struct knowledge {
    std::uint32_t cluster = 0;          ///< clock at which the cluster of the agents began
    std::vector<std::uint32_t> seen{};  ///< for each agent: what it did up to this clock has happened
    /// Up to which clock ordinary accesses have happened before those of units beside the threads, too, because of
    /// fence.proxy.async; empty where there was none.
    std::vector<std::uint32_t> fenced{};
    std::map<std::uint32_t, std::shared_ptr<const knowledge>> others{};  ///< of clusters that ran before
};
using known = std::shared_ptr<const knowledge>;

/// What both know; either may be null.
known join(const known& a, const known& b);

/// A thread among the agents.
struct lane_order {
    stamp now = 0;                        ///< its clock and itself
    const std::uint32_t* seen = nullptr;  ///< of `knows`
    known knows{};
    known released{};  ///< what it knew at its last fence, for atomic accesses behind it
    known acquired{};  ///< what atomic accesses brought, for its next fence
    /// Its clock at its last fence.mbarrier_init, which a relaxed barrier of the cluster tells of. (Of all that it did until
    /// then, though the fence is for barrier objects alone.)
    std::uint32_t objects = 0;
};

/// Puts together what threads know that come to a barrier. Their clocks go on: what they do from now on is not known.
class gathering {
public:
    void add(warp& w, lane_mask lanes);
    void add(const warp& w, std::uint32_t agent, std::uint32_t clock);
    /// Only the barrier objects that lanes have fenced.
    void add_barrier_objects(const warp& w, lane_mask lanes);
    known take();

private:
    std::shared_ptr<knowledge> sum_{};
    known last_{};
};

/// What the clusters of a launch have in common.
struct launch_order {
    std::uint32_t begin = 0;
    std::uint32_t since = 0;                     ///< what was before this clock has happened
    const stream_position* in_stream = nullptr;  ///< what was before `begin` has, but for what is beside it
    std::vector<std::pair<std::uint32_t, std::uint32_t>>
        clusters{};                                     ///< when each began, and its first block
    std::unordered_map<const void*, known> released{};  ///< by address, what atomic stores hand on
};

void begin_ordering(cluster& all);

/// What lanes know, with what they have done.
known knowledge_of(const warp& w, lane_mask lanes);
/// From now on the lanes know this, too.
void learn(warp& w, lane_mask lanes, const known& what);
void learn(warp& w, lane_mask lanes, std::uint32_t agent, std::uint32_t clock);
/// bar.warp.sync.
void meet(warp& w, lane_mask lanes);
/// fence.acq_rel and its like, and fence.proxy.async.
void fence_accesses(warp& w, lane_mask lanes);
void fence_for_units(warp& w, lane_mask lanes);
/// fence.mbarrier_init.
void fence_barrier_objects(warp& w, lane_mask lanes);

/// What a strong access has to do with order.
struct strong_access {
    bool reads, writes, acquires, releases;
};
void order_by(warp& w, int lane, const void* at, strong_access it);

/// Agents of a block, behind its threads.
std::uint32_t unit_of_warp(const warp& w);
std::uint32_t unit_of_barrier(const warp& w, int rank, std::size_t number);
inline constexpr std::uint32_t most_barrier_objects = 64;
/// A moment of such an agent, whose clock goes on.
stamp tick(const warp& w, std::uint32_t agent, std::uint32_t& clock);
/// The line that the warp is at, as stamps have it.
std::uint32_t line_behind_entry(const warp& w);

/// Fails if another access to the bytes is not ordered with this one of a lane, and remembers it.
void note_access(warp& w, int lane, const place& at, std::size_t bytes, access how, bool strong);
/// The same of a unit beside the threads that knows this; a stamp of 0 is not remembered.
void note_unit(const warp& w, int lane, const place& at, std::size_t bytes, access how, const knowledge& by,
               stamp now);
/// Only remembers.
void note_done(const place& at, std::size_t bytes, access how, stamp now);

}  // namespace ptx
