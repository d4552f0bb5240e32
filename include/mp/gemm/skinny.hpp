// SPDX-License-Identifier: MIT
/// \file
/// Products with few rows on the left, such as one sample through a layer: the time goes into reading B,
/// which is therefore read once, from where it lies or is packed, in an order that suits memory.
#pragma once

#include <mp/gemm/blocked_product.hpp>
#include <mp/gemm/choose_kernel.hpp>
#include <mp/gemm/product_kernel.hpp>
#include <mp/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// Most rows for which B is read so.
inline constexpr std::ptrdiff_t most_direct_rows = 8;

/// The kernel that reads rows of B of this type from memory, or null.
template <class B>
const product_kernel* direct_kernel_for(instruction_set isa) {
    const product_kernel* const none = nullptr;
    if constexpr (std::is_same_v<B, float>) return MP_SELECT_TARGET(isa, none, float_kernel);
    if constexpr (panel_element_of<B>() == panel_element::binary16) {
        return MP_SELECT_TARGET(isa, none, binary16_kernel);
    }
    if constexpr (holds_bfloat16<B>) return MP_SELECT_TARGET(isa, none, bfloat16_row_kernel);
    static_cast<void>(isa);
    return none;
}

/// What there is to know beside the task: how B is read.
struct direct_product {
    const product_kernel* kernel;
    bool is_packed;                          ///< whether task.packed_b is read, or B as it lies
    std::ptrdiff_t element_size;             ///< of B as it lies
    const product_kernel* float_kernel;      ///< for the columns of it that are no whole tile
    pack_panels_function pack_float_panels;  ///< and how these are packed
};

/// Computes some columns of C, all rows, on the calling thread. Runs of B's rows pass by while the sums of
/// all columns wait in the cache.
class skinny_tile {
public:
    /// Rows of B that are read side by side: no more than a processor fetches ahead.
    static constexpr std::ptrdiff_t rows_of_run = 16;
    static constexpr std::ptrdiff_t k_block = 512;

    static std::ptrdiff_t workspace_bytes(const direct_product& direct, std::ptrdiff_t columns) {
        const std::ptrdiff_t rows = direct.kernel->rows;
        return rows * a_row_bytes + rows * round_up(columns, panel_width) * 4 +
               panel_bytes_of(panel_element::float32, k_block);
    }

    skinny_tile(const product_task& task, const direct_product& direct, std::byte* workspace,
                std::ptrdiff_t columns)
        : task_(task),
          direct_(direct),
          stride_(round_up(columns, panel_width)),
          panel_(workspace),
          a_(panel_ + panel_bytes_of(panel_element::float32, k_block)),
          sums_(reinterpret_cast<float*>(a_ + direct.kernel->rows * a_row_bytes)) {}

    void compute(std::ptrdiff_t first_column, std::ptrdiff_t columns) {
        const default_floating_point_modes modes;
        for (std::ptrdiff_t p = 0; p < task_.k; p += k_block) {
            const std::ptrdiff_t k = (std::min)(k_block, task_.k - p);
            const std::ptrdiff_t padded = round_up(k, direct_.kernel->k_unit);
            task_.pack_a(task_.a, {0, task_.rows, direct_.kernel->rows, p, k, padded}, a_);
            if (direct_.is_packed) {
                add_panels(first_column, columns, p, k);
            } else {
                add_whole_tiles(first_column, columns, p, k);
                add_last_columns(first_column, columns, p, k);
            }
        }
        for (std::ptrdiff_t column = 0; column < columns; column += output_run) {
            finish_tile(task_.c, sums_ + column, stride_, 0, first_column + column, task_.rows,
                        (std::min)(output_run, columns - column));
        }
    }

private:
    /// Runs of several packed panels by turns: memory delivers more from a few places at once than from one.
    void add_panels(std::ptrdiff_t first_column, std::ptrdiff_t columns, std::ptrdiff_t p, std::ptrdiff_t k) {
        constexpr std::ptrdiff_t side_by_side = 8 * panel_width;
        constexpr std::ptrdiff_t steps_of_run = 16;
        const product_kernel& kernel = *direct_.kernel;
        const multiply_tile multiply = kernel.multiply_for(task_.rows);
        const std::ptrdiff_t column_bytes = interleaved_bytes(kernel.b_element);
        const std::ptrdiff_t step = panel_width * column_bytes;
        for (std::ptrdiff_t group = 0; group < columns; group += side_by_side) {
            const std::ptrdiff_t end = (std::min)(group + side_by_side, columns);
            for (std::ptrdiff_t run = 0; run < k; run += steps_of_run) {
                const std::ptrdiff_t offset = (p + run) / k_interleave(kernel.b_element) * step;
                for (std::ptrdiff_t column = group; column < end; column += kernel.width) {
                    const std::ptrdiff_t panel = (first_column + column) / panel_width;
                    multiply({round_up((std::min)(steps_of_run, k - run), kernel.k_unit),
                              a_ + run * static_cast<std::ptrdiff_t>(sizeof(float)), a_row_bytes, 0,
                              task_.packed_b.data + panel * task_.packed_b.panel_bytes + offset +
                                  column % panel_width * column_bytes,
                              step, sums_ + column, stride_, p + run > 0});
                }
            }
        }
    }

    void add_whole_tiles(std::ptrdiff_t first_column, std::ptrdiff_t columns, std::ptrdiff_t p,
                         std::ptrdiff_t k) {
        const product_kernel& kernel = *direct_.kernel;
        const multiply_tile multiply = kernel.multiply_for(task_.rows);
        const std::ptrdiff_t step = task_.b.k_stride * direct_.element_size;
        const auto* const b =
            static_cast<const std::byte*>(task_.b.data) + first_column * direct_.element_size;
        for (std::ptrdiff_t run = 0; run < k; run += rows_of_run) {
            const std::byte* const rows = b + (p + run) * step;
            for (std::ptrdiff_t column = 0; column + kernel.width <= columns; column += kernel.width) {
                multiply({(std::min)(rows_of_run, k - run),
                          a_ + run * static_cast<std::ptrdiff_t>(sizeof(float)), a_row_bytes, 0,
                          rows + column * direct_.element_size, step, sums_ + column, stride_, p + run > 0});
            }
        }
    }

    void add_last_columns(std::ptrdiff_t first_column, std::ptrdiff_t columns, std::ptrdiff_t p,
                          std::ptrdiff_t k) {
        const product_kernel& kernel = *direct_.float_kernel;
        const std::ptrdiff_t done = columns / kernel.width * kernel.width;
        if (done == columns) return;
        direct_.pack_float_panels(task_.b, {first_column + done, columns - done, panel_width, p, k, k},
                                  panel_, panel_bytes_of(panel_element::float32, k_block));
        kernel.multiply_for(task_.rows)({k, a_, a_row_bytes, 0, panel_,
                                         panel_width * static_cast<std::ptrdiff_t>(sizeof(float)),
                                         sums_ + done, stride_, p > 0});
    }

    const product_task& task_;
    const direct_product& direct_;
    std::ptrdiff_t stride_;
    std::byte* panel_;
    std::byte* a_;
    float* sums_;
};

/// Computes the whole product, of at most most_direct_rows rows, with B packed or its rows being runs of
/// memory.
inline void multiply_skinny(cpu exec, const product_task& task, const direct_product& direct,
                            gemm_workspace* workspace) {
    const std::ptrdiff_t panels = divide_up(task.columns, panel_width);
    const double worth_a_thread = grain_of(exec, 0x1p16);  // elements of B
    const double panels_worth_a_thread = worth_a_thread / static_cast<double>(task.k) / panel_width;
    const auto grain = static_cast<std::ptrdiff_t>((std::max)(1.0, panels_worth_a_thread));
    const std::ptrdiff_t chunks =
        std::clamp(panels / grain, std::ptrdiff_t{1}, std::ptrdiff_t{threads_of(exec)});
    const std::ptrdiff_t chunk_columns = divide_up(panels, chunks) * panel_width;
    const std::ptrdiff_t thread_bytes = round_up(skinny_tile::workspace_bytes(direct, chunk_columns), 4096);
    gemm_workspace own;
    // A product that was given memory leaves the executor alone: others may run beside it, as in a batch.
    const mp::workspace::frame frame(workspace == nullptr ? exec.workspace : nullptr);
    std::byte* const memory =
        product_memory(exec, workspace, own, static_cast<std::size_t>(chunks * thread_bytes));
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

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
