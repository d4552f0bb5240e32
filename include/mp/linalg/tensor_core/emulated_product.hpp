// SPDX-License-Identifier: MIT
/// \file
/// A tile of a matrix product on the model of tensor cores: operands, unpacked once, and the loops over them, which compilers
/// vectorise.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/opt_barrier.hpp>
#include <mp/config.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Columns that a panel of B has next to each other, and that are multiplied at a time.
inline constexpr int panel_columns = 16;

/// The exponent of an operand of zero: that of a product with it is below all others, and fits into 16 bits.
inline constexpr std::int16_t operand_is_zero = -10000;
/// Below every exponent.
inline constexpr int no_exponent = -30000;

/// A vector of an operand (a row of A, a column of B) within one block is regular if it has no infinity and
/// no NaN, none of its numbers is subnormal in float, and none is this many binades below its largest. What
/// is not regular goes through block_fma_bits.
inline constexpr int regular_binades = 48;

/// Properties of a vector of a block.
struct block_vector {
    int base = 0;  ///< binade of the largest number: values are divided by 2^base
    bool regular = true;
};

/// Panels of `width` vectors: the value of product p of block i of vector j of a panel is
/// values[((panel * blocks + i) * products + p) * width + j], of which 2^base has been taken away, and its
/// exponent, as the rule counts it, is at the same place. For A, width is 1.
struct operand_panels {
    int width = 1;
    std::vector<float> values;
    std::vector<std::int16_t> exponents;
    std::vector<std::int32_t> bases;      ///< [(panel * blocks + i) * width + j], as the one below
    std::vector<std::int32_t> irregular;  ///< -1 or 0

    void resize(int vectors_of_panel, int products_of_block, std::size_t vectors, std::size_t blocks) {
        width = vectors_of_panel;
        const auto wide = static_cast<std::size_t>(width);
        const std::size_t padded = (vectors + wide - 1) / wide * wide;
        values.resize(padded * blocks * static_cast<std::size_t>(products_of_block));
        exponents.resize(values.size());
        bases.resize(padded * blocks);
        irregular.resize(bases.size());
    }
};

/// Unpacks one vector of one block. `from` has `Products` floats, `stride` is from one value to the next in
/// the panel. The exponent of a float whose format begins its normal numbers at 2^least_exponent is that of
/// its binade, but not below least_exponent.
template <int Products>
block_vector unpack_vector(const float* from, int least_exponent, float* values, std::int16_t* exponents,
                           std::ptrdiff_t stride) {
    // Loops of constant length, each of which becomes vectors.
    constexpr std::int32_t without = 1000;
    std::int32_t bits[std::size_t{Products}];
    std::memcpy(bits, from, sizeof bits);
    std::int32_t highest = -without;
    std::int32_t lowest = without;
    for (int p = 0; p < Products; ++p) {
        const std::int32_t field = bits[p] >> 23 & 0xFF;
        const std::int32_t zero = (bits[p] & 0x7FFF'FFFF) == 0 ? -1 : 0;
        const std::int32_t high = zero != 0 ? -without : field;
        const std::int32_t low = zero != 0 ? without : field;
        highest = highest > high ? highest : high;
        lowest = lowest < low ? lowest : low;
    }
    block_vector vector;
    const bool all_zero = highest < 0;
    // Subnormal numbers have the field 0, infinities and NaNs 255.
    vector.regular = all_zero || (lowest > 0 && highest < 255 && highest - lowest <= regular_binades);
    vector.base = all_zero ? 0 : highest - 127;
    // The exponent field becomes that of a number in [2^-48, 2), which is normal; zero is left as it is.
    const std::int32_t shift = vector.base * (1 << 23);
    float value[std::size_t{Products}];
    std::int16_t exponent[std::size_t{Products}];
    for (int p = 0; p < Products; ++p) {
        const std::int32_t field = bits[p] >> 23 & 0xFF;
        const std::int32_t zero = (bits[p] & 0x7FFF'FFFF) == 0 ? -1 : 0;
        const std::int32_t binade = field - 127 > least_exponent ? field - 127 : least_exponent;
        exponent[p] = static_cast<std::int16_t>(zero != 0 ? operand_is_zero : binade);
        const std::uint32_t moved = static_cast<std::uint32_t>(bits[p]) - static_cast<std::uint32_t>(shift);
        value[p] = bit_cast<float>(zero != 0 || !vector.regular ? 0U : moved);
    }
    if (stride == 1) {
        std::memcpy(values, value, sizeof value);
        std::memcpy(exponents, exponent, sizeof exponent);
        return vector;
    }
    for (int p = 0; p < Products; ++p) {
        values[p * stride] = value[p];
        exponents[p * stride] = exponent[p];
    }
    return vector;
}

/// What becomes of a vector's numbers before they are unpacked.
struct as_they_are {
    /// How many numbers a unit takes at a time: vectors are filled up to a multiple of them.
    static constexpr std::ptrdiff_t group = 1;
    template <class Value>
    static constexpr int least_exponent = layout_of<typename Value::format>::min_exponent;
    static void arrange(float* /*numbers*/, std::ptrdiff_t /*count*/) {}
};

/// For float8_unit::through_half: numbers of 8 bits become halves, and of 32 those of the first pass come first.
struct in_two_passes {
    static constexpr std::ptrdiff_t group = through_half_products;
    template <class Value>
    static constexpr int least_exponent = layout_of<formats::binary16>::min_exponent;
    static void arrange(float* numbers, std::ptrdiff_t count) {
        for (std::ptrdiff_t begin = 0; begin < count; begin += group) {
            float arranged[std::size_t{through_half_products}];
            for (int i = 0; i < through_half_products; ++i) {
                arranged[i] = numbers[begin + through_half_index(i)];
            }
            std::memcpy(numbers + begin, arranged, sizeof arranged);
        }
    }
};

/// Unpacks block `block` of `blocks` of a vector, times 2^scale, to its places in panels. A block whose scale is no number is not
/// regular.
template <int Products>
void unpack_block(const float* from, int least_exponent, std::ptrdiff_t vector, std::ptrdiff_t block,
                  std::ptrdiff_t blocks, int scale, bool scale_is_number, operand_panels& to) {
    constexpr std::ptrdiff_t products = Products;
    const std::ptrdiff_t width = to.width;
    const std::ptrdiff_t offset = (vector / width * blocks + block) * width;
    const std::ptrdiff_t at = offset * products + vector % width;
    std::int16_t* const exponents = to.exponents.data() + at;
    const block_vector known =
        unpack_vector<Products>(from, least_exponent, to.values.data() + at, exponents, width);
    const auto index = static_cast<std::size_t>(offset + vector % width);
    to.bases[index] = known.base + scale;
    to.irregular[index] = known.regular && scale_is_number ? 0 : -1;
    if (scale == 0) return;
    // Those of zeros stay below all others.
    for (int p = 0; p < Products; ++p) {
        exponents[p * width] = static_cast<std::int16_t>(exponents[p * width] + scale);
    }
}

/// Unpacks `vectors` vectors of `k` numbers, in blocks filled up with zeros; vectors that fill the last
/// panel up are zeros, too.
template <int Products, class Passes = as_they_are, class Value>
void pack_operand(instruction_set isa, const Value* data, std::ptrdiff_t vector_stride,
                  std::ptrdiff_t k_stride, std::ptrdiff_t vectors, std::ptrdiff_t k, operand_panels& to,
                  std::vector<Value>& gathered, std::vector<float>& floats) {
    constexpr int least_exponent = Passes::template least_exponent<Value>;
    constexpr std::ptrdiff_t products = Products;
    constexpr std::ptrdiff_t group = products > Passes::group ? products : Passes::group;
    const std::ptrdiff_t width = to.width;
    const std::ptrdiff_t blocks = (k + group - 1) / group * (group / products);
    floats.assign(static_cast<std::size_t>(blocks * products), 0.0F);
    gathered.resize(static_cast<std::size_t>(k));
    const std::ptrdiff_t padded = (vectors + width - 1) / width * width;
    for (std::ptrdiff_t vector = 0; vector < padded; ++vector) {
        if (vector < vectors) {
            const Value* from = data + vector * vector_stride;
            if (k_stride != 1) {
                for (std::ptrdiff_t p = 0; p < k; ++p) {
                    gathered[static_cast<std::size_t>(p)] = from[p * k_stride];
                }
                from = gathered.data();
            }
            std::fill(floats.begin() + k, floats.end(), 0.0F);
            widen_to_float(isa, from, floats.data(), static_cast<std::size_t>(k));
            Passes::arrange(floats.data(), blocks * products);
        } else {
            std::fill(floats.begin(), floats.end(), 0.0F);
        }
        for (std::ptrdiff_t block = 0; block < blocks; ++block) {
            unpack_block<Products>(floats.data() + block * products, least_exponent, vector, block, blocks, 0,
                                   true, to);
        }
    }
}

/// One block of one row of A and one panel of B.
struct block_operands {
    const float* a;
    const std::int16_t* a_exponents;
    int a_base;
    const float* b;
    const std::int16_t* b_exponents;
    const std::int32_t* b_bases;
};

/// A row of A and a panel of B over several blocks, and the function for elements that the loops cannot compute.
template <class Panels>
struct panel_task {
    const Panels* a;
    const Panels* b;
    block_rule rule;
    std::ptrdiff_t blocks;
    /// The bits of one block by the rule in integers; column is one of the panel's.
    std::uint32_t (*slow)(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                          std::ptrdiff_t block, std::uint32_t addend);
    const void* context;

    /// Computes the columns of a panel in a row again for which `redo` is not zero: now = T(a, b, before).
    void compute_again(std::ptrdiff_t row, std::ptrdiff_t panel, std::ptrdiff_t columns, std::ptrdiff_t block,
                       const std::int32_t* redo, const float* before, float* now) const {
        for (std::ptrdiff_t j = 0; j < columns; ++j) {
            if (redo[j] == 0) continue;
            now[j] = bit_cast<float>(
                slow(context, row, panel * panel_columns + j, block, bit_cast<std::uint32_t>(before[j])));
        }
    }
};

template <class Panels>
using panel_function = void (*)(const panel_task<Panels>& task, std::ptrdiff_t panel, std::ptrdiff_t rows,
                                std::ptrdiff_t columns, float* sums, std::ptrdiff_t sums_stride);

}}  // namespace mp::detail

#define MP_TARGET every_processor
#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#include <mp/linalg/tensor_core/kernels/panel_products.inl>
#undef MP_TARGET
#undef MP_TARGET_NUMBER

#define MP_KERNEL_FILE <mp/linalg/tensor_core/kernels/panel_products.inl>
#include <mp/numbers/simd/for_each_target.inl>

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
