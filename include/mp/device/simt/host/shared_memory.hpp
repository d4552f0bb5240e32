// SPDX-License-Identifier: MIT
/// \file
/// The shared memory of a block on the host, which remembers of every byte who touched it and when.
#pragma once

#include <mp/device/simt/host/access_history.hpp>
#include <mp/device/simt/kernel_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

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

    /// A copy into these bytes begins, which may land at any time: nobody may touch them until it has been
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

    /// An asynchronous unit begins to read these bytes in the name of `who`. It sees what its own kind wrote,
    /// and of ordinary writes those that are fenced. Until it has been waited for nobody may write them.
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
