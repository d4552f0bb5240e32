// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM, with group sizes in device memory: which tile of which group a block of threads computes.
#pragma once

#include <mp/config.hpp>
#include <mp/gpu/gemm/multistage_kernel.hpp>
#include <mp/gpu/gemm/problem.hpp>
#include <mp/gpu/gemm/stage_copies.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// A tile of a group. Nothing is to be done where there is none.
struct group_tile {
    bool exists = false;
    std::ptrdiff_t group = 0;
    /// Rows of the product, or what of k, from `begin` to `end`.
    std::ptrdiff_t begin = 0;
    std::ptrdiff_t end = 0;
    tile_coordinate at = {};
};

/// What is known of all tiles, whatever their groups are.
struct tile_shape {
    std::ptrdiff_t tile_rows;
    std::ptrdiff_t rows;          ///< of C
    std::ptrdiff_t tiles_across;  ///< columns of tiles
    std::ptrdiff_t k;
};

/// An offset of device memory, which nobody has checked, within what there is.
template <class Thread>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE std::ptrdiff_t bounded_offset(Thread thread,
                                                                            const std::int32_t* offset,
                                                                            std::ptrdiff_t least,
                                                                            std::ptrdiff_t most) {
    const std::ptrdiff_t value = thread.load(offset);
    return value < least ? least : value > most ? most : value;
}

/// Contiguous groups of rows. Blocks of threads are enough for the worst case, which is one tile more than whole ones
/// in each group; those that get none end at once. A block finds its group by going through the offsets, which all blocks read
/// and the cache therefore has.
struct row_groups {
    const std::int32_t* offsets;
    std::ptrdiff_t count;
    static constexpr bool along_k = false;
    /// Of which matrices all groups have one.
    static constexpr bool shares_a = true;
    static constexpr bool shares_b = false;
    static constexpr bool shares_c = true;

    [[nodiscard]] std::ptrdiff_t blocks(const tile_shape& shape) const {
        return (shape.rows / shape.tile_rows + (std::min)(count, shape.rows)) * shape.tiles_across;
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        std::ptrdiff_t number = thread.block();
        std::ptrdiff_t begin = bounded_offset(thread, offsets, 0, shape.rows);
        for (std::ptrdiff_t g = 0; g < count; ++g) {
            const std::ptrdiff_t end = bounded_offset(thread, offsets + g + 1, begin, shape.rows);
            const std::ptrdiff_t tiles_down = tile_count(end - begin, shape.tile_rows);
            if (number < tiles_down * shape.tiles_across) {
                return {true, g, begin, end, coordinate_of_tile(number, tiles_down, shape.tiles_across)};
            }
            number -= tiles_down * shape.tiles_across;
            begin = end;
        }
        return {};
    }
};

/// The first rows of each matrix of a batch.
struct masked_groups {
    const std::int32_t* counts;
    std::ptrdiff_t count;
    static constexpr bool along_k = false;
    static constexpr bool shares_a = false;
    static constexpr bool shares_b = false;
    static constexpr bool shares_c = false;

    [[nodiscard]] std::ptrdiff_t blocks(const tile_shape& shape) const {
        return tile_count(shape.rows, shape.tile_rows) * shape.tiles_across * count;
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        const std::ptrdiff_t tiles = tile_count(shape.rows, shape.tile_rows) * shape.tiles_across;
        const std::ptrdiff_t group = thread.block() / tiles;
        const std::ptrdiff_t number = thread.block() % tiles;
        const std::ptrdiff_t rows = bounded_offset(thread, counts + group, 0, shape.rows);
        const std::ptrdiff_t tiles_down = tile_count(rows, shape.tile_rows);
        if (number >= tiles_down * shape.tiles_across) return {};
        return {true, group, 0, rows, coordinate_of_tile(number, tiles_down, shape.tiles_across)};
    }
};

/// Contiguous groups along k; each has its own C.
struct k_groups {
    const std::int32_t* offsets;
    std::ptrdiff_t count;
    static constexpr bool along_k = true;
    static constexpr bool shares_a = true;
    static constexpr bool shares_b = true;
    static constexpr bool shares_c = false;

    [[nodiscard]] std::ptrdiff_t blocks(const tile_shape& shape) const {
        return tile_count(shape.rows, shape.tile_rows) * shape.tiles_across * count;
    }
    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    [[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE group_tile find(Thread thread,
                                                                  const tile_shape& shape) const {
        const std::ptrdiff_t tiles_down = tile_count(shape.rows, shape.tile_rows);
        const std::ptrdiff_t tiles = tiles_down * shape.tiles_across;
        const std::ptrdiff_t group = thread.block() / tiles;
        const std::ptrdiff_t begin = bounded_offset(thread, offsets + group, 0, shape.k);
        const std::ptrdiff_t end = bounded_offset(thread, offsets + group + 1, begin, shape.k);
        return {true, group, begin, end,
                coordinate_of_tile(thread.block() % tiles, tiles_down, shape.tiles_across)};
    }
};

/// The alignment that remains `elements` behind an aligned vector.
template <class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE int alignment_behind(int alignment, std::ptrdiff_t elements) {
    constexpr int size = static_cast<int>(sizeof(Value));
    const std::ptrdiff_t bytes = elements * size;
    while (alignment > size && bytes % alignment != 0) alignment /= 2;
    return alignment;
}

/// An operand that ends at `end` of k, and is read from `begin` on.
template <class Stage, class Value>
[[nodiscard]] MP_HOST_DEVICE MP_ALWAYS_INLINE operand_vectors<Value> up_to_k(operand_vectors<Value> operand,
                                                                             std::ptrdiff_t begin,
                                                                             std::ptrdiff_t end) {
    if constexpr (Stage::k_major) {
        operand.length = end;
        operand.alignment = alignment_behind<Value>(operand.alignment, begin);
    } else {
        operand.vectors = end;
    }
    return operand;
}

/// multistage_gemm_kernel on the tiles of groups.
template <class Product, class Groups>
struct grouped_gemm_kernel {
    using tile = typename Product::tile;
    static constexpr int threads = Product::threads;
    static constexpr int resident_blocks = Product::resident_blocks;
    [[nodiscard]] static constexpr std::size_t shared_bytes(int capability) {
        return Product::shared_bytes(capability);
    }

    decltype(Product::problem) problem;
    Groups groups;

    [[nodiscard]] MP_HOST_DEVICE tile_shape shape() const {
        return {tile::rows, problem.c.rows, tile_count(problem.c.columns, tile::columns), problem.k};
    }
    [[nodiscard]] std::ptrdiff_t blocks() const { return groups.blocks(shape()); }

    MP_ANY_EXECUTION_SPACE
    template <class Thread>
    MP_HOST_DEVICE void operator()(Thread thread) const {
        if constexpr (Product::template runs_on<Thread>) {
            const group_tile it = groups.find(thread, shape());
            if (!it.exists) return;
            auto a = problem.a;
            auto b = problem.b;
            auto c = problem.c;
            std::ptrdiff_t first = 0;
            std::ptrdiff_t k = problem.k;
            std::ptrdiff_t row = it.at.row * tile::rows;
            if constexpr (!Groups::shares_a) a.data += it.group * a.batch_stride;
            if constexpr (!Groups::shares_b) b.data += it.group * b.batch_stride;
            if constexpr (!Groups::shares_c) c.data += it.group * c.batch_stride;
            if constexpr (Groups::along_k) {
                a = up_to_k<typename Product::a_stage>(a, it.begin, it.end);
                b = up_to_k<typename Product::b_stage>(b, it.begin, it.end);
                first = it.begin;
                k = it.end;
                c.has_product = c.has_product && k != first;
            } else {
                // Rows of the next group come along; their sums are not stored.
                if constexpr (!Product::a_stage::k_major) {
                    a.alignment = alignment_behind<typename Product::a_value>(a.alignment, it.begin);
                }
                c.rows = it.end;
                row += it.begin;
            }
            Product::compute_tile(thread, a, b, c, first, k, row, it.at.column * tile::columns);
        }
    }
};

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
