// SPDX-License-Identifier: MIT
/// \file
/// Grouped GEMM by mma.sync: each block of threads computes a tile of a group.
#pragma once

#include <mp/config.hpp>
#include <mp/device/gpu/gemm/groups.hpp>
#include <mp/device/gpu/gemm/multistage_kernel.hpp>
#include <mp/device/gpu/gemm/problem.hpp>
#include <mp/device/gpu/gemm/stage_copies.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

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
    decltype(Product::scales) scales;

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
                if constexpr (Groups::has_blocks) {
                    if (it.splits_block) c = output_of_split_block(c);
                }
            } else {
                // Rows of the next group come along; their sums are not stored.
                if constexpr (!Product::a_stage::k_major) {
                    a.alignment = alignment_behind<typename Product::a_value>(a.alignment, it.begin);
                }
                c.rows = it.end;
                row += it.begin;
            }
            Product::compute_tile(thread, a, b, scales.of_matrix(it.group), c, first, k, row,
                                  it.at.column * tile::columns);
        }
    }
};

}}  // namespace mp::detail
