// SPDX-License-Identifier: MIT
/// \file
/// + - * / fma and sqrt of doubles, rounded once to a format that is chosen when the program runs: by integers.
#pragma once

#include <mp/arrays/analysis/runtime_format.hpp>
#include <mp/numbers/format/exact_arithmetic.hpp>
#include <mp/numbers/format/float_arithmetic.hpp>

#include <cstdint>

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
