// SPDX-License-Identifier: MIT
/// \file
/// Vector clocks, and the last accesses to a few bytes of memory, with which a later one could be in conflict.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/kernel_error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// By the number of a cluster's first block, what is known of the participants there.
using clocks_of_clusters = std::map<std::ptrdiff_t, std::vector<std::uint32_t>>;

/// For each participant its last epoch that is known to lie in the past. A participant's epochs
/// are counted by itself; it begins a new one whenever it tells others of the one before. So an access at
/// epoch m of participant p happened before everything that comes after with a clock of at least m for p,
/// and two accesses of which neither happened before the other are a race, whatever order they ran in this
/// time. (C. Flanagan and S. N. Freund, "FastTrack", PLDI 2009, describes the method.)
///
/// Participants are those of one cluster. Of other clusters something is known only after a fence and an
/// atomic operation there, and an atomic operation and a fence here; nearly always nothing.
class vector_clock {
public:
    vector_clock() = default;
    explicit vector_clock(std::size_t participants)
        : moments_(std::make_unique_for_overwrite<std::uint32_t[]>(participants)), count_(participants) {
        clear();
    }
    vector_clock(const vector_clock& other)
        : moments_(std::make_unique_for_overwrite<std::uint32_t[]>(other.count_)),
          count_(other.count_),
          elsewhere_(other.elsewhere_) {
        copy(other);
    }
    vector_clock(vector_clock&&) noexcept = default;
    vector_clock& operator=(const vector_clock& other) {
        if (this == &other) return *this;
        if (count_ != other.count_) {
            moments_ = std::make_unique_for_overwrite<std::uint32_t[]>(other.count_);
            count_ = other.count_;
        }
        copy(other);
        elsewhere_ = other.elsewhere_;
        return *this;
    }
    vector_clock& operator=(vector_clock&&) noexcept = default;
    ~vector_clock() = default;

    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] std::size_t size() const { return count_; }
    [[nodiscard]] MP_ALWAYS_INLINE std::uint32_t operator[](std::size_t participant) const {
        return moments_[participant];
    }
    MP_ALWAYS_INLINE std::uint32_t& operator[](std::size_t participant) { return moments_[participant]; }

    /// Adds what another clock knows.
    void join(const vector_clock& other) {
        join_moments(moments_.get(), other.moments_.get(), count_);
        if (other.elsewhere_ == nullptr || other.elsewhere_ == elsewhere_) return;
        if (elsewhere_ == nullptr) {
            elsewhere_ = other.elsewhere_;
        } else {
            join_elsewhere(*other.elsewhere_);
        }
    }
    void reset() {
        clear();
        elsewhere_.reset();
    }

    /// Whether an access of a participant of another cluster happened before.
    [[nodiscard]] MP_ALWAYS_INLINE bool knows(std::ptrdiff_t cluster, std::size_t participant,
                                              std::uint32_t epoch) const {
        return elsewhere_.get() != nullptr && knows_elsewhere(cluster, participant, epoch);
    }
    /// Adds what is known in cluster `own`, or elsewhere.
    void join_all(std::ptrdiff_t own, const clocks_of_clusters& all) {
        clocks_of_clusters others = all;
        if (const auto at = others.find(own); at != others.end()) {
            join_moments(moments_.get(), at->second.data(), count_);
            others.erase(at);
        }
        if (!others.empty()) join_elsewhere(others);
    }
    /// Adds all that is known in cluster `own` to `to`.
    void add_to(std::ptrdiff_t own, clocks_of_clusters& to) const {
        std::vector<std::uint32_t>& known = to[own];
        known.resize(count_);
        join_moments(known.data(), moments_.get(), count_);
        if (elsewhere_ != nullptr) add_all(to, *elsewhere_);
    }
    static void add_all(clocks_of_clusters& to, const clocks_of_clusters& from) {
        for (const auto& [cluster, moments] : from) {
            std::vector<std::uint32_t>& known = to[cluster];
            known.resize(moments.size());
            join_moments(known.data(), moments.data(), moments.size());
        }
    }

private:
    [[nodiscard]] bool knows_elsewhere(std::ptrdiff_t cluster, std::size_t participant,
                                       std::uint32_t epoch) const {
        const auto at = elsewhere_->find(cluster);
        return at != elsewhere_->end() && epoch <= at->second[participant];
    }
    void clear() {
        if (count_ != 0) std::memset(moments_.get(), 0, count_ * sizeof(std::uint32_t));
    }
    void copy(const vector_clock& other) {
        if (count_ != 0) std::memcpy(moments_.get(), other.moments_.get(), count_ * sizeof(std::uint32_t));
    }
    static void join_moments(std::uint32_t* to, const std::uint32_t* from, std::size_t count) {
        std::size_t i = 0;
#if defined(__GNUC__)
        // Also where the compiler makes no vectors of loops: barriers of many threads do hardly anything else.
        using four = std::uint32_t __attribute__((vector_size(16)));
        for (; i + 4 <= count; i += 4) {
            four x;
            four y;
            __builtin_memcpy(&x, to + i, sizeof x);
            __builtin_memcpy(&y, from + i, sizeof y);
            x = x < y ? y : x;
            __builtin_memcpy(to + i, &x, sizeof x);
        }
#endif
        for (; i < count; ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
    }
    void join_elsewhere(const clocks_of_clusters& others) {
        clocks_of_clusters sum = elsewhere_ == nullptr ? clocks_of_clusters{} : *elsewhere_;
        add_all(sum, others);
        elsewhere_ = std::make_shared<const clocks_of_clusters>(std::move(sum));
    }

    // (No vector, which tests that are hardly optimised fill element by element.)
    std::unique_ptr<std::uint32_t[]> moments_;
    std::size_t count_ = 0;
    std::shared_ptr<const clocks_of_clusters> elsewhere_;
};

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
