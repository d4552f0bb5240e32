// SPDX-License-Identifier: MIT
/// \file
/// Products of operands of 16 and of 8 bits by mma.sync: these become of 16 bits on their way from shared memory to registers.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/gemm/mma_policy.hpp>
#include <mp/device/gpu/gemm/narrow_stage.hpp>
#include <mp/device/gpu/gemm/swizzled_stage.hpp>
#include <mp/device/gpu/gemm/tiles.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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

/// A policy of multistage_gemm_kernel: mma_policy of 16 bits, except that one operand is stored in 8 bits in shared memory.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct mixed_policy : mma_policy<Tile, mixed_fragment<A, B>, mixed_fragment<A, B>, AKMajor, BKMajor> {
    using fragment = mixed_fragment<A, B>;
    using base = mma_policy<Tile, fragment, fragment, AKMajor, BKMajor>;
    using a_value = A;
    using b_value = B;
    using a_stage = mixed_stage<A, fragment, Tile::rows, AKMajor, Tile::threads>;
    using b_stage = mixed_stage<B, fragment, Tile::columns, BKMajor, Tile::threads>;

    struct reader {
        typename a_stage::reader a;
        typename b_stage::reader b;
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static reader make_reader(Thread thread, int warp_row,
                                                                            int warp_column) {
        return {a_stage::reader_of_a(thread, warp_row), b_stage::reader_of_b(thread, warp_column)};
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void load(Thread thread, simt::shared_pointer<A> a,
                                                     simt::shared_pointer<B> b, const reader& from,
                                                     int number,
                                                     typename base::template fragments<Thread>& to) {
        MP_UNROLL
        for (int i = 0; i < base::row_fragments; ++i)
            to.left[i] = a_stage::load_a(thread, a, from.a, i, number);
        MP_UNROLL
        for (int j = 0; j < base::column_fragments / 2; ++j)
            to.right[j] = b_stage::load_b_pair(thread, b, from.b, j, number);
    }
};

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
