// SPDX-License-Identifier: MIT
/// \file
/// Products of operands of 16 and of 8 bits by mma.sync: these become of 16 bits on their way from shared memory to registers.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/packed2.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Two bytes as the lower ones of two words of 16 bits, whose upper ones are `Upper`.
template <std::uint32_t Upper>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t spread_bytes(std::uint32_t bytes) {
#if MP_DEVICE_CODE
    return __byte_perm(bytes, Upper, 0x4140);
#else
    return (bytes & 0xFFU) | (bytes & 0xFF00U) << 8 | Upper << 8 | Upper << 24;
#endif
}

/// Two numbers of 8 bits as two of 16, exactly.
template <class Wide, class Input>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::uint32_t widened_pair(const chunk<Input, 2>& x) {
    if constexpr (std::is_same_v<Input, std::int8_t>) {
        // Devices convert integers slowly.
        const std::uint32_t bytes = bit_cast<std::uint16_t>(x);
        if constexpr (std::is_same_v<Wide, half>) {
            // 1024 and, as an unsigned number, 128 more than it is; less 1152.
            const std::uint32_t shifted = spread_bytes<0x64>(bytes) ^ 0x0080'0080U;
            return (packed2<half>::from_bits(shifted) - packed2<half>::from_bits(0x6480'6480U)).bits();
        } else {
            // 128 and its seven bits, less 128, or 256 where it is negative.
            const std::uint32_t both = spread_bytes<0x43>(bytes);
            return (packed2<bfloat16>::from_bits(both & 0x437F'437FU) -
                    packed2<bfloat16>::from_bits(both & 0x4380'4380U))
                .bits();
        }
    } else if constexpr (std::is_same_v<Input, float8_e5m2> && std::is_same_v<Wide, half>) {
        return spread_bytes<0>(bit_cast<std::uint16_t>(x)) << 8;  // a half without its last bits
    } else {
        chunk<Wide, 2> wide;
        for (int i = 0; i < 2; ++i) wide.values[i] = Wide(x.values[i]);
        return bit_cast<std::uint32_t>(wide);
    }
}

/// As swizzled_stage, for elements that become `Wide`, exactly, when fragments are loaded: it has the k of a stage of Wide, in half
/// of its bytes. With KMajor rows have 32 bytes, and a lane loads pairs of neighbours in k.
template <class Input, class Wide, int Extent, bool KMajor, int Threads>
struct narrow_stage {
    static_assert(sizeof(Input) == 1 && sizeof(Wide) == 2);

    using input = Input;
    static constexpr bool k_major = KMajor;
    static constexpr int extent = Extent;
    static constexpr int threads = Threads;
    static constexpr int k = stage_k_bytes / static_cast<int>(sizeof(Wide));
    static constexpr int bytes = Extent * k;
    static constexpr int row_bytes = KMajor ? k : Extent < 128 ? Extent : 128;
    static constexpr int rows_of_panel = KMajor ? Extent : k;
    static constexpr int panel_bytes = rows_of_panel * row_bytes;
    static constexpr int chunks = bytes / 16;
    static constexpr int chunks_across = row_bytes / 16;
    static constexpr int chunk_elements = 16;
    static constexpr int chunks_of_thread = chunks / Threads;
    static constexpr int chunk_distance = Threads * 16;
    static constexpr bool interleaves = false;

    static_assert(bytes % 1024 == 0 && chunks % Threads == 0 && chunk_distance % 1024 == 0);

    using pointer = simt::shared_pointer<Input>;

    /// The element at a row of A (column of B) and k.
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer element(pointer stage, int outer, int p) {
        const int panel = KMajor ? 0 : outer / row_bytes;
        const int row = KMajor ? outer : p;
        const int position = KMajor ? p : outer % row_bytes;
        return {stage.offset + static_cast<std::uint32_t>(panel * panel_bytes) +
                simt::swizzled<row_bytes>(static_cast<std::uint32_t>(row * row_bytes + position))};
    }
    [[nodiscard]] MP_HOST_DEVICE static constexpr stage_chunk chunk_at(int number) {
        const int panel = number / (chunks_across * rows_of_panel);
        return {number / chunks_across % rows_of_panel,
                panel * row_bytes + number % chunks_across * chunk_elements};
    }
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer place_of(pointer stage, stage_chunk chunk) {
        return k_major ? element(stage, chunk.vector, chunk.position)
                       : element(stage, chunk.position, chunk.vector);
    }

    /// The first pair of a lane: its offset in a stage, or its row of A (column of B) and k.
    struct reader {
        std::uint32_t first;
        int outer;
        int p;
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static reader reader_of_a(Thread thread, int row) {
        const int outer = row + thread.lane() / 4;
        const int p = thread.lane() % 4 * 2;
        return {kept(element({}, outer, p).offset), outer, p};
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static reader reader_of_b(Thread thread, int column) {
        return reader_of_a(thread, column);
    }

    /// Fragment i of A, and product `number` of the stage.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static simt::registers<4> load_a(Thread thread,
                                                                                   pointer stage,
                                                                                   const reader& from, int i,
                                                                                   int number) {
        simt::registers<4> fragment;
        MP_UNROLL
        for (int n = 0; n < 4; ++n)
            fragment[n] = load_pair(thread, stage, from, i * 16 + n % 2 * 8, n / 2 * 8 + number * 16);
        return fragment;
    }
    /// Pair i of fragments of B.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static simt::registers<4> load_b_pair(Thread thread,
                                                                                        pointer stage,
                                                                                        const reader& from,
                                                                                        int i, int number) {
        simt::registers<4> fragments;
        MP_UNROLL
        for (int n = 0; n < 4; ++n)
            fragments[n] = load_pair(thread, stage, from, i * 16 + n / 2 * 8, n % 2 * 8 + number * 16);
        return fragments;
    }

private:
    /// Two neighbours in k, `rows` (a multiple of 8) and `along` k (8, 16 or 24) behind the lane's first ones.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static std::uint32_t load_pair(Thread thread, pointer stage,
                                                                                 const reader& from, int rows,
                                                                                 int along) {
        chunk<Input, 2> narrow;
        if constexpr (KMajor) {
            // Rows of 32 bytes are swizzled alike every 8; 16 of k are another chunk, 8 the other half of one.
            const std::uint32_t offset = (from.first ^ static_cast<std::uint32_t>(along & 16)) +
                                         static_cast<std::uint32_t>((along & 8) + rows * row_bytes);
            narrow = thread.load(
                simt::shared_pointer<const Input>{stage.offset + offset}.template as<chunk<Input, 2>>());
        } else {
            narrow.values[0] = thread.load(element(stage, from.outer + rows, from.p + along));
            narrow.values[1] = thread.load(element(stage, from.outer + rows, from.p + along + 1));
        }
        return widened_pair<Wide>(narrow);
    }
};

template <class Value>
inline constexpr bool is_wide_mixed_operand = std::is_same_v<Value, half> || std::is_same_v<Value, bfloat16>;
/// Numbers that are exact in half and in bfloat16.
template <class Value>
inline constexpr bool is_narrow_mixed_operand =
    std::is_same_v<Value, std::int8_t> || std::is_same_v<Value, float8_e4m3fn> ||
    std::is_same_v<Value, float8_e5m2>;

template <class A, class B>
inline constexpr bool is_mixed_pair = (is_wide_mixed_operand<A> && is_narrow_mixed_operand<B>) ||
                                      (is_wide_mixed_operand<B> && is_narrow_mixed_operand<A>);

/// The type of the fragments.
template <class A, class B>
using mixed_fragment = std::conditional_t<is_wide_mixed_operand<A>, A, B>;

template <class Input, class Wide, int Extent, bool KMajor, int Threads>
using mixed_stage =
    std::conditional_t<std::is_same_v<Input, Wide>, swizzled_stage<Wide, Extent, KMajor, Threads>,
                       narrow_stage<std::conditional_t<std::is_same_v<Input, Wide>, std::int8_t, Input>, Wide,
                                    Extent, KMajor, Threads>>;

/// A policy of multistage_gemm_kernel: fragments of 16 bits, of which those of one operand are stored in 8 bits in shared
/// memory.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct mixed_policy
    : fragment_policy<Tile, mixed_fragment<A, B>, mixed_fragment<A, B>,
                      mixed_stage<A, mixed_fragment<A, B>, Tile::rows, AKMajor, Tile::threads>,
                      mixed_stage<B, mixed_fragment<A, B>, Tile::columns, BKMajor, Tile::threads>> {};

/// Those for a left operand of a type. 16 rows of 8 bits are too few for the threads that copy them.
template <class A>
using mixed_tiles =
    std::conditional_t<is_wide_mixed_operand<A>,
                       tile_list<offered_tile<mma_tile_128, 100, 2>, offered_tile<mma_tile_64, 60, 2>,
                                 offered_tile<mma_tile_16, 25, 4, 3>>,
                       tile_list<offered_tile<mma_tile_128, 100, 2>, offered_tile<mma_tile_64, 60, 2>>>;

}}  // namespace mp::detail

namespace mp {

/// An operand of 16 bits (half or bfloat16) and one of 8 (std::int8_t, float8_e4m3fn, float8_e5m2), in either order.
template <class A, class B>
concept gpu_mixed_pair = detail::is_mixed_pair<std::remove_const_t<A>, std::remove_const_t<B>>;

}  // namespace mp
