// SPDX-License-Identifier: MIT
/// \file
/// The positions of integers in the order of their values, equal ones in the order in which they stand: a
/// least-significant-digit radix sort whose result depends on no schedule. Memory is the caller's.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/workspace.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A value and where it stands.
struct alignas(8) keyed_position {
    std::uint32_t key;
    std::uint32_t position;
};

inline constexpr int sort_bits = 8;
inline constexpr int sort_digits = 1 << sort_bits;
/// Threads of a block; thread d also keeps the books of digit d.
inline constexpr int sort_threads = sort_digits;
inline constexpr int sort_warps = sort_threads / simt::warp_size;
/// Elements of a block.
inline constexpr std::ptrdiff_t sort_tile = 8 * sort_threads;

[[nodiscard]] constexpr std::size_t sort_tiles(std::size_t count) {
    return (count + sort_tile - 1) / std::size_t{sort_tile};
}
/// Bytes of the workspace for sorting `count` positions.
[[nodiscard]] constexpr std::size_t sort_bytes(std::size_t count) {
    return 2 * workspace::aligned_size(count * sizeof(keyed_position)) +
           workspace::aligned_size(sort_tiles(count) * sort_digits * sizeof(std::uint32_t));
}

/// What the first pass reads: the integers, where those that are not from 0 to limit - 1 count as `limit`.
template <class Index>
struct sorted_indices {
    const Index* indices;
    std::uint32_t limit;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE keyed_position load(Thread thread, std::ptrdiff_t i) const {
        // As an unsigned number, a negative index is too large as well.
        const auto index = as<std::uint64_t>(thread.load(indices + i));
        return {index < limit ? static_cast<std::uint32_t>(index) : limit, static_cast<std::uint32_t>(i)};
    }
};
/// What the others read.
struct sorted_pairs {
    const keyed_position* pairs;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE keyed_position load(Thread thread, std::ptrdiff_t i) const {
        return thread.load(pairs + i);
    }
};

[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t sort_digit(std::uint32_t key, int shift) {
    return key >> shift & (sort_digits - 1);
}

/// How often each digit occurs in each tile: counts[tile][digit].
template <class Source>
struct digit_counts_kernel {
    static constexpr int threads = sort_threads;
    static constexpr std::size_t shared_bytes = sort_digits * sizeof(std::uint32_t);
    Source source;
    std::uint32_t* counts;
    std::ptrdiff_t size;
    int shift;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const simt::shared_pointer<std::uint32_t> room{};
        thread.store(room + thread.index(), 0U);
        thread.sync_block();
        const std::ptrdiff_t first = thread.block() * sort_tile;
        for (std::ptrdiff_t i = first + thread.index(); i < first + sort_tile && i < size; i += threads) {
            const std::uint32_t digit = sort_digit(source.load(thread, i).key, shift);
            static_cast<void>(thread.atomic_add(room + static_cast<int>(digit), 1U));
        }
        thread.sync_block();
        thread.store(counts + (thread.block() * sort_digits + thread.index()),
                     thread.load(room + thread.index()));
    }
};

/// Turns the counts into where the elements of each digit of each tile begin in the result. One block.
struct digit_offsets_kernel {
    static constexpr int threads = sort_threads;
    static constexpr std::size_t shared_bytes = sort_warps * sizeof(std::uint32_t);
    std::uint32_t* counts;
    std::ptrdiff_t tiles;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        std::uint32_t* const of_digit = counts + thread.index();
        std::uint32_t total = 0;
        for (std::ptrdiff_t tile = 0; tile < tiles; ++tile) {
            total += thread.load(of_digit + tile * sort_digits);
        }
        // The sum up to this digit in the warp, and the warps before.
        std::uint32_t sum = total;
        MP_UNROLL
        for (int distance = 1; distance < simt::warp_size; distance *= 2) {
            const std::uint32_t below = thread.shuffle_up(sum, distance);
            if (thread.lane() >= distance) sum += below;
        }
        const simt::shared_pointer<std::uint32_t> room{};
        if (thread.lane() == simt::warp_size - 1) thread.store(room + thread.warp(), sum);
        thread.sync_block();
        std::uint32_t next = sum - total;
        for (int warp = 0; warp < thread.warp(); ++warp) next += thread.load(room + warp);
        for (std::ptrdiff_t tile = 0; tile < tiles; ++tile) {
            std::uint32_t* const at = of_digit + tile * sort_digits;
            const std::uint32_t count = thread.load(at);
            thread.store(at, next);
            next += count;
        }
    }
};

/// Puts the elements of each tile where the offsets say, equal digits in the order in which they stand.
template <class Source>
struct scatter_kernel {
    static constexpr int threads = sort_threads;
    static constexpr std::size_t shared_bytes = std::size_t{sort_warps} * sort_digits * sizeof(std::uint32_t);
    Source source;
    const std::uint32_t* offsets;
    keyed_position* to;
    std::ptrdiff_t size;
    int shift;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        // [warp][digit]: how many elements of the warp have the digit, then where the first of them goes.
        const simt::shared_pointer<std::uint32_t> room{};
        std::uint32_t next = thread.load(offsets + (thread.block() * sort_digits + thread.index()));
        const std::ptrdiff_t first = thread.block() * sort_tile;
        for (std::ptrdiff_t begin = first; begin < first + sort_tile && begin < size; begin += threads) {
            MP_UNROLL
            for (int warp = 0; warp < sort_warps; ++warp) {
                thread.store(room + (warp * sort_digits + thread.index()), 0U);
            }
            thread.sync_block();
            const std::ptrdiff_t i = begin + thread.index();
            const bool exists = i < size;
            const keyed_position mine = exists ? source.load(thread, i) : keyed_position{0, 0};
            const std::uint32_t digit = sort_digit(mine.key, shift);
            // The lanes with the same digit, and which of them this one is.
            std::uint32_t peers = thread.ballot(exists);
            MP_UNROLL
            for (int bit = 0; bit < sort_bits; ++bit) {
                const bool set = (digit >> bit & 1U) != 0;
                const std::uint32_t votes = thread.ballot(set);
                peers &= set ? votes : ~votes;
            }
            const std::uint32_t below = (std::uint32_t{1} << thread.lane()) - 1;
            const std::uint32_t rank = ones_of(peers & below);
            const auto count = room + (thread.warp() * sort_digits + static_cast<int>(digit));
            if (exists && rank == 0) thread.store(count, ones_of(peers));
            thread.sync_block();
            MP_UNROLL
            for (int warp = 0; warp < sort_warps; ++warp) {
                const auto at = room + (warp * sort_digits + thread.index());
                const std::uint32_t of_warp = thread.load(at);
                thread.store(at, next);
                next += of_warp;
            }
            thread.sync_block();
            if (exists) thread.store(to + (thread.load(count) + rank), mine);
            thread.sync_block();
        }
    }

private:
    [[nodiscard]] MP_HOST_DEVICE static std::uint32_t ones_of(std::uint32_t word) {
#if MP_DEVICE_CODE
        return static_cast<std::uint32_t>(__popc(word));
#else
        return static_cast<std::uint32_t>(std::popcount(word));
#endif
    }
};

/// Memory for a sort.
struct sort_memory {
    keyed_position* first = nullptr;
    keyed_position* second = nullptr;
    std::uint32_t* counts = nullptr;

    sort_memory() = default;
    template <class Executor>
    sort_memory(std::string_view function, const Executor& exec, std::size_t count)
        : first(take_workspace<keyed_position>(function, exec, count)),
          second(take_workspace<keyed_position>(function, exec, count)),
          counts(take_workspace<std::uint32_t>(function, exec, sort_tiles(count) * sort_digits)) {}
};

/// Enqueues the sort of the positions of some indices, fewer than 2^32 and at least one, of which those that
/// are no number from 0 to limit - 1 come last with the key `limit`. Returns where the result will be.
template <class Executor, class Index>
const keyed_position* launch_sort(std::string_view function, const Executor& exec,
                                  std::span<const Index> indices, std::uint32_t limit,
                                  const sort_memory& memory) {
    const auto size = static_cast<std::ptrdiff_t>(indices.size());
    const auto tiles = static_cast<std::ptrdiff_t>(sort_tiles(indices.size()));
    const auto pass = [&](const auto& source, keyed_position* to, int shift) {
        using source_type = std::remove_cvref_t<decltype(source)>;
        using counting = digit_counts_kernel<source_type>;
        using scattering = scatter_kernel<source_type>;
        launch(function, exec, simt::launch_size{.blocks = tiles, .shared_bytes = counting::shared_bytes},
               counting{source, memory.counts, size, shift});
        launch(function, exec, simt::launch_size{.shared_bytes = digit_offsets_kernel::shared_bytes},
               digit_offsets_kernel{memory.counts, tiles});
        launch(function, exec, simt::launch_size{.blocks = tiles, .shared_bytes = scattering::shared_bytes},
               scattering{source, memory.counts, to, size, shift});
    };
    pass(sorted_indices<Index>{indices.data(), limit}, memory.first, 0);
    keyed_position* from = memory.first;
    keyed_position* to = memory.second;
    for (int shift = sort_bits; shift < static_cast<int>(std::bit_width(limit)); shift += sort_bits) {
        pass(sorted_pairs{from}, to, shift);
        std::swap(from, to);
    }
    return from;
}

}}  // namespace mp::detail
