// SPDX-License-Identifier: MIT
// Whether accesses to the same bytes are ordered.
#include "machine.hpp"
#include "ordering.hpp"

#include <algorithm>
#include <bit>
#include <string>

namespace ptx {

void history::refine(page& it, std::uint8_t shift) {
    if (it.shift != page::untouched) {
        const std::size_t times = std::size_t{1} << (it.shift - shift);
        const std::size_t before = it.pieces();
        const auto split = [&](std::unique_ptr<stamp[]>& stamps, std::size_t each) {
            if (!stamps) return;
            std::unique_ptr<stamp[]> finer(new stamp[before * times * each]);
            for (std::size_t k = 0; k < before * times; ++k)
                std::copy_n(stamps.get() + k / times * each, each, finer.get() + k * each);
            stamps = std::move(finer);
        };
        split(it.writes, 1);
        split(it.reads, 2);
    }
    it.shift = shift;
}

std::string line_text(const function& entry, std::uint32_t behind) {
    const std::int32_t line = entry.source->body_line + static_cast<std::int32_t>(behind);
    for (const auto& [name, it] : entry.owner->functions) {
        for (const instruction& i : it.code) {
            if (i.line == line) return std::to_string(line) + " (" + std::string(i.text) + ")";
        }
    }
    return std::to_string(line);
}

namespace {

/// When the cluster began that ran at this time, and its first block.
std::pair<std::uint32_t, std::uint32_t> cluster_of(const cluster& all, std::uint32_t clock) {
    const auto& list = all.in_launch->clusters;
    const auto behind =
        std::ranges::upper_bound(list, clock, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
    return behind == list.begin() ? std::pair<std::uint32_t, std::uint32_t>{} : *std::prev(behind);
}

std::string agent_text(const cluster& all, std::uint32_t clock, std::uint32_t agent) {
    const std::uint32_t each = all.agents / static_cast<std::uint32_t>(all.blocks.size());
    const auto warps = static_cast<std::uint32_t>(all.blocks[0].warps.size());
    const std::string block = " of block " + std::to_string(cluster_of(all, clock).second + agent / each);
    agent %= each;
    if (agent < warps * warp_lanes) return "thread " + std::to_string(agent) + block;
    agent -= warps * warp_lanes;
    if (agent < warps) return "a product of warp " + std::to_string(agent) + block;
    return "a copy that signals barrier object " + std::to_string(agent - warps) + block;
}

[[noreturn]] void fail_race(const warp& w, int lane, const place& at, access how, stamp other,
                            bool other_writes, std::string_view why) {
    const cluster& all = *w.in->in;
    std::string who;
    if (!at.is_shared && clock_of(other) < all.in_launch->begin) {
        const stream_position& here = *all.in_launch->in_stream;
        who = here.beside_text(other, other_writes) + ", and nothing orders that before this launch on " +
              stream_text(here.stream) + " (a race between streams)";
    } else {
        who = agent_text(all, clock_of(other), agent_of(other)) + (other_writes ? " wrote" : " read") +
              " in line " + line_text(*all.entry, line_of(other)) + ", " + std::string(why);
    }
    w.fail(lane, std::string(how == access::read ? "reads" : "writes") + " memory that " + who + ": byte " +
                     std::to_string(at.offset) + (at.is_shared ? " of shared memory" : " of its allocation"));
}
constexpr std::string_view unordered = "and nothing orders the two (a race)";
constexpr std::string_view unfenced = "and no fence.proxy.async is between the two (a race)";

/// Of a cluster that ran before: whether `by` knows of it.
bool is_known_elsewhere(const cluster& all, const knowledge& by, stamp other) {
    if (by.others.empty()) return false;
    const auto found = by.others.find(cluster_of(all, clock_of(other)).first);
    return found != by.others.end() && agent_of(other) < found->second->seen.size() &&
           clock_of(other) <= found->second->seen[agent_of(other)];
}

struct view {
    const cluster& all;
    const knowledge& by;
    std::uint32_t since;  ///< what was before has happened
    std::uint32_t self;   ///< agent

    [[nodiscard]] bool has_happened(stamp other) const {
        const std::uint32_t clock = clock_of(other);
        if (clock < since) return true;
        const std::uint32_t agent = agent_of(other);
        if (clock >= all.begin) return agent == self || clock <= by.seen[agent];
        if (clock < all.in_launch->begin) return all.in_launch->in_stream->work_beside(clock) == nullptr;
        return is_known_elsewhere(all, by, other);
    }
    /// Also for units beside the threads, of a write.
    [[nodiscard]] bool is_fenced(stamp other) const {
        const std::uint32_t clock = clock_of(other);
        if (clock < all.begin) return true;
        const std::uint32_t agent = agent_of(other);
        const std::uint32_t each = all.agents / static_cast<std::uint32_t>(all.blocks.size());
        if (agent % each >= all.blocks[0].warps.size() * warp_lanes) return true;
        return agent < by.fenced.size() && clock <= by.fenced[agent];
    }
};

std::uint32_t since(const cluster& all, const place& at) {
    return at.is_shared ? all.begin : all.in_launch->since;
}

void remember_read(stamp* reads, stamp now, const view& from) {
    // Of more than two readers that nothing orders two are enough, as long as one barrier is what separates all of them
    // from a writer.
    if (from.has_happened(reads[0])) {
        reads[0] = now;
    } else if (from.has_happened(reads[1])) {
        reads[1] = now;
    } else if (clock_of(reads[1]) < from.all.in_launch->begin &&
               clock_of(reads[0]) < from.all.in_launch->begin) {
        reads[1] = now;  // one reader of each launch is enough
    }
}

constexpr std::size_t unit_piece = 16;

std::uint8_t shift_of(std::size_t bytes) {
    return static_cast<std::uint8_t>(std::countr_zero(bytes));
}

}  // namespace

void note_access(warp& w, int lane, const place& at, std::size_t bytes, access how, bool strong) {
    const cluster& all = *w.in->in;
    const lane_order& me = w.order[static_cast<std::size_t>(lane)];
    const std::uint32_t line =
        static_cast<std::uint32_t>(w.current->line - all.entry->source->body_line) & (stamp_lines - 1);
    const stamp now = me.now | stamp{line} << 1 | (strong ? 1U : 0U);
    const view mine{all, *me.knows, since(all, at), agent_of(now)};
    history::page& page = at.accesses->at(at.offset, shift_of(bytes));
    const std::size_t first = at.offset % history::page_bytes >> page.shift;
    const std::size_t pieces = bytes >> page.shift;
    for (std::size_t k = first; k < first + pieces; ++k) {
        stamp* const write = page.writes ? &page.writes[k] : nullptr;
        if (how == access::read) {
            stamp* const reads = page.read_stamps() + 2 * k;
            if (same_moment(reads[0], now)) continue;
            if (write != nullptr && !mine.has_happened(*write) && !(strong && is_atomic(*write)))
                fail_race(w, lane, at, how, *write, true, unordered);
            remember_read(reads, now, mine);
            continue;
        }
        if (write != nullptr && !mine.has_happened(*write) && !(strong && is_atomic(*write)))
            fail_race(w, lane, at, how, *write, true, unordered);
        if (page.reads) {
            stamp* const reads = page.reads.get() + 2 * k;
            for (int slot = 0; slot < 2; ++slot) {
                if (mine.has_happened(reads[slot])) {
                    reads[slot] = 0;
                } else if (!(strong && is_atomic(reads[slot]))) {
                    fail_race(w, lane, at, how, reads[slot], false, unordered);
                }
            }
        }
        page.write_stamps()[k] = now;
    }
}

void note_unit(const warp& w, int lane, const place& at, std::size_t bytes, access how, const knowledge& by,
               stamp now) {
    const cluster& all = *w.in->in;
    const view mine{all, by, since(all, at), most_agents};
    at.accesses->for_pieces(at.offset, bytes, unit_piece,
                            [&](history::page& page, std::size_t k, std::size_t) {
                                if (page.writes) {
                                    const stamp write = page.writes[k];
                                    if (!mine.has_happened(write))
                                        fail_race(w, lane, at, how, write, true, unordered);
                                    if (!mine.is_fenced(write))
                                        fail_race(w, lane, at, how, write, true, unfenced);
                                }
                                if (how == access::read) {
                                    if (now != 0) remember_read(page.read_stamps() + 2 * k, now, mine);
                                    return;
                                }
                                if (page.reads) {
                                    for (int slot = 0; slot < 2; ++slot) {
                                        const stamp read = page.reads[2 * k + static_cast<std::size_t>(slot)];
                                        if (!mine.has_happened(read))
                                            fail_race(w, lane, at, how, read, false, unordered);
                                    }
                                }
                                if (now != 0) page.write_stamps()[k] = now;
                            });
}

void note_done(const place& at, std::size_t bytes, access how, stamp now) {
    at.accesses->for_pieces(at.offset, bytes, unit_piece,
                            [&](history::page& page, std::size_t k, std::size_t) {
                                if (how == access::read) {
                                    page.read_stamps()[2 * k + 1] = now;
                                    return;
                                }
                                page.write_stamps()[k] = now;
                                if (page.reads) page.reads[2 * k] = page.reads[2 * k + 1] = 0;
                            });
}

}  // namespace ptx
