// SPDX-License-Identifier: MIT
/// \file
/// State of a thread on the host, of barriers, and of asynchronous operations in flight.
#pragma once

#include <mp/device/simt/host/access_history.hpp>
#include <mp/device/simt/host/fiber.hpp>
#include <mp/device/simt/host/shared_memory.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
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

/// Who has to come to an operation of a warp.
enum class participation : unsigned char {
    all,
    those_left,  ///< all that have not left the kernel
};

/// An operation that all threads of a warp or warpgroup carry out together: the last one that comes does it
/// for all.
struct collective_slot {
    const char* operation = nullptr;
    site where;
    int first = 0;  ///< the thread that came first
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
    std::vector<std::pair<int, site>> warps;  ///< where the lanes of a warp came

    /// Another thread comes, who knows this.
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
    /// Nobody has come.
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
    std::size_t participant = 0;  ///< as whom copies that arrive here write
    vector_clock known;           ///< by those who arrived in this phase
    vector_clock known_fenced;
    vector_clock known_ordinary;  ///< by arrive_remote_ordinary(); empty where nobody has so arrived
    vector_clock completed;       ///< the same of the phase before
    vector_clock completed_fenced;
    vector_clock completed_ordinary;
    std::vector<int> waiting;
};

/// Something that an asynchronous unit does at some time after it was issued.
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
    site where;
    /// Whether more than the rules of shared memory is looked at: accesses are counted, global memory is watched,
    /// tiles have arrived or products have begun.
    bool observed = false;
    /// Has not called wait_dependencies() yet, in a kernel that does so by itself.
    bool is_dependent = false;
    std::vector<pending_copy> open_copies;
    std::deque<std::vector<pending_copy>> copy_groups;
    deferred_group open_stores;
    std::deque<deferred_group> store_groups;
    /// What atomic operations of this thread tell (see global_memory), and what they found others telling.
    std::shared_ptr<const clocks_of_clusters> told;
    std::shared_ptr<const clocks_of_clusters> found;

    [[nodiscard]] int warp() const { return number / warp_size; }
    [[nodiscard]] int lane() const { return number % warp_size; }
    [[nodiscard]] accessor access() const { return {number, &clock, &fenced}; }
    /// To the memory of another block: see device_barriers::arrive_remote.
    [[nodiscard]] accessor access_remote() const { return {number, &clock, &fenced, &of_cluster}; }
};

}}  // namespace mp::simt::detail
