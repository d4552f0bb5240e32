// SPDX-License-Identifier: MIT
/// \file
/// The registers of a block on the host, which its warpgroups give up to each other (setmaxnreg).
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/launch_shape.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Registers of a thread when a kernel begins: what launch bounds leave to it, of the 64 Ki of a
/// multiprocessor, which are given out by eights.
[[nodiscard]] constexpr int registers_at_launch(int threads, int resident_blocks) {
    const int most = 65536 / (threads * resident_blocks);
    return (most < 256 ? most : 256) / 8 * 8;
}

class registers_of_block {
public:
    /// A warpgroup that waits for registers.
    struct request {
        std::size_t warpgroup;
        int count;
        std::vector<int> threads;
    };

    void reset(std::size_t warpgroups, int registers_of_thread) {
        counts_.assign(warpgroups, registers_of_thread);
        free_ = 0;
        requests_.clear();
    }
    /// Registers of each thread of a warpgroup.
    [[nodiscard]] int count(std::size_t warpgroup) const { return counts_[warpgroup]; }

    void decrease(std::size_t warpgroup, int count) {
        free_ += (counts_[warpgroup] - count) * warpgroup_size;
        counts_[warpgroup] = count;
    }
    void increase(std::size_t warpgroup, int count) { requests_.push_back({warpgroup, count, {}}); }
    /// The request of a warpgroup that has not been granted, or null.
    [[nodiscard]] request* request_of(std::size_t warpgroup) {
        for (request& it : requests_) {
            if (it.warpgroup == warpgroup) return &it;
        }
        return nullptr;
    }
    /// Grants what can be granted; calls wake(thread) for those that waited for it.
    template <class Wake>
    void grant(Wake wake) {
        std::erase_if(requests_, [&](const request& it) {
            const int needed = (it.count - counts_[it.warpgroup]) * warpgroup_size;
            if (needed > free_) return false;
            free_ -= needed;
            counts_[it.warpgroup] = it.count;
            for (const int thread : it.threads) wake(thread);
            return true;
        });
    }
    /// What a deadlock has to do with registers: "; warpgroup 1 wants 240 registers a thread, ...", or nothing.
    [[nodiscard]] std::string text() const {
        std::string text;
        for (const request& it : requests_) {
            const int needed = (it.count - counts_[it.warpgroup]) * warpgroup_size;
            text.append("; warpgroup ").append(std::to_string(it.warpgroup)).append(" wants ");
            text.append(std::to_string(it.count)).append(" registers a thread in place of ");
            text.append(std::to_string(counts_[it.warpgroup])).append(", ");
            text.append(std::to_string(needed)).append(" in all, and the others have given up ");
            text.append(std::to_string(free_));
        }
        return text;
    }

private:
    std::vector<int> counts_;
    int free_ = 0;
    std::vector<request> requests_;
};

}}  // namespace mp::simt::detail
