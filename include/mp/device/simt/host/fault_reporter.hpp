// SPDX-License-Identifier: MIT
/// \file
/// The kernel_error of a cluster on the host, and its text: names of threads, places and broken rules.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/host/access_statistics.hpp>
#include <mp/device/simt/host/global_memory.hpp>
#include <mp/device/simt/host/shared_memory.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// "block 0, thread 37 (warp 1, lane 5)"
inline std::string thread_text(std::ptrdiff_t block, int index) {
    std::string text = "block " + std::to_string(block);
    text.append(", thread ").append(std::to_string(index)).append(" (warp ");
    text.append(std::to_string(index / warp_size)).append(", lane ");
    return text.append(std::to_string(index % warp_size)).append(")");
}

/// Describes where the threads of a cluster wait; `first_block` is the number of its first block.
inline std::string deadlock_text(const std::vector<std::unique_ptr<thread_state>>& threads,
                                 std::ptrdiff_t first_block) {
    std::string text = "no thread can go on";
    std::vector<bool> told(threads.size(), false);
    std::size_t gone = 0;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        const thread_state& first = *threads[i];
        if (first.stack.finished()) ++gone;
        if (told[i] || first.stack.finished()) continue;
        std::size_t count = 0;
        for (std::size_t j = i; j < threads.size(); ++j) {
            const thread_state& other = *threads[j];
            if (other.stack.finished() || other.block != first.block ||
                other.waiting_for != first.waiting_for || !same_site(other.where, first.where)) {
                continue;
            }
            told[j] = true;
            ++count;
        }
        text.append("; ").append(thread_text(first_block + first.block, first.index));
        if (count > 1) text.append(" and ").append(std::to_string(count - 1)).append(" more");
        text.append(count > 1 ? " wait in " : " waits in ").append(first.waiting_for).append(" at ");
        text.append(place_of(first.where));
    }
    if (gone != 0) text.append("; ").append(std::to_string(gone)).append(" have left the kernel");
    return text;
}

}}  // namespace mp::simt::detail

#if !MP_HAS_EXCEPTIONS
#error "mp: the simulated GPU ends a faulty kernel by an exception: compile without -fno-exceptions"
#endif

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// State that all clusters of a launch on the host share.
struct host_settings {
    std::uint64_t seed = 0;
    std::size_t stack_bytes = std::size_t{256} << 10;
    access_statistics* statistics = nullptr;
    std::string_view function = {};   ///< the name of the launch
    bool equal_writes = false;        ///< threads may write the same in no order
    int registers = 0;                ///< of each thread at its beginning, for setmaxnreg
    global_memory* global = nullptr;  ///< where global memory is watched
};

class fault_reporter {
public:
    fault_reporter(const launch_shape& shape, const host_settings& settings)
        : shape_(shape), settings_(settings) {}

    [[nodiscard]] const launch_shape& shape() const { return shape_; }
    [[nodiscard]] const host_settings& settings() const { return settings_; }
    /// Threads of the cluster.
    [[nodiscard]] std::size_t thread_count() const {
        return static_cast<std::size_t>(shape_.threads) * static_cast<std::size_t>(shape_.cluster_blocks);
    }
    /// The number of the cluster's first block.
    [[nodiscard]] std::ptrdiff_t first_block() const { return first_block_; }
    [[nodiscard]] std::ptrdiff_t block_number(const thread_state& thread) const {
        return first_block_ + thread.block;
    }

    /// "mp::simulated_gpu: mine: block 0, thread 37 (warp 1, lane 5), tile.hpp:120: <text>"
    [[nodiscard]] kernel_error fault(const thread_state& thread, const site& where,
                                     kernel_violation violation, const std::string& text,
                                     std::ptrdiff_t address = -1) const {
        return {violation, block_number(thread), thread.index, address,
                launch_text() + name_of(thread) + ", " + place_of(where) + ": " + text};
    }
    /// Throws it.
    [[noreturn]] void fail(const thread_state& thread, const site& where, kernel_violation violation,
                           const std::string& text, std::ptrdiff_t address = -1) const {
        throw fault(thread, where, violation, text, address);
    }
    /// A fault of no single thread.
    [[nodiscard]] kernel_error fault_of_block(int block, kernel_violation violation,
                                              const std::string& text) const {
        const std::ptrdiff_t number = first_block_ + block;
        return {violation, number, -1, -1, launch_text() + "block " + std::to_string(number) + ": " + text};
    }

    /// Runs an access to shared memory, and reports thread, access and place where it breaks a rule: "reads 16 bytes at
    /// shared address 4608, which nobody has written".
    template <class Function>
    void check_access(const thread_state& thread, const site& where, const char* verb, std::size_t bytes,
                      std::uint32_t offset, Function access) const {
        try {
            access();
        } catch (const memory_fault& it) {
            std::string text(verb);
            text.append(" ").append(std::to_string(bytes)).append(" bytes at shared address ");
            text.append(std::to_string(offset)).append(", ").append(it.text);
            if (it.other >= 0) {
                text.append(" (the other is ").append(name_of(first_block_, it.other)).append(")");
            }
            fail(thread, where, it.violation, text, static_cast<std::ptrdiff_t>(it.offset));
        }
    }

    /// Returns the accessor of global memory for a thread.
    [[nodiscard]] global_accessor global_access_of(const thread_state& thread, const site& where) const {
        return {first_block_, thread.number, &thread.clock, where};
    }
    /// Runs access(watched memory, accessor) where global memory is watched, and reports a broken rule.
    template <class Function>
    void check_global(const thread_state& thread, const site& where, const char* verb, std::size_t bytes,
                      Function access) const {
        if (settings_.global == nullptr) return;
        try {
            access(*settings_.global, global_access_of(thread, where));
        } catch (const global_fault& it) {
            std::string text(verb);
            text.append(" ").append(std::to_string(bytes)).append(" bytes of global memory").append(it.text);
            if (it.other) {
                text.append(" (the other is ").append(name_of(it.other->cluster, it.other->participant));
                text.append(", ").append(place_of(it.other->where)).append(")");
            }
            fail(thread, where, it.violation, text);
        }
    }

    /// "block 0, thread 37 (warp 1, lane 5)"
    [[nodiscard]] std::string name_of(const thread_state& thread) const {
        return thread_text(block_number(thread), thread.index);
    }
    /// The same of a participant of the clocks of a cluster.
    [[nodiscard]] std::string name_of(std::ptrdiff_t cluster, int participant) const {
        if (static_cast<std::size_t>(participant) >= thread_count()) return "an asynchronous copy";
        return thread_text(cluster + participant / shape_.threads, participant % shape_.threads);
    }

protected:
    void begin_at(std::ptrdiff_t first_block) { first_block_ = first_block; }

private:
    [[nodiscard]] std::string launch_text() const {
        return std::string("mp::simulated_gpu: ").append(settings_.function).append(": ");
    }

    launch_shape shape_;
    host_settings settings_;
    std::ptrdiff_t first_block_ = 0;
};

}}  // namespace mp::simt::detail
