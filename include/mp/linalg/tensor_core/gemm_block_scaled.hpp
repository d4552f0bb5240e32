// SPDX-License-Identifier: MIT
/// \file
/// Products of block-scaled matrices (MXFP8, MXFP6, MXFP4, NVFP4) on the model of Blackwell's tensor cores.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/block_vectors.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/config.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>
#include <mp/linalg/tensor_core/panels.hpp>
#include <mp/linalg/tensor_core/scaled_block.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
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

}}  // namespace mp::detail

#define MP_TARGET every_processor
#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#include <mp/linalg/tensor_core/kernels/group_products.inl>
#undef MP_TARGET
#undef MP_TARGET_NUMBER

#define MP_KERNEL_FILE <mp/linalg/tensor_core/kernels/group_products.inl>
#include <mp/numbers/simd/for_each_target.inl>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// a b on the model, where the vectors of both lie along k.
template <arch Arch, class A, class B>
struct block_scaled_product {
    using a_element = typename A::element_type;
    using b_element = typename B::element_type;
    static constexpr int block = A::block_size;
    static constexpr block_rule rule =
        checked_scaled_rule<Arch, a_element, b_element, block, typename A::scale_type>();
    static constexpr bool has_groups = rule.products == group_block_products;
    /// Whole bytes of packed numbers of any width, and whole blocks of either instruction.
    static constexpr std::ptrdiff_t chunk_k = emulated_tile_k;
    using panels = std::conditional_t<has_groups, group_panels, operand_panels>;

    const A* a;
    const B* b;
    std::ptrdiff_t k;
    instruction_set isa;

    /// Memory of a thread.
    struct scratch {
        panels a_panels;
        panels b_panels;
        std::vector<float> sums;
    };

    struct chunk {
        const block_scaled_product* product;
        emulated_tile output;
        std::ptrdiff_t begin;  ///< of k
        std::ptrdiff_t end;
    };

    static std::uint32_t slow_step(const void* context, std::ptrdiff_t row, std::ptrdiff_t column,
                                   std::ptrdiff_t index, std::uint32_t addend) {
        const chunk& it = *static_cast<const chunk*>(context);
        const std::ptrdiff_t r = it.output.row + row;
        const std::ptrdiff_t c = it.output.column + column;
        const std::ptrdiff_t p = it.begin + index * rule.products;
        const A& left = *it.product->a;
        const B& right = *it.product->b;
        return scaled_block_bits<rule, a_element, b_element>(
            static_cast<int>((std::min<std::ptrdiff_t>)(rule.products, it.end - p)),
            [&](int i) { return left.element(r, p + i); }, [&](int i) { return left.scale(r, p + i); },
            [&](int i) { return right.element(p + i, c); }, [&](int i) { return right.scale(p + i, c); },
            addend);
    }

    /// Unpacks [begin, end) of `count` vectors from `first` on.
    template <class Operand>
    void pack(const Operand& from, std::ptrdiff_t first, std::ptrdiff_t count, std::ptrdiff_t begin,
              std::ptrdiff_t end, int width, panels& to) const {
        using element = typename Operand::element_type;
        constexpr std::ptrdiff_t products = rule.products;
        const std::ptrdiff_t blocks = (end - begin + products - 1) / products;
        if constexpr (has_groups) {
            to.resize(width, static_cast<std::size_t>(count), static_cast<std::size_t>(blocks));
        } else {
            to.resize(width, rule.products, static_cast<std::size_t>(count),
                      static_cast<std::size_t>(blocks));
        }
        const std::ptrdiff_t padded = (count + width - 1) / width * width;
        for (std::ptrdiff_t vector = 0; vector < padded; ++vector) {
            std::uint8_t codes[std::size_t{chunk_k}] = {};
            const typename Operand::scale_type* scales = nullptr;
            if (vector < count) {
                read_codes<Operand::element_width>(from.bytes(first + vector).data(), begin, codes,
                                                   static_cast<std::size_t>(end - begin));
                scales = from.scales().data() + (first + vector) * from.blocks_per_vector() + begin / block;
            }
            // Of the number at begin + p, which is a zero with the scale 1 behind the end.
            const auto scale_at = [&](std::ptrdiff_t p) {
                return scales != nullptr && begin + p < end ? unpack_scale(scales[p / block])
                                                            : unpacked_scale{8, 0, false};
            };
            if constexpr (has_groups) {
                for (std::ptrdiff_t i = 0; i < blocks; ++i)
                    pack_groups(codes + i * products, i * products, vector, i, blocks, scale_at, to);
            } else {
                float floats[std::size_t{chunk_k}];
                element elements[std::size_t{chunk_k}];
                std::memcpy(elements, codes, sizeof codes);
                widen_to_float(isa, elements, floats, std::size_t{chunk_k});
                for (std::ptrdiff_t i = 0; i < blocks; ++i) {
                    const unpacked_scale scale = scale_at(i * products);
                    unpack_block<rule.products>(floats + i * products,
                                                layout_of<typename element::format>::min_exponent, vector, i,
                                                blocks, scale.exponent, !scale.is_nan, to);
                }
            }
        }
    }

    /// Block `index` of a vector.
    template <class ScaleAt>
    static void pack_groups(const std::uint8_t* codes, std::ptrdiff_t first, std::ptrdiff_t vector,
                            std::ptrdiff_t index, std::ptrdiff_t blocks, const ScaleAt& scale_at,
                            group_panels& to) {
        const std::ptrdiff_t width = to.width;
        const std::ptrdiff_t at = (vector / width * blocks + index) * width;
        bool has_nan = false;
        for (int g = 0; g < groups_of_block; ++g) {
            const unpacked_scale scale = scale_at(first + g * products_of_group);
            has_nan = has_nan || scale.is_nan;
            const auto place = static_cast<std::size_t>(at * groups_of_block + g * width + vector % width);
            to.significands[place] = static_cast<std::int16_t>(scale.significand);
            to.exponents[place] = static_cast<std::int16_t>(scale.exponent);
            // Where the scale is zero, so are the products.
            const int factor = scale.significand == 0 ? 0 : 1;
            unsigned nonzero = 0;
            for (int p = 0; p < products_of_group; ++p) {
                const int product = g * products_of_group + p;
                const int number = factor * doubled(float4_e2m1fn::from_bits(codes[product]));
                nonzero |= (number != 0 ? 1U : 0U) << p;
                to.numbers[static_cast<std::size_t>(at * group_block_products + product * width +
                                                    vector % width)] = static_cast<std::int16_t>(number);
            }
            to.nonzero[place] = static_cast<std::int16_t>(nonzero);
        }
        to.irregular[static_cast<std::size_t>(at + vector % width)] = has_nan ? -1 : 0;
    }

    /// memory.sums = a b at the output, in rows of emulated_tile_columns.
    void compute(const emulated_tile& output, scratch& memory) const {
        memory.sums.assign(std::size_t{emulated_tile_rows} * emulated_tile_columns, 0.0F);
        for (std::ptrdiff_t begin = 0; begin < k; begin += chunk_k) {
            const chunk it{this, output, begin, (std::min)(k, begin + chunk_k)};
            const std::ptrdiff_t blocks = (it.end - begin + rule.products - 1) / rule.products;
            pack(*a, output.row, output.rows, begin, it.end, 1, memory.a_panels);
            pack(*b, output.column, output.columns, begin, it.end, panel_columns, memory.b_panels);
            const panel_task<panels> task{&memory.a_panels, &memory.b_panels, rule, blocks, &slow_step, &it};
            if constexpr (has_groups) {
                multiply_panels(
                    task, output,
                    MP_SELECT_TARGET(isa, (&every_processor::multiply_group_panel), multiply_group_panel),
                    memory.sums.data());
            } else {
                multiply_panels(task, output, panel_function_for<rule>(isa), memory.sums.data());
            }
        }
    }
};

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The product c = epilogue(alpha * a b + beta * c) of block-scaled matrices on the model of an architecture's tensor cores, from
/// sm_100 on: MXFP8, MXFP6 and MXFP4, each or mixed, two of MXFP4, or two of NVFP4. The blocks of a lie along its rows, those of b
/// along its columns.
///
/// Each element of a b starts from zero and takes blocks of ascending k, each as mp::scaled_block_fma; zeros fill the last one up.
/// The tensor scales of NVFP4 are factors of alpha: alpha * (scale of a * scale of b), rounded twice. The rest is as in
/// mp::gemm(emulated, ...). No result of hardware is published for these instructions: see mp::block_scaled_rule_of.
///
/// Throws argument_error for shapes that do not fit and for blocks that lie across k; types that the architecture does not multiply
/// do not compile.
///
///     mp::gemm(mp::emulated<mp::arch::sm_100>{}, 1, weights, activations, 0, mp::row_major(c, m, n));
template <arch Arch, block_element AElement, block_element BElement, int ABlock, int BBlock, reduced AScale,
          reduced BScale, gemm_output C, gemm_epilogue Epilogue = identity_epilogue>
void gemm(emulated<Arch> exec, float alpha, const block_scaled<AElement, ABlock, AScale>& a,
          const block_scaled<BElement, BBlock, BScale>& b, float beta, matrix_view<C> c,
          Epilogue epilogue = {}) {
    constexpr std::string_view function = "mp::gemm";
    static_assert(ABlock == BBlock && std::is_same_v<AScale, BScale>,
                  "mp: both operands on a tensor core have scales of one type, for blocks of one size");
    using product = detail::block_scaled_product<Arch, block_scaled<AElement, ABlock, AScale>,
                                                 block_scaled<BElement, BBlock, BScale>>;
    detail::check_view(function, "c", detail::extent_of(c));
    detail::check_equal_sizes(function, "b.rows", b.rows(), "a.columns", a.columns());
    detail::check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows());
    detail::check_equal_sizes(function, "c.columns", c.columns, "b.columns", b.columns());
    if (a.direction() != block_direction::along_rows) {
        detail::throw_argument(function, "a.direction()", std::string_view("along_columns"),
                               "must be along_rows: scales are for neighbours in k");
    }
    if (b.direction() != block_direction::along_columns) {
        detail::throw_argument(function, "b.direction()", std::string_view("along_rows"),
                               "must be along_columns: scales are for neighbours in k");
    }
    const float factor = [&] {
        if constexpr (!block_scaled<AElement, ABlock, AScale>::has_tensor_scale) return alpha;
        const detail::default_floating_point_modes modes;
        return detail::float_multiply(alpha, detail::float_multiply(a.tensor_scale(), b.tensor_scale()));
    }();
    detail::compute_emulated(function, exec, factor, a.columns(), beta, c, epilogue,
                             [&](instruction_set isa) { return product{&a, &b, a.columns(), isa}; });
}

}}  // namespace mp
