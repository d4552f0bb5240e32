// SPDX-License-Identifier: MIT
// One turn of a warp: a group of lanes goes on for some instructions. Lanes that took different ways go on in any order,
// most often those that are behind, so that they meet again.
#pragma once

#include "machine.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace ptx {

/// Lanes times instructions.
inline std::uint64_t executed = 0;

struct turn {
    warp& w;
    cluster& all;

    /// Tries to unite a group with others at the same instruction. Returns where the group is now.
    std::size_t unite(std::size_t index) {
        group& mine = w.groups[index];
        for (std::size_t k = 0; k < w.groups.size(); ++k) {
            group& other = w.groups[k];
            if (k == index || other.at != mine.at || other.code != mine.code || other.frame != mine.frame ||
                (other.waits_for != wait::nothing && other.waits_for != wait::other_lanes) || other.passed ||
                mine.passed || other.stack != mine.stack) {
                continue;
            }
            mine.lanes |= other.lanes;
            w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(k));
            return unite(index > k ? index - 1 : index);
        }
        return index;
    }

    /// A group that can go on, or -1.
    int choose() {
        int best = -1;
        int ready = 0;
        for (std::size_t k = 0; k < w.groups.size(); ++k) {
            const group& g = w.groups[k];
            if (g.waits_for != wait::nothing) continue;
            ++ready;
            if (best < 0) {
                best = static_cast<int>(k);
                continue;
            }
            const group& other = w.groups[static_cast<std::size_t>(best)];
            const bool deeper = g.stack.size() > other.stack.size();
            if (deeper || (g.stack.size() == other.stack.size() && g.at < other.at))
                best = static_cast<int>(k);
        }
        if (ready > 1 && all.random.below(8) == 0) {
            auto skip = static_cast<int>(all.random.below(static_cast<std::size_t>(ready)));
            for (std::size_t k = 0; k < w.groups.size(); ++k) {
                if (w.groups[k].waits_for == wait::nothing && skip-- == 0) return static_cast<int>(k);
            }
        }
        return best;
    }

    void enter(const group& g) const {
        w.base[static_cast<std::size_t>(operand::place::frame)] =
            reinterpret_cast<std::byte*>(w.registers.data()) + g.frame;
        w.base[static_cast<std::size_t>(operand::place::constant)] =
            reinterpret_cast<std::byte*>(const_cast<std::uint64_t*>(g.code->constants.data()));
        w.base[static_cast<std::size_t>(operand::place::special)] =
            reinterpret_cast<std::byte*>(w.special.data());
        w.local_base = g.local;
    }

    void leave(group& g, lane_mask m) {
        if ((w.dependent & m) != 0)
            w.fail(std::countr_zero(w.dependent & m), "leaves the kernel without griddepcontrol.wait");
        finish_copies(w, m);
        for_lanes(m, [&](int lane) {
            for (const auto& stores : w.bulk_stores[static_cast<std::size_t>(lane)]) {
                if (!stores.empty())
                    w.fail(lane, "leaves the kernel before its stores have read shared memory");
            }
        });
        for (const auto& products : w.products) {
            if (!products.empty())
                w.fail(std::countr_zero(m), "leaves the kernel before its products were waited for");
        }
        w.live &= ~m;
        g.lanes &= ~m;
        w.in->live_threads -= std::popcount(m);
        for (group& other : w.groups) {
            if (other.waits_for == wait::other_lanes) other.waits_for = wait::nothing;
        }
        check_block_barriers(*w.in);
        check_cluster_barrier(all);
    }

    void copy_parameters(const instruction& i, lane_mask m, std::size_t here, std::size_t there, bool back) {
        for (; m != 0; m &= m - 1) {
            std::byte* const local =
                w.local.data() + static_cast<std::size_t>(std::countr_zero(m)) * w.local_stride;
            for (const auto& [caller, callee, bytes] : i.copies) {
                if ((bytes < 0) != back) continue;
                std::byte* const outside = local + here + caller;
                std::byte* const inside = local + there + callee;
                const auto count = static_cast<std::size_t>(bytes < 0 ? -bytes : bytes);
                std::copy_n(back ? inside : outside, count, back ? outside : inside);
            }
        }
    }
    void need_room(std::size_t frame, std::size_t local) {
        if (frame > w.registers.size() * 8)
            w.registers.resize((frame + frame / 2) / 8, 0x5EA5'5EA5'5EA5'5EA5U);
        if (local <= w.local_stride) return;
        const std::size_t stride = (local + local / 2 + 15) / 16 * 16;
        std::vector<std::byte> larger(stride * warp_lanes);
        for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
            std::copy_n(w.local.data() + lane * w.local_stride, w.local_stride,
                        larger.data() + lane * stride);
        }
        w.local.swap(larger);
        w.local_stride = stride;
    }
    void call(group& g, const instruction& i, lane_mask m) {
        const function& to = *i.callee;
        if (g.stack.size() > 100) w.fail(std::countr_zero(m), "calls too many functions in each other");
        g.stack.push_back({g.code, g.at, g.frame, g.local});
        const std::size_t frame = g.frame + (g.code->frame_bytes + 255) / 256 * 256;
        const std::size_t local = g.local + g.code->local_bytes;
        need_room(frame + to.frame_bytes, local + to.local_bytes);
        copy_parameters(i, m, g.local, local, false);
        g.code = &to;
        g.at = 0;
        g.frame = frame;
        g.local = local;
        forget_registers(g, m);
        enter(g);
    }
    void come_back(group& g, lane_mask m) {
        const call_link link = g.stack.back();
        g.stack.pop_back();
        const instruction& i = link.caller->code[static_cast<std::size_t>(link.at)];
        copy_parameters(i, m, link.local, g.local, true);
        g.code = link.caller;
        g.at = link.at + 1;
        g.frame = link.frame;
        g.local = link.local;
        enter(g);
    }

    /// The lanes of `others` become a group of their own, at this instruction.
    void split(std::size_t index, lane_mask others, std::int32_t at) {
        group rest = w.groups[index];
        rest.lanes = others;
        rest.at = at;
        w.groups[index].lanes &= ~others;
        w.groups.push_back(std::move(rest));
    }

    /// Of registers that may be read before they are written. An instruction that waits comes here again.
    void watch(const instruction& i, lane_mask all_lanes, lane_mask m) const {
        const register_use& use = *i.watches;
        const auto mask = [&](std::int32_t at) -> lane_mask& {
            return *reinterpret_cast<lane_mask*>(w.base[1] + at);
        };
        const auto read = [&](std::int32_t at, lane_mask lanes) {
            if (const lane_mask missing = lanes & ~mask(at); missing != 0)
                w.fail(std::countr_zero(missing), "reads a register that it has not written");
        };
        if (use.guard >= 0) read(use.guard, all_lanes);
        lane_mask there = m;
        if (use.is == register_use::kind::computes) {
            for (const std::int32_t at : use.reads) read(at, m);
        } else if (use.is == register_use::kind::copies) {
            for (const std::int32_t at : use.reads) there &= mask(at);
        } else if (!use.reads.empty()) {
            if (use.reads[2] >= 0) read(use.reads[2], m);
            const lane_mask first = read_predicate(w, i.o[3]);
            if (use.reads[0] >= 0) there &= mask(use.reads[0]) | ~first;
            if (use.reads[1] >= 0) there &= mask(use.reads[1]) | first;
        }
        for (const std::int32_t at : use.writes) mask(at) = (mask(at) & ~m) | there;
    }
    /// Lanes enter a function.
    void forget_registers(const group& g, lane_mask m) const {
        auto* const masks = reinterpret_cast<lane_mask*>(reinterpret_cast<std::byte*>(w.registers.data()) +
                                                         g.frame + g.code->watched_begin);
        for (std::size_t k = 0; k < g.code->watched; ++k) masks[k] &= ~m;
    }

    /// Runs a group for at most `steps` instructions; false if nothing could be done.
    bool run(int steps) {
        int chosen = choose();
        if (chosen < 0) return false;
        auto index = unite(static_cast<std::size_t>(chosen));
        if (w.groups[index].lanes != 0 && std::popcount(w.groups[index].lanes) > 1 &&
            all.random.below(16) == 0) {
            // Lanes need not go together.
            const lane_mask some = w.groups[index].lanes & (all.random() | all.random());
            if (some != 0 && some != w.groups[index].lanes && !w.groups[index].passed) {
                split(index, w.groups[index].lanes & ~some, w.groups[index].at);
            }
        }
        enter(w.groups[index]);
        bool progress = false;
        while (steps-- > 0) {
            group* g = &w.groups[index];
            const instruction& i = g->code->code[static_cast<std::size_t>(g->at)];
            lane_mask m = g->lanes;
            if (i.guard >= 0) {
                const lane_mask p = *reinterpret_cast<const lane_mask*>(w.base[1] + i.guard);
                m &= i.guard_negated ? ~p : p;
            }
            w.current = &i;
            if (i.watches) watch(i, g->lanes, m);
            executed += static_cast<std::uint64_t>(std::popcount(m));
            bool united = false;
            switch (i.is) {
                case instruction::kind::plain:
                    if (m != 0) i.run(w, i, m);
                    ++g->at;
                    break;
                case instruction::kind::branch: {
                    const lane_mask others = g->lanes & ~m;
                    if (others != 0 && m != 0) {
                        split(index, others, g->at + 1);
                        g = &w.groups[index];
                    }
                    g->at = m != 0 ? i.target : g->at + 1;
                    united = true;
                    break;
                }
                case instruction::kind::call:
                    if (m == g->lanes) {
                        call(*g, i, m);
                    } else if (m != 0) {
                        split(index, g->lanes & ~m, g->at + 1);
                        call(w.groups[index], i, m);
                    } else {
                        ++g->at;
                    }
                    break;
                case instruction::kind::leave:
                    if (m == 0) {
                        ++g->at;
                        break;
                    }
                    if (m != g->lanes) {
                        split(index, g->lanes & ~m, g->at + 1);
                        g = &w.groups[index];
                    }
                    if (!g->stack.empty() && i.detail[0] == 0) {
                        come_back(*g, m);
                        break;
                    }
                    leave(*g, m);
                    w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(index));
                    return true;
                case instruction::kind::blocking:
                    if (m != 0 && m != g->lanes) {
                        split(index, g->lanes & ~m, g->at + 1);
                        g = &w.groups[index];
                    }
                    if (m != 0 && !i.try_run(w, i, m, *g)) return true;
                    ++g->at;
                    break;
            }
            progress = true;
            if (w.groups.size() > 1) {
                index = unite(index);
                // Those that are behind go on first, so that they meet.
                if (united && all.random.below(8) != 0) return true;
                for (const group& other : w.groups) {
                    if (other.waits_for == wait::nothing && other.at < w.groups[index].at &&
                        other.stack.size() >= w.groups[index].stack.size() && all.random.below(4) != 0) {
                        return true;
                    }
                }
            }
        }
        return progress;
    }
};

}  // namespace ptx
