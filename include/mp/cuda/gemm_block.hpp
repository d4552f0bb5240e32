// SPDX-License-Identifier: MIT
/// \file
/// What one block of threads does in a matrix product. The body is written once and compiled for two
/// machines: a CUDA block, where each_thread runs it as the thread that it is, and the host (in the tests),
/// where each_thread is a loop over the threads of the block. So the body may branch only on what all threads
/// of a block agree on, outside of each_thread, and threads talk to each other only through shared memory
/// with a barrier in between.
///
/// A machine is a type with
///  - `per_thread<State>`: one State for each thread;
///  - `each_thread(states, f)`: f(state, thread) as every thread;
///  - `barrier()` and `warp_barrier()`: what was written to shared memory before can be read after;
///  - `shared_memory()`: the begin of the block's shared memory, aligned to 128 bytes;
///  - `index()`: which block this is.
/// A thread has `index`, and `load(pointer)` and `store(pointer, value)` for shared memory.
#pragma once

#include <mp/config.hpp>
#include <mp/cuda/chunks.hpp>
#include <mp/cuda/gemm_problem.hpp>
#include <mp/format/device.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail {

/// `count` within 0 and `most`.
[[nodiscard]] MP_HOST_DEVICE constexpr int left_of(std::ptrdiff_t count, int most) {
    return count < 0 ? 0 : count < most ? static_cast<int>(count) : most;
}

/// The way of one factor from global memory over registers into a tile in shared memory. `Extent` is the
/// number of rows of A or columns of B in the tile. The tile keeps the order of the elements in memory;
/// DepthContiguous tells whether lines run along the depth.
///
/// Lines in shared memory are 8 elements longer than they need be: then the 8 lines from which a fragment is
/// loaded at a time begin 4 banks apart modulo 32, and take all 32 banks once.
template <class Input, int Extent, int Depth, bool DepthContiguous, int Threads>
struct factor_tile {
    static constexpr bool depth_contiguous = DepthContiguous;
    static constexpr int lines = DepthContiguous ? Extent : Depth;
    static constexpr int length = DepthContiguous ? Depth : Extent;
    static constexpr int pitch = length + 8;
    static constexpr int bytes = lines * pitch * static_cast<int>(sizeof(Input));
    static constexpr int chunks_across = length / factor_chunk;
    static constexpr int chunks = lines * chunks_across;
    static constexpr int chunks_per_thread = (chunks + Threads - 1) / Threads;
    /// From one chunk of a thread to its next one: the position in the line stays.
    static constexpr int lines_per_round = Threads / chunks_across;

    using chunk_type = chunk<Input, factor_chunk>;
    using words = chunk_words<sizeof(chunk_type)>;  // what travels: 4 registers, not 8
    struct staging {
        words chunks[chunks_per_thread];
    };

    static_assert(length % factor_chunk == 0 && bytes % 128 == 0 && Threads % chunks_across == 0);

    /// The chunk at `from`, of whose elements `count` lie inside of the factor; zeros for the others.
    MP_HOST_DEVICE static MP_ALWAYS_INLINE words fetch_chunk(const Input* from, int count, bool aligned) {
        if (aligned && count >= factor_chunk) return load_chunk<words>(from);
        chunk_type elements{};
        for (int i = 0; i < factor_chunk; ++i) {
            if (i < count) elements.values[i] = from[i];
        }
        return bit_cast<words>(elements);
    }

    /// Fetches a thread's chunks of the tile that begins at `outer` (row of A, column of B) and `depth`. What
    /// is the same for all threads is computed in 64 bits, the rest in 32.
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void fetch(staging& to, const factor_lines<Input>& factor,
                                                      std::ptrdiff_t outer, std::ptrdiff_t depth,
                                                      int thread) {
        const std::ptrdiff_t first_line = DepthContiguous ? outer : depth;
        const std::ptrdiff_t first_position = DepthContiguous ? depth : outer;
        const int lines_left = left_of(factor.lines - first_line, lines);
        const int length_left = left_of(factor.length - first_position, length);
        const int line = thread / chunks_across;
        const int position = thread % chunks_across * factor_chunk;
        const std::ptrdiff_t offset = (first_line + line) * factor.stride + first_position + position;
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < chunks_per_thread; ++i) {
            to.chunks[i] = words{};
            if (line + i * lines_per_round < lines_left && position < length_left) {
                const Input* const from = factor.data + (offset + i * lines_per_round * factor.stride);
                to.chunks[i] = fetch_chunk(from, length_left - position, factor.aligned);
            }
        }
    }

    /// Puts the chunks into the tile.
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void place(const staging& from, Input* tile, Thread thread) {
        const int line = thread.index / chunks_across;
        const int position = thread.index % chunks_across * factor_chunk;
#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < chunks_per_thread; ++i) {
            if (chunks % Threads != 0 && line + i * lines_per_round >= lines) continue;
            thread.store(tile + (line + i * lines_per_round) * pitch + position, from.chunks[i]);
        }
    }

    /// The element at (outer, depth) of the tile.
    MP_HOST_DEVICE static constexpr const Input* element(const Input* tile, int outer, int depth) {
        return DepthContiguous ? tile + outer * pitch + depth : tile + depth * pitch + outer;
    }
};

/// alpha * product + beta * c as mp::gemm on the CPU forms it: with both terms, exact products in double
/// whose sum is rounded to double and then to float; c is not looked at when beta is 0.
template <class Output, class Epilogue>
MP_HOST_DEVICE MP_ALWAYS_INLINE float scale_product(const product_output<Output, Epilogue>& output,
                                                    float product, float c) {
    if (output.beta == 0.0F) return output.has_product ? float_multiply(output.alpha, product) : 0.0F;
    if (!output.has_product) return float_multiply(output.beta, c);
    return float_from_double(double_from_float(output.alpha) * double_from_float(product) +
                             double_from_float(output.beta) * double_from_float(c));
}

/// Ends up to 8 neighbouring elements of C: alpha and beta, the epilogue, one rounding.
MP_ANY_EXECUTION_SPACE
template <class Output, class Epilogue>
MP_HOST_DEVICE MP_ALWAYS_INLINE void finish_chunk(const product_output<Output, Epilogue>& output,
                                                  const chunk<float, 4> (&product)[2], std::ptrdiff_t row,
                                                  std::ptrdiff_t column) {
    constexpr int count = 8;
    using output_chunk = chunk<Output, count>;
    if (row >= output.rows || column >= output.columns) return;
    Output* const c = output.data + (row * output.stride + column);
    const bool whole = output.aligned && column + count <= output.columns;
    output_chunk values{};
    if (output.beta != 0.0F) {
        if (whole) {
            values = load_chunk<output_chunk>(c);
        } else {
            for (int i = 0; i < count; ++i) {
                if (column + i < output.columns) values.values[i] = c[i];
            }
        }
    }
#if MP_DEVICE_CODE
#pragma unroll
#endif
    for (int i = 0; i < count; ++i) {
        if (column + i < output.columns) {
            const float value =
                scale_product(output, product[i / 4].values[i % 4], static_cast<float>(values.values[i]));
            const std::ptrdiff_t epilogue_row = output.swapped ? column + i : row;
            const std::ptrdiff_t epilogue_column = output.swapped ? row : column + i;
            values.values[i] = static_cast<Output>(output.epilogue(value, epilogue_row, epilogue_column));
        }
    }
    if (whole) {
        store_chunk(c, values);
    } else {
        for (int i = 0; i < count; ++i) {
            if (column + i < output.columns) c[i] = values.values[i];
        }
    }
}

/// The product of one kernel: how tiles of A and B lie in shared memory, the steps along the depth, and the
/// way of the accumulators to C.
///
/// Shared memory holds two tiles of A and two of B: while the fragments of one step are multiplied, the
/// chunks of the next step travel to registers, and are put into the other two tiles, so that one barrier a
/// step is enough. In the end each warp passes its accumulators through a strip of 16 rows of its own, since
/// which lane holds which element of an accumulator is not specified.
template <class Tile, bool ADepthContiguous, bool BDepthContiguous, class Input, class Fragments>
struct gemm_body {
    using a_tile = factor_tile<Input, Tile::rows, Tile::depth, ADepthContiguous, Tile::threads>;
    using b_tile = factor_tile<Input, Tile::columns, Tile::depth, BDepthContiguous, Tile::threads>;

    static constexpr int fragment_rows = Tile::warp_rows / fragment_size;
    static constexpr int fragment_columns = Tile::warp_columns / fragment_size;
    /// Floats from one row of a warp's strip to the next: 4 more than needed against bank conflicts.
    static constexpr int strip_pitch = Tile::warp_columns + 4;
    static constexpr int strip_floats = fragment_size * strip_pitch;
    static constexpr int strip_bytes = strip_floats * static_cast<int>(sizeof(float));
    static constexpr int pair_bytes = a_tile::bytes + b_tile::bytes;
    static constexpr int strips_bytes = Tile::threads / warp_size * strip_bytes;
    static constexpr int shared_bytes = 2 * pair_bytes > strips_bytes ? 2 * pair_bytes : strips_bytes;

    static_assert(strip_bytes % 32 == 0);

    struct thread_state {
        typename a_tile::staging a;
        typename b_tile::staging b;
        typename Fragments::accumulator sum[fragment_rows][fragment_columns];
    };

    /// Multiplies a warp's part of a pair of tiles.
    template <class Thread>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void multiply(thread_state& state, const Input* a, const Input* b,
                                                         Thread thread) {
        const int warp = thread.index / warp_size;
        const int row = warp / Tile::warps_across * Tile::warp_rows;
        const int column = warp % Tile::warps_across * Tile::warp_columns;
        // A loop, for registers: unrolled, the kernels of some architectures spill.
#if MP_DEVICE_CODE
#pragma unroll 1
#endif
        for (int depth = 0; depth < Tile::depth; depth += fragment_size) {
            typename Fragments::template a_fragment<ADepthContiguous> left[fragment_rows];
#if MP_DEVICE_CODE
#pragma unroll
#endif
            for (int i = 0; i < fragment_rows; ++i) {
                Fragments::load(left[i], a_tile::element(a, row + i * fragment_size, depth), a_tile::pitch,
                                thread);
            }
#if MP_DEVICE_CODE
#pragma unroll
#endif
            for (int j = 0; j < fragment_columns; ++j) {
                typename Fragments::template b_fragment<BDepthContiguous> right;
                Fragments::load(right, b_tile::element(b, column + j * fragment_size, depth), b_tile::pitch,
                                thread);
#if MP_DEVICE_CODE
#pragma unroll
#endif
                for (int i = 0; i < fragment_rows; ++i) {
                    Fragments::multiply_add(state.sum[i][j], left[i], right, thread);
                }
            }
        }
    }

    template <class Machine, class Output, class Epilogue>
    MP_HOST_DEVICE static MP_ALWAYS_INLINE void run(Machine& machine,
                                                    const product_problem<Input, Output, Epilogue>& problem) {
        typename Machine::template per_thread<thread_state> states;
        unsigned char* const shared = machine.shared_memory();
        const auto a_at = [shared](std::ptrdiff_t step) {
            return reinterpret_cast<Input*>(shared + (step % 2) * pair_bytes);
        };
        const auto b_at = [shared](std::ptrdiff_t step) {
            return reinterpret_cast<Input*>(shared + (step % 2) * pair_bytes + a_tile::bytes);
        };
        float* const strips = reinterpret_cast<float*>(shared);

        const product_output<Output, Epilogue>& c = problem.c;
        const std::ptrdiff_t tile_rows = tile_count(c.rows, Tile::rows);
        const std::ptrdiff_t tile_columns = tile_count(c.columns, Tile::columns);
        const std::ptrdiff_t steps = c.has_product ? tile_count(problem.depth, Tile::depth) : 0;

        const tile_place tile = place_of_tile(problem.first_tile + machine.index(), tile_rows, tile_columns);
        const std::ptrdiff_t row = tile.row * Tile::rows;
        const std::ptrdiff_t column = tile.column * Tile::columns;

        machine.each_thread(states, [&](thread_state& state, auto thread) {
            for (auto& line : state.sum) {
                for (auto& fragment : line) Fragments::clear(fragment);
            }
            if (steps == 0) return;
            a_tile::fetch(state.a, problem.a, row, 0, thread.index);
            b_tile::fetch(state.b, problem.b, column, 0, thread.index);
            a_tile::place(state.a, a_at(0), thread);
            b_tile::place(state.b, b_at(0), thread);
        });
        machine.barrier();

        for (std::ptrdiff_t step = 0; step < steps; ++step) {
            machine.each_thread(states, [&](thread_state& state, auto thread) {
                const bool more = step + 1 < steps;
                if (more) {
                    a_tile::fetch(state.a, problem.a, row, (step + 1) * Tile::depth, thread.index);
                    b_tile::fetch(state.b, problem.b, column, (step + 1) * Tile::depth, thread.index);
                }
                multiply(state, a_at(step), b_at(step), thread);
                if (more) {
                    a_tile::place(state.a, a_at(step + 1), thread);
                    b_tile::place(state.b, b_at(step + 1), thread);
                }
            });
            machine.barrier();
        }

#if MP_DEVICE_CODE
#pragma unroll
#endif
        for (int i = 0; i < fragment_rows; ++i) {
            machine.each_thread(states, [&](thread_state& state, auto thread) {
                float* const strip = strips + std::ptrdiff_t{thread.index / warp_size} * strip_floats;
#if MP_DEVICE_CODE
#pragma unroll
#endif
                for (int j = 0; j < fragment_columns; ++j) {
                    Fragments::store(strip + std::ptrdiff_t{j} * fragment_size, state.sum[i][j], strip_pitch,
                                     thread);
                }
            });
            machine.warp_barrier();
            machine.each_thread(states, [&](thread_state&, auto thread) {
                const int warp = thread.index / warp_size;
                const float* const strip = strips + std::ptrdiff_t{warp} * strip_floats;
                const std::ptrdiff_t warp_row =
                    row + warp / Tile::warps_across * Tile::warp_rows + i * fragment_size;
                const std::ptrdiff_t warp_column = column + warp % Tile::warps_across * Tile::warp_columns;
                constexpr int chunks_across = Tile::warp_columns / 8;
                for (int n = thread.index % warp_size; n < fragment_size * chunks_across; n += warp_size) {
                    const int line = n / chunks_across;
                    const int position = n % chunks_across * 8;
                    const float* const from = strip + (line * strip_pitch + position);
                    using quarter = chunk<float, 4>;
                    const quarter product[2] = {thread.template load<quarter>(from),
                                                thread.template load<quarter>(from + 4)};
                    finish_chunk(c, product, warp_row + line, warp_column + position);
                }
            });
            machine.warp_barrier();
        }
    }
};

/// Stops the program on lines in shared memory that tensor cores would refuse: the first one must begin at a
/// multiple of 32 bytes and the others at multiples of 16. Devices do that themselves.
template <class Value>
MP_HOST_DEVICE void require_tensor_core_alignment(const Value* first_line, int pitch) {
    require_alignment(first_line, 32);
    require_alignment(first_line + pitch, 16);
}

/// Fragments whose elements and sums are spread over the lanes by hand: lane l has the 8 elements of row l /
/// 2 of an accumulator that begin at column l % 2 * 8. For the host, and for types that the tensor cores of a
/// device do not take: right everywhere, but slow. Products of two elements of half or bfloat16 are exact in
/// float (of 22 and 16 bits), and are added in ascending depth, each sum rounded to nearest.
template <class Input>
struct lane_fragments {
    template <bool DepthContiguous>
    struct factor_fragment {
        const Input* data;
        int pitch;

        /// The element of the given row of A (column of B).
        template <class Thread>
        MP_HOST_DEVICE float at(int outer, int depth, Thread thread) const {
            return static_cast<float>(thread.template load<Input>(
                data + (DepthContiguous ? outer * pitch + depth : depth * pitch + outer)));
        }
    };
    template <bool DepthContiguous>
    using a_fragment = factor_fragment<DepthContiguous>;
    template <bool DepthContiguous>
    using b_fragment = factor_fragment<DepthContiguous>;
    struct accumulator {
        float values[8];
    };

    template <bool DepthContiguous, class Thread>
    MP_HOST_DEVICE static void load(factor_fragment<DepthContiguous>& to, const Input* from, int pitch,
                                    Thread) {
        require_tensor_core_alignment(from, pitch);
        to = {from, pitch};
    }
    MP_HOST_DEVICE static void clear(accumulator& sum) {
        for (float& value : sum.values) value = 0;
    }
    template <bool A, bool B, class Thread>
    MP_HOST_DEVICE static void multiply_add(accumulator& sum, const factor_fragment<A>& a,
                                            const factor_fragment<B>& b, Thread thread) {
        const int lane = thread.index % warp_size;
#if MP_DEVICE_CODE
#pragma unroll 1
#endif
        for (int depth = 0; depth < fragment_size; ++depth) {
            const float left = a.at(lane / 2, depth, thread);
            for (int i = 0; i < 8; ++i) sum.values[i] += left * b.at(lane % 2 * 8 + i, depth, thread);
        }
    }
    template <class Thread>
    MP_HOST_DEVICE static void store(float* to, const accumulator& sum, int pitch, Thread thread) {
        require_tensor_core_alignment(to, pitch);
        const int lane = thread.index % warp_size;
        for (int i = 0; i < 2; ++i) {
            const float* const v = sum.values + 4 * i;
            thread.store(to + (lane / 2 * pitch + lane % 2 * 8 + 4 * i),
                         chunk<float, 4>{{v[0], v[1], v[2], v[3]}});
        }
    }
};

}  // namespace mp::detail
