// SPDX-License-Identifier: MIT
/// \file
/// Scales of 8-bit tensors that live on a GPU: tensors are measured and rounded there, and scales follow from
/// their largest magnitudes without the host. And operands that are rounded to MXFP8 and back, for layers of that policy.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/base/view_extent.hpp>
#include <mp/bfloat16.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/gpu_executor.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/rules/quantised_operand.hpp>
#include <mp/numbers/rules/scaled_code.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr std::size_t reduction_bytes = gpu::block_group<row_threads>::shared_bytes(row_threads);

/// How the scale of a tensor follows from its own amax; a branch, so that kernels are compiled once for both.
struct tensor_scale_rule {
    delayed_scaling delayed;
    current_scaling current;
    bool is_current;

    explicit tensor_scale_rule(const delayed_scaling& rule) : delayed(rule), current{}, is_current(false) {}
    explicit tensor_scale_rule(const current_scaling& rule) : delayed{}, current(rule), is_current(true) {}

    [[nodiscard]] MP_HOST_DEVICE float scale(float amax) const {
        return is_current ? current.scale(amax) : delayed.scale_for(amax, 1.0F);
    }
};

/// Whether a tensor is to be scaled by its own amax: always with current scaling, and as long as delayed
/// scaling has nothing to go by.
MP_ANY_EXECUTION_SPACE
template <class Thread>
[[nodiscard]] MP_HOST_DEVICE bool scaled_by_itself(Thread thread, const device_tensor_scale* scale) {
    return thread.load(&scale->updates) == 0;
}

/// Forgets the amax of the tensor before; where this one is scaled by its own, each block finds that of a part.
template <class Value>
struct tensor_amax_kernel {
    static constexpr int threads = row_threads;
    static constexpr int width = row_chunk<Value>;
    row_matrix<const Value> from;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    device_tensor_scale* scale;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.block() == 0 && thread.index() == 0) {
            thread.store(&scale->amax_bits, 0U);
        }
        if (!scaled_by_itself(thread, scale)) return;
        std::uint32_t amax = 0;
        const std::ptrdiff_t across = (columns + width - 1) / width;
        const std::ptrdiff_t step = thread.blocks() * threads;
        for (std::ptrdiff_t i = thread.block() * threads + thread.index(); i < rows * across; i += step) {
            const std::ptrdiff_t row = rows == 1 ? 0 : i / across;
            const row_floats<width> values =
                load_row_floats<width>(thread, from, row, (i - row * across) * width, columns);
            MP_UNROLL
            for (int j = 0; j < width; ++j) {
                amax = larger_word{}(amax, bit_cast<std::uint32_t>(values.values[j]) & 0x7fffffffU);
            }
        }
        amax = gpu::block_reduce<threads>(thread, amax, larger_word{}, simt::shared_pointer<std::uint32_t>{});
        if (thread.index() == 0) thread.store(scale->parts + thread.block(), amax);
    }
};

/// The tile of a warp in kernels that round a matrix along both of its directions: a lane has 32 elements of a
/// column, so that these are 32 neighbours of a row of the transpose. Warps of a block lie side by side.
struct column_tiles {
    static constexpr int rows = 32;
    static constexpr int columns = row_threads;  ///< of a block

    [[nodiscard]] static std::ptrdiff_t blocks(std::ptrdiff_t of_rows, std::ptrdiff_t of_columns) {
        return ((of_rows - 1) / rows + 1) * ((of_columns - 1) / columns + 1);
    }
};

/// What a thread has of it: the first `count` of the elements [row, row + 32) of a column, and zeros.
struct column_of_tile {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    int count;
    float values[std::size_t{column_tiles::rows}];
};
MP_ANY_EXECUTION_SPACE
template <class Thread, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE column_of_tile load_column(Thread thread, const Value* from,
                                                                         std::ptrdiff_t stride,
                                                                         std::ptrdiff_t rows,
                                                                         std::ptrdiff_t columns) {
    const std::ptrdiff_t across = (columns + column_tiles::columns - 1) / column_tiles::columns;
    column_of_tile tile;
    tile.row = thread.block() / across * column_tiles::rows;
    tile.column = thread.block() % across * column_tiles::columns + thread.index();
    const std::ptrdiff_t left = tile.column < columns ? rows - tile.row : 0;
    tile.count = left < column_tiles::rows ? static_cast<int>(left) : column_tiles::rows;
    const Value* at = from + (tile.row * stride + tile.column);
    MP_UNROLL
    for (int r = 0; r < column_tiles::rows; ++r, at += stride) {
        tile.values[r] = r < tile.count ? static_cast<float>(thread.load(at)) : 0.0F;
    }
    return tile;
}

/// Stores elements as a column of one matrix, and as a part of a row of another; null for none.
MP_ANY_EXECUTION_SPACE
template <class Thread, class To>
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_column(Thread thread, const column_of_tile& tile,
                                                  const To (&values)[std::size_t{column_tiles::rows}], To* to,
                                                  std::ptrdiff_t stride) {
    if (to == nullptr) return;
    To* at = to + (tile.row * stride + tile.column);
    MP_UNROLL
    for (int r = 0; r < column_tiles::rows; ++r, at += stride) {
        if (r < tile.count) thread.store(at, values[r]);
    }
}
MP_ANY_EXECUTION_SPACE
template <class Thread, class To>
MP_HOST_DEVICE MP_ALWAYS_INLINE void store_turned(Thread thread, const column_of_tile& tile,
                                                  const To (&values)[std::size_t{column_tiles::rows}], To* to,
                                                  std::ptrdiff_t stride, bool wide) {
    if (to == nullptr) return;
    constexpr int width = static_cast<int>(16 / sizeof(To));
    To* const at = to + (tile.column * stride + tile.row);
    MP_UNROLL
    for (int first = 0; first < column_tiles::rows; first += width) {
        if (wide && first + width <= tile.count) {
            chunk<To, width> part;
            MP_UNROLL
            for (int i = 0; i < width; ++i) part.values[i] = values[first + i];
            thread.store(chunk_at<width>(at + first), part);
        } else {
            MP_UNROLL
            for (int i = 0; i < width; ++i) {
                if (first + i < tile.count) thread.store(at + first + i, values[first + i]);
            }
        }
    }
}

/// Whether rows of a matrix can be stored in accesses of 16 bytes.
template <class Value>
[[nodiscard]] bool rows_are_wide(matrix_view<Value> it) {
    return rows_of<static_cast<int>(16 / sizeof(Value))>(it).wide;
}

/// Codes and those of the transpose, and the amax, in one pass over the tensor.
template <class Value, class Format>
struct tensor_quantise_kernel {
    static constexpr int threads = row_threads;
    const Value* from;
    std::ptrdiff_t from_stride;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    Format* codes;
    std::ptrdiff_t codes_stride;
    Format* turned;
    std::ptrdiff_t turned_stride;
    bool turned_wide;
    std::ptrdiff_t part_count;
    tensor_scale_rule rule;
    device_tensor_scale* scale;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const simt::shared_pointer<std::uint32_t> room{};
        float factor = 0.0F;
        if (scaled_by_itself(thread, scale)) {
            std::uint32_t amax = thread.index() < part_count ? thread.load(scale->parts + thread.index()) : 0;
            amax = gpu::block_reduce<threads>(thread, amax, larger_word{}, room);
            factor = rule.scale(bit_cast<float>(amax));
        } else {
            factor = thread.load(&scale->scale);
        }
        const column_of_tile tile = load_column(thread, from, from_stride, rows, columns);
        std::uint32_t amax = 0;
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; ++r) {
            amax = larger_word{}(amax, bit_cast<std::uint32_t>(tile.values[r]) & 0x7fffffffU);
        }
        Format rounded[std::size_t{column_tiles::rows}];
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; r += 2) {
            scaled_code_pair(tile.values[r], tile.values[r + 1], factor, rounded[r], rounded[r + 1]);
        }
        if (amax >= 0x7f800000U) {
            MP_UNROLL
            for (int r = 0; r < column_tiles::rows; ++r) {
                if (!isfinite(tile.values[r])) rounded[r] = saturated_code<Format>(tile.values[r]);
            }
        }
        store_column(thread, tile, rounded, codes, codes_stride);
        store_turned(thread, tile, rounded, turned, turned_stride, turned_wide);
        amax = gpu::block_reduce<threads>(thread, amax, larger_word{}, room);
        if (thread.index() != 0) return;
        static_cast<void>(thread.atomic_max(&scale->amax_bits, amax));
        if (thread.block() == 0) thread.store(&scale->used, factor);
    }
};

/// Some histories as a parameter of a launch; each has a block.
struct amax_histories {
    static constexpr int most = 32;
    device_amax_history list[most];

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE device_amax_history of_block(Thread thread) const {
        return list[thread.block()];
    }
};

/// Those of a list in device memory.
struct amax_history_list {
    const device_amax_history* list;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE device_amax_history of_block(Thread thread) const {
        const device_amax_history* const it = list + thread.block();
        return {thread.load(&it->scale),
                thread.load(&it->window),
                thread.load(&it->length),
                {.format_max = thread.load(&it->policy.format_max),
                 .margin = thread.load(&it->policy.margin),
                 .algorithm = thread.load(&it->policy.algorithm),
                 .rule = thread.load(&it->policy.rule)}};
    }
};

template <class Histories>
struct record_amax_kernel {
    static constexpr int threads = 32;
    Histories histories;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if (thread.index() != 0) return;
        const device_amax_history it = histories.of_block(thread);
        const std::uint32_t amax = thread.load(&it.scale->amax_bits);
        if (amax >= 0x7f800000U) return;
        float newest = thread.load(it.window);
        amax_history_view{&newest, 1, nullptr, nullptr}.record(bit_cast<float>(amax));
        thread.store(it.window, newest);
    }
};

/// What decides in a window of which one slot is here: the rest of it has been gone through by a block.
struct rest_of_window {
    std::uint32_t rest;
    amax_algorithm algorithm;
    float* newest;

    MP_HOST_DEVICE float operator()(const amax_window& first) const {
        *newest = first[0];
        if (algorithm == amax_algorithm::most_recent) return first[0];
        return bit_cast<float>(larger_amax(rest, first[0]));
    }
};

/// The scale of the next iteration, by the policy itself; the window is searched and rolled by all threads.
template <class Histories>
struct update_scales_kernel {
    static constexpr int threads = row_threads;
    Histories histories;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const device_amax_history it = histories.of_block(thread);
        const simt::shared_pointer<std::uint32_t> room{};
        std::uint32_t rest = 0;
        for (std::int32_t i = 1 + thread.index(); i < it.length; i += threads) {
            rest = larger_amax(rest, thread.load(it.window + i));
        }
        rest = gpu::block_reduce<threads>(thread, rest, larger_word{}, room);
        float newest = 0.0F;
        if (thread.index() == 0) {
            float slot = thread.load(it.window);
            float scale = thread.load(&it.scale->scale);
            std::int32_t updates = thread.load(&it.scale->updates);
            const amax_update update = it.policy.update({&slot, 1, &scale, &updates},
                                                        rest_of_window{rest, it.policy.algorithm, &newest});
            thread.store(&it.scale->scale, scale);
            thread.store(&it.scale->updates, updates);
            thread.store(room, update.kind == amax_update_kind::unused ? 0U : 1U);
        }
        thread.sync_block();
        if (thread.load(room) == 0) return;
        for (std::int32_t first = 1; first < it.length - 1; first += threads) {
            const std::int32_t i = first + thread.index();
            const bool moves = i < it.length - 1;
            const float next = moves ? thread.load(it.window + i + 1) : 0.0F;
            thread.sync_block();
            if (moves) thread.store(it.window + i, next);
        }
        thread.sync_block();
        if (thread.index() != 0) return;
        if (it.length > 1) thread.store(it.window + (it.length - 1), newest);
        thread.store(it.window, 0.0F);
    }
};

template <template <class> class Kernel, class Executor>
void launch_for_histories(std::string_view function, const Executor& exec,
                          std::span<const device_amax_history> histories, std::size_t shared_bytes) {
    for (std::size_t i = 0; i < histories.size(); ++i) {
        require_memory(function, "histories.scale", histories[i].scale, 1);
        require_memory(function, "histories.window", histories[i].window, 1);
        require_counter(function, "histories.length", histories[i].length, 1);
        histories[i].policy.validate();
    }
    for (std::size_t first = 0; first < histories.size(); first += amax_histories::most) {
        const std::size_t count = (std::min)(histories.size() - first, std::size_t{amax_histories::most});
        Kernel<amax_histories> kernel{};
        std::copy_n(histories.begin() + static_cast<std::ptrdiff_t>(first), count, kernel.histories.list);
        launch(function, exec,
               simt::launch_size{.blocks = static_cast<std::ptrdiff_t>(count), .shared_bytes = shared_bytes},
               kernel);
    }
}
template <template <class> class Kernel, class Executor>
void launch_for_histories(std::string_view function, const Executor& exec, const device_amax_history* list,
                          std::ptrdiff_t count, std::size_t shared_bytes) {
    if (count < 0) throw_argument(function, "count", count, "must not be negative");
    require_memory(function, "list", list, static_cast<std::size_t>(count));
    if (count == 0) return;
    launch(function, exec, simt::launch_size{.blocks = count, .shared_bytes = shared_bytes},
           Kernel<amax_history_list>{{list}});
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Rounds a matrix to 8 bits with a scale that lives on the device: the codes of mp::quantize_with_scale on the
/// CPU, to the bit, and those of the transpose, since tensor cores of 8 bits want both operands of a product
/// along k. The largest magnitude goes to scale->amax_bits, and what values were multiplied by to scale->used.
///
/// With delayed_scaling that is scale->scale, and the matrix is read once; before the first update, and with
/// current_scaling always, it follows from the matrix itself, which is read twice. Two launches, which are the
/// same whatever the device finds: they can be captured, and the host waits for nothing.
///
///     mp::quantize_with_scale(stream, mp::delayed_scaling{}, x.view(), codes.view(), turned.view(), scale);
///
/// \param policy  delayed_scaling or current_scaling
/// \param from    row-major, of float or of a reduced format
/// \param codes   row-major, of the same shape; data may be null, and is not written then
/// \param turned  row-major, of the shape of the transpose; the same
/// \param scale   in device memory; what orders launches on it are the executor's, one after the other
/// \throws argument_error  shapes differ, an order is not row_major, a parameter of the policy is out of range,
///                         or null
/// \throws cuda_error  the launch failed
template <gpu_executor Executor, class Policy, class Value, reduced Format>
    requires(sizeof(Format) == 1 &&
             (std::is_same_v<Policy, delayed_scaling> || std::is_same_v<Policy, current_scaling>))
void quantize_with_scale(const Executor& exec, const Policy& policy, matrix_view<Value> from,
                         matrix_view<Format> codes, matrix_view<Format> turned, device_tensor_scale* scale) {
    using value = std::remove_const_t<Value>;
    constexpr std::string_view function = "mp::quantize_with_scale";
    policy.validate();
    detail::require_memory(function, "scale", scale, 1);
    detail::check_view(function, "from", detail::extent_of(from));
    const auto check = [&](std::string_view name, auto view, std::ptrdiff_t rows, std::ptrdiff_t columns) {
        if (view.order != storage_order::row_major) {
            detail::throw_argument(function, std::string(name) + ".order", "column_major",
                                   "must be row_major");
        }
        if (view.data == nullptr) return;
        detail::check_view(function, name, detail::extent_of(view));
        detail::check_equal_sizes(function, std::string(name) + ".rows", view.rows, "those of from", rows);
        detail::check_equal_sizes(function, std::string(name) + ".columns", view.columns, "those of from",
                                  columns);
    };
    check("from", from, from.rows, from.columns);
    check("codes", codes, from.rows, from.columns);
    check("turned", turned, from.columns, from.rows);
    const bool empty = from.rows == 0 || from.columns == 0;
    // Without gaps a matrix is measured as one row.
    const bool dense = from.leading_dimension == from.columns;
    const std::ptrdiff_t lines = empty ? 0 : dense ? 1 : from.rows;
    const std::ptrdiff_t length = dense ? from.rows * from.columns : from.columns;
    using measure = detail::tensor_amax_kernel<value>;
    const std::ptrdiff_t chunks = lines * ((length + measure::width - 1) / measure::width);
    const std::ptrdiff_t parts = std::clamp<std::ptrdiff_t>(
        (chunks + measure::threads - 1) / measure::threads, 1, device_tensor_scale::most_parts);
    const auto lined = row_major(from.data, lines, length, from.leading_dimension);
    launch(function, exec, simt::launch_size{.blocks = parts, .shared_bytes = detail::reduction_bytes},
           measure{detail::rows_of<measure::width>(matrix_view<const value>(lined)), lines, length, scale});
    if (empty) return;
    launch(function, exec,
           simt::launch_size{.blocks = detail::column_tiles::blocks(from.rows, from.columns),
                             .shared_bytes = detail::reduction_bytes},
           detail::tensor_quantise_kernel<value, Format>{
               from.data, from.leading_dimension, from.rows, from.columns, codes.data,
               codes.leading_dimension, turned.data, turned.leading_dimension, detail::rows_are_wide(turned),
               parts, detail::tensor_scale_rule(policy), scale});
}

/// Takes the largest magnitudes of the tensors that were rounded last into the windows, as amax_history::record;
/// those that are not finite are left out. One launch for 32 histories.
///
/// \throws argument_error  null, a length below 1, or a parameter of a policy that is out of range
/// \throws cuda_error  the launch failed
template <gpu_executor Executor>
void record_amax(const Executor& exec, std::span<const device_amax_history> histories) {
    detail::launch_for_histories<detail::record_amax_kernel>("mp::record_amax", exec, histories, 0);
}
/// The same of a list in device memory, in one launch however long it is; nobody looks at what is in it.
///
/// \throws argument_error  a negative count, or null
/// \throws cuda_error      the launch failed
template <gpu_executor Executor>
void record_amax(const Executor& exec, const device_amax_history* list, std::ptrdiff_t count) {
    detail::launch_for_histories<detail::record_amax_kernel>("mp::record_amax", exec, list, count, 0);
}

/// Ends an iteration: every scale follows from its window by its policy, and the window is rolled, as
/// amax_history::update does, to the bit. One launch for 32 histories, a block for each; errors as record_amax.
template <gpu_executor Executor>
void update_scales(const Executor& exec, std::span<const device_amax_history> histories) {
    detail::launch_for_histories<detail::update_scales_kernel>("mp::update_scales", exec, histories,
                                                               detail::reduction_bytes);
}
/// The same of a list in device memory, in one launch however long it is: all scales of a model. Errors as
/// record_amax.
template <gpu_executor Executor>
void update_scales(const Executor& exec, const device_amax_history* list, std::ptrdiff_t count) {
    detail::launch_for_histories<detail::update_scales_kernel>("mp::update_scales", exec, list, count,
                                                               detail::reduction_bytes);
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A tile is as high as a block and a warp as wide as one, so that each lane has a block along its column, and the
/// warp one along each row.
template <class Value>
struct mx_operand_kernel {
    static constexpr int threads = row_threads;
    using element = float8_e4m3fn;
    const Value* from;
    std::ptrdiff_t from_stride;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    bfloat16* along_rows;
    std::ptrdiff_t along_rows_stride;
    bfloat16* along_columns;
    std::ptrdiff_t along_columns_stride;

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        const column_of_tile tile = load_column(thread, from, from_stride, rows, columns);
        bfloat16 rounded[std::size_t{column_tiles::rows}];
        std::uint32_t of_column = 0;
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; ++r) {
            const std::uint32_t magnitude = finite_magnitude_bits(tile.values[r]);
            of_column = larger_word{}(of_column, magnitude);
            const std::uint32_t of_row = gpu::warp_reduce(thread, magnitude, larger_word{});
            rounded[r] = rounded_to_block(tile.values[r], of_row);
        }
        store_column(thread, tile, rounded, along_rows, along_rows_stride);
        MP_UNROLL
        for (int r = 0; r < column_tiles::rows; ++r) rounded[r] = rounded_to_block(tile.values[r], of_column);
        store_column(thread, tile, rounded, along_columns, along_columns_stride);
    }

private:
    MP_HOST_DEVICE static bfloat16 rounded_to_block(float value, std::uint32_t amax) {
        return static_cast<bfloat16>(quantised<element>(value, scale_exponent_for<element>(amax)));
    }
};

/// Both operands that a matrix becomes, rounded in blocks along its rows and along its columns, in one pass: the
/// bits that quantise_mx() gives on the CPU. All row-major.
template <gpu_executor Executor, class Value>
void quantise_mx(mx_blocks, const Executor& exec, matrix_view<const Value> from,
                 matrix_view<bfloat16> along_rows, matrix_view<bfloat16> along_columns) {
    if (from.rows == 0 || from.columns == 0) return;
    launch("mp::layers::linear", exec,
           simt::launch_size{.blocks = column_tiles::blocks(from.rows, from.columns)},
           mx_operand_kernel<Value>{from.data, from.leading_dimension, from.rows, from.columns,
                                    along_rows.data, along_rows.leading_dimension, along_columns.data,
                                    along_columns.leading_dimension});
}

}}  // namespace mp::detail
