// SPDX-License-Identifier: MIT
// Barriers of warps, blocks and clusters, and fences. Memory is that of one host thread, so that fences have nothing to
// do but to tell what is ordered.
#include "collective.hpp"

#include <cstdint>
#include <string_view>

namespace ptx {

void wake(cluster& all, wait reason) {
    for (block& b : all.blocks) {
        for (warp& w : b.warps) {
            for (group& g : w.groups) {
                if (g.waits_for == reason) g.waits_for = wait::nothing;
            }
        }
    }
}

namespace {

void release(block& it, int number) {
    block_barrier& barrier = it.barriers[static_cast<std::size_t>(number)];
    const known all = barrier.knows.take();
    const int votes = barrier.votes, voters = barrier.voters;
    barrier = {};
    for (warp& w : it.warps) {
        for (group& g : w.groups) {
            if (g.waits_for != wait::block_barrier || g.barrier != number) continue;
            g.waits_for = wait::nothing;
            g.passed = true;
            g.votes = votes;
            g.voters = voters;
            learn(w, g.lanes, all);
        }
    }
}

/// Counts who comes; warps count as 32 threads where a number of threads is given.
void come(warp& w, lane_mask m, int number, int expected) {
    block_barrier& barrier = w.in->barriers[static_cast<std::size_t>(number)];
    if (barrier.arrived != 0 && barrier.expected != expected) {
        w.fail(std::countr_zero(m), "expects " + std::to_string(expected) + " threads at barrier " +
                                        std::to_string(number) + ", others " +
                                        std::to_string(barrier.expected));
    }
    barrier.expected = expected;
    barrier.knows.add(w, m);
    barrier.arrived += expected == 0 ? std::popcount(m) : warp_lanes;
    if (expected != 0 && barrier.arrived > expected)
        w.fail(std::countr_zero(m), "is one too many at the barrier");
    if (barrier.arrived == (expected == 0 ? w.in->live_threads : expected)) release(*w.in, number);
}

/// What bar.red tells of the predicates of all threads.
enum class reduction { none, count, all, any };

/// Goes on behind a barrier.
bool pass(warp& w, const instruction& i, lane_mask m, group& g) {
    g.passed = false;
    switch (static_cast<reduction>(i.detail[2])) {
        case reduction::none:
            break;
        case reduction::count:
            for_lanes(m, [&](int lane) { write_lane(w, i.o[2], lane, static_cast<std::uint64_t>(g.votes)); });
            break;
        case reduction::all:
            write_predicate(w, i.o[2], m, g.votes == g.voters ? m : 0);
            break;
        case reduction::any:
            write_predicate(w, i.o[2], m, g.votes != 0 ? m : 0);
            break;
    }
    return true;
}

/// o: number, threads, result, predicate. detail: aligned, waits, reduction.
bool block_barrier_operation(warp& w, const instruction& i, lane_mask m, group& g) {
    if (g.passed) return pass(w, i, m, g);
    if (i.detail[0] != 0 && !whole_warp_is_here(w, m, g)) return false;
    const std::uint64_t number = uniform(w, i.o[0], m);
    const std::uint64_t expected = i.o[1].is_used() ? uniform(w, i.o[1], m) : 0;
    if (number > 15) w.fail(std::countr_zero(m), "there are barriers 0 to 15");
    if (expected % warp_lanes != 0) w.fail(std::countr_zero(m), "a barrier takes whole warps");
    if (i.detail[1] == 0) {
        come(w, m, static_cast<int>(number), static_cast<int>(expected));
        return true;
    }
    if (i.detail[2] != 0) {
        block_barrier& barrier = w.in->barriers[number];
        barrier.votes += std::popcount(read_predicate(w, i.o[3]) & m);
        barrier.voters += std::popcount(m);
    }
    g.waits_for = wait::block_barrier;
    g.barrier = static_cast<int>(number);
    come(w, m, static_cast<int>(number), static_cast<int>(expected));
    return g.passed && pass(w, i, m, g);
}

/// bar.warp.sync.
bool warp_barrier(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!all_are_here(w, m, static_cast<lane_mask>(uniform(w, i.o[0], m)), g)) return false;
    meet(w, m);
    return true;
}

/// detail: relaxed, which orders nothing but barrier objects.
bool cluster_arrive(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    if (i.detail[0] == 0) {
        w.in->in->cluster_knows.add(w, m);
    } else {
        w.in->in->cluster_knows.add_barrier_objects(w, m);
    }
    w.cluster_ticket = w.in->in->cluster_phase;
    w.in->in->cluster_arrived += std::popcount(m);
    check_cluster_barrier(*w.in->in);
    return true;
}
bool cluster_wait(warp& w, const instruction& i, lane_mask m, group& g) {
    if (!whole_warp_is_here(w, m, g)) return false;
    if (w.cluster_ticket < 0)
        w.fail(std::countr_zero(m), "waits at the barrier of the cluster without having arrived");
    if (w.in->in->cluster_phase == w.cluster_ticket) {
        g.waits_for = wait::cluster_barrier;
        return false;
    }
    w.cluster_ticket = -1;
    if (i.detail[0] == 0) learn(w, m, w.in->in->cluster_known);
    return true;
}

void decode_barrier(decoder& d, instruction& to) {
    const bool is_old = d.now().opcode.starts_with("bar.");
    if (d.option("warp")) {
        d.option("sync");
        to.o[0] = d.value(0, 4);
        to.try_run = &warp_barrier;
        return;
    }
    if (d.option("cluster")) {
        const std::string_view what = d.one_of({"arrive", "wait"});
        to.detail[0] = d.one_of({"release", "acquire", "relaxed"}) == "relaxed" ? 1 : 0;
        if (!d.option("aligned")) d.fail("expected .aligned");
        to.try_run = what == "arrive" ? &cluster_arrive : &cluster_wait;
        return;
    }
    d.option("cta");
    const std::string_view what = d.one_of({"sync", "arrive", "red"});
    if (what.empty()) return;
    to.detail = {d.option("aligned") || is_old ? 1 : 0, what == "arrive" ? 0 : 1, 0, 0};
    std::size_t next = 0;
    if (what == "red") {
        const std::string_view how = d.one_of({"popc", "and", "or"});
        if (how.empty() || d.type() != (how == "popc" ? "u32" : "pred"))
            d.fail("expected .popc.u32, .and.pred or .or.pred");
        to.detail[2] = static_cast<std::int32_t>(how == "popc"  ? reduction::count
                                                 : how == "and" ? reduction::all
                                                                : reduction::any);
        to.o[2] = how == "popc" ? d.value(next++, 4) : d.predicate(next++);
    }
    to.o[0] = d.value(next++, 4);
    const bool has_count = d.operands() > next + (what == "red" ? 1 : 0);
    if (has_count) to.o[1] = d.value(next++, 4);
    if (what == "red") to.o[3] = d.predicate(next);
    to.try_run = &block_barrier_operation;
}

/// From here on others than the threads of the block may use barrier objects that the lanes have initialised.
void publish_barrier_objects(warp& w, const instruction&, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const std::uint32_t agent = agent_of(w.order[static_cast<std::size_t>(std::countr_zero(m))].now);
        for (barrier_record& it : w.in->shared.barriers)
            it.is_fenced = it.is_fenced || it.initialised_by == agent;
    }
}
void decode_fence(decoder& d, instruction& to) {
    const std::string_view what = d.one_of({"mbarrier_init", "proxy"});
    d.one_of({"sc", "acq_rel", "release", "acquire"});
    const bool for_units = d.option("async");
    d.one_of({"shared::cta", "shared::cluster", "global"});
    d.one_of({"cta", "cluster", "gpu", "sys", "gl"});
    if (what == "mbarrier_init") {
        to.run = [](warp& w, const instruction& i, lane_mask m) {
            fence_barrier_objects(w, m);
            publish_barrier_objects(w, i, m);
        };
    } else if (what.empty()) {
        to.run = [](warp& w, const instruction&, lane_mask m) { fence_accesses(w, m); };
    } else if (for_units) {
        to.run = [](warp& w, const instruction& i, lane_mask m) {
            fence_for_units(w, m);
            publish_barrier_objects(w, i, m);
        };
    }
}

void decode_grid_dependency(decoder& d, instruction& to) {
    // Launches follow each other here, so that the kernels before have ended.
    const std::string_view what = d.one_of({"wait", "launch_dependents"});
    if (what == "wait") {
        to.run = [](warp& w, const instruction&, lane_mask m) { w.dependent &= ~m; };
    } else if (!what.empty()) {
        to.run = [](warp&, const instruction&, lane_mask) {};
    }
}

}  // namespace

void check_block_barriers(block& it) {
    for (int number = 0; number < 16; ++number) {
        const block_barrier& barrier = it.barriers[static_cast<std::size_t>(number)];
        if (barrier.arrived != 0 && barrier.expected == 0 && barrier.arrived == it.live_threads)
            release(it, number);
    }
}

void check_cluster_barrier(cluster& all) {
    int live = 0;
    for (const block& it : all.blocks) live += it.live_threads;
    if (all.cluster_arrived == 0 || all.cluster_arrived < live) return;
    all.cluster_arrived = 0;
    ++all.cluster_phase;
    all.cluster_known = all.cluster_knows.take();
    wake(all, wait::cluster_barrier);
}

void add_barrier_instructions(instruction_table& table) {
    table["bar"] = &decode_barrier;
    table["barrier"] = &decode_barrier;
    table["fence"] = &decode_fence;
    table["griddepcontrol"] = &decode_grid_dependency;
    table["membar"] = &decode_fence;
}

}  // namespace ptx
