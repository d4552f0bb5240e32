// SPDX-License-Identifier: MIT
/// \file
/// The executor that runs GPU kernels on the host, and its checker of global memory.
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/tensor_core/arch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt {

/// Checks accesses to global memory on the simulated GPU, at some cost of time: pass it to an executor, and launch.
///
///  - Two accesses to the same bytes by different threads, of which one writes, are a race if nothing orders them: threads
///    of a block, of a cluster, and of different blocks. Barriers order the threads that arrive there; a fence_device()
///    before an atomic operation orders with an atomic operation at the same address that comes later and a
///    fence_device() after it; the end of a kernel orders everything.
///  - Once memory has been added, threads must access no other memory, and never memory that is added as forbidden.
///  - Memory that is added as unwritten must be written before it is read. Memory that the library allocates for
///    the executor (workspaces, tensors) is added so automatically, and its padding must not be accessed.
///
///     mp::simt::memory_checker checker;
///     checker.add(std::span(from), "from");
///     checker.add_unwritten(std::span(to), "to");
///     launch("mine", mp::simulated_gpu<mp::arch::sm_80>{.checker = &checker}, {.blocks = 4}, my_kernel{...});
///
/// Not synchronised: for executors with one thread. The last 16 readers of every 16 bytes are recorded.
class memory_checker {
public:
    /// Adds memory that holds values.
    template <class Value, std::size_t Extent>
    void add(std::span<Value, Extent> memory, std::string name = {}) {
        ranges_->add(memory.data(), memory.size_bytes(), std::move(name), true);
        ranges_->close();
    }
    /// Adds memory that must be written before it is read.
    template <class Value, std::size_t Extent>
    void add_unwritten(std::span<Value, Extent> memory, std::string name = {}) {
        ranges_->add(memory.data(), memory.size_bytes(), std::move(name), false);
        ranges_->close();
    }
    /// Marks memory that no thread may access, such as the gaps between the rows of a matrix. Other memory stays accessible.
    template <class Value, std::size_t Extent>
    void add_forbidden(std::span<Value, Extent> memory, std::string name = {}) {
        ranges_->add(memory.data(), memory.size_bytes(), std::move(name), true, true);
    }
    /// Records that the host has written here.
    void note_written(const void* begin, std::size_t bytes) { ranges_->note_written(begin, bytes); }
    /// Removes memory that was added.
    void remove(const void* begin) noexcept { ranges_->remove(begin); }

    /// For the host backend: `owner` with memory at `begin` that was just allocated; it is forgotten
    /// with the result.
    [[nodiscard]] std::shared_ptr<void> watched(std::shared_ptr<void> owner, void* begin, std::size_t bytes) {
        constexpr int poison = 0xFF;  // NaN in every format that has one
        std::memset(begin, poison, bytes);
        ranges_->add(begin, bytes, "memory of the executor", false);
        return {begin, [owner = std::move(owner), ranges = ranges_](void* memory) noexcept {
                    ranges->remove(memory);
                }};
    }
    /// For the host backend: what is wrong about an access, as it follows "writes 4 bytes of global memory",
    /// or nothing.
    [[nodiscard]] std::string outside(const void* begin, std::size_t bytes) const {
        return ranges_->outside(begin, bytes);
    }
    /// For the host backend: whether any of these bytes is unwritten.
    [[nodiscard]] bool is_unwritten(const void* begin, std::size_t bytes) const {
        return ranges_->is_unwritten(begin, bytes);
    }
    /// For the host backend: where an address is: `, at byte 12 of "c",`.
    [[nodiscard]] std::string place_of(const void* begin) const { return ranges_->place_of(begin); }

private:
    static std::uintptr_t address_of(const void* at) { return reinterpret_cast<std::uintptr_t>(at); }

    struct range {
        std::uintptr_t end;
        std::string name;
        std::vector<unsigned char> written;  ///< 1 for bytes that have been written; empty where all are
        bool is_forbidden;

        [[nodiscard]] std::string text(std::uintptr_t begin) const {
            return (name.empty() ? "a memory" : "\"" + name + "\"") + " (" + std::to_string(end - begin) +
                   " bytes)";
        }
    };

    class known_ranges {
    public:
        void add(const void* memory, std::size_t bytes, std::string name, bool written,
                 bool is_forbidden = false) {
            if (bytes == 0) return;
            const std::uintptr_t begin = address_of(memory);
            // What was here before is gone.
            auto at = containing(begin);
            last_bytes_ = 0;
            if (at == all_.end()) at = all_.lower_bound(begin);
            while (at != all_.end() && at->first < begin + bytes) at = all_.erase(at);
            all_.emplace(begin,
                         range{begin + bytes, std::move(name),
                               std::vector<unsigned char>(written ? std::size_t{0} : bytes), is_forbidden});
        }
        /// Rejects accesses outside from now on.
        void close() { closed_ = true; }
        void remove(const void* memory) noexcept {
            all_.erase(address_of(memory));
            last_bytes_ = 0;
        }
        void note_written(const void* memory, std::size_t bytes) {
            const std::uintptr_t begin = address_of(memory);
            const auto at = containing(begin);
            if (at == all_.end() || at->second.written.empty()) return;
            std::memset(at->second.written.data() + (begin - at->first), 1,
                        (std::min<std::size_t>)(bytes, at->second.end - begin));
        }
        [[nodiscard]] bool is_unwritten(const void* memory, std::size_t bytes) const {
            const std::uintptr_t begin = address_of(memory);
            const auto at = containing(begin);
            if (at == all_.end() || at->second.written.empty()) return false;
            return std::memchr(at->second.written.data() + (begin - at->first), 0, bytes) != nullptr;
        }
        [[nodiscard]] std::string outside(const void* memory, std::size_t bytes) const {
            const std::uintptr_t begin = address_of(memory);
            const auto at = containing(begin);
            if (at != all_.end()) {
                if (at->second.is_forbidden) return text_of_forbidden(at);
                if (begin + bytes <= at->second.end) return {};
                return "that reach beyond the end of " + at->second.text(at->first);
            }
            const auto next = all_.upper_bound(begin);
            if (next != all_.end() && next->second.is_forbidden && begin + bytes > next->first) {
                return text_of_forbidden(next);
            }
            if (!closed_ && !is_padding(begin)) return {};
            const bool has_before = next != all_.begin();
            const std::uintptr_t behind =
                has_before ? begin - std::prev(next)->second.end : ~std::uintptr_t{};
            const std::uintptr_t before = next != all_.end() ? next->first - begin : ~std::uintptr_t{};
            constexpr std::uintptr_t neighbourhood = 1 << 20;
            if ((std::min)(behind, before) > neighbourhood) {
                return "in none of the memories that the checker knows";
            }
            if (behind <= before) {
                const auto last = std::prev(next);
                return std::to_string(behind) + " bytes behind the end of " + last->second.text(last->first);
            }
            return std::to_string(before) + " bytes before the beginning of " +
                   next->second.text(next->first);
        }
        [[nodiscard]] std::string place_of(const void* memory) const {
            const std::uintptr_t begin = address_of(memory);
            const auto at = containing(begin);
            if (at == all_.end()) return {};
            return ", at byte " + std::to_string(begin - at->first) + " of " + at->second.text(at->first) +
                   ",";
        }

    private:
        using map = std::map<std::uintptr_t, range>;

        [[nodiscard]] map::iterator containing(std::uintptr_t address) {
            if (address - last_begin_ < last_bytes_) return last_;
            const auto next = all_.upper_bound(address);
            if (next == all_.begin() || address >= std::prev(next)->second.end) return all_.end();
            last_ = std::prev(next);
            last_begin_ = last_->first;
            last_bytes_ = last_->second.end - last_begin_;
            return last_;
        }
        [[nodiscard]] map::const_iterator containing(std::uintptr_t address) const {
            return const_cast<known_ranges*>(this)->containing(address);
        }

        [[nodiscard]] static std::string text_of_forbidden(map::const_iterator it) {
            return "in " + it->second.text(it->first) + ", which no thread may touch";
        }
        /// Whether it is between the end of a memory and a multiple of what allocations are multiples of.
        [[nodiscard]] bool is_padding(std::uintptr_t address) const {
            constexpr std::uintptr_t line = 256;
            const auto next = all_.upper_bound(address);
            return next != all_.begin() && !std::prev(next)->second.is_forbidden &&
                   address < (std::prev(next)->second.end + line - 1) / line * line;
        }

        map all_;
        map::iterator last_;  ///< the one that was asked for last, if last_bytes_ says that there is one
        std::uintptr_t last_begin_ = 0;
        std::uintptr_t last_bytes_ = 0;
        bool closed_ = false;
    };

    std::shared_ptr<known_ranges> ranges_ = std::make_shared<known_ranges>();
};

}  // namespace mp::simt

namespace mp {

class workspace;

namespace simt {
class access_statistics;
class launch_recorder;
class memory_checker;
}

/// Runs the very kernels that mp::cuda_stream runs, on the host: each thread of the GPU is a fiber, tensor
/// cores follow the exact model of the architecture (mp::block_fma), and whatever a device leaves undefined
/// ends in an mp::kernel_error. Made for tests of kernels, yours too (mp::simt::launch); it is some thousand
/// times slower than a GPU. Who wants the bits of a GPU's matrix product quickly takes mp::emulated.
///
///     mp::gemm(mp::simulated_gpu<mp::arch::sm_90>{.seed = 7}, 1, a, b, 0, c);
///
/// Detected are: lanes of a warp at different operations; barriers at which not all threads arrive; shared
/// memory that is read before anybody wrote it, before the copy into it was waited for, or with nothing
/// between the threads that orders the accesses (whatever order they ran in); addresses out of bounds or
/// misaligned; missing fences of asynchronous units. Global memory is ordinary memory of the program:
/// AddressSanitizer watches it, and a simt::memory_checker finds races, also between blocks, and what lies
/// outside. What is not noticed: how fast it would be.
template <arch Arch>
struct simulated_gpu {
    static constexpr arch architecture = Arch;

    /// Seed of the schedule: 0 runs blocks, warps and lanes in order, any other number selects another order.
    std::uint64_t seed = 0;
    /// Threads of the host, each of which runs blocks. The results of kernels that add up in global memory by
    /// floating-point atomics may depend on it.
    int threads = 1;
    /// Counts bank conflicts and sectors if it is not null. Requires threads == 1.
    simt::access_statistics* statistics = nullptr;
    /// Multiprocessors of the GPU, by which algorithms divide their work; zero for the largest device of the
    /// architecture. It decides which kernel or how many blocks are taken, not how the host runs them.
    int multiprocessors = 0;
    /// Stack of each GPU thread.
    std::size_t stack_bytes = std::size_t{256} << 10;
    /// Workspace memory of ops, as on a device. See <mp/workspace.hpp>.
    mp::workspace* workspace = nullptr;
    /// With which mp::replayed_step captures steps; null where nothing is captured.
    simt::launch_recorder* recorder = nullptr;
    /// What watches global memory; null for nothing. Only with one thread. See memory_checker.
    simt::memory_checker* checker = nullptr;
    /// Whether two threads may write the same value to the same place in no order. (CUDA's memory model calls
    /// that a race, too; devices then have the value.)
    bool equal_writes = false;
};

}  // namespace mp
