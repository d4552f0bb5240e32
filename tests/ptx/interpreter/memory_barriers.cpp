// SPDX-License-Identifier: MIT
#include "memory_barrier.hpp"

#include "collective.hpp"
#include "memory_access.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace ptx {

namespace {

/// Where an object lies: which block's memory, and at which byte of it.
shared_memory& memory_of(const warp& w, std::uint64_t address) {
    const auto rank_code = static_cast<std::size_t>(address >> shared_rank_shift);
    return rank_code == 0 ? w.in->shared : w.in->in->blocks[rank_code - 1].shared;
}
std::uint32_t offset_of(std::uint64_t address) {
    return static_cast<std::uint32_t>(address & ((std::uint64_t{1} << shared_rank_shift) - 1));
}

barrier_record* record_at(const warp& w, std::uint64_t address) {
    auto& known = memory_of(w, address).barriers;
    const auto found = std::ranges::find(known, offset_of(address), &barrier_record::at);
    return found == known.end() ? nullptr : &*found;
}

}  // namespace

barrier_object::barrier_object(const warp& w, int lane, std::uint64_t address)
    : in_(w), lane_(lane), at_(locate_shared(w, lane, address, sizeof(memory_barrier)).bytes) {
    record_ = record_at(w, address);
    if (record_ == nullptr) w.fail(lane, "uses a barrier object that nobody has initialised");
    std::memcpy(&value_, at_, sizeof value_);
}

barrier_object::barrier_object(warp& w, int lane, std::uint64_t address, access how)
    : barrier_object(w, lane, address) {
    note_access(w, lane, locate_shared(w, lane, address, sizeof value_), sizeof value_, how, true);
    const auto rank_code = static_cast<int>(address >> shared_rank_shift);
    if (rank_code != 0 && rank_code - 1 != w.in->rank) need_fence();
}

void barrier_object::need_fence() const {
    if (!record_->is_fenced)
        in_.fail(lane_, "uses a barrier object whose initialisation no fence.mbarrier_init followed");
}

void barrier_object::change(cluster& all, int arrivals, std::int64_t bytes) {
    if (arrivals > value_.pending)
        in_.fail(lane_, "arrives at a barrier object at which nobody more was expected");
    value_.pending = static_cast<std::uint16_t>(value_.pending - arrivals);
    value_.bytes = static_cast<std::int32_t>(value_.bytes + bytes);
    const bool ends = value_.pending == 0 && value_.bytes == 0;
    if (ends) {
        value_.pending = static_cast<std::uint16_t>(value_.expected >> 1);
        value_.expected ^= 1U;
        record_->completed = record_->arrived.take();
    }
    std::memcpy(at_, &value_, sizeof value_);
    if (ends) wake(all, wait::memory_barrier);
}

namespace {

void init(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const std::uint64_t address = address_of(w, i, 0, lane);
        const std::uint64_t count = read_lane(w, i.o[1], lane);
        if (count == 0 || count > 32767) w.fail(lane, "a barrier object expects 1 to 32767 arrivals here");
        place at = locate_shared(w, lane, address, sizeof(memory_barrier));
        if (address % 8 != 0) w.fail(lane, "a barrier object lies at a multiple of 8 bytes");
        note_access(w, lane, at, sizeof(memory_barrier), access::write, false);
        const memory_barrier value{static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(2 * count),
                                   0};
        std::memcpy(at.bytes, &value, sizeof value);
        std::memset(at.states, 1, sizeof value);
        auto& known = memory_of(w, address).barriers;
        if (record_at(w, address) == nullptr) {
            if (known.size() == most_barrier_objects)
                w.fail(lane, "has more barrier objects than are offered here");
            barrier_record added;
            added.at = offset_of(address);
            const auto rank_code = static_cast<int>(address >> shared_rank_shift);
            added.unit = unit_of_barrier(w, rank_code == 0 ? w.in->rank : rank_code - 1, known.size());
            known.push_back(std::move(added));
        }
        barrier_record& record = *record_at(w, address);
        record.initialised_by = agent_of(w.order[static_cast<std::size_t>(lane)].now);
        record.is_fenced = false;
        record.unit_clock = w.in->in->memory->clock;
        record.arrived = {};
        record.completed.reset();
    }
}
void invalidate(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const std::uint64_t address = address_of(w, i, 0, lane);
        const barrier_object check(w, lane, address);
        note_access(w, lane, locate_shared(w, lane, address, sizeof(memory_barrier)), sizeof(memory_barrier),
                    access::write, false);
        check.record().at = 0;  // no object: its unit is not given to another one
    }
}
/// o: state (only as a sink), address, count. detail: 0 arrives, 1 announces bytes and arrives, 2 announces only;
/// relaxed, which orders nothing.
void arrive(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        barrier_object object(w, lane, address_of(w, i, 1, lane), access::update);
        if (i.detail[0] != 2 && i.detail[1] == 0) object.record().arrived.add(w, lane_mask{1} << lane);
        const auto operand = i.o[2].is_used() ? static_cast<std::int64_t>(read_lane(w, i.o[2], lane)) : 1;
        const int arrivals = i.detail[0] == 0 ? static_cast<int>(operand) : i.detail[0] == 1 ? 1 : 0;
        object.change(*w.in->in, arrivals, i.detail[0] == 0 ? 0 : operand);
    }
}
/// o: predicate, address, parity. detail: whether it may wait; relaxed.
bool wait_for_parity(warp& w, const instruction& i, lane_mask m, group& g) {
    lane_mask done = 0;
    for (lane_mask left = m; left != 0; left &= left - 1) {
        const int lane = std::countr_zero(left);
        const barrier_object object(w, lane, address_of(w, i, 1, lane), access::read);
        const bool parity = (read_lane(w, i.o[2], lane) & 1U) != 0;
        // The phase that is going on has the other parity, if this one has ended.
        if (object.phase() != parity) done |= lane_mask{1} << lane;
    }
    // Now and then the wait ends without a result, as it may.
    if (done != m && i.detail[0] != 0 && w.in->in->random.below(16) != 0) {
        g.waits_for = wait::memory_barrier;
        return false;
    }
    // Lanes at the same object learn together, so that they go on sharing what they know.
    for (lane_mask left = i.detail[1] == 0 ? done : 0; left != 0;) {
        const barrier_record* const record = record_at(w, address_of(w, i, 1, std::countr_zero(left)));
        lane_mask together = 0;
        for (lane_mask it = left; it != 0; it &= it - 1) {
            if (record_at(w, address_of(w, i, 1, std::countr_zero(it))) == record) together |= it & -it;
        }
        learn(w, together, record->completed);
        left &= ~together;
    }
    write_predicate(w, i.o[0], m, done);
    return true;
}

void decode_memory_barrier(decoder& d, instruction& to) {
    const std::string_view what = d.one_of({"init", "inval", "arrive", "expect_tx", "try_wait", "test_wait"});
    const bool announces = what == "expect_tx" || d.option("expect_tx");
    const bool by_parity = d.option("parity");
    to.detail[1] = d.one_of({"release", "acquire", "relaxed"}) == "relaxed" ? 1 : 0;
    d.one_of({"cta", "cluster"});
    const space said = d.space_option();
    if (said != space::shared) d.fail("expected an address in shared memory");
    if (d.type() != "b64") d.fail("expected .b64");
    if (what == "init") {
        d.address(0, to, 0, said);
        to.o[1] = d.value(1, 4);
        to.run = &init;
    } else if (what == "inval") {
        d.address(0, to, 0, said);
        to.run = &invalidate;
    } else if (what == "arrive" || what == "expect_tx") {
        const std::size_t at = what == "arrive" ? 1 : 0;
        if (at == 1 && d.at(0).kind != term::sink) d.fail("the state of a barrier object is not offered");
        d.address(at, to, 1, said);
        if (announces || d.operands() > at + 1) to.o[2] = d.value(at + 1, 4);
        to.detail[0] = what == "expect_tx" ? 2 : announces ? 1 : 0;
        to.run = &arrive;
    } else if (by_parity && !what.empty()) {
        to.o[0] = d.predicate(0);
        d.address(1, to, 1, said);
        to.o[2] = d.value(2, 4);
        if (d.operands() > 3) d.value(3, 4);  // for how long it waits at most
        to.detail[0] = what == "try_wait" ? 1 : 0;
        to.try_run = &wait_for_parity;
    }
}

/// The address of the same variable in another block of the cluster.
void map_address(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        const std::uint64_t address = read_lane(w, i.o[1], lane);
        const std::uint64_t rank = read_lane(w, i.o[2], lane);
        if (rank >= w.in->in->blocks.size()) w.fail(lane, "there is no such block in the cluster");
        const std::uint64_t window = address >> window_shift << window_shift;
        write_lane(w, i.o[0], lane, window | (rank + 1) << shared_rank_shift | offset_of(address));
    }
}

}  // namespace

void add_memory_barrier_instructions(instruction_table& table) {
    table["mbarrier"] = &decode_memory_barrier;
    table["mapa"] = [](decoder& d, instruction& to) {
        d.space_option();
        const std::size_t bytes = bytes_of_type(d.type());
        to.o = {d.value(0, bytes), d.value(1, bytes), d.value(2, 4)};
        to.run = &map_address;
    };
}

}  // namespace ptx
