// SPDX-License-Identifier: MIT
/// \file
/// Products with few rows on the left, such as one sample through a layer: the time goes into reading B,
/// which is therefore read once, from where it lies or is packed, in an order that suits memory. Where its columns are
/// contiguous, as with weights that are stored output by output, they are dot products.
#pragma once

#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/linalg/gemm/blocked_product.hpp>
#include <mp/linalg/gemm/choose_kernel.hpp>
#include <mp/linalg/gemm/kernels/dot_tiles.hpp>
#include <mp/linalg/gemm/operand_kernels.hpp>
#include <mp/linalg/gemm/product_kernel.hpp>
#include <mp/linalg/gemm/tile_output.hpp>
#include <mp/linalg/gemm/workspace.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
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

/// Most rows for which B is read so, and fewest elements of B: others are better packed, or small.
inline constexpr std::ptrdiff_t most_dot_rows = 16;
inline constexpr std::ptrdiff_t fewest_dot_elements = 1 << 13;

/// Whether a product of this shape is computed so, where its operands lie as they should.
[[nodiscard]] constexpr bool suits_dots(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t k) {
    return rows <= most_dot_rows && k >= sums_of_row && columns >= divide_up(fewest_dot_elements, k);
}

/// How a product is computed: the kernel, and the one that knows how rows of A are packed for it.
struct dot_choice {
    const dot_kernel* dots;
    const product_kernel* rows;
};

/// The choice for rows of A and columns of B of `k` elements each: by vdpbf16ps where other products of as many
/// rows of these types are.
inline dot_choice choose_dots(instruction_set isa, const dot_kernels& kernels, const operand_kernels& a,
                              const operand_kernels& b, std::ptrdiff_t rows, std::ptrdiff_t columns,
                              std::ptrdiff_t k) {
    const std::ptrdiff_t b_bytes = columns * k * b.facts.size;
#if MP_BEST_TARGET >= MP_TARGET_AVX512
    if (a.facts.is_exact_in_bfloat16 && b.facts.holds_bfloat16) {
        const product_kernel* const narrow_rows = &avx512::narrow_rows;
        if (rows > most_rows_without_dots && bfloat16_dot_is_fast(isa)) return {b.dots_of_pairs, narrow_rows};
        const bool only_narrow_is_kept = k * 2 <= dot_kernels::most_kept && k * 4 > dot_kernels::most_kept &&
                                         b_bytes > dot_kernels::cached;
        if (rows == 1 && only_narrow_is_kept && isa >= instruction_set::avx512) {
            return {b.narrow_dots, narrow_rows};
        }
    }
#else
    static_cast<void>(a);
#endif
    return {&kernels(rows, k, b_bytes), MP_SELECT_TARGET(isa, &portable::float_kernel, float_kernel)};
}

/// A, packed by blocks of 2 KiB of each row, one after the other; of a single row, without the gaps between them.
struct dot_operand {
    static constexpr std::ptrdiff_t packed_bytes = 2048;
    std::ptrdiff_t rows;      ///< a multiple of a tile's
    std::ptrdiff_t packed_k;  ///< elements in packed_bytes
    std::byte* data;

    [[nodiscard]] static std::ptrdiff_t bytes(const dot_kernel& kernel, std::ptrdiff_t rows,
                                              std::ptrdiff_t k) {
        return divide_up(k * kernel.a_size, packed_bytes) * rows * a_row_bytes;
    }
    [[nodiscard]] std::byte* block(std::ptrdiff_t k) const {
        return data + k / packed_k * (rows == 1 ? packed_bytes : rows * a_row_bytes);
    }
    void pack(const product_task& task) const {
        const default_floating_point_modes modes;
        for (std::ptrdiff_t k = 0; k < task.k; k += packed_k) {
            const std::ptrdiff_t count = (std::min)(packed_k, task.k - k);
            task.pack_a(task.a, {0, task.rows, rows, k, count, round_up(count, sums_of_row)}, block(k));
        }
    }
    [[nodiscard]] const std::byte* at(std::ptrdiff_t row, std::ptrdiff_t k) const {
        return block(k) + row * a_row_bytes;
    }
};

/// Computes some columns of C, all rows, on the calling thread.
class dot_columns_of_c {
public:
    static std::ptrdiff_t workspace_bytes(std::ptrdiff_t rows) {
        return rows * (dot_group * sums_of_row + output_run) * static_cast<std::ptrdiff_t>(sizeof(float));
    }

    dot_columns_of_c(const product_task& task, std::ptrdiff_t element_size, const dot_kernel& kernel,
                     const dot_operand& a, std::byte* workspace)
        : task_(task),
          element_size_(element_size),
          kernel_(kernel),
          a_(a),
          sums_(reinterpret_cast<float*>(workspace)),
          products_(sums_ + a.rows * dot_group * sums_of_row) {}

    void compute(std::ptrdiff_t first, std::ptrdiff_t columns) {
        const default_floating_point_modes modes;
        for (std::ptrdiff_t run = 0; run < columns; run += output_run) {
            const std::ptrdiff_t count = (std::min)(output_run, columns - run);
            for (std::ptrdiff_t group = 0; group < count; group += dot_group) {
                multiply_group(first + run + group, (std::min)(dot_group, count - group));
                for (std::ptrdiff_t r = 0; r < task_.rows; ++r) {
                    kernel_.add_up(sums_ + r * dot_group * kernel_.sums, products_ + r * output_run + group);
                }
            }
            finish_tile(task_.c, products_, output_run, 0, first + run, task_.rows, count);
        }
    }

private:
    void multiply_group(std::ptrdiff_t first, std::ptrdiff_t columns) {
        const std::ptrdiff_t b_column = task_.b.vector_stride * element_size_;
        const auto* const b = static_cast<const std::byte*>(task_.b.data) + first * b_column;
        for (std::ptrdiff_t k = 0; k < task_.k; k += kernel_.k_block) {
            const std::ptrdiff_t count = (std::min)(kernel_.k_block, task_.k - k);
            kernel_.multiply({count, a_.at(0, k), a_row_bytes / kernel_.a_size, a_.rows,
                              b + k * element_size_, b_column, columns, sums_, bytes_ahead(count), k > 0});
        }
    }
    /// From an element of B to the one that is fetched into the cache meanwhile: in one of the next columns, or
    /// as far on where columns are longer; where they pass by side by side, farther than the processor itself would.
    [[nodiscard]] std::ptrdiff_t bytes_ahead(std::ptrdiff_t k) const {
        if (task_.columns * task_.k * element_size_ <= dot_kernels::cached) return 0;
        const bool is_row = a_.rows == 1;
        if (is_row && k * kernel_.a_size > dot_kernels::most_kept) return 2048;
        const std::ptrdiff_t fetched = is_row ? 16384 : 8192;
        if (is_row && k * element_size_ > fetched) return fetched;
        const std::ptrdiff_t columns =
            round_up((std::max)(fetched / (k * element_size_), std::ptrdiff_t{1}), kernel_.columns);
        return columns * task_.b.vector_stride * element_size_;
    }

    const product_task& task_;
    std::ptrdiff_t element_size_;
    const dot_kernel& kernel_;
    const dot_operand& a_;
    float* sums_;
    float* products_;
};

/// Computes the whole product, for which suits_dots().
inline void multiply_dots(cpu exec, const product_task& task, std::ptrdiff_t element_size,
                          const dot_kernel& kernel, gemm_workspace* workspace) {
    const double worth_a_thread = grain_of(exec, 0x1p16);  // elements of B
    const auto grain = static_cast<std::ptrdiff_t>(
        (std::max)(1.0, worth_a_thread / static_cast<double>(task.k) / static_cast<double>(dot_group)));
    const std::ptrdiff_t groups = divide_up(task.columns, dot_group);
    const std::ptrdiff_t chunks =
        std::clamp(groups / grain, std::ptrdiff_t{1}, std::ptrdiff_t{threads_of(exec)});
    const std::ptrdiff_t chunk_columns = divide_up(groups, chunks) * dot_group;
    const std::ptrdiff_t rows = round_up(task.rows, kernel.rows);
    const std::ptrdiff_t a_bytes = round_up(dot_operand::bytes(kernel, rows, task.k), 4096);
    const std::ptrdiff_t thread_bytes = round_up(dot_columns_of_c::workspace_bytes(rows), 4096);
    gemm_workspace own;
    // A product that was given memory leaves the executor alone: others may run beside it, as in a batch.
    const mp::workspace::frame frame(workspace == nullptr ? exec.workspace : nullptr);
    std::byte* const memory =
        product_memory(exec, workspace, own, static_cast<std::size_t>(a_bytes + chunks * thread_bytes));
    const dot_operand a{rows, dot_operand::packed_bytes / kernel.a_size, memory};
    a.pack(task);
    parallel_for(exec, static_cast<std::size_t>(chunks), 1, [&](std::size_t begin, std::size_t end) {
        for (auto index = static_cast<std::ptrdiff_t>(begin); index < static_cast<std::ptrdiff_t>(end);
             ++index) {
            const std::ptrdiff_t column = index * chunk_columns;
            if (column >= task.columns) return;
            dot_columns_of_c(task, element_size, kernel, a, memory + a_bytes + index * thread_bytes)
                .compute(column, (std::min)(chunk_columns, task.columns - column));
        }
    });
}

}}  // namespace mp::detail
