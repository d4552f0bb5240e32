// SPDX-License-Identifier: MIT
// Who runs next. Blocks go in any order, one cluster at a time; of its warps any that can goes on for a while.
#include "decoder.hpp"
#include "machine.hpp"
#include "turn.hpp"

#include <algorithm>
#include <numeric>

namespace ptx {

namespace {

bool can_run(const warp& w) {
    return std::ranges::any_of(w.groups, [](const group& g) { return g.waits_for == wait::nothing; });
}

[[noreturn]] void fail_waiting(const cluster& all) {
    static constexpr const char* reasons[] = {"nothing", "other lanes of its warp", "a barrier of the block",
                                              "the barrier of the cluster", "a barrier object"};
    std::string message = all.entry->name + ": all threads wait for ever:";
    int told = 0;
    for (const block& b : all.blocks) {
        for (const warp& w : b.warps) {
            for (const group& g : w.groups) {
                if (++told > 12) continue;
                const instruction& i = g.code->code[static_cast<std::size_t>(g.at)];
                message += "\n  block " + std::to_string(b.number) + ", warp " + std::to_string(w.number) +
                           ", " + std::to_string(std::popcount(g.lanes)) + " lanes at line " +
                           std::to_string(i.line) + " (" + std::string(i.text) + ") for " +
                           reasons[static_cast<std::size_t>(g.waits_for)];
            }
        }
    }
    throw failure(message);
}

void prepare_warp(warp& w, block& in, int number, const cluster& all) {
    const launch_configuration& shape = *all.shape;
    const auto threads = shape.threads[0] * shape.threads[1] * shape.threads[2];
    w.in = &in;
    w.number = number;
    const auto first = static_cast<std::uint32_t>(number * warp_lanes);
    const std::uint32_t lanes = std::min<std::uint32_t>(warp_lanes, threads - first);
    w.live = lanes == warp_lanes ? ~lane_mask{0} : (lane_mask{1} << lanes) - 1;
    w.carry = 0;
    w.dependent = shape.is_programmatic ? ~lane_mask{0} : 0;
    w.cluster_ticket = -1;
    w.registers.resize(std::max(w.registers.size(), all.entry->frame_bytes / 8 + 32), 0x5EA5'5EA5'5EA5'5EA5U);
    w.local_stride = std::max(w.local_stride, (all.entry->local_bytes + 15) / 16 * 16);
    w.local.resize(w.local_stride * warp_lanes);
    for (auto& groups : w.copies) groups.clear();
    for (auto& groups : w.bulk_stores) groups.clear();
    w.products.clear();
    w.products_fenced = false;
    w.groups.clear();
    group all_lanes;
    all_lanes.lanes = w.live;
    all_lanes.code = all.entry;
    w.groups.push_back(all_lanes);
    turn{w, *in.in}.forget_registers(w.groups[0], ~lane_mask{0});
    w.special.resize(special_bytes / 8);
    const auto set = [&](special name, auto value) {
        auto* const at =
            reinterpret_cast<std::uint32_t*>(w.special.data()) + static_cast<std::size_t>(name) * warp_lanes;
        for (std::uint32_t lane = 0; lane < warp_lanes; ++lane)
            at[lane] = static_cast<std::uint32_t>(value(lane));
    };
    const auto constant = [](std::uint32_t value) { return [value](std::uint32_t) { return value; }; };
    set(special::tid_x, [&](std::uint32_t l) { return (first + l) % shape.threads[0]; });
    set(special::tid_y, [&](std::uint32_t l) { return (first + l) / shape.threads[0] % shape.threads[1]; });
    set(special::tid_z, [&](std::uint32_t l) { return (first + l) / (shape.threads[0] * shape.threads[1]); });
    const auto set_sizes = [&](special first_axis, const std::array<std::uint32_t, 3>& values) {
        for (std::size_t k = 0; k < 3; ++k) {
            set(static_cast<special>(static_cast<std::size_t>(first_axis) + k), constant(values[k]));
        }
    };
    set_sizes(special::ntid_x, shape.threads);
    set_sizes(special::ctaid_x, in.coordinates);
    set_sizes(special::nctaid_x, shape.grid);
    set(special::laneid, [](std::uint32_t l) { return l; });
    set(special::warpid, constant(static_cast<std::uint32_t>(number)));
    set(special::nwarpid, constant((threads + 31) / 32));
    set(special::cluster_ctarank, constant(static_cast<std::uint32_t>(in.rank)));
    set(special::cluster_nctarank, constant(shape.cluster));
    set(special::cluster_ctaid_x, constant(static_cast<std::uint32_t>(in.rank)));
    set(special::cluster_nctaid_x, constant(shape.cluster));
    set(special::clusterid_x, constant(in.coordinates[0] / shape.cluster));
    set(special::nclusterid_x, constant(shape.grid[0] / shape.cluster));
    set(special::lanemask_eq, [](std::uint32_t l) { return 1U << l; });
    set(special::lanemask_lt, [](std::uint32_t l) { return (1U << l) - 1; });
    set(special::lanemask_le, [](std::uint32_t l) { return (1U << l) | ((1U << l) - 1); });
    set(special::lanemask_gt, [](std::uint32_t l) { return ~((1U << l) | ((1U << l) - 1)); });
    set(special::lanemask_ge, [](std::uint32_t l) { return ~((1U << l) - 1); });
}

void run_cluster(cluster& all, std::uint32_t first_block) {
    const launch_configuration& shape = *all.shape;
    const auto threads = shape.threads[0] * shape.threads[1] * shape.threads[2];
    all.blocks.resize(shape.cluster);
    all.transfers.clear();
    all.cluster_arrived = 0;
    all.cluster_phase = 0;
    std::vector<warp*> running;
    for (std::uint32_t rank = 0; rank < shape.cluster; ++rank) {
        block& it = all.blocks[rank];
        it.in = &all;
        it.rank = static_cast<int>(rank);
        it.number = first_block + rank;
        it.coordinates = {it.number % shape.grid[0], it.number / shape.grid[0] % shape.grid[1],
                          it.number / (shape.grid[0] * shape.grid[1])};
        it.warps.resize((threads + 31) / 32);
        it.shared.resize((all.entry->shared_bytes + 1023) / 1024 * 1024 + shape.dynamic_shared);
        it.barriers = {};
        it.live_threads = static_cast<int>(threads);
        for (std::size_t k = 0; k < it.warps.size(); ++k) {
            prepare_warp(it.warps[k], it, static_cast<int>(k), all);
            running.push_back(&it.warps[k]);
        }
    }
    all.cluster_knows = {};
    all.cluster_known.reset();
    begin_ordering(all);
    while (!running.empty()) {
        if (!all.transfers.empty() && all.random.below(4) == 0) {
            const std::size_t which = all.random.below(all.transfers.size());
            const auto transfer = std::move(all.transfers[which]);
            all.transfers.erase(all.transfers.begin() + static_cast<std::ptrdiff_t>(which));
            transfer();
            continue;
        }
        const std::size_t start = all.random.below(running.size());
        std::size_t k = 0;
        while (k < running.size() && !can_run(*running[(start + k) % running.size()])) ++k;
        if (k == running.size()) {
            if (all.transfers.empty()) fail_waiting(all);
            const auto transfer = std::move(all.transfers.back());
            all.transfers.pop_back();
            transfer();
            continue;
        }
        warp& w = *running[(start + k) % running.size()];
        turn{w, all}.run(16 + static_cast<int>(all.random.below(240)));
        if (w.groups.empty()) std::erase(running, &w);
    }
    while (!all.transfers.empty()) {
        all.transfers.back()();
        all.transfers.pop_back();
    }
}

}  // namespace

void warp::fail(int lane, const std::string& what) const {
    const auto& shape = *in->in->shape;
    std::string message = in->in->entry->name + ", line " + std::to_string(current->line) + " (" +
                          std::string(current->text) + "): thread " +
                          std::to_string(number * warp_lanes + lane) + " of block " +
                          std::to_string(in->number) + " " + what;
    if (shape.cluster > 1) message += " (block " + std::to_string(in->rank) + " of its cluster)";
    throw failure(message);
}

std::uint64_t executed_instructions() {
    return executed;
}

void launch(program& code, std::string_view entry, const launch_configuration& shape,
            const std::vector<std::byte>& parameters, const stream_position& in_stream) {
    cluster all;
    all.entry = &code.find(entry);
    all.code = &code;
    all.memory = &code.memory;
    all.shape = &shape;
    all.parameters = parameters;
    all.random = random_source(shape.seed);
    launch_order order_of_launch;
    order_of_launch.begin = code.memory.clock + 1;
    order_of_launch.since = in_stream.since(order_of_launch.begin);
    order_of_launch.in_stream = &in_stream;
    all.in_launch = &order_of_launch;
    const std::uint32_t blocks = shape.grid[0] * shape.grid[1] * shape.grid[2];
    std::vector<std::uint32_t> order(blocks / shape.cluster);
    std::iota(order.begin(), order.end(), 0U);
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[all.random.below(k)]);
    for (const std::uint32_t it : order) run_cluster(all, it * shape.cluster);
}

}  // namespace ptx
