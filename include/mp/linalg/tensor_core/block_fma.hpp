// SPDX-License-Identifier: MIT
/// \file
/// The block fused multiply-add of tensor cores on the host, bit for bit, in integers; and products of whole fragments by it.
#pragma once

#include <mp/base/bits.hpp>
#include <mp/error.hpp>
#include <mp/linalg/gemm/validation.hpp>
#include <mp/linalg/tensor_core/arch.hpp>
#include <mp/matrix_view.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The NaN that tensor cores return. As half it is 0x7FFF.
inline constexpr std::uint32_t tensor_core_nan = 0x7FFF'FFFFU;
/// The products of the largest block.
inline constexpr int most_block_products = 32;

/// An unpacked operand: significand * 2^exponent where it is finite. The exponent depends on the binade
/// only, with subnormal numbers in the lowest one, so that exponent + fraction bits is the `E` of the rule.
struct unpacked_operand {
    category kind = category::zero;
    bool negative = false;
    int exponent = 0;
    std::uint32_t significand = 0;
};

template <class Value>
constexpr unpacked_operand unpack(Value value) {
    using format = typename Value::format;
    unpacked_operand result;
    result.kind = categorize<format>(value.bits());
    result.negative = is_negative<format>(value.bits());
    if (result.kind == category::finite) {
        const exact_value exact = unpack<format>(value.bits());
        result.exponent = exact.exponent;
        result.significand = static_cast<std::uint32_t>(exact.significand);
    }
    return result;
}

/// The terms of a block and what is to be known of all of them before they are added.
class block_terms {
public:
    /// The term a b of two operands whose formats have `fraction_bits` together.
    constexpr void add_product(const unpacked_operand& a, const unpacked_operand& b, int fraction_bits) {
        const bool infinite = a.kind == category::infinite || b.kind == category::infinite;
        const bool zero = a.kind == category::zero || b.kind == category::zero;
        const bool nan = a.kind == category::nan || b.kind == category::nan || (infinite && zero);
        const std::uint64_t product = std::uint64_t{a.significand} * b.significand;
        const int exponent = a.exponent + b.exponent;
        add({product, exponent, a.negative != b.negative}, exponent + fraction_bits,
            {nan, infinite, zero || nan});
    }

    /// The addend, as bits of a float.
    constexpr void add_addend(std::uint32_t bits, int least_exponent) {
        const category kind = categorize<formats::binary32>(bits);
        const bool negative = is_negative<formats::binary32>(bits);
        const exact_value exact = kind == category::finite ? unpack<formats::binary32>(bits) : exact_value{};
        constexpr int fraction_bits = layout_of<formats::binary32>::fraction_bits;
        add({exact.significand, exact.exponent, negative},
            (std::max)(exact.exponent + fraction_bits, least_exponent),
            {kind == category::nan, kind == category::infinite, kind == category::zero});
    }

    /// The bits of the result as a float; a half is given as the float of its value.
    [[nodiscard]] constexpr std::uint32_t result(const block_rule& rule) const {
        if (nan_ || (plus_infinity_ && minus_infinity_)) return tensor_core_nan;
        if (plus_infinity_ || minus_infinity_) return join<formats::binary32>(minus_infinity_, infinity);
        const int largest = zero_ ? (std::max)(largest_, rule.zero_exponent) : largest_;
        // A term's magnitude is below 4 * 2^largest: below 2^(fraction_bits + 2) <= 2^27 in these units. The
        // sum of 33 terms is below 2^33.
        const int unit = largest - rule.fraction_bits;
        std::int64_t sum = 0;
        for (int i = 0; i < count_; ++i) {
            const term& it = terms_[i];
            // Up: at most fraction_bits, since no significand's last bit is above its E <= largest. A shift
            // of 63 down is one of any number of places, as significands have 24 bits at most.
            const int shift = it.exponent - unit;
            const std::uint64_t magnitude =
                shift >= 0 ? it.magnitude << shift : it.magnitude >> (std::min)(-shift, 63);
            sum += it.negative ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
        }
        return rounded(sum, unit, rule.output);
    }

    /// sum * 2^unit as an output, in bits of a float.
    [[nodiscard]] static constexpr std::uint32_t rounded(std::int64_t sum, int unit, output_rule output) {
        if (sum == 0) return 0;
        const exact_value exact{sum < 0, unit, static_cast<std::uint64_t>(sum < 0 ? -sum : sum)};
        if (output == output_rule::half_nearest_even) {
            const auto code = round_and_pack<formats::binary16>(exact, projection{});
            // Zero has no sign, not even where a negative sum becomes zero.
            if ((code & layout_of<formats::binary16>::magnitude_mask) == 0) return 0;
            return convert_bits<formats::binary32, formats::binary16>(code, projection{});
        }
        const int top = 63 - leading_zeros(exact.significand) + unit;
        if (top > layout_of<formats::binary32>::max_exponent) {
            return join<formats::binary32>(exact.negative, infinity);
        }
        std::uint32_t bits = round_and_pack<formats::binary32>(exact, projection{rounding::toward_zero});
        if (output == output_rule::e8m13_truncated) bits &= ~std::uint32_t{0x3FF};
        return (bits & layout_of<formats::binary32>::magnitude_mask) == 0 ? 0 : bits;
    }

private:
    struct term {
        std::uint64_t magnitude = 0;
        int exponent = 0;
        bool negative = false;
    };
    struct special {
        bool nan;
        bool infinite;
        bool zero;
    };

    static constexpr std::uint32_t infinity = layout_of<formats::binary32>::infinity_code;
    /// Below every exponent.
    static constexpr int no_exponent = -10000;

    constexpr void add(const term& it, int exponent, special what) {
        nan_ = nan_ || what.nan;
        if (what.infinite && !what.nan) (it.negative ? minus_infinity_ : plus_infinity_) = true;
        zero_ = zero_ || what.zero;
        if (what.nan || what.infinite || what.zero) return;
        largest_ = (std::max)(largest_, exponent);
        terms_[count_++] = it;
    }

    term terms_[most_block_products + 1] = {};
    int count_ = 0;
    int largest_ = no_exponent;
    bool nan_ = false;
    bool plus_infinity_ = false;
    bool minus_infinity_ = false;
    bool zero_ = false;
};

template <class A, class B>
inline constexpr int product_fraction_bits =
    layout_of<typename A::format>::fraction_bits + layout_of<typename B::format>::fraction_bits;

/// One block, from a_at(i) and b_at(i) for i in [0, count), filled up with zeros; the addend and the result
/// are bits of floats.
template <class A, class B, class ReadA, class ReadB>
constexpr std::uint32_t block_fma_bits(const block_rule& rule, int count, const ReadA& a_at,
                                       const ReadB& b_at, std::uint32_t addend) {
    block_terms terms;
    for (int i = 0; i < rule.products; ++i) {
        const bool given = i < count;
        terms.add_product(unpack(given ? a_at(i) : A{}), unpack(given ? b_at(i) : B{}),
                          product_fraction_bits<A, B>);
    }
    terms.add_addend(addend, rule.least_addend_exponent);
    return terms.result(rule);
}

/// An ordinary sum of two floats, rounded to nearest even in float or half, with the NaN of GPUs.
constexpr std::uint32_t rounded_sum(std::uint32_t a, std::uint32_t b, bool to_half) {
    using float_format = formats::binary32;
    using half_format = formats::binary16;
    std::uint32_t sum = 0;
    if (to_half) {  // both are halves
        const auto narrow = [](std::uint32_t bits) {
            return convert_bits<half_format, float_format>(bits, projection{});
        };
        sum = convert_bits<float_format, half_format>(
            add_bits<half_format>(narrow(a), narrow(b), projection{}), projection{});
    } else {
        sum = add_bits<float_format>(a, b, projection{});
    }
    return categorize<float_format>(sum) == category::nan ? tensor_core_nan : sum;
}

/// The products of one step of float8_unit::through_half.
inline constexpr int through_half_products = 32;

/// Which of the products of a step is the i-th of them, in the order in which they are added: first those with k mod 4
/// in {0, 1}, then those in {2, 3}.
constexpr int through_half_index(int i) {
    constexpr int of_a_pass = through_half_products / 2;
    const int within = i % of_a_pass;
    return within / 2 * 4 + within % 2 + (i < of_a_pass ? 0 : 2);
}

/// One pass of a step, 0 or 1, onto the sum of the one before; `rule` is that of half. Numbers of 8 bits are halves, too, with the
/// same value; only subnormal ones have other exponents then, which is why they are converted.
template <class ReadA, class ReadB>
constexpr std::uint32_t through_half_pass(const block_rule& rule, int pass, int count, const ReadA& a_at,
                                          const ReadB& b_at, std::uint32_t sum) {
    constexpr int of_a_pass = through_half_products / 2;
    block_terms terms;
    for (int i = 0; i < of_a_pass; ++i) {
        const int at = through_half_index(pass * of_a_pass + i);
        const bool given = at < count;
        terms.add_product(unpack(given ? half(a_at(at)) : half{}), unpack(given ? half(b_at(at)) : half{}),
                          product_fraction_bits<half, half>);
    }
    terms.add_addend(sum, rule.least_addend_exponent);
    return terms.result(rule);
}

/// One step of float8_unit::through_half: two passes from zero, then the addend.
template <class ReadA, class ReadB>
constexpr std::uint32_t through_half_bits(const block_rule& rule, int count, const ReadA& a_at,
                                          const ReadB& b_at, std::uint32_t addend) {
    const std::uint32_t first = through_half_pass(rule, 0, count, a_at, b_at, 0);
    const std::uint32_t sum = through_half_pass(rule, 1, count, a_at, b_at, first);
    return rounded_sum(addend, sum, rule.output == output_rule::half_nearest_even);
}

/// The unit that multiplies operands of type A where `unit` is asked for: only 8-bit ones have a choice.
template <class A>
constexpr float8_unit unit_for(float8_unit unit) {
    return operand_kind_of<A> == operand_kind::fp8 ? unit : float8_unit::native;
}

/// The products of one step of a unit.
template <class A>
constexpr int products_of(const block_rule& rule, float8_unit unit) {
    return unit_for<A>(unit) == float8_unit::through_half ? through_half_products : rule.products;
}

/// One step of either unit.
template <arch Arch, class Output, class A, class B, class ReadA, class ReadB>
constexpr std::uint32_t block_step_bits(float8_unit unit, int count, const ReadA& a_at, const ReadB& b_at,
                                        std::uint32_t addend) {
    if constexpr (operand_kind_of<A> == operand_kind::fp8) {
        if (unit == float8_unit::through_half) {
            constexpr block_rule half_rule =
                block_rule_of(Arch, operand_kind::fp16, std::is_same_v<Output, half>);
            return through_half_bits(half_rule, count, a_at, b_at, addend);
        }
    }
    constexpr block_rule rule = checked_block_rule<Arch, A, B, Output>();
    return block_fma_bits<A, B>(rule, count, a_at, b_at, addend);
}

/// Bits of a float as an accumulator, which is a half exactly where Output is.
template <class Output>
constexpr Output accumulator_from_bits(std::uint32_t bits) {
    if constexpr (std::is_same_v<Output, half>) {
        return half::from_bits(convert_bits<formats::binary16, formats::binary32>(bits, projection{}));
    } else {
        return bit_cast<float>(bits);
    }
}

/// Bits of an accumulator as a float.
template <class Output>
constexpr std::uint32_t accumulator_bits(Output value) {
    if constexpr (std::is_same_v<Output, half>) {
        return convert_bits<formats::binary32, formats::binary16>(value.bits(), projection{});
    } else {
        return bit_cast<std::uint32_t>(value);
    }
}

/// Throws argument_error unless `a` and `b` elements are as many, and at most the products of a block.
constexpr void check_block_sizes(std::string_view function, std::size_t a, std::size_t b, std::size_t most) {
    if (a > most) {
        throw_argument(function, "a.size()", a,
                       "must be at most the products of a block, which are " + error_text(most));
    }
    if (b != a) throw_argument(function, "b.size()", b, "must equal a.size(), which is " + error_text(a));
}

/// Throws argument_error unless the architecture has the unit for these types.
template <arch Arch, class A, class Output>
constexpr void check_float8_unit(std::string_view function, std::string_view argument, float8_unit unit) {
    if constexpr (operand_kind_of<A> == operand_kind::fp8) {
        if (unit == float8_unit::through_half && !has_float8_through_half(Arch)) {
            throw_argument(function, argument, std::string_view("through_half"),
                           "must be native on this architecture, whose mma.sync is");
        }
        constexpr bool is_native =
            block_rule_of(Arch, operand_kind::fp8, std::is_same_v<Output, half>).products != 0;
        if (unit == float8_unit::native && !is_native) {
            throw_argument(function, argument, std::string_view("native"),
                           "must be through_half for accumulators of half on this architecture: no model of "
                           "the other unit is known");
        }
    }
}

/// Throws argument_error where d shares elements with what is read while it is written.
inline void check_result_apart(std::string_view name, const view_extent& input, const view_extent& d) {
    if (!views_overlap(d, input)) return;
    throw_joined<argument_error>(
        {"mp::mma: d.data makes d overlap ", name, "; it must not, since that is read while d is written"});
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// a[0] b[0] + a[1] b[1] + ... + c as the tensor cores of an architecture add one block: the bits that the
/// GPU returns.
///
/// With E(x) the exponent of a number's binade (that of the smallest normal number for subnormal ones, which
/// are not flushed), a product has the exponent E(a) + E(b) and is not normalised. All terms, c among them,
/// are brought to the unit 2^(largest exponent - F), bits below it are cut off toward zero, and they are
/// added exactly; the sum is rounded once, as the output demands. The constants are block_rule_of(Arch, ...):
/// a term of zero takes part in the search for the largest exponent with that of a zero.
///
/// A NaN among the terms, 0 * infinity and infinities of both signs give NaN with the bits 0x7FFFFFFF (half:
/// 0x7FFF); otherwise an infinity gives that infinity. Zero is always positive.
///
/// `a` and `b` have the same number of elements, at most as many as a block has; missing ones are zeros.
/// Output, the type of c and of the result, is float or half. Throws argument_error for other sizes, and for
/// a unit that the architecture lacks; types that it does not multiply do not compile.
///
///     const mp::half a[] = {mp::half(1), mp::half(2)}, b[] = {mp::half(3), mp::half(4)};
///     mp::block_fma<mp::arch::sm_90, mp::half, mp::half>(a, b, 0.5F);     // 11.5
template <arch Arch, class A, class B, class Output>
[[nodiscard]] constexpr Output block_fma(std::span<const A> a, std::span<const B> b, Output c,
                                         float8_unit unit = float8_unit::native) {
    constexpr std::string_view function = "mp::block_fma";
    constexpr block_rule rule = detail::checked_block_rule<Arch, A, B, Output>();
    detail::check_float8_unit<Arch, A, Output>(function, "unit", unit);
    detail::check_block_sizes(function, a.size(), b.size(),
                              static_cast<std::size_t>(detail::products_of<A>(rule, unit)));
    const std::uint32_t bits = detail::block_step_bits<Arch, Output, A, B>(
        unit, static_cast<int>(a.size()), [&](int i) { return a[static_cast<std::size_t>(i)]; },
        [&](int i) { return b[static_cast<std::size_t>(i)]; }, detail::accumulator_bits(c));
    return detail::accumulator_from_bits<Output>(bits);
}

/// d = a b + c as the matrix instructions of an architecture compute it, the bits that the GPU returns: for
/// each element, blocks of as many products as the rule has (see block_fma), low k first, each with the
/// result of the one before as its addend, the first one with c. Zeros fill the last block up.
///
/// a is m x k, b is k x n, c and d are m x n, each in its own storage order, of any sizes. For one
/// instruction they are its fragments as matrices, such as 16 x 8 x 16; longer ones are that instruction
/// repeated. c and d are float or half, the type of the accumulators; d may be c. Without products (k == 0)
/// d is c.
///
/// Throws argument_error, before anything is written, for shapes and views that do not fit, for a d that
/// overlaps a, b or, in another way than being equal to it, c, and for a unit that the architecture lacks.
/// Allocates nothing. A plain loop of some 10 ns for a product: mp::gemm is the fast one.
///
///     mp::mma<mp::arch::sm_80>(mp::row_major(a, 16, 16), mp::column_major(b, 16, 8),
///                              mp::row_major(c, 16, 8), mp::row_major(d, 16, 8));
template <arch Arch, class A, class B, class C, class Output>
constexpr void mma(matrix_view<A> a, matrix_view<B> b, matrix_view<C> c, matrix_view<Output> d,
                   float8_unit unit = float8_unit::native) {
    static_assert(std::is_same_v<std::remove_const_t<C>, Output>,
                  "mp: mma adds to accumulators of the type of its result");
    using a_value = std::remove_const_t<A>;
    using b_value = std::remove_const_t<B>;
    constexpr std::string_view function = "mp::mma";
    constexpr block_rule rule = detail::checked_block_rule<Arch, A, B, Output>();
    detail::check_float8_unit<Arch, a_value, Output>(function, "unit", unit);
    if (!std::is_constant_evaluated()) {
        detail::check_view(function, "a", detail::extent_of(a));
        detail::check_view(function, "b", detail::extent_of(b));
        detail::check_view(function, "c", detail::extent_of(c));
        detail::check_view(function, "d", detail::extent_of(d));
        detail::check_equal_sizes(function, "b.rows", b.rows, "a.columns", a.columns);
        detail::check_equal_sizes(function, "c.rows", c.rows, "a.rows", a.rows);
        detail::check_equal_sizes(function, "c.columns", c.columns, "b.columns", b.columns);
        detail::check_equal_sizes(function, "d.rows", d.rows, "a.rows", a.rows);
        detail::check_equal_sizes(function, "d.columns", d.columns, "b.columns", b.columns);
        detail::check_result_apart("a", detail::extent_of(a), detail::extent_of(d));
        detail::check_result_apart("b", detail::extent_of(b), detail::extent_of(d));
        const bool in_place = c.data == d.data && c.order == d.order &&
                              c.leading_dimension == d.leading_dimension && c.rows == d.rows &&
                              c.columns == d.columns;
        if (!in_place) detail::check_result_apart("c", detail::extent_of(c), detail::extent_of(d));
    }

    const std::ptrdiff_t step = detail::products_of<a_value>(rule, unit);
    for (std::ptrdiff_t row = 0; row < d.rows; ++row) {
        for (std::ptrdiff_t column = 0; column < d.columns; ++column) {
            std::uint32_t sum = detail::accumulator_bits<Output>(c(row, column));
            for (std::ptrdiff_t k = 0; k < a.columns; k += step) {
                sum = detail::block_step_bits<Arch, Output, a_value, b_value>(
                    unit, static_cast<int>((std::min)(step, a.columns - k)),
                    [&](int i) { return a(row, k + i); }, [&](int i) { return b(k + i, column); }, sum);
            }
            d(row, column) = detail::accumulator_from_bits<Output>(sum);
        }
    }
}

}}  // namespace mp
