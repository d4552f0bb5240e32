// SPDX-License-Identifier: MIT
/// \file
/// Products of stages by nvcuda::wmma, on every architecture, and by ordinary instructions, for types that the tensor cores
/// of a device do not take.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// `Extent` rows of A (columns of B) and 64 bytes of k, in the order of the elements in memory. Rows are
/// 16 bytes longer than they need be: then the eight rows from which a fragment is loaded at a time begin 4
/// banks apart modulo 32, and take all 32 banks once. (The loads of wmma cannot follow a swizzle.)
template <class Input, int Extent, bool KMajor, int Threads>
struct padded_stage {
    using input = Input;
    static constexpr bool k_major = KMajor;
    static constexpr int extent = Extent;
    static constexpr int threads = Threads;
    static constexpr int size = static_cast<int>(sizeof(Input));
    static constexpr int k = stage_k_bytes / size;
    static constexpr int rows = KMajor ? Extent : k;
    static constexpr int length = KMajor ? k : Extent;
    static constexpr int chunk_elements = 16 / size;
    static constexpr int pitch = length + chunk_elements;
    static constexpr int bytes = rows * pitch * size;
    static constexpr int chunks_across = length / chunk_elements;
    static constexpr int chunks = rows * chunks_across;
    static constexpr int chunks_of_thread = chunks / Threads;
    static constexpr int chunk_distance = Threads / chunks_across * pitch * size;

    static_assert(bytes % 128 == 0 && chunks % Threads == 0 && Threads % chunks_across == 0);

    using pointer = simt::shared_pointer<Input>;

    /// The element at a row of A (column of B) and k.
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer element(pointer stage, int outer, int p) {
        return stage + (KMajor ? outer * pitch + p : p * pitch + outer);
    }

    [[nodiscard]] MP_HOST_DEVICE static constexpr stage_chunk chunk_at(int number) {
        return {number / chunks_across, number % chunks_across * chunk_elements};
    }
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer place_of(pointer stage, stage_chunk chunk) {
        return stage + (chunk.vector * pitch + chunk.position);
    }
};

/// An policy of multistage_gemm_kernel. Each warp multiplies 16 x 16 sums at a time.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct wmma_policy {
    static_assert(std::is_same_v<A, B>, "mp: the operands of wmma are of one type");

    using tile = Tile;
    using a_value = A;
    using b_value = B;
    using a_stage = padded_stage<A, Tile::rows, AKMajor, Tile::threads>;
    using b_stage = padded_stage<B, Tile::columns, BKMajor, Tile::threads>;

    static constexpr int row_fragments = Tile::warp_rows / 16;
    static constexpr int column_fragments = Tile::warp_columns / 16;
    static constexpr int resident_blocks = (std::max)(1, 256 / Tile::threads);

    template <class Thread>
    static constexpr bool runs_on = Thread::capability >= (std::is_same_v<A, half> ? 75 : 80);

    template <class Thread>
    struct sums {
        typename Thread::template wmma_sums<A> of[std::size_t{row_fragments}][std::size_t{column_fragments}];
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void clear(Thread thread, sums<Thread>& sum) {
        MP_UNROLL
        for (int i = 0; i < row_fragments; ++i) {
            MP_UNROLL
            for (int j = 0; j < column_fragments; ++j) thread.clear_fragment(sum.of[i][j]);
        }
    }

    static constexpr int products = a_stage::k / simt::wmma_k<A>;

    template <class>
    static constexpr bool loads_ahead = true;

    struct reader {
        int row;
        int column;
    };
    template <class Thread>
    struct fragments {
        typename Thread::template wmma_a<A, AKMajor> left[std::size_t{row_fragments}];
        typename Thread::template wmma_b<B, BKMajor> right[std::size_t{column_fragments}];
    };

    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static reader make_reader(Thread, int warp_row,
                                                                            int warp_column) {
        return {warp_row, warp_column};
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void load(Thread thread, simt::shared_pointer<A> a,
                                                     simt::shared_pointer<B> b, const reader& from,
                                                     int number, fragments<Thread>& to) {
        const int p = number * simt::wmma_k<A>;
        MP_UNROLL
        for (int i = 0; i < row_fragments; ++i) {
            thread.load_fragment(to.left[i], a_stage::element(a, from.row + i * 16, p), a_stage::pitch);
        }
        MP_UNROLL
        for (int j = 0; j < column_fragments; ++j) {
            thread.load_fragment(to.right[j], b_stage::element(b, from.column + j * 16, p), b_stage::pitch);
        }
    }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void multiply(Thread thread, const fragments<Thread>& of,
                                                         sums<Thread>& sum) {
        MP_UNROLL
        for (int i = 0; i < row_fragments; ++i) {
            MP_UNROLL
            for (int j = 0; j < column_fragments; ++j) {
                thread.multiply_fragments(sum.of[i][j], of.left[i], of.right[j]);
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
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void store_epilogue_tile(Thread thread, const sums<Thread>& sum,
                                                                    int i,
                                                                    simt::shared_pointer<float> epilogue_tile,
                                                                    int pitch) {
        MP_UNROLL
        for (int j = 0; j < column_fragments; ++j) {
            thread.store_fragment(epilogue_tile + j * 16, sum.of[i][j], pitch);
        }
    }
};

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
