// SPDX-License-Identifier: MIT
// Clocks, and who knows which of them.
#include "ordering.hpp"

#include "machine.hpp"

#include <algorithm>
#include <bit>

namespace ptx {

namespace {

void raise_to(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (std::size_t k = 0; k < from.size(); ++k) to[k] = std::max(to[k], from[k]);
}
bool is_in(const std::vector<std::uint32_t>& it, const std::vector<std::uint32_t>& whole) {
    if (it.size() > whole.size()) return false;
    for (std::size_t k = 0; k < it.size(); ++k) {
        if (it[k] > whole[k]) return false;
    }
    return true;
}

void add_to(knowledge& sum, const knowledge& it) {
    if (it.cluster != sum.cluster) {
        known& there = sum.others[it.cluster];
        knowledge alone = it;
        alone.others.clear();
        there = join(there, std::make_shared<const knowledge>(std::move(alone)));
    } else {
        raise_to(sum.seen, it.seen);
        raise_to(sum.fenced, it.fenced);
    }
    for (const auto& [cluster, what] : it.others) {
        if (cluster == sum.cluster) continue;
        known& there = sum.others[cluster];
        there = join(there, what);
    }
}

void set_known(lane_order& it, known what) {
    it.seen = what->seen.data();
    it.knows = std::move(what);
}

std::uint32_t threads_of(const block& in) {
    return static_cast<std::uint32_t>(in.warps.size()) * warp_lanes;
}
std::uint32_t agents_of(const block& in) {
    return threads_of(in) + static_cast<std::uint32_t>(in.warps.size()) + most_barrier_objects;
}

/// A lane's clock goes on.
void tick(const warp& w, lane_order& it) {
    it.now += stamp{1} << stamp_clock_shift;
    std::uint32_t& latest = w.in->in->memory->clock;
    latest = std::max(latest, clock_of(it.now));
}

}  // namespace

known join(const known& a, const known& b) {
    if (!a || a == b) return b ? b : a;
    if (!b) return a;
    if (a->cluster == b->cluster) {
        if (is_in(b->seen, a->seen) && is_in(b->fenced, a->fenced) && b->others.empty()) return a;
        if (is_in(a->seen, b->seen) && is_in(a->fenced, b->fenced) && a->others.empty()) return b;
    }
    auto sum = std::make_shared<knowledge>(*a);
    add_to(*sum, *b);
    return sum;
}

void gathering::add(warp& w, lane_mask lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        if (!sum_) {
            sum_ = std::make_shared<knowledge>(*it.knows);
        } else if (it.knows != last_) {
            add_to(*sum_, *it.knows);
        }
        last_ = it.knows;
        sum_->seen[agent_of(it.now)] = clock_of(it.now);
        tick(w, it);
    }
}
void gathering::add(const warp& w, std::uint32_t agent, std::uint32_t clock) {
    if (!sum_) {
        sum_ = std::make_shared<knowledge>();
        sum_->cluster = w.in->in->begin;
    }
    if (sum_->seen.size() < w.in->in->agents) sum_->seen.resize(w.in->in->agents);
    sum_->seen[agent] = std::max(sum_->seen[agent], clock);
}
void gathering::add_barrier_objects(const warp& w, lane_mask lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        if (it.objects != 0) add(w, agent_of(it.now), it.objects);
    }
}
known gathering::take() {
    last_.reset();
    return std::move(sum_);
}

void begin_ordering(cluster& all) {
    all.begin = ++all.memory->clock;
    all.in_launch->clusters.emplace_back(all.begin, all.blocks[0].number);
    all.agents = static_cast<std::uint32_t>(all.blocks.size()) * agents_of(all.blocks[0]);
    if (all.agents > most_agents || all.begin >> 30 != 0) throw failure("races: too many threads or clocks");
    auto start = std::make_shared<knowledge>();
    start->cluster = all.begin;
    start->seen.assign(all.agents, all.begin - 1);
    const known shared = start;
    for (block& b : all.blocks) {
        for (warp& w : b.warps) {
            for (std::size_t lane = 0; lane < w.order.size(); ++lane) {
                const auto agent = static_cast<std::uint32_t>(b.rank) * agents_of(b) +
                                   static_cast<std::uint32_t>(w.number) * warp_lanes +
                                   static_cast<std::uint32_t>(lane);
                lane_order& it = w.order[lane];
                it = {};
                it.now = make_stamp(all.begin, agent);
                set_known(it, shared);
            }
            w.unit_clock = all.begin;
        }
    }
}

known knowledge_of(const warp& w, lane_mask lanes) {
    std::shared_ptr<knowledge> sum;
    known last;
    for (; lanes != 0; lanes &= lanes - 1) {
        const lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        if (!sum) {
            sum = std::make_shared<knowledge>(*it.knows);
        } else if (it.knows != last) {
            add_to(*sum, *it.knows);
        }
        last = it.knows;
        sum->seen[agent_of(it.now)] = clock_of(it.now);
    }
    return sum;
}

void learn(warp& w, lane_mask lanes, const known& what) {
    if (!what) return;
    known before, after;
    for (; lanes != 0; lanes &= lanes - 1) {
        lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        if (it.knows != before) {
            before = it.knows;
            after = join(before, what);
        }
        if (after != it.knows) set_known(it, after);
    }
}
void learn(warp& w, lane_mask lanes, std::uint32_t agent, std::uint32_t clock) {
    gathering news;
    news.add(w, agent, clock);
    learn(w, lanes, news.take());
}

void meet(warp& w, lane_mask lanes) {
    gathering all;
    all.add(w, lanes);
    const known result = all.take();
    for (; lanes != 0; lanes &= lanes - 1) {
        set_known(w.order[static_cast<std::size_t>(std::countr_zero(lanes))], result);
    }
}

void fence_accesses(warp& w, lane_mask lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        lane_order& it = w.order[static_cast<std::size_t>(lane)];
        learn(w, lane_mask{1} << lane, it.acquired);
        it.acquired.reset();
        it.released = knowledge_of(w, lane_mask{1} << lane);
        tick(w, it);
    }
}
void fence_for_units(warp& w, lane_mask lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        auto fenced = std::make_shared<knowledge>(*it.knows);
        fenced->fenced = fenced->seen;
        fenced->fenced[agent_of(it.now)] = clock_of(it.now);
        set_known(it, std::move(fenced));
        tick(w, it);
    }
}

void fence_barrier_objects(warp& w, lane_mask lanes) {
    for (; lanes != 0; lanes &= lanes - 1) {
        lane_order& it = w.order[static_cast<std::size_t>(std::countr_zero(lanes))];
        it.objects = clock_of(it.now);
        tick(w, it);
    }
}

void order_by(warp& w, int lane, const void* at, strong_access access) {
    lane_order& it = w.order[static_cast<std::size_t>(lane)];
    const lane_mask self = lane_mask{1} << lane;
    auto& released = w.in->in->in_launch->released;
    if (!access.releases && !it.released && released.empty()) return;
    const auto found = released.find(at);
    const known before = found == released.end() ? known{} : found->second;
    if (access.reads && before) {
        if (access.acquires)
            learn(w, self, before);
        else
            it.acquired = join(it.acquired, before);
    }
    if (!access.writes) return;
    known mine = it.released;
    if (access.releases) {
        mine = knowledge_of(w, self);
        tick(w, it);
    }
    // A read-modify-write goes on with what others handed on; a store begins anew.
    if (access.reads) mine = join(before, mine);
    if (mine) {
        released[at] = mine;
    } else if (found != released.end()) {
        released.erase(found);
    }
}

std::uint32_t unit_of_warp(const warp& w) {
    return static_cast<std::uint32_t>(w.in->rank) * agents_of(*w.in) + threads_of(*w.in) +
           static_cast<std::uint32_t>(w.number);
}
std::uint32_t unit_of_barrier(const warp& w, int rank, std::size_t number) {
    const block& in = w.in->in->blocks[static_cast<std::size_t>(rank)];
    return static_cast<std::uint32_t>(rank) * agents_of(in) + threads_of(in) +
           static_cast<std::uint32_t>(in.warps.size() + number);
}
stamp tick(const warp& w, std::uint32_t agent, std::uint32_t& clock) {
    std::uint32_t& latest = w.in->in->memory->clock;
    latest = std::max(latest, ++clock);
    return make_stamp(clock, agent) | stamp{line_behind_entry(w)} << 1;
}
std::uint32_t line_behind_entry(const warp& w) {
    return static_cast<std::uint32_t>(w.current->line - w.in->in->entry->source->body_line) &
           (stamp_lines - 1);
}

}  // namespace ptx
