// SPDX-License-Identifier: MIT
/// \file
/// A cluster of blocks on the host: its threads as fibers, their scheduler, their shared memory, barriers, and the
/// operations that must have completed when a thread or a block leaves the kernel.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/simt/host/access_statistics.hpp>
#include <mp/device/simt/host/fault_reporter.hpp>
#include <mp/device/simt/host/fiber.hpp>
#include <mp/device/simt/host/shared_memory.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Completes the pending stores of tiles, which can no longer be waited for: those whose shared memory has been read.
inline void end_stores(const fault_reporter& report, thread_state& thread) {
    if (!thread.open_stores.operations.empty()) {
        report.fail(thread, thread.open_stores.operations.front()->where(), kernel_violation::unfinished_copy,
                    "begins to store a tile, and leaves the kernel without commit_stores()");
    }
    if (thread.store_groups.empty()) return;
    for (deferred_group& group : thread.store_groups) {
        if (!group.operations.empty() && !group.read) {
            report.fail(
                thread, group.operations.front()->where(), kernel_violation::unfinished_copy,
                "begins to store a tile, and leaves the kernel without waiting until shared memory has "
                "been read");
        }
        for (const auto& store : group.operations) store->land();
    }
    thread.store_groups.clear();
}

/// Reports products of its warpgroup whose sums the thread has not waited for.
inline void check_products(const fault_reporter& report, const thread_state& thread,
                           const warpgroup_state& group) {
    const sums_in_flight* const sums =
        group.sums_of_thread(static_cast<std::size_t>(thread.number % warpgroup_size));
    if (sums == nullptr) return;
    report.fail(thread, sums->where, kernel_violation::unfinished_copy,
                sums->last_group < group.committed
                    ? "begins a product of a warpgroup, and leaves the kernel without wait_products() for it"
                    : "begins a product of a warpgroup, and leaves the kernel without commit_products()");
}

/// Reports a thread that ends without wait_dependencies(): the next grid could begin before the grid before this one has
/// ended.
inline void check_has_waited(const fault_reporter& report, const thread_state& thread) {
    if (!thread.is_dependent) return;
    throw report.fault_of_block(
        thread.block, kernel_violation::race,
        "thread " + std::to_string(thread.index) + " leaves the kernel without wait_dependencies()");
}

/// Operations under way, in the order in which they began.
using deferred_operations = std::deque<std::unique_ptr<deferred_operation>>;

/// Other blocks of the cluster arrive at a block's barrier objects, and asynchronous units write into its
/// shared memory, which is gone when its last thread leaves the kernel. So each of these accesses has to have
/// happened before some thread of the block left, whatever order they ran in this time.
class cluster_exits {
public:
    struct access {
        std::size_t participant;
        std::uint32_t epoch;
        site where;
    };

    void reset(std::size_t blocks, std::size_t participants) {
        in_use_ = false;
        blocks_ = blocks;
        participants_ = participants;
    }
    /// An access to the memory of a block, by another block or an asynchronous unit.
    void note(int block, const access& it) {
        if (!in_use_) {
            in_use_ = true;
            accesses_.assign(blocks_, {});
            known_.assign(blocks_, vector_clock(participants_));
        }
        std::vector<access>& list = accesses_[static_cast<std::size_t>(block)];
        for (access& old : list) {
            if (old.participant != it.participant) continue;
            old = it;
            return;
        }
        list.push_back(it);
    }
    /// Records that a thread leaves the kernel. (The clock of one that left before the first access knows none.)
    void leave(const thread_state& thread) {
        if (in_use_) known_[static_cast<std::size_t>(thread.block)].join(thread.clock);
    }
    /// Checks that nothing can access the memory of a block any more, all of whose threads have left.
    void check(const fault_reporter& report, int block, const deferred_operations& deferred) const {
        for (const auto& operation : deferred) {
            if (operation->block() != block) continue;
            throw report.fault_of_block(
                block, kernel_violation::unfinished_copy,
                "the block has ended while a copy into its shared memory is under way (" +
                    place_of(operation->where()) + ")");
        }
        if (!in_use_) return;
        for (const access& it : accesses_[static_cast<std::size_t>(block)]) {
            if (it.epoch <= known_[static_cast<std::size_t>(block)][it.participant]) continue;
            if (it.participant >= report.thread_count()) {
                throw report.fault_of_block(
                    block, kernel_violation::unfinished_copy,
                    "the block has ended without having waited for a copy into its shared memory (" +
                        place_of(it.where) + ")");
            }
            throw report.fault_of_block(
                block, kernel_violation::early_exit,
                "the block has ended, and nothing made it stay until " +
                    report.name_of(report.first_block(), static_cast<int>(it.participant)) +
                    " had reached into its shared memory (" + place_of(it.where) + ")");
        }
    }

private:
    bool in_use_ = false;
    std::size_t blocks_ = 0;
    std::size_t participants_ = 0;
    std::vector<std::vector<access>> accesses_;
    std::vector<vector_clock> known_;
};

/// Random numbers for schedules (splitmix64: S. Vigna's mixing of a counter).
class schedule_random {
public:
    explicit schedule_random(std::uint64_t seed) : state_(seed * 0x9E37'79B9'7F4A'7C15U + 1) {}

    std::uint64_t operator()() {
        std::uint64_t x = state_ += 0x9E37'79B9'7F4A'7C15U;
        x = (x ^ (x >> 30)) * 0xBF58'476D'1CE4'E5B9U;
        x = (x ^ (x >> 27)) * 0x94D0'49BB'1331'11EBU;
        return x ^ (x >> 31);
    }
    /// A number below `count`, which is small.
    std::size_t below(std::size_t count) { return mp::detail::as<std::size_t>((*this)() % count); }

private:
    std::uint64_t state_;
};

/// The runnable threads, and the choice of the next one. With seed 0 warps and lanes take turns in order. Any
/// other seed draws: how likely it is that the warp that ran last runs on (from never to nearly always, so
/// that warps keep step in some schedules and run far ahead of each other in others), and then warp and lane
/// each time.
class scheduler {
public:
    scheduler(std::size_t threads, std::uint64_t seed)
        : random_(seed), ordered_(seed == 0), runnable_(threads / warp_size, 0) {
        constexpr unsigned stay_of_256[] = {0, 128, 240, 255};
        stay_ = stay_of_256[random_.below(4)];
    }

    void set_runnable(std::size_t thread) {
        runnable_[thread / warp_size] |= std::uint32_t{1} << (thread % warp_size);
    }

    /// Takes one runnable thread out; -1 if there is none.
    [[nodiscard]] std::ptrdiff_t take() {
        const std::size_t warps = runnable_.size();
        std::size_t warp = last_;
        if (ordered_ || runnable_[warp] == 0 || random_.below(256) >= stay_) {
            const std::size_t begin = ordered_ ? last_ : random_.below(warps);
            std::size_t tried = 0;
            for (warp = begin; tried < warps && runnable_[warp] == 0; ++tried) warp = (warp + 1) % warps;
            if (tried == warps) return -1;
        }
        last_ = warp;
        const std::uint32_t mask = runnable_[warp];
        const std::size_t from = ordered_ ? 0 : random_.below(warp_size);
        std::size_t lane = from;
        while ((mask >> lane & 1U) == 0) lane = (lane + 1) % warp_size;
        runnable_[warp] &= ~(std::uint32_t{1} << lane);
        return static_cast<std::ptrdiff_t>(warp * warp_size + lane);
    }

    /// Whether an event of unspecified time happens now: with a probability of 1 / `odds`, and never where the order is
    /// fixed.
    [[nodiscard]] bool chance(std::size_t odds) { return !ordered_ && random_.below(odds) == 0; }
    /// One of `count`.
    [[nodiscard]] std::size_t choose(std::size_t count) { return ordered_ ? 0 : random_.below(count); }

private:
    schedule_random random_;
    bool ordered_;
    unsigned stay_ = 0;
    std::size_t last_ = 0;
    std::vector<std::uint32_t> runnable_;
};

/// Runs one cluster of blocks after the other on one thread of the operating system.
class cluster : public fault_reporter {
public:
    using entry_function = void (*)(const void* kernel, thread_state& thread);

    /// Barrier objects of a cluster whose copies are told apart; with more, some reads too early go
    /// unnoticed.
    static constexpr std::size_t copy_participants = 64;

    cluster(const launch_shape& shape, const host_settings& settings)
        : fault_reporter(shape, settings),
          stacks_(settings.stack_bytes),
          scheduler_(thread_count(), settings.seed),
          warp_slots_(thread_count() / warp_size, collective_slot(warp_size)),
          warpgroup_slots_(thread_count() / warpgroup_size, collective_slot(warpgroup_size)),
          warpgroups_(thread_count() / warpgroup_size) {
        const auto blocks = static_cast<std::size_t>(shape.cluster_blocks);
        for (std::size_t block = 0; block < blocks; ++block) memories_.emplace_back(shape.shared_bytes);
        barriers_.resize(blocks);
        memory_barriers_.resize(blocks);
        layouts_.resize(blocks);
        registers_.resize(blocks);
        const vector_clock clock(participants());
        for (int number = 0; number < static_cast<int>(thread_count()); ++number) {
            threads_.push_back(std::unique_ptr<thread_state>(
                new thread_state{this, number, number / shape.threads, number % shape.threads, fiber(stacks_),
                                 clock, clock, clock}));
        }
    }
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;

    /// Runs the blocks from `first_block` on. Throws what the kernel throws first, kernel_error included,
    /// after all of its threads have been ended.
    void run(std::ptrdiff_t first_block, std::uint64_t seed, entry_function entry, const void* kernel) {
        begin_at(first_block);
        entry_ = entry;
        kernel_ = kernel;
        scheduler_ = scheduler(thread_count(), seed);
        reset();
        for (const auto& thread : threads_) {
            thread->stack.start(&cluster::enter, thread.get());
            scheduler_.set_runnable(static_cast<std::size_t>(thread->number));
        }
        while (unfinished_ != 0 && failure_ == nullptr) step();
        if (settings().statistics != nullptr) settings().statistics->end_block();
        if (failure_ != nullptr) {
            cancel();
            std::rethrow_exception(std::exchange(failure_, nullptr));
        }
    }

    // --- for the operations of threads

    [[nodiscard]] std::uint64_t seed() const { return settings().seed; }
    [[nodiscard]] access_statistics* statistics() const { return settings().statistics; }
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
    /// Whether the threads are whole warpgroups, within a block.
    [[nodiscard]] bool has_warpgroups() const { return shape().threads % warpgroup_size == 0; }
    [[nodiscard]] collective_slot& warpgroup_slot(const thread_state& thread) {
        return warpgroup_slots_[static_cast<std::size_t>(thread.number / warpgroup_size)];
    }
    [[nodiscard]] warpgroup_state& warpgroup(const thread_state& thread) {
        return warpgroups_[static_cast<std::size_t>(thread.number / warpgroup_size)];
    }
    [[nodiscard]] tile_layouts& layouts(int block) { return layouts_[static_cast<std::size_t>(block)]; }
    [[nodiscard]] registers_of_block& registers(int block) {
        return registers_[static_cast<std::size_t>(block)];
    }
    [[nodiscard]] sums_poison& poison() { return poison_; }
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

    /// Enables the checks of thread_state::observed.
    void observe() {
        if (threads_.front()->observed) return;
        for (const auto& thread : threads_) thread->observed = true;
    }

    /// Begins a new epoch of the thread, after the one before was published to others.
    static void next_epoch(thread_state& thread) { ++thread.clock[static_cast<std::size_t>(thread.number)]; }

    /// Releases the threads that wait at a barrier; their clocks join those of all that have arrived.
    void release(block_barrier& it) {
        for (const int number : it.waiting) {
            thread_state& waiting = thread(number);
            waiting.clock.join(it.known);
            if (&it == &cluster_barrier_) waiting.of_cluster.join(it.known);
            if (fences_in_use_) waiting.fenced.join(it.fenced);
            wake(number);
        }
        it.reset();
    }

    /// Rejects an access, by a thread or its copy, to the shared memory of a block that has left the kernel.
    void check_present(int block, const thread_state& thread, const site& where) const {
        if (active(block) != 0) return;
        fail(thread, where, kernel_violation::early_exit,
             "reaches into the shared memory of block " + std::to_string(first_block() + block) +
                 ", which has left the kernel");
    }
    /// Records an access to the shared memory of a block, which must not end before.
    void note_reach(int block, const cluster_exits::access& it) { exits_.note(block, it); }

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
        if (!it.known_ordinary.empty()) it.completed_ordinary = it.known_ordinary;
        it.pending = it.expected;
        it.parity = !it.parity;
        for (const int number : it.waiting) wake(number);
        it.waiting.clear();
    }

private:
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
        const bool fenced = std::exchange(fences_in_use_, false);
        objects_ = 0;
        copy_moments_.fill(0);
        unfinished_ = thread_count();
        exits_.reset(memories_.size(), participants());
        active_.assign(memories_.size(), shape().threads);
        for (collective_slot& it : warp_slots_) it.reset();
        for (collective_slot& it : warpgroup_slots_) it.reset();
        for (warpgroup_state& it : warpgroups_) it = {};
        for (shared_memory& memory : memories_) memory.reset();
        for (auto& barriers : barriers_) {
            for (block_barrier& it : barriers) {
                if (it.expected != 0) it.reset();
            }
        }
        for (auto& objects : memory_barriers_) objects.clear();
        for (tile_layouts& it : layouts_) it.reset();
        for (registers_of_block& it : registers_) {
            it.reset(static_cast<std::size_t>(shape().threads / warpgroup_size), settings().registers);
        }
        for (const auto& thread : threads_) {
            thread->clock.reset();
            if (fenced) thread->fenced.reset();
            thread->of_cluster.reset();
            next_epoch(*thread);
            thread->waiting_for = nullptr;
            if (!thread->open_copies.empty()) thread->open_copies.clear();
            if (!thread->copy_groups.empty()) thread->copy_groups.clear();
            thread->observed = settings().statistics != nullptr || settings().global != nullptr;
            thread->told.reset();
            thread->found.reset();
        }
    }

    void step() {
        if (!deferred_.empty() && scheduler_.chance(16)) land_one();
        const std::ptrdiff_t number = scheduler_.take();
        if (number < 0) {
            if (deferred_.empty()) {
                note_deadlock();
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

    void note_deadlock() {
        std::string text = deadlock_text(threads_, first_block());
        for (const registers_of_block& it : registers_) text.append(it.text());
        failure_ = std::make_exception_ptr(fault_of_block(0, kernel_violation::deadlock, text));
    }

    /// A thread has left the kernel. Barriers for all threads do not wait for it.
    void leave(thread_state& thread) {
        --unfinished_;
        --active_[static_cast<std::size_t>(thread.block)];
        if (failure_ != nullptr) return;
        try {
            leave_slot(thread, warp_slot(thread));
            if (has_warpgroups()) {
                leave_slot(thread, warpgroup_slot(thread));
                check_products(*this, thread, warpgroup(thread));
            }
            end_stores(*this, thread);
            exits_.leave(thread);
            if (active(thread.block) == 0) exits_.check(*this, thread.block, deferred_);
        } catch (...) {
            failure_ = std::current_exception();
            return;
        }
        for (block_barrier& it : barriers_[static_cast<std::size_t>(thread.block)]) {
            if (it.expected < 0 && it.arrived == active(thread.block)) release(it);
        }
        if (cluster_barrier_.expected < 0 && cluster_barrier_.arrived == active_in_cluster()) {
            release(cluster_barrier_);
        }
    }

    /// Removes a thread that leaves from an operation of its warp, in which others can wait for it.
    void leave_slot(const thread_state& thread, collective_slot& slot) {
        ++slot.left;
        slot.operands[static_cast<std::size_t>(thread.number) % slot.operands.size()] = nullptr;
        if (slot.arrived == 0) return;
        if (slot.who == participation::all) {
            fail(*threads_[static_cast<std::size_t>(slot.first)], slot.where, kernel_violation::divergence,
                 std::string("waits in ") + slot.operation + " for " + name_of(thread) +
                     ", which has left the kernel");
        }
        if (slot.complete()) wake(slot.first);
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

    stack_pool stacks_;
    scheduler scheduler_;
    entry_function entry_ = nullptr;
    const void* kernel_ = nullptr;
    std::vector<std::unique_ptr<thread_state>> threads_;
    std::vector<shared_memory> memories_;
    std::vector<std::array<block_barrier, block_barriers>> barriers_;
    block_barrier cluster_barrier_;
    std::vector<std::vector<memory_barrier_state>> memory_barriers_;
    std::vector<tile_layouts> layouts_;
    std::vector<registers_of_block> registers_;
    sums_poison poison_;
    std::vector<collective_slot> warp_slots_;
    std::vector<collective_slot> warpgroup_slots_;
    std::vector<warpgroup_state> warpgroups_;
    std::vector<int> active_;
    deferred_operations deferred_;
    std::array<std::uint32_t, copy_participants> copy_moments_ = {};
    std::size_t objects_ = 0;
    std::size_t unfinished_ = 0;
    cluster_exits exits_;
    bool fences_in_use_ = false;
    std::exception_ptr failure_;
};

}}  // namespace mp::simt::detail
