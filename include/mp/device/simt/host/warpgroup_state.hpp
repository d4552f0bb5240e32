// SPDX-License-Identifier: MIT
/// \file
/// Products of a warpgroup that are under way, on the host, and the registers of a block, which its warpgroups give up to
/// each other (setmaxnreg).
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// What registers hold while a product is added to them: a NaN that says which line began it. Arithmetic makes
/// it quiet and may change its sign, and passes it on.
class sums_poison {
public:
    /// For products that a line begins.
    [[nodiscard]] std::uint32_t of(const site& where) {
        std::size_t number = 0;
        while (number < sites_.size() && !same_site(sites_[number], where)) ++number;
        if (number == most_sites) return pattern | (most_sites - 1);
        if (number == sites_.size()) sites_.push_back(where);
        return pattern | static_cast<std::uint32_t>(number);
    }
    /// The line if one of the words of a value is a poisoned sum, else null.
    [[nodiscard]] const site* found_in(const void* value, std::size_t bytes) const {
        if (sites_.empty()) return nullptr;
        for (std::size_t at = 0; at + sizeof(std::uint32_t) <= bytes; at += sizeof(std::uint32_t)) {
            std::uint32_t word = 0;
            std::memcpy(&word, static_cast<const unsigned char*>(value) + at, sizeof word);
            constexpr std::uint32_t sign_and_quiet = 0x8040'0000U;
            const std::size_t number = (word & ~sign_and_quiet) ^ (pattern & ~sign_and_quiet);
            if (number < sites_.size()) return &sites_[number];
        }
        return nullptr;
    }

private:
    static constexpr std::uint32_t pattern = 0x7FBA'D000U;
    static constexpr std::uint32_t most_sites = 256;
    std::vector<site> sites_;
};

/// The sums of one set of registers while products are added to them: what the registers will hold.
struct sums_in_flight {
    std::vector<std::byte*> registers;  ///< of each thread of the warpgroup, of 4 bytes
    int per_thread = 0;
    std::vector<std::uint32_t> values;  ///< rows of `columns`: the bits of floats or integers
    int columns = 0;
    std::size_t last_group = 0;  ///< the group of the last product that is added
    std::uint32_t poison = 0;    ///< what the registers hold
    site where;                  ///< of the last product
};

/// Bytes of shared memory that a product reads.
using read_ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

struct product_group {
    read_ranges ranges;
    int warps_that_wait = 4;
};

struct warpgroup_state {
    bool fenced = false;
    std::vector<std::shared_ptr<sums_in_flight>> sums;
    product_group open;
    std::deque<product_group> groups;  ///< from number `first` on, which not all warps have waited for
    std::size_t first = 0;
    std::size_t committed = 0;            ///< groups that have been ended
    std::array<std::size_t, 4> waited{};  ///< groups that each warp has waited for

    /// Sums that a thread of the warpgroup has not waited for, or null.
    [[nodiscard]] const sums_in_flight* sums_of_thread(std::size_t thread) const {
        for (const auto& it : sums) {
            if (it->registers[thread] != nullptr) return it.get();
        }
        return nullptr;
    }
};

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
