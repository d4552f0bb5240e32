// SPDX-License-Identifier: MIT
// The elementary functions of IEEE P3109 (4.10.9 to 4.10.16) into other formats and in every mode: the
// report's special cases, and MPFR for all others.
#include <doctest/doctest.h>

#include <mpfr.h>

#include "numbers/format/p3109_cases.hpp"

using namespace p3109_cases;

namespace {

using report::real;
using report::rows;

using mpfr_unary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
using mpfr_binary = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

/// A number of MPFR with this precision.
struct number {
    mpfr_t value;

    explicit number(mpfr_prec_t precision) { mpfr_init2(value, precision); }
    number(const number&) = delete;
    number& operator=(const number&) = delete;
    ~number() { mpfr_clear(value); }
};

void assign(number& to, const real& x) {
    const auto significand = static_cast<unsigned long>(x.numerator.low_bits());
    mpfr_set_ui_2exp(to.value, significand, x.exponent, MPFR_RNDN);
    if (x.negative) mpfr_neg(to.value, to.value, MPFR_RNDN);
}

/// The leading 60 bits of what was truncated; if that is not all, a quarter of a unit more stands for the
/// rest.
real truncated(const number& x, bool inexact) {
    if (mpfr_nan_p(x.value) != 0) return report::special('N');
    // Beyond MPFR's range, which is beyond all others.
    if (inexact && mpfr_regular_p(x.value) == 0)
        return report::dyadic(mpfr_signbit(x.value) != 0, 1, mpfr_inf_p(x.value) != 0 ? 20000 : -20000);
    if (mpfr_inf_p(x.value) != 0) return report::special(mpfr_signbit(x.value) != 0 ? '-' : '+');
    if (mpfr_zero_p(x.value) != 0) return real{};
    number magnitude(60);
    inexact = mpfr_abs(magnitude.value, x.value, MPFR_RNDZ) != 0 || inexact;
    const auto exponent = static_cast<int>(mpfr_get_exp(magnitude.value));
    mpfr_set_exp(magnitude.value, 60);
    const std::uint64_t significand = mpfr_get_ui(magnitude.value, MPFR_RNDZ);
    return report::dyadic(mpfr_signbit(x.value) != 0, 4 * significand + (inexact ? 1 : 0), exponent - 62);
}

/// log(1 + e^x), of which no value is exact: above 200 it is x and something less than 2^-280.
int softplus(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
    if (mpfr_cmp_ui(x, 200) > 0) {
        mpfr_set(result, x, round);
    } else {
        number wide(700);
        mpfr_exp(wide.value, x, MPFR_RNDN);
        mpfr_log1p(wide.value, wide.value, MPFR_RNDN);
        mpfr_set(result, wide.value, round);
    }
    return 1;
}

const rows odd_to_infinity{{"N", 'N'}, {"+", '+'}, {"-", '-'}, {"*", '='}};
const rows of_numbers{{"N", 'N'}, {"i", 'N'}, {"*", '='}};
const rows exponential{{"N", 'N'}, {"+", '+'}, {"-", '0'}, {"*", '='}};
const rows logarithm{{"N", 'N'}, {"-", 'N'}, {"+", '+'}, {"n", 'N'}, {"z", '-'}, {"*", '='}};
const rows all_finite{{"N", 'N'}, {"*", '='}};

template <class R, class Visit>
void for_each_function(Visit visit) {
    visit("exp", exponential, mpfr_unary{mpfr_exp}, operations::exp<R>);
    visit("exp2", exponential, mpfr_unary{mpfr_exp2}, operations::exp2<R>);
    visit("softplus", exponential, mpfr_unary{softplus}, operations::softplus<R>);
    visit("exp_minus_one", all_finite, mpfr_unary{mpfr_expm1}, operations::exp_minus_one<R>);
    visit("log", logarithm, mpfr_unary{mpfr_log}, operations::log<R>);
    visit("log2", logarithm, mpfr_unary{mpfr_log2}, operations::log2<R>);
    visit("log_one_plus", {{"N", 'N'}, {"-", 'N'}, {"*", '='}}, mpfr_unary{mpfr_log1p},
          operations::log_one_plus<R>);
    visit("sin", of_numbers, mpfr_unary{mpfr_sin}, operations::sin<R>);
    visit("cos", of_numbers, mpfr_unary{mpfr_cos}, operations::cos<R>);
    visit("tan", of_numbers, mpfr_unary{mpfr_tan}, operations::tan<R>);
    visit("sin_pi", of_numbers, mpfr_unary{mpfr_sinpi}, operations::sin_pi<R>);
    visit("cos_pi", of_numbers, mpfr_unary{mpfr_cospi}, operations::cos_pi<R>);
    // MPFR has infinities for 1/2, 3/2 ..., the report NaN.
    visit("tan_pi", of_numbers, mpfr_unary{[](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
              const int inexact = mpfr_tanpi(result, x, round);
              if (mpfr_inf_p(result) != 0) mpfr_set_nan(result);
              return inexact;
          }},
          operations::tan_pi<R>);
    visit("arc_sin", of_numbers, mpfr_unary{mpfr_asin}, operations::arc_sin<R>);
    visit("arc_cos", of_numbers, mpfr_unary{mpfr_acos}, operations::arc_cos<R>);
    visit("arc_tan", all_finite, mpfr_unary{mpfr_atan}, operations::arc_tan<R>);
    visit("arc_sin_pi", of_numbers, mpfr_unary{mpfr_asinpi}, operations::arc_sin_pi<R>);
    visit("arc_cos_pi", of_numbers, mpfr_unary{mpfr_acospi}, operations::arc_cos_pi<R>);
    visit("arc_tan_pi", all_finite, mpfr_unary{mpfr_atanpi}, operations::arc_tan_pi<R>);
    visit("sinh", odd_to_infinity, mpfr_unary{mpfr_sinh}, operations::sinh<R>);
    visit("cosh", {{"N", 'N'}, {"i", '+'}, {"*", '='}}, mpfr_unary{mpfr_cosh}, operations::cosh<R>);
    visit("tanh", all_finite, mpfr_unary{mpfr_tanh}, operations::tanh<R>);
    visit("arc_sinh", odd_to_infinity, mpfr_unary{mpfr_asinh}, operations::arc_sinh<R>);
    visit("arc_cosh", {{"N", 'N'}, {"+", '+'}, {"-", 'N'}, {"*", '='}}, mpfr_unary{mpfr_acosh},
          operations::arc_cosh<R>);
    visit("arc_tanh", of_numbers, mpfr_unary{mpfr_atanh}, operations::arc_tanh<R>);
}

void assign_any(number& to, const real& x) {
    if (x.kind == 'F') {
        assign(to, x);
    } else {
        mpfr_set_inf(to.value, x.kind == '-' ? -1 : 1);
    }
}

/// The result of the first row that matches, MPFR's for '='.
template <class Compute>
real result_of(const rows& table, const real* operands, Compute compute) {
    for (const report::row& r : table) {
        bool all = true;
        for (int i = 0; r.operands[i] != 0; ++i) all = all && report::matches(r.operands[i], operands[i]);
        if (all && r.result == '0') return real{};
        if (all && r.result != '=') return report::special(r.result);
        if (all) break;
    }
    return compute();
}

template <class X, class R>
void compare_functions_of_one(tally& to, const std::vector<report::projection>& ways,
                              std::uint64_t step = 1) {
    for_each_function<R>([&](const char* name, const rows& table, mpfr_unary reference, auto function) {
        number argument(64);
        number result(120);
        for (std::uint64_t i = 0; i < format_of<X>.codes(); i += step) {
            const real x = decode(format_of<X>, i);
            const real exact = result_of(table, &x, [&] {
                assign_any(argument, x);
                const bool inexact = reference(result.value, argument.value, MPFR_RNDZ) != 0;
                return truncated(result, inexact);
            });
            for (const report::projection& p : ways) {
                to.compare(name, function(oracle::value_of<X>(i), library_projection(p)),
                           project(format_of<R>, p, exact), p, {i});
            }
        }
    });
}

const rows angle{{"N*", 'N'}, {"*N", 'N'}, {"zz", 'N'}, {"ii", 'N'}, {"*+", '0'}, {"zp", '0'}, {"**", '='}};

template <class Y, class X, class R>
void compare_angles(tally& to, const std::vector<report::projection>& ways, std::uint64_t step) {
    const auto run = [&](const char* name, mpfr_binary reference, auto function) {
        number y(64);
        number x(64);
        number result(120);
        for (std::uint64_t n = 0; n < format_of<X>.codes() * format_of<Y>.codes(); n += step) {
            const std::uint64_t i = n / format_of<X>.codes();
            const std::uint64_t j = n % format_of<X>.codes();
            const real operands[]{decode(format_of<Y>, i), decode(format_of<X>, j)};
            const real exact = result_of(angle, operands, [&] {
                assign_any(y, operands[0]);
                assign_any(x, operands[1]);
                // On the left of everything the report has pi, above the axis and below.
                if (operands[1].kind == '-') mpfr_abs(y.value, y.value, MPFR_RNDN);
                const bool inexact = reference(result.value, y.value, x.value, MPFR_RNDZ) != 0;
                return truncated(result, inexact);
            });
            for (const report::projection& p : ways) {
                to.compare(name,
                           function(oracle::value_of<Y>(i), oracle::value_of<X>(j), library_projection(p)),
                           project(format_of<R>, p, exact), p, {i, j});
            }
        }
    };
    run("arc_tan2", mpfr_atan2, operations::arc_tan2<R>);
    run("arc_tan2_pi", mpfr_atan2pi, operations::arc_tan2_pi<R>);
}

/// Functions of numbers with scale factors, and their results beside one.
template <class S, class X, class S3, class R>
void compare_scaled(tally& to, const std::vector<report::projection>& ways, std::uint64_t step) {
    using block = operations::block<S, X, 1>;
    const auto run = [&](const char* name, mpfr_unary reference, auto function) {
        number argument(64);
        number result(120);
        number scale(64);
        const std::uint64_t pairs = format_of<S>.codes() * format_of<X>.codes();
        for (std::uint64_t n = 0; n < pairs * format_of<S3>.codes(); n += step) {
            const std::uint64_t i = n % pairs / format_of<X>.codes();
            const std::uint64_t j = n % format_of<X>.codes();
            const real s = decode(format_of<S3>, n / pairs);
            const real both[]{decode(format_of<S>, i), decode(format_of<X>, j)};
            const real x = apply(report::named("multiply"), both);
            if (x.kind != 'F' || s.kind != 'F' || report::is_zero(s) || report::is_zero(x)) continue;
            assign(argument, x);
            assign(scale, s);
            bool inexact = reference(result.value, argument.value, MPFR_RNDZ) != 0;
            if (mpfr_number_p(result.value) == 0 || (inexact && mpfr_zero_p(result.value) != 0)) continue;
            inexact = mpfr_div(result.value, result.value, scale.value, MPFR_RNDZ) != 0 || inexact;
            const report::projection& p = ways[n % ways.size()];
            const auto got = function(block{oracle::value_of<S>(i), {oracle::value_of<X>(j)}},
                                      oracle::value_of<S3>(n / pairs), library_projection(p));
            to.compare(name, got.elements[0], project(format_of<R>, p, truncated(result, inexact)), p,
                       {i, j, n / pairs});
        }
    };
    run("block exp", mpfr_exp, operations::block_exp<R>);
    run("block exp2", mpfr_exp2, operations::block_exp2<R>);
    run("block log2", mpfr_log2, operations::block_log2<R>);
    run("block softplus", softplus, operations::block_softplus<R>);
    run("block sin", mpfr_sin, operations::block_sin<R>);
    run("block tanh", mpfr_tanh, operations::block_tanh<R>);
    run("block cos_pi", mpfr_cospi, operations::block_cos_pi<R>);
    run("block arc_tan", mpfr_atan, operations::block_arc_tan<R>);
    run("block arc_tan_pi", mpfr_atanpi, operations::block_arc_tan_pi<R>);
}

template <class Run>
void check(Run run) {
    tally to;
    run(to);
    MESSAGE(to.compared, " comparisons");
    INFO(to.wrong.first());
    CHECK(to.wrong.count == 0);
}

}  // namespace

TEST_CASE("elementary functions of P3109 are correctly rounded into other formats") {
    check([](tally& to) {
        const auto ways = projections(5);
        compare_functions_of_one<se<8, 4>, se<8, 3>>(to, ways);
        compare_functions_of_one<se<8, 3>, sf<6, 4>>(to, ways);
        compare_functions_of_one<ue<8, 1>, se<8, 1>>(to, ways);
        compare_functions_of_one<sf<8, 1>, ue<8, 5>>(to, ways);
        compare_functions_of_one<se<8, 6>, mp::half>(to, ways);
        compare_functions_of_one<mp::half, se<8, 4>>(to, ways, 61);
        compare_functions_of_one<mp::bfloat16, se<16, 11>>(to, ways, 67);
    });
}

TEST_CASE("angles of pairs of P3109 are correctly rounded into other formats") {
    check([](tally& to) {
        const auto ways = projections(3);
        compare_angles<se<8, 4>, se<8, 3>, se<8, 4>>(to, ways, 31);
        compare_angles<se<4, 2>, ue<8, 1>, sf<8, 2>>(to, ways, 3);
        compare_angles<se<5, 3>, sf<5, 2>, mp::half>(to, ways, 1);
    });
}

TEST_CASE("functions of scaled numbers of P3109 beside a scale factor are correctly rounded") {
    check([](tally& to) {
        const auto ways = projections(5);
        compare_scaled<uf<8, 1>, se<8, 4>, uf<8, 1>, se<8, 4>>(to, ways, 1021);
        compare_scaled<se<5, 3>, se<6, 3>, se<6, 4>, ue<8, 3>>(to, ways, 13);
        compare_scaled<ue<8, 4>, sf<8, 3>, se<8, 5>, se<8, 2>>(to, ways, 1021);
    });
}
