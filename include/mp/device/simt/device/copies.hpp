// SPDX-License-Identifier: MIT
/// \file
/// Copies from global to shared memory that run beside the thread.
#pragma once

#include <mp/device/simt/device/basics.hpp>
#include <mp/device/simt/device/memory.hpp>
#include <mp/device/simt/shared_pointer.hpp>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

class device_copies : public device_basics {
public:
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
};

}}  // namespace mp::simt::detail
