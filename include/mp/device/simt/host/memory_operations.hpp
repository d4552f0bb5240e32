// SPDX-License-Identifier: MIT
/// \file
/// Operations of a thread on the host with its warp and its block; loads, stores and atomic operations, in shared and in
/// global memory; and asynchronous copies into shared memory: their target is out of bounds from the call until the thread
/// has waited, and the bytes arrive as late as they can. Each operation is documented in the device's
/// <mp/device/simt/device/device_thread.hpp>.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/global_memory.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Carries out an operation of all threads of a warp (or warpgroup): the last one to arrive calls execute(operands), with a
/// pointer to the operands of each, and all continue. All of them have to arrive at the same line. With
/// participation::those_left lanes that have left the kernel are not waited for, and have null operands; otherwise all must be
/// present.
template <class Operands, class Execute>
void collective_operation(thread_state& me, collective_slot& slot, const char* operation, const site& where,
                          Operands& mine, Execute execute, participation who = participation::all) {
    cluster& owner = *me.owner;
    const std::size_t threads = slot.operands.size();
    if (who == participation::all && slot.left != 0) {
        owner.fail(me, where, kernel_violation::divergence,
                   std::string("comes to ") + operation + " after others of its warp" +
                       (threads > warp_size ? "group" : "") + " left the kernel");
    }
    if (slot.arrived == 0) {
        slot.operation = operation;
        slot.where = where;
        slot.first = me.number;
        slot.who = who;
    } else if ((slot.operation != operation && std::string_view(slot.operation) != operation) ||
               !same_site(slot.where, where)) {
        owner.fail(me, where, kernel_violation::divergence,
                   std::string("comes to ") + operation + " while " +
                       owner.name_of(owner.thread(slot.first)) + " waits for this thread in " +
                       slot.operation + " at " + place_of(slot.where));
    }
    slot.operands[static_cast<std::size_t>(me.number) % threads] = &mine;
    ++slot.arrived;
    if (!slot.complete()) {
        owner.wait(me, operation, where);
        // The last one that was waited for may have left the kernel; then the first one that came goes on.
        if (slot.arrived == 0 || slot.first != me.number || !slot.complete()) return;
    }
    execute(reinterpret_cast<Operands* const*>(slot.operands.data()));
    slot.arrived = 0;
    const int begin = me.number / static_cast<int>(threads) * static_cast<int>(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        const int number = begin + static_cast<int>(i);
        if (number != me.number && slot.operands[i] != nullptr) owner.wake(number);
    }
}

class basic_operations {
public:
    explicit basic_operations(thread_state& state) : state_(&state) {}

    // --- indices

    [[nodiscard]] int index() const { return state_->index; }
    [[nodiscard]] int threads() const { return shape().threads; }
    [[nodiscard]] int lane() const { return state_->lane(); }
    [[nodiscard]] int warp() const { return state_->index / warp_size; }
    [[nodiscard]] std::ptrdiff_t block() const { return owner().block_number(*state_); }
    [[nodiscard]] std::ptrdiff_t blocks() const { return shape().blocks; }

    // --- the kernels before and after this one on the stream: they follow each other, and rules are checked

    void wait_dependencies() const { state_->is_dependent = false; }
    void launch_dependents() const {}

    // --- warp

    void sync_warp(const site& where = site::current()) const {
        char none = 0;
        warp_operation(
            "sync_warp", where, none,
            [&](char* const* lanes) {
                vector_clock known = state_->clock;
                vector_clock fenced = state_->fenced;
                for (int i = 0; i < warp_size; ++i) {
                    if (lanes[i] == nullptr) continue;
                    known.join(lane_state(i).clock);
                    fenced.join(lane_state(i).fenced);
                }
                for (int i = 0; i < warp_size; ++i) {
                    if (lanes[i] == nullptr) continue;
                    lane_state(i).clock = known;
                    lane_state(i).fenced = fenced;
                    cluster::next_epoch(lane_state(i));
                }
            },
            participation::those_left);
    }

    template <class Value>
    [[nodiscard]] Value shuffle(Value value, int from_lane, const site& where = site::current()) const {
        return shuffled(value, from_lane, "shuffle", where);
    }
    template <class Value>
    [[nodiscard]] Value shuffle_xor(Value value, int lane_mask, const site& where = site::current()) const {
        return shuffled(value, lane() ^ lane_mask, "shuffle_xor", where);
    }
    template <class Value>
    [[nodiscard]] Value shuffle_down(Value value, int distance, const site& where = site::current()) const {
        const int from = lane() + distance;
        return shuffled(value, from < warp_size ? from : lane(), "shuffle_down", where);
    }
    template <class Value>
    [[nodiscard]] Value shuffle_up(Value value, int distance, const site& where = site::current()) const {
        const int from = lane() - distance;
        return shuffled(value, from >= 0 ? from : lane(), "shuffle_up", where);
    }

    template <class Value>
    [[nodiscard]] Value uniform(Value value, const site& where = site::current()) const {
        return shuffled(value, 0, "uniform", where);
    }

    [[nodiscard]] std::uint32_t ballot(bool vote, const site& where = site::current()) const {
        return votes(vote, "ballot", where).yes;
    }
    [[nodiscard]] bool any(bool vote, const site& where = site::current()) const {
        return votes(vote, "any", where).yes != 0;
    }
    [[nodiscard]] bool all(bool vote, const site& where = site::current()) const {
        const lane_votes all = votes(vote, "all", where);
        return all.yes == all.lanes;
    }

    // --- block

    void sync_block(const site& where = site::current()) const {
        come_to_barrier(0, -1, true, "sync_block", where);
    }
    void sync_barrier(int barrier, int threads, const site& where = site::current()) const {
        check_barrier(barrier, threads, where);
        come_to_barrier(barrier, threads, true, "sync_barrier", where);
    }
    void arrive_barrier(int barrier, int threads, const site& where = site::current()) const {
        check_barrier(barrier, threads, where);
        come_to_barrier(barrier, threads, false, "arrive_barrier", where);
    }

protected:
    [[nodiscard]] thread_state& state() const { return *state_; }
    [[nodiscard]] cluster& owner() const { return *state_->owner; }
    [[nodiscard]] const launch_shape& shape() const { return owner().shape(); }
    [[nodiscard]] shared_memory& own_memory() const { return owner().memory_of(*state_); }

    [[noreturn]] void fail(const site& where, kernel_violation violation, const std::string& text,
                           std::ptrdiff_t address = -1) const {
        owner().fail(*state_, where, violation, text, address);
    }
    /// See fault_reporter::check_access.
    template <class Function>
    void check_access(const site& where, const char* verb, std::size_t bytes, std::uint32_t offset,
                      Function access) const {
        owner().check_access(*state_, where, verb, bytes, offset, access);
    }
    /// See collective_operation.
    template <class Operands, class Execute>
    void warp_operation(const char* operation, const site& where, Operands& mine, Execute execute,
                        participation who = participation::all) const {
        collective_operation(*state_, owner().warp_slot(*state_), operation, where, mine, execute, who);
    }

private:
    [[nodiscard]] thread_state& lane_state(int lane) const {
        return owner().thread(state_->number / warp_size * warp_size + lane);
    }

    /// The lanes that vote, and those that say yes.
    struct lane_votes {
        std::uint32_t lanes = 0;
        std::uint32_t yes = 0;
    };
    [[nodiscard]] lane_votes votes(bool vote, const char* operation, const site& where) const {
        struct vote_operands {
            bool vote;
            lane_votes result;
        } mine{vote, {}};
        warp_operation(
            operation, where, mine,
            [](vote_operands* const* lanes) {
                lane_votes all;
                for (int i = 0; i < warp_size; ++i) {
                    if (lanes[i] == nullptr) continue;
                    all.lanes |= std::uint32_t{1} << i;
                    all.yes |= static_cast<std::uint32_t>(lanes[i]->vote) << i;
                }
                for (int i = 0; i < warp_size; ++i) {
                    if (lanes[i] != nullptr) lanes[i]->result = all;
                }
            },
            participation::those_left);
        return mine.result;
    }

    template <class Value>
    Value shuffled(Value value, int from, const char* operation, const site& where) const {
        static_assert(std::is_trivially_copyable_v<Value>, "mp: lanes exchange values that are plain bytes");
        struct shuffle_operands {
            Value value;
            int from;
            Value result;
        } mine{value, from, value};
        warp_operation(
            operation, where, mine,
            [&](shuffle_operands* const* lanes) {
                for (int i = 0; i < warp_size; ++i) {
                    if (lanes[i] == nullptr) continue;
                    const int source = lanes[i]->from & (warp_size - 1);
                    if (lanes[source] == nullptr) fail_shuffle(i, source, operation, where);
                    lanes[i]->result = lanes[source]->value;
                }
            },
            participation::those_left);
        return mine.result;
    }
    [[noreturn]] void fail_shuffle(int lane, int source, const char* operation, const site& where) const {
        owner().fail(lane_state(lane), where, kernel_violation::divergence,
                     std::string("takes by ") + operation + " the value of lane " + std::to_string(source) +
                         ", which has left the kernel");
    }

    void check_barrier(int barrier, int threads, const site& where) const {
        if (barrier < 1 || barrier >= block_barriers) {
            fail(where, kernel_violation::argument,
                 "barrier is " + std::to_string(barrier) + "; it must be from 1 to 15");
        }
        if (threads <= 0 || threads % warp_size != 0 || threads > shape().threads) {
            fail(where, kernel_violation::argument,
                 "threads is " + std::to_string(threads) +
                     "; it must be a multiple of 32 and no more than the block has");
        }
    }

    /// Arrives at a barrier for `expected` threads, or for all that are left, and waits there if `waits`.
    void come_to_barrier(int id, int expected, bool waits, const char* operation, const site& where) const {
        cluster& all = owner();
        block_barrier& it = all.barrier(state_->block, id);
        if (it.expected == 0) it.expected = expected;
        if (it.expected != expected) {
            fail(where, kernel_violation::divergence,
                 "comes to barrier " + std::to_string(id) + " for " + std::to_string(expected) +
                     " threads while others wait there for " + std::to_string(it.expected));
        }
        bool first_of_warp = true;
        for (const auto& [warp, place] : it.warps) {
            if (warp != state_->warp()) continue;
            first_of_warp = false;
            if (!same_site(place, where)) {
                fail(where, kernel_violation::divergence,
                     "comes to " + std::string(operation) + " while other lanes of its warp are at " +
                         place_of(place));
            }
        }
        if (first_of_warp) it.warps.emplace_back(state_->warp(), where);
        it.come(state_->clock, all.fences_in_use() ? &state_->fenced : nullptr);
        cluster::next_epoch(*state_);
        if (waits) it.waiting.push_back(state_->number);
        if (it.arrived == (expected < 0 ? all.active(state_->block) : expected)) {
            all.release(it);
            if (!waits) return;
            // Released with the others, so in their order.
        }
        if (waits) all.wait(*state_, operation, where);
    }

    thread_state* state_;
};

class memory_operations : public basic_operations {
public:
    using basic_operations::basic_operations;

    // --- shared memory

    template <class Value>
    [[nodiscard]] Value load(shared_pointer<Value> from, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = own_memory();
        check_access(where, "reads", size, from.offset, [&] {
            memory.check_range(from.offset, size, size);
            memory.read(state().access(), from.offset, size);
        });
        if (state().observed) note(where, "load", true, from.offset, size);
        return read_value<Value>(memory.data() + from.offset);
    }
    template <class Value>
    void store(shared_pointer<Value> to, std::type_identity_t<Value> value,
               const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = own_memory();
        check_access(where, "writes", size, to.offset, [&] {
            memory.check_range(to.offset, size, size);
            memory.write(state().access(), to.offset, size,
                         owner().settings().equal_writes ? &value : nullptr);
        });
        if (state().observed) {
            owner().layouts(state().block).forget(to.offset, size);
            check_sums(&value, size, where);
            note(where, "store", true, to.offset, size);
        }
        std::memcpy(memory.data() + to.offset, &value, size);
    }

    // --- global memory

    template <class Value>
    [[nodiscard]] Value load(const Value* from, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        check_global(from, "reads", size, where);
        if (state().observed) {
            watch_read(from, "reads", size, where);
            note(where, "load", false, reinterpret_cast<std::uintptr_t>(from), size);
        }
        return read_value<Value>(reinterpret_cast<const unsigned char*>(from));
    }
    template <class Value>
    [[nodiscard]] Value load_streaming(const Value* from, const site& where = site::current()) const {
        return load(from, where);
    }
    template <class Value>
    void store(Value* to, std::type_identity_t<Value> value, const site& where = site::current()) const {
        constexpr std::size_t size = checked_size<Value>();
        check_global(to, "writes", size, where);
        if (state().observed) {
            check_sums(&value, size, where);
            owner().check_global(state(), where, "writes", size,
                                 [&](global_memory& memory, const global_accessor& who) {
                                     memory.write(who, to, &value, size);
                                 });
            note(where, "store", false, reinterpret_cast<std::uintptr_t>(to), size);
        }
        std::memcpy(static_cast<void*>(to), &value, size);
    }
    template <class Value>
    void store_streaming(Value* to, std::type_identity_t<Value> value,
                         const site& where = site::current()) const {
        store(to, value, where);
    }

    // --- atomic operations

    template <class Place>
    auto atomic_add(Place at, pointee<Place> value, const site& where = site::current()) const {
        return update(at, where,
                      [value](auto before) { return static_cast<decltype(before)>(before + value); });
    }
    template <class Place>
    auto atomic_min(Place at, pointee<Place> value, const site& where = site::current()) const {
        return update(at, where, [value](auto before) { return before < value ? before : value; });
    }
    template <class Place>
    auto atomic_max(Place at, pointee<Place> value, const site& where = site::current()) const {
        return update(at, where, [value](auto before) { return before < value ? value : before; });
    }
    template <class Place>
    auto atomic_or(Place at, pointee<Place> value, const site& where = site::current()) const {
        return update(at, where,
                      [value](auto before) { return static_cast<decltype(before)>(before | value); });
    }

    void fence_device() const {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (owner().settings().global == nullptr) return;
        global_memory::fence(state(), owner().first_block());
        cluster::next_epoch(state());
    }

protected:
    /// Checks a read of global memory, where that is watched.
    void watch_read(const void* from, const char* verb, std::size_t bytes, const site& where) const {
        owner().check_global(
            state(), where, verb, bytes,
            [&](global_memory& memory, const global_accessor& who) { memory.read(who, from, bytes); });
    }
    void check_global(const void* address, const char* verb, std::size_t bytes, const site& where) const {
        check_dependencies(verb, where);
        if ((reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0) return;
        fail(where, kernel_violation::alignment,
             std::string(verb) + " " + std::to_string(bytes) +
                 " bytes of global memory at an address that is no multiple of that");
    }

    /// Rejects accesses to global memory before the kernels before this one have been waited for.
    void check_dependencies(const char* verb, const site& where) const {
        if (!state().is_dependent) return;
        fail(where, kernel_violation::race, std::string(verb) + " global memory before wait_dependencies()");
    }

    void note(const site& where, const char* operation, bool shared, std::uint64_t address,
              std::size_t bytes) const {
        if (owner().statistics() == nullptr) return;
        owner().statistics()->note(static_cast<std::size_t>(state().warp()), lane(), where.file_name(),
                                   where.line(), where.column(), operation, shared, address,
                                   static_cast<std::uint32_t>(bytes));
    }

    /// Rejects the poison of a product's sums, which is what a thread stores that has read them too early.
    void check_sums(const void* value, std::size_t bytes, const site& where) const {
        const site* const product = owner().poison().found_in(value, bytes);
        if (product == nullptr) return;
        fail(where, kernel_violation::unfinished_copy,
             "stores a sum of multiply_async at " + place_of(*product) +
                 " that was read before wait_products() said that it is done");
    }

private:
    template <class Value>
    static constexpr std::size_t checked_size() {
        static_assert(
            std::is_trivially_copyable_v<Value> && std::has_single_bit(sizeof(Value)) && sizeof(Value) <= 16,
            "mp: a thread reads and writes values of 1, 2, 4, 8 or 16 bytes");
        return sizeof(Value);
    }
    template <class Value>
    static Value read_value(const unsigned char* from) {
        std::remove_const_t<Value> value;
        std::memcpy(static_cast<void*>(&value), from, sizeof value);
        return value;
    }

    /// Updates a value as std::atomic_ref does, which not every standard library of C++20 has.
    template <class Value, class Function>
    Value update(Value* at, const site& where, Function next) const {
        check_global(at, "updates", sizeof(Value), where);
        owner().check_global(state(), where, "updates", sizeof(Value),
                             [&](global_memory& memory, const global_accessor& who) {
                                 memory.update(who, state(), at, sizeof(Value));
                             });
        Value before;
        __atomic_load(at, &before, __ATOMIC_RELAXED);
        for (;;) {
            Value after = next(before);
            if (__atomic_compare_exchange(at, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                return before;
            }
        }
    }
    template <class Value, class Function>
    Value update(shared_pointer<Value> at, const site& where, Function next) const {
        constexpr std::size_t size = checked_size<Value>();
        shared_memory& memory = own_memory();
        check_access(where, "updates", size, at.offset, [&] {
            memory.check_range(at.offset, size, size);
            memory.update(state().access(), at.offset, size);
        });
        const Value before = read_value<Value>(memory.data() + at.offset);
        const Value after = next(before);
        std::memcpy(memory.data() + at.offset, &after, size);
        return before;
    }

public:
    // --- asynchronous copies

    template <int Bytes, class Value>
    void copy_async(shared_pointer<Value> to, const void* from, int valid_bytes = Bytes,
                    const site& where = site::current()) const {
        static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "mp: copies have 4, 8 or 16 bytes");
        if (valid_bytes < 0 || valid_bytes > Bytes) {
            fail(where, kernel_violation::argument,
                 "valid_bytes is " + std::to_string(valid_bytes) + "; it must be from 0 to " +
                     std::to_string(Bytes));
        }
        check_global(from, "copies", Bytes, where);
        shared_memory& memory = own_memory();
        check_access(where, "begins to copy", Bytes, to.offset, [&] {
            memory.check_range(to.offset, Bytes, Bytes);
            memory.begin_copy(state().access(), to.offset, Bytes);
        });
        const auto source_bytes = static_cast<std::size_t>(valid_bytes);
        if (state().observed) {
            note(where, "copy_async to", true, to.offset, Bytes);
            if (source_bytes != 0) {
                watch_read(from, "copies", source_bytes, where);
                note(where, "copy_async from", false, reinterpret_cast<std::uintptr_t>(from), source_bytes);
            }
        }
        pending_copy copy{to.offset, static_cast<const unsigned char*>(from), source_bytes,
                          std::vector<unsigned char>(Bytes)};
        if (source_bytes != 0) std::memcpy(copy.bytes.data(), from, source_bytes);
        state().open_copies.push_back(std::move(copy));
    }

    void commit_copies() const { state().copy_groups.push_back(std::exchange(state().open_copies, {})); }

    template <int Pending>
    void wait_copies(const site& where = site::current()) const {
        auto& groups = state().copy_groups;
        while (groups.size() > static_cast<std::size_t>(Pending)) {
            for (const pending_copy& copy : groups.front()) land(copy, where);
            groups.pop_front();
        }
    }

private:
    void land(const pending_copy& copy, const site& where) const {
        // It may have been read as late as now.
        if (state().observed && copy.source_bytes != 0) {
            watch_read(copy.source, "waits for a copy of", copy.source_bytes, where);
        }
        if (copy.source_bytes != 0 && std::memcmp(copy.bytes.data(), copy.source, copy.source_bytes) != 0) {
            fail(where, kernel_violation::unfinished_copy,
                 "waits for a copy whose source has changed since it began",
                 static_cast<std::ptrdiff_t>(copy.offset));
        }
        owner().layouts(state().block).forget(copy.offset, copy.bytes.size());
        owner().memory_of(state()).land_copy(state().number,
                                             state().clock[static_cast<std::size_t>(state().number)], false,
                                             copy.offset, copy.bytes.data(), copy.bytes.size());
    }
};

}}  // namespace mp::simt::detail
