// SPDX-License-Identifier: MIT
/// \file
/// The happens-before order of accesses: vector clocks, and the last accesses to a few bytes of memory with which a later
/// access can conflict; and the shared memory of a block on the host, which records them for each of its bytes.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/kernel_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
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
/// An Access has a mask and a kind, and `replaces(later)`, whether a later access adds no information. The accessor has
/// `made(it)`, whether an access is its own, `knows(it)`, whether it happened before, and `access(mask, kind)`, which returns
/// its own access.
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

    /// Records a write in place of earlier ones, or besides them if others wrote the same value unordered: a
    /// read then has to be ordered after all of them.
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

/// A rule that an access broke, before it is known where in the kernel.
struct memory_fault {
    kernel_violation violation;
    std::uint32_t offset;
    const char* text;  ///< what is wrong about the bytes: "which nobody has written"
    int other = -1;    ///< the participant with whom the access is in conflict
};

/// An access to shared memory.
struct shared_access {
    std::uint32_t epoch;
    std::uint16_t participant;
    std::uint16_t mask;  ///< of bytes of the granule
    access_kind kind;

    [[nodiscard]] MP_ALWAYS_INLINE bool replaces(const shared_access& later) const {
        return epoch == later.epoch && participant == later.participant && (later.mask & ~mask) == 0 &&
               kind == later.kind;
    }
};

/// The accessor of shared memory: a participant of the vector clocks, and its clock.
struct accessor {
    int participant;
    const vector_clock* clock;
    /// The writes of others that asynchronous units may read: see shared_memory::begin_asynchronous_read.
    const vector_clock* fenced;
    /// What is known of ordinary accesses, if that is less than `clock`.
    const vector_clock* ordinary = nullptr;

    [[nodiscard]] MP_ALWAYS_INLINE bool made(const shared_access& it) const {
        return it.participant == participant;
    }
    [[nodiscard]] MP_ALWAYS_INLINE bool knows(const shared_access& it) const {
        const bool by_less = ordinary != nullptr && it.kind != access_kind::asynchronous;
        return it.epoch <= (*(by_less ? ordinary : clock))[it.participant];
    }
    [[nodiscard]] shared_access access(unsigned mask, access_kind kind) const {
        return {(*clock)[static_cast<std::size_t>(participant)], static_cast<std::uint16_t>(participant),
                static_cast<std::uint16_t>(mask), kind};
    }
};

/// Shared memory and, for each of its bytes: whether anybody has written it, the last accesses that a later
/// one could be in conflict with, and copies on their way. Every function throws memory_fault and changes
/// nothing when the access breaks a rule.
///
/// See access_history for the last accesses.
class shared_memory {
public:
    /// Fill of poisoned memory: NaN in every format that has one.
    static constexpr int poison = 0xFF;

    explicit shared_memory(std::size_t bytes)
        : bytes_(bytes), memory_(new line[bytes / sizeof(line) + 1]), granules_(bytes / granule_bytes + 1) {
        reset();
    }

    /// Forgets everything; all bytes are unwritten again.
    void reset() {
        std::memset(data(), poison, bytes_);
        for (granule& it : granules_) {
            it.written = it.in_flight = it.object = 0;
            it.asynchronous_readers = 0;
            it.last.clear();
        }
    }

    [[nodiscard]] unsigned char* data() { return memory_[0].bytes; }
    [[nodiscard]] std::size_t size() const { return bytes_; }

    /// Checks where an access lies: inside, and at a multiple of `alignment`.
    void check_range(std::uint32_t offset, std::size_t bytes, std::size_t alignment) const {
        if (bytes > bytes_ || offset > bytes_ - bytes) {
            throw memory_fault{kernel_violation::bounds, offset, "which is beyond the block's shared memory"};
        }
        if (offset % alignment != 0) {
            throw memory_fault{kernel_violation::alignment, offset,
                               "which is not aligned as the access demands"};
        }
    }

    void read(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        const std::uint32_t end = offset + static_cast<std::uint32_t>(bytes);
        granule* const first = &granules_[offset / granule_bytes];
        granule* const last = &granules_[(end - 1) / granule_bytes];
        for (granule* it = first; it <= last; ++it) {
            check_read(*it, who, mask_in(it, first, last, offset, end), place_in(it, first, offset));
        }
        for (granule* it = first; it <= last; ++it) {
            it->last.note_read(who, mask_in(it, first, last, offset, end));
        }
    }

    /// `same` has the bytes where others may write the same ones in no order with this thread, else null.
    void write(const accessor& who, std::uint32_t offset, std::size_t bytes, const void* same = nullptr) {
        const std::uint32_t end = offset + static_cast<std::uint32_t>(bytes);
        granule* const first = &granules_[offset / granule_bytes];
        granule* const last = &granules_[(end - 1) / granule_bytes];
        bool beside_others = false;
        const bool equal = same != nullptr && std::memcmp(data() + offset, same, bytes) == 0;
        for (granule* it = first; it <= last; ++it) {
            beside_others |= check_write(*it, who, mask_in(it, first, last, offset, end),
                                         place_in(it, first, offset), equal);
        }
        for (granule* it = first; it <= last; ++it) {
            const unsigned mask = mask_in(it, first, last, offset, end);
            it->written = static_cast<std::uint16_t>(it->written | mask);
            it->last.note_write(who.access(mask, access_kind::ordinary), beside_others);
        }
    }

    /// An atomic operation, which is in conflict with ordinary accesses but not with other atomic ones.
    void update(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_usable(it, mask, at);
            check_ordered(it.last.writes, who, mask, at, unordered_plain_write, true);
            check_ordered(it.last.reads, who, mask, at, unordered_read);
            if ((it.written & mask) != mask) {
                throw memory_fault{kernel_violation::uninitialised_read, at, "which nobody has written"};
            }
        });
        for_each(offset, bytes,
                 [&](granule& it, unsigned mask, std::uint32_t) { it.last.note_update(who, mask); });
    }

    /// Begins a copy into these bytes, which can land at any time: no thread may access them until it has been
    /// waited for.
    void begin_copy(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each(offset, bytes,
                 [&](granule& it, unsigned mask, std::uint32_t at) { check_write(it, who, mask, at); });
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.in_flight = static_cast<std::uint16_t>(it.in_flight | mask);
        });
        std::memset(data() + offset, poison, bytes);
    }

    /// The copy has landed, as a write of the participant in this epoch.
    void land_copy(int participant, std::uint32_t epoch, bool asynchronous, std::uint32_t offset,
                   const unsigned char* from, std::size_t bytes) {
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.in_flight = static_cast<std::uint16_t>(it.in_flight & ~mask);
            it.written = static_cast<std::uint16_t>(it.written | mask);
            it.last.note_write({epoch, static_cast<std::uint16_t>(participant),
                                static_cast<std::uint16_t>(mask),
                                asynchronous ? access_kind::asynchronous : access_kind::ordinary});
        });
        std::memcpy(data() + offset, from, bytes);
    }

    /// Begins a read of these bytes by an asynchronous unit on behalf of `who`. It sees writes of asynchronous
    /// units, and of ordinary writes those that are fenced. Until it has been waited for no thread may write them.
    void begin_asynchronous_read(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_read(it, who, mask, at);
            for (const shared_access& write : it.last.writes) {
                if ((write.mask & mask) == 0 || write.kind == access_kind::asynchronous) continue;
                if (write.epoch > (*who.fenced)[static_cast<std::size_t>(write.participant)]) {
                    throw memory_fault{kernel_violation::missing_fence, at,
                                       "which an ordinary store wrote without a fence for asynchronous units "
                                       "after it",
                                       write.participant};
                }
            }
        });
        for_each(offset, bytes, [&](granule& it, unsigned, std::uint32_t) { ++it.asynchronous_readers; });
    }

    /// It has been waited for: a read of `who`, at its epoch.
    void end_asynchronous_read(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            --it.asynchronous_readers;
            it.last.note_read(who, mask, access_kind::asynchronous);
        });
    }

    /// These bytes are a barrier object from now on, written by `who`: only use_object() is allowed.
    void make_object(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        write(who, offset, bytes);
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.object = static_cast<std::uint16_t>(it.object | mask);
        });
    }

    /// Checks that what made the object happened before.
    void use_object(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            if ((it.object & mask) != mask) {
                throw memory_fault{kernel_violation::uninitialised_read, at,
                                   "where no barrier object was initialised"};
            }
            check_ordered(it.last.writes, who, mask, at,
                          "where another thread initialises the barrier object: nothing orders the two");
        });
    }

private:
    struct alignas(1024) line {
        unsigned char bytes[1024];
    };
    struct granule {
        std::uint16_t written = 0;
        std::uint16_t in_flight = 0;
        std::uint16_t object = 0;
        std::uint16_t asynchronous_readers = 0;
        access_history<shared_access> last;
    };

    /// The bytes of a granule that are from `offset` to `end`, which are from the granule `first` to `last`.
    MP_ALWAYS_INLINE static unsigned mask_in(const granule* it, const granule* first, const granule* last,
                                             std::uint32_t offset, std::uint32_t end) {
        unsigned mask = 0xFFFFU;
        if (it == first) mask <<= offset % granule_bytes;
        if (it == last) mask &= 0xFFFFU >> (granule_bytes - 1 - (end - 1) % granule_bytes);
        return mask & 0xFFFFU;
    }
    /// The first of them.
    MP_ALWAYS_INLINE static std::uint32_t place_in(const granule* it, const granule* first,
                                                   std::uint32_t offset) {
        constexpr std::uint32_t size = granule_bytes;
        return it == first ? offset : (offset / size + static_cast<std::uint32_t>(it - first)) * size;
    }

    template <class Function>
    void for_each(std::uint32_t offset, std::size_t bytes, Function f) {
        for_each_granule(offset, bytes, [&](std::uint32_t number, unsigned mask, std::uint32_t at) {
            f(granules_[number], mask, at);
        });
    }

    /// Throws unless every access of the list that shares bytes happened before, or is one's own.
    MP_ALWAYS_INLINE static void check_ordered(const std::vector<shared_access>& list, const accessor& who,
                                               unsigned mask, std::uint32_t at, const char* text,
                                               bool but_atomic = false) {
        const shared_access* const other =
            access_history<shared_access>::unordered(list, who, mask, but_atomic);
        if (other != nullptr) throw memory_fault{kernel_violation::race, at, text, other->participant};
    }

    MP_ALWAYS_INLINE static void check_usable(const granule& it, unsigned mask, std::uint32_t at) {
        if ((it.object & mask) != 0) {
            throw memory_fault{kernel_violation::argument, at, "where a barrier object lies"};
        }
        if ((it.in_flight & mask) != 0) {
            throw memory_fault{kernel_violation::unfinished_copy, at,
                               "into which a copy is under way that has not been waited for"};
        }
    }

    MP_ALWAYS_INLINE static void check_read(const granule& it, const accessor& who, unsigned mask,
                                            std::uint32_t at) {
        check_usable(it, mask, at);
        check_ordered(it.last.writes, who, mask, at, unordered_write);
        if ((it.written & mask) != mask) {
            throw memory_fault{kernel_violation::uninitialised_read, at, "which nobody has written"};
        }
    }

    /// Whether others write the same in no order, which is allowed where the bytes are `equal`.
    MP_ALWAYS_INLINE static bool check_write(const granule& it, const accessor& who, unsigned mask,
                                             std::uint32_t at, bool equal = false) {
        check_usable(it, mask, at);
        if (it.asynchronous_readers != 0) {
            throw memory_fault{kernel_violation::unfinished_copy, at,
                               "which an asynchronous unit still reads: it has not been waited for"};
        }
        check_ordered(it.last.reads, who, mask, at, unordered_read);
        if (equal) return access_history<shared_access>::unordered(it.last.writes, who, mask) != nullptr;
        check_ordered(it.last.writes, who, mask, at, unordered_write);
        return false;
    }

    std::size_t bytes_;
    std::unique_ptr<line[]> memory_;
    std::vector<granule> granules_;
};

}}  // namespace mp::simt::detail
