// SPDX-License-Identifier: MIT
/// \file
/// The last accesses to a few bytes of memory, with which a later one could be in conflict.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/kernel_error.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Granularity in bytes at which accesses are tracked; an access has a mask of its bytes within a granule.
inline constexpr std::size_t granule_bytes = 16;

/// Asynchronous units read and write in a way of their own, which fences order with the ordinary one.
enum class access_kind : unsigned char { ordinary, atomic, asynchronous };

/// Two threads that nothing orders, as a message says it.
inline constexpr const char* unordered_write = "which another thread writes: nothing orders the two";
inline constexpr const char* unordered_read = "which another thread reads: nothing orders the two";
inline constexpr const char* unordered_plain_write =
    "which another thread writes without an atomic operation: nothing orders the two";

/// Calls f(number of the granule, mask of its bytes, first byte) for the granules of some bytes.
template <class Address, class Function>
void for_each_granule(Address begin, std::size_t bytes, Function f) {
    for (Address at = begin, end = begin + static_cast<Address>(bytes); at < end;) {
        const Address number = at / static_cast<Address>(granule_bytes);
        const Address next = (number + 1) * static_cast<Address>(granule_bytes);
        const Address stop = end < next ? end : next;
        const auto low = static_cast<unsigned>(at % static_cast<Address>(granule_bytes));
        const auto count = static_cast<unsigned>(stop - at);
        f(number, ((1U << count) - 1U) << low, at);
        at = stop;
    }
}

/// Of the writes to a byte only the last one is kept: an access that is ordered after it is ordered after
/// those before it, or one of these had been a race. Of the reads of a byte, those are dropped that happened
/// before another one, because a write that is ordered after that one is ordered after them.
///
/// An Access has a mask and a kind, and `replaces(later)`, whether a later one tells nothing new. Who asks has `made(it)`, whether an access is his own, `knows(it)`,
/// whether it happened before, and `access(mask, kind)`, the one that he makes.
template <class Access>
struct access_history {
    std::vector<Access> writes;
    std::vector<Access> reads;

    void clear() {
        writes.clear();
        reads.clear();
    }

    /// The first access of a list that shares bytes and is in no order with one of `who`; null without any.
    template <class Who>
    [[nodiscard]] MP_ALWAYS_INLINE static const Access* unordered(const std::vector<Access>& list,
                                                                  const Who& who, unsigned mask,
                                                                  bool but_atomic = false) {
        // (Plain pointers here and below: most time of tests, which are hardly optimised, is spent in these loops.)
        const Access* const end = list.data() + list.size();
        for (const Access* it = list.data(); it != end; ++it) {
            if ((it->mask & mask) == 0 || who.made(*it)) continue;
            if (but_atomic && it->kind == access_kind::atomic) continue;
            if (!who.knows(*it)) return it;
        }
        return nullptr;
    }

    template <class Who>
    void note_read(const Who& who, unsigned mask, access_kind kind = access_kind::ordinary) {
        const Access read = who.access(mask, kind);
        Access* const begin = reads.data();
        Access* const end = begin + reads.size();
        if (begin != end && end[-1].replaces(read)) return;
        Access* to = begin;
        for (Access* it = begin; it != end; ++it) {
            if ((it->mask & ~mask) == 0 && it->kind == kind && (who.made(*it) || who.knows(*it))) continue;
            if (to != it) *to = *it;
            ++to;
        }
        if (to == end) {
            reads.push_back(read);
            return;
        }
        *to = read;
        if (++to != end) reads.erase(reads.begin() + (to - begin), reads.end());
    }

    /// What was written before is forgotten, unless others wrote the same in no order: then whoever reads has
    /// to be ordered after all of them.
    void note_write(const Access& write, bool beside_others = false) {
        if (beside_others) {
            writes.push_back(write);
            return;
        }
        remove(reads, write.mask);
        Access* const last = writes.data();
        if (writes.size() == 1 && (last->mask & ~write.mask) == 0) {
            *last = write;
            return;
        }
        remove(writes, write.mask);
        writes.push_back(write);
    }

    /// Atomic operations of others stay: ordinary accesses have to be ordered after each of them.
    template <class Who>
    void note_update(const Who& who, unsigned mask) {
        std::erase_if(writes, [&](const Access& old) { return (old.mask & ~mask) == 0 && who.made(old); });
        writes.push_back(who.access(mask, access_kind::atomic));
    }

private:
    static void remove(std::vector<Access>& list, unsigned mask) {
        if (list.empty()) return;
        Access* const begin = list.data();
        Access* const end = begin + list.size();
        Access* to = begin;
        for (Access* it = begin; it != end; ++it) {
            const unsigned rest = it->mask & ~mask;
            if (rest == 0) continue;
            *to = *it;
            to->mask = static_cast<std::uint16_t>(rest);
            ++to;
        }
        if (to != end) list.erase(list.begin() + (to - begin), list.end());
    }
};

}}  // namespace mp::simt::detail
