// SPDX-License-Identifier: MIT
/// \file
/// Formats that are chosen when the program runs, with double to carry their numbers; the one rounding into
/// them, and + - * / fma and sqrt of doubles, rounded once: by integers.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/exact.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>
#include <mp/numbers/format/named_formats.hpp>
#include <mp/numbers/format/operations.hpp>

#include <cstdint>
#include <string_view>

namespace mp {

/// A binary floating-point format and how values get into it: all that analysts vary. Its numbers are doubles, so it has
/// at most the precision and range of double.
///
///     constexpr mp::runtime_format half{.precision = 11, .emin = -14, .emax = 15};
///     auto up = half;
///     up.round = mp::rounding::upward;
struct runtime_format {
    int precision = 53;      ///< bits of a significand, the leading one among them: 1 to 53
    int emin = -1022;        ///< exponent of the smallest normal number, 2^emin
    int emax = 1023;         ///< exponent of the largest number, (2 - 2^(1 - precision)) 2^emax
    bool subnormals = true;  ///< whether there is anything between 0 and 2^emin
    saturation saturate = saturation::none;
    rounding round = rounding::nearest_even;
    int random_bits = 32;  ///< that stochastic rounding compares with; at most 62 - precision

    friend constexpr bool operator==(const runtime_format&, const runtime_format&) = default;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// A runtime_format as rounding wants it.
struct runtime_rounding {
    int precision = 53;
    int emin = -1022;
    int emax = 1023;
    int quantum = -1074;  ///< exponent of the last place below 2^(emin + 1)
    bool subnormals = true;
    projection project;
    std::uint64_t max_code = 0;  ///< of the largest number, as a double
    std::uint64_t overflow_above =
        0;  ///< what becomes of finite values beyond it, positive and negative, without the sign
    std::uint64_t overflow_below = 0;
    std::uint64_t infinity = 0;  ///< what becomes of infinity
};

/// \throws argument_error  there is no such format in double, or too few of double's bits are left to round by
inline runtime_rounding checked_rounding(std::string_view function, const runtime_format& f) {
    if (f.precision < 1 || f.precision > 53) {
        throw_argument(function, "precision", f.precision, "must be 1 to 53, which double carries");
    }
    if (f.emin - (f.subnormals ? f.precision - 1 : 0) < -1074 || f.emin < -1022) {
        throw_argument(function, "emin", f.emin,
                       "must be at least -1022, and the smallest number be one of double");
    }
    if (f.emax < f.emin || f.emax > 1023) {
        throw_argument(function, "emax", f.emax, "must be at least emin and at most 1023");
    }
    const bool is_random = is_stochastic(f.round);
    if (is_random && (f.random_bits < 1 || f.random_bits > 32)) {
        throw_argument(function, "random_bits", f.random_bits, "must be 1 to 32");
    }
    // Exact results are known to 64 bits and whether there is more.
    if (is_random && f.random_bits > 62 - f.precision) {
        throw_argument(function, "precision", f.precision,
                       "must be at most 62 - random_bits, or a result would be rounded twice");
    }
    runtime_rounding r;
    r.precision = f.precision;
    r.emin = f.emin;
    r.emax = f.emax;
    r.quantum = f.subnormals ? f.emin - (f.precision - 1) : f.emin;
    r.subnormals = f.subnormals;
    r.project.round = f.round;
    r.project.saturate = f.saturate;
    r.project.random_bits = static_cast<unsigned char>(is_random ? f.random_bits : 0);
    const std::uint64_t fraction = ((std::uint64_t{1} << (f.precision - 1)) - 1) << (53 - f.precision);
    constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
    r.max_code = (static_cast<std::uint64_t>(f.emax + 1023) << 52) | fraction;
    const bool clamps = f.saturate != saturation::none;
    const bool inward = f.round == rounding::toward_zero || f.round == rounding::to_odd;
    r.overflow_above = clamps || inward || f.round == rounding::downward ? r.max_code : infinity;
    r.overflow_below = clamps || inward || f.round == rounding::upward ? r.max_code : infinity;
    r.infinity = f.saturate == saturation::finite ? r.max_code : infinity;
    return r;
}

constexpr double with_sign(std::uint64_t magnitude, bool negative) noexcept {
    return bit_cast<double>(magnitude | (negative ? std::uint64_t{1} << 63 : 0));
}

/// A number that is no exact_value: a zero, an infinity or NaN, as the format has it.
inline double special_result(double x, const runtime_rounding& r) noexcept {
    const auto bits = bit_cast<std::uint64_t>(x);
    constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;
    return bits << 1 == infinity << 1 ? with_sign(r.infinity, bits >> 63 != 0) : x;
}

/// Rounds an exact non-zero value once. It has 64 bits where it is sticky, as exact results of doubles have (or 62 and
/// more), which are 2 more than 53 and the random bits.
///
/// Below 2^emin of a format without subnormals the neighbours are 0, which counts as even, and 2^emin, as odd.
inline double round_exactly(const exact_value& x, const runtime_rounding& r, std::uint32_t random) noexcept {
    const int exponent = x.exponent + 63 - leading_zeros(x.significand);
    const double too_large = with_sign(x.negative ? r.overflow_below : r.overflow_above, x.negative);
    if (exponent > r.emax) return too_large;
    const bool below = exponent < r.emin;
    const int last = below ? r.quantum : exponent - (r.precision - 1);
    const split_value split = split_at(x, last);
    // The last bit of the code, which is that of the significand unless there is one bit only.
    const int binade = below ? 0 : exponent - r.emin;
    const bool odd = ((split.truncated + (r.precision == 1 ? static_cast<unsigned>(binade) : 0U)) & 1) != 0;
    projection p = r.project;
    p.random = random;
    const std::uint64_t kept = split.truncated + (rounds_up(split, x.negative, odd, p) ? 1 : 0);
    if (kept == 0) return with_sign(0, x.negative);
    const std::uint64_t code = round_and_pack<formats::binary64>({false, last, kept}, projection{});
    return code > r.max_code ? too_large : with_sign(code, x.negative);
}

/// A double rounded once.
inline double round_double(double x, const runtime_rounding& r, std::uint32_t random) noexcept {
    const auto bits = bit_cast<std::uint64_t>(x);
    if (categorize<formats::binary64>(bits) != category::finite) return special_result(x, r);
    return round_exactly(unpack<formats::binary64>(bits), r, random);
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The format of a type: half, bfloat16, float ... Formats whose largest number is not (2 - 2^(1 - precision)) 2^emax, such
/// as float8_e4m3fn, have none.
template <number Value>
[[nodiscard]] constexpr runtime_format runtime_format_of() {
    using layout = layout_of<detail::format_of_t<Value>>;
    static_assert(layout::has_infinity && layout::has_signed_zero && layout::has_zero,
                  "mp::runtime_format_of: a format as IEEE's are, with infinities");
    runtime_format result;
    result.precision = layout::precision;
    result.emin = layout::min_exponent;
    result.emax = layout::max_exponent;
    return result;
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Whether all are finite and no zeros; then they have exact values.
template <class... Number>
bool all_finite_nonzero(Number... x) noexcept {
    return ((categorize<formats::binary64>(bit_cast<std::uint64_t>(x)) == category::finite) && ...);
}
inline exact_value exact_double(double x) noexcept {
    return unpack<formats::binary64>(bit_cast<std::uint64_t>(x));
}
inline bool is_infinite_or_nan(double x) noexcept {
    return (bit_cast<std::uint64_t>(x) << 1) >= (std::uint64_t{0x7ff} << 53);
}
/// A number of the same kind: what is neither zero, infinite nor NaN is 1 or -1, so that no modes of the caller, who may
/// take subnormal numbers for zeros, have a say in operations whose results depend on kinds and signs alone.
inline double kind_of(double x) noexcept {
    return all_finite_nonzero(x)
               ? with_sign(bit_cast<std::uint64_t>(1.0), bit_cast<std::uint64_t>(x) >> 63 != 0)
               : x;
}
inline double negative(double x) noexcept {
    return bit_cast<double>(bit_cast<std::uint64_t>(x) ^ std::uint64_t{1} << 63);
}

/// The exact sum, with the zero that the direction gives it.
inline double round_sum(const exact_number<uint128>& a, const exact_number<uint128>& b,
                        const runtime_rounding& r, std::uint32_t random) noexcept {
    const exact_value sum = to_64_bits(add_exact(a, b));
    if (sum.significand == 0) return with_sign(0, zero_sum_is_negative(r.project));
    return round_exactly(sum, r, random);
}

struct runtime_add {
    static double apply(double a, double b, const runtime_rounding& r, std::uint32_t random) noexcept {
        if (all_finite_nonzero(a, b)) {
            return round_sum(widened<uint128>(exact_double(a)), widened<uint128>(exact_double(b)), r, random);
        }
        if (is_infinite_or_nan(a) || is_infinite_or_nan(b))
            return special_result(double_add(kind_of(a), kind_of(b)), r);
        // One is a zero.
        if (all_finite_nonzero(a)) return round_double(a, r, random);
        if (all_finite_nonzero(b)) return round_double(b, r, random);
        const auto both = bit_cast<std::uint64_t>(a) & bit_cast<std::uint64_t>(b);
        const auto any = bit_cast<std::uint64_t>(a) | bit_cast<std::uint64_t>(b);
        return with_sign(0, (zero_sum_is_negative(r.project) ? any : both) != 0);
    }
};
struct runtime_subtract {
    static double apply(double a, double b, const runtime_rounding& r, std::uint32_t random) noexcept {
        return runtime_add::apply(a, negative(b), r, random);
    }
};
struct runtime_multiply {
    static double apply(double a, double b, const runtime_rounding& r, std::uint32_t random) noexcept {
        if (!all_finite_nonzero(a, b)) return special_result(double_multiply(kind_of(a), kind_of(b)), r);
        return round_exactly(to_64_bits(exact_product(a, b)), r, random);
    }
    static exact_number<uint128> exact_product(double a, double b) noexcept {
        const exact_value x = exact_double(a);
        const exact_value y = exact_double(b);
        return {x.negative != y.negative, x.exponent + y.exponent,
                static_cast<uint128>(x.significand) * y.significand};
    }
};
struct runtime_divide {
    static double apply(double a, double b, const runtime_rounding& r, std::uint32_t random) noexcept {
        if (!all_finite_nonzero(a, b)) return special_result(double_divide(kind_of(a), kind_of(b)), r);
        const exact_number<uint128> x = normalized(widened<uint128>(exact_double(a)));
        const exact_value y = exact_double(b);
        const uint128 quotient = x.significand / y.significand;
        const bool rest = quotient * y.significand != x.significand;
        return round_exactly(to_64_bits(exact_number<uint128>{x.negative != y.negative,
                                                              x.exponent - y.exponent, quotient, rest}),
                             r, random);
    }
};
struct runtime_sqrt {
    static double apply(double a, double /*unused*/, const runtime_rounding& r,
                        std::uint32_t random) noexcept {
        if (!all_finite_nonzero(a) || exact_double(a).negative)
            return special_result(double_sqrt(kind_of(a)), r);
        return round_exactly(sqrt_exact<uint128>(exact_double(a)), r, random);
    }
};
struct runtime_round {
    static double apply(double a, double /*unused*/, const runtime_rounding& r,
                        std::uint32_t random) noexcept {
        return round_double(a, r, random);
    }
};

inline double runtime_fma(double a, double b, double c, const runtime_rounding& r,
                          std::uint32_t random) noexcept {
    if (all_finite_nonzero(a, b, c)) {
        return round_sum(runtime_multiply::exact_product(a, b), widened<uint128>(exact_double(c)), r, random);
    }
    if (all_finite_nonzero(a, b) && !is_infinite_or_nan(c)) {
        return round_exactly(to_64_bits(runtime_multiply::exact_product(a, b)), r, random);
    }
    // The product is a zero, an infinity or NaN, and exact; or c is infinite, and the product need only be finite.
    const bool finite_product = all_finite_nonzero(a, b);
    return runtime_add::apply(finite_product ? 1.0 : double_multiply(kind_of(a), kind_of(b)), c, r, random);
}

}}  // namespace mp::detail
