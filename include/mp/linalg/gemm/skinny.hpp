// SPDX-License-Identifier: MIT
/// \file
/// Products with few rows on the left, such as one sample through a layer: the time goes into reading B,
/// which is therefore read once, from where it lies or is packed, in an order that suits memory.
#pragma once

#include <mp/linalg/gemm/blocked_product.hpp>
#include <mp/linalg/gemm/choose_kernel.hpp>
#include <mp/linalg/gemm/kernels/row_runs.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/numbers/simd/memory.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Most rows for which B is read so: where it comes from memory, packed or in rows that are runs of it, and packed where
/// it is in the caches.
inline constexpr std::ptrdiff_t most_direct_rows = 16;
inline constexpr std::ptrdiff_t most_direct_rows_in_caches = 8;

/// Whether a packed B comes from memory.
inline bool is_far(const packed_panels& b, std::ptrdiff_t columns) {
    return exceeds_caches(static_cast<std::size_t>(divide_up(columns, panel_width) * b.panel_bytes));
}

/// What there is to know beside the task: how B is read.
struct direct_product {
    const product_kernel* kernel;  ///< that of packed panels, or null
    const row_runs_kernel* runs;   ///< that of rows as they lie, or null
    std::ptrdiff_t element_size;   ///< of B as it lies
    bool fetches;                  ///< whether packed panels come from memory

    /// Rows that are multiplied together; a multiple of those of A is filled up with zeros.
    [[nodiscard]] std::ptrdiff_t tile_rows(std::ptrdiff_t of_a) const {
        if (kernel == nullptr) return runs->rows;
        return kernel->choice_for(divide_up(of_a, divide_up(of_a, kernel->rows))).rows;
    }
    [[nodiscard]] std::ptrdiff_t rows(std::ptrdiff_t of_a) const { return round_up(of_a, tile_rows(of_a)); }
};

/// Computes some columns of C, all rows, on the calling thread. B's rows pass by while the sums of all columns
/// wait in the cache.
class skinny_tile {
public:
    static constexpr std::ptrdiff_t k_block = 512;

    static std::ptrdiff_t workspace_bytes(const product_task& task, const direct_product& direct,
                                          std::ptrdiff_t columns) {
        return direct.rows(task.rows) *
               (a_row_bytes + sum_stride(columns) * static_cast<std::ptrdiff_t>(sizeof(float)));
    }

    skinny_tile(const product_task& task, const direct_product& direct, std::byte* workspace,
                std::ptrdiff_t columns)
        : task_(task),
          direct_(direct),
          stride_(sum_stride(columns)),
          rows_(direct.rows(task.rows)),
          a_(workspace),
          sums_(reinterpret_cast<float*>(a_ + rows_ * a_row_bytes)) {}

    void compute(std::ptrdiff_t first_column, std::ptrdiff_t columns) {
        const default_floating_point_modes modes;
        for (std::ptrdiff_t p = 0; p < task_.k; p += k_block) {
            const std::ptrdiff_t k = (std::min)(k_block, task_.k - p);
            task_.pack_a(task_.a, {0, task_.rows, rows_, p, k, round_up(k, 2)}, a_);
            if (direct_.kernel != nullptr) {
                add_panels(first_column, columns, p, k);
            } else {
                add_rows(first_column, columns, p, k);
            }
        }
        for (std::ptrdiff_t column = 0; column < columns; column += output_run) {
            finish_tile(task_.c, sums_ + column, stride_, 0, first_column + column, task_.rows,
                        (std::min)(output_run, columns - column));
        }
    }

private:
    /// Floats from a row of sums to the next: a cache line more than whole panels, because rows that are a power of two
    /// apart would fall into the same few sets of the cache.
    static std::ptrdiff_t sum_stride(std::ptrdiff_t columns) { return round_up(columns, panel_width) + 16; }

    /// Runs of several packed panels by turns: memory delivers more from a few places at once than from one. But the
    /// processor's own prefetching gets lost among them.
    void add_panels(std::ptrdiff_t first_column, std::ptrdiff_t columns, std::ptrdiff_t p, std::ptrdiff_t k) {
        constexpr std::ptrdiff_t side_by_side = 8 * panel_width;
        constexpr std::ptrdiff_t bytes_ahead = 2048;
        const product_kernel& kernel = *direct_.kernel;
        const std::ptrdiff_t tile_rows = direct_.tile_rows(task_.rows);
        const multiply_tile multiply = kernel.multiply_for(tile_rows);
        const std::ptrdiff_t a_element = kernel.a_element == panel_element::float32 ? 4 : 2;
        const std::ptrdiff_t column_bytes = interleaved_bytes(kernel.b_element);
        const std::ptrdiff_t step = panel_width * column_bytes;
        const std::ptrdiff_t steps_of_run =
            rows_ <= 8 ? 16 : bytes_ahead * k_interleave(kernel.b_element) / step;
        for (std::ptrdiff_t group = 0; group < columns; group += side_by_side) {
            const std::ptrdiff_t end = (std::min)(group + side_by_side, columns);
            for (std::ptrdiff_t run = 0; run < k; run += steps_of_run) {
                const std::ptrdiff_t steps = round_up((std::min)(steps_of_run, k - run), kernel.k_unit);
                const std::ptrdiff_t offset = (p + run) / k_interleave(kernel.b_element) * step;
                for (std::ptrdiff_t column = group; column < end; column += kernel.width) {
                    const std::ptrdiff_t panel = (first_column + column) / panel_width;
                    const std::byte* const b = task_.packed_b.data + panel * task_.packed_b.panel_bytes +
                                               offset + column % panel_width * column_bytes;
                    if (direct_.fetches)
                        prefetch(b + bytes_ahead, steps / k_interleave(kernel.b_element), step,
                                 kernel.width * column_bytes);
                    for (std::ptrdiff_t row = 0; row < rows_; row += tile_rows) {
                        multiply({steps, a_ + row * a_row_bytes + run * a_element, a_row_bytes, 0, b, step,
                                  sums_ + row * stride_ + column, stride_, p + run > 0});
                    }
                }
            }
        }
    }

    /// Fetches what lies in `count` lines, `step` bytes apart; it may be past the end.
    static void prefetch(const std::byte* first, std::ptrdiff_t count, std::ptrdiff_t step,
                         std::ptrdiff_t width) {
        const auto address = reinterpret_cast<std::uintptr_t>(first);
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            for (std::ptrdiff_t byte = 0; byte < width; byte += 64) {
                __builtin_prefetch(
                    reinterpret_cast<const void*>(address + static_cast<std::uintptr_t>(i * step + byte)));
            }
        }
    }

    void add_rows(std::ptrdiff_t first_column, std::ptrdiff_t columns, std::ptrdiff_t p, std::ptrdiff_t k) {
        const std::ptrdiff_t row = task_.b.k_stride * direct_.element_size;
        const auto* const b = static_cast<const std::byte*>(task_.b.data);
        direct_.runs->add(
            {k, reinterpret_cast<const float*>(a_), a_row_bytes / static_cast<std::ptrdiff_t>(sizeof(float)),
             rows_, b + p * row + first_column * direct_.element_size, row, columns, sums_, stride_, p > 0});
    }

    const product_task& task_;
    const direct_product& direct_;
    std::ptrdiff_t stride_;
    std::ptrdiff_t rows_;
    std::byte* a_;
    float* sums_;
};

/// Computes the whole product, of at most most_direct_rows rows.
inline void multiply_skinny(cpu exec, const product_task& task, const direct_product& direct,
                            gemm_workspace* workspace) {
    const std::ptrdiff_t panels = divide_up(task.columns, panel_width);
    const double worth_a_thread = grain_of(exec, 0x1p16);  // elements of B
    const double panels_worth_a_thread = worth_a_thread / static_cast<double>(task.k) / panel_width;
    const auto grain = static_cast<std::ptrdiff_t>((std::max)(1.0, panels_worth_a_thread));
    const std::ptrdiff_t chunks =
        std::clamp(panels / grain, std::ptrdiff_t{1}, std::ptrdiff_t{threads_of(exec)});
    const std::ptrdiff_t chunk_columns = divide_up(panels, chunks) * panel_width;
    const std::ptrdiff_t thread_bytes =
        round_up(skinny_tile::workspace_bytes(task, direct, chunk_columns), 4096);
    // A small product needs no heap.
    alignas(64) std::byte on_stack[32 << 10];
    gemm_workspace own;
    // A product that was given memory leaves the executor alone: others may run beside it, as in a batch.
    const mp::workspace::frame frame(workspace == nullptr ? exec.workspace : nullptr);
    std::byte* memory = on_stack;
    if (chunks * thread_bytes > static_cast<std::ptrdiff_t>(sizeof on_stack)) {
        memory = product_memory(exec, workspace, own, static_cast<std::size_t>(chunks * thread_bytes));
    }
    parallel_for(exec, static_cast<std::size_t>(chunks), 1, [&](std::size_t begin, std::size_t end) {
        for (auto index = static_cast<std::ptrdiff_t>(begin); index < static_cast<std::ptrdiff_t>(end);
             ++index) {
            const std::ptrdiff_t column = index * chunk_columns;
            if (column >= task.columns) return;
            const std::ptrdiff_t columns = (std::min)(chunk_columns, task.columns - column);
            skinny_tile(task, direct, memory + index * thread_bytes, columns).compute(column, columns);
        }
    });
}

}}  // namespace mp::detail
