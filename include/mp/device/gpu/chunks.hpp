// SPDX-License-Identifier: MIT
/// \file
/// Accesses of up to 16 bytes, the most that a thread moves with one instruction, and how arrays are split
/// into them.
#pragma once

#include <mp/config.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Neighbouring elements that are loaded and stored together.
template <class Value, int Count>
struct alignas(sizeof(Value) * Count < 16 ? sizeof(Value) * Count : 16) chunk {
    static_assert((Count & (Count - 1)) == 0, "mp: a chunk has a power of two of elements");

    Value values[std::size_t{Count}];
};

/// The elements from an address on as one chunk, for Thread::load and Thread::store. The address must be
/// aligned as the chunk is.
template <int Count, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE const chunk<Value, Count>* chunk_at(const Value* first) {
    return reinterpret_cast<const chunk<Value, Count>*>(first);
}
template <int Count, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE chunk<Value, Count>* chunk_at(Value* first) {
    return reinterpret_cast<chunk<Value, Count>*>(first);
}

/// An array as some single elements at its begin, chunks, and some single elements at its end.
struct chunk_split {
    std::size_t head;    ///< elements before the first chunk
    std::size_t chunks;  ///< number of chunks
    std::size_t size;    ///< elements in all

    /// Elements that are handled one by one.
    template <int Count>
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t singles() const {
        return size - chunks * Count;
    }
    /// Index of the i-th of them.
    template <int Count>
    [[nodiscard]] MP_HOST_DEVICE constexpr std::size_t single(std::size_t i) const {
        return i < head ? i : i + chunks * Count;
    }
};

/// Elements of two arrays that are moved together: 16 bytes of the wider type.
template <class From, class To>
inline constexpr int chunk_count =
    static_cast<int>(16 / (sizeof(From) < sizeof(To) ? sizeof(To) : sizeof(From)));

/// The division of several arrays of one size into chunks of `Count` elements that are aligned in
/// all of them. Where no element is the first of an aligned chunk in all arrays, everything is handled one by
/// one. Null arrays, which are not gone through, do not count.
template <int Count, class... Values>
[[nodiscard]] chunk_split split_together(std::size_t size, const Values*... arrays) {
    constexpr std::size_t count = Count;
    for (std::size_t head = 0; head < count && head + count <= size; ++head) {
        const bool aligned =
            (... && (arrays == nullptr ||
                     reinterpret_cast<std::uintptr_t>(arrays + head) % alignof(chunk<Values, Count>) == 0));
        if (aligned) return {head, (size - head) / count, size};
    }
    return {size, 0, size};
}

/// As split_together(), for an array that is read and one that is written.
template <class From, class To>
[[nodiscard]] chunk_split split_into_chunks(const From* from, const To* to, std::size_t size) {
    return split_together<chunk_count<From, To>>(size, from, to);
}

/// Chunks that a thread loads before it looks at the first one, to keep enough of them on their way.
inline constexpr int chunks_in_flight = 4;

/// Most blocks of one launch. The hardware takes 2^31 - 1; what is more than this is left to the loop of each
/// thread.
inline constexpr std::size_t most_blocks = std::size_t{1} << 30;

}}  // namespace mp::detail
