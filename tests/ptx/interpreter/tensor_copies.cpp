// SPDX-License-Identifier: MIT
// The unit that copies tiles (cp.async.bulk): each copy is done at some time after it was begun.
#include "collective.hpp"
#include "memory_access.hpp"
#include "memory_barrier.hpp"
#include "tensor_map.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace ptx {

namespace {

std::uint32_t offset_in_block(std::uint64_t address) {
    return static_cast<std::uint32_t>(address & ((std::uint64_t{1} << shared_rank_shift) - 1));
}
std::uint64_t at_rank(std::uint64_t offset, std::size_t rank) {
    return std::uint64_t{rank + 1} << shared_rank_shift | offset;
}

tensor_map read_map(warp& w, int lane, std::uint64_t address) {
    if (address % 64 != 0) w.fail(lane, "has a tensor map that is not at a multiple of 64 bytes");
    std::array<std::byte, sizeof(tensor_map)> bytes{};
    for (std::size_t k = 0; k < bytes.size(); k += 8) {
        std::memcpy(bytes.data() + k, reach<8>(w, lane, space::generic, address + k, access::read), 8);
    }
    tensor_map map{};
    std::memcpy(&map, bytes.data(), sizeof map);
    if (map.mark != tensor_map::expected_mark) w.fail(lane, "has something else than a tensor map");
    return map;
}

/// A tile: for each element where it lies in memory, 0 if outside of the tensor, in the order of the box.
struct tile {
    tensor_map map;
    std::array<std::int32_t, 5> at{};

    [[nodiscard]] std::size_t elements() const {
        std::size_t result = 1;
        for (std::size_t k = 0; k < map.rank; ++k) result *= map.box[k];
        return result;
    }
    [[nodiscard]] std::size_t bytes() const { return elements() * map.element_bytes; }

    /// Calls f(global address, bytes) for the part of each row that is inside of the tensor.
    template <class Function>
    void rows_inside(Function f) const {
        std::uint64_t begin = 0, end = 0;
        walk([&](std::size_t, std::uint64_t address, std::size_t bytes) {
            if (address != 0 && address == end) {
                end += bytes;
                return;
            }
            if (end != begin) f(begin, static_cast<std::size_t>(end - begin));
            begin = address;
            end = address == 0 ? 0 : address + bytes;
        });
        if (end != begin) f(begin, static_cast<std::size_t>(end - begin));
    }

    /// Calls f(offset in the box, global address or 0, bytes) for each run of 16 bytes, or of an element.
    template <class Function>
    void walk(Function f) const {
        const std::size_t row_bytes = std::size_t{map.box[0]} * map.element_bytes;
        const std::size_t rows = elements() / map.box[0];
        for (std::size_t row = 0; row < rows; ++row) {
            std::uint64_t address = map.address;
            bool inside = true;
            std::size_t rest = row;
            for (std::size_t k = 1; k < map.rank; ++k) {
                const std::int64_t coordinate = at[k] + static_cast<std::int64_t>(rest % map.box[k]);
                rest /= map.box[k];
                inside = inside && coordinate >= 0 && coordinate <= std::int64_t{map.last[k]};
                address += static_cast<std::uint64_t>(coordinate) * map.strides[k - 1];
            }
            for (std::size_t x = 0; x < map.box[0]; ++x) {
                const std::int64_t coordinate = at[0] + static_cast<std::int64_t>(x);
                const bool here = inside && coordinate >= 0 && coordinate <= std::int64_t{map.last[0]};
                f(row * row_bytes + x * map.element_bytes,
                  here ? address + static_cast<std::uint64_t>(coordinate) * map.element_bytes : 0,
                  map.element_bytes);
            }
        }
    }
};

/// Without a tensor: bytes that follow each other, in elements of 16.
tile plain_tile(warp& w, const instruction& i, int lane) {
    const std::uint64_t bytes = read_lane(w, i.o[4], lane), address = read_lane(w, i.o[1], lane);
    if (bytes == 0 || bytes % 16 != 0 || bytes > 16 * 65535 || address % 16 != 0)
        w.fail(lane, "copies bytes that are no multiple of 16, or lie at none");
    tile result{};
    result.map.address = address;
    result.map.rank = 1;
    result.map.element_bytes = 16;
    result.map.box[0] = static_cast<std::uint16_t>(bytes / 16);
    result.map.last[0] = result.map.box[0] - 1U;
    return result;
}

bool is_plain(const instruction& i) {
    return i.o[4].is_used();
}

tile read_tile(warp& w, const instruction& i, int lane) {
    if (is_plain(i)) return plain_tile(w, i, lane);
    tile result{read_map(w, lane, read_lane(w, i.o[1], lane) + static_cast<std::uint64_t>(i.value)), {}};
    if (result.map.rank != i.list.size()) w.fail(lane, "has a tensor map of another rank");
    for (std::size_t k = 0; k < i.list.size(); ++k) {
        result.at[k] = static_cast<std::int32_t>(read_lane(w, i.list[k], lane));
    }
    return result;
}

place global_place(warp& w, int lane, std::uint64_t address, std::size_t bytes) {
    allocation* const it = w.in->in->memory->find(address, bytes);
    if (it == nullptr) w.fail(lane, "copies bytes outside of global memory");
    const std::size_t offset = address - it->begin;
    return {reinterpret_cast<std::byte*>(address), it->states.get() + offset, &it->accesses, offset};
}

void mark_all(const warp& w, int lane, std::uint64_t shared, std::size_t bytes, byte_state state,
              bool check_free) {
    const place at = locate_shared(w, lane, shared, bytes);
    for (std::size_t k = 0; k < bytes; ++k) {
        if (check_free && at.states[k] >= 2)
            w.fail(lane, "copies over memory that another asynchronous access needs");
        at.states[k] = static_cast<std::uint8_t>(state);
    }
}

/// o: to, map, barrier, mask of blocks; without a tensor the address instead of the map, and how many bytes. list:
/// coordinates.
void load_tile(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        check_dependency(w, lane);
        const tile it = read_tile(w, i, lane);
        const std::uint64_t to = read_lane(w, i.o[0], lane), barrier = read_lane(w, i.o[2], lane);
        const std::size_t bytes = it.bytes();
        if (to % (is_plain(i) ? 16 : 128) != 0)
            w.fail(lane, "copies a tile to an address that is not a multiple of 128, or bytes to none of 16");
        cluster& all = *w.in->in;
        const known knows = knowledge_of(w, lane_mask{1} << lane);
        const std::uint64_t blocks =
            i.o[3].is_used() ? read_lane(w, i.o[3], lane) : std::uint64_t{1} << w.in->rank;
        if (blocks == 0 || blocks >> all.blocks.size() != 0)
            w.fail(lane, "copies to a block that the cluster has not");
        for (std::size_t rank = 0; rank < all.blocks.size(); ++rank) {
            if ((blocks >> rank & 1U) == 0) continue;
            const std::uint64_t there =
                i.o[3].is_used() || to >> shared_rank_shift == 0 ? at_rank(offset_in_block(to), rank) : to;
            const std::uint64_t signal = at_rank(offset_in_block(barrier), rank);
            mark_all(w, lane, there, bytes, byte_state::arriving, true);
            const barrier_object check(w, lane, signal, access::update);
            check.need_fence();
            // Who was here before has to be known now; others have to wait for the barrier object.
            note_unit(w, lane, locate_shared(w, lane, there, bytes), bytes, access::write, *knows, 0);
            const instruction* const begun_by = &i;
            all.transfers.push_back([=, &w, &all] {
                const instruction* const now = w.current;
                w.current = begun_by;
                const place target = locate_shared(w, lane, there, bytes);
                it.walk([&](std::size_t offset, std::uint64_t from, std::size_t size) {
                    const std::uint32_t begin = offset_in_block(there);
                    const std::size_t at =
                        swizzled(begin + static_cast<std::uint32_t>(offset), it.map.swizzle_bytes) - begin;
                    if (from == 0) {
                        std::memset(target.bytes + at, 0, size);
                    } else {
                        const place source = locate(w, lane, space::global, from, size, access::read);
                        std::memcpy(target.bytes + at, source.bytes, size);
                    }
                });
                std::memset(target.states, 1, bytes);
                barrier_object object(w, lane, signal);
                barrier_record& record = object.record();
                const stamp done = tick(w, record.unit, record.unit_clock);
                note_done(target, bytes, access::write, done);
                it.rows_inside([&](std::uint64_t from, std::size_t size) {
                    note_unit(w, lane, global_place(w, lane, from, size), size, access::read, *knows, done);
                });
                record.arrived.add(w, record.unit, record.unit_clock);
                object.change(all, 0, -static_cast<std::int64_t>(bytes));
                w.current = now;
            });
        }
    }
}

/// o: from, map. list: coordinates.
void store_tile(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        check_dependency(w, lane);
        const tile it = read_tile(w, i, lane);
        const std::uint64_t from = read_lane(w, i.o[0], lane);
        if (from % (is_plain(i) ? 16 : 128) != 0)
            w.fail(lane,
                   "copies a tile from an address that is not a multiple of 128, or bytes from none of 16");
        const place check = locate_shared(w, lane, from, it.bytes());
        for (std::size_t k = 0; k < it.bytes(); ++k) {
            if (check.states[k] != 1)
                w.fail(lane, "stores a tile with bytes that are not written, or in use");
        }
        mark_all(w, lane, from, it.bytes(), byte_state::leaving, false);
        const known knows = knowledge_of(w, lane_mask{1} << lane);
        auto& groups = w.bulk_stores[static_cast<std::size_t>(lane)];
        if (groups.empty()) groups.emplace_back();
        const instruction* const begun_by = &i;
        groups.back().push_back([=, &w] {
            const instruction* const now = w.current;
            w.current = begun_by;
            const place source = locate_shared(w, lane, from, it.bytes());
            it.walk([&](std::size_t offset, std::uint64_t to, std::size_t size) {
                if (to == 0) return;
                const std::uint32_t begin = offset_in_block(from);
                const std::size_t at =
                    swizzled(begin + static_cast<std::uint32_t>(offset), it.map.swizzle_bytes) - begin;
                std::memcpy(locate(w, lane, space::global, to, size, access::write).bytes, source.bytes + at,
                            size);
            });
            std::memset(source.states, 1, it.bytes());
            // Its thread has waited for it.
            const stamp done = w.order[static_cast<std::size_t>(lane)].now | stamp{line_behind_entry(w)} << 1;
            note_unit(w, lane, source, it.bytes(), access::read, *knows, done);
            it.rows_inside([&](std::uint64_t to, std::size_t size) {
                note_unit(w, lane, global_place(w, lane, to, size), size, access::write, *knows, done);
            });
            w.current = now;
        });
    }
}

void commit_stores(warp& w, const instruction&, lane_mask m) {
    for_lanes(m, [&](int lane) {
        auto& groups = w.bulk_stores[static_cast<std::size_t>(lane)];
        if (groups.empty()) groups.emplace_back();
        groups.emplace_back();
    });
}
void wait_for_stores(warp& w, const instruction& i, lane_mask m) {
    for (; m != 0; m &= m - 1) {
        auto& groups = w.bulk_stores[static_cast<std::size_t>(std::countr_zero(m))];
        while (!groups.empty() && static_cast<std::int64_t>(groups.size()) - 1 > i.value) {
            for (const auto& store : groups.front()) store();
            groups.pop_front();
        }
    }
}

void take_coordinates(decoder& d, instruction& to, const term& address, std::size_t rank) {
    if (address.kind != term::address || address.parts.size() != 2 || address.parts[1].kind != term::vector ||
        address.parts[1].parts.size() != rank) {
        d.fail("expected a tensor map with its coordinates");
    }
    to.o[1] = d.value(address.parts[0], 8);
    to.value = address.value;
    for (const term& it : address.parts[1].parts) to.list.push_back(d.value(it, 4));
}

/// An address in a register, without an offset.
void take_address(decoder& d, instruction& to, std::size_t index, std::size_t slot, space in) {
    d.address(index, to, slot, in);
    if (to.value != 0) d.fail("an offset is not offered here");
}

void decode_plain(decoder& d, instruction& to) {
    if (d.option("bulk_group")) {
        if (!d.option("global") || !d.option("shared::cta")) return;
        take_address(d, to, 0, 1, space::global);
        take_address(d, to, 1, 0, space::shared);
        to.o[4] = d.value(2, 4);
        to.run = &store_tile;
        return;
    }
    if (!(d.option("shared::cluster") || d.option("shared::cta")) || !d.option("global") ||
        !d.option("mbarrier::complete_tx::bytes")) {
        return;
    }
    take_address(d, to, 0, 0, space::shared);
    take_address(d, to, 1, 1, space::global);
    to.o[4] = d.value(2, 4);
    take_address(d, to, 3, 2, space::shared);
    if (d.option("multicast::cluster")) to.o[3] = d.value(4, 2);
    to.run = &load_tile;
}

void decode_bulk(decoder& d, instruction& to) {
    if (d.option("commit_group")) {
        to.run = &commit_stores;
        return;
    }
    if (d.option("wait_group")) {
        d.option("read");
        to.value = d.integer(0);
        to.run = &wait_for_stores;
        return;
    }
    if (!d.option("tensor")) {
        decode_plain(d, to);
        return;
    }
    std::size_t rank = 0;
    for (const std::string_view word : {"1d", "2d", "3d", "4d", "5d"}) {
        if (d.option(word)) rank = static_cast<std::size_t>(word[0] - '0');
    }
    d.option("tile");
    if (d.option("bulk_group")) {
        if (!d.option("global") || !d.option("shared::cta")) return;
        take_coordinates(d, to, d.at(0), rank);
        const std::int64_t none = to.value;
        d.address(1, to, 0, space::shared);
        if (to.value != 0) d.fail("an offset is not offered here");
        to.value = none;
        to.run = &store_tile;
        return;
    }
    if (!(d.option("shared::cluster") || d.option("shared::cta")) || !d.option("global") ||
        !d.option("mbarrier::complete_tx::bytes")) {
        return;
    }
    const bool multicast = d.option("multicast::cluster");
    const bool has_hint = d.option("L2::cache_hint");
    d.address(0, to, 0, space::shared);
    if (to.value != 0) d.fail("an offset is not offered here");
    take_coordinates(d, to, d.at(1), rank);
    const std::int64_t offset = to.value;
    d.address(2, to, 2, space::shared);
    if (to.value != 0) d.fail("an offset is not offered here");
    to.value = offset;
    if (multicast) to.o[3] = d.value(3, 2);
    // Nobody looks at it, since there is no cache.
    if (has_hint) static_cast<void>(d.value(multicast ? 4 : 3, 8));
    to.run = &load_tile;
}

void decode(decoder& d, instruction& to) {
    if (!d.option("async")) return;
    if (d.option("bulk")) {
        decode_bulk(d, to);
    } else {
        decode_copy(d, to);
    }
}

}  // namespace

void add_tensor_copy_instructions(instruction_table& table) {
    table["cp"] = &decode;
}

}  // namespace ptx
