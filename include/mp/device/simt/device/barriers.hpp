// SPDX-License-Identifier: MIT
/// \file
/// Copies from global to shared memory that run beside the thread; and from sm_90 on clusters of blocks, barrier
/// objects in shared memory, and the unit that copies tiles (TMA).
///
/// A ring of stages between a thread that copies and others that compute:
///
///     if (thread.index() == 0) {                        // once
///         thread.init_barrier(full, 1);
///         thread.fence_barrier_init();
///     }
///     thread.sync_block();
///     if (thread.index() == 0) {                        // who copies
///         thread.arrive_expect(full, bytes_of_tile);
///         thread.copy_tile(stage, map, column, row, full);
///     }
///     thread.wait_barrier(full, parity);                // who computes; parity changes with every phase,
///     from false
#pragma once

#include <mp/device/simt/device/basics.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>

#include <cstdint>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

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

class device_barriers : public device_basics {
public:
    // --- copies that run beside the thread

    /// Begins to copy `Bytes` (4, 8 or 16) to shared memory; both addresses are multiples of that. Of the
    /// source only the first `valid_bytes` are read, and zeros take the place of the others. Nobody may touch
    /// the target, or change the source, until wait_copies() of this thread says that the copy has landed;
    /// other threads see it after a barrier behind that. Before sm_80 the copy is done at once.
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
    /// The same, but of what they did to memory only the making of barrier objects is seen, behind
    /// fence_barrier_init(). Nobody waits for memory.
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
        MP_NEEDS_SM_90(
            asm volatile("{\n\t"
                         ".reg .b32 remote;\n\t"
                         "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                         "mbarrier.arrive.release.cta.shared::cluster.b64 _, [remote];\n\t"
                         "}" : : "r"(shared_address(at.offset)),
                         "r"(block) : "memory"));
    }
    /// The same where ordinary instructions, of this thread or of those that it has met, wrote memory of this block
    /// that the other one copies to next: it orders them, too, and waits for all accesses to reach the cache.
    __device__ __forceinline__ void arrive_remote_ordinary(shared_pointer<memory_barrier> at,
                                                           int block) const {
        MP_NEEDS_SM_90(
            asm volatile("{\n\t"
                         ".reg .b32 remote;\n\t"
                         "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t"
                         "}" : : "r"(shared_address(at.offset)),
                         "r"(block) : "memory"));
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
    /// Begins to copy the tile of a matrix whose first element is `position` of row `row`; what lies
    /// outside of the matrix becomes zero. By one thread. The bytes of the whole tile arrive at the barrier
    /// object; nobody may touch the target before they have. The map is a member of the kernel.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, shared_pointer<memory_barrier> barrier) const {
        MP_NEEDS_SM_90(
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                         "[%1, {%2, %3}], [%4];" : : "r"(shared_address(to.offset)),
                         "l"(&map), "r"(position), "r"(row), "r"(shared_address(barrier.offset)) : "memory"));
    }
    /// As copy_tile(), into the shared memory of all blocks of the cluster whose bits are set, at the same
    /// offset, each with its own barrier object. In code for sm_90a only; elsewhere it stops the kernel.
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks) const {
        MP_NEEDS_SM_90A(asm volatile(
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" : : "r"(shared_address(to.offset)),
            "l"(&map), "r"(position), "r"(row), "r"(shared_address(barrier.offset)), "h"(blocks) : "memory"));
    }
    /// The same two for a map of several matrices, from number `matrix` of them; outside of them all is zero.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, int matrix,
                                              shared_pointer<memory_barrier> barrier) const {
        MP_NEEDS_SM_90(asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
            "[%1, {%2, %3, %4}], [%5];" : : "r"(shared_address(to.offset)),
            "l"(&map), "r"(position), "r"(row), "r"(matrix), "r"(shared_address(barrier.offset)) : "memory"));
    }
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row, int matrix,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks) const {
        MP_NEEDS_SM_90A(asm volatile(
            "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" : : "r"(shared_address(to.offset)),
            "l"(&map), "r"(position), "r"(row), "r"(matrix), "r"(shared_address(barrier.offset)),
            "h"(blocks) : "memory"));
    }
    /// With a hint to the cache.
    template <class Value>
    __device__ __forceinline__ void copy_tile(shared_pointer<Value> to, const tensor_map& map, int position,
                                              int row, int matrix, shared_pointer<memory_barrier> barrier,
                                              cache_hint hint) const {
        MP_NEEDS_SM_90(
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::"
                         "cache_hint [%0], "
                         "[%1, {%2, %3, %4}], [%5], %6;" : : "r"(shared_address(to.offset)),
                         "l"(&map), "r"(position), "r"(row), "r"(matrix), "r"(shared_address(barrier.offset)),
                         "l"(static_cast<std::uint64_t>(hint)) : "memory"));
    }
    template <class Value>
    __device__ __forceinline__ void copy_tile_multicast(shared_pointer<Value> to, const tensor_map& map,
                                                        int position, int row, int matrix,
                                                        shared_pointer<memory_barrier> barrier,
                                                        std::uint16_t blocks, cache_hint hint) const {
        MP_NEEDS_SM_90A(
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" : : "r"(
                             shared_address(to.offset)),
                         "l"(&map), "r"(position), "r"(row), "r"(matrix), "r"(shared_address(barrier.offset)),
                         "h"(blocks), "l"(static_cast<std::uint64_t>(hint)) : "memory"));
    }
    /// Begins to write a tile to global memory, without what lies outside of the matrix. What ordinary stores
    /// wrote into it has to be behind fence_asynchronous() of their threads and a barrier. The thread has to
    /// wait for it before it leaves the kernel.
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

#undef MP_NEEDS_SM_90
#undef MP_NEEDS_SM_90A

}}  // namespace mp::simt::detail
