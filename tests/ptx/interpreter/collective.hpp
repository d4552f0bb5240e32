// SPDX-License-Identifier: MIT
// What lanes do together.
#pragma once

#include "decoder.hpp"
#include "machine.hpp"

#include <bit>

namespace ptx {

/// Whether all lanes of `members` that have not left the kernel are here; the others are waited for.
inline bool all_are_here(warp& w, lane_mask m, lane_mask members, group& g) {
    if ((m & ~members) != 0) w.fail(std::countr_zero(m & ~members), "is not in the mask of members");
    if ((members & w.live & ~m) == 0) return true;
    g.waits_for = wait::other_lanes;
    return false;
}

/// The value of an operand that has to be the same in all lanes.
inline std::uint64_t uniform(const warp& w, const operand& o, lane_mask m) {
    const std::uint64_t first = read_lane(w, o, std::countr_zero(m));
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        if (read_lane(w, o, lane) != first) w.fail(lane, "has another operand than other lanes");
    }
    return first;
}

inline int architecture_of(const warp& w) {
    return w.in->in->code->architecture;
}

/// Of instructions that end in .aligned: all lanes of the warp.
inline bool whole_warp_is_here(warp& w, lane_mask m, group& g) {
    return all_are_here(w, m, ~lane_mask{0}, g);
}

}  // namespace ptx
