// SPDX-License-Identifier: MIT
/// \file
/// A cluster of blocks on the host: its threads as fibers, their shared memory, and who waits for what.
#pragma once

#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/simt/host/access_statistics.hpp>
#include <mp/simt/host/clock.hpp>
#include <mp/simt/host/failure_text.hpp>
#include <mp/simt/host/fiber.hpp>
#include <mp/simt/host/global_memory.hpp>
#include <mp/simt/host/scheduler.hpp>
#include <mp/simt/host/shared_memory.hpp>
#include <mp/simt/host/thread_state.hpp>
#include <mp/simt/host/warpgroup_state.hpp>
#include <mp/simt/kernel_error.hpp>
#include <mp/simt/launch_shape.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if !MP_HAS_EXCEPTIONS
#error "mp: the simulated GPU ends a faulty kernel by an exception: compile without -fno-exceptions"
#endif

namespace mp::simt::detail::inline MP_ISA_NAMESPACE {

/// State that all clusters of a launch on the host share.
struct host_settings {
    std::uint64_t seed = 0;
    std::size_t stack_bytes = std::size_t{256} << 10;
    access_statistics* statistics = nullptr;
    std::string_view function = {};   ///< the name of the launch
    bool equal_writes = false;        ///< threads may write the same in no order
    global_memory* global = nullptr;  ///< where global memory is watched
};

/// Runs one cluster of blocks after the other on one thread of the operating system.
class cluster {
public:
    using entry_function = void (*)(const void* kernel, thread_state& thread);

    /// Barrier objects of a cluster whose copies are told apart; with more, some reads too early go
    /// unnoticed.
    static constexpr std::size_t copy_participants = 64;

    cluster(const launch_shape& shape, const host_settings& settings)
        : shape_(shape),
          settings_(settings),
          stacks_(settings.stack_bytes),
          scheduler_(thread_count(), settings.seed) {
        for (int block = 0; block < shape.cluster_blocks; ++block) {
            memories_.emplace_back(shape.shared_bytes);
            barriers_.emplace_back();
            memory_barriers_.emplace_back();
        }
        for (std::size_t i = 0; i < thread_count(); ++i) {
            const int number = static_cast<int>(i);
            threads_.push_back(std::unique_ptr<thread_state>(new thread_state{this,
                                                                              number,
                                                                              number / shape.threads,
                                                                              number % shape.threads,
                                                                              fiber(stacks_),
                                                                              vector_clock(participants()),
                                                                              vector_clock(participants()),
                                                                              nullptr,
                                                                              {},
                                                                              {},
                                                                              {},
                                                                              {},
                                                                              {},
                                                                              {},
                                                                              {}}));
        }
    }
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;

    /// Runs the blocks from `first_block` on. Throws what the kernel throws first, kernel_error included,
    /// after all of its threads have been ended.
    void run(std::ptrdiff_t first_block, std::uint64_t seed, entry_function entry, const void* kernel) {
        first_block_ = first_block;
        entry_ = entry;
        kernel_ = kernel;
        scheduler_ = scheduler(thread_count(), seed);
        reset();
        for (const auto& thread : threads_) {
            thread->stack.start(&cluster::enter, thread.get());
            scheduler_.set_runnable(static_cast<std::size_t>(thread->number));
        }
        while (unfinished_ != 0 && failure_ == nullptr) step();
        if (failure_ == nullptr && !deferred_.empty()) {
            note_fault(-1, "the block has ended while a copy into its shared memory is under way",
                       kernel_violation::unfinished_copy);
        }
        if (settings_.statistics != nullptr) settings_.statistics->end_block();
        if (failure_ != nullptr) {
            cancel();
            std::rethrow_exception(std::exchange(failure_, nullptr));
        }
    }

    // --- for the operations of threads

    [[nodiscard]] const launch_shape& shape() const { return shape_; }
    [[nodiscard]] std::uint64_t seed() const { return settings_.seed; }
    [[nodiscard]] access_statistics* statistics() const { return settings_.statistics; }
    [[nodiscard]] const host_settings& settings() const { return settings_; }
    /// The number of the cluster's first block.
    [[nodiscard]] std::ptrdiff_t first_block() const { return first_block_; }
    [[nodiscard]] std::ptrdiff_t block_number(const thread_state& thread) const {
        return first_block_ + thread.block;
    }
    [[nodiscard]] shared_memory& memory(int block) { return memories_[static_cast<std::size_t>(block)]; }
    [[nodiscard]] shared_memory& memory_of(const thread_state& thread) { return memory(thread.block); }
    [[nodiscard]] thread_state& thread(int number) { return *threads_[static_cast<std::size_t>(number)]; }
    [[nodiscard]] block_barrier& barrier(int block, int id) {
        return barriers_[static_cast<std::size_t>(block)][static_cast<std::size_t>(id)];
    }
    [[nodiscard]] std::vector<memory_barrier_state>& memory_barriers(int block) {
        return memory_barriers_[static_cast<std::size_t>(block)];
    }
    [[nodiscard]] collective_slot& warp_slot(const thread_state& thread) {
        return warp_slots_[static_cast<std::size_t>(thread.warp())];
    }
    [[nodiscard]] collective_slot& warpgroup_slot(const thread_state& thread) {
        return warpgroup_slots_[static_cast<std::size_t>(thread.number / warpgroup_size)];
    }
    [[nodiscard]] warpgroup_state& warpgroup(const thread_state& thread) {
        return warpgroups_[static_cast<std::size_t>(thread.number / warpgroup_size)];
    }
    [[nodiscard]] std::size_t participants() const { return thread_count() + copy_participants; }
    /// Participant under which async copies of a new mbarrier are recorded.
    [[nodiscard]] std::size_t next_copy_participant() {
        return thread_count() + objects_++ % copy_participants;
    }
    /// A new epoch of the copies of a barrier object.
    [[nodiscard]] std::uint32_t next_copy_epoch(std::size_t participant) {
        return ++copy_moments_[participant - thread_count()];
    }
    /// Threads of a block that have not left the kernel.
    [[nodiscard]] int active(int block) const { return active_[static_cast<std::size_t>(block)]; }
    [[nodiscard]] bool fences_in_use() const { return fences_in_use_; }
    void use_fences() { fences_in_use_ = true; }
    void defer(std::unique_ptr<deferred_operation> operation) { deferred_.push_back(std::move(operation)); }

    /// Suspends the thread until it is woken.
    void wait(thread_state& thread, const char* operation, const site& where) {
        if (failure_ != nullptr) return;  // on the way out already
        thread.waiting_for = operation;
        thread.where = where;
        thread.stack.suspend();
        thread.waiting_for = nullptr;
        if (failure_ != nullptr) throw cancelled{};
    }
    void wake(int number) { scheduler_.set_runnable(static_cast<std::size_t>(number)); }

    /// Begins a new epoch of the thread, after the one before was published to others.
    static void next_epoch(thread_state& thread) { ++thread.clock[static_cast<std::size_t>(thread.number)]; }

    /// Throws kernel_error in the name of a thread: "mp::simulated_gpu: block 0, thread 37 (warp 1, lane 5),
    /// tile.hpp:120: <text>".
    [[noreturn]] void fail(const thread_state& thread, const site& where, kernel_violation violation,
                           const std::string& text, std::ptrdiff_t address = -1) const {
        throw kernel_error(violation, block_number(thread), thread.index, address,
                           launch_text() + name_of(thread) + ", " + place_of(where) + ": " + text);
    }

    /// Runs an access to shared memory, and says who did what where when it breaks a rule: "reads 16 bytes at
    /// shared address 4608, which nobody has written".
    template <class Function>
    void check_access(const thread_state& thread, const site& where, const char* verb, std::size_t bytes,
                      std::uint32_t offset, Function access) const {
        try {
            access();
        } catch (const memory_fault& fault) {
            std::string text(verb);
            text.append(" ").append(std::to_string(bytes)).append(" bytes at shared address ");
            text.append(std::to_string(offset)).append(", ").append(fault.text);
            if (fault.other >= 0 && static_cast<std::size_t>(fault.other) < thread_count()) {
                text.append(" (the other is ")
                    .append(name_of(*threads_[static_cast<std::size_t>(fault.other)]))
                    .append(")");
            } else if (fault.other >= 0) {
                text.append(" (the other is an asynchronous copy)");
            }
            fail(thread, where, fault.violation, text, static_cast<std::ptrdiff_t>(fault.offset));
        }
    }

    /// Who accesses global memory.
    [[nodiscard]] global_accessor global_access_of(const thread_state& thread, const site& where) const {
        return {first_block_, thread.number, &thread.clock, where};
    }
    /// The same for global memory: f(watched memory, accessor) where it is watched.
    template <class Function>
    void check_global(const thread_state& thread, const site& where, const char* verb, std::size_t bytes,
                      Function access) const {
        if (settings_.global == nullptr) return;
        try {
            access(*settings_.global, global_access_of(thread, where));
        } catch (const global_fault& fault) {
            std::string text(verb);
            text.append(" ")
                .append(std::to_string(bytes))
                .append(" bytes of global memory")
                .append(fault.text);
            if (fault.other) {
                text.append(" (the other is ").append(name_of(*fault.other)).append(")");
            }
            fail(thread, where, fault.violation, text);
        }
    }

    [[nodiscard]] std::string name_of(const thread_state& thread) const {
        return thread_text(block_number(thread), thread.index);
    }
    [[nodiscard]] std::string name_of(const global_access& it) const {
        const std::size_t number = it.participant;
        if (number >= thread_count()) return "an asynchronous copy";
        const int index = static_cast<int>(number) % shape_.threads;
        const std::ptrdiff_t block = it.cluster + static_cast<int>(number) / shape_.threads;
        return thread_text(block, index) + ", " + place_of(it.where);
    }
    /// "mp::simulated_gpu: name of the launch: "
    [[nodiscard]] std::string launch_text() const {
        return std::string("mp::simulated_gpu: ").append(settings_.function).append(": ");
    }

    /// Lets the threads that wait at a barrier go on, with what all who came there knew.
    void release(block_barrier& it) {
        for (const int number : it.waiting) {
            thread_state& waiting = thread(number);
            waiting.clock.join(it.known);
            if (fences_in_use_) waiting.fenced.join(it.fenced);
            wake(number);
        }
        it.arrived = 0;
        it.expected = 0;
        it.known.reset();
        it.fenced.reset();
        it.waiting.clear();
        it.warps.clear();
    }

    /// The barrier of all threads of the cluster.
    [[nodiscard]] block_barrier& cluster_barrier() { return cluster_barrier_; }
    [[nodiscard]] int active_in_cluster() const {
        int sum = 0;
        for (const int count : active_) sum += count;
        return sum;
    }

    /// The barrier object at an offset, which has to be one.
    [[nodiscard]] memory_barrier_state& memory_barrier_at(int block, std::uint32_t offset) {
        auto& objects = memory_barriers(block);
        return *std::find_if(objects.rbegin(), objects.rend(),
                             [offset](const memory_barrier_state& it) { return it.offset == offset; });
    }

    /// Ends the phase of a barrier object if everybody and every byte has arrived.
    void complete_phase(memory_barrier_state& it) {
        if (it.pending != 0 || it.bytes != 0) return;
        it.completed = it.known;
        it.completed_fenced = it.known_fenced;
        it.pending = it.expected;
        it.parity = !it.parity;
        for (const int number : it.waiting) wake(number);
        it.waiting.clear();
    }

private:
    [[nodiscard]] std::size_t thread_count() const {
        return static_cast<std::size_t>(shape_.threads) * static_cast<std::size_t>(shape_.cluster_blocks);
    }

    static void enter(void* argument) {
        thread_state& thread = *static_cast<thread_state*>(argument);
        cluster& owner = *thread.owner;
        try {
            owner.entry_(owner.kernel_, thread);
        } catch (const cancelled&) {
            // The failure is known.
        } catch (...) {
            if (owner.failure_ == nullptr) owner.failure_ = std::current_exception();
        }
    }

    void reset() {
        failure_ = nullptr;
        deferred_.clear();
        fences_in_use_ = false;
        objects_ = 0;
        copy_moments_.fill(0);
        unfinished_ = thread_count();
        active_.assign(memories_.size(), shape_.threads);
        warp_slots_.assign(thread_count() / warp_size, collective_slot(warp_size));
        warpgroup_slots_.assign(thread_count() / warpgroup_size, collective_slot(warpgroup_size));
        warpgroups_.assign(thread_count() / warpgroup_size, warpgroup_state{});
        left_.assign(thread_count() / warp_size, 0);
        for (shared_memory& memory : memories_) memory.reset();
        for (auto& barriers : barriers_) {
            for (block_barrier& it : barriers) {
                it = {0, 0, vector_clock(participants()), vector_clock(participants()), {}, {}};
            }
        }
        cluster_barrier_ = {0, 0, vector_clock(participants()), vector_clock(participants()), {}, {}};
        for (auto& objects : memory_barriers_) objects.clear();
        for (const auto& thread : threads_) {
            thread->clock.reset();
            thread->fenced.reset();
            next_epoch(*thread);
            thread->waiting_for = nullptr;
            thread->open_copies.clear();
            thread->copy_groups.clear();
            thread->open_stores.clear();
            thread->store_groups.clear();
            thread->told.reset();
            thread->found.reset();
        }
    }

    void step() {
        if (!deferred_.empty() && scheduler_.chance(16)) land_one();
        const std::ptrdiff_t number = scheduler_.take();
        if (number < 0) {
            if (deferred_.empty()) {
                note_fault(-1, deadlock_text(threads_, first_block_), kernel_violation::deadlock);
            } else {
                land_one();
            }
            return;
        }
        thread_state& next = *threads_[static_cast<std::size_t>(number)];
        try {
            next.stack.resume();
        } catch (...) {  // no memory for a stack
            failure_ = std::current_exception();
            return;
        }
        if (next.stack.finished()) leave(next);
    }

    void land_one() {
        const std::size_t i = scheduler_.choose(deferred_.size());
        const std::unique_ptr<deferred_operation> operation = std::move(deferred_[i]);
        deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(i));
        try {
            operation->land();
        } catch (...) {
            failure_ = std::current_exception();
        }
    }

    /// A thread has left the kernel. Barriers for all threads do not wait for it.
    void leave(thread_state& thread) {
        --unfinished_;
        --active_[static_cast<std::size_t>(thread.block)];
        left_[static_cast<std::size_t>(thread.warp())] |= std::uint32_t{1} << thread.lane();
        for (block_barrier& it : barriers_[static_cast<std::size_t>(thread.block)]) {
            if (it.expected < 0 && it.arrived == active(thread.block)) release(it);
        }
        if (cluster_barrier_.expected < 0 && cluster_barrier_.arrived == active_in_cluster()) {
            release(cluster_barrier_);
        }
    }

    void note_fault(std::ptrdiff_t address, const std::string& text, kernel_violation violation) {
        failure_ = std::make_exception_ptr(
            kernel_error(violation, first_block_, -1, address,
                         launch_text() + "block " + std::to_string(first_block_) + ": " + text));
    }

    /// Takes down the stacks of all threads that are left.
    void cancel() {
        for (const auto& thread : threads_) {
            if (thread->stack.finished()) continue;
            if (thread->waiting_for == nullptr) continue;  // has not begun: nothing is on its stack
            thread->stack.resume();
        }
        deferred_.clear();
    }

public:
    /// Lanes of a warp that have left the kernel.
    [[nodiscard]] std::uint32_t left(const thread_state& thread) const {
        return left_[static_cast<std::size_t>(thread.warp())];
    }

private:
    launch_shape shape_;
    host_settings settings_;
    stack_pool stacks_;
    scheduler scheduler_;
    std::ptrdiff_t first_block_ = 0;
    entry_function entry_ = nullptr;
    const void* kernel_ = nullptr;
    std::vector<std::unique_ptr<thread_state>> threads_;
    std::vector<shared_memory> memories_;
    std::vector<std::array<block_barrier, block_barriers>> barriers_;
    block_barrier cluster_barrier_;
    std::vector<std::vector<memory_barrier_state>> memory_barriers_;
    std::vector<collective_slot> warp_slots_;
    std::vector<collective_slot> warpgroup_slots_;
    std::vector<warpgroup_state> warpgroups_;
    std::vector<std::uint32_t> left_;
    std::vector<int> active_;
    std::deque<std::unique_ptr<deferred_operation>> deferred_;
    std::array<std::uint32_t, copy_participants> copy_moments_ = {};
    std::size_t objects_ = 0;
    std::size_t unfinished_ = 0;
    bool fences_in_use_ = false;
    std::exception_ptr failure_;
};

}  // namespace mp::simt::detail::inline MP_ISA_NAMESPACE
