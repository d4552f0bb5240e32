// SPDX-License-Identifier: MIT
/// \file
/// The operations of IEEE P3109 4.0 on blocks of numbers with a scale factor: section 5. Every result is the
/// exact one rounded once.
#pragma once

#include <mp/numbers/format/p3109/operations.hpp>
#include <mp/numbers/format/p3109/real_functions.hpp>

#include <array>

namespace mp::p3109_operations {

/// A scale factor and the elements that it is multiplied with.
template <number Scale, number Element, std::size_t Size>
struct block {
    Scale scale;                         ///< what the elements are multiplied with
    std::array<Element, Size> elements;  ///< in the order of the block

    /// Whether all numbers are equal, as numbers are: a NaN is equal to none.
    friend constexpr bool operator==(const block&, const block&) = default;
};

}  // namespace mp::p3109_operations

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether functions are evaluated over the whole range of the products: only 16 bits with one or two of
/// precision have more.
template <class Scale, class Element>
inline constexpr bool reach_with_scale = [] {
    using scale = layout_of<format_of_t<Scale>>;
    using element = layout_of<format_of_t<Element>>;
    constexpr int top = scale::max_exponent + element::max_exponent;
    constexpr int bottom = scale::quantum_exponent + element::quantum_exponent;
    return top < 32700 && bottom > -32700;
}();

/// The value of an element (P3109, 5.1.1).
template <p3109_operand Scale, p3109_operand Element>
constexpr extended_real decode_scaled(Scale scale, Element x) {
    static_assert(reach_with_scale<Scale, Element>,
                  "mp: the products of scale factor and elements are beyond 2^32700 or 2^-32700");
    return real_product(decode(scale), decode(x));
}
template <class Scale, class Element, std::size_t Size>
constexpr extended_real element(const p3109_operations::block<Scale, Element, Size>& from, std::size_t i) {
    return decode_scaled(from.scale, from.elements[i]);
}

/// The element that stands for a value beside a scale factor (P3109, 5.1.2).
template <p3109_operand Element>
constexpr Element project_scaled(const extended_real& x, const extended_real& scale, const projection& p) {
    if (scale.is_nan() || x.is_nan()) return project<Element>(real_nan(), p);
    if (scale.is_zero() || x.is_zero()) return project<Element>({}, p);
    if (scale.is_infinite())
        return project<Element>(real_integer(x.is_negative() != scale.is_negative() ? -1 : 1), p);
    return project<Element>(real_quotient(x, scale), p);
}

/// An operation on operands with a scale factor each (P3109, 5.5).
template <class Result, auto Function>
struct scaled_operation {
    template <p3109_operand S1, p3109_operand X1>
        requires(arity_of<Function> == 1)
    [[nodiscard]] constexpr Result operator()(S1 s1, X1 x1, const projection& p = {}) const noexcept {
        return project<Result>(Function(decode_scaled(s1, x1)), p);
    }
    template <p3109_operand S1, p3109_operand X1, p3109_operand S2, p3109_operand X2>
        requires(arity_of<Function> == 2)
    [[nodiscard]] constexpr Result operator()(S1 s1, X1 x1, S2 s2, X2 x2,
                                              const projection& p = {}) const noexcept {
        return project<Result>(Function(decode_scaled(s1, x1), decode_scaled(s2, x2)), p);
    }
    template <p3109_operand S1, p3109_operand X1, p3109_operand S2, p3109_operand X2, p3109_operand S3,
              p3109_operand X3>
        requires(arity_of<Function> == 3)
    [[nodiscard]] constexpr Result operator()(S1 s1, X1 x1, S2 s2, X2 x2, S3 s3, X3 x3,
                                              const projection& p = {}) const noexcept {
        return project<Result>(Function(decode_scaled(s1, x1), decode_scaled(s2, x2), decode_scaled(s3, x3)),
                               p);
    }
};

/// An operation on the elements of blocks of one size, into a block with a given scale factor (P3109, 5.4).
template <class Element, auto Function>
struct block_operation {
    template <class S1, class X1, std::size_t Size, p3109_operand Scale>
        requires(arity_of<Function> == 1)
    [[nodiscard]] constexpr auto operator()(const p3109_operations::block<S1, X1, Size>& x, Scale scale,
                                            const projection& p = {}) const noexcept {
        return each<Size>(scale, p, [&](std::size_t i) { return Function(element(x, i)); });
    }
    template <class S1, class X1, class S2, class X2, std::size_t Size, p3109_operand Scale>
        requires(arity_of<Function> == 2)
    [[nodiscard]] constexpr auto operator()(const p3109_operations::block<S1, X1, Size>& x,
                                            const p3109_operations::block<S2, X2, Size>& y, Scale scale,
                                            const projection& p = {}) const noexcept {
        return each<Size>(scale, p, [&](std::size_t i) { return Function(element(x, i), element(y, i)); });
    }
    template <class S1, class X1, class S2, class X2, class S3, class X3, std::size_t Size,
              p3109_operand Scale>
        requires(arity_of<Function> == 3)
    [[nodiscard]] constexpr auto operator()(const p3109_operations::block<S1, X1, Size>& x,
                                            const p3109_operations::block<S2, X2, Size>& y,
                                            const p3109_operations::block<S3, X3, Size>& z, Scale scale,
                                            const projection& p = {}) const noexcept {
        return each<Size>(
            scale, p, [&](std::size_t i) { return Function(element(x, i), element(y, i), element(z, i)); });
    }

    /// The block of value(0), value(1) ... beside the scale factor.
    template <std::size_t Size, class Scale, class Values>
    static constexpr p3109_operations::block<Scale, Element, Size> each(Scale scale, const projection& p,
                                                                        Values value) {
        static_assert(reach_with_scale<Scale, Element>,
                      "mp: the products of scale factor and elements are beyond 2^32700 or 2^-32700");
        p3109_operations::block<Scale, Element, Size> result{scale, {}};
        const extended_real factor = decode(scale);
        for (std::size_t i = 0; i < Size; ++i)
            result.elements[i] = project_scaled<Element>(value(i), factor, p);
        return result;
    }
};

}}  // namespace mp::detail

namespace mp::p3109_operations { inline namespace MP_ISA_NAMESPACE {

/// The values of a block's elements, rounded to numbers of another format (ConvertFromBlock, 5.2.1).
template <number Result, class Scale, class Element, std::size_t Size>
[[nodiscard]] constexpr std::array<Result, Size> convert_from_block(const block<Scale, Element, Size>& x,
                                                                    const projection& p = {}) noexcept {
    std::array<Result, Size> result{};
    for (std::size_t i = 0; i < Size; ++i) result[i] = detail::project<Result>(detail::element(x, i), p);
    return result;
}

/// Numbers as elements of a block with the given scale factor (ConvertToBlock, 5.2.2). With a scale factor of
/// zero they become zeros, and with an infinite one their signs; NaN stays NaN.
template <number Element, number X, std::size_t Size, number Scale>
[[nodiscard]] constexpr block<Scale, Element, Size> convert_to_block(const std::array<X, Size>& x,
                                                                     Scale scale,
                                                                     const projection& p = {}) noexcept {
    return detail::block_operation<Element, detail::real_identity>::template each<Size>(
        scale, p, [&](std::size_t i) { return detail::decode(x[i]); });
}

/// The same with the largest finite magnitude for a scale factor, rounded as `scale_projection` says
/// (ConvertToBlockMaxAbsFinite, 5.2.3). If all numbers are infinite or NaN, so is the scale factor.
template <number Scale, number Element, number X, std::size_t Size>
[[nodiscard]] constexpr block<Scale, Element, Size> convert_to_block_max_abs_finite(
    const std::array<X, Size>& x, const projection& scale_projection = {},
    const projection& p = {}) noexcept {
    detail::extended_real largest = detail::real_nan();
    for (const X one : x) {
        largest = detail::real_maximum_finite(largest, detail::real_magnitude(detail::decode(one)));
    }
    return convert_to_block<Element>(x, detail::project<Scale>(largest, scale_projection), p);
}

/// The sum of a block's values (BlockReduceAdd, 5.3.1), which are added up exactly.
template <number Result, class Scale, class Element, std::size_t Size>
[[nodiscard]] constexpr Result block_reduce_add(const block<Scale, Element, Size>& x,
                                                const projection& p = {}) noexcept {
    detail::real_accumulator<Size, Element> sum(detail::decode(x.scale));
    for (std::size_t i = 0; i < Size; ++i) sum.add(detail::element(x, i));
    return detail::project<Result>(sum.result(), p);
}

/// The product of a block's values (BlockReduceMultiply, 5.3.1), which is exact before it is rounded.
template <number Result, class Scale, class Element, std::size_t Size>
[[nodiscard]] constexpr Result block_reduce_multiply(const block<Scale, Element, Size>& x,
                                                     const projection& p = {}) noexcept {
    detail::real_factors<Size> product;
    for (std::size_t i = 0; i < Size; ++i) product.multiply(detail::element(x, i));
    return detail::project<Result>(product.result(), p);
}

/// The sum of the products of two blocks' values (BlockDotProduct, 5.3.2), which are added up exactly.
template <number Result, class S1, class X1, class S2, class X2, std::size_t Size>
[[nodiscard]] constexpr Result block_dot_product(const block<S1, X1, Size>& x, const block<S2, X2, Size>& y,
                                                 const projection& p = {}) noexcept {
    detail::real_accumulator<Size, X1, X2> sum(
        detail::real_product(detail::decode(x.scale), detail::decode(y.scale)));
    for (std::size_t i = 0; i < Size; ++i)
        sum.add(detail::real_product(detail::element(x, i), detail::element(y, i)));
    return detail::project<Result>(sum.result(), p);
}

// --- scaled operations (5.5): arguments are scale factor, element, scale factor, element ...

/// convert of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_identity> scaled_convert{};
/// abs of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_magnitude> scaled_abs{};
/// negate of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_negative> scaled_negate{};
/// sqrt of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_root> scaled_sqrt{};
/// recip of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_reciprocal> scaled_recip{};
/// rsqrt of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_reciprocal_root> scaled_rsqrt{};
/// exp of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_exp> scaled_exp{};
/// exp2 of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_exp2> scaled_exp2{};
/// exp_minus_one of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_exp_minus_one> scaled_exp_minus_one{};
/// log of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_log> scaled_log{};
/// log2 of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_log2> scaled_log2{};
/// log_one_plus of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_log_one_plus> scaled_log_one_plus{};
/// softplus of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_softplus> scaled_softplus{};
/// sin of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_sine> scaled_sin{};
/// cos of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_cosine> scaled_cos{};
/// tan of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_tangent> scaled_tan{};
/// sin_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_sine_pi> scaled_sin_pi{};
/// cos_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_cosine_pi> scaled_cos_pi{};
/// tan_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_tangent_pi> scaled_tan_pi{};
/// arc_sin of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_sine> scaled_arc_sin{};
/// arc_cos of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_cosine> scaled_arc_cos{};
/// arc_tan of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_tangent<false>> scaled_arc_tan{};
/// arc_sin_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_sine_pi> scaled_arc_sin_pi{};
/// arc_cos_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_cosine_pi> scaled_arc_cos_pi{};
/// arc_tan_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_tangent<true>> scaled_arc_tan_pi{};
/// sinh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_sinh> scaled_sinh{};
/// cosh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_cosh> scaled_cosh{};
/// tanh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_tanh> scaled_tanh{};
/// arc_sinh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_sinh> scaled_arc_sinh{};
/// arc_cosh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_cosh> scaled_arc_cosh{};
/// arc_tanh of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_tanh> scaled_arc_tanh{};
/// copy_sign of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_copy_sign> scaled_copy_sign{};
/// add of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_sum> scaled_add{};
/// subtract of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_difference> scaled_subtract{};
/// multiply of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_product> scaled_multiply{};
/// divide of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_quotient> scaled_divide{};
/// hypot of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_hypotenuse> scaled_hypot{};
/// arc_tan2 of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_tangent2<false>> scaled_arc_tan2{};
/// arc_tan2_pi of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_arc_tangent2<true>> scaled_arc_tan2_pi{};
/// minimum of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_minimum> scaled_minimum{};
/// maximum of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_maximum> scaled_maximum{};
/// minimum_number of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_minimum_number> scaled_minimum_number{};
/// maximum_number of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_maximum_number> scaled_maximum_number{};
/// minimum_magnitude of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_minimum_magnitude> scaled_minimum_magnitude{};
/// maximum_magnitude of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_maximum_magnitude> scaled_maximum_magnitude{};
/// minimum_magnitude_number of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_minimum_magnitude_number>
    scaled_minimum_magnitude_number{};
/// maximum_magnitude_number of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_maximum_magnitude_number>
    scaled_maximum_magnitude_number{};
/// minimum_finite of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_minimum_finite> scaled_minimum_finite{};
/// maximum_finite of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_maximum_finite> scaled_maximum_finite{};
/// fma of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_product_sum> scaled_fma{};
/// faa of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_sum_of_three> scaled_faa{};
/// clamp of the products of operands with their scale factors.
template <number Result>
inline constexpr detail::scaled_operation<Result, detail::real_clamp> scaled_clamp{};

// --- elementwise operations on blocks (5.4), named by section 4's: arguments are the blocks and the scale
// factor of the result, whose elements have the type in angle brackets

/// convert of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_identity> block_convert{};
/// abs of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_magnitude> block_abs{};
/// negate of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_negative> block_negate{};
/// sqrt of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_root> block_sqrt{};
/// recip of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_reciprocal> block_recip{};
/// rsqrt of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_reciprocal_root> block_rsqrt{};
/// exp of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_exp> block_exp{};
/// exp2 of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_exp2> block_exp2{};
/// exp_minus_one of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_exp_minus_one> block_exp_minus_one{};
/// log of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_log> block_log{};
/// log2 of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_log2> block_log2{};
/// log_one_plus of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_log_one_plus> block_log_one_plus{};
/// softplus of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_softplus> block_softplus{};
/// sin of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_sine> block_sin{};
/// cos of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_cosine> block_cos{};
/// tan of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_tangent> block_tan{};
/// sin_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_sine_pi> block_sin_pi{};
/// cos_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_cosine_pi> block_cos_pi{};
/// tan_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_tangent_pi> block_tan_pi{};
/// arc_sin of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_sine> block_arc_sin{};
/// arc_cos of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_cosine> block_arc_cos{};
/// arc_tan of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_tangent<false>> block_arc_tan{};
/// arc_sin_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_sine_pi> block_arc_sin_pi{};
/// arc_cos_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_cosine_pi> block_arc_cos_pi{};
/// arc_tan_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_tangent<true>> block_arc_tan_pi{};
/// sinh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_sinh> block_sinh{};
/// cosh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_cosh> block_cosh{};
/// tanh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_tanh> block_tanh{};
/// arc_sinh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_sinh> block_arc_sinh{};
/// arc_cosh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_cosh> block_arc_cosh{};
/// arc_tanh of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_tanh> block_arc_tanh{};
/// copy_sign of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_copy_sign> block_copy_sign{};
/// add of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_sum> block_add{};
/// subtract of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_difference> block_subtract{};
/// multiply of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_product> block_multiply{};
/// divide of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_quotient> block_divide{};
/// hypot of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_hypotenuse> block_hypot{};
/// arc_tan2 of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_tangent2<false>> block_arc_tan2{};
/// arc_tan2_pi of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_arc_tangent2<true>> block_arc_tan2_pi{};
/// minimum of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_minimum> block_minimum{};
/// maximum of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_maximum> block_maximum{};
/// minimum_number of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_minimum_number> block_minimum_number{};
/// maximum_number of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_maximum_number> block_maximum_number{};
/// minimum_magnitude of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_minimum_magnitude> block_minimum_magnitude{};
/// maximum_magnitude of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_maximum_magnitude> block_maximum_magnitude{};
/// minimum_magnitude_number of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_minimum_magnitude_number>
    block_minimum_magnitude_number{};
/// maximum_magnitude_number of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_maximum_magnitude_number>
    block_maximum_magnitude_number{};
/// minimum_finite of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_minimum_finite> block_minimum_finite{};
/// maximum_finite of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_maximum_finite> block_maximum_finite{};
/// fma of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_product_sum> block_fma{};
/// faa of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_sum_of_three> block_faa{};
/// clamp of the elements of blocks.
template <number Result>
inline constexpr detail::block_operation<Result, detail::real_clamp> block_clamp{};

}}  // namespace mp::p3109_operations
