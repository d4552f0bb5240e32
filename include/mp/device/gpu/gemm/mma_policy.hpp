// SPDX-License-Identifier: MIT
/// \file
/// Products of stages by mma.sync, from swizzled shared memory: how tiles of operands get there, and how warps take
/// fragments from them.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A tile of m x k of A (n x k of B) with m = `Extent` and 64 bytes of k, in the order of the elements in
/// memory, as swizzled rows of 64 or 128 bytes, so that neither copies nor load_matrix have bank conflicts.
/// With KMajor a swizzled row runs along k, one for each m. Else it runs along m, one for each k: 128 bytes
/// of m (64 if the tile has no more), in panels of all k.
template <class Input, int Extent, bool KMajor, int Threads>
struct swizzled_stage {
    using input = Input;
    static constexpr bool k_major = KMajor;
    static constexpr int extent = Extent;
    static constexpr int threads = Threads;
    static constexpr int size = static_cast<int>(sizeof(Input));
    static constexpr int k = stage_k_bytes / size;
    static constexpr int bytes = Extent * stage_k_bytes;
    static constexpr int row_bytes = KMajor ? stage_k_bytes : Extent * size < 128 ? Extent * size : 128;
    static constexpr int row_elements = row_bytes / size;
    static constexpr int rows_of_panel = KMajor ? Extent : k;
    static constexpr int panel_bytes = rows_of_panel * row_bytes;
    static constexpr int chunks = bytes / 16;
    static constexpr int chunks_across = row_bytes / 16;
    static constexpr int chunk_elements = 16 / size;
    static constexpr int chunks_of_thread = chunks / Threads;
    /// Bytes in a stage from a chunk of a thread to its next one: chunks lie in the order of the threads, swizzled within
    /// 1024 bytes.
    static constexpr int chunk_distance = Threads * 16;

    static_assert(bytes % 1024 == 0, "mp: swizzled tiles begin at multiples of 1024 bytes");
    static_assert(chunks % Threads == 0, "mp: each thread copies as many chunks");
    static_assert(chunk_distance % 1024 == 0);

    using pointer = simt::shared_pointer<Input>;

    /// The element at a row of A (column of B) and k.
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer element(pointer stage, int outer, int p) {
        const int panel = KMajor ? 0 : outer / row_elements;
        const int row = KMajor ? outer : p;
        const int position = KMajor ? p : outer % row_elements;
        const auto offset = static_cast<std::uint32_t>(row * row_bytes + position * size);
        return {stage.offset + static_cast<std::uint32_t>(panel * panel_bytes) +
                simt::swizzled<row_bytes>(offset)};
    }

    /// Chunk `number` of a stage, in the order of the threads that copy them, and where it goes.
    [[nodiscard]] MP_HOST_DEVICE static constexpr stage_chunk chunk_at(int number) {
        const int panel = number / (chunks_across * rows_of_panel);
        return {number / chunks_across % rows_of_panel,
                panel * row_elements + number % chunks_across * chunk_elements};
    }
    [[nodiscard]] MP_HOST_DEVICE static constexpr pointer place_of(pointer stage, stage_chunk chunk) {
        return k_major ? element(stage, chunk.vector, chunk.position)
                       : element(stage, chunk.position, chunk.vector);
    }

    /// Whether of 16 neighbouring rows of A (columns of B) those of even number come to be where the first eight of a
    /// fragment (the first fragment of a pair) belong, and the odd ones where the others do: load_matrix transposes
    /// pairs of bytes only. Whoever stores the sums puts that right.
    static constexpr bool interleaves = !KMajor && size == 1;

    /// Where a lane begins to load the fragments of its warp: the offset in a stage of the first one, which is computed
    /// once. Others lie at a constant distance, and at another chunk of a row: exclusive or.
    struct reader {
        std::uint32_t first;
        std::uint32_t even_bytes;  ///< for interleaves: for select_bytes; those of odd number follow each
    };

    /// For fragments of A from `row` on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static reader reader_of_a(Thread thread, int row) {
        const int lane = thread.lane();
        if constexpr (k_major) {
            return reader_at(element({}, row + lane % 16, lane / 16 * chunk_elements));
        } else if constexpr (size == 2) {
            return reader_at(element({}, row + lane / 8 % 2 * 8, lane / 16 * 8 + lane % 8));
        } else {
            return reader_of_elements(lane, row);
        }
    }
    /// For pairs of fragments of B from `column` on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static reader reader_of_b(Thread thread, int column) {
        const int lane = thread.lane();
        if constexpr (k_major) {
            return reader_at(element({}, column + lane / 16 * 8 + lane % 8, lane / 8 % 2 * chunk_elements));
        } else if constexpr (size == 2) {
            return reader_at(element({}, column + lane / 16 * 8, lane / 8 % 2 * 8 + lane % 8));
        } else {
            return reader_of_elements(lane, column);
        }
    }

    /// Fragment i of A: 16 rows, and 32 bytes of k from byte 32 * step on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_KERNEL_INLINE simt::registers<4> load_a(Thread thread, pointer stage,
                                                                     const reader& from, int i, int step) {
        if constexpr (k_major) {
            return thread.template load_matrix<4>(
                place(stage, from, step * simt::mma_k_bytes, i * 16 * row_bytes));
        } else if constexpr (size == 2) {
            return thread.template load_matrix_transposed<4>(place_across(stage, from, i, step));
        } else if constexpr (size == 1) {
            const auto pairs = thread.template load_matrix_transposed<4>(
                place_across(stage, from, i, step).template as<half>());
            simt::registers<4> fragment;
            MP_UNROLL
            for (int n = 0; n < 4; n += 2) {
                fragment[n] = select_bytes(pairs[n], pairs[n + 1], from.even_bytes);
                fragment[n + 1] = select_bytes(pairs[n], pairs[n + 1], from.even_bytes + 0x1111);
            }
            return fragment;
        } else {
            simt::registers<4> fragment;
            MP_UNROLL
            for (int n = 0; n < 4; ++n) {
                // Eight rows further, and four of k, for which the swizzle takes another chunk.
                const int row = n % 2 * 8 + i * 16;
                constexpr int exchange = (4 * row_bytes / 128 & (chunks_across - 1)) * 16;
                const int across = row % row_elements * size ^ n / 2 * exchange;
                const int along =
                    row / row_elements * panel_bytes + (n / 2 * 4 + step * simt::mma_k<Input>)*row_bytes;
                fragment[n] = thread.load(place(stage, from, across, along).template as<std::uint32_t>());
            }
            return fragment;
        }
    }

    /// Pair i of fragments of B: of 8 columns each, in registers 0 and 1, and 2 and 3.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE static MP_KERNEL_INLINE simt::registers<4> load_b_pair(Thread thread, pointer stage,
                                                                          const reader& from, int i,
                                                                          int step) {
        const simt::registers<4> fragments = load_a(thread, stage, from, i, step);
        if constexpr (k_major || size == 2) return fragments;
        return {{fragments[0], fragments[2], fragments[1], fragments[3]}};
    }

private:
    MP_HOST_DEVICE MP_KERNEL_INLINE static reader reader_at(pointer first) { return {kept(first.offset), 0}; }

    /// The place of the lane's first row of 16 bytes where load_matrix transposes pairs of bytes, or of its first
    /// element of 4 bytes.
    ///
    /// A lane gets bytes of two neighbours in m, for four k that follow each other, in two registers. Rows of all
    /// eight k modulo 8 are read at a time, for the sake of the banks; so for the second half of the lanes the
    /// registers are exchanged.
    MP_HOST_DEVICE MP_KERNEL_INLINE static reader reader_of_elements(int lane, int outer) {
        if constexpr (size == 4) return reader_at(element({}, outer + lane / 4, lane % 4));
        const int row = lane % 8;
        const bool exchanged = row / 4 != lane / 8 % 2;
        const int p = row / 2 * 4 + row % 2 + (exchanged ? 2 : 0) + lane / 16 * 16;
        const bool second = lane % 4 >= 2;
        return {kept(element({}, outer, p).offset), second ? 0x2064U : 0x6420U};
    }

    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static pointer place(pointer stage, const reader& from,
                                                                       int across, int along) {
        return {stage.offset + (from.first ^ static_cast<std::uint32_t>(across)) +
                static_cast<std::uint32_t>(along)};
    }
    /// Fragment i where rows run along m. Those of a warp do not go beyond a panel.
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static pointer place_across(pointer stage,
                                                                              const reader& from, int i,
                                                                              int step) {
        return place(stage, from, i * 16 * size, step * simt::mma_k<Input> * row_bytes);
    }

    /// Bytes of two registers: those whose numbers are the four hexadecimal digits of `numbers`, the last one first.
    [[nodiscard]] MP_HOST_DEVICE MP_KERNEL_INLINE static std::uint32_t select_bytes(std::uint32_t low,
                                                                                    std::uint32_t high,
                                                                                    std::uint32_t numbers) {
#if MP_DEVICE_CODE
        return __byte_perm(low, high, numbers);
#else
        const std::uint64_t both = std::uint64_t{high} << 32 | low;
        std::uint32_t result = 0;
        for (int i = 0; i < 4; ++i) {
            const std::uint32_t number = numbers >> i * 4 & 7;
            result |= static_cast<std::uint32_t>(both >> number * 8 & 0xFF) << i * 8;
        }
        return result;
#endif
    }
};

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

/// A policy of multistage_gemm_kernel whose fragments have the element types of shared memory.
template <class Tile, class A, class B, bool AKMajor, bool BKMajor>
struct mma_policy : fragment_policy<Tile, A, B, swizzled_stage<A, Tile::rows, AKMajor, Tile::threads>,
                                    swizzled_stage<B, Tile::columns, BKMajor, Tile::threads>> {};

}}  // namespace mp::detail
