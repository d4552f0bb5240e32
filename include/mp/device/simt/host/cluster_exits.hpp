// SPDX-License-Identifier: MIT
/// \file
/// What has to have ended when a thread or a block leaves the kernel.
#pragma once

#include <mp/device/simt/host/clock.hpp>
#include <mp/device/simt/host/fault_reporter.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/host/warpgroup_state.hpp>
#include <mp/device/simt/kernel_error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Stores of tiles, for which nobody can wait any more: those whose shared memory has been read are written.
inline void end_stores(const fault_reporter& report, thread_state& thread) {
    if (!thread.open_stores.operations.empty()) {
        report.fail(thread, thread.open_stores.operations.front()->where(), kernel_violation::unfinished_copy,
                    "begins to store a tile, and leaves the kernel without commit_stores()");
    }
    if (thread.store_groups.empty()) return;
    for (deferred_group& group : thread.store_groups) {
        if (!group.operations.empty() && !group.read) {
            report.fail(
                thread, group.operations.front()->where(), kernel_violation::unfinished_copy,
                "begins to store a tile, and leaves the kernel without waiting until shared memory has "
                "been read");
        }
        for (const auto& store : group.operations) store->land();
    }
    thread.store_groups.clear();
}

/// Products of its warpgroup whose sums the thread has not waited for.
inline void check_products(const fault_reporter& report, const thread_state& thread,
                           const warpgroup_state& group) {
    const sums_in_flight* const sums =
        group.sums_of_thread(static_cast<std::size_t>(thread.number % warpgroup_size));
    if (sums == nullptr) return;
    report.fail(thread, sums->where, kernel_violation::unfinished_copy,
                sums->last_group < group.committed
                    ? "begins a product of a warpgroup, and leaves the kernel without wait_products() for it"
                    : "begins a product of a warpgroup, and leaves the kernel without commit_products()");
}

/// A grid that ends without having waited lets the next one begin to work before the one before it has ended.
inline void check_has_waited(const fault_reporter& report, const thread_state& thread) {
    if (!thread.is_dependent) return;
    throw report.fault_of_block(
        thread.block, kernel_violation::race,
        "thread " + std::to_string(thread.index) + " leaves the kernel without wait_dependencies()");
}

/// Operations under way, in the order in which they began.
using deferred_operations = std::deque<std::unique_ptr<deferred_operation>>;

/// Other blocks of the cluster arrive at a block's barrier objects, and asynchronous units write into its
/// shared memory, which is gone when its last thread leaves the kernel. So each of these accesses has to have
/// happened before some thread of the block left, whatever order they ran in this time.
class cluster_exits {
public:
    struct access {
        std::size_t participant;
        std::uint32_t epoch;
        site where;
    };

    void reset(std::size_t blocks, std::size_t participants) {
        in_use_ = false;
        blocks_ = blocks;
        participants_ = participants;
    }
    /// An access to the memory of a block, by another block or an asynchronous unit.
    void note(int block, const access& it) {
        if (!in_use_) {
            in_use_ = true;
            accesses_.assign(blocks_, {});
            known_.assign(blocks_, vector_clock(participants_));
        }
        std::vector<access>& list = accesses_[static_cast<std::size_t>(block)];
        for (access& old : list) {
            if (old.participant != it.participant) continue;
            old = it;
            return;
        }
        list.push_back(it);
    }
    /// A thread leaves the kernel. (One that left before the first access knew nothing of any.)
    void leave(const thread_state& thread) {
        if (in_use_) known_[static_cast<std::size_t>(thread.block)].join(thread.clock);
    }
    /// All threads of a block have left: nothing may reach into its memory any more.
    void check(const fault_reporter& report, int block, const deferred_operations& deferred) const {
        for (const auto& operation : deferred) {
            if (operation->block() != block) continue;
            throw report.fault_of_block(
                block, kernel_violation::unfinished_copy,
                "the block has ended while a copy into its shared memory is under way (" +
                    place_of(operation->where()) + ")");
        }
        if (!in_use_) return;
        for (const access& it : accesses_[static_cast<std::size_t>(block)]) {
            if (it.epoch <= known_[static_cast<std::size_t>(block)][it.participant]) continue;
            if (it.participant >= report.thread_count()) {
                throw report.fault_of_block(
                    block, kernel_violation::unfinished_copy,
                    "the block has ended without having waited for a copy into its shared memory (" +
                        place_of(it.where) + ")");
            }
            throw report.fault_of_block(
                block, kernel_violation::early_exit,
                "the block has ended, and nothing made it stay until " +
                    report.name_of(report.first_block(), static_cast<int>(it.participant)) +
                    " had reached into its shared memory (" + place_of(it.where) + ")");
        }
    }

private:
    bool in_use_ = false;
    std::size_t blocks_ = 0;
    std::size_t participants_ = 0;
    std::vector<std::vector<access>> accesses_;
    std::vector<vector_clock> known_;
};

}}  // namespace mp::simt::detail
