// SPDX-License-Identifier: MIT
/// \file
/// A tile of a matrix product on the model of tensor cores, by loops that compilers vectorise.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/panels.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Rows, columns and products for which operands are unpacked at a time.
inline constexpr std::ptrdiff_t emulated_tile_rows = 128;
inline constexpr std::ptrdiff_t emulated_tile_columns = 64;
inline constexpr std::ptrdiff_t emulated_tile_k = 128;

/// The output of a tile of a b, and the distance of the rows of its sums: whole panels.
struct emulated_tile {
    std::ptrdiff_t row;
    std::ptrdiff_t column;
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t stride = emulated_tile_columns;
};

/// Adds the products of the blocks of two packed operands to sums; `multiply_one` does it for a panel of B.
template <class Panels>
void multiply_panels(const panel_task<Panels>& task, const emulated_tile& output,
                     panel_function<Panels> multiply_one, float* sums) {
    for (std::ptrdiff_t j = 0; j < output.columns; j += panel_columns) {
        multiply_one(task, j / panel_columns, output.rows,
                     (std::min<std::ptrdiff_t>)(panel_columns, output.columns - j), sums + j, output.stride);
    }
}

/// The function that multiplies by a rule.
template <block_rule Rule>
panel_function<operand_panels> panel_function_for(instruction_set isa) {
    return MP_SELECT_TARGET(isa, (&every_processor::multiply_panel<Rule.products, Rule.output>),
                            multiply_panel<Rule.products, Rule.output>);
}

/// x, or the NaN of GPUs where it is NaN.
inline float with_tensor_core_nan(float x) {
    return (bit_cast<std::uint32_t>(x) & 0x7FFF'FFFF) > 0x7F80'0000 ? bit_cast<float>(tensor_core_nan) : x;
}

/// a b on the model, with its types.
template <arch Arch, class Accumulator, class A, class B>
struct emulated_product {
    matrix_view<const A> a;
    matrix_view<const B> b;
    float8_unit unit;
    instruction_set isa;
    std::ptrdiff_t promotion_interval;  ///< zero for none

    static constexpr block_rule rule = checked_block_rule<Arch, A, B, Accumulator>();

    /// Memory of a thread.
    struct scratch {
        operand_panels a_panels;
        operand_panels b_panels;
        std::vector<A> a_vector;
        std::vector<B> b_vector;
        std::vector<float> floats;
        std::vector<float> sums;
        std::vector<float> step_sums;
        std::vector<float> promoted;
    };

    using tile = emulated_tile;

    /// A chunk of a tile, for what goes through block_step_bits.
    struct chunk {
        const emulated_product* product;
        tile output;
        std::ptrdiff_t begin;  ///< of k
        std::ptrdiff_t end;

        [[nodiscard]] std::uint32_t step(std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t block,
                                         std::uint32_t addend) const {
            const std::ptrdiff_t p = begin + block * rule.products;
            return block_step_bits<Arch, Accumulator, A, B>(
                float8_unit::native, static_cast<int>((std::min<std::ptrdiff_t>)(rule.products, end - p)),
                [&](int i) { return product->a(output.row + row, p + i); },
                [&](int i) { return product->b(p + i, output.column + column); }, addend);
        }
    };

    static std::uint32_t slow_step(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                                   std::ptrdiff_t block, std::uint32_t addend) {
        return static_cast<const chunk*>(context)->step(row, column, block, addend);
    }

    /// Adds the products of a chunk to the accumulators, memory.sums.
    void add_chunk(const chunk& it, scratch& memory) const {
        if constexpr (rule.products != 0) {
            if (unit == float8_unit::native) {
                add_panels(it, memory);
                return;
            }
        }
        if constexpr (operand_kind_of<A> == operand_kind::fp8 && has_float8_through_half(Arch)) {
            add_through_half(it, memory);
        }
    }

    /// float8_unit::through_half: every 32 products are a product of halves that starts from zero, in two blocks, and is
    /// added to the accumulators by ordinary additions.
    void add_through_half(const chunk& it, scratch& memory) const {
        constexpr block_rule half_rule =
            block_rule_of(Arch, operand_kind::fp16, std::is_same_v<Accumulator, half>);
        constexpr int products = through_half_products / 2;
        static_assert(half_rule.products == products);
        const tile& output = it.output;
        for (std::ptrdiff_t begin = it.begin; begin < it.end; begin += through_half_products) {
            const chunk step{this, output, begin, (std::min)(it.end, begin + through_half_products)};
            memory.step_sums.assign(memory.sums.size(), 0.0F);
            multiply<half_rule, in_two_passes>(step, 2, &slow_pass<half_rule>, memory.step_sums.data(),
                                               memory);
            for (std::ptrdiff_t row = 0; row < output.rows; ++row) {
                add_rounded(memory.sums.data() + row * output.stride,
                            memory.step_sums.data() + row * output.stride, output.columns);
            }
        }
    }

    /// sums += step, each rounded once to the accumulators' type, with the NaN of GPUs.
    static void add_rounded(float* sums, const float* step, std::ptrdiff_t count) {
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            // For halves the float's rounding does no harm: it has more than twice as many bits, and two.
            sums[i] = promoted_sum(sums[i], step[i]);
            if constexpr (std::is_same_v<Accumulator, half>) sums[i] = with_tensor_core_nan(half(sums[i]));
        }
    }

    template <block_rule Rule>
    static std::uint32_t slow_pass(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                                   std::ptrdiff_t pass, std::uint32_t addend) {
        const chunk& it = *static_cast<const chunk*>(context);
        return through_half_pass(
            Rule, static_cast<int>(pass), static_cast<int>(it.end - it.begin),
            [&](int i) { return it.product->a(it.output.row + row, it.begin + i); },
            [&](int i) { return it.product->b(it.begin + i, it.output.column + column); }, addend);
    }

    void add_panels(const chunk& it, scratch& memory) const {
        const std::ptrdiff_t blocks = (it.end - it.begin + rule.products - 1) / rule.products;
        multiply<rule, as_they_are>(it, blocks, &slow_step, memory.sums.data(), memory);
    }

    /// Adds the products of a chunk to sums, as blocks of a rule; `slow` does one block of one element.
    template <block_rule Rule, class Passes, class Slow>
    void multiply(const chunk& it, std::ptrdiff_t blocks, Slow slow, float* sums, scratch& memory) const {
        const tile& output = it.output;
        const std::ptrdiff_t k = it.end - it.begin;
        memory.a_panels.resize(1, Rule.products, static_cast<std::size_t>(output.rows),
                               static_cast<std::size_t>(blocks));
        memory.b_panels.resize(panel_columns, Rule.products, static_cast<std::size_t>(output.columns),
                               static_cast<std::size_t>(blocks));
        pack_operand<Rule.products, Passes>(isa, &a(output.row, it.begin), a.row_stride(), a.column_stride(),
                                            output.rows, k, memory.a_panels, memory.a_vector, memory.floats);
        pack_operand<Rule.products, Passes>(isa, &b(it.begin, output.column), b.column_stride(),
                                            b.row_stride(), output.columns, k, memory.b_panels,
                                            memory.b_vector, memory.floats);
        const panel_task<operand_panels> task{&memory.a_panels, &memory.b_panels, Rule, blocks, slow, &it};
        multiply_panels(task, output, panel_function_for<Rule>(isa), sums);
    }

    /// memory.sums = a b at the output, in rows of emulated_tile_columns.
    void compute(const tile& output, scratch& memory) const {
        constexpr std::size_t size = std::size_t{emulated_tile_rows} * emulated_tile_columns;
        memory.sums.assign(size, 0.0F);
        const bool promotes = promotion_interval != 0;
        if (promotes) memory.promoted.assign(size, 0.0F);
        const std::ptrdiff_t k = a.columns;
        for (std::ptrdiff_t begin = 0; begin < k;) {
            std::ptrdiff_t end = (std::min)(k, begin + emulated_tile_k);
            if (promotes) {
                const std::ptrdiff_t since = begin % promotion_interval;
                if (promotion_interval - since < end - begin) end = begin + (promotion_interval - since);
            }
            add_chunk({this, output, begin, end}, memory);
            if (promotes && (end % promotion_interval == 0 || end == k)) {
                for (std::size_t i = 0; i < size; ++i) {
                    memory.promoted[i] = promoted_sum(memory.promoted[i], memory.sums[i]);
                    memory.sums[i] = 0.0F;
                }
            }
            begin = end;
        }
        if (promotes) memory.sums.swap(memory.promoted);
    }

    /// An ordinary float addition with the NaN of GPUs.
    static float promoted_sum(float before, float sum) { return with_tensor_core_nan(before + sum); }
};

}}  // namespace mp::detail
