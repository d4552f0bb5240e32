// SPDX-License-Identifier: MIT
#pragma once

#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/math.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <cstdint>
#include <string_view>

#include "oracle/library.hpp"
#include "oracle/mpfr.hpp"
#include "oracle/random.hpp"

/// Compares the mathematical functions with MPFR, for one operand or pair of operands at a time.
///
/// Two judges: for the formats that the oracle knows, MPFR's value is located among the codes and the outcome
/// follows from there. For all formats, MPFR's value rounded to odd as a double is rounded once more by
/// mp::round_to, which is tested on its own; that gives the flags, too.
namespace math_cases {

inline constexpr mp::rounding modes[] = {mp::rounding::nearest_even, mp::rounding::nearest_away,
                                         mp::rounding::toward_zero,  mp::rounding::upward,
                                         mp::rounding::downward,     mp::rounding::to_odd};

/// A function of MPFR with one operand.
using mpfr_unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using mpfr_binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

/// Calls visit(name, function of MPFR, function of the library) for each function of one operand.
template <class Visit>
void for_each_unary(Visit visit) {
    visit("cbrt", mpfr_unary{mpfr_cbrt}, [](auto x, auto&& c) { return mp::cbrt(x, c); });
    // IEEE 754 keeps the sign of zero, MPFR does not.
    visit("rsqrt", mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              const int inexact = mpfr_rec_sqrt(result, x, round);
              if (mpfr_zero_p(x) != 0) mpfr_setsign(result, result, mpfr_signbit(x), MPFR_RNDZ);
              return inexact;
          }},
          [](auto x, auto&& c) { return mp::rsqrt(x, c); });
    visit("exp", mpfr_unary{mpfr_exp}, [](auto x, auto&& c) { return mp::exp(x, c); });
    visit("exp2", mpfr_unary{mpfr_exp2}, [](auto x, auto&& c) { return mp::exp2(x, c); });
    visit("exp10", mpfr_unary{mpfr_exp10}, [](auto x, auto&& c) { return mp::exp10(x, c); });
    visit("expm1", mpfr_unary{mpfr_expm1}, [](auto x, auto&& c) { return mp::expm1(x, c); });
    visit("log", mpfr_unary{mpfr_log}, [](auto x, auto&& c) { return mp::log(x, c); });
    visit("log2", mpfr_unary{mpfr_log2}, [](auto x, auto&& c) { return mp::log2(x, c); });
    visit("log10", mpfr_unary{mpfr_log10}, [](auto x, auto&& c) { return mp::log10(x, c); });
    visit("log1p", mpfr_unary{mpfr_log1p}, [](auto x, auto&& c) { return mp::log1p(x, c); });
    visit("sin", mpfr_unary{mpfr_sin}, [](auto x, auto&& c) { return mp::sin(x, c); });
    visit("cos", mpfr_unary{mpfr_cos}, [](auto x, auto&& c) { return mp::cos(x, c); });
    visit("tan", mpfr_unary{mpfr_tan}, [](auto x, auto&& c) { return mp::tan(x, c); });
    visit("asin", mpfr_unary{mpfr_asin}, [](auto x, auto&& c) { return mp::asin(x, c); });
    visit("acos", mpfr_unary{mpfr_acos}, [](auto x, auto&& c) { return mp::acos(x, c); });
    visit("atan", mpfr_unary{mpfr_atan}, [](auto x, auto&& c) { return mp::atan(x, c); });
    visit("sinpi", mpfr_unary{mpfr_sinpi}, [](auto x, auto&& c) { return mp::sinpi(x, c); });
    visit("cospi", mpfr_unary{mpfr_cospi}, [](auto x, auto&& c) { return mp::cospi(x, c); });
    visit("tanpi", mpfr_unary{mpfr_tanpi}, [](auto x, auto&& c) { return mp::tanpi(x, c); });
    visit("asinpi", mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              return mpfr_asinu(result, x, 2, round);
          }},
          [](auto x, auto&& c) { return mp::asinpi(x, c); });
    visit("acospi", mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              return mpfr_acosu(result, x, 2, round);
          }},
          [](auto x, auto&& c) { return mp::acospi(x, c); });
    visit("atanpi", mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              return mpfr_atanu(result, x, 2, round);
          }},
          [](auto x, auto&& c) { return mp::atanpi(x, c); });
    visit("exp2m1", mpfr_unary{mpfr_exp2m1}, [](auto x, auto&& c) { return mp::exp2m1(x, c); });
    visit("exp10m1", mpfr_unary{mpfr_exp10m1}, [](auto x, auto&& c) { return mp::exp10m1(x, c); });
    visit("log2p1", mpfr_unary{mpfr_log2p1}, [](auto x, auto&& c) { return mp::log2p1(x, c); });
    visit("log10p1", mpfr_unary{mpfr_log10p1}, [](auto x, auto&& c) { return mp::log10p1(x, c); });
    visit("logp1", mpfr_unary{mpfr_log1p}, [](auto x, auto&& c) { return mp::logp1(x, c); });
    visit("sinh", mpfr_unary{mpfr_sinh}, [](auto x, auto&& c) { return mp::sinh(x, c); });
    visit("cosh", mpfr_unary{mpfr_cosh}, [](auto x, auto&& c) { return mp::cosh(x, c); });
    visit("tanh", mpfr_unary{mpfr_tanh}, [](auto x, auto&& c) { return mp::tanh(x, c); });
    visit("asinh", mpfr_unary{mpfr_asinh}, [](auto x, auto&& c) { return mp::asinh(x, c); });
    visit("acosh", mpfr_unary{mpfr_acosh}, [](auto x, auto&& c) { return mp::acosh(x, c); });
    visit("atanh", mpfr_unary{mpfr_atanh}, [](auto x, auto&& c) { return mp::atanh(x, c); });
    visit("erf", mpfr_unary{mpfr_erf}, [](auto x, auto&& c) { return mp::erf(x, c); });
    visit("erfc", mpfr_unary{mpfr_erfc}, [](auto x, auto&& c) { return mp::erfc(x, c); });
    visit("tgamma", mpfr_unary{mpfr_gamma}, [](auto x, auto&& c) { return mp::tgamma(x, c); });
    visit("lgamma", mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              int sign = 0;
              return mpfr_lgamma(result, &sign, x, round);
          }},
          [](auto x, auto&& c) { return mp::lgamma(x, c); });
}

/// The same for two operands.
template <class Visit>
void for_each_binary(Visit visit) {
    visit("pow", mpfr_binary{mpfr_pow}, [](auto x, auto y, auto&& c) { return mp::pow(x, y, c); });
    visit("atan2", mpfr_binary{mpfr_atan2}, [](auto x, auto y, auto&& c) { return mp::atan2(x, y, c); });
    visit("atan2pi", mpfr_binary{[](mpfr_ptr result, mpfr_srcptr y, mpfr_srcptr x, mpfr_rnd_t round) {
              return mpfr_atan2u(result, y, x, 2, round);
          }},
          [](auto x, auto y, auto&& c) { return mp::atan2pi(x, y, c); });
    // IEEE 754 has NaN for every NaN operand, MPFR 1 for some.
    visit("powr", mpfr_binary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
              if (mpfr_nan_p(x) == 0 && mpfr_nan_p(y) == 0) return mpfr_powr(result, x, y, round);
              mpfr_set_nan(result);
              return 0;
          }},
          [](auto x, auto y, auto&& c) { return mp::powr(x, y, c); });
    visit("hypot", mpfr_binary{mpfr_hypot}, [](auto x, auto y, auto&& c) { return mp::hypot(x, y, c); });
}

/// The special cases of IEEE P3109, where they differ from those of IEEE 754 and MPFR.
template <class Value, class... Operands>
void follow_p3109(oracle::mpfr_number& exact, std::string_view name, Value x, Operands... y) {
    if (!oracle::format_of<Value>.is_p3109) return;
    if (name == "rsqrt" && mp::is_zero(x)) exact.set_nan();
    if (name == "tanpi" && exact.is_infinite()) exact.set_nan();
    if (name == "hypot" && (mp::isnan(x) || ... || mp::isnan(y))) exact.set_nan();
    if (name == "atan2" || name == "atan2pi") {
        if ((mp::is_zero(x) && ... && mp::is_zero(y)) || (mp::isinf(x) && ... && mp::isinf(y)))
            exact.set_nan();
        if ((mp::isinf(y) || ...)) exact.make_positive();  // 0, or pi below the axis too
    }
}

/// What a result of MPFR means in the format of Value, compared with call(projection or environment&).
template <class Value, class Call, class... Operands>
void compare(oracle::disagreements& wrong, const char* name, const oracle::mpfr_number& exact, Call call,
             const Operands&... operands) {
    const bool nan_operand = (mp::isnan(operands) || ...);
    const bool finite_operands = (mp::isfinite(operands) && ...);
    const double odd = exact.to_odd();
    for (const mp::rounding mode : modes) {
        const mp::projection p{.round = mode};
        const std::uint64_t plain = oracle::code_of<Value>(call(p));
        mp::environment env{.project = p};
        const std::uint64_t with_flags = oracle::code_of<Value>(call(env));

        mp::environment expected{.project = p};
        if (exact.is_infinite() && finite_operands) {
            expected.raised |= mp::status_flag::divide_by_zero;
        }
        if (exact.is_nan() && !nan_operand) expected.raised |= mp::status_flag::invalid;
        const Value rounded = exact.is_infinite() && finite_operands ? mp::round_to<Value>(odd, p)
                                                                     : mp::round_to<Value>(odd, expected);
        const bool same = oracle::code_of<Value>(rounded) == plain ||
                          (mp::isnan(rounded) && mp::isnan(oracle::value_of<Value>(plain)));
        if (!same || plain != with_flags) {
            wrong.add(name, operands.bits()..., "mode", static_cast<int>(mode), "gives", plain, with_flags,
                      "instead of", oracle::code_of<Value>(rounded));
        }
        if (!nan_operand && !(env.raised == expected.raised)) {
            wrong.add(name, operands.bits()..., "mode", static_cast<int>(mode), "raises",
                      env.raised.to_unsigned(), "instead of", expected.raised.to_unsigned());
        }
    }
    if constexpr (!(oracle::format_of<Value> == oracle::format{})) {
        const oracle::format& f = oracle::format_of<Value>;
        const oracle::exact_result located = exact.located_in(f);
        for (const oracle::mode m : oracle::modes) {
            const std::uint64_t code =
                oracle::code_of<Value>(call(oracle::library_projection(m, oracle::saturate::none)));
            const oracle::outcome expected = finish(f, located, m, oracle::saturate::none);
            if (!matches(f, expected, code)) {
                wrong.add(name, operands.bits()..., name_of(m), "gives", code, "and not", expected.code);
            }
        }
    }
}

/// Compares every function of one operand for every `step`-th code of a format, from `first` on.
template <class Value>
void compare_all_unary(oracle::disagreements& wrong, std::uint64_t first, std::uint64_t step) {
    for_each_unary([&](const char* name, mpfr_unary reference, auto function) {
        oracle::mpfr_number exact;
        for (std::uint64_t code = first; code <= Value::layout::code_mask; code += step) {
            const Value x = oracle::value_of<Value>(code);
            exact.compute(reference, oracle::mpfr_number(static_cast<double>(x)));
            follow_p3109(exact, name, x);
            compare<Value>(wrong, name, exact, [&](auto&& c) { return function(x, c); }, x);
        }
    });
}

template <class Value>
bool is_signaling(Value x) {
    return mp::detail::is_signaling<typename Value::format>(x.bits());
}

/// Compares every function of two operands for one pair. What becomes of signalling NaNs is tested elsewhere.
template <class Value>
void compare_pair(oracle::disagreements& wrong, std::uint64_t i, std::uint64_t j) {
    const Value x = oracle::value_of<Value>(i);
    const Value y = oracle::value_of<Value>(j);
    if (is_signaling(x) || is_signaling(y)) return;
    const oracle::mpfr_number exact_x(static_cast<double>(x));
    const oracle::mpfr_number exact_y(static_cast<double>(y));
    oracle::mpfr_number exact;
    for_each_binary([&](const char* name, mpfr_binary reference, auto function) {
        exact.compute(reference, exact_x, exact_y);
        follow_p3109(exact, name, x, y);
        compare<Value>(wrong, name, exact, [&](auto&& c) { return function(x, y, c); }, x, y);
    });
}

/// Compares `count` pairs of a format that the oracle knows: random ones, and for pow those where the result
/// is exact or close to one or to its base.
template <class Value>
void compare_pairs(oracle::disagreements& wrong, oracle::random_bits& random, long count) {
    const oracle::format& f = oracle::format_of<Value>;
    const std::uint64_t one = oracle::code_of<Value>(Value(1.0f));
    const std::uint64_t sign = oracle::sign_bit(f);
    for (long n = 0; n < count; ++n) {
        std::uint64_t i = weighted_code(random, f);
        std::uint64_t j = weighted_partner(random, f, i);
        switch (n % 6) {
            case 0:  // near one, to any power
                i = one + random.below(64) - 32;
                break;
            case 1:  // small whole and half powers, and quarters, of both signs
                j = oracle::code_of<Value>(Value(static_cast<float>(random.below(160)) / 8 - 10));
                break;
            case 2:  // powers of powers of two, and of squares of small numbers
                i = oracle::code_of<Value>(
                    Value(static_cast<float>((random.below(15) + 1) * (random.below(15) + 1)) /
                          static_cast<float>(1U << random.below(12))));
                j = oracle::code_of<Value>(Value(static_cast<float>(random.below(64)) / 4));
                break;
            case 3:  // exponents near one, and bases so that there is no overflow
                i = one + random.below(1U << (f.fraction_bits + 3));
                j = (one + random.below(8) - 4) ^ (random.below(2) * sign);
                break;
            default:
                break;
        }
        compare_pair<Value>(wrong, i, j);
    }
}

}  // namespace math_cases
