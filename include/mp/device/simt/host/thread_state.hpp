// SPDX-License-Identifier: MIT
/// \file
/// State of a thread on the host, of barriers, and of asynchronous operations in flight; the registers of a block, which its
/// warpgroups give up to each other (setmaxnreg); and the layouts of the tiles that copies have brought to shared memory, so
/// that matrix descriptors can be compared with them.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/host/fiber.hpp>
#include <mp/device/simt/host/shared_memory.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// A line of the kernel.
using site = std::source_location;

/// "tile.hpp:120"
inline std::string place_of(const site& where) {
    const std::string_view path = where.file_name();
    const std::size_t slash = path.find_last_of('/');
    std::string text(slash == std::string_view::npos ? path : path.substr(slash + 1));
    return text.append(":").append(std::to_string(where.line()));
}

inline bool same_site(const site& a, const site& b) {
    return a.line() == b.line() && a.column() == b.column() &&
           (a.file_name() == b.file_name() || std::string_view(a.file_name()) == b.file_name());
}

/// Thrown on the other fibers of a kernel that failed, to take their stacks down. Not an exception of ours:
/// it must not be caught as one.
struct cancelled {};

/// Bytes on their way into shared memory, as they were when the copy was issued.
struct pending_copy {
    std::uint32_t offset;
    const unsigned char* source;
    std::size_t source_bytes;
    std::vector<unsigned char> bytes;  ///< zeros behind those of the source
};

/// The threads that take part in an operation of a warp.
enum class participation : unsigned char {
    all,
    those_left,  ///< all that have not left the kernel
};

/// An operation that all threads of a warp or warpgroup carry out together: the last one to arrive executes it for all.
struct collective_slot {
    const char* operation = nullptr;
    site where;
    int first = 0;  ///< the thread that arrived first
    participation who = participation::all;
    std::vector<void*> operands;
    std::size_t arrived = 0;
    std::size_t left = 0;  ///< threads that have left the kernel

    explicit collective_slot(std::size_t threads) : operands(threads, nullptr) {}

    /// A new block begins.
    void reset() {
        arrived = 0;
        left = 0;
    }
    [[nodiscard]] bool complete() const { return arrived + left == operands.size(); }
};

/// A barrier of a block.
struct block_barrier {
    int arrived = 0;
    int expected = 0;  ///< zero while none has arrived; -1 for all threads that are left
    vector_clock known;
    vector_clock fenced;
    std::vector<int> waiting;
    std::vector<std::pair<int, site>> warps;  ///< where the lanes of a warp arrived

    /// Adds the arrival of a thread with these clocks.
    void come(const vector_clock& clock, const vector_clock* fenced_clock) {
        ++arrived;
        if (known.empty()) {
            known = clock;
            fenced = fenced_clock != nullptr ? *fenced_clock : vector_clock(clock.size());
            return;
        }
        known.join(clock);
        if (fenced_clock != nullptr) fenced.join(*fenced_clock);
    }
    /// Removes all arrivals.
    void reset() {
        arrived = 0;
        expected = 0;
        known.reset();
        fenced.reset();
        waiting.clear();
        warps.clear();
    }
};

/// A memory_barrier.
struct memory_barrier_state {
    std::uint32_t offset = 0;
    std::uint32_t expected = 0;  ///< arrivals of a phase
    std::uint32_t pending = 0;   ///< those that are missing
    std::int64_t bytes = 0;      ///< that were announced and have not arrived; negative the other way round
    bool parity = false;         ///< of the phase that is under way
    bool fenced = false;         ///< asynchronous units see that it was initialised
    int initialised_by = 0;
    std::size_t participant = 0;  ///< under which copies that arrive here write
    vector_clock known;           ///< by those who arrived in this phase
    vector_clock known_fenced;
    vector_clock known_ordinary;  ///< by arrive_remote_ordinary(); empty where no thread has so arrived
    vector_clock completed;       ///< the same of the phase before
    vector_clock completed_fenced;
    vector_clock completed_ordinary;
    std::vector<int> waiting;
};

/// An operation that an asynchronous unit carries out at an unspecified time after it was issued.
class deferred_operation {
public:
    explicit deferred_operation(int block, const site& where) : block_(block), where_(where) {}
    deferred_operation(const deferred_operation&) = delete;
    deferred_operation& operator=(const deferred_operation&) = delete;
    virtual ~deferred_operation() = default;
    /// Reads shared memory, where that is its source.
    virtual void read() {}
    /// Writes what it has read.
    virtual void land() = 0;

    /// The block in the cluster whose shared memory is concerned.
    [[nodiscard]] int block() const { return block_; }
    /// The line that began it.
    [[nodiscard]] const site& where() const { return where_; }

private:
    int block_;
    site where_;
};

/// A group of asynchronous operations of a thread, which is waited for as a whole.
struct deferred_group {
    std::vector<std::unique_ptr<deferred_operation>> operations;
    bool read = false;  ///< their shared memory
};

class cluster;

struct thread_state {
    cluster* owner;
    int number;  ///< in the cluster; the participant of the clocks
    int block;   ///< in the cluster
    int index;   ///< in the block
    fiber stack;
    vector_clock clock;
    vector_clock fenced;
    vector_clock of_cluster;  ///< what barriers of the cluster told
    const char* waiting_for = nullptr;
    site where{};
    /// Whether more than the rules of shared memory is looked at: accesses are counted, global memory is watched,
    /// tiles have arrived or products have begun.
    bool observed = false;
    /// Has not called wait_dependencies() yet, in a kernel that does so by itself.
    bool is_dependent = false;
    std::vector<pending_copy> open_copies{};
    std::deque<std::vector<pending_copy>> copy_groups{};
    deferred_group open_stores{};
    std::deque<deferred_group> store_groups{};
    /// What atomic operations of this thread tell (see global_memory), and what they found others telling.
    std::shared_ptr<const clocks_of_clusters> told{};
    std::shared_ptr<const clocks_of_clusters> found{};

    [[nodiscard]] int warp() const { return number / warp_size; }
    [[nodiscard]] int lane() const { return number % warp_size; }
    [[nodiscard]] accessor access() const { return {number, &clock, &fenced}; }
    /// To the memory of another block: see device_barriers::arrive_remote.
    [[nodiscard]] accessor access_remote() const { return {number, &clock, &fenced, &of_cluster}; }
};

/// Contents of registers while a product is added to them: a NaN that encodes the line that began it. Arithmetic
/// propagates it, makes it quiet and can change its sign.
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

inline tensor_tiles tiles_of(const tensor_map& map) {
    tensor_tiles tiles;
    std::memcpy(&tiles, map.opaque, sizeof tiles);
    return tiles;
}

/// The offset in a tile of a swizzled offset, and the reverse; zero bytes are for a tile that is not swizzled.
inline std::uint32_t unswizzled(int swizzle_bytes, std::uint32_t offset) {
    return swizzle_bytes == 0 ? offset : exchanged(swizzle_bytes, offset);
}

/// Where byte `byte` of row `row` of a tile lies in shared memory, from the beginning of the tile.
inline std::uint32_t tile_offset(const tensor_tiles& tiles, int row, int byte) {
    return unswizzled(tiles.swizzle_bytes, static_cast<std::uint32_t>(row * tiles.tile_row_bytes() + byte));
}

class tile_layouts {
public:
    struct layout {
        std::uint32_t begin;
        int row_bytes;
        int rows;
        int swizzle_bytes;
        site where;  ///< of the last copy that brought it
    };
    /// 16 bytes of a tile.
    struct chunk {
        const layout* tile;
        int row;
        int byte;
    };

    void reset() {
        layouts_.clear();
        layout_of_.clear();
    }
    /// Records a tile that has arrived in shared memory; `memory` is the size of that in bytes.
    void note(std::size_t memory, std::uint32_t begin, const tensor_tiles& tiles, const site& where) {
        if (layout_of_.empty()) layout_of_.resize(memory / granule_bytes + 1);
        const layout it{begin, tiles.tile_row_bytes(), tiles.tile_rows, tiles.swizzle_bytes, where};
        std::size_t number = 0;
        while (number < layouts_.size() && !same(layouts_[number], it)) ++number;
        if (number == layouts_.size()) layouts_.push_back(it);
        layouts_[number].where = where;
        const std::size_t first = begin / granule_bytes;
        const auto chunks = static_cast<std::size_t>(tiles.tile_bytes()) / granule_bytes;
        for (std::size_t i = 0; i < chunks; ++i) {
            layout_of_[first + i] = static_cast<std::uint32_t>(number + 1);
        }
    }
    /// Whether no tile has come.
    [[nodiscard]] bool empty() const { return layout_of_.empty(); }
    /// A thread has written here.
    void forget(std::uint32_t offset, std::size_t bytes) {
        if (layout_of_.empty()) return;
        for (std::size_t i = offset / granule_bytes; i <= (offset + bytes - 1) / granule_bytes; ++i) {
            layout_of_[i] = 0;
        }
    }
    /// What of which tile lies at an offset, if a copy brought it.
    [[nodiscard]] std::optional<chunk> at(std::uint32_t offset) const {
        if (layout_of_.empty() || layout_of_[offset / granule_bytes] == 0) return std::nullopt;
        const layout& it = layouts_[layout_of_[offset / granule_bytes] - 1];
        const auto place = static_cast<int>(unswizzled(it.swizzle_bytes, offset - it.begin));
        return chunk{&it, place / it.row_bytes, place % it.row_bytes};
    }

private:
    static bool same(const layout& a, const layout& b) {
        return a.begin == b.begin && a.row_bytes == b.row_bytes && a.rows == b.rows &&
               a.swizzle_bytes == b.swizzle_bytes;
    }

    std::vector<layout> layouts_;
    std::vector<std::uint32_t> layout_of_;  ///< by granules: one more than the number, or zero
};

}}  // namespace mp::simt::detail
