// SPDX-License-Identifier: MIT
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/p3109_operations.hpp>

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "numbers/format/p3109_report.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

/// Compares the operations of mp/p3109_operations.hpp with the transcription of the report.
namespace p3109_cases {

namespace operations = mp::p3109_operations;

template <int K, int P>
using se = mp::p3109<K, P>;
template <int K, int P>
using sf = mp::p3109<K, P, mp::signedness::is_signed, mp::domain::finite>;
template <int K, int P>
using ue = mp::p3109<K, P, mp::signedness::is_unsigned, mp::domain::extended>;
template <int K, int P>
using uf = mp::p3109<K, P, mp::signedness::is_unsigned, mp::domain::finite>;

template <class T>
inline constexpr report::format format_of = std::is_same_v<T, float>      ? report::binary32
                                            : std::is_same_v<T, mp::half> ? report::binary16
                                                                          : report::bfloat16;
template <int K, int P, mp::signedness Signs, mp::domain Domain>
inline constexpr report::format format_of<mp::p3109<K, P, Signs, Domain>> = {
    K, P, Signs == mp::signedness::is_signed, Domain == mp::domain::extended};

inline mp::projection library_projection(const report::projection& p) {
    constexpr mp::rounding rounds[]{
        mp::rounding::nearest_even, mp::rounding::nearest_away, mp::rounding::upward,
        mp::rounding::downward,     mp::rounding::toward_zero,  mp::rounding::to_odd,
        mp::rounding::stochastic_a, mp::rounding::stochastic_b, mp::rounding::stochastic_c};
    constexpr mp::saturation saturations[]{mp::saturation::none, mp::saturation::finite,
                                           mp::saturation::propagate};
    return {rounds[static_cast<int>(p.round)], saturations[static_cast<int>(p.saturate)],
            static_cast<unsigned char>(p.bits), static_cast<std::uint32_t>(p.random)};
}

/// Every rounding and saturation mode; the stochastic ones with several numbers of random bits.
inline std::vector<report::projection> projections(int most_random_bits) {
    std::vector<report::projection> result;
    for (const auto saturate :
         {report::saturation::none, report::saturation::finite, report::saturation::propagate}) {
        for (int round = 0; round < 9; ++round) {
            const auto mode = static_cast<report::rounding>(round);
            if (round < 6) {
                result.push_back({mode, saturate});
                continue;
            }
            for (int bits = 1; bits <= most_random_bits; bits += 2) {
                const std::uint64_t all = (std::uint64_t{1} << bits) - 1;
                for (const std::uint64_t random : {std::uint64_t{0}, all / 2 + 1, all - all / 5})
                    result.push_back({mode, saturate, bits, random});
            }
        }
    }
    return result;
}

struct tally {
    oracle::disagreements wrong;
    long compared = 0;

    template <class T>
    void compare(const char* name, T result, std::uint64_t expected, const report::projection& p,
                 std::initializer_list<std::uint64_t> codes) {
        ++compared;
        const auto code = oracle::code_of<T>(result);
        if (code == expected) return;
        const std::uint64_t x = *codes.begin();
        const std::uint64_t y = codes.size() > 1 ? codes.begin()[1] : 0;
        const std::uint64_t z = codes.size() > 2 ? codes.begin()[2] : 0;
        wrong.add(name, x, y, z, "round", static_cast<int>(p.round), "saturate", static_cast<int>(p.saturate),
                  p.bits, p.random, "gives", code, "instead of", expected);
    }
};

template <class R, class Visit>
void for_each_unary(Visit visit) {
    visit("convert", operations::convert<R>, operations::block_convert<R>);
    visit("abs", operations::abs<R>, operations::block_abs<R>);
    visit("negate", operations::negate<R>, operations::block_negate<R>);
    visit("sqrt", operations::sqrt<R>, operations::block_sqrt<R>);
    visit("recip", operations::recip<R>, operations::block_recip<R>);
    visit("rsqrt", operations::rsqrt<R>, operations::block_rsqrt<R>);
}
template <class R, class Visit>
void for_each_binary(Visit visit) {
    visit("copy_sign", operations::copy_sign<R>, operations::scaled_copy_sign<R>);
    visit("add", operations::add<R>, operations::scaled_add<R>);
    visit("subtract", operations::subtract<R>, operations::scaled_subtract<R>);
    visit("multiply", operations::multiply<R>, operations::scaled_multiply<R>);
    visit("divide", operations::divide<R>, operations::scaled_divide<R>);
    visit("hypot", operations::hypot<R>, operations::scaled_hypot<R>);
    visit("minimum", operations::minimum<R>, operations::scaled_minimum<R>);
    visit("maximum", operations::maximum<R>, operations::scaled_maximum<R>);
    visit("minimum_number", operations::minimum_number<R>, operations::scaled_minimum_number<R>);
    visit("maximum_number", operations::maximum_number<R>, operations::scaled_maximum_number<R>);
    visit("minimum_magnitude", operations::minimum_magnitude<R>, operations::scaled_minimum_magnitude<R>);
    visit("maximum_magnitude", operations::maximum_magnitude<R>, operations::scaled_maximum_magnitude<R>);
    visit("minimum_magnitude_number", operations::minimum_magnitude_number<R>,
          operations::scaled_minimum_magnitude_number<R>);
    visit("maximum_magnitude_number", operations::maximum_magnitude_number<R>,
          operations::scaled_maximum_magnitude_number<R>);
    visit("minimum_finite", operations::minimum_finite<R>, operations::scaled_minimum_finite<R>);
    visit("maximum_finite", operations::maximum_finite<R>, operations::scaled_maximum_finite<R>);
}
template <class R, class Visit>
void for_each_ternary(Visit visit) {
    visit("fma", operations::fma<R>);
    visit("faa", operations::faa<R>);
    visit("clamp", operations::clamp<R>);
}

/// Operations of one operand, for every `step`-th code.
template <class X, class R>
void compare_unary(tally& to, const std::vector<report::projection>& ways, std::uint64_t step = 1) {
    for_each_unary<R>([&](const char* name, auto function, auto) {
        const report::operation& op = report::named(name);
        for (std::uint64_t i = 0; i < format_of<X>.codes(); i += step) {
            const report::real x = decode(format_of<X>, i);
            const report::real exact = apply(op, &x);
            for (const report::projection& p : ways) {
                to.compare(name, function(oracle::value_of<X>(i), library_projection(p)),
                           project(format_of<R>, p, exact), p, {i});
            }
        }
    });
}

/// Operations of two operands, for every `step`-th pair of codes.
template <class X, class Y, class R>
void compare_binary(tally& to, const std::vector<report::projection>& ways, std::uint64_t step = 1) {
    for_each_binary<R>([&](const char* name, auto function, auto) {
        const report::operation& op = report::named(name);
        const std::uint64_t count = format_of<X>.codes() * format_of<Y>.codes();
        for (std::uint64_t n = 0; n < count; n += step) {
            const std::uint64_t i = n / format_of<Y>.codes();
            const std::uint64_t j = n % format_of<Y>.codes();
            const report::real operands[]{decode(format_of<X>, i), decode(format_of<Y>, j)};
            const report::real exact = apply(op, operands);
            for (const report::projection& p : ways) {
                to.compare(name,
                           function(oracle::value_of<X>(i), oracle::value_of<Y>(j), library_projection(p)),
                           project(format_of<R>, p, exact), p, {i, j});
            }
        }
    });
}

/// Operations of three operands, for every `step`-th triple of codes.
template <class X, class Y, class Z, class R>
void compare_ternary(tally& to, const std::vector<report::projection>& ways, std::uint64_t step = 1) {
    for_each_ternary<R>([&](const char* name, auto function) {
        const report::operation& op = report::named(name);
        const std::uint64_t of_yz = format_of<Y>.codes() * format_of<Z>.codes();
        for (std::uint64_t n = 0; n < format_of<X>.codes() * of_yz; n += step) {
            const std::uint64_t i = n / of_yz;
            const std::uint64_t j = n % of_yz / format_of<Z>.codes();
            const std::uint64_t k = n % format_of<Z>.codes();
            const report::real operands[]{decode(format_of<X>, i), decode(format_of<Y>, j),
                                          decode(format_of<Z>, k)};
            const report::real exact = apply(op, operands);
            for (const report::projection& p : ways) {
                to.compare(name,
                           function(oracle::value_of<X>(i), oracle::value_of<Y>(j), oracle::value_of<Z>(k),
                                    library_projection(p)),
                           project(format_of<R>, p, exact), p, {i, j, k});
            }
        }
    });
}

/// The functions of <mp/math.hpp> and the operators, which stay in one format.
template <class T>
void compare_functions(tally& to, const std::vector<report::projection>& ways, std::uint64_t step = 1) {
    const report::format& f = format_of<T>;
    for (std::uint64_t n = 0; n < f.codes() * f.codes(); n += step) {
        const std::uint64_t i = n / f.codes();
        const std::uint64_t j = n % f.codes();
        const T x = oracle::value_of<T>(i);
        const T y = oracle::value_of<T>(j);
        const report::real operands[]{decode(f, i), decode(f, j), decode(f, (i * 7 + j) % f.codes())};
        const T z = oracle::value_of<T>((i * 7 + j) % f.codes());
        for (const report::projection& p : ways) {
            const mp::projection way = library_projection(p);
            const auto compare = [&](const char* name, T result) {
                to.compare(name, result, project(f, p, apply(report::named(name), operands)), p, {i, j});
            };
            compare("add", mp::add(x, y, way));
            compare("subtract", mp::subtract(x, y, way));
            compare("multiply", mp::multiply(x, y, way));
            compare("divide", mp::divide(x, y, way));
            compare("fma", mp::fma(x, y, z, way));
            compare("hypot", mp::hypot(x, y, way));
            if (j == 0) {
                compare("sqrt", mp::sqrt(x, way));
                compare("rsqrt", mp::rsqrt(x, way));
            }
            if (p.round != report::rounding::nearest_even || p.saturate != report::saturation::none) continue;
            compare("copy_sign", mp::copysign(x, y));
            compare("minimum", mp::minimum(x, y));
            compare("maximum", mp::maximum(x, y));
            compare("minimum_number", mp::minimum_number(x, y));
            compare("maximum_magnitude", mp::maximum_magnitude(x, y));
            compare("minimum_magnitude_number", mp::minimum_magnitude_number(x, y));
            compare("divide", x / y);
            compare("negate", -x);
            compare("abs", mp::fabs(x));
        }
    }
}

/// Comparisons of all pairs, and the classes of all numbers.
template <class X, class Y>
void compare_predicates(tally& to) {
    for (std::uint64_t i = 0; i < format_of<X>.codes(); ++i) {
        const report::real a = decode(format_of<X>, i);
        const X x = oracle::value_of<X>(i);
        const bool number = a.kind == 'F';
        const bool zero = report::is_zero(a);
        const bool negative = a.kind == '-' || (number && a.negative && !zero);
        const std::uint64_t normal = std::uint64_t{1} << (format_of<X>.p - 1);
        const bool is_normal =
            number && i % (format_of<X>.is_signed ? format_of<X>.codes() / 2 : ~i) >= normal;
        const bool got[]{operations::is_zero(x),      operations::is_one(x),    operations::is_nan(x),
                         operations::is_infinite(x),  operations::is_finite(x), operations::is_sign_minus(x),
                         operations::is_subnormal(x), operations::is_normal(x)};
        const bool one = number && !a.negative && report::compare(a, report::natural(1), 0) == 0;
        const bool expected[]{zero,
                              one,
                              a.kind == 'N',
                              a.kind == '+' || a.kind == '-',
                              number,
                              negative,
                              number && !zero && !is_normal,
                              is_normal};
        using kind = operations::number_class;
        const auto of_class = a.kind == 'N'   ? kind::nan
                              : a.kind == '+' ? kind::positive_infinity
                              : a.kind == '-' ? kind::negative_infinity
                              : zero          ? kind::zero
                              : is_normal     ? (negative ? kind::negative_normal : kind::positive_normal)
                                          : (negative ? kind::negative_subnormal : kind::positive_subnormal);
        ++to.compared;
        if (!std::equal(got, got + 8, expected) || operations::classify(x) != of_class)
            to.wrong.add("class", i);
        for (std::uint64_t j = 0; j < format_of<Y>.codes(); ++j) {
            const report::real b = decode(format_of<Y>, j);
            const Y y = oracle::value_of<Y>(j);
            const bool ordered = a.kind != 'N' && b.kind != 'N';
            const int order = ordered ? report::order(a, b) : 2;
            const bool compared[]{operations::compare_less(x, y),    operations::compare_less_equal(x, y),
                                  operations::compare_equal(x, y),   operations::compare_greater_equal(x, y),
                                  operations::compare_greater(x, y), operations::total_order(x, y)};
            const bool right[]{order < 0,
                               order <= 0,
                               order == 0,
                               ordered && order >= 0,
                               ordered && order > 0,
                               a.kind == 'N' || (ordered && order <= 0)};
            ++to.compared;
            if (!std::equal(compared, compared + 6, right)) to.wrong.add("order", i, j);
        }
    }
}

}  // namespace p3109_cases
