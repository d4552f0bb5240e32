// SPDX-License-Identifier: MIT
/// \file
/// Barrier objects in shared memory, and asynchronous copies of tiles between global and shared memory, on the host.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/memory_operations.hpp>
#include <mp/device/simt/host/thread_state.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(offset in global memory, offset in the tile, inside) for each 16 bytes of a tile, with the number of bytes
/// that are inside of the matrix.
template <class Function>
void for_each_tile_chunk(const tensor_tiles& tiles, int position, int row, Function f) {
    constexpr int chunk = 16;
    for (int l = 0; l < tiles.tile_rows; ++l) {
        for (int byte = 0; byte < tiles.tile_row_bytes(); byte += chunk) {
            const std::int64_t from_row = std::int64_t{row} + l;
            const std::int64_t from_byte = std::int64_t{position} * tiles.element_bytes + byte;
            std::int64_t inside = tiles.length * tiles.element_bytes - from_byte;
            inside = inside < 0 ? 0 : inside > chunk ? chunk : inside;
            if (from_row < 0 || from_row >= tiles.rows || from_byte < 0) inside = 0;
            f(from_row * tiles.row_bytes + from_byte, tile_offset(tiles, l, byte),
              static_cast<std::size_t>(inside));
        }
    }
}

/// A copy of a tile that arrives in shared memory, and at its barrier object, at an unspecified time.
class tile_arrival : public deferred_operation {
public:
    tile_arrival(cluster& owner, int block, std::uint32_t to, std::uint32_t barrier,
                 const tensor_tiles& tiles, int position, int row, const thread_state& by, const site& where)
        : deferred_operation(block, where),
          owner_(&owner),
          to_(to),
          barrier_(barrier),
          tiles_(tiles),
          position_(position),
          row_(row),
          by_(&by) {
        if (owner.settings().global == nullptr) return;
        issued_ = by.clock;
        watch(by.number);
    }

    void land() override {
        // What lies outside of the matrix arrives as zeros, and is counted.
        std::vector<unsigned char> tile(static_cast<std::size_t>(tiles_.tile_bytes()));
        for_each_tile_chunk(tiles_, position_, row_,
                            [&](std::int64_t from, std::uint32_t offset, std::size_t inside) {
                                if (inside == 0) return;
                                std::memcpy(tile.data() + offset,
                                            static_cast<const unsigned char*>(tiles_.data) + from, inside);
                            });
        memory_barrier_state& object = owner_->memory_barrier_at(block(), barrier_);
        const std::uint32_t epoch = owner_->next_copy_epoch(object.participant);
        owner_->memory(block()).land_copy(static_cast<int>(object.participant), epoch, true, to_, tile.data(),
                                          tile.size());
        owner_->observe();
        owner_->layouts(block()).note(owner_->memory(block()).size(), to_, tiles_, where());
        object.known[object.participant] = epoch;
        owner_->note_reach(block(), {object.participant, epoch, where()});
        if (owner_->settings().global != nullptr) {
            // It may have been read as late as now, with what was known when it was asked for.
            issued_[object.participant] = epoch;
            watch(static_cast<int>(object.participant));
        }
        object.bytes -= tiles_.tile_bytes();
        owner_->complete_phase(object);
    }

private:
    void watch(int participant) const {
        const global_accessor who{owner_->first_block(), participant, &issued_, where(),
                                  access_kind::asynchronous};
        const auto bytes = static_cast<std::size_t>(tiles_.tile_bytes());
        owner_->check_global(
            *by_, where(), "copies a tile of", bytes, [&](global_memory& memory, const global_accessor&) {
                for_each_tile_chunk(
                    tiles_, position_, row_, [&](std::int64_t from, std::uint32_t, std::size_t inside) {
                        if (inside == 0) return;
                        memory.read(who, static_cast<const unsigned char*>(tiles_.data) + from, inside);
                    });
            });
    }

    cluster* owner_;
    std::uint32_t to_;
    std::uint32_t barrier_;
    tensor_tiles tiles_;
    int position_;
    int row_;
    const thread_state* by_;
    vector_clock issued_;  ///< what the thread knew when it asked, where global memory is watched
};

/// A tile that is written to global memory when its thread waits for it. No thread may access that memory before.
class tile_store : public deferred_operation {
public:
    tile_store(thread_state& thread, std::uint32_t from, const tensor_tiles& tiles, int position, int row,
               const site& where)
        : deferred_operation(thread.block, where),
          thread_(&thread),
          from_(from),
          tiles_(tiles),
          position_(position),
          row_(row) {
        watch([](global_memory& memory, const global_accessor& who, const void* to, const unsigned char*,
                 std::size_t bytes) { memory.begin_write(who, to, bytes); });
    }

    void read() override {
        shared_memory& memory = thread_->owner->memory(thread_->block);
        const auto bytes = static_cast<std::size_t>(tiles_.tile_bytes());
        tile_.assign(memory.data() + from_, memory.data() + from_ + bytes);
        memory.end_asynchronous_read(thread_->access(), from_, bytes);
    }
    void land() override {
        watch([](global_memory& memory, const global_accessor& who, const void* to, const unsigned char* from,
                 std::size_t bytes) { memory.end_write(who, to, from, bytes); });
        for_each_inside([&](unsigned char* to, std::uint32_t offset, std::size_t bytes) {
            std::memcpy(to, tile_.data() + offset, bytes);
        });
    }

private:
    template <class Function>
    void for_each_inside(Function f) const {
        for_each_tile_chunk(
            tiles_, position_, row_, [&](std::int64_t to, std::uint32_t offset, std::size_t inside) {
                // The map of a matrix that is written was made of a pointer that may be.
                auto* const data = static_cast<unsigned char*>(const_cast<void*>(tiles_.data));
                if (inside != 0) f(data + to, offset, inside);
            });
    }
    template <class Function>
    void watch(Function f) const {
        thread_->owner->check_global(
            *thread_, where(), "stores a tile of", static_cast<std::size_t>(tiles_.tile_bytes()),
            [&](global_memory& memory, global_accessor who) {
                who.kind = access_kind::asynchronous;
                for_each_inside([&](unsigned char* to, std::uint32_t offset, std::size_t bytes) {
                    f(memory, who, to, tile_.empty() ? nullptr : tile_.data() + offset, bytes);
                });
            });
    }

    thread_state* thread_;
    std::uint32_t from_;
    tensor_tiles tiles_;
    int position_;
    int row_;
    std::vector<unsigned char> tile_;
};

class barrier_operations : public memory_operations {
public:
    using memory_operations::memory_operations;

    // --- cluster

    [[nodiscard]] int block_in_cluster() const { return state().block; }
    void sync_cluster(const site& where = site::current()) const {
        meet_cluster(state().clock, "sync_cluster", where);
        cluster::next_epoch(state());
    }
    void sync_cluster_relaxed(const site& where = site::current()) const {
        meet_cluster(state().fenced, "sync_cluster_relaxed", where);
    }

    // --- barrier objects

    void init_barrier(shared_pointer<memory_barrier> at, int arrivals,
                      const site& where = site::current()) const {
        cluster& all = owner();
        if (arrivals < 1 || arrivals >= 1 << 20) {
            fail(where, kernel_violation::argument,
                 "arrivals is " + std::to_string(arrivals) + "; it must be from 1 to 2^20 - 1");
        }
        shared_memory& memory = own_memory();
        check_access(where, "initialises a barrier object of", 8, at.offset, [&] {
            memory.check_range(at.offset, 8, 8);
            memory.make_object(state().access(), at.offset, 8);
        });
        auto& objects = all.memory_barriers(state().block);
        memory_barrier_state it;
        it.offset = at.offset;
        it.expected = it.pending = static_cast<std::uint32_t>(arrivals);
        it.initialised_by = state().number;
        it.participant = all.next_copy_participant();
        it.known = it.known_fenced = it.completed = it.completed_fenced = vector_clock(all.participants());
        objects.push_back(std::move(it));
    }
    void fence_barrier_init() const { fence_asynchronous(); }
    void fence_asynchronous() const {
        owner().use_fences();
        state().fenced.join(state().clock);
        cluster::next_epoch(state());
        // What is written from now on is not fenced.
        for (memory_barrier_state& it : owner().memory_barriers(state().block)) {
            if (it.initialised_by == state().number) it.fenced = true;
        }
    }

    void arrive(shared_pointer<memory_barrier> at, const site& where = site::current()) const {
        arrive_at(find(at, state().block, where), 0, where);
    }
    void arrive_expect(shared_pointer<memory_barrier> at, int bytes,
                       const site& where = site::current()) const {
        arrive_at(find(at, state().block, where), bytes, where);
    }
    void arrive_remote(shared_pointer<memory_barrier> at, int block,
                       const site& where = site::current()) const {
        check_block(block, where);
        if (block != state().block) {
            const auto self = static_cast<std::size_t>(state().number);
            owner().check_present(block, state(), where);
            owner().note_reach(block, {self, state().clock[self], where});
        }
        arrive_at(find(at, block, where), 0, where);
    }
    void arrive_remote_ordinary(shared_pointer<memory_barrier> at, int block,
                                const site& where = site::current()) const {
        check_block(block, where);
        vector_clock& ordinary = find(at, block, where).known_ordinary;
        if (ordinary.empty()) ordinary = vector_clock(owner().participants());
        ordinary.join(state().clock);
        arrive_remote(at, block, where);
    }
    void wait_barrier(shared_pointer<memory_barrier> at, bool parity,
                      const site& where = site::current()) const {
        cluster& all = owner();
        // The object may move while others initialise more of them, so it is looked for each time.
        while (find(at, state().block, where).parity == parity) {
            find(at, state().block, where).waiting.push_back(state().number);
            all.wait(state(), "wait_barrier", where);
        }
        const memory_barrier_state& it = find(at, state().block, where);
        state().clock.join(it.completed);
        state().fenced.join(it.completed_fenced);
        if (!it.completed_ordinary.empty()) state().of_cluster.join(it.completed_ordinary);
    }

    // --- tiles

    void prefetch_map(const tensor_map& /*map*/) const {}

    template <class Value>
    void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position, int row,
                   shared_pointer<memory_barrier> barrier, const site& where = site::current()) const {
        begin_tile(to.offset, matrix_of(map, where), position, row, barrier, own_block(), where);
    }
    template <class Value>
    void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position, int row, int matrix,
                   shared_pointer<memory_barrier> barrier, const site& where = site::current()) const {
        begin_tile(to.offset, matrix_of(map, matrix, where), position, row, barrier, own_block(), where);
    }
    template <class Value>
    void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map, int position, int row,
                             shared_pointer<memory_barrier> barrier, std::uint16_t blocks,
                             const site& where = site::current()) const {
        begin_tile(to.offset, matrix_of(map, where), position, row, barrier, blocks, where);
    }
    template <class Value>
    void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map, int position, int row,
                             int matrix, shared_pointer<memory_barrier> barrier, std::uint16_t blocks,
                             const site& where = site::current()) const {
        begin_tile(to.offset, matrix_of(map, matrix, where), position, row, barrier, blocks, where);
    }

    // Caches are not simulated, so hints have no effect.
    template <class Value>
    void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position, int row, int matrix,
                   shared_pointer<memory_barrier> barrier, cache_hint /*hint*/,
                   const site& where = site::current()) const {
        copy_tile(to, map, position, row, matrix, barrier, where);
    }
    template <class Value>
    void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map, int position, int row,
                             int matrix, shared_pointer<memory_barrier> barrier, std::uint16_t blocks,
                             cache_hint /*hint*/, const site& where = site::current()) const {
        copy_tile_multicast(to, map, position, row, matrix, barrier, blocks, where);
    }

    template <class Value>
    void store_tile(const tensor_map& map, int position, int row, shared_pointer<Value> from,
                    const site& where = site::current()) const {
        begin_store(from.offset, matrix_of(map, where), position, row, where);
    }
    template <class Value>
    void store_tile(const tensor_map& map, int position, int row, int matrix, shared_pointer<Value> from,
                    const site& where = site::current()) const {
        begin_store(from.offset, matrix_of(map, matrix, where), position, row, where);
    }
    void commit_stores() const { state().store_groups.push_back(std::exchange(state().open_stores, {})); }
    template <int Pending>
    void wait_stores() const {
        wait_stores_read<Pending>();
        auto& groups = state().store_groups;
        while (groups.size() > static_cast<std::size_t>(Pending)) {
            for (const auto& store : groups.front().operations) store->land();
            groups.pop_front();
        }
    }
    /// Global memory is written when that is waited for, or when the thread leaves the kernel.
    template <int Pending>
    void wait_stores_read() const {
        auto& groups = state().store_groups;
        for (std::size_t i = 0; i + static_cast<std::size_t>(Pending) < groups.size(); ++i) {
            if (std::exchange(groups[i].read, true)) continue;
            for (const auto& store : groups[i].operations) store->read();
        }
    }

private:
    /// Waits for the threads of the cluster, and publishes the clock `known` to them.
    void meet_cluster(const vector_clock& known, const char* operation, const site& where) const {
        cluster& all = owner();
        block_barrier& it = all.cluster_barrier();
        it.expected = -1;
        it.come(known, &state().fenced);
        it.waiting.push_back(state().number);
        if (it.arrived == all.active_in_cluster()) all.release(it);
        all.wait(state(), operation, where);
    }

    void check_block(int block, const site& where) const {
        if (block >= 0 && block < shape().cluster_blocks) return;
        fail(where, kernel_violation::argument,
             "block is " + std::to_string(block) + "; it must be one of the cluster");
    }

    [[nodiscard]] std::uint16_t own_block() const { return static_cast<std::uint16_t>(1U << state().block); }

    /// What a map of one matrix says.
    [[nodiscard]] tensor_tiles matrix_of(const tensor_map& map, const site& where) const {
        const tensor_tiles tiles = tiles_of(map);
        if (tiles.matrices != 0) {
            fail(where, kernel_violation::argument,
                 "uses a map of several matrices without saying which of them");
        }
        return tiles;
    }
    /// What a map says of one of its matrices; those that do not exist have no rows.
    [[nodiscard]] tensor_tiles matrix_of(const tensor_map& map, int matrix, const site& where) const {
        tensor_tiles tiles = tiles_of(map);
        if (tiles.matrices == 0) {
            fail(where, kernel_violation::argument,
                 "says which matrix, of a map of one matrix without a number");
        }
        if (matrix < 0 || matrix >= tiles.matrices) {
            tiles.rows = 0;
        } else {
            tiles.data = static_cast<const unsigned char*>(tiles.data) + matrix * tiles.matrix_bytes;
        }
        return tiles;
    }

    /// Begins to copy a tile to the blocks whose bits are set.
    void begin_tile(std::uint32_t to, const tensor_tiles& tiles, int position, int row,
                    shared_pointer<memory_barrier> barrier, std::uint16_t blocks, const site& where) const {
        cluster& all = owner();
        check_dependencies("copies a tile of", where);
        check_tile_range(to, tiles, where);
        for (int block = 0; block < all.shape().cluster_blocks; ++block) {
            if ((blocks >> block & 1) == 0) continue;
            all.check_present(block, state(), where);
            const memory_barrier_state& object = find(barrier, block, where);
            if (!object.fenced) {
                fail(where, kernel_violation::missing_fence,
                     "copies to a barrier object whose initialisation no fence_barrier_init() followed",
                     static_cast<std::ptrdiff_t>(barrier.offset));
            }
            shared_memory& memory = all.memory(block);
            const auto bytes = static_cast<std::size_t>(tiles.tile_bytes());
            check_access(where, "begins to copy a tile of", bytes, to, [&] {
                memory.begin_copy(block == state().block ? state().access() : state().access_remote(), to,
                                  bytes);
            });
            all.defer(std::make_unique<tile_arrival>(all, block, to, barrier.offset, tiles, position, row,
                                                     state(), where));
        }
        if ((blocks >> all.shape().cluster_blocks) != 0) {
            fail(where, kernel_violation::argument, "copies a tile to blocks beyond the cluster");
        }
    }

    void begin_store(std::uint32_t from, const tensor_tiles& tiles, int position, int row,
                     const site& where) const {
        check_dependencies("stores a tile of", where);
        check_tile_range(from, tiles, where);
        shared_memory& memory = own_memory();
        const auto bytes = static_cast<std::size_t>(tiles.tile_bytes());
        check_access(where, "begins to store a tile of", bytes, from,
                     [&] { memory.begin_asynchronous_read(state().access(), from, bytes); });
        state().open_stores.operations.push_back(
            std::make_unique<tile_store>(state(), from, tiles, position, row, where));
    }

    void check_tile_range(std::uint32_t offset, const tensor_tiles& tiles, const site& where) const {
        cluster& all = owner();
        // Swizzled tiles repeat after 8 rows of their swizzle; others may begin at 128 bytes.
        const std::size_t alignment =
            tiles.swizzle_bytes == 0 ? 128 : static_cast<std::size_t>(tiles.swizzle_bytes) * 8;
        check_access(where, "places a tile of", static_cast<std::size_t>(tiles.tile_bytes()), offset, [&] {
            all.memory_of(state()).check_range(offset, static_cast<std::size_t>(tiles.tile_bytes()),
                                               alignment);
        });
    }

    memory_barrier_state& find(shared_pointer<memory_barrier> at, int block, const site& where) const {
        cluster& all = owner();
        shared_memory& memory = all.memory(block);
        check_access(where, "uses a barrier object of", 8, at.offset, [&] {
            memory.check_range(at.offset, 8, 8);
            memory.use_object(state().access(), at.offset, 8);
        });
        return all.memory_barrier_at(block, at.offset);
    }

    void arrive_at(memory_barrier_state& it, int bytes, const site& where) const {
        cluster& all = owner();
        if (bytes < 0 || bytes >= 1 << 20) {
            fail(where, kernel_violation::argument,
                 "bytes is " + std::to_string(bytes) + "; it must be from 0 to 2^20 - 1");
        }
        if (it.pending == 0) {
            fail(where, kernel_violation::argument,
                 "arrives at a barrier object at which as many have arrived in this phase as it expects",
                 static_cast<std::ptrdiff_t>(it.offset));
        }
        it.known.join(state().clock);
        it.known_fenced.join(state().fenced);
        cluster::next_epoch(state());
        it.bytes += bytes;
        --it.pending;
        all.complete_phase(it);
    }
};

}}  // namespace mp::simt::detail
