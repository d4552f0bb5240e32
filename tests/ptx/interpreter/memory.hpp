// SPDX-License-Identifier: MIT
// Memory of the machine, with what is known of every byte: whether it has been written, and whether a unit that runs
// beside the threads is going to write or to read it.
#pragma once

#include "ordering.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptx {

enum class byte_state : std::uint8_t {
    unwritten = 0,
    written = 1,
    arriving = 2,  ///< a copy has begun that writes it
    leaving = 3,   ///< an asynchronous unit is going to read it
};

enum class space : std::uint8_t { generic, global, shared, local, parameter };

/// Generic addresses have a window in their first byte; those of global memory are the host's.
inline constexpr int window_shift = 56;
inline constexpr std::uint64_t shared_window = std::uint64_t{1} << window_shift;
inline constexpr std::uint64_t local_window = std::uint64_t{2} << window_shift;
inline constexpr std::uint64_t parameter_window = std::uint64_t{3} << window_shift;
/// Addresses in shared memory: the block's own from here on, and of block r of the cluster with r + 1 in the first byte.
inline constexpr std::uint32_t shared_begin = 1024;
inline constexpr int shared_rank_shift = 24;

struct allocation {
    std::uint64_t begin = 0;
    std::size_t size = 0;
    std::unique_ptr<std::byte[]> owned{};
    std::unique_ptr<std::uint8_t[]> states{};
    history accesses{};
    bool is_constant = false;
};

class global_memory {
public:
    std::uint64_t allocate(std::size_t size, bool is_constant = false);
    /// False where nothing has been allocated at the address.
    bool free(std::uint64_t address);
    void free_all();
    /// What has `bytes` bytes at the address, or null.
    allocation* find(std::uint64_t address, std::size_t bytes);
    /// As if `bytes` had been written there by the host.
    void mark_written(std::uint64_t address, std::size_t bytes);
    /// What lies at an address, for a message.
    [[nodiscard]] std::string describe(std::uint64_t address) const;
    [[nodiscard]] std::size_t allocated() const { return allocated_; }
    /// The allocation that was found last, which the next access probably needs, too; may be null.
    [[nodiscard]] allocation* last() const { return last_; }

    std::uint32_t clock = 1;  ///< the latest of all agents that have accessed it (ordering.hpp)

private:
    std::map<std::uint64_t, allocation> allocations_;
    allocation* last_ = nullptr;
    std::size_t allocated_ = 0;
};

/// A barrier object in shared memory.
struct barrier_record {
    std::uint32_t at = 0;              ///< offset
    std::uint32_t initialised_by = 0;  ///< agent
    bool is_fenced = false;            ///< others than threads of the block may know of it
    std::uint32_t unit = 0;            ///< agent of the copies that it counts
    std::uint32_t unit_clock = 0;
    gathering arrived{};  ///< in the phase that goes on
    known completed{};    ///< in the one before
};

struct shared_memory {
    std::vector<std::byte> bytes{};
    std::vector<std::uint8_t> states{};
    history accesses{};
    std::vector<barrier_record> barriers{};

    void resize(std::size_t size) {
        bytes.assign(size, std::byte{0xA5});
        states.assign(size, 0);
        barriers.clear();
    }
};

struct warp;

/// Bytes that may be read or written, and their states.
struct place {
    std::byte* bytes;
    std::uint8_t* states;
    history* accesses = nullptr;  ///< null where no other thread comes
    std::size_t offset = 0;       ///< in that history
    bool is_shared = false;
};

enum class access : std::uint8_t { read, write, update };

/// Finds and checks what an address means; `in` says how it is to be read. Fails by the warp, which names the line.
/// Fails where a lane touches global memory that the kernel before may still be writing.
void check_dependency(const warp& w, int lane);
place locate(warp& w, int lane, space in, std::uint64_t address, std::size_t bytes, access how);
/// Shared memory of the cluster.
place locate_shared(const warp& w, int lane, std::uint64_t address, std::size_t bytes);

}  // namespace ptx
