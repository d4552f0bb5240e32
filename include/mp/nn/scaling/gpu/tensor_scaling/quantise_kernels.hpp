// SPDX-License-Identifier: MIT
/// \file
/// Kernels that measure a tensor and round it to 8 bits, by a scale in device memory.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/device/gpu/chunks.hpp>
#include <mp/device/gpu/reductions.hpp>
#include <mp/device/gpu/row_access.hpp>
#include <mp/device/simt/kernel_traits.hpp>
#include <mp/device/simt/shared_pointer.hpp>
#include <mp/float8.hpp>
#include <mp/matrix_view.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/device_tensor_scale.hpp>
#include <mp/nn/scaling/tensor_scaling.hpp>
#include <mp/numbers/rules/scaled_code.hpp>

#include <cstddef>
#include <cstdint>

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

}}  // namespace mp::detail
