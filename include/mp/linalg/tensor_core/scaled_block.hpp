// SPDX-License-Identifier: MIT
/// \file
/// The block-scaled fused multiply-add of Blackwell's tensor cores on the host, in integers. Published models alone say how it adds;
/// nobody has published results of such hardware.
#pragma once

#include <mp/arrays/convert/block_scaled.hpp>
#include <mp/base/bits.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/linalg/tensor_core/block_fma.hpp>
#include <mp/numbers/format/exact.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

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
    constexpr std::size_t most = rule.products;
    if (a.size() > most) {
        detail::throw_argument(
            function, "a.size()", a.size(),
            "must be at most the products of a block, which are " + detail::error_text(most));
    }
    if (b.size() != a.size()) {
        detail::throw_argument(function, "b.size()", b.size(),
                               "must equal a.size(), which is " + detail::error_text(a.size()));
    }
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

}}  // namespace mp
