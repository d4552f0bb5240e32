// SPDX-License-Identifier: MIT
/// \file
/// Products of stages by mma.sync, from swizzled shared memory.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/swizzled_stage.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether the sums of 8-bit products have so few bits that they are added to a float every 128 products: the
/// tensor cores of sm_89 keep 13 fraction bits. (mma.sync of sm_90 and sm_100 multiplies them as half, and
/// that of sm_120 keeps 25 bits.)
template <class Input, int Capability>
inline constexpr bool promotes_sums = is_float8<Input> && Capability == 89;

/// Whether mma.sync multiplies 8 bits as half, which takes registers.
[[nodiscard]] MP_HOST_DEVICE constexpr bool multiplies_float8_as_half(int capability) {
    return capability >= 90 && capability < 120;
}

/// Products of fragments of A and B from these stages: each warp multiplies 16 x 8 sums at a time, with 32 bytes of k.
template <class Tile, class A, class B, class AStage, class BStage>
struct fragment_policy {
    using tile = Tile;
    using a_stage = AStage;
    using b_stage = BStage;
    using a_value = typename a_stage::input;
    using b_value = typename b_stage::input;

    static_assert(sizeof(A) == sizeof(B));

    static constexpr int row_fragments = Tile::warp_rows / simt::mma_rows;
    static constexpr int column_fragments = Tile::warp_columns / simt::mma_columns;
    static constexpr int resident_blocks = (std::max)(1, 256 / Tile::threads);

    using sum_type = simt::mma_sum<A>;

    /// cp.async begins with sm_80, as do bfloat16 and these integers; numbers of 8 bits with sm_89.
    template <class Thread>
    static constexpr bool runs_on = Thread::capability >= (is_float8<A> ? 89 : 80);

    template <class Thread>
    struct sums {
        static constexpr bool promotes = promotes_sums<A, Thread::capability>;

        sum_type of[std::size_t{row_fragments}][std::size_t{column_fragments}][4];
        float promoted[std::size_t{promotes ? row_fragments : 1}]
                      [std::size_t{promotes ? column_fragments : 1}][4];
    };

    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void clear(Thread, sums<Thread>& sum) {
        sum = {};
    }

    /// Products of fragments in a stage.
    static constexpr int products = stage_k_bytes / simt::mma_k_bytes;

    template <class Thread>
    static constexpr bool loads_ahead = sizeof(A) != 1 || !multiplies_float8_as_half(Thread::capability);

    /// What a lane reads where: computed once.
    struct reader {
        typename a_stage::reader a;
        typename b_stage::reader b;
    };
    template <class>
    struct fragments {
        simt::registers<4> left[std::size_t{row_fragments}];
        simt::registers<4> right[std::size_t{column_fragments / 2}];
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static reader make_reader(Thread thread, int warp_row,
                                                                            int warp_column) {
        return {a_stage::reader_of_a(thread, warp_row), b_stage::reader_of_b(thread, warp_column)};
    }

    /// Loads the fragments of product `number` of a stage.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void load(Thread thread, simt::shared_pointer<a_value> a,
                                                     simt::shared_pointer<b_value> b, const reader& from,
                                                     int number, fragments<Thread>& to) {
        MP_UNROLL
        for (int i = 0; i < row_fragments; ++i) to.left[i] = a_stage::load_a(thread, a, from.a, i, number);
        MP_UNROLL
        for (int j = 0; j < column_fragments / 2; ++j) {
            to.right[j] = b_stage::load_b_pair(thread, b, from.b, j, number);
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sums>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void multiply(Thread thread, const fragments<Thread>& of,
                                                         Sums& sum) {
        MP_UNROLL
        for (int i = 0; i < row_fragments; ++i) {
            MP_UNROLL
            for (int j = 0; j < column_fragments; ++j) {
                const simt::registers<2> column = {
                    {of.right[j / 2][j % 2 * 2], of.right[j / 2][j % 2 * 2 + 1]}};
                thread.template multiply_add<A, B>(sum.of[i][j], of.left[i], column);
            }
        }
    }

    /// `steps` stages have been multiplied since the sums were zero.
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void end_step(Thread, [[maybe_unused]] int steps,
                                                         [[maybe_unused]] bool last,
                                                         [[maybe_unused]] sums<Thread>& sum) {
        if constexpr (sums<Thread>::promotes) {
            constexpr int interval = 128 / a_stage::k;
            if (steps % interval != 0 && !last) return;
            MP_UNROLL
            for (int i = 0; i < row_fragments; ++i) {
                MP_UNROLL
                for (int j = 0; j < column_fragments; ++j) {
                    MP_UNROLL
                    for (int n = 0; n < 4; ++n) {
                        sum.promoted[i][j][n] = float_add(sum.promoted[i][j][n], sum.of[i][j][n]);
                        sum.of[i][j][n] = 0;
                    }
                }
            }
        }
    }

    /// All stages have been multiplied.
    template <class Thread>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void finish(Thread, [[maybe_unused]] sums<Thread>& sum) {
        if constexpr (sums<Thread>::promotes) {
            MP_UNROLL
            for (int i = 0; i < row_fragments; ++i) {
                MP_UNROLL
                for (int j = 0; j < column_fragments; ++j) {
                    MP_UNROLL
                    for (int n = 0; n < 4; ++n) sum.of[i][j][n] = sum.promoted[i][j][n];
                }
            }
        }
    }

    /// Row of sum n of a fragment, among its 16 rows.
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static constexpr int row_of_sum(int lane, int n) {
        const int row = simt::mma_c_coordinate(lane, n).row;
        return a_stage::interleaves ? row % 8 * 2 + row / 8 : row;
    }
    /// Column of sum n of the j-th fragment, among those of the warp.
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static constexpr int column_of_sum(int lane, int j, int n) {
        const int column = simt::mma_c_coordinate(lane, n).position;
        return b_stage::interleaves ? j / 2 * 16 + column * 2 + j % 2 : j * simt::mma_columns + column;
    }

    /// Stores rows 16 i to 16 i + 15 of the warp's sums, integers as their bits.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sums>
    MP_HOST_DEVICE MP_KERNEL_INLINE static void store_epilogue_tile(Thread thread, const Sums& sum, int i,
                                                                    simt::shared_pointer<float> epilogue_tile,
                                                                    int pitch) {
        using pair = chunk<float, 2>;
        using quarter = chunk<float, 4>;
        const auto as_float = [](sum_type value) { return bit_cast<float>(value); };
        MP_UNROLL
        for (int j = 0; j < column_fragments; ++j) {
            if (b_stage::interleaves && j % 2 != 0) continue;
            MP_UNROLL
            for (int n = 0; n < 4; n += 2) {
                const auto to = epilogue_tile +
                                (row_of_sum(thread.lane(), n) * pitch + column_of_sum(thread.lane(), j, n));
                const sum_type(&v)[4] = sum.of[i][j];
                if constexpr (b_stage::interleaves) {
                    const sum_type(&w)[4] = sum.of[i][j + 1];
                    thread.store(
                        to.template as<quarter>(),
                        quarter{{as_float(v[n]), as_float(w[n]), as_float(v[n + 1]), as_float(w[n + 1])}});
                } else {
                    thread.store(to.template as<pair>(), pair{{as_float(v[n]), as_float(v[n + 1])}});
                }
            }
        }
    }
};

/// A policy of multistage_gemm_kernel: fragments are what lies in shared memory.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct mma_policy : fragment_policy<Tile, A, B, swizzled_stage<A, Tile::rows, AKMajor, Tile::threads>,
                                    swizzled_stage<B, Tile::columns, BKMajor, Tile::threads>> {};

}}  // namespace mp::detail
