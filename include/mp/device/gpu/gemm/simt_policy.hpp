// SPDX-License-Identifier: MIT
/// \file
/// Products of stages by ordinary instructions, for types that the tensor cores of a device do not take.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/wmma_policy.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// An policy of multistage_gemm_kernel: right everywhere, but slow. Of each 16 x 16 sums lane l has the 8 of row l
/// / 2 that begin at column l % 2 * 8. Products are added in ascending k by fused multiply-adds: the bits
/// of mp::gemm on mp::cpu with accumulation::ordered.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct simt_policy {
    using tile = Tile;
    using a_value = A;
    using b_value = B;
    using a_stage = padded_stage<A, Tile::rows, AKMajor, Tile::threads>;
    using b_stage = padded_stage<B, Tile::columns, BKMajor, Tile::threads>;

    static constexpr int row_fragments = Tile::warp_rows / 16;
    static constexpr int column_fragments = Tile::warp_columns / 16;
    static constexpr int resident_blocks = (std::max)(1, 256 / Tile::threads);

    template <class Thread>
    static constexpr bool runs_on = true;

    template <class>
    struct sums {
        float of[std::size_t{row_fragments}][std::size_t{column_fragments}][8];
    };

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Thread, sums<Thread>& sum) {
        sum = {};
    }

    static constexpr int products = a_stage::k;

    template <class>
    static constexpr bool loads_ahead = true;

    struct reader {
        int row;
        int column;
    };
    template <class>
    struct fragments {
        float left[std::size_t{row_fragments}];
        float right[std::size_t{column_fragments}][8];
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static reader make_reader(Thread thread, int warp_row,
                                                                            int warp_column) {
        return {warp_row + thread.lane() / 2, warp_column + thread.lane() % 2 * 8};
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void load(Thread thread, simt::shared_pointer<A> a,
                                                     simt::shared_pointer<B> b, const reader& from,
                                                     int number, fragments<Thread>& to) {
        for (int i = 0; i < row_fragments; ++i) {
            to.left[i] = static_cast<float>(thread.load(a_stage::element(a, from.row + i * 16, number)));
        }
        for (int j = 0; j < column_fragments; ++j) {
            for (int n = 0; n < 8; ++n) {
                to.right[j][n] =
                    static_cast<float>(thread.load(b_stage::element(b, from.column + j * 16 + n, number)));
            }
        }
    }

    template <class Thread, class Sums>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void multiply(Thread, const fragments<Thread>& of, Sums& sum) {
        for (int j = 0; j < column_fragments; ++j) {
            for (int n = 0; n < 8; ++n) {
                for (int i = 0; i < row_fragments; ++i) {
                    float& total = sum.of[i][j][n];
                    total = float_multiply_add(of.left[i], of.right[j][n], total);
                }
            }
        }
    }

    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void end_step(Thread, int /*steps*/, bool /*last*/,
                                                         sums<Thread>&) {}
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void finish(Thread, sums<Thread>&) {}

    /// Stores rows 16 i to 16 i + 15 of the warp's sums.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sums>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void store_epilogue_tile(Thread thread, const Sums& sum, int i,
                                                                    simt::shared_pointer<float> epilogue_tile,
                                                                    int pitch) {
        using quarter = chunk<float, 4>;
        for (int j = 0; j < column_fragments; ++j) {
            const float(&v)[8] = sum.of[i][j];
            const auto to = epilogue_tile + (thread.lane() / 2 * pitch + j * 16 + thread.lane() % 2 * 8);
            thread.store(to.template as<quarter>(), quarter{{v[0], v[1], v[2], v[3]}});
            thread.store((to + 4).template as<quarter>(), quarter{{v[4], v[5], v[6], v[7]}});
        }
    }
};

}}  // namespace mp::detail
