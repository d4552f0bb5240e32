// SPDX-License-Identifier: MIT
/// \file
/// Tiles of matrices on their way between global and shared memory, on the host.
#pragma once

#include <mp/device/simt/host/cluster.hpp>
#include <mp/device/simt/host/tile_layouts.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// Calls f(place in global memory, offset in the tile, inside) for each 16 bytes of a tile, with how many of
/// them are inside of the matrix.
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

/// A tile that arrives in shared memory at some time, and at its barrier object.
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

/// A tile that is written to global memory when its thread waits for it. Nobody may touch that memory until
/// then.
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

}}  // namespace mp::simt::detail
