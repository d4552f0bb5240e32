// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "oracle/exact.hpp"

/// A transcription of the IEEE P3109 interim report 4.0: sections 4.7 (decoding, projection), 4.10 to 4.11
/// (arithmetic and extrema, as tables of patterns in the report's order) and 5 (blocks). Numbers are
/// fractions of integers of any size, or square roots of such. It shares no code with the library.
namespace report {

using oracle::natural;

enum class rounding { nearest_even, nearest_away, positive, negative, zero, odd, stoch_a, stoch_b, stoch_c };
enum class saturation { none, finite, propagate };

struct projection {
    rounding round = rounding::nearest_even;
    saturation saturate = saturation::none;
    int bits = 0;              ///< N of the stochastic modes
    std::uint64_t random = 0;  ///< R
};

/// Binary{K, P, signedness, domain}, or an external format in the manner of IEEE 754.
struct format {
    int k;
    int p;
    bool is_signed = true;
    bool extended = true;
    int external_bias = 0;

    int bias() const {
        if (external_bias != 0) return external_bias;
        return is_signed ? 1 << (k - p - 1) : 1 << (k - p);
    }
    std::uint64_t codes() const { return std::uint64_t{1} << k; }
};
inline constexpr format binary16{16, 11, true, true, 15};
inline constexpr format binary32{32, 24, true, true, 127};
inline constexpr format bfloat16{16, 8, true, true, 127};

/// A closed extended real: 'N' for NaN, '+' and '-' for infinities, 'F' for the finite number with this sign
/// and magnitude (numerator / denominator 2^exponent), or the square root of that.
struct real {
    char kind = 'F';
    bool negative = false;
    natural numerator{};
    int exponent = 0;
    natural denominator{1};
    bool root = false;
};

inline real special(char kind) {
    real x;
    x.kind = kind;
    return x;
}
inline real dyadic(bool negative, std::uint64_t significand, int exponent) {
    real x;
    x.negative = negative;
    x.numerator = natural(significand);
    x.exponent = exponent;
    return x;
}
inline bool is_zero(const real& x) {
    return x.kind == 'F' && x.numerator.is_zero();
}

/// The order of a 2^e and b 2^f.
inline int order(const natural& a, int e, const natural& b, int f) {
    const auto result = oracle::compare({a, e}, {b, f});
    return result < 0 ? -1 : result > 0 ? 1 : 0;
}
/// The order of |x| and m 2^e.
inline int compare(const real& x, const natural& m, int e) {
    if (x.root) return order(x.numerator, x.exponent, x.denominator * m * m, 2 * e);
    return order(x.numerator, x.exponent, x.denominator * m, e);
}

/// floor(log2 |x|)
inline int floor_log2(const real& x) {
    int guess = x.numerator.bit_length() + x.exponent - x.denominator.bit_length();
    if (x.root) guess = guess >> 1;
    while (compare(x, natural(1), guess) < 0) --guess;
    while (compare(x, natural(1), guess + 1) >= 0) ++guess;
    return guess;
}

/// The largest integer m < 2^bits with m 2^e <= |x| when added to base 2^bits 2^e.
inline std::uint64_t digits(const real& x, std::uint64_t base, int bits, int e) {
    std::uint64_t m = base << bits;
    for (int bit = bits - 1; bit >= 0; --bit) {
        const std::uint64_t candidate = m | std::uint64_t{1} << bit;
        if (compare(x, natural(candidate), e) >= 0) m = candidate;
    }
    return m - (base << bits);
}

// 4.7.2

inline real decode_external(const format& f, std::uint64_t code) {
    const std::uint64_t t = code & ((std::uint64_t{1} << (f.p - 1)) - 1);
    const auto field = static_cast<int>(code >> (f.p - 1) & ((std::uint64_t{1} << (f.k - f.p)) - 1));
    const bool negative = code >> (f.k - 1) != 0;
    if (field == (1 << (f.k - f.p)) - 1) return special(t != 0 ? 'N' : negative ? '-' : '+');
    if (field == 0) return dyadic(negative && t != 0, t, 2 - f.p - f.bias());
    return dyadic(negative, t | std::uint64_t{1} << (f.p - 1), field + 1 - f.p - f.bias());
}

inline real decode(const format& f, std::uint64_t x) {
    if (f.external_bias != 0) return decode_external(f, x);
    const std::uint64_t half = f.codes() / 2;
    if (f.is_signed && x == half) return special('N');
    if (!f.is_signed && x == f.codes() - 1) return special('N');
    if (f.is_signed && f.extended && x == half - 1) return special('+');
    if (f.is_signed && f.extended && x == f.codes() - 1) return special('-');
    if (!f.is_signed && f.extended && x == f.codes() - 2) return special('+');
    if (f.is_signed && x > half) {
        real result = decode(f, x - half);
        result.negative = true;
        return result;
    }
    const std::uint64_t one = std::uint64_t{1} << (f.p - 1);
    const std::uint64_t t = x % one;
    const auto biased = static_cast<int>(x / one);
    if (biased == 0) return dyadic(false, t, 1 - f.p + 1 - f.bias());
    return dyadic(false, one + t, 1 - f.p + biased - f.bias());
}

// 4.14

inline std::uint64_t max_finite(const format& f) {
    if (f.external_bias != 0) return (((std::uint64_t{1} << (f.k - f.p)) - 1) << (f.p - 1)) - 1;
    const std::uint64_t above = f.is_signed ? f.codes() / 2 : f.codes() - 1;
    return above - 1 - (f.extended ? 1 : 0);
}

// 4.7.4

inline real round_to_precision(int p, int b, const projection& how, const real& x) {
    if (x.kind != 'F' || is_zero(x)) return x;
    const int q = std::max(floor_log2(x), 1 - b) - p + 1;
    const std::uint64_t floor = digits(x, 0, p, q);
    const int n = how.bits;
    const bool exact = compare(x, natural(floor), q) == 0;
    const int to_half = compare(x, natural(2 * floor + 1), q - 1);
    const bool code_is_even = p > 1 ? floor % 2 == 0 : floor == 0 || (q + b) % 2 == 0;
    bool away = false;
    switch (how.round) {
        case rounding::zero:
            break;
        case rounding::positive:
            away = !exact && !x.negative;
            break;
        case rounding::negative:
            away = !exact && x.negative;
            break;
        case rounding::nearest_away:
            away = to_half >= 0;
            break;
        case rounding::nearest_even:
            away = to_half > 0 || (to_half == 0 && !code_is_even);
            break;
        case rounding::odd:
            away = !exact && code_is_even;
            break;
        case rounding::stoch_a:
            away = digits(x, floor, n, q - n) + how.random >= std::uint64_t{1} << n;
            break;
        case rounding::stoch_b:
            away = digits(x, floor, n + 1, q - n - 1) + 2 * how.random + 1 >= std::uint64_t{1} << (n + 1);
            break;
        case rounding::stoch_c: {
            const std::uint64_t whole = digits(x, floor, n, q - n);
            const int to_middle = compare(x, natural(2 * ((floor << n) + whole) + 1), q - n - 1);
            const std::uint64_t rnite = whole + (to_middle > 0 || (to_middle == 0 && whole % 2 == 1) ? 1 : 0);
            away = rnite + how.random >= std::uint64_t{1} << n;
            break;
        }
    }
    return dyadic(x.negative, floor + (away ? 1 : 0), q);
}

/// The order of two dyadic numbers, or infinities.
inline int order(const real& x, const real& y) {
    const auto rank = [](const real& z) { return z.kind == '-' ? -1 : z.kind == '+' ? 1 : 0; };
    if (rank(x) != 0 || rank(y) != 0) return rank(x) < rank(y) ? -1 : rank(x) > rank(y) ? 1 : 0;
    const bool below_x = x.negative && !is_zero(x);
    const bool below_y = y.negative && !is_zero(y);
    if (below_x != below_y) return below_x ? -1 : 1;
    const int magnitudes = order(x.numerator, x.exponent, y.numerator, y.exponent);
    return below_x ? -magnitudes : magnitudes;
}

// 4.7.5

inline real saturate(const format& f, const projection& how, const real& x) {
    const real hi = decode(f, max_finite(f));
    real lo = f.is_signed ? hi : real{};
    lo.negative = true;
    const bool plus = x.kind == '+';
    const bool minus = x.kind == '-';
    const auto is = [&](rounding a, rounding b) { return how.round == a || how.round == b; };
    if (x.kind == 'N') return x;
    if (x.kind == 'F' && order(lo, x) <= 0 && order(x, hi) <= 0) return x;
    const bool below = x.kind == 'F' && order(x, lo) < 0;
    const bool above = x.kind == 'F' && order(x, hi) > 0;
    if (how.saturate == saturation::finite) return plus || above ? hi : lo;
    if (how.saturate == saturation::propagate) {
        if (plus) return f.extended ? x : hi;
        if (minus) return f.is_signed && f.extended ? x : lo;
        return below ? lo : hi;
    }
    if (plus) return f.extended ? x : hi;
    if (minus) return f.is_signed && f.extended ? x : !f.is_signed ? special('N') : lo;
    if (how.round == rounding::odd && !f.is_signed && f.extended && above) return hi;
    if (is(rounding::zero, rounding::negative) && above) return hi;
    if (is(rounding::zero, rounding::positive) && below) return lo;
    if (f.is_signed && f.extended && below) return special('-');
    if (!f.is_signed && below) return special('N');
    if (below) return lo;
    return f.extended ? special('+') : hi;
}

// 4.7.6

inline std::uint64_t encode(const format& f, const real& x) {
    const std::uint64_t half = f.codes() / 2;
    if (f.external_bias != 0) {
        const std::uint64_t infinity = max_finite(f) + 1;
        if (x.kind == 'N') return infinity | std::uint64_t{1} << (f.p - 2);
        if (x.kind != 'F') return infinity | (x.kind == '-' ? half : 0);
    }
    if (x.kind == 'N') return f.is_signed ? half : f.codes() - 1;
    if (x.kind == '+') return f.is_signed ? half - 1 : f.codes() - 2;
    if (x.kind == '-') return f.codes() - 1;
    if (is_zero(x)) return 0;
    const int e = std::max(floor_log2(x), 1 - f.bias());
    const std::uint64_t s = digits(x, 0, f.p, e - f.p + 1);
    const std::uint64_t one = std::uint64_t{1} << (f.p - 1);
    const std::uint64_t r = s < one ? s : s % one + static_cast<std::uint64_t>(e + f.bias()) * one;
    return r + (x.negative ? half : 0);
}

// 4.7.3

inline std::uint64_t project(const format& f, const projection& how, const real& x) {
    if (x.kind == 'N') return encode(f, x);
    return encode(f, saturate(f, how, round_to_precision(f.p, f.bias(), how, x)));
}

// 4.10: finite numbers, which are dyadic unless a block's scale factor has divided them

inline real negated(real x) {
    if (x.kind == '+' || x.kind == '-') x.kind = x.kind == '+' ? '-' : '+';
    x.negative = !x.negative && !is_zero(x);
    return x;
}
inline real magnitude(real x) {
    if (x.kind == '-') x.kind = '+';
    x.negative = false;
    return x;
}
inline real sum(const real& x, const real& y) {
    const int e = std::min(x.exponent, y.exponent);
    const natural a = x.numerator << (x.exponent - e);
    const natural b = y.numerator << (y.exponent - e);
    real result;
    result.exponent = e;
    if (x.negative == y.negative) {
        result.numerator = a + b;
        result.negative = x.negative;
    } else {
        result.numerator = a < b ? b - a : a - b;
        result.negative = a < b ? y.negative : x.negative;
    }
    return result;
}
inline real product(const real& x, const real& y) {
    real result;
    result.negative = x.negative != y.negative;
    result.numerator = x.numerator * y.numerator;
    result.exponent = x.exponent + y.exponent;
    return result;
}
/// Of any finite number and a dyadic one.
inline real quotient(const real& x, const real& y) {
    real result = x;
    result.negative = x.negative != y.negative;
    const int twice = x.root ? 2 : 1;
    result.exponent -= twice * y.exponent;
    for (int i = 0; i < twice; ++i) result.denominator = result.denominator * y.numerator;
    return result;
}
inline real root(real x) {
    x.root = true;
    return x;
}

/// A row of the report: what the operands are, and the result.
struct row {
    /// A character for each: N NaN, + and - infinities, i either of them, p n z a finite number above, below
    /// and equal to zero, g a finite number from zero on, F any finite number, * anything.
    const char* operands;
    /// N + - 0 1; x, y or w, the first, second or third operand; a its magnitude, b minus that; = the
    /// formula.
    char result;
};

inline bool matches(char pattern, const real& x) {
    const bool finite = x.kind == 'F';
    switch (pattern) {
        case '*':
            return true;
        case 'i':
            return x.kind == '+' || x.kind == '-';
        case 'p':
            return finite && !x.negative && !is_zero(x);
        case 'n':
            return finite && x.negative && !is_zero(x);
        case 'z':
            return is_zero(x);
        case 'g':
            return finite && (!x.negative || is_zero(x));
        default:
            return x.kind == pattern;
    }
}

using rows = std::vector<row>;
using formula = real (*)(const real* operands);

/// The result of the first row that matches.
inline real apply(const rows& table, formula finite, const real* operands) {
    for (const row& r : table) {
        bool all = true;
        for (int i = 0; r.operands[i] != 0; ++i) all = all && matches(r.operands[i], operands[i]);
        if (!all) continue;
        switch (r.result) {
            case '0':
                return real{};
            case '1':
                return dyadic(false, 1, 0);
            case 'x':
            case 'y':
            case 'w':
                return operands[r.result == 'x' ? 0 : r.result == 'y' ? 1 : 2];
            case 'a':
                return magnitude(operands[0]);
            case 'b':
                return negated(magnitude(operands[0]));
            case '=':
                return finite(operands);
            default:
                return special(r.result);
        }
    }
    return special('?');
}

struct operation {
    const char* name;
    int arity;
    rows table;
    formula finite;
};

inline real smaller(const real* v) {
    return order(v[0], v[1]) < 0 ? v[0] : v[1];
}
inline real larger(const real* v) {
    return order(v[0], v[1]) < 0 ? v[1] : v[0];
}
inline real smaller_magnitude(const real* v) {
    const int by_magnitude = order(magnitude(v[0]), magnitude(v[1]));
    return by_magnitude < 0 ? v[0] : by_magnitude > 0 ? v[1] : smaller(v);
}
inline real larger_magnitude(const real* v) {
    const int by_magnitude = order(magnitude(v[0]), magnitude(v[1]));
    return by_magnitude > 0 ? v[0] : by_magnitude < 0 ? v[1] : larger(v);
}

inline const rows minimum_rows{{"N*", 'N'}, {"*N", 'N'}, {"++", '+'}, {"--", '-'}, {"+-", '-'}, {"-+", '-'},
                               {"+*", 'y'}, {"*+", 'x'}, {"-*", '-'}, {"*-", '-'}, {"**", '='}};
inline const rows maximum_rows{{"N*", 'N'}, {"*N", 'N'}, {"++", '+'}, {"--", '-'}, {"+-", '+'}, {"-+", '+'},
                               {"+*", '+'}, {"*+", '+'}, {"-*", 'y'}, {"*-", 'x'}, {"**", '='}};
inline const rows minimum_magnitude_rows{{"N*", 'N'}, {"*N", 'N'}, {"++", '+'}, {"--", '-'}, {"+-", '-'},
                                         {"-+", '-'}, {"i*", 'y'}, {"*i", 'x'}, {"**", '='}};
inline const rows maximum_magnitude_rows{{"N*", 'N'}, {"*N", 'N'}, {"+*", '+'}, {"*+", '+'},
                                         {"-*", '-'}, {"*-", '-'}, {"**", '='}};
/// The variants for numbers: NaN beside a number is ignored first.
inline rows of_numbers(const rows& table) {
    rows result{{"NN", 'N'}, {"*N", 'x'}, {"N*", 'y'}};
    result.insert(result.end(), table.begin(), table.end());
    return result;
}

inline const std::vector<operation> operations{
    {"convert", 1, {{"*", 'x'}}, nullptr},
    {"abs", 1, {{"N", 'N'}, {"-", '+'}, {"+", '+'}, {"*", 'a'}}, nullptr},
    {"negate",
     1,
     {{"N", 'N'}, {"-", '+'}, {"+", '-'}, {"*", '='}},
     [](const real* v) { return negated(v[0]); }},
    {"sqrt",
     1,
     {{"N", 'N'}, {"-", 'N'}, {"n", 'N'}, {"+", '+'}, {"*", '='}},
     [](const real* v) { return root(v[0]); }},
    {"recip",
     1,
     {{"N", 'N'}, {"z", 'N'}, {"i", '0'}, {"*", '='}},
     [](const real* v) { return quotient(dyadic(false, 1, 0), v[0]); }},
    {"rsqrt",
     1,
     {{"N", 'N'}, {"-", 'N'}, {"n", 'N'}, {"z", 'N'}, {"+", '0'}, {"*", '='}},
     [](const real* v) { return root(quotient(dyadic(false, 1, 0), v[0])); }},
    {"copy_sign",
     2,
     {{"N*", 'N'},
      {"*N", 'N'},
      {"i+", '+'},
      {"i-", '-'},
      {"ig", '+'},
      {"in", '-'},
      {"*+", 'a'},
      {"*-", 'b'},
      {"*g", 'a'},
      {"*n", 'b'}},
     nullptr},
    {"add",
     2,
     {{"N*", 'N'},
      {"*N", 'N'},
      {"+-", 'N'},
      {"-+", 'N'},
      {"+*", '+'},
      {"*+", '+'},
      {"-*", '-'},
      {"*-", '-'},
      {"**", '='}},
     [](const real* v) { return sum(v[0], v[1]); }},
    {"subtract",
     2,
     {{"N*", 'N'},
      {"*N", 'N'},
      {"++", 'N'},
      {"--", 'N'},
      {"*+", '-'},
      {"+*", '+'},
      {"*-", '+'},
      {"-*", '-'},
      {"**", '='}},
     [](const real* v) { return sum(v[0], negated(v[1])); }},
    {"multiply",
     2,
     {{"N*", 'N'},
      {"*N", 'N'},
      {"++", '+'},
      {"--", '+'},
      {"-+", '-'},
      {"+-", '-'},
      {"+p", '+'},
      {"+z", 'N'},
      {"+n", '-'},
      {"p+", '+'},
      {"z+", 'N'},
      {"n+", '-'},
      {"-p", '-'},
      {"-z", 'N'},
      {"-n", '+'},
      {"p-", '-'},
      {"z-", 'N'},
      {"n-", '+'},
      {"**", '='}},
     [](const real* v) { return product(v[0], v[1]); }},
    {"divide",
     2,
     {{"N*", 'N'},
      {"*N", 'N'},
      {"+i", 'N'},
      {"-i", 'N'},
      {"*z", 'N'},
      {"+p", '+'},
      {"+n", '-'},
      {"-p", '-'},
      {"-n", '+'},
      {"*i", '0'},
      {"**", '='}},
     [](const real* v) { return quotient(v[0], v[1]); }},
    {"hypot",
     2,
     {{"N*", 'N'}, {"*N", 'N'}, {"*i", '+'}, {"i*", '+'}, {"**", '='}},
     [](const real* v) { return root(sum(product(v[0], v[0]), product(v[1], v[1]))); }},
    {"minimum", 2, minimum_rows, smaller},
    {"maximum", 2, maximum_rows, larger},
    {"minimum_number", 2, of_numbers(minimum_rows), smaller},
    {"maximum_number", 2, of_numbers(maximum_rows), larger},
    {"minimum_magnitude", 2, minimum_magnitude_rows, smaller_magnitude},
    {"maximum_magnitude", 2, maximum_magnitude_rows, larger_magnitude},
    {"minimum_magnitude_number", 2, of_numbers(minimum_magnitude_rows), smaller_magnitude},
    {"maximum_magnitude_number", 2, of_numbers(maximum_magnitude_rows), larger_magnitude},
    {"minimum_finite",
     2,
     {{"NN", 'N'},
      {"N*", 'y'},
      {"*N", 'x'},
      {"++", '+'},
      {"--", '-'},
      {"+-", '-'},
      {"-+", '-'},
      {"+*", 'y'},
      {"*+", 'x'},
      {"-*", 'y'},
      {"*-", 'x'},
      {"**", '='}},
     smaller},
    {"maximum_finite",
     2,
     {{"NN", 'N'},
      {"N*", 'y'},
      {"*N", 'x'},
      {"++", '+'},
      {"--", '-'},
      {"+-", '+'},
      {"-+", '+'},
      {"+*", 'y'},
      {"*+", 'x'},
      {"-*", 'y'},
      {"*-", 'x'},
      {"**", '='}},
     larger},
    {"fma",
     3,
     {{"N**", 'N'}, {"*N*", 'N'}, {"**N", 'N'}, {"zi*", 'N'}, {"iz*", 'N'}, {"n++", 'N'}, {"p-+", 'N'},
      {"+n+", 'N'}, {"-p+", 'N'}, {"n--", 'N'}, {"p+-", 'N'}, {"-n-", 'N'}, {"+p-", 'N'}, {"-++", 'N'},
      {"+-+", 'N'}, {"++-", 'N'}, {"---", 'N'}, {"++*", '+'}, {"--*", '+'}, {"+-*", '-'}, {"-+*", '-'},
      {"**+", '+'}, {"**-", '-'}, {"p-*", '-'}, {"n-*", '+'}, {"p+*", '+'}, {"n+*", '-'}, {"+p*", '+'},
      {"+n*", '-'}, {"-p*", '-'}, {"-n*", '+'}, {"***", '='}},
     [](const real* v) { return sum(product(v[0], v[1]), v[2]); }},
    {"faa",
     3,
     {{"N**", 'N'},
      {"*N*", 'N'},
      {"**N", 'N'},
      {"+-*", 'N'},
      {"-+*", 'N'},
      {"+*-", 'N'},
      {"-*+", 'N'},
      {"*+-", 'N'},
      {"*-+", 'N'},
      {"+**", '+'},
      {"*+*", '+'},
      {"**+", '+'},
      {"-**", '-'},
      {"*-*", '-'},
      {"**-", '-'},
      {"***", '='}},
     [](const real* v) { return sum(sum(v[0], v[1]), v[2]); }},
    {"clamp", 3, {{"N**", 'N'}, {"*N*", 'N'}, {"**N", 'N'}, {"***", '='}}, [](const real* v) {
         const bool infinite_lo = v[1].kind != 'F';
         const bool infinite_hi = v[2].kind != 'F';
         if (order(v[1], v[2]) > 0) return special('N');
         if (infinite_lo && infinite_hi && v[1].kind == v[2].kind) return v[1];
         if (v[2].kind == '-' || v[1].kind == '+') return special('N');
         if (v[0].kind == '+') return v[2];
         if (v[0].kind == '-') return v[1];
         return order(v[0], v[1]) <= 0 ? v[1] : order(v[0], v[2]) >= 0 ? v[2] : v[0];
     }}};

inline real apply(const operation& op, const real* operands) {
    return apply(op.table, op.finite, operands);
}
inline const operation& named(const char* name) {
    for (const operation& op : operations) {
        if (std::string(op.name) == name) return op;
    }
    return operations.front();
}

// 5.1.2

inline std::uint64_t project_scaled(const format& f, const projection& how, const real& scale,
                                    const real& x) {
    if (scale.kind == 'N' || x.kind == 'N') return project(f, how, special('N'));
    if (is_zero(scale)) return project(f, how, real{});
    if (scale.kind != 'F') {
        const bool negative = (x.kind == '-' || (x.kind == 'F' && x.negative)) != (scale.kind == '-');
        return project(f, how, is_zero(x) ? real{} : dyadic(negative, 1, 0));
    }
    if (x.kind == 'F') return project(f, how, quotient(x, scale));
    const real both[]{x, scale};
    return project(f, how, apply(named("divide"), both));
}

}  // namespace report
