// SPDX-License-Identifier: MIT
/// \file
/// The operations of IEEE P3109 4.0 on numbers: on operands of any formats, into any format, rounded once.
#pragma once

#include <mp/numbers/format/p3109/real_functions.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

constexpr int count_operands(extended_real (*)(const extended_real&)) {
    return 1;
}
constexpr int count_operands(extended_real (*)(const extended_real&, const extended_real&)) {
    return 2;
}
constexpr int count_operands(extended_real (*)(const extended_real&, const extended_real&,
                                               const extended_real&)) {
    return 3;
}
template <auto Function>
inline constexpr int arity_of = count_operands(Function);

/// Decodes the operands, applies a function of closed extended reals, and projects the result.
template <class Result, auto Function>
struct projected_operation {
    template <p3109_operand X>
        requires(arity_of<Function> == 1)
    [[nodiscard]] constexpr Result operator()(X x, const projection& p = {}) const noexcept {
        return project<Result>(Function(decode(x)), p);
    }
    template <p3109_operand X, p3109_operand Y>
        requires(arity_of<Function> == 2)
    [[nodiscard]] constexpr Result operator()(X x, Y y, const projection& p = {}) const noexcept {
        return project<Result>(Function(decode(x), decode(y)), p);
    }
    template <p3109_operand X, p3109_operand Y, p3109_operand Z>
        requires(arity_of<Function> == 3)
    [[nodiscard]] constexpr Result operator()(X x, Y y, Z z, const projection& p = {}) const noexcept {
        return project<Result>(Function(decode(x), decode(y), decode(z)), p);
    }
};

}}  // namespace mp::detail

/// The operations of IEEE P3109 4.0, sections 4.9 to 4.11, by its names:
///
///     namespace p3109 = mp::p3109_operations;
///     mp::p3109<8, 4> x{3};
///     mp::p3109<8, 3> y{0.1};
///     float sum = p3109::add<float>(x, y);
///     auto product = p3109::multiply<mp::p3109<4, 2>>(x, y, {.saturate = mp::saturation::finite});
///
/// Operands may be numbers of different formats, of P3109 and others of up to 24 bits of precision. The exact
/// result is rounded once to the format in angle brackets, as the projection says that may come last
/// (nearest-even without saturation, if none does). Functions of section 4.10.9 and later are evaluated to 64
/// bits, the same on every platform; which results are known to be correctly rounded is in docs/p3109.md. NaN
/// of the operands becomes the quiet NaN without payload. Nothing throws, and everything works in constant
/// expressions, on hosts.
namespace mp::p3109_operations { inline namespace MP_ISA_NAMESPACE {

/// x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_identity> convert{};
/// The magnitude of x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_magnitude> abs{};
/// -x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_negative> negate{};
/// The square root of x; NaN for x < 0.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_root> sqrt{};
/// 1 / x; NaN for zero.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_reciprocal> recip{};
/// 1 / sqrt(x); NaN for x <= 0.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_reciprocal_root> rsqrt{};
/// e^x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_exp> exp{};
/// 2^x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_exp2> exp2{};
/// e^x - 1.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_exp_minus_one> exp_minus_one{};
/// The natural logarithm of x; minus infinity for zero, NaN for x < 0.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_log> log{};
/// The logarithm of x to base 2, as log.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_log2> log2{};
/// log(1 + x).
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_log_one_plus> log_one_plus{};
/// log(1 + e^x).
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_softplus> softplus{};
/// The sine of x in radians.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_sine> sin{};
/// The cosine of x in radians.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_cosine> cos{};
/// The tangent of x in radians.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_tangent> tan{};
/// sin(pi x).
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_sine_pi> sin_pi{};
/// cos(pi x).
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_cosine_pi> cos_pi{};
/// tan(pi x); NaN for x = 1/2, 3/2 ....
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_tangent_pi> tan_pi{};
/// The angle in radians whose sine is x; NaN beyond [-1, 1].
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_sine> arc_sin{};
/// The angle in radians whose cosine is x; NaN beyond [-1, 1].
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_cosine> arc_cos{};
/// The angle in radians whose tangent is x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_tangent<false>> arc_tan{};
/// arc_sin(x) / pi.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_sine_pi> arc_sin_pi{};
/// arc_cos(x) / pi.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_cosine_pi> arc_cos_pi{};
/// arc_tan(x) / pi.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_tangent<true>> arc_tan_pi{};
/// The hyperbolic sine of x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_sinh> sinh{};
/// The hyperbolic cosine of x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_cosh> cosh{};
/// The hyperbolic tangent of x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_tanh> tanh{};
/// The number whose hyperbolic sine is x.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_sinh> arc_sinh{};
/// The number from 0 on whose hyperbolic cosine is x; NaN for x < 1.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_cosh> arc_cosh{};
/// The number whose hyperbolic tangent is x; NaN beyond [-1, 1].
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_tanh> arc_tanh{};
/// The magnitude of x with the sign of y; NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_copy_sign> copy_sign{};
/// x + y.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_sum> add{};
/// x - y.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_difference> subtract{};
/// x y.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_product> multiply{};
/// x / y; NaN for y = 0.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_quotient> divide{};
/// sqrt(x^2 + y^2); NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_hypotenuse> hypot{};
/// The angle of the point (x, y) in radians, for the arguments y, x; NaN for zero, and for two infinities.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_tangent2<false>> arc_tan2{};
/// arc_tan2(y, x) / pi.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_arc_tangent2<true>> arc_tan2_pi{};
/// The smaller one; NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_minimum> minimum{};
/// The larger one; NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_maximum> maximum{};
/// The smaller one, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_minimum_number> minimum_number{};
/// The larger one, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_maximum_number> maximum_number{};
/// The one of smaller magnitude, and of two such the smaller one; NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_minimum_magnitude> minimum_magnitude{};
/// The one of larger magnitude, and of two such the larger one; NaN if either is.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_maximum_magnitude> maximum_magnitude{};
/// As minimum_magnitude, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_minimum_magnitude_number>
    minimum_magnitude_number{};
/// As maximum_magnitude, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_maximum_magnitude_number>
    maximum_magnitude_number{};
/// The smaller one of two finite numbers, or the only finite one, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_minimum_finite> minimum_finite{};
/// The larger one of two finite numbers, or the only finite one, or the only number.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_maximum_finite> maximum_finite{};
/// x y + z.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_product_sum> fma{};
/// x + y + z.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_sum_of_three> faa{};
/// x limited to the interval from the second to the third operand; NaN if that is empty.
template <number Result>
inline constexpr detail::projected_operation<Result, detail::real_clamp> clamp{};

}}  // namespace mp::p3109_operations
