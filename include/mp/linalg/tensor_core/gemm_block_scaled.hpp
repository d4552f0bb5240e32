// SPDX-License-Identifier: MIT
/// \file
/// The block-scaled fused multiply-add of Blackwell's tensor cores on the host, in integers, and products of block-scaled
/// matrices (MXFP8, MXFP6, MXFP4, NVFP4). Only published models define how it adds; no results of such hardware are published.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/arrays/convert/block_vectors.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/linalg/gemm/epilogue.hpp>
#include <mp/linalg/gemm/gemm.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/linalg/tensor_core/emulated.hpp>
#include <mp/linalg/tensor_core/emulated_product.hpp>
#include <mp/linalg/tensor_core/gemm.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/select_target.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class Element>
inline constexpr bool has_six_bits =
    std::is_same_v<Element, float6_e2m3fn> || std::is_same_v<Element, float6_e3m2fn>;

template <class Element>
inline constexpr bool is_mxf8f6f4_element = operand_kind_of<Element> == operand_kind::fp8 ||
                                            has_six_bits<Element> || std::is_same_v<Element, float4_e2m1fn>;

/// The instruction that multiplies elements A and B with a scale for every Block of them. Two of 4 bits always take the one with
/// 64 products, which is twice as fast.
template <class A, class B, int Block, class Scale>
inline constexpr operand_kind scaled_kind_of = [] {
    constexpr bool powers = std::is_same_v<Scale, float8_e8m0fnu>;
    constexpr bool both_four = std::is_same_v<A, float4_e2m1fn> && std::is_same_v<B, float4_e2m1fn>;
    if (both_four &&
        ((Block == 32 && powers) || (Block == 16 && (powers || std::is_same_v<Scale, float8_e4m3fn>)))) {
        return operand_kind::mxf4nvf4;
    }
    if (is_mxf8f6f4_element<A> && is_mxf8f6f4_element<B> && Block == 32 && powers)
        return operand_kind::mxf8f6f4;
    return operand_kind::none;
}();

template <class A, class B>
constexpr block_rule scaled_rule_of(arch architecture, operand_kind kind) {
    block_rule rule = block_rule_of(architecture, kind, false);
    if (rule.products != 0 && (has_six_bits<A> || has_six_bits<B>)) rule.known = evidence::assumed;
    return rule;
}

template <arch Arch, class A, class B, int Block, class Scale>
constexpr block_rule checked_scaled_rule() {
    constexpr operand_kind kind = scaled_kind_of<A, B, Block, Scale>;
    static_assert(kind != operand_kind::none,
                  "mp: tensor cores multiply MXFP8, MXFP6 and MXFP4, each or mixed, and float4_e2m1fn in "
                  "blocks of 16 whose scales "
                  "are both float8_e4m3fn (NVFP4) or both float8_e8m0fnu");
    constexpr block_rule rule = scaled_rule_of<A, B>(Arch, kind);
    static_assert(
        rule.products != 0 || kind == operand_kind::none,
        "mp: the tensor cores of this architecture know no scales of blocks: Blackwell's do, from sm_100 on");
    return rule;
}

/// A scale as significand * 2^exponent, with three fraction bits whatever its format; subnormal numbers are in the lowest binade,
/// and a sign is not looked at.
struct unpacked_scale {
    std::uint32_t significand = 0;
    int exponent = 0;
    bool is_nan = false;
};

template <class Scale>
constexpr unpacked_scale unpack_scale(Scale scale) {
    using layout = layout_of<typename Scale::format>;
    unpacked_scale result;
    result.is_nan = categorize<typename Scale::format>(scale.bits()) == category::nan;
    const exact_value exact = unpack<typename Scale::format>(scale.bits());
    result.significand = static_cast<std::uint32_t>(exact.significand) << (3 - layout::fraction_bits);
    result.exponent = exact.exponent + layout::fraction_bits;
    return result;
}

/// Twice a number of 4 bits.
constexpr int doubled(float4_e2m1fn x) {
    constexpr std::uint64_t magnitudes = 0x0C08'0604'0302'0100;  // 0, 0.5, 1, 1.5, 2, 3, 4 and 6, a byte each
    const auto magnitude = static_cast<int>(magnitudes >> (8 * (x.bits() & 7U)) & 0xFF);
    return (x.bits() & 8U) != 0 ? -magnitude : magnitude;
}

/// Numbers whose products are added exactly in operand_kind::mxf4nvf4, before they meet their scales.
inline constexpr int products_of_group = 16;

/// One block of operand_kind::mxf8f6f4. a_scale(i) and b_scale(i) are the scales of the i-th product.
template <class A, class B, class ReadA, class ReadB, class ScaleA, class ScaleB>
constexpr std::uint32_t mxf8f6f4_bits(const block_rule& rule, int count, const ReadA& a_at,
                                      const ScaleA& a_scale, const ReadB& b_at, const ScaleB& b_scale,
                                      std::uint32_t addend) {
    block_terms terms;
    for (int i = 0; i < rule.products; ++i) {
        const bool given = i < count;
        unpacked_operand a = unpack(given ? a_at(i) : A{});
        const unpacked_operand b = unpack(given ? b_at(i) : B{});
        if (given) {
            const unpacked_scale left = unpack_scale(a_scale(i));
            const unpacked_scale right = unpack_scale(b_scale(i));
            if (left.is_nan || right.is_nan) return tensor_core_nan;
            a.exponent += left.exponent + right.exponent;
        }
        terms.add_product(a, b, product_fraction_bits<A, B>);
    }
    terms.add_addend(addend, rule.least_addend_exponent);
    return terms.result(rule);
}

/// One block of operand_kind::mxf4nvf4.
template <class ReadA, class ReadB, class ScaleA, class ScaleB>
constexpr std::uint32_t mxf4nvf4_bits(const block_rule& rule, int count, const ReadA& a_at,
                                      const ScaleA& a_scale, const ReadB& b_at, const ScaleB& b_scale,
                                      std::uint32_t addend) {
    using layout = layout_of<formats::binary32>;
    constexpr int most_groups = 4;
    const category kind = categorize<formats::binary32>(addend);
    bool nan = kind == category::nan;
    bool zero = kind == category::zero;
    const exact_value c = kind == category::finite ? unpack<formats::binary32>(addend) : exact_value{};
    int largest = kind == category::finite
                      ? (std::max)(c.exponent + layout::fraction_bits, rule.least_addend_exponent)
                      : -10000;
    std::int64_t terms[most_groups] = {};
    int exponents[most_groups] = {};
    const int groups = rule.products / products_of_group;
    for (int g = 0; g < groups; ++g) {
        std::int32_t sum = 0;
        bool any = false;
        for (int i = g * products_of_group; i < (g + 1) * products_of_group && i < count; ++i) {
            const int product = doubled(a_at(i)) * doubled(b_at(i));
            any = any || product != 0;
            sum += product;
        }
        if (g * products_of_group < count) {
            const unpacked_scale left = unpack_scale(a_scale(g * products_of_group));
            const unpacked_scale right = unpack_scale(b_scale(g * products_of_group));
            nan = nan || left.is_nan || right.is_nan;
            const auto factor = static_cast<std::int32_t>(left.significand * right.significand);
            any = any && factor != 0;
            terms[g] = std::int64_t{sum} * factor;
            exponents[g] = left.exponent + right.exponent;
        }
        // A sum that is zero without being made of zeros keeps the exponent of its scales.
        if (any) {
            largest = (std::max)(largest, exponents[g]);
        } else {
            zero = true;
            terms[g] = 0;
        }
    }
    if (nan) return tensor_core_nan;
    if (kind == category::infinite) return addend;
    if (zero) largest = (std::max)(largest, rule.zero_exponent);
    const int unit = largest - rule.fraction_bits;
    const auto cut_off = [unit](std::uint64_t magnitude, int exponent) {
        if (magnitude == 0) return std::int64_t{0};
        const int shift = exponent - unit;
        return static_cast<std::int64_t>(shift >= 0 ? magnitude << shift
                                                    : magnitude >> (std::min)(-shift, 63));
    };
    // The last bits are 2^-2 of the products and 2^-6 of the scales. A term is below 16 * 36 * 4 * 2^35 < 2^47.
    constexpr int bits_of_group = 8;
    const std::int64_t magnitude = cut_off(c.significand, c.exponent);
    std::int64_t sum = is_negative<formats::binary32>(addend) ? -magnitude : magnitude;
    for (int g = 0; g < groups; ++g) {
        const std::int64_t term = terms[g];
        if (term == 0) continue;
        const std::int64_t cut =
            cut_off(static_cast<std::uint64_t>(term < 0 ? -term : term), exponents[g] - bits_of_group);
        sum += term < 0 ? -cut : cut;
    }
    return block_terms::rounded(sum, unit, rule.output);
}

/// One block by the instruction for these operands.
template <block_rule Rule, class A, class B, class ReadA, class ReadB, class ScaleA, class ScaleB>
constexpr std::uint32_t scaled_block_bits(int count, const ReadA& a_at, const ScaleA& a_scale,
                                          const ReadB& b_at, const ScaleB& b_scale, std::uint32_t addend) {
    if constexpr (Rule.products == 64) {
        return mxf4nvf4_bits(Rule, count, a_at, a_scale, b_at, b_scale, addend);
    } else {
        return mxf8f6f4_bits<A, B>(Rule, count, a_at, a_scale, b_at, b_scale, addend);
    }
}

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

/// The rule by which an architecture multiplies two block-scaled types (mp::mxfp8_e4m3, mp::nvfp4 ...); its `products` are zero
/// where it has no such instruction. `known` is never `recorded`: no result of hardware is published.
template <class A, class B>
[[nodiscard]] constexpr block_rule block_scaled_rule_of(arch architecture) {
    using a_element = typename A::element_type;
    using b_element = typename B::element_type;
    if (A::block_size != B::block_size || !std::is_same_v<typename A::scale_type, typename B::scale_type>)
        return {};
    return detail::scaled_rule_of<a_element, b_element>(
        architecture, detail::scaled_kind_of<a_element, b_element, A::block_size, typename A::scale_type>);
}

/// c + a[0] b[0] s[0] + a[1] b[1] s[0] + ... as the tensor cores of an architecture add one block of block-scaled numbers, where s are
/// the products of a_scales and b_scales, of which there is one for every `Block` numbers.
///
/// Numbers of 8, 6 and 4 bits with powers of two (kind::mxf8f6f4): 32 products as in mp::block_fma, whose exponents the scales are
/// added to. Two of 4 bits (kind::mxf4 and mxf4nvf4): 64 products, every 16 of which are added exactly and multiplied by their two
/// scales exactly; these four terms have the exponents of their scales, those of nothing but zeros that of zero, and they and c
/// are cut off and added as in mp::block_fma. The sign of a scale is not looked at. A scale that is NaN makes NaN.
///
/// Missing products are zeros. Throws argument_error for sizes that do not fit. block_scaled_rule_of says what this rests on: on
/// models that are published, not on results.
template <arch Arch, int Block, class A, class B, class Scale>
[[nodiscard]] constexpr float scaled_block_fma(std::span<const A> a, std::span<const Scale> a_scales,
                                               std::span<const B> b, std::span<const Scale> b_scales,
                                               float c) {
    constexpr std::string_view function = "mp::scaled_block_fma";
    constexpr block_rule rule = detail::checked_scaled_rule<Arch, A, B, Block, Scale>();
    detail::check_block_sizes(function, a.size(), b.size(), rule.products);
    const std::size_t scales = (a.size() + Block - 1) / Block;
    if (a_scales.size() != scales || b_scales.size() != scales) {
        const bool is_a = a_scales.size() != scales;
        detail::throw_argument(function, is_a ? "a_scales.size()" : "b_scales.size()",
                               is_a ? a_scales.size() : b_scales.size(),
                               "must be one for every block of a, " + detail::error_text(scales));
    }
    const auto at = [](const auto& numbers) {
        return [numbers](int i) { return numbers[static_cast<std::size_t>(i)]; };
    };
    const auto scale_at = [](const auto& numbers) {
        return [numbers](int i) { return numbers[static_cast<std::size_t>(i) / Block]; };
    };
    return detail::bit_cast<float>(
        detail::scaled_block_bits<rule, A, B>(static_cast<int>(a.size()), at(a), scale_at(a_scales), at(b),
                                              scale_at(b_scales), detail::bit_cast<std::uint32_t>(c)));
}

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
