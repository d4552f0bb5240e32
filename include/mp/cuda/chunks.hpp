// SPDX-License-Identifier: MIT
/// \file
/// Chunks for kernels that are not written in the warp-level vocabulary: accesses by plain pointers, and the
/// loop of an element-wise kernel. Host and device.
#pragma once

#include <mp/config.hpp>
#include <mp/detail/bits.hpp>
#include <mp/gpu/chunks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace mp::detail {

/// The machine words that a chunk is moved in.
template <std::size_t Bytes>
struct alignas(Bytes < 16 ? Bytes : 16) chunk_words {
    using word = std::conditional_t<(Bytes >= 4), std::uint32_t,
                                    std::conditional_t<(Bytes >= 2), std::uint16_t, std::uint8_t>>;
    word words[Bytes / sizeof(word)];
};

/// Stops the program on an access that a device would refuse. Devices do that themselves.
MP_HOST_DEVICE inline void require_alignment([[maybe_unused]] const void* address,
                                             [[maybe_unused]] std::size_t alignment) {
#if !MP_DEVICE_CODE
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) __builtin_trap();
#endif
}

/// The chunk at an address that is aligned as the chunk is.
template <class Chunk, class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE Chunk load_chunk(const Value* from) {
    using words = chunk_words<sizeof(Chunk)>;
    require_alignment(from, alignof(Chunk));
#if MP_DEVICE_CODE
    return bit_cast<Chunk>(*static_cast<const words*>(__builtin_assume_aligned(from, alignof(Chunk))));
#else
    words result;
    std::memcpy(&result, from, sizeof result);
    return bit_cast<Chunk>(result);
#endif
}

/// Writes a chunk to an address that is aligned as the chunk is.
template <class Chunk, class Value>
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_chunk(Value* to, const Chunk& values) {
    using words = chunk_words<sizeof(Chunk)>;
    require_alignment(to, alignof(Chunk));
#if MP_DEVICE_CODE
    *static_cast<words*>(__builtin_assume_aligned(to, alignof(Chunk))) = bit_cast<words>(values);
#else
    const words source = bit_cast<words>(values);
    std::memcpy(static_cast<void*>(to), &source, sizeof source);
#endif
}

/// to[i] = transform(from[i], i) for the share of one of `threads` threads: those chunks and single elements
/// whose number is `thread` modulo `threads`. The arrays may be the same one.
template <class From, class To, class Transform>
MP_HOST_DEVICE MP_ALWAYS_INLINE void transform_share(std::size_t thread, std::size_t threads,
                                                     const From* from, To* to, chunk_split split,
                                                     Transform&& transform) {
    constexpr int count = chunk_count<From, To>;
    using source_chunk = chunk<From, count>;
    using target_chunk = chunk<To, count>;
    const std::size_t singles = split.singles<count>();
    for (std::size_t i = thread; i < singles; i += threads) {
        const std::size_t index = split.single<count>(i);
        to[index] = transform(from[index], index);
    }
    for (std::size_t first = thread; first < split.chunks; first += chunks_in_flight * threads) {
        source_chunk loaded[chunks_in_flight] = {};
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < chunks_in_flight; ++i) {
            const std::size_t number = first + static_cast<std::size_t>(i) * threads;
            if (number < split.chunks) {
                loaded[i] = load_chunk<source_chunk>(from + (split.head + number * count));
            }
        }
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < chunks_in_flight; ++i) {
            const std::size_t number = first + static_cast<std::size_t>(i) * threads;
            if (number < split.chunks) {
                const std::size_t index = split.head + number * count;
                target_chunk result;
                for (int j = 0; j < count; ++j) {
                    result.values[j] = transform(loaded[i].values[j], index + static_cast<std::size_t>(j));
                }
                store_chunk(to + index, result);
            }
        }
    }
}

/// Threads of a block of an element-wise kernel.
inline constexpr unsigned elementwise_threads = 256;

/// Blocks for an array that is split as given: one round for each thread, unless the array is enormous.
template <int Count>
[[nodiscard]] unsigned elementwise_blocks(const chunk_split& split) {
    constexpr std::size_t share = std::size_t{elementwise_threads} * chunks_in_flight;
    const std::size_t items = std::max(split.chunks, split.singles<Count>());
    return static_cast<unsigned>(
        std::clamp(items / share + (items % share != 0 ? 1 : 0), std::size_t{1}, most_blocks));
}

}  // namespace mp::detail
