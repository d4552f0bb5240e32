// SPDX-License-Identifier: MIT
/// \file
/// Global memory during one launch on the host, where it is watched: the last accesses to its bytes.
#pragma once

#include <mp/device/simt/host/shared_memory.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/simulated_gpu.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// An access to global memory, by a participant of the clocks of a cluster.
struct global_access {
    std::ptrdiff_t cluster;
    std::uint32_t epoch;
    std::uint16_t participant;
    std::uint16_t mask;
    access_kind kind;
    site where;

    [[nodiscard]] MP_ALWAYS_INLINE bool replaces(const global_access& later) const {
        return epoch == later.epoch && participant == later.participant && cluster == later.cluster &&
               (later.mask & ~mask) == 0 && kind == later.kind;
    }
};

/// The accessor of global memory: a participant of the clocks of a cluster, and its clock.
struct global_accessor {
    std::ptrdiff_t cluster;  ///< the number of its first block
    int participant;
    const vector_clock* clock;
    site where;
    access_kind kind = access_kind::ordinary;

    [[nodiscard]] MP_ALWAYS_INLINE bool made(const global_access& it) const {
        return it.participant == participant && it.cluster == cluster;
    }
    [[nodiscard]] MP_ALWAYS_INLINE bool knows(const global_access& it) const {
        return it.cluster == cluster ? it.epoch <= (*clock)[it.participant]
                                     : clock->knows(it.cluster, it.participant, it.epoch);
    }
    [[nodiscard]] global_access access(unsigned mask, access_kind how) const {
        return {cluster,
                (*clock)[static_cast<std::size_t>(participant)],
                static_cast<std::uint16_t>(participant),
                static_cast<std::uint16_t>(mask),
                how,
                where};
    }
};

/// A rule that an access to global memory broke.
struct global_fault {
    kernel_violation violation;
    std::string text;
    std::optional<global_access> other;
};

/// The accesses of one launch; its end orders them before everything that follows. The functions throw
/// global_fault when an access breaks a rule.
class global_memory {
public:
    global_memory(memory_checker& checker, bool equal_writes)
        : checker_(&checker), equal_writes_(equal_writes) {}

    void read(const global_accessor& who, const void* from, std::size_t bytes) {
        check_range(from, bytes);
        check_written(from, bytes);
        for_each(from, bytes, [&](history& it, unsigned mask, const void* at) {
            check_ordered(it.writes, who, mask, at, unordered_write);
            if (who.kind == access_kind::asynchronous) check_fenced(it, mask, at);
            it.note_read(who, mask);
            if (it.reads.size() > most_accesses) limit(it.reads);
        });
    }
    /// `value` is what will be written.
    void write(const global_accessor& who, const void* to, const void* value, std::size_t bytes) {
        check_range(to, bytes);
        bool beside_others = false;
        const bool equal = equal_writes_ && std::memcmp(to, value, bytes) == 0;
        for_each(to, bytes, [&](history& it, unsigned mask, const void* at) {
            check_ordered(it.reads, who, mask, at, unordered_read);
            if (equal) {
                beside_others |= history::unordered(it.writes, who, mask) != nullptr;
            } else {
                check_ordered(it.writes, who, mask, at, unordered_write);
            }
            it.note_write(who.access(mask, who.kind), beside_others);
            if (it.writes.size() > most_accesses) limit(it.writes);
        });
        checker_->note_written(to, bytes);
    }
    /// Begins a store of an asynchronous unit: until it has been waited for no thread may access the bytes.
    void begin_write(const global_accessor& who, const void* to, std::size_t bytes) {
        check_range(to, bytes);
        for_each(to, bytes, [&](history& it, unsigned mask, const void* at) {
            check_ordered(it.reads, who, mask, at, unordered_read);
            check_ordered(it.writes, who, mask, at, unordered_write);
        });
        under_way_.emplace(to, bytes);
    }
    void end_write(const global_accessor& who, const void* to, const void* value, std::size_t bytes) {
        under_way_.erase(under_way_.find(to));
        write(who, to, value, bytes);
    }
    /// An atomic operation of a thread.
    void update(const global_accessor& who, thread_state& thread, const void* at, std::size_t bytes) {
        check_range(at, bytes);
        check_written(at, bytes);
        for_each(at, bytes, [&](history& it, unsigned mask, const void* place) {
            check_ordered(it.reads, who, mask, place, unordered_read);
            check_ordered(it.writes, who, mask, place, unordered_plain_write, true);
            it.note_update(who, mask);
            if (it.writes.size() > most_accesses) limit(it.writes);
        });
        hand_over(thread, at);
    }

    /// fence_device(): later atomic operations of the thread publish its present clock, and its clock joins the clocks that
    /// earlier ones have found.
    static void fence(thread_state& thread, std::ptrdiff_t cluster) {
        if (thread.found != nullptr) {
            thread.clock.join_all(cluster, *thread.found);
            thread.found.reset();
        }
        auto told = std::make_shared<clocks_of_clusters>();
        thread.clock.add_to(cluster, *told);
        thread.told = std::move(told);
    }

private:
    using history = access_history<global_access>;
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t most_accesses = 16;  ///< that are remembered, to a granule
    struct page {
        std::array<history, page_bytes / granule_bytes> granules;
    };

    template <class Function>
    void for_each(const void* begin, std::size_t bytes, Function f) {
        const auto address = reinterpret_cast<std::uintptr_t>(begin);
        for_each_granule(address, bytes, [&](std::uintptr_t number, unsigned mask, std::uintptr_t at) {
            constexpr std::uintptr_t granules = page_bytes / granule_bytes;
            if (last_page_ == nullptr || number / granules != last_number_) {
                last_number_ = number / granules;
                std::unique_ptr<page>& it = pages_[last_number_];
                if (it == nullptr) it = std::make_unique<page>();
                last_page_ = it.get();
            }
            f(last_page_->granules[number % granules], mask,
              static_cast<const unsigned char*>(begin) + (at - address));
        });
    }

    /// Checks where an access lies.
    void check_range(const void* begin, std::size_t bytes) const {
        if (std::string text = checker_->outside(begin, bytes); !text.empty()) {
            throw global_fault{kernel_violation::bounds, ", " + std::move(text), {}};
        }
        if (under_way_.empty()) return;
        auto next = under_way_.lower_bound(static_cast<const unsigned char*>(begin) + bytes);
        if (next == under_way_.begin()) return;
        --next;
        if (static_cast<const unsigned char*>(next->first) + next->second <= begin) return;
        throw global_fault{kernel_violation::unfinished_copy,
                           place_of(begin) +
                               " which a store of a tile is still to write: it has not been waited "
                               "for",
                           {}};
    }
    void check_written(const void* begin, std::size_t bytes) const {
        if (!checker_->is_unwritten(begin, bytes)) return;
        throw global_fault{
            kernel_violation::uninitialised_read, place_of(begin) + " which nobody has written", {}};
    }
    void check_ordered(const std::vector<global_access>& list, const global_accessor& who, unsigned mask,
                       const void* at, const char* text, bool but_atomic = false) const {
        const global_access* const other = history::unordered(list, who, mask, but_atomic);
        if (other == nullptr) return;
        throw global_fault{kernel_violation::race, place_of(at) + " " + text, *other};
    }
    void check_fenced(const history& it, unsigned mask, const void* at) const {
        for (const global_access& write : it.writes) {
            if ((write.mask & mask) == 0 || write.kind == access_kind::asynchronous) continue;
            throw global_fault{kernel_violation::missing_fence,
                               place_of(at) +
                                   " which an ordinary store of this launch wrote: no fence orders "
                                   "it before asynchronous units",
                               write};
        }
    }
    [[nodiscard]] std::string place_of(const void* at) const {
        std::string text = checker_->place_of(at);
        return text.empty() ? "," : text;
    }

    /// Limits the recorded accesses, since many blocks can read or add to one place: keeps some of the own cluster
    /// and some of others.
    void limit(std::vector<global_access>& list) {
        constexpr std::size_t most = most_accesses;
        const std::ptrdiff_t own = list.back().cluster;
        const auto count = static_cast<std::size_t>(std::count_if(
            list.begin(), list.end(), [own](const global_access& it) { return it.cluster == own; }));
        std::size_t i = turn_++ % most;
        while ((list[i].cluster == own) != (count > most / 2)) i = (i + 1) % most;
        list[i] = list.back();
        list.pop_back();
    }

    /// Passes clocks from atomic operation to atomic operation at an address: collects those published there, and publishes
    /// the fenced one.
    void hand_over(thread_state& thread, const void* at) {
        if (thread.told == nullptr && told_.empty()) return;
        std::shared_ptr<const clocks_of_clusters>& here = told_[at];
        if (here != nullptr) thread.found = joined(thread.found, here);
        if (thread.told != nullptr) here = joined(here, thread.told);
    }
    static std::shared_ptr<const clocks_of_clusters> joined(
        const std::shared_ptr<const clocks_of_clusters>& a,
        const std::shared_ptr<const clocks_of_clusters>& b) {
        if (a == nullptr || a == b) return b;
        auto sum = std::make_shared<clocks_of_clusters>(*a);
        vector_clock::add_all(*sum, *b);
        return sum;
    }

    memory_checker* checker_;
    bool equal_writes_;
    std::map<std::uintptr_t, std::unique_ptr<page>> pages_;
    std::map<const void*, std::shared_ptr<const clocks_of_clusters>> told_;
    std::multimap<const void*, std::size_t> under_way_;  ///< stores of asynchronous units
    page* last_page_ = nullptr;
    std::uintptr_t last_number_ = 0;
    std::size_t turn_ = 0;
};

}}  // namespace mp::simt::detail
