// SPDX-License-Identifier: MIT
/// \file
/// A matrix product without the types of its matrices; and the loops around the kernel: blocks that fit the caches, and a
/// tile of C for each thread.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/packing.hpp>
#include <mp/linalg/gemm/product.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr std::ptrdiff_t divide_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return (value + unit - 1) / unit;
}

constexpr std::ptrdiff_t round_up(std::ptrdiff_t value, std::ptrdiff_t unit) {
    return divide_up(value, unit) * unit;
}

/// Where the rows of a tile are, how far it is from one to the next, and with a_layout::tiles from one tile
/// to the next.
struct rows_of_a {
    const std::byte* data;
    std::ptrdiff_t row;
    std::ptrdiff_t tile;
};

/// Where the first step of a tile's columns is, and how far it is to the next.
struct steps_of_b {
    const std::byte* data;
    std::ptrdiff_t step;
};

/// C = A B of rows x columns elements summed over `k`.
struct product_task {
    const product_kernel* kernel;
    product_operand_source a;
    pack_rows_function pack_a;
    bool a_as_is;  ///< whether the kernel can read the rows of A where they lie
    product_operand_source b;
    pack_panels_function pack_b;
    bool b_as_is;            ///< whether the kernel can read the steps of B where they lie
    packed_panels packed_b;  ///< used instead of b if there
    tile_output c;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;

    /// Whether whole tiles of A are better read where they lie than packed. Rows of floats are read one
    /// number at a time and may lie anywhere, as long as a tile's are in few pages. Rows of AMX tiles are
    /// read by cache lines: where they begin at such lines they may be as long as leaves them in different
    /// sets of the second-level cache; where every run of a row takes two cache lines, only as long as what a
    /// tile needs of them stays in the nearest cache.
    [[nodiscard]] bool can_read_a_in_place() const {
        constexpr std::ptrdiff_t line = 64;
        const std::ptrdiff_t row_bytes = a.vector_stride * a_element_size();
        if (kernel->layout == a_layout::rows) return a_as_is && row_bytes <= 4096;
        const bool on_lines = reinterpret_cast<std::uintptr_t>(a.data) % line == 0 && row_bytes % line == 0;
        return a_as_is && row_bytes <= (on_lines ? 8192 : 512);
    }

    /// Whether whole panels of B are better read where they lie: where it is so small that it stays in the
    /// second-level cache and takes few pages.
    [[nodiscard]] bool can_read_b_in_place() const {
        constexpr std::ptrdiff_t most_bytes = 256 << 10;
        return b_as_is && packed_b.data == nullptr &&
               k * b.k_stride * interleaved_bytes(kernel->b_element) <= most_bytes;
    }

    [[nodiscard]] rows_of_a rows_in_place(std::ptrdiff_t row, std::ptrdiff_t p) const {
        const std::ptrdiff_t size = a_element_size();
        const std::ptrdiff_t row_bytes = a.vector_stride * size;
        return {static_cast<const std::byte*>(a.data) + row * row_bytes + p * size, row_bytes, 64};
    }
    [[nodiscard]] steps_of_b steps_in_place(std::ptrdiff_t column, std::ptrdiff_t p) const {
        const std::ptrdiff_t column_bytes = interleaved_bytes(kernel->b_element);
        const std::ptrdiff_t step = b.k_stride * column_bytes;
        return {static_cast<const std::byte*>(b.data) + p * step + column * column_bytes, step};
    }

private:
    [[nodiscard]] std::ptrdiff_t a_element_size() const {
        return kernel->a_element == panel_element::float32 ? 4 : 2;
    }
};

/// A rectangle of C.
struct output_tile {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
};

/// The smallest multiple of `unit` with which `total` divides into as few parts as parts of `largest` would
/// be: equal blocks instead of full ones and a remnant.
constexpr std::ptrdiff_t even_block(std::ptrdiff_t total, std::ptrdiff_t largest, std::ptrdiff_t unit) {
    if (total <= largest) return round_up(total, unit);
    return round_up(divide_up(total, divide_up(total, largest)), unit);
}

/// Sizes of the blocks in which one thread computes its tile, and of the memory that it needs.
///
/// A panel of B (panel_width columns of a block of k) stays in the nearest cache that holds it while
/// the block of A passes by from the second level; the block of B (its columns) is in the second or third.
/// When k takes several blocks and C cannot hold the sums, they wait in a buffer.
struct product_blocks {
    static constexpr std::ptrdiff_t most_b_bytes = 1 << 20;
    static constexpr std::ptrdiff_t most_rows_waiting = 2048;

    std::ptrdiff_t k;
    std::ptrdiff_t rows;          ///< of a block of A
    std::ptrdiff_t columns;       ///< of a block of B, a multiple of panel_width
    std::ptrdiff_t waiting_rows;  ///< rows whose sums wait at the same time
    std::ptrdiff_t panel_bytes;
    std::ptrdiff_t a_bytes;
    std::ptrdiff_t b_bytes;
    std::ptrdiff_t sum_bytes;
    std::ptrdiff_t tile_bytes;

    product_blocks(const product_task& task, std::ptrdiff_t thread_tile_rows,
                   std::ptrdiff_t thread_tile_columns) {
        const product_kernel& kernel = *task.kernel;
        const std::ptrdiff_t unit = (std::max)(kernel.k_unit, std::ptrdiff_t{2});
        k = even_block(task.k, kernel.k_block, unit);
        rows = even_block(thread_tile_rows, rows_of_block(kernel, k), kernel.rows);
        const std::ptrdiff_t column_bytes =
            (panel_bytes_of(kernel.b_element, kernel.k_block) - panel_padding) / panel_width;
        columns = even_block(thread_tile_columns, most_b_bytes / column_bytes, panel_width);
        const bool sums_wait = task.k > k && task.c.sums_in_place() == nullptr;
        waiting_rows = sums_wait ? even_block(thread_tile_rows, most_rows_waiting, rows)
                                 : round_up(thread_tile_rows, rows);
        k = round_up(k, kernel.k_unit);
        panel_bytes = panel_bytes_of(kernel.b_element, k);
        a_bytes = round_up(packed_rows(task, thread_tile_rows) * packed_row_bytes(kernel), 64);
        b_bytes = packed_panels(task) * panel_bytes;
        sum_bytes = sums_wait ? waiting_rows * columns * static_cast<std::ptrdiff_t>(sizeof(float)) : 0;
        tile_bytes = kernel.rows * panel_width * static_cast<std::ptrdiff_t>(sizeof(float));
    }

    [[nodiscard]] std::ptrdiff_t workspace_bytes() const {
        return a_bytes + b_bytes + sum_bytes + tile_bytes;
    }

private:
    /// Rows of a block of A. With a short k, fewer of them stay in the nearest cache together with a tile's columns of
    /// B, which then pass by from the second level: less often than the rows of A would, if there are more
    /// rows than columns.
    static std::ptrdiff_t rows_of_block(const product_kernel& kernel, std::ptrdiff_t k) {
        constexpr std::ptrdiff_t nearest_cache = 28 << 10;
        const std::ptrdiff_t rows_that_stay =
            (nearest_cache / static_cast<std::ptrdiff_t>(sizeof(float)) / k - kernel.width) / kernel.rows *
            kernel.rows;
        return rows_that_stay > kernel.width ? (std::min)(rows_that_stay, kernel.block_rows)
                                             : kernel.block_rows;
    }
    [[nodiscard]] std::ptrdiff_t packed_row_bytes(const product_kernel& kernel) const {
        return kernel.layout == a_layout::rows ? a_row_bytes : k * 2;
    }
    /// Rows of A and panels of B that are packed at a time.
    [[nodiscard]] std::ptrdiff_t packed_rows(const product_task& task,
                                             std::ptrdiff_t thread_tile_rows) const {
        const std::ptrdiff_t unit = task.kernel->rows;
        if (task.can_read_a_in_place() && task.k % task.kernel->k_unit == 0) {
            return task.rows % unit == 0 ? 0 : unit;
        }
        return (std::min)(rows, round_up(thread_tile_rows, unit));
    }
    [[nodiscard]] std::ptrdiff_t packed_panels(const product_task& task) const {
        if (task.packed_b.data != nullptr) return 0;
        if (task.can_read_b_in_place()) return task.columns % panel_width == 0 ? 0 : 1;
        return columns / panel_width;
    }
};

/// Computes a tile of C on one thread.
class thread_tile_product {
public:
    /// `workspace` has blocks.workspace_bytes() and is aligned to 64 bytes.
    thread_tile_product(const product_task& task, const product_blocks& blocks, std::byte* workspace)
        : task_(task),
          kernel_(*task.kernel),
          blocks_(blocks),
          a_(workspace),
          b_(a_ + blocks.a_bytes),
          sums_(reinterpret_cast<float*>(b_ + blocks.b_bytes)),
          tile_(reinterpret_cast<float*>(b_ + blocks.b_bytes + blocks.sum_bytes)),
          in_place_(task.c.sums_in_place()),
          can_read_a_in_place_(task.can_read_a_in_place()),
          can_read_b_in_place_(task.can_read_b_in_place()) {}

    void compute(const output_tile& whole) {
        const default_floating_point_modes modes;
        if (kernel_.begin != nullptr) kernel_.begin();
        for (std::ptrdiff_t column = 0; column < whole.columns; column += blocks_.columns) {
            const std::ptrdiff_t columns = (std::min)(blocks_.columns, whole.columns - column);
            for (std::ptrdiff_t waiting = 0; waiting < whole.rows; waiting += blocks_.waiting_rows) {
                const std::ptrdiff_t rows = (std::min)(blocks_.waiting_rows, whole.rows - waiting);
                compute_waiting({whole.row + waiting, whole.column + column, rows, columns});
            }
        }
        if (kernel_.end != nullptr) kernel_.end();
    }

private:
    /// A block of C whose sums wait, if they have to, for the next block of k.
    void compute_waiting(const output_tile& block) {
        for (std::ptrdiff_t p = 0; p < task_.k; p += blocks_.k) {
            const std::ptrdiff_t k = (std::min)(blocks_.k, task_.k - p);
            const std::ptrdiff_t padded = round_up(k, kernel_.k_unit);
            // Whole tiles' columns of B and whole tiles' rows of A may stay where they lie. The others are
            // packed.
            const std::ptrdiff_t b_unpacked =
                can_read_b_in_place_ ? block.columns / panel_width * panel_width : std::ptrdiff_t{0};
            const std::byte* panels = b_;
            std::ptrdiff_t panel_bytes = blocks_.panel_bytes;
            if (task_.packed_b.data != nullptr) {
                const std::ptrdiff_t steps = p / k_interleave(kernel_.b_element);
                panel_bytes = task_.packed_b.panel_bytes;
                panels = task_.packed_b.data + block.column / panel_width * panel_bytes +
                         steps * panel_width * interleaved_bytes(kernel_.b_element);
            } else if (b_unpacked < block.columns) {
                const std::ptrdiff_t columns = block.columns - b_unpacked;
                task_.pack_b(
                    task_.b,
                    {block.column + b_unpacked, columns, round_up(columns, panel_width), p, k, padded}, b_,
                    panel_bytes);
            }
            for (std::ptrdiff_t row = 0; row < block.rows; row += blocks_.rows) {
                const std::ptrdiff_t rows = (std::min)(blocks_.rows, block.rows - row);
                const std::ptrdiff_t unpacked = can_read_a_in_place_ && padded == k
                                                    ? rows / kernel_.rows * kernel_.rows
                                                    : std::ptrdiff_t{0};
                if (unpacked < rows) {
                    task_.pack_a(task_.a,
                                 {block.row + row + unpacked, rows - unpacked,
                                  round_up(rows - unpacked, kernel_.rows), p, k, padded},
                                 a_);
                }
                for (std::ptrdiff_t column = 0; column < block.columns; column += kernel_.width) {
                    const steps_of_b b = column < b_unpacked
                                             ? task_.steps_in_place(block.column + column, p)
                                             : packed_steps(panels, panel_bytes, column - b_unpacked);
                    const std::ptrdiff_t columns = (std::min)(kernel_.width, block.columns - column);
                    for (std::ptrdiff_t r = 0; r < rows; r += kernel_.rows) {
                        const output_tile tile{block.row + row + r, block.column + column,
                                               (std::min)(kernel_.rows, rows - r), columns};
                        float* const waiting = sums_ + (row + r) * blocks_.columns + column;
                        const rows_of_a a = r < unpacked ? task_.rows_in_place(tile.row, p)
                                                         : packed_rows(r - unpacked, padded);
                        if (in_place_ != nullptr || p + k == task_.k) prefetch(tile);
                        compute_tile(tile, a, b, waiting, padded, p > 0, p + k == task_.k);
                    }
                }
            }
        }
    }

    [[nodiscard]] rows_of_a packed_rows(std::ptrdiff_t row, std::ptrdiff_t padded) const {
        if (kernel_.layout == a_layout::rows) return {a_ + row * a_row_bytes, a_row_bytes, 0};
        return {a_ + row * padded * 2, 64, 2048};
    }
    [[nodiscard]] steps_of_b packed_steps(const std::byte* panels, std::ptrdiff_t panel_bytes,
                                          std::ptrdiff_t column) const {
        const std::ptrdiff_t column_bytes = interleaved_bytes(kernel_.b_element);
        return {panels + column / panel_width * panel_bytes + column % panel_width * column_bytes,
                panel_width * column_bytes};
    }

    /// C is written a tile at a time, whose rows (or columns) are far apart: asks for those of a tile before it is
    /// computed.
    void prefetch(const output_tile& tile) const {
#if defined(__GNUC__)
        if (task_.c.needs_columns()) return;
        constexpr std::ptrdiff_t fetched = 64;
        const std::ptrdiff_t row = task_.c.transposed ? tile.column : tile.row;
        const std::ptrdiff_t column = task_.c.transposed ? tile.row : tile.column;
        const auto* vector = static_cast<const std::byte*>(task_.c.at(row, column));
        const std::ptrdiff_t bytes = tile.columns * task_.c.element_size;
        for (std::ptrdiff_t r = 0; r < tile.rows;
             ++r, vector += task_.c.leading_dimension * task_.c.element_size) {
            for (std::ptrdiff_t j = 0; j < bytes; j += fetched) __builtin_prefetch(vector + j, 1);
        }
#endif
    }

    /// Inlined, since its arguments would pass through memory and be read back as wider words than they were
    /// written: a load that has to wait until all of the tile before is in the cache.
    MP_ALWAYS_INLINE void compute_tile(const output_tile& tile, const rows_of_a& a, const steps_of_b& b,
                                       float* waiting, std::ptrdiff_t k, bool resume, bool last) {
        const multiply_tile multiply = kernel_.multiply_for(tile.rows, tile.columns);
        tile_product product{k, a.data, a.row, a.tile, b.data, b.step, tile_, panel_width, resume};
        if (in_place_ != nullptr) {
            if (task_.c.piece != 0 && !is_in_one_piece(tile)) return compute_pieces(tile, multiply, product);
            float* const c = sums_in_place(tile);
            if (tile.rows == kernel_.rows && tile.columns == kernel_.width) {
                product.tile = c;
                product.tile_stride = task_.c.leading_dimension;
                multiply(product);
                return;
            }
            if (resume) copy_rows(c, task_.c.leading_dimension, tile_, panel_width, tile.rows, tile.columns);
            multiply(product);
            copy_rows(tile_, panel_width, c, task_.c.leading_dimension, tile.rows, tile.columns);
            return;
        }
        if (task_.k > blocks_.k) {
            product.tile = waiting;
            product.tile_stride = blocks_.columns;
        }
        multiply(product);
        if (last) {
            finish_tile(task_.c, product.tile, product.tile_stride, tile.row, tile.column, tile.rows,
                        tile.columns);
        }
    }

    /// Where the sums of a tile are added up in C, whose vectors are the rows of the tiles.
    [[nodiscard]] float* sums_in_place(const output_tile& tile) const {
        if (task_.c.piece != 0) return static_cast<float*>(task_.c.at(tile.row, tile.column));
        return in_place_ + tile.row * task_.c.leading_dimension + tile.column;
    }
    [[nodiscard]] bool is_in_one_piece(const output_tile& tile) const {
        return tile.column % task_.c.piece <= task_.c.piece - tile.columns;
    }

    /// A tile that is added up in C and lies in several pieces of it.
    MP_NEVER_INLINE void compute_pieces(const output_tile& tile, multiply_tile multiply,
                                        const tile_product& product) {
        const std::ptrdiff_t stride = task_.c.leading_dimension;
        if (product.resume) {
            task_.c.for_each_part(tile.row, tile.column, tile.columns,
                                  [&](std::ptrdiff_t first, std::ptrdiff_t count, const void* c) {
                                      copy_rows(static_cast<const float*>(c), stride, tile_ + first,
                                                panel_width, tile.rows, count);
                                  });
        }
        multiply(product);
        task_.c.for_each_part(
            tile.row, tile.column, tile.columns, [&](std::ptrdiff_t first, std::ptrdiff_t count, void* c) {
                copy_rows(tile_ + first, panel_width, static_cast<float*>(c), stride, tile.rows, count);
            });
    }

    static void copy_rows(const float* from, std::ptrdiff_t from_stride, float* to, std::ptrdiff_t to_stride,
                          std::ptrdiff_t rows, std::ptrdiff_t columns) {
        for (std::ptrdiff_t r = 0; r < rows; ++r) {
            std::copy_n(from + r * from_stride, columns, to + r * to_stride);
        }
    }

    const product_task& task_;
    const product_kernel& kernel_;
    const product_blocks& blocks_;
    std::byte* a_;
    std::byte* b_;
    float* sums_;
    float* tile_;
    float* in_place_;
    bool can_read_a_in_place_;
    bool can_read_b_in_place_;
};

/// How C is divided among threads: a grid of tiles whose sides are multiples of the kernel's.
struct thread_grid {
    std::ptrdiff_t rows = 1;
    std::ptrdiff_t columns = 1;
};

/// The grid of at most as many tiles as threads whose largest tile is done first. A thread is worth starting
/// for about a million multiplications.
inline thread_grid choose_grid(cpu exec, const product_task& task) {
    const double worth_a_thread = grain_of(exec, 0x1p20);
    // What a packed element costs in multiplications; every thread packs its own rows of A and columns of B.
    constexpr double packing = 24;
    const double work =
        static_cast<double>(task.rows) * static_cast<double>(task.columns) * static_cast<double>(task.k);
    if (exec.threads == 1 || work < 2 * worth_a_thread) return {};
    const auto useful =
        static_cast<std::ptrdiff_t>((std::min)(work / worth_a_thread, static_cast<double>(threads_of(exec))));
    thread_grid best;
    double best_cost = (std::numeric_limits<double>::max)();
    for (std::ptrdiff_t down = 1; down <= useful; ++down) {
        const std::ptrdiff_t across = useful / down;
        const auto thread_tile_rows =
            static_cast<double>(round_up(divide_up(task.rows, down), task.kernel->rows));
        const auto thread_tile_columns =
            static_cast<double>(round_up(divide_up(task.columns, across), panel_width));
        const double cost =
            thread_tile_rows * thread_tile_columns + packing * (thread_tile_rows + thread_tile_columns);
        if (cost < best_cost) {
            best = {down, across};
            best_cost = cost;
        }
    }
    return best;
}

/// Computes the whole product. rows, columns and k are positive. Memory is taken before anything is
/// written.
inline void multiply_blocked(cpu exec, const product_task& task, gemm_workspace* workspace) {
    const thread_grid grid = choose_grid(exec, task);
    const std::ptrdiff_t thread_tile_rows = round_up(divide_up(task.rows, grid.rows), task.kernel->rows);
    const std::ptrdiff_t thread_tile_columns = round_up(divide_up(task.columns, grid.columns), panel_width);
    const std::ptrdiff_t thread_tiles_down = divide_up(task.rows, thread_tile_rows);
    const std::ptrdiff_t thread_tiles_across = divide_up(task.columns, thread_tile_columns);
    const std::ptrdiff_t thread_tiles = thread_tiles_down * thread_tiles_across;
    const product_blocks blocks(task, (std::min)(thread_tile_rows, task.rows),
                                (std::min)(thread_tile_columns, task.columns));

    const std::ptrdiff_t thread_bytes = round_up(blocks.workspace_bytes(), 4096);
    // A small product needs no heap.
    alignas(64) std::byte on_stack[32 << 10];
    gemm_workspace own;
    // A product that was given memory leaves the executor alone: others may run beside it, as in a batch.
    const mp::workspace::frame frame(workspace == nullptr ? exec.workspace : nullptr);
    std::byte* memory = on_stack;
    if (thread_tiles * thread_bytes > static_cast<std::ptrdiff_t>(sizeof on_stack)) {
        memory = product_memory(exec, workspace, own, static_cast<std::size_t>(thread_tiles * thread_bytes));
    }
    parallel_for(exec, static_cast<std::size_t>(thread_tiles), 1, [&](std::size_t begin, std::size_t end) {
        for (auto index = static_cast<std::ptrdiff_t>(begin); index < static_cast<std::ptrdiff_t>(end);
             ++index) {
            const std::ptrdiff_t row = index / thread_tiles_across * thread_tile_rows;
            const std::ptrdiff_t column = index % thread_tiles_across * thread_tile_columns;
            thread_tile_product(task, blocks, memory + index * thread_bytes)
                .compute({row, column, (std::min)(thread_tile_rows, task.rows - row),
                          (std::min)(thread_tile_columns, task.columns - column)});
        }
    });
}

}}  // namespace mp::detail
