// SPDX-License-Identifier: MIT
/// \file
/// The inner loops of products of 4-bit numbers with scales of blocks, and what they work on.
#pragma once

#include <mp/config.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/panels.hpp>
#include <mp/linalg/tensor_core/scaled_block.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Products of a block, and groups that have one scale each.
inline constexpr int group_block_products = 64;
inline constexpr int groups_of_block = group_block_products / products_of_group;

/// Panels of `width` vectors (rows of A one by one, columns of B panel_columns at a time). Twice number p of block i of vector j of a
/// panel is numbers[((panel * blocks + i) * 64 + p) * width + j].
struct group_panels {
    int width = 1;
    std::vector<std::int16_t> numbers;
    /// Of the scale of group g of that block, as unpacked_scale has them: [((panel * blocks + i) * 4 + g) * width + j].
    std::vector<std::int16_t> significands;
    std::vector<std::int16_t> exponents;
    /// At the same places, bit p: whether number p of the group is not zero.
    std::vector<std::int16_t> nonzero;
    /// -1 where a scale is NaN, else 0: [(panel * blocks + i) * width + j].
    std::vector<std::int32_t> irregular;

    void resize(int vectors_of_panel, std::size_t vectors, std::size_t blocks) {
        width = vectors_of_panel;
        const auto wide = static_cast<std::size_t>(width);
        irregular.resize((vectors + wide - 1) / wide * wide * blocks);
        numbers.resize(irregular.size() * group_block_products);
        significands.resize(irregular.size() * groups_of_block);
        exponents.resize(significands.size());
        nonzero.resize(significands.size());
    }
};

/// A row of A and a panel of B over several blocks, and who does again what the loops cannot do.
struct group_task {
    const group_panels* a;
    const group_panels* b;
    block_rule rule;
    std::ptrdiff_t blocks;
    std::uint32_t (*slow)(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                          std::ptrdiff_t block, std::uint32_t addend);
    const void* context;
};

}}  // namespace mp::detail

#define MP_TARGET every_processor
#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#include <mp/linalg/tensor_core/kernels/group_products.inl>
#undef MP_TARGET
#undef MP_TARGET_NUMBER

#define MP_KERNEL_FILE <mp/linalg/tensor_core/kernels/group_products.inl>
#include <mp/numbers/simd/for_each_target.inl>
