// SPDX-License-Identifier: MIT
/// \file
/// Operations of a device thread with its warp, its block and memory: one instruction for values of up to 16 bytes;
/// asynchronous copies from global to shared memory; and, since sm_90, clusters of blocks, barrier objects in shared memory,
/// and the unit that copies tiles (TMA).
///
/// A ring of stages between a thread that copies and others that compute:
///
///     if (thread.index() == 0) {                        // once
///         thread.init_barrier(full, 1);
///         thread.fence_barrier_init();
///     }
///     thread.sync_block();
///     if (thread.index() == 0) {                        // producer
///         thread.arrive_expect(full, bytes_of_tile);
///         thread.copy_tile(stage, map, column, row, full);
///     }
///     thread.wait_barrier(full, parity);                // consumers; parity is false first and changes with every phase
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/device/compiler.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The type that one instruction loads or stores: as wide as a Value.
template <class Value>
struct word_of {
    static constexpr std::size_t bytes = sizeof(Value);
    static_assert(bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16,
                  "mp: a thread loads and stores values of 1, 2, 4, 8 or 16 bytes");
    using narrow = std::conditional_t<bytes == 1, unsigned char, unsigned short>;
    using wide = std::conditional_t<bytes == 8, uint2, uint4>;
    using type = std::conditional_t<bytes == 4, unsigned, std::conditional_t<(bytes < 4), narrow, wide>>;
};
template <class Value>
using word_for = typename word_of<Value>::type;

/// The shared memory that the launch asked for.
__device__ __forceinline__ unsigned char* shared_memory_begin() {
    extern __shared__ __align__(1024) unsigned char mp_shared_memory[];
    return mp_shared_memory;
}

/// Its address as instructions take it.
__device__ __forceinline__ unsigned shared_address(std::uint32_t offset) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared_memory_begin())) + offset;
}

template <class Value>
__device__ __forceinline__ Value from_word(word_for<Value> word) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    Value value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ word_for<Value> word_from(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    word_for<Value> word;
    __builtin_memcpy(&word, &value, sizeof value);
    return word;
}

template <class Value>
__device__ __forceinline__ Value load_words(const void* from) {
    return from_word<Value>(*static_cast<const word_for<Value>*>(from));
}

template <class Value>
__device__ __forceinline__ void store_words(void* to, const Value& value) {
    *static_cast<word_for<Value>*>(to) = word_from(value);
}

class device_basics {
public:
    // --- indices

    /// Number in the block.
    [[nodiscard]] __device__ __forceinline__ int index() const { return static_cast<int>(threadIdx.x); }
    /// Threads of the block.
    [[nodiscard]] __device__ __forceinline__ int threads() const { return static_cast<int>(blockDim.x); }
    /// Number in the warp.
    [[nodiscard]] __device__ __forceinline__ int lane() const {
        return static_cast<int>(threadIdx.x % static_cast<unsigned>(warp_size));
    }
    /// Number of the warp in the block.
    [[nodiscard]] __device__ __forceinline__ int warp() const {
        return static_cast<int>(threadIdx.x / static_cast<unsigned>(warp_size));
    }
    /// Number of the block in the grid.
    [[nodiscard]] __device__ __forceinline__ std::ptrdiff_t block() const { return blockIdx.x; }
    /// Blocks of the grid.
    [[nodiscard]] __device__ __forceinline__ std::ptrdiff_t blocks() const { return gridDim.x; }

    // --- the kernels before and after this one on the stream

    /// Waits until the kernels before this one on the stream have ended and what they wrote is seen. That is so from the
    /// beginning unless the launch is programmatic (cuda_stream::programmatic_launch): then each thread calls this before it
    /// touches global memory. The parameters, tensor maps among them, are there before.
    __device__ __forceinline__ void wait_dependencies() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
    }
    /// Lets the next kernel of the stream begin, if its launch is programmatic, where all blocks have called this or have
    /// ended. It decides about time only: that kernel waits for the end of this one.
    __device__ __forceinline__ void launch_dependents() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
        asm volatile("griddepcontrol.launch_dependents;");
#endif
    }

    // --- warp

    /// Waits for the lanes of the warp. What each of them did to memory before is seen by all after it.
    __device__ __forceinline__ void sync_warp() const { __syncwarp(); }

    /// The value that another lane passes. For values of any size; of no use as a barrier for memory.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value shuffle(Value value, int from_lane) const {
        return exchange(value, [from_lane](unsigned word) { return __shfl_sync(everyone, word, from_lane); });
    }
    /// From lane() ^ lane_mask.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value shuffle_xor(Value value, int lane_mask) const {
        return exchange(value,
                        [lane_mask](unsigned word) { return __shfl_xor_sync(everyone, word, lane_mask); });
    }
    /// From lane() + distance; the lane's own value where there is none.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value shuffle_down(Value value, int distance) const {
        return exchange(value, [distance](unsigned word) {
            return __shfl_down_sync(everyone, word, static_cast<unsigned>(distance));
        });
    }
    /// From lane() - distance; the lane's own value where there is none.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value shuffle_up(Value value, int distance) const {
        return exchange(value, [distance](unsigned word) {
            return __shfl_up_sync(everyone, word, static_cast<unsigned>(distance));
        });
    }
    /// A value that is the same in all lanes, in such a way that the compiler knows.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value uniform(Value value) const {
        return shuffle(value, 0);
    }
    /// Bit l is the vote of lane l.
    [[nodiscard]] __device__ __forceinline__ std::uint32_t ballot(bool vote) const {
        return __ballot_sync(everyone, vote);
    }
    [[nodiscard]] __device__ __forceinline__ bool any(bool vote) const {
        return __any_sync(everyone, vote) != 0;
    }
    [[nodiscard]] __device__ __forceinline__ bool all(bool vote) const {
        return __all_sync(everyone, vote) != 0;
    }

    // --- block

    /// Waits for all threads of the block that have not left the kernel. What each of them did to memory
    /// before is seen by all after it.
    __device__ __forceinline__ void sync_block() const { __syncthreads(); }
    /// Waits at one of the barriers 1 to 15 of the block until `threads` threads, a multiple of 32, have come
    /// there, those of arrive_barrier among them.
    __device__ __forceinline__ void sync_barrier(int barrier, int threads) const {
        asm volatile("bar.sync %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
    }
    /// Comes to a barrier without waiting for the others.
    __device__ __forceinline__ void arrive_barrier(int barrier, int threads) const {
        asm volatile("bar.arrive %0, %1;" : : "r"(barrier), "r"(threads) : "memory");
    }

    // --- memory: values of 1, 2, 4, 8 or 16 bytes at multiples of their size, by one instruction each

    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value load(shared_pointer<Value> from) const {
        return load_words<Value>(shared_memory_begin() + from.offset);
    }
    template <class Value>
    __device__ __forceinline__ void store(shared_pointer<Value> to, std::type_identity_t<Value> value) const {
        store_words(shared_memory_begin() + to.offset, value);
    }
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ std::remove_const_t<Value> load(const Value* from) const {
        return load_words<std::remove_const_t<Value>>(from);
    }
    template <class Value>
    __device__ __forceinline__ void store(Value* to, std::type_identity_t<Value> value) const {
        store_words(to, value);
    }
    /// Global memory that is not read again soon: it is not kept in the first cache.
    template <class Value>
    [[nodiscard]] __device__ __forceinline__ Value load_streaming(const Value* from) const {
        return from_word<Value>(__ldcs(reinterpret_cast<const word_for<Value>*>(from)));
    }
    /// Global memory that is not read again soon.
    template <class Value>
    __device__ __forceinline__ void store_streaming(Value* to, std::type_identity_t<Value> value) const {
        __stcs(reinterpret_cast<word_for<Value>*>(to), word_from(value));
    }

    // --- atomic operations, at a pointer or a shared_pointer: the value before. In no order with other accesses.

    template <class Place>
    __device__ __forceinline__ auto atomic_add(Place at, pointee<Place> value) const {
        return atomicAdd(generic(at), value);
    }
    template <class Place>
    __device__ __forceinline__ auto atomic_min(Place at, pointee<Place> value) const {
        return atomicMin(generic(at), value);
    }
    template <class Place>
    __device__ __forceinline__ auto atomic_max(Place at, pointee<Place> value) const {
        return atomicMax(generic(at), value);
    }
    template <class Place>
    __device__ __forceinline__ auto atomic_or(Place at, pointee<Place> value) const {
        return atomicOr(generic(at), value);
    }

    /// What this thread wrote to global memory before, or knows to be written, is seen by all threads of the
    /// device that see what it writes by an atomic operation after it, once they have such a fence, too.
    __device__ __forceinline__ void fence_device() const { __threadfence(); }

private:
    static constexpr unsigned everyone = 0xFFFF'FFFFU;

    template <class Value>
    __device__ __forceinline__ static Value* generic(Value* at) {
        return at;
    }
    template <class Value>
    __device__ __forceinline__ static Value* generic(shared_pointer<Value> at) {
        return reinterpret_cast<Value*>(shared_memory_begin() + at.offset);
    }

    /// Passes a value through a function of words.
    template <class Value, class Function>
    __device__ __forceinline__ static Value exchange(Value value, Function pass) {
        static_assert(std::is_trivially_copyable_v<Value>, "mp: lanes exchange values that are plain bytes");
        constexpr std::size_t count = (sizeof(Value) + 3) / 4;
        unsigned words[count] = {};
        __builtin_memcpy(words, &value, sizeof(Value));
#pragma unroll
        for (std::size_t i = 0; i < count; ++i) words[i] = pass(words[i]);
        __builtin_memcpy(&value, words, sizeof(Value));
        return value;
    }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define MP_NEEDS_SM_90(...) __trap()
#else
#define MP_NEEDS_SM_90(...) __VA_ARGS__
#endif

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MP_NEEDS_SM_90A(...) __trap()
#else
#define MP_NEEDS_SM_90A(...) __VA_ARGS__
#endif

#define MP_ARRIVE_REMOTE(Scope)                        \
    asm volatile(                                      \
        "{\n\t"                                        \
        ".reg .b32 remote;\n\t"                        \
        "mapa.shared::cluster.u32 remote, %0, %1;\n\t" \
        "mbarrier.arrive.release." Scope               \
        ".shared::cluster.b64 _, [remote];\n\t"        \
        "}"                                            \
        :                                              \
        : "r"(shared_address(at.offset)), "r"(block)   \
        : "memory")
// Operands of a copy of a tile: 0 to 3 are the shared memory, the map, the barrier object and the position; then follow those
// of `...`: the row, in maps of several matrices the number of the matrix, and the operands of `Extra`.
#define MP_COPY_TILE(Dimensions, Options, Coordinates, Extra, ...)                                          \
    asm volatile("cp.async.bulk.tensor." Dimensions                                                         \
                 ".shared::cluster.global.mbarrier::complete_tx::bytes" Options " [%0], [%1, {" Coordinates \
                 "}], [%2]" Extra ";"                                                                       \
                 :                                                                                          \
                 : "r"(shared_address(to.offset)), "l"(&map), "r"(shared_address(barrier.offset)),          \
                   "r"(position), __VA_ARGS__                                                               \
                 : "memory")

class device_barriers : public device_basics {
public:
    // --- asynchronous copies

    /// Begins to copy `Bytes` (4, 8 or 16) to shared memory; both addresses are multiples of that. Of the
    /// source only the first `valid_bytes` are read, and zeros take the place of the others. No thread may access
    /// the target, or change the source, until wait_copies() of this thread has returned; other threads see the
    /// copy after a barrier after that. Before sm_80 the copy is done at once.
    template <int Bytes, class Value>
    __device__ __forceinline__ void copy_async(shared_pointer<Value> to, const void* from,
                                               int valid_bytes = Bytes) const {
        static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "mp: copies have 4, 8 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        if constexpr (Bytes == 16) {  // past the first cache, which only these may leave out
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :
                         : "r"(shared_address(to.offset)), "l"(__cvta_generic_to_global(from)),
                           "r"(valid_bytes)
                         : "memory");
        } else {
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                         :
                         : "r"(shared_address(to.offset)), "l"(__cvta_generic_to_global(from)), "n"(Bytes),
                           "r"(valid_bytes)
                         : "memory");
        }
#else
        registers<Bytes / 4> words{};
        if (valid_bytes == Bytes) {
            words = load_words<registers<Bytes / 4>>(from);
        } else {
            for (int i = 0; i < valid_bytes; ++i) {
                words[i / 4] |= static_cast<unsigned>(static_cast<const unsigned char*>(from)[i])
                                << i % 4 * 8;
            }
        }
        store_words(shared_memory_begin() + to.offset, words);
#endif
    }
    /// Ends a group: of the copies that this thread has begun since the last group.
    __device__ __forceinline__ void commit_copies() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.commit_group;" : : : "memory");
#endif
    }
    /// Waits until all groups of this thread but the last `Pending` ones have landed.
    template <int Pending>
    __device__ __forceinline__ void wait_copies() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group %0;" : : "n"(Pending) : "memory");
#endif
    }

    // --- cluster

    /// Number of the block in its cluster.
    [[nodiscard]] __device__ __forceinline__ int block_in_cluster() const {
        unsigned number = 0;
        MP_NEEDS_SM_90(asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(number)));
        return static_cast<int>(number);
    }
    /// Waits for all threads of the cluster; what they did to memory before is seen by all after it.
    __device__ __forceinline__ void sync_cluster() const {
        MP_NEEDS_SM_90(
            asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire."
                         "aligned;" : : : "memory"));
    }
    /// As sync_cluster(), but of what they did to memory only the initialisation of barrier objects is seen, after
    /// fence_barrier_init(). It does not wait for memory.
    __device__ __forceinline__ void sync_cluster_relaxed() const {
        MP_NEEDS_SM_90(
            asm volatile("barrier.cluster.arrive.relaxed.aligned;\n\tbarrier.cluster.wait.acquire."
                         "aligned;" : : : "memory"));
    }

    // --- barrier objects

    /// Makes a barrier object, each phase of which ends when `arrivals` threads have arrived, and all bytes
    /// that they announced. By one thread; the others see it after a barrier, and copies after
    /// fence_barrier_init().
    __device__ __forceinline__ void init_barrier(shared_pointer<memory_barrier> at, int arrivals) const {
        MP_NEEDS_SM_90(
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(shared_address(at.offset)),
                         "r"(arrivals) : "memory"));
    }
    /// Lets asynchronous units and other blocks of the cluster see the barrier objects that this thread made.
    __device__ __forceinline__ void fence_barrier_init() const {
        MP_NEEDS_SM_90(asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory"));
    }
    /// Lets asynchronous units see what ordinary stores of this thread wrote to shared memory.
    __device__ __forceinline__ void fence_asynchronous() const {
        MP_NEEDS_SM_90(asm volatile("fence.proxy.async.shared::cta;" : : : "memory"));
    }
    /// Arrives once.
    __device__ __forceinline__ void arrive(shared_pointer<memory_barrier> at) const {
        MP_NEEDS_SM_90(asm volatile(
            "mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(at.offset)) : "memory"));
    }
    /// Announces bytes that copies will bring, and arrives once.
    __device__ __forceinline__ void arrive_expect(shared_pointer<memory_barrier> at, int bytes) const {
        MP_NEEDS_SM_90(asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(shared_address(at.offset)),
            "r"(bytes) : "memory"));
    }
    /// Arrives at the barrier object at the same offset of another block of the cluster. It orders what
    /// asynchronous units did that this thread has waited for, so that their memory may be copied to; what
    /// ordinary instructions read or wrote is ordered within this block only. (With the whole cluster for a
    /// scope the instruction would wait for all of the thread's accesses to reach the cache of the device.)
    __device__ __forceinline__ void arrive_remote(shared_pointer<memory_barrier> at, int block) const {
        MP_NEEDS_SM_90(MP_ARRIVE_REMOTE("cta"));
    }
    /// As arrive_remote(), where ordinary instructions, of this thread or of threads that it has synchronised with, wrote
    /// memory of this block that the other block copies to next: it orders these writes as well, and waits for all accesses
    /// to reach the cache.
    __device__ __forceinline__ void arrive_remote_ordinary(shared_pointer<memory_barrier> at,
                                                           int block) const {
        MP_NEEDS_SM_90(MP_ARRIVE_REMOTE("cluster"));
    }
    /// Waits until the phase of this parity has ended: false for the first phase, true for the second one,
    /// and so on. What those who arrived did before, and the bytes that arrived, are seen after it. (Waiting
    /// for true at a new object does not wait: the phase before the first one counts as ended.)
    __device__ __forceinline__ void wait_barrier(shared_pointer<memory_barrier> at, bool parity) const {
        MP_NEEDS_SM_90(
            asm volatile("{\n\t"
                         ".reg .pred done;\n\t"
                         "again:\n\t"
                         "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n\t"
                         "@!done bra again;\n\t"
                         "}" : : "r"(shared_address(at.offset)),
                         "r"(static_cast<unsigned>(parity)) : "memory"));
    }

    // --- tiles

    /// Fetches a map, which is a member of the kernel, so that the first copy does not wait for it.
    __device__ __forceinline__ void prefetch_map(const tensor_map& map) const {
        MP_NEEDS_SM_90(asm volatile("prefetch.tensormap [%0];" : : "l"(&map) : "memory"));
    }
    /// Starts an asynchronous copy of the tile of a matrix whose first element is `position` of row `row`;
    /// elements outside the matrix become zero. Called by one thread. The bytes of the whole tile arrive at the
    /// barrier object; no thread may access the target before then. The map is a member of the kernel.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, shared_pointer<memory_barrier> barrier) const {
        MP_NEEDS_SM_90(MP_COPY_TILE("2d", "", "%3, %4", "", "r"(row)));
    }
    /// As copy_tile(), into the shared memory of all blocks of the cluster whose bits are set, at the same
    /// offset, each with its own barrier object. In code for sm_90a only; elsewhere it stops the kernel.
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks) const {
        MP_NEEDS_SM_90A(MP_COPY_TILE("2d", ".multicast::cluster", "%3, %4", ", %5", "r"(row), "h"(blocks)));
    }
    /// Overloads for a map of several matrices, of which they copy from number `matrix`; outside of the matrices all is zero.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, int matrix,
                                              shared_pointer<memory_barrier> barrier) const {
        MP_NEEDS_SM_90(MP_COPY_TILE("3d", "", "%3, %4, %5", "", "r"(row), "r"(matrix)));
    }
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row, int matrix,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks) const {
        MP_NEEDS_SM_90A(MP_COPY_TILE("3d", ".multicast::cluster", "%3, %4, %5", ", %6", "r"(row), "r"(matrix),
                                     "h"(blocks)));
    }
    /// Overloads with a hint to the cache.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, int matrix, shared_pointer<memory_barrier> barrier,
                                              cache_hint hint) const {
        MP_NEEDS_SM_90(MP_COPY_TILE("3d", ".L2::cache_hint", "%3, %4, %5", ", %6", "r"(row), "r"(matrix),
                                    "l"(static_cast<std::uint64_t>(hint))));
    }
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row, int matrix,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks, cache_hint hint) const {
        MP_NEEDS_SM_90A(MP_COPY_TILE("3d", ".multicast::cluster.L2::cache_hint", "%3, %4, %5", ", %6, %7",
                                     "r"(row), "r"(matrix), "h"(blocks),
                                     "l"(static_cast<std::uint64_t>(hint))));
    }
    /// Starts an asynchronous store of a tile to global memory; elements outside the matrix are not written.
    /// Ordinary stores to the tile must be followed by fence_asynchronous() in their threads and by a barrier.
    /// The calling thread must wait for the store before it leaves the kernel.
    template <class Value>
    __device__ __forceinline__ void store_tile(const tensor_map& map, int position, int row,
                                               shared_pointer<Value> from) const {
        MP_NEEDS_SM_90(asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" : : "l"(&map),
            "r"(position), "r"(row), "r"(shared_address(from.offset)) : "memory"));
    }
    /// The same for a map of several matrices.
    template <class Value>
    __device__ __forceinline__ void store_tile(const tensor_map& map, int position, int row, int matrix,
                                               shared_pointer<Value> from) const {
        MP_NEEDS_SM_90(asm volatile(
            "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%1, %2, %3}], [%4];" : : "l"(&map),
            "r"(position), "r"(row), "r"(matrix), "r"(shared_address(from.offset)) : "memory"));
    }
    /// Ends a group of the stores of this thread.
    __device__ __forceinline__ void commit_stores() const {
        MP_NEEDS_SM_90(asm volatile("cp.async.bulk.commit_group;" : : : "memory"));
    }
    /// Waits until all groups but the last `Pending` ones are written.
    template <int Pending>
    __device__ __forceinline__ void wait_stores() const {
        MP_NEEDS_SM_90(asm volatile("cp.async.bulk.wait_group %0;" : : "n"(Pending) : "memory"));
    }
    /// Waits until their shared memory has been read, and may be written again.
    template <int Pending>
    __device__ __forceinline__ void wait_stores_read() const {
        MP_NEEDS_SM_90(asm volatile("cp.async.bulk.wait_group.read %0;" : : "n"(Pending) : "memory"));
    }
};

#undef MP_COPY_TILE
#undef MP_ARRIVE_REMOTE
#undef MP_NEEDS_SM_90
#undef MP_NEEDS_SM_90A

}}  // namespace mp::simt::detail
