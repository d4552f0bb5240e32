// SPDX-License-Identifier: MIT
/// \file
/// What reaches into the shared memory of a block from outside, and whether the block stays until it has.
#pragma once

#include <mp/simt/host/clock.hpp>
#include <mp/simt/host/thread_state.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

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
    /// When all have left: an access for which nobody stayed.
    [[nodiscard]] std::optional<access> unknown_to(int block) const {
        if (!in_use_) return std::nullopt;
        for (const access& it : accesses_[static_cast<std::size_t>(block)]) {
            if (it.epoch > known_[static_cast<std::size_t>(block)][it.participant]) return it;
        }
        return std::nullopt;
    }

private:
    bool in_use_ = false;
    std::size_t blocks_ = 0;
    std::size_t participants_ = 0;
    std::vector<std::vector<access>> accesses_;
    std::vector<vector_clock> known_;
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
