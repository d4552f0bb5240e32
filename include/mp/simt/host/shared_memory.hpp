// SPDX-License-Identifier: MIT
/// \file
/// The shared memory of a block on the host, which remembers of every byte who touched it and when.
#pragma once

#include <mp/simt/host/clock.hpp>
#include <mp/simt/kernel_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

/// A rule that an access broke, before it is known where in the kernel.
struct memory_fault {
    kernel_violation violation;
    std::uint32_t offset;
    const char* text;  ///< what is wrong about the bytes: "which nobody has written"
    int other = -1;    ///< the participant with whom the access is in conflict
};

/// The accessor of memory: a participant of the vector clocks, and its clock.
struct accessor {
    int participant;
    const vector_clock* clock;
    /// The writes of others that asynchronous units may read: see shared_memory::begin_asynchronous_read.
    const vector_clock* fenced;
};

/// Shared memory and, for each of its bytes: whether anybody has written it, the last accesses that a later
/// one could be in conflict with, and copies on their way. Every function throws memory_fault and changes
/// nothing when the access breaks a rule.
///
/// The last accesses are kept for granules of 16 bytes, with a mask of bytes. Of the writes to a byte only
/// the last one is kept: an access that is ordered after it is ordered after those before it, or one of these
/// had been a race. Of the reads of a byte, those are dropped that happened before another one, because a
/// write that is ordered after that one is ordered after them.
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
            it.writes.clear();
            it.reads.clear();
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
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_read(it, who, mask, at);
        });
        for_each_granule(offset, bytes,
                         [&](granule& it, unsigned mask, std::uint32_t) { note_read(it, who, mask); });
    }

    void write(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_write(it, who, mask, at);
        });
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            note_write(it, who.participant, (*who.clock)[index_of(who)], mask, false);
        });
    }

    /// An atomic operation, which is in conflict with ordinary accesses but not with other atomic ones.
    void update(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_usable(it, mask, at);
            check_ordered(it.writes, who, mask, at,
                          "which another thread writes without an atomic operation: nothing orders the two",
                          true);
            check_ordered(it.reads, who, mask, at, "which another thread reads: nothing orders the two");
            if ((it.written & mask) != mask) {
                throw memory_fault{kernel_violation::uninitialised_read, at, "which nobody has written"};
            }
        });
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            // Atomic operations of others stay: ordinary accesses have to be ordered after each of them.
            std::erase_if(it.writes, [&](const access& old) {
                return (old.mask & ~mask) == 0 && old.participant == who.participant;
            });
            it.writes.push_back({(*who.clock)[index_of(who)], static_cast<std::uint16_t>(who.participant),
                                 static_cast<std::uint16_t>(mask), access_kind::atomic});
        });
    }

    /// A copy into these bytes begins, which may land at any time: nobody may touch them until it has been
    /// waited for.
    void begin_copy(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_write(it, who, mask, at);
        });
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.in_flight = static_cast<std::uint16_t>(it.in_flight | mask);
        });
        std::memset(data() + offset, poison, bytes);
    }

    /// The copy has landed, as a write of the participant in this epoch.
    void land_copy(int participant, std::uint32_t epoch, bool asynchronous, std::uint32_t offset,
                   const unsigned char* from, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.in_flight = static_cast<std::uint16_t>(it.in_flight & ~mask);
            note_write(it, participant, epoch, mask, asynchronous);
        });
        std::memcpy(data() + offset, from, bytes);
    }

    /// An asynchronous unit begins to read these bytes in the name of `who`. It sees what its own kind wrote,
    /// and of ordinary writes those that are fenced. Until it has been waited for nobody may write them.
    void begin_asynchronous_read(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            check_read(it, who, mask, at);
            for (const access& write : it.writes) {
                if ((write.mask & mask) == 0 || write.kind == access_kind::asynchronous) continue;
                if (write.epoch > (*who.fenced)[static_cast<std::size_t>(write.participant)]) {
                    throw memory_fault{kernel_violation::missing_fence, at,
                                       "which an ordinary store wrote without a fence for asynchronous units "
                                       "after it",
                                       write.participant};
                }
            }
        });
        for_each_granule(offset, bytes,
                         [&](granule& it, unsigned, std::uint32_t) { ++it.asynchronous_readers; });
    }

    /// It has been waited for: a read of `who`, at its epoch.
    void end_asynchronous_read(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            --it.asynchronous_readers;
            note_read(it, who, mask);
        });
    }

    /// These bytes are a barrier object from now on, written by `who`: only use_object() is allowed.
    void make_object(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        write(who, offset, bytes);
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t) {
            it.object = static_cast<std::uint16_t>(it.object | mask);
        });
    }

    /// Checks that what made the object happened before.
    void use_object(const accessor& who, std::uint32_t offset, std::size_t bytes) {
        for_each_granule(offset, bytes, [&](granule& it, unsigned mask, std::uint32_t at) {
            if ((it.object & mask) != mask) {
                throw memory_fault{kernel_violation::uninitialised_read, at,
                                   "where no barrier object was initialised"};
            }
            check_ordered(it.writes, who, mask, at,
                          "where another thread initialises the barrier object: nothing orders the two");
        });
    }

private:
    static constexpr std::size_t granule_bytes = 16;

    struct alignas(1024) line {
        unsigned char bytes[1024];
    };
    enum class access_kind : unsigned char { ordinary, atomic, asynchronous };
    struct access {
        std::uint32_t epoch;
        std::uint16_t participant;
        std::uint16_t mask;
        access_kind kind;
    };
    struct granule {
        std::uint16_t written = 0;
        std::uint16_t in_flight = 0;
        std::uint16_t object = 0;
        std::uint16_t asynchronous_readers = 0;
        std::vector<access> writes;
        std::vector<access> reads;
    };

    static std::size_t index_of(const accessor& who) { return static_cast<std::size_t>(who.participant); }

    template <class Function>
    void for_each_granule(std::uint32_t offset, std::size_t bytes, Function function) {
        for (std::size_t begin = offset, end = offset + bytes; begin < end;) {
            const std::size_t number = begin / granule_bytes;
            const std::size_t stop = (std::min)(end, (number + 1) * granule_bytes);
            const auto low = static_cast<unsigned>(begin % granule_bytes);
            const auto count = static_cast<unsigned>(stop - begin);
            function(granules_[number], ((1U << count) - 1U) << low, static_cast<std::uint32_t>(begin));
            begin = stop;
        }
    }

    /// Throws unless every access of the list that shares bytes happened before, or is one's own.
    static void check_ordered(const std::vector<access>& list, const accessor& who, unsigned mask,
                              std::uint32_t at, const char* text, bool but_atomic = false) {
        for (const access& it : list) {
            if ((it.mask & mask) == 0 || it.participant == who.participant) continue;
            if (but_atomic && it.kind == access_kind::atomic) continue;
            if (it.epoch > (*who.clock)[it.participant]) {
                throw memory_fault{kernel_violation::race, at, text, it.participant};
            }
        }
    }

    static void check_usable(const granule& it, unsigned mask, std::uint32_t at) {
        if ((it.object & mask) != 0) {
            throw memory_fault{kernel_violation::argument, at, "where a barrier object lies"};
        }
        if ((it.in_flight & mask) != 0) {
            throw memory_fault{kernel_violation::unfinished_copy, at,
                               "into which a copy is under way that has not been waited for"};
        }
    }

    static void check_read(const granule& it, const accessor& who, unsigned mask, std::uint32_t at) {
        check_usable(it, mask, at);
        check_ordered(it.writes, who, mask, at, "which another thread writes: nothing orders the two");
        if ((it.written & mask) != mask) {
            throw memory_fault{kernel_violation::uninitialised_read, at, "which nobody has written"};
        }
    }

    static void check_write(const granule& it, const accessor& who, unsigned mask, std::uint32_t at) {
        check_usable(it, mask, at);
        if (it.asynchronous_readers != 0) {
            throw memory_fault{kernel_violation::unfinished_copy, at,
                               "which an asynchronous unit still reads: it has not been waited for"};
        }
        check_ordered(it.writes, who, mask, at, "which another thread writes: nothing orders the two");
        check_ordered(it.reads, who, mask, at, "which another thread reads: nothing orders the two");
    }

    static void note_read(granule& it, const accessor& who, unsigned mask) {
        std::erase_if(it.reads, [&](const access& read) {
            return (read.mask & ~mask) == 0 &&
                   (read.participant == who.participant || read.epoch <= (*who.clock)[read.participant]);
        });
        it.reads.push_back({(*who.clock)[index_of(who)], static_cast<std::uint16_t>(who.participant),
                            static_cast<std::uint16_t>(mask), access_kind::ordinary});
    }

    static void note_write(granule& it, int participant, std::uint32_t epoch, unsigned mask,
                           bool asynchronous) {
        it.written = static_cast<std::uint16_t>(it.written | mask);
        const auto remove = [mask](std::vector<access>& list) {
            for (access& old : list) old.mask = static_cast<std::uint16_t>(old.mask & ~mask);
            std::erase_if(list, [](const access& old) { return old.mask == 0; });
        };
        remove(it.writes);
        remove(it.reads);
        it.writes.push_back({epoch, static_cast<std::uint16_t>(participant), static_cast<std::uint16_t>(mask),
                             asynchronous ? access_kind::asynchronous : access_kind::ordinary});
    }

    std::size_t bytes_;
    std::unique_ptr<line[]> memory_;
    std::vector<granule> granules_;
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
