// SPDX-License-Identifier: MIT
/// \file
/// What a thread of a device does with its warp, its block and memory: one instruction for values of up to 16 bytes.
#pragma once

#include <mp/config.hpp>
#include <mp/device/simt/device/compiler.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::simt::detail { inline namespace MP_ISA_NAMESPACE {

/// The type that one instruction loads or stores: Bytes wide.
template <std::size_t Bytes>
struct word_of {
    static_assert(Bytes == 16, "mp: a thread loads and stores values of 1, 2, 4, 8 or 16 bytes");
};
template <>
struct word_of<1> {
    using type = unsigned char;
};
template <>
struct word_of<2> {
    using type = unsigned short;
};
template <>
struct word_of<4> {
    using type = unsigned;
};
template <>
struct word_of<8> {
    using type = uint2;
};
template <>
struct word_of<16> {
    using type = uint4;
};

template <class Value>
using word_for = typename word_of<sizeof(Value)>::type;

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
__device__ __forceinline__ Value load_words(const void* from) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    const word_for<Value> word = *static_cast<const word_for<Value>*>(from);
    Value value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ void store_words(void* to, const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>, "mp: a thread reads and writes plain bytes");
    word_for<Value> word;
    __builtin_memcpy(&word, &value, sizeof value);
    *static_cast<word_for<Value>*>(to) = word;
}

template <class Value>
__device__ __forceinline__ Value load_past_cache(const void* from) {
    const word_for<Value> word = __ldcs(static_cast<const word_for<Value>*>(from));
    Value value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}

template <class Value>
__device__ __forceinline__ void store_past_cache(void* to, const Value& value) {
    word_for<Value> word;
    __builtin_memcpy(&word, &value, sizeof value);
    __stcs(static_cast<word_for<Value>*>(to), word);
}

class device_basics {
public:
    // --- who

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
        return load_past_cache<Value>(from);
    }
    /// Global memory that is not read again soon.
    template <class Value>
    __device__ __forceinline__ void store_streaming(Value* to, std::type_identity_t<Value> value) const {
        store_past_cache(to, value);
    }

    // --- atomic operations: the value before. In no order with other accesses.

    template <class Value>
    __device__ __forceinline__ Value atomic_add(Value* at, std::type_identity_t<Value> value) const {
        return atomicAdd(at, value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_min(Value* at, std::type_identity_t<Value> value) const {
        return atomicMin(at, value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_max(Value* at, std::type_identity_t<Value> value) const {
        return atomicMax(at, value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_or(Value* at, std::type_identity_t<Value> value) const {
        return atomicOr(at, value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_add(shared_pointer<Value> at,
                                                std::type_identity_t<Value> value) const {
        return atomicAdd(generic<Value>(at), value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_min(shared_pointer<Value> at,
                                                std::type_identity_t<Value> value) const {
        return atomicMin(generic<Value>(at), value);
    }
    template <class Value>
    __device__ __forceinline__ Value atomic_max(shared_pointer<Value> at,
                                                std::type_identity_t<Value> value) const {
        return atomicMax(generic<Value>(at), value);
    }

    /// What this thread wrote to global memory before, or knows to be written, is seen by all threads of the
    /// device that see what it writes by an atomic operation after it, once they have such a fence, too.
    __device__ __forceinline__ void fence_device() const { __threadfence(); }

private:
    static constexpr unsigned everyone = 0xFFFF'FFFFU;

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

}}  // namespace mp::simt::detail
