// SPDX-License-Identifier: MIT
/// \file
/// A block of threads on the host, for kernels that are written against a machine (see gemm_block.hpp): each
/// phase runs the threads one after another, in an order that changes from phase to phase. Every byte of
/// shared memory remembers who touched it and when, so that what would be a race on a device, or a read of
/// something that was never written, is found even where the result happens to be right.
#pragma once

#include <mp/cuda/chunks.hpp>
#include <mp/simt/launch_shape.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace host {

class block_state {
public:
    block_state(std::ptrdiff_t index, int threads, std::size_t shared_bytes, unsigned seed)
        : index_(index),
          bytes_(shared_bytes),
          memory_(new aligned_bytes[shared_bytes / 128 + 1]),
          order_(static_cast<std::size_t>(threads)),
          random_(seed) {
        std::iota(order_.begin(), order_.end(), 0);
        std::memset(shared(), 0x7F, shared_bytes);  // NaN in every format
    }

    [[nodiscard]] std::ptrdiff_t index() const { return index_; }
    [[nodiscard]] unsigned char* shared() { return memory_[0].bytes; }
    [[nodiscard]] const std::vector<int>& shuffled() {
        std::shuffle(order_.begin(), order_.end(), random_);
        return order_;
    }
    [[nodiscard]] int threads() const { return static_cast<int>(order_.size()); }

    /// What went wrong first; empty if nothing did.
    [[nodiscard]] const std::string& violation() const { return violation_; }

    /// Makes the barriers do nothing, to see that races are found.
    void ignore_barriers() { barriers_count_ = false; }
    void barrier() {
        if (barriers_count_) ++block_epoch_;
    }
    void warp_barrier() {
        if (barriers_count_) ++warp_epoch_;
    }

    void note_read(int thread, const void* address, std::size_t size) {
        note(thread, address, size, [&](access& byte) {
            if (byte.write.thread < 0) fail("reads what nobody wrote", thread, address);
            if (conflict(byte.write, thread)) fail("reads what another thread writes", thread, address);
            moment& read = byte.read;
            if (read.block_epoch != block_epoch_ || read.thread < 0) {
                read = now(thread);
                byte.warps = 1u << (thread / 32);
                byte.several = false;
            } else {
                byte.several = byte.several || read.thread != thread;
                byte.warps |= 1u << (thread / 32);
                read = now(thread);
            }
        });
    }
    void note_write(int thread, const void* address, std::size_t size) {
        note(thread, address, size, [&](access& byte) {
            if (conflict(byte.write, thread)) fail("writes what another thread writes", thread, address);
            if (byte.read.thread >= 0 && byte.read.block_epoch == block_epoch_) {
                const bool own_warp = byte.warps == 1u << (thread / 32);
                const bool alone = !byte.several && byte.read.thread == thread;
                const bool ordered = own_warp && byte.read.warp_epoch < warp_epoch_;
                if (!alone && !ordered) fail("writes what another thread reads", thread, address);
            }
            byte.write = now(thread);
        });
    }

private:
    struct alignas(128) aligned_bytes {
        unsigned char bytes[128];
    };
    struct moment {
        int thread = -1;
        unsigned block_epoch = 0;
        unsigned warp_epoch = 0;
    };
    struct access {
        moment write;
        moment read;
        std::uint32_t warps = 0;  // that read since the last barrier
        bool several = false;     // threads did
    };

    [[nodiscard]] moment now(int thread) const { return {thread, block_epoch_, warp_epoch_}; }
    [[nodiscard]] bool conflict(const moment& other, int thread) const {
        if (other.thread < 0 || other.thread == thread || other.block_epoch != block_epoch_) return false;
        return other.thread / 32 != thread / 32 || other.warp_epoch == warp_epoch_;
    }
    template <class Function>
    void note(int thread, const void* address, std::size_t size, Function function) {
        const auto begin = static_cast<std::size_t>(static_cast<const unsigned char*>(address) - shared());
        if (begin + size > bytes_ || begin + size < begin) {
            fail("leaves shared memory", thread, address);
            return;
        }
        if (accesses_.empty()) accesses_.resize(bytes_);
        for (std::size_t i = begin; i < begin + size; ++i) function(accesses_[i]);
    }
    void fail(const char* what, int thread, const void* address) {
        if (!violation_.empty()) return;
        violation_ = "block " + std::to_string(index_) + ", thread " + std::to_string(thread) + " " + what +
                     ", at byte " + std::to_string(static_cast<const unsigned char*>(address) - shared()) +
                     " of shared memory";
    }

    std::ptrdiff_t index_;
    std::size_t bytes_;
    std::unique_ptr<aligned_bytes[]> memory_;
    std::vector<int> order_;
    std::mt19937 random_;
    std::vector<access> accesses_;
    unsigned block_epoch_ = 0;
    unsigned warp_epoch_ = 0;
    bool barriers_count_ = true;
    std::string violation_;
};

/// The machine that a kernel's body is given.
template <int Threads>
struct machine {
    struct thread {
        int index;
        block_state* block;

        template <class Chunk, class Value>
        [[nodiscard]] Chunk load(const Value* from) const {
            block->note_read(index, from, sizeof(Chunk));
            return mp::detail::load_chunk<Chunk>(from);
        }
        template <class Value, class Chunk>
        void store(Value* to, const Chunk& values) const {
            block->note_write(index, to, sizeof(Chunk));
            mp::detail::store_chunk(to, values);
        }
    };

    /// States that hold nothing useful at first, as registers.
    template <class State>
    struct per_thread {
        static_assert(std::is_trivially_copyable_v<State>);
        std::vector<State> states = std::vector<State>(Threads);
        per_thread() { std::memset(static_cast<void*>(states.data()), 0x7F, Threads * sizeof(State)); }
    };

    block_state* block;

    template <class State, class Function>
    void each_thread(per_thread<State>& states, Function function) const {
        for (const int i : block->shuffled()) {
            function(states.states[static_cast<std::size_t>(i)], thread{i, block});
        }
    }
    void barrier() const { block->barrier(); }
    void warp_barrier() const { block->warp_barrier(); }
    [[nodiscard]] unsigned char* shared_memory() const { return block->shared(); }
    [[nodiscard]] std::ptrdiff_t index() const { return block->index(); }
};

}  // namespace host
