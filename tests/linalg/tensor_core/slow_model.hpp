// SPDX-License-Identifier: MIT
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

/// The block fused multiply-add once more, from its written rule and with its own constants, in doubles:
/// products of two operands are exact in them, and so is scaling by powers of two. Shares no code with the
/// library.
namespace slow {

/// Constants of one instruction.
struct rule {
    int products;
    int fraction_bits;
    int zero_exponent;
    bool half_output;
    int output_bits;  ///< of precision; 24 for float
};

inline constexpr rule volta_half{4, 23, -131, false, 24};
inline constexpr rule volta_half_half{4, 23, -19, true, 11};
inline constexpr rule ampere_half{8, 24, -132, false, 24};
inline constexpr rule ampere_half_half{8, 24, -20, true, 11};
inline constexpr rule ampere_tf32{4, 24, -132, false, 24};
inline constexpr rule ada_fp8{16, 13, -132, false, 14};
inline constexpr rule ada_fp8_half{16, 13, -20, true, 11};
inline constexpr rule hopper_half{16, 25, -133, false, 24};
inline constexpr rule hopper_half_half{16, 25, -21, true, 11};
inline constexpr rule hopper_tf32{8, 25, -133, false, 24};
inline constexpr rule hopper_fp8{32, 13, -133, false, 14};
inline constexpr rule hopper_fp8_half{32, 13, -21, true, 11};
inline constexpr rule blackwell_fp8{32, 25, -133, false, 24};

/// Fields of a format, written down by hand.
template <class Value>
struct layout;
template <>
struct layout<mp::half> {
    static constexpr int exponent = 5, fraction = 10;
};
template <>
struct layout<mp::bfloat16> {
    static constexpr int exponent = 8, fraction = 7;
};
template <>
struct layout<mp::tfloat32> {
    static constexpr int exponent = 8, fraction = 10;
};
template <>
struct layout<mp::float8_e5m2> {
    static constexpr int exponent = 5, fraction = 2;
};
template <>
struct layout<mp::float8_e4m3fn> {
    static constexpr int exponent = 4, fraction = 3;
};

template <class Value>
inline constexpr int least_exponent = 2 - (1 << (layout<Value>::exponent - 1));

/// The value of a number, from its fields.
template <class Value>
double value_of(Value x) {
    constexpr int fraction_bits = layout<Value>::fraction;
    const auto bits = static_cast<std::uint32_t>(x.bits());
    const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1);
    const int field = static_cast<int>(bits >> fraction_bits & ((1U << layout<Value>::exponent) - 1));
    const bool negative = (bits >> (fraction_bits + layout<Value>::exponent) & 1) != 0;
    double result = 0;
    if (std::is_same_v<Value, mp::float8_e4m3fn> && field == 15) {
        result = fraction == 7 ? std::numeric_limits<double>::quiet_NaN() : 256.0 * (1 + fraction / 8.0);
    } else if (field == (1 << layout<Value>::exponent) - 1) {
        result = fraction == 0 ? std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::quiet_NaN();
    } else {
        const std::uint32_t significand = fraction + (field == 0 ? 0U : 1U << fraction_bits);
        result = std::ldexp(significand, std::max(field, 1) - 1 + least_exponent<Value> - fraction_bits);
    }
    return negative ? -result : result;
}

template <class Value>
int exponent_of(Value x) {
    return std::max(std::ilogb(value_of(x)), least_exponent<Value>);
}

/// sum * 2^unit with `precision` bits, no bit below 2^lowest, cut off or rounded to nearest even.
inline double rounded(std::int64_t sum, int unit, int precision, int lowest, bool to_nearest) {
    if (sum == 0) return 0;
    const int top = std::ilogb(static_cast<double>(sum)) + unit;  // sums have less than 53 bits
    const int last = std::max(top - precision + 1, lowest);
    const double steps = std::ldexp(static_cast<double>(sum), unit - last);
    return std::ldexp(to_nearest ? std::nearbyint(steps) : std::trunc(steps), last) + 0.0;
}

/// One block; c and the result are floats, or values of halves. a(i) and b(i) for i < count.
template <class Value, class ReadA, class ReadB>
float block(const rule& r, int count, const ReadA& a, const ReadB& b, float c) {
    const double infinity = std::numeric_limits<double>::infinity();
    bool zeros = c == 0 || count < r.products;
    double specials = c - c == 0 ? 0 : static_cast<double>(c);
    int largest = -100000;
    if (c != 0 && std::isfinite(c)) {
        largest = std::max(std::ilogb(c), r.half_output ? -14 : -126);
    }
    for (int i = 0; i < count; ++i) {
        const double product = value_of(a(i)) * value_of(b(i));
        if (product == 0) {
            zeros = true;
        } else if (std::isfinite(product)) {
            largest = std::max(largest, exponent_of(a(i)) + exponent_of(b(i)));
        } else {
            specials += product;
        }
    }
    if (specials != 0) return static_cast<float>(specials);
    if (zeros) largest = std::max(largest, r.zero_exponent);
    const int unit = largest - r.fraction_bits;
    std::int64_t sum = static_cast<std::int64_t>(std::ldexp(static_cast<double>(c), -unit));
    for (int i = 0; i < count; ++i) {
        sum += static_cast<std::int64_t>(std::ldexp(value_of(a(i)) * value_of(b(i)), -unit));
    }
    const double result = r.half_output
                              ? rounded(sum, unit, 11, -24, true)
                              : rounded(sum, unit, r.output_bits, r.output_bits == 14 ? -139 : -149, false);
    const double beyond = r.half_output ? 65536.0 : 0x1p128;
    if (std::fabs(result) >= beyond) return static_cast<float>(std::copysign(infinity, result));
    return static_cast<float>(result) + 0.0F;
}

/// A sum over all of k, from `start`.
template <class Value, class ReadA, class ReadB>
float sum(const rule& r, std::ptrdiff_t k, const ReadA& a, const ReadB& b, float start) {
    for (std::ptrdiff_t p = 0; p < k; p += r.products) {
        start = block<Value>(
            r, static_cast<int>(std::min<std::ptrdiff_t>(r.products, k - p)), [&](int i) { return a(p + i); },
            [&](int i) { return b(p + i); }, start);
    }
    return start;
}

/// The same bits, or both NaN.
inline bool same(float a, float b) {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

}  // namespace slow
