// SPDX-License-Identifier: MIT
/// \file
/// The loops around the micro-kernel: blocks that fit the caches, and pieces of C for the threads.
#pragma once

#include <mp/detail/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/gemm/micro_kernel.hpp>
#include <mp/gemm/packing.hpp>
#include <mp/gemm/tile_output.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

namespace mp::detail {

/// C = A B of rows x columns elements summed over `depth`, with C in row-major order.
struct product_task {
    panel_source a;
    panel_source b;
    tile_output c;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t depth;
};

/// A rectangle of C.
struct output_piece {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
};

constexpr std::ptrdiff_t divide_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return (value + unit - 1) / unit;
}

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return divide_up(value, unit) * unit;
}

/// The smallest multiple of `unit` with which `total` divides into as few parts as parts of `largest` would
/// be: equal blocks instead of full ones and a remnant.
constexpr std::ptrdiff_t even_block(std::ptrdiff_t total, std::ptrdiff_t largest, std::ptrdiff_t unit) {
    if (total <= largest) return round_up(total, unit);
    return round_up(divide_up(total, divide_up(total, largest)), unit);
}

/// Sizes of the blocks in which one thread computes a piece, and of the memory that it needs.
///
/// A panel of B (depth x width floats) stays in the first-level cache while the panels of one block of A
/// (depth x rows) pass by from the second-level cache; the block of B (depth x columns) is in the second or
/// third level. When the depth takes several blocks, the sums wait for the next one in a buffer of block_rows
/// x columns.
template <class Kernel>
struct blocking {
    static constexpr std::ptrdiff_t most_depth = 512;
    static constexpr std::ptrdiff_t most_panel_rows = 96 / Kernel::rows * Kernel::rows;
    static constexpr std::ptrdiff_t most_columns = 512 / Kernel::width * Kernel::width;
    static constexpr std::ptrdiff_t most_rows_waiting = 4096 / Kernel::rows * Kernel::rows;

    std::ptrdiff_t depth;
    std::ptrdiff_t panel_rows;  ///< rows of a block of A, a multiple of Kernel::rows
    std::ptrdiff_t columns;     ///< a multiple of Kernel::width
    std::ptrdiff_t block_rows;  ///< rows whose sums wait at the same time, a multiple of Kernel::rows
    std::ptrdiff_t a_floats;
    std::ptrdiff_t b_floats;
    std::ptrdiff_t sum_floats;

    blocking(std::ptrdiff_t piece_rows, std::ptrdiff_t piece_columns, std::ptrdiff_t whole_depth)
        : depth(even_block(whole_depth, most_depth, 1)),
          panel_rows(even_block(piece_rows, most_panel_rows, Kernel::rows)),
          columns(even_block(piece_columns, most_columns, Kernel::width)),
          block_rows(whole_depth > depth ? even_block(piece_rows, most_rows_waiting, Kernel::rows)
                                         : round_up(piece_rows, Kernel::rows)),
          a_floats(round_up(panel_rows * depth, 16)),
          b_floats(round_up(columns * depth, 16)),
          sum_floats(whole_depth > depth ? block_rows * columns
                                         : std::ptrdiff_t{Kernel::rows} * Kernel::width) {}

    [[nodiscard]] std::ptrdiff_t workspace_floats() const { return a_floats + b_floats + sum_floats; }
};

/// Computes one piece of C on the calling thread. `workspace` holds blocking.workspace_floats() floats and is
/// aligned to 64 bytes.
template <class Kernel>
void multiply_piece(const product_task& task, const output_piece& piece, const blocking<Kernel>& blocks,
                    float* workspace) {
    float* const a_panels = workspace;
    float* const b_panels = a_panels + blocks.a_floats;
    float* const sums = b_panels + blocks.b_floats;
    constexpr std::ptrdiff_t tile_floats = std::ptrdiff_t{Kernel::rows} * Kernel::width;
    const bool sums_wait = task.depth > blocks.depth;

    const auto multiply_block = [&](const output_piece& block, std::ptrdiff_t waiting_row, std::ptrdiff_t k,
                                    std::ptrdiff_t depth) {
        task.a.pack(task.a, block.row, block.rows, k, depth, a_panels);
        const bool last = k + depth == task.depth;
        for (std::ptrdiff_t column = 0; column < block.columns; column += Kernel::width) {
            const std::ptrdiff_t columns = std::min<std::ptrdiff_t>(Kernel::width, block.columns - column);
            for (std::ptrdiff_t row = 0; row < block.rows; row += Kernel::rows) {
                const std::ptrdiff_t rows = std::min<std::ptrdiff_t>(Kernel::rows, block.rows - row);
                float* tile = sums;
                if (sums_wait) {
                    const std::ptrdiff_t tiles_in_column = blocks.block_rows / Kernel::rows;
                    tile += (column / Kernel::width * tiles_in_column + (waiting_row + row) / Kernel::rows) *
                            tile_floats;
                }
                product_for<Kernel>(rows, columns)(depth, a_panels + row * depth, b_panels + column * depth,
                                                   tile, k > 0);
                if (last) {
                    task.c.finish(task.c, tile, Kernel::width, true, block.row + row, block.column + column,
                                  rows, columns);
                }
            }
        }
    };

    for (std::ptrdiff_t column = 0; column < piece.columns; column += blocks.columns) {
        const std::ptrdiff_t columns = std::min(blocks.columns, piece.columns - column);
        for (std::ptrdiff_t waiting = 0; waiting < piece.rows; waiting += blocks.block_rows) {
            const std::ptrdiff_t waiting_rows = std::min(blocks.block_rows, piece.rows - waiting);
            for (std::ptrdiff_t k = 0; k < task.depth; k += blocks.depth) {
                const std::ptrdiff_t depth = std::min(blocks.depth, task.depth - k);
                task.b.pack(task.b, piece.column + column, columns, k, depth, b_panels);
                for (std::ptrdiff_t row = 0; row < waiting_rows; row += blocks.panel_rows) {
                    const std::ptrdiff_t rows = std::min(blocks.panel_rows, waiting_rows - row);
                    multiply_block({piece.row + waiting + row, piece.column + column, rows, columns}, row, k,
                                   depth);
                }
            }
        }
    }
}

/// How the rows and columns of C are dealt to threads: a grid of pieces whose sides are whole tiles.
struct thread_grid {
    std::ptrdiff_t rows = 1;
    std::ptrdiff_t columns = 1;
};

/// The grid of at most `threads` pieces whose largest piece is done first. A thread is worth starting for
/// about a million multiplications.
template <class Kernel>
thread_grid choose_grid(int threads, std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth) {
    constexpr double worth_a_thread = 1 << 20;
    // What a packed element costs in multiplications; every piece packs its own rows of A and columns of B.
    constexpr double packing = 24;
    const double work = static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(depth);
    if (threads == 1 || work < 2 * worth_a_thread) return {};
    const auto useful =
        static_cast<std::ptrdiff_t>(std::min(work / worth_a_thread, static_cast<double>(threads)));
    thread_grid best;
    double best_cost = std::numeric_limits<double>::max();
    for (std::ptrdiff_t down = 1; down <= useful; ++down) {
        const std::ptrdiff_t across = useful / down;
        const auto piece_rows = static_cast<double>(round_up(divide_up(rows, down), Kernel::rows));
        const auto piece_columns = static_cast<double>(round_up(divide_up(columns, across), Kernel::width));
        const double cost = piece_rows * piece_columns + packing * (piece_rows + piece_columns);
        if (cost < best_cost) {
            best = {down, across};
            best_cost = cost;
        }
    }
    return best;
}

/// Computes the whole product with the given micro-kernel. rows, columns and depth are positive. Memory is
/// taken before anything is written; small products on one thread take none.
template <class Kernel>
void multiply_blocked(cpu exec, const product_task& task) {
    const thread_grid grid = choose_grid<Kernel>(exec.threads, task.rows, task.columns, task.depth);
    const std::ptrdiff_t piece_rows = round_up(divide_up(task.rows, grid.rows), Kernel::rows);
    const std::ptrdiff_t piece_columns = round_up(divide_up(task.columns, grid.columns), Kernel::width);
    const std::ptrdiff_t pieces_down = divide_up(task.rows, piece_rows);
    const std::ptrdiff_t pieces_across = divide_up(task.columns, piece_columns);
    const std::ptrdiff_t pieces = pieces_down * pieces_across;
    const blocking<Kernel> blocks(std::min(piece_rows, task.rows), std::min(piece_columns, task.columns),
                                  task.depth);

    constexpr std::ptrdiff_t small = 8192;
    const std::ptrdiff_t share = round_up(blocks.workspace_floats(), 16);
    if (pieces == 1 && share <= small) {
        alignas(64) float workspace[small];
        multiply_piece(task, {0, 0, task.rows, task.columns}, blocks, workspace);
        return;
    }
    const auto memory =
        std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(pieces * share + 16));
    const std::uintptr_t misaligned = reinterpret_cast<std::uintptr_t>(memory.get()) % 64;
    float* const workspace = memory.get() + (misaligned == 0 ? 0 : (64 - misaligned) / sizeof(float));
    parallel_for(cpu{static_cast<int>(pieces)}, static_cast<std::size_t>(pieces), 1,
                 [&](std::size_t begin, std::size_t end) {
                     for (auto index = static_cast<std::ptrdiff_t>(begin);
                          index < static_cast<std::ptrdiff_t>(end); ++index) {
                         const std::ptrdiff_t row = index / pieces_across * piece_rows;
                         const std::ptrdiff_t column = index % pieces_across * piece_columns;
                         multiply_piece(task,
                                        {row, column, std::min(piece_rows, task.rows - row),
                                         std::min(piece_columns, task.columns - column)},
                                        blocks, workspace + index * share);
                     }
                 });
}

}  // namespace mp::detail
