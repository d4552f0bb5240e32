// SPDX-License-Identifier: MIT
/// \file
/// How warps that multiply by wgmma bring their sums to C: to tiles in shared memory that TMA writes, or by themselves.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/gemm/integer_output.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/output.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/tile_epilogue.hpp>
#include <mp/device/simt/fragments.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/matrix_descriptor.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/device/simt/tensor_map.hpp>
#include <mp/linalg/gemm/integer.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Tiles in which warps write C: 16 rows of 128 bytes, swizzled, so that the words which a warp writes at a
/// time fill the banks once (with floats twice).
template <class Output>
struct stored_tile {
    static constexpr int size = static_cast<int>(sizeof(Output));
    static constexpr int row_bytes = 128;
    static constexpr int rows = 16;
    static constexpr int columns = row_bytes / size;
    static constexpr int bytes = rows * row_bytes;
    /// Neighbouring columns of an accumulator: see simt::wgmma_coordinate.
    static constexpr int step_columns = 8;
    static constexpr int sums = columns / 2;  ///< of a thread

    /// Whether TMA takes C.
    template <class Epilogue>
    [[nodiscard]] static bool takes(const product_output<Output, Epilogue>& c, std::ptrdiff_t matrices) {
        constexpr std::ptrdiff_t most = 0x7FFF'0000;
        return vector_alignment(c.data, c.stride, c.batch_stride) == 16 && c.rows <= most &&
               c.columns <= most && (matrices == 1 || c.batch_stride > 0);
    }
    /// What it is told of C.
    template <class Epilogue>
    [[nodiscard]] static simt::tensor_tiles tiles(const product_output<Output, Epilogue>& c,
                                                  std::ptrdiff_t matrices) {
        return {c.data,  size, c.columns, c.rows,   c.stride * size,
                columns, rows, row_bytes, matrices, matrices == 1 ? 16 : c.batch_stride * size};
    }

    /// Writes the warp's sums of the columns from `first` on, times alpha, which is an integer where C is of integers.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread, class Scale>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write(Thread thread, simt::shared_pointer<Output> tile,
                                                      Scale alpha, const Sum (&sum)[Count], int first) {
        if constexpr (size == 2) {
            write_matrices(thread, tile, alpha, sum, first);
        } else {
            write_pairs(thread, tile, alpha, sum, first);
        }
    }

private:
    /// By matrices of 8 x 8, of which two lie below each other, and two beside these: sixteen columns at a time.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_matrices(Thread thread,
                                                               simt::shared_pointer<Output> tile, float alpha,
                                                               const Sum (&sum)[Count], int first) {
        const int lane = thread.lane();
        const std::uint32_t begin =
            simt::swizzled<row_bytes>(static_cast<std::uint32_t>(lane % rows * row_bytes + lane / rows * 16));
        MP_UNROLL
        for (int i = 0; i < sums; i += 8) {
            const Sum* const from = sum + (first / 2 + i);
            simt::registers<4> pairs;
            MP_UNROLL
            for (int n = 0; n < 4; ++n) {
                pairs[n] = bit_cast<std::uint32_t>(scaled(alpha, from[2 * n], from[2 * n + 1]));
            }
            // The bits of a step of columns are none of those that a place within it has.
            const std::uint32_t place = begin ^ static_cast<std::uint32_t>(i / 4 * step_columns * size);
            thread.store_matrix(simt::shared_pointer<Output>{tile.offset + place}, pairs);
        }
    }

    /// By two neighbours at a time.
    MP_ANY_EXECUTION_SPACE
    template <class Sum, std::size_t Count, class Thread, class Scale>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_pairs(Thread thread, simt::shared_pointer<Output> tile,
                                                            Scale alpha, const Sum (&sum)[Count], int first) {
        const simt::fragment_coordinate at = simt::mma_c_coordinate(thread.lane(), 0);
        const std::uint32_t begin =
            simt::swizzled<row_bytes>(static_cast<std::uint32_t>(at.row * row_bytes + at.position * size));
        MP_UNROLL
        for (int i = 0; i < sums; i += 4) {
            // The bits of a step of columns are none of those that a place within it has.
            const std::uint32_t place = begin ^ static_cast<std::uint32_t>(i / 4 * step_columns * size);
            MP_UNROLL
            for (int n = 0; n < 4; n += 2) {
                const simt::shared_pointer<chunk<Output, 2>> to{
                    tile.offset + place + static_cast<std::uint32_t>(n / 2 * 8 * row_bytes)};
                const Sum* const from = sum + (first / 2 + i + n);
                thread.store(to, scaled(alpha, from[0], from[1]));
            }
        }
    }

    template <class Sum, class Scale>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE static chunk<Output, 2> scaled(Scale alpha, Sum first,
                                                                                 Sum second) {
        if constexpr (std::is_same_v<Scale, std::int32_t>) {
            return {{scale_integer(alpha, static_cast<std::uint32_t>(first), 0, 0),
                     scale_integer(alpha, static_cast<std::uint32_t>(second), 0, 0)}};
        } else {
            return round_products<Output>(float_multiply(alpha, static_cast<float>(first)),
                                          float_multiply(alpha, static_cast<float>(second)));
        }
    }
};

/// Of a warp with 16 rows and `Columns` columns of sums, in the places of simt::wgmma_coordinate. It has
/// `bytes` of shared memory from `at` on, a multiple of 1024.
template <int Columns>
struct warp_output {
    static constexpr int tiles = 2;
    static constexpr int bytes = tiles * stored_tile<float>::bytes;

    /// Columns that pass through shared memory at a time in write_sums(), and floats from one row of them to
    /// the next: see multistage_gemm_kernel.
    static constexpr int part_columns = 32;
    static constexpr int part_pitch = part_columns + 8;
    static_assert(epilogue_tile_rows * part_pitch * static_cast<int>(sizeof(float)) <= bytes);

    /// Ends the sums in registers, and passes them through two tiles of shared memory to TMA, which writes
    /// them while the products of the next tile of C run. Outside of C nothing is written.
    MP_ANY_EXECUTION_SPACE
    template <class Target, class Thread, class Sum, class Scale>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_tiles(Thread thread, std::uint32_t at,
                                                            const simt::tensor_map& map, Scale alpha,
                                                            const Sum (&sum)[std::size_t{Columns / 2}],
                                                            std::ptrdiff_t row, std::ptrdiff_t column,
                                                            int matrix) {
        using tile = stored_tile<Target>;
        constexpr int count = Columns / tile::columns;
        constexpr int pending = count % tiles == 0 ? tiles - 1 : 0;
        static_assert(tile::bytes * tiles == bytes);
        MP_UNROLL
        for (int i = 0; i < count; ++i) {
            const simt::shared_pointer<Target> to{at + static_cast<std::uint32_t>(i % tiles * tile::bytes)};
            // The tile that was written from here before has been read.
            if (thread.lane() == 0) thread.template wait_stores_read<pending>();
            thread.sync_warp();
            tile::write(thread, to, alpha, sum, i * tile::columns);
            thread.fence_asynchronous();
            thread.sync_warp();
            if (thread.lane() == 0) {
                thread.store_tile(map, static_cast<int>(column) + i * tile::columns, static_cast<int>(row),
                                  matrix, to);
                thread.commit_stores();
            }
        }
    }

    /// Waits until shared memory may be put to another use.
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void wait_tiles(Thread thread) {
        if (thread.lane() == 0) thread.template wait_stores_read<0>();
        thread.sync_warp();
    }

    /// Passes the sums through shared memory, 32 columns at a time, and ends them in chunks: with any
    /// epilogue, beta and alignment. The loop is not unrolled, since that is long for an element. Without a product the
    /// sums are not read: nothing is in their registers then.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sum, class Target, class Epilogue>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_sums(Thread thread, std::uint32_t at,
                                                           const Sum (&sum)[std::size_t{Columns / 2}],
                                                           std::ptrdiff_t row, std::ptrdiff_t column,
                                                           const product_output<Target, Epilogue>& c) {
        using place = chunk_place<Target>;
        const simt::shared_pointer<float> part_at{at};
        const bool inner =
            c.aligned && c.has_product && row + epilogue_tile_rows <= c.rows && column + Columns <= c.columns;
        // What is in C is on its way while the part before is ended.
        chunk<Target, place::count> next[std::size_t{place::chunks}] = {};
        const auto load_part = [&](std::ptrdiff_t first) {
            MP_UNROLL
            for (int n = 0; n < place::chunks; ++n) {
                const place from(thread.lane(), n);
                next[n] = load_inner_chunk(thread, c, row + from.row, first + from.column);
            }
        };
        if (inner) load_part(column);
        tile_state<Epilogue> state;
        MP_UNROLL_BY(1)
        for (int part = 0; part < Columns / part_columns; ++part) {
            if (c.has_product) store_part(thread, part_at, sum, part);
            thread.sync_warp();
            const std::ptrdiff_t first = column + part * part_columns;
            if (inner) {
                chunk<Target, place::count> before[std::size_t{place::chunks}];
                MP_UNROLL
                for (int n = 0; n < place::chunks; ++n) before[n] = next[n];
                if (first + part_columns < column + Columns) load_part(first + part_columns);
                MP_UNROLL
                for (int n = 0; n < place::chunks; ++n) {
                    const place to(thread.lane(), n);
                    float product[std::size_t{place::count}];
                    load_chunk_of_sums(thread, part_at + (to.row * part_pitch + to.column), product);
                    convert_sums<Sum, Target>(product);
                    finish_inner_chunk(thread, c, product, before[n], row + to.row, first + to.column, state);
                }
            } else {
                MP_UNROLL_BY(1)
                for (int n = 0; n < place::chunks; ++n) {
                    const place to(thread.lane(), n);
                    float product[std::size_t{place::count}] = {};
                    if (c.has_product) {
                        load_chunk_of_sums(thread, part_at + (to.row * part_pitch + to.column), product);
                        convert_sums<Sum, Target>(product);
                    }
                    finish_chunk(thread, c, product, row + to.row, first + to.column, state);
                }
            }
            thread.sync_warp();
        }
        tile_epilogue<Epilogue>::finish(thread, c.epilogue, state);
    }

private:
    /// Place in a part of a lane's chunk number `n` of `chunks`.
    template <class Target>
    struct chunk_place {
        static constexpr int count = output_chunk<Target>;
        static constexpr int chunks_across = part_columns / count;
        static constexpr int chunks = epilogue_tile_rows * chunks_across / simt::warp_size;

        MP_HOST_DEVICE MP_ALWAYS_INLINE constexpr chunk_place(int lane, int n)
            : row((n * simt::warp_size + lane) / chunks_across),
              column((n * simt::warp_size + lane) % chunks_across * count) {}

        int row;
        int column;
    };

    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sum>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void store_part(Thread thread, simt::shared_pointer<float> part_at,
                                                           const Sum (&sum)[std::size_t{Columns / 2}],
                                                           int part) {
        using pair = chunk<float, 2>;
        MP_UNROLL
        for (int i = 0; i < Columns / 2; i += 2) {
            if (i / (part_columns / 2) != part) continue;  // registers have no numbers that are calculated
            const int n = i % (part_columns / 2);
            const simt::fragment_coordinate place = simt::mma_c_coordinate(thread.lane(), n % 4);
            const auto to = part_at + (place.row * part_pitch + n / 4 * 8 + place.position);
            thread.store(to.template as<pair>(),
                         pair{{bit_cast<float>(sum[i]), bit_cast<float>(sum[i + 1])}});
        }
    }
};

/// Of a warp whose 16 rows and `Columns` columns of sums are columns and rows of C. It has `bytes` of shared memory from `at` on,
/// through which they pass 16 rows of C at a time, to be ended in chunks: with any epilogue, beta and alignment.
template <int Columns>
struct transposed_output {
    static constexpr int part_rows = 16;
    /// Floats from one row of C to the next. A warp writes eight neighbours of every second row of eight at a time: with 4
    /// more than a row has, these fill the banks once.
    static constexpr int part_pitch = epilogue_tile_rows + 4;
    static constexpr int bytes = part_rows * part_pitch * static_cast<int>(sizeof(float));

    /// The sums from column `row` and row `column` of C on.
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sum, class Target, class Epilogue>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void write_sums(Thread thread, std::uint32_t at,
                                                           const Sum (&sum)[std::size_t{Columns / 2}],
                                                           std::ptrdiff_t row, std::ptrdiff_t column,
                                                           const product_output<Target, Epilogue>& c) {
        constexpr int count = output_chunk<Target>;
        constexpr int chunks_across = epilogue_tile_rows / count;
        const simt::shared_pointer<float> part_at{at};
        tile_state<Epilogue> state;
        MP_UNROLL_BY(1)
        for (int part = 0; part < Columns / part_rows; ++part) {
            const std::ptrdiff_t first = column + part * part_rows;
            if (first >= c.rows) break;
            // Without a product nothing has been written to the sums.
            if (c.has_product) store_part(thread, part_at, sum, part);
            thread.sync_warp();
            MP_UNROLL_BY(1)
            for (int n = 0; n < part_rows * chunks_across / simt::warp_size; ++n) {
                const int number = n * simt::warp_size + thread.lane();
                const int part_row = number / chunks_across;
                const int position = number % chunks_across * count;
                float product[std::size_t{count}] = {};
                if (c.has_product) {
                    load_chunk_of_sums(thread, part_at + (part_row * part_pitch + position), product);
                    convert_sums<Sum, Target>(product);
                }
                finish_chunk(thread, c, product, first + part_row, row + position, state);
            }
            thread.sync_warp();
        }
        tile_epilogue<Epilogue>::finish(thread, c.epilogue, state);
    }

private:
    MP_ANY_EXECUTION_SPACE
    template <class Thread, class Sum>
    MP_HOST_DEVICE MP_ALWAYS_INLINE static void store_part(Thread thread, simt::shared_pointer<float> part_at,
                                                           const Sum (&sum)[std::size_t{Columns / 2}],
                                                           int part) {
        constexpr int sums = part_rows / 2;  // of a thread
        MP_UNROLL
        for (int i = 0; i < Columns / 2; ++i) {
            if (i / sums != part) continue;  // registers have no numbers that are calculated
            const simt::fragment_coordinate place = simt::mma_c_coordinate(thread.lane(), i % 4);
            thread.store(part_at + ((i % sums / 4 * 8 + place.position) * part_pitch + place.row),
                         bit_cast<float>(sum[i]));
        }
    }
};

}}  // namespace mp::detail
