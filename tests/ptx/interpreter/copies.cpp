// SPDX-License-Identifier: MIT
// Copies beside the threads, from global to shared memory (cp.async): done as late as they may be, so that whoever does
// not wait is seen.
#include "lane_functions.hpp"
#include "memory_access.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ptx {

namespace {

void mark(const place& at, int bytes, byte_state state) {
    std::memset(at.states, static_cast<int>(state), static_cast<std::size_t>(bytes));
}

/// o: to, from, how many bytes are read. detail: bytes.
void begin_copy(warp& w, const instruction& i, lane_mask m) {
    const int bytes = i.detail[0];
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        pending_copy copy{};
        copy.to =
            static_cast<std::uint32_t>(read_lane(w, i.o[0], lane) + static_cast<std::uint64_t>(i.detail[1]));
        copy.from = read_lane(w, i.o[1], lane) + static_cast<std::uint64_t>(i.value);
        copy.bytes = bytes;
        copy.valid = i.o[2].is_used() ? static_cast<int>(read_lane(w, i.o[2], lane)) : bytes;
        if (copy.valid < 0 || copy.valid > bytes) w.fail(lane, "reads more bytes than it copies");
        if (copy.from % static_cast<std::uint64_t>(bytes) != 0)
            w.fail(lane, "copies from an address that is not aligned");
        // A source that is not read may lie anywhere.
        for (int k = 0; k < copy.valid;) {
            const int step = std::min(copy.valid - k, copy.valid & -copy.valid);
            const auto size = static_cast<std::size_t>(step);
            const place from =
                locate(w, lane, space::global, copy.from + static_cast<std::uint64_t>(k), size, access::read);
            note_access(w, lane, from, size, access::read, false);
            k += step;
        }
        const place to =
            locate(w, lane, space::shared, copy.to, static_cast<std::size_t>(bytes), access::write);
        note_access(w, lane, to, static_cast<std::size_t>(bytes), access::write, false);
        mark(to, bytes, byte_state::arriving);
        auto& groups = w.copies[static_cast<std::size_t>(lane)];
        if (groups.empty()) groups.emplace_back();
        groups.back().push_back(copy);
    }
}

/// Written when it is waited for: so others have to meet this lane behind its wait.
void finish(warp& w, int lane, const pending_copy& copy) {
    const place to = locate_shared(w, lane, copy.to, static_cast<std::size_t>(copy.bytes));
    note_access(w, lane, to, static_cast<std::size_t>(copy.bytes), access::write, false);
    std::memset(to.bytes, 0, static_cast<std::size_t>(copy.bytes));
    std::memcpy(to.bytes, reinterpret_cast<const std::byte*>(copy.from),
                static_cast<std::size_t>(copy.valid));
    mark(to, copy.bytes, byte_state::written);
}

void commit(warp& w, const instruction&, lane_mask m) {
    for_lanes(m, [&](int lane) {
        auto& groups = w.copies[static_cast<std::size_t>(lane)];
        if (groups.empty()) groups.emplace_back();
        groups.emplace_back();
    });
}

/// value: how many complete groups may remain; -1 waits for everything.
void wait_for_copies(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        auto& groups = w.copies[static_cast<std::size_t>(lane)];
        // The last one is open.
        while (!groups.empty() && (i.value < 0 || static_cast<std::int64_t>(groups.size()) - 1 > i.value)) {
            for (const pending_copy& copy : groups.front()) finish(w, lane, copy);
            groups.pop_front();
        }
    }
}

void decode_wait(decoder& d, instruction& to, bool all) {
    to.value = all ? -1 : d.integer(0);
    to.run = &wait_for_copies;
}

}  // namespace

void finish_copies(warp& w, lane_mask m) {
    instruction everything;
    everything.value = -1;
    wait_for_copies(w, everything, m);
}

bool decode_copy(decoder& d, instruction& to) {
    if (d.option("commit_group")) {
        to.run = &commit;
        return true;
    }
    if (d.option("wait_group")) {
        decode_wait(d, to, false);
        return true;
    }
    if (d.option("wait_all")) {
        decode_wait(d, to, true);
        return true;
    }
    if (d.one_of({"ca", "cg"}).empty()) return false;
    if (!(d.option("shared") || d.option("shared::cta")) || !d.option("global"))
        d.fail("expected .shared.global");
    d.one_of({"L2::64B", "L2::128B", "L2::256B"});
    d.address(0, to, 0, space::shared);
    to.detail[1] = static_cast<std::int32_t>(to.value);
    d.address(1, to, 1, space::global);
    to.detail[0] = static_cast<std::int32_t>(d.integer(2));
    if (d.operands() > 3) to.o[2] = d.value(3, 4);
    if (to.detail[0] != 4 && to.detail[0] != 8 && to.detail[0] != 16) d.fail("copies have 4, 8 or 16 bytes");
    to.run = &begin_copy;
    return true;
}

}  // namespace ptx
