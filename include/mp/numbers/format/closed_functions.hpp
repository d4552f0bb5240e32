// SPDX-License-Identifier: MIT
/// \file
/// The names of C's mathematical functions, closed for the numbers of the library: what no overload of the
/// library takes does not compile. Without them a call such as fmax(h, 0) finds C's functions of double, by
/// the conversion to float.
///
/// A deleted template of any arguments, one of which is a number, is less specialised than all others of its
/// name.
#pragma once

#include <mp/numbers/format/basic_float.hpp>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

template <class T>
inline constexpr bool is_number_argument = is_basic_float<std::remove_cvref_t<std::remove_pointer_t<T>>>;

/// Whether a function of C could take an argument of type T. Others belong to functions of users, such as lerp
/// of two vectors and a float, of which a number by itself becomes an argument.
template <class T>
concept argument_of_c = !(std::is_class_v<T> || std::is_union_v<T>) || is_number_argument<T> ||
                        requires(T& x, void (&take)(double)) { take(x); };

// What the compiler's message says of a call that does not compile. Functions of <mp/math.hpp> take numbers
// of one format, and beside them integers and floats; double only where the exact result can be rounded.
struct include_mp_math_hpp_and_convert_operands_to_one_format_or_all_to_float;
struct convert_operands_to_one_format_or_all_to_float;
struct mp_has_no_such_function_convert_the_number_to_float_or_double;

}}  // namespace mp::detail

#if !defined(DOXYGEN)
namespace mp { inline namespace MP_ISA_NAMESPACE {

#define MP_CLOSED_FUNCTION(name, advice)                               \
    template <class... Arguments, class Advice = mp::detail::advice>   \
        requires((mp::detail::is_number_argument<Arguments> || ...) && \
                 (mp::detail::argument_of_c<Arguments> && ...))        \
    void name(Arguments...) = delete;

// Functions of math.hpp.
#define MP_MATH(name) \
    MP_CLOSED_FUNCTION(name, include_mp_math_hpp_and_convert_operands_to_one_format_or_all_to_float)
MP_MATH(acos)
MP_MATH(asin)
MP_MATH(atan)
MP_MATH(atan2)
MP_MATH(cos)
MP_MATH(sin)
MP_MATH(tan)
MP_MATH(acospi)
MP_MATH(asinpi)
MP_MATH(atanpi)
MP_MATH(atan2pi)
MP_MATH(cospi)
MP_MATH(sinpi)
MP_MATH(tanpi)
MP_MATH(acosh)
MP_MATH(asinh)
MP_MATH(atanh)
MP_MATH(cosh)
MP_MATH(sinh)
MP_MATH(tanh)
MP_MATH(exp)
MP_MATH(exp10)
MP_MATH(exp10m1)
MP_MATH(exp2)
MP_MATH(exp2m1)
MP_MATH(expm1)
MP_MATH(log)
MP_MATH(log10)
MP_MATH(log10p1)
MP_MATH(log1p)
MP_MATH(logp1)
MP_MATH(log2)
MP_MATH(log2p1)
MP_MATH(cbrt)
MP_MATH(compoundn)
MP_MATH(hypot)
MP_MATH(pow)
MP_MATH(pown)
MP_MATH(powr)
MP_MATH(rootn)
MP_MATH(rsqrt)
MP_MATH(erf)
MP_MATH(erfc)
MP_MATH(lgamma)
MP_MATH(tgamma)
MP_MATH(sincos)
MP_MATH(fpclassify)
#undef MP_MATH

// Functions of several operands that come with every number.
#define MP_COMMON(name) MP_CLOSED_FUNCTION(name, convert_operands_to_one_format_or_all_to_float)
MP_COMMON(fma)
MP_COMMON(fmod)
MP_COMMON(remainder)
MP_COMMON(remquo)
MP_COMMON(fdim)
MP_COMMON(copysign)
MP_COMMON(nextafter)
MP_COMMON(fmax)
MP_COMMON(fmin)
MP_COMMON(fmaximum)
MP_COMMON(fminimum)
MP_COMMON(fmaximum_num)
MP_COMMON(fminimum_num)
MP_COMMON(fmaximum_mag)
MP_COMMON(fminimum_mag)
MP_COMMON(fmaximum_mag_num)
MP_COMMON(fminimum_mag_num)
MP_COMMON(modf)
MP_COMMON(lerp)
MP_COMMON(midpoint)
#undef MP_COMMON

// Functions of C and of common C libraries that the library does not have.
#define MP_ABSENT(name) \
    MP_CLOSED_FUNCTION(name, mp_has_no_such_function_convert_the_number_to_float_or_double)
MP_ABSENT(j0)
MP_ABSENT(j1)
MP_ABSENT(jn)
MP_ABSENT(y0)
MP_ABSENT(y1)
MP_ABSENT(yn)
MP_ABSENT(gamma)
MP_ABSENT(lgamma_r)
MP_ABSENT(drem)
MP_ABSENT(fmaxmag)
MP_ABSENT(fminmag)
MP_ABSENT(scalb)
MP_ABSENT(significand)
MP_ABSENT(pow10)
MP_ABSENT(finite)
MP_ABSENT(fadd)
MP_ABSENT(faddl)
MP_ABSENT(daddl)
MP_ABSENT(fsub)
MP_ABSENT(fsubl)
MP_ABSENT(dsubl)
MP_ABSENT(fmul)
MP_ABSENT(fmull)
MP_ABSENT(dmull)
MP_ABSENT(fdiv)
MP_ABSENT(fdivl)
MP_ABSENT(ddivl)
MP_ABSENT(ffma)
MP_ABSENT(ffmal)
MP_ABSENT(dfmal)
MP_ABSENT(fsqrt)
MP_ABSENT(fsqrtl)
MP_ABSENT(dsqrtl)
#undef MP_ABSENT
#undef MP_CLOSED_FUNCTION

// C's macros for directions are integers: write mp::rounding.
template <class Format, class Direction, class Width>
    requires(!std::same_as<Direction, rounding>)
void fromfp(basic_float<Format>, Direction, Width) = delete;
template <class Format, class Direction, class Width>
    requires(!std::same_as<Direction, rounding>)
void ufromfp(basic_float<Format>, Direction, Width) = delete;
template <class Format, class Direction, class Width>
    requires(!std::same_as<Direction, rounding>)
void fromfpx(basic_float<Format>, Direction, Width) = delete;
template <class Format, class Direction, class Width>
    requires(!std::same_as<Direction, rounding>)
void ufromfpx(basic_float<Format>, Direction, Width) = delete;

}}  // namespace mp
#endif
