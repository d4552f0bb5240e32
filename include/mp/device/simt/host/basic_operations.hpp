// SPDX-License-Identifier: MIT
/// \file
/// What a thread on the host does with its warp and its block, whose threads come together for it. What each operation means is said
/// where the device has it: <mp/device/simt/device/device_thread.hpp>.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/kernel_error.hpp>
#include <mp/device/simt/kernel_traits.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// An operation for which all threads of a warp (or warpgroup) come together: the last one that comes calls
/// execute(operands), with a pointer to the operands of each, and all go on. All of them have to come to the
/// same line. Lanes that have left the kernel are not waited for, and have null for operands, where
/// `who` says so; else all have to be there.
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

    // --- who

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
        cluster& all = owner();
        collective_operation(
            *state_, all.warp_slot(*state_), "sync_warp", where, none,
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
        collective_operation(
            *state_, owner().warp_slot(*state_), operation, where, mine,
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
        collective_operation(
            *state_, owner().warp_slot(*state_), operation, where, mine,
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
            owner().fail(*state_, where, kernel_violation::argument,
                         "barrier is " + std::to_string(barrier) + "; it must be from 1 to 15");
        }
        if (threads <= 0 || threads % warp_size != 0 || threads > shape().threads) {
            owner().fail(*state_, where, kernel_violation::argument,
                         "threads is " + std::to_string(threads) +
                             "; it must be a multiple of 32 and no more than the block has");
        }
    }

    /// Arrives at a barrier for `expected` threads, or for all that are left, and waits there if asked to.
    void come_to_barrier(int id, int expected, bool waits, const char* operation, const site& where) const {
        cluster& all = owner();
        block_barrier& it = all.barrier(state_->block, id);
        if (it.expected == 0) it.expected = expected;
        if (it.expected != expected) {
            all.fail(*state_, where, kernel_violation::divergence,
                     "comes to barrier " + std::to_string(id) + " for " + std::to_string(expected) +
                         " threads while others wait there for " + std::to_string(it.expected));
        }
        bool first_of_warp = true;
        for (const auto& [warp, place] : it.warps) {
            if (warp != state_->warp()) continue;
            first_of_warp = false;
            if (!same_site(place, where)) {
                all.fail(*state_, where, kernel_violation::divergence,
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

}}  // namespace mp::simt::detail
