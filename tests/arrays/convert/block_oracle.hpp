// SPDX-License-Identifier: MIT
/// \file
/// Quantisation to block formats computed in doubles from tables of values, without code of the library: every
/// comparison is between products that are exact in double (at most 8 + 8 + 24 bits), and nothing is divided.
#pragma once

#include <mp/block_scaled.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace block_oracle {

/// Non-negative values of a small format in the order of their codes, and the codes that are no numbers.
struct number_table {
    std::vector<double> values;
    int precision = 0;
    int emax = 0;
    int infinity = -1;           ///< magnitude code, -1 without infinity
    int first_nan = -1;          ///< smallest magnitude code that is NaN, -1 without NaN
    int sign = 0;                ///< sign bit
    bool unsigned_zero = false;  ///< fnuz: the code of a negative zero is NaN
    bool twos_complement = false;

    [[nodiscard]] double max() const { return values.back(); }
    [[nodiscard]] bool is_nan(unsigned code) const {
        if (unsigned_zero) return code == static_cast<unsigned>(sign);
        return first_nan >= 0 && static_cast<int>(code) % sign >= first_nan;
    }
    [[nodiscard]] unsigned with_sign(std::size_t magnitude, bool negative) const {
        if (!negative || (unsigned_zero && magnitude == 0)) return static_cast<unsigned>(magnitude);
        const auto code = static_cast<unsigned>(magnitude);
        return twos_complement ? (256 - code) % 256 : code + static_cast<unsigned>(sign);
    }
    [[nodiscard]] double value(unsigned code) const {
        if (is_nan(code)) return std::numeric_limits<double>::quiet_NaN();
        if (twos_complement) return code < 128 ? values[code] : -values[256 - code];
        const bool negative = static_cast<int>(code) >= sign;
        const int magnitude = static_cast<int>(code) % sign;
        const double x = magnitude == infinity ? HUGE_VAL : values[static_cast<std::size_t>(magnitude)];
        return negative ? -x : x;
    }
};

/// `left_out` codes at the top are no numbers; the first of them is infinity if the format has one.
inline number_table floating(int exponents, int fractions, int bias, int left_out, bool has_infinity = false,
                             bool fnuz = false) {
    number_table table;
    table.precision = fractions + 1;
    table.sign = 1 << (exponents + fractions);
    table.unsigned_zero = fnuz;
    const int count = table.sign - left_out;
    for (int code = 0; code < count; ++code) {
        const int field = code >> fractions;
        const int fraction = code % (1 << fractions);
        table.values.push_back(field == 0
                                   ? std::ldexp(fraction, 1 - bias - fractions)
                                   : std::ldexp(fraction + (1 << fractions), field - bias - fractions));
        table.emax = std::max(field, 1) - bias;
    }
    if (has_infinity) table.infinity = count;
    if (left_out != 0) table.first_nan = count + (has_infinity ? 1 : 0);
    return table;
}

/// Multiples of 1/64 in two's complement.
inline number_table fixed_point() {
    number_table table;
    table.precision = 7;
    table.sign = 128;
    table.twos_complement = true;
    for (int n = 0; n < 128; ++n) table.values.push_back(n / 64.0);
    return table;
}

template <class Number>
const number_table& table_of();
#define MP_TEST_TABLE(Number, ...)                     \
    template <>                                        \
    inline const number_table& table_of<Number>() {    \
        static const number_table table = __VA_ARGS__; \
        return table;                                  \
    }
MP_TEST_TABLE(mp::float8_e4m3fn, floating(4, 3, 7, 1))
MP_TEST_TABLE(mp::float8_e5m2, floating(5, 2, 15, 4, true))
MP_TEST_TABLE(mp::float8_e5m2fnuz, floating(5, 2, 16, 0, false, true))
MP_TEST_TABLE(mp::float8_e4m3b11fnuz, floating(4, 3, 11, 0, false, true))
MP_TEST_TABLE(mp::float6_e2m3fn, floating(2, 3, 1, 0))
MP_TEST_TABLE(mp::float6_e3m2fn, floating(3, 2, 3, 0))
MP_TEST_TABLE(mp::float4_e2m1fn, floating(2, 1, 1, 0))
MP_TEST_TABLE(mp::mx_int8, fixed_point())
#undef MP_TEST_TABLE

/// The magnitude code of the value nearest to x / divisor, ties to even; too large values become the largest.
inline std::size_t nearest_code(const number_table& table, double x, double divisor) {
    std::size_t code = 0;
    while (code + 1 < table.values.size()) {
        const double middle = (table.values[code] + table.values[code + 1]) / 2 * divisor;
        if (x < middle || (x <= middle && code % 2 == 0)) break;
        ++code;
    }
    return code;
}

/// What OCP MX 1.0 and the documentation of scale_rule say about amax > 0, as the exponent of the scale.
template <class Element>
int scale_exponent(double amax, mp::scale_rule rule) {
    const number_table& table = table_of<Element>();
    int s = std::ilogb(amax) - table.emax;
    switch (rule) {
        case mp::scale_rule::ceil:
            while (amax <= std::ldexp(table.max(), s - 1)) --s;
            while (amax > std::ldexp(table.max(), s)) ++s;
            break;
        case mp::scale_rule::even:
            if (std::nearbyint(std::ldexp(amax, table.precision - 1 - std::ilogb(amax))) >=
                std::ldexp(1.0, table.precision)) {
                ++s;
            }
            break;
        case mp::scale_rule::nearest: {
            if (amax < std::ldexp(table.max(), s)) --s;
            const double middle = std::ldexp(1.5 * table.max(), s);
            if (amax > middle || (amax >= middle && (s + 127) % 2 != 0)) ++s;
            break;
        }
        case mp::scale_rule::torchao_ceil:
            if (amax > std::ldexp(1.0, std::ilogb(amax))) ++s;
            break;
        case mp::scale_rule::torchao_rceil: {
            // The operations of torchao's _to_mx_rceil, of float; amax is one.
            const float descale = static_cast<float>(amax) * static_cast<float>(1 / table.max());
            s = std::ilogb(descale);
            if (static_cast<double>(descale) > std::ldexp(1.0, s)) ++s;
            break;
        }
        default:
            break;
    }
    return std::clamp(s, -127, 127);
}

/// Codes and values of one block.
struct block {
    unsigned scale = 0;
    bool nan = false;                ///< any NaN is right as the scale
    std::vector<unsigned> elements;  ///< where is_nan is true any NaN of the format is right
    std::vector<double> values;      ///< element * scale * tensor scale
    double largest = 0;              ///< the largest element * scale * tensor scale
};

template <class Format>
inline constexpr bool has_power_of_two = std::is_same_v<typename Format::scale_type, mp::float8_e8m0fnu>;

/// The scale of a block as code and value; amax is NaN or infinite for a block that has one, and becomes the
/// element `target`, which only matters for scales that are not powers of two.
template <class Format>
std::pair<unsigned, double> scale_of(double amax, float tensor_scale, const mp::quantize_options& options,
                                     double target) {
    using element = typename Format::element_type;
    const mp::scale_rule rule = options.rule;
    if (std::isinf(amax) && options.nonfinite == mp::nonfinite_handling::nan_scale) {
        amax = std::numeric_limits<double>::quiet_NaN();
    }
    if constexpr (has_power_of_two<Format>) {
        if (std::isnan(amax)) return {255, amax};
        int exponent = -127;
        if (std::isinf(amax)) {
            const bool by_exponent = rule == mp::scale_rule::standard || rule == mp::scale_rule::floor ||
                                     rule == mp::scale_rule::even;
            exponent = by_exponent ? std::min(127, 128 - table_of<element>().emax) : 127;
        } else if (amax > 0) {
            exponent = scale_exponent<element>(amax, rule);
        }
        return {static_cast<unsigned>(exponent + 127), std::ldexp(1.0, exponent)};
    } else {
        const number_table& scales = table_of<typename Format::scale_type>();
        if (std::isnan(amax)) {
            const int nan = scales.unsigned_zero ? scales.sign : scales.first_nan;
            return {static_cast<unsigned>(nan), amax};
        }
        std::size_t code = scales.values.size() - 1;
        if (std::isfinite(amax)) {
            const double unit = target * static_cast<double>(tensor_scale);
            code = nearest_code(scales, amax, unit);
            if (rule == mp::scale_rule::floor && scales.values[code] * unit > amax) --code;
            if (rule == mp::scale_rule::ceil && scales.values[code] * unit < amax &&
                code + 1 < scales.values.size()) {
                ++code;
            }
        }
        const std::size_t smallest = options.scale_floor == mp::block_scale_floor::smallest ? 1
                                     : options.scale_floor == mp::block_scale_floor::none
                                         ? 0
                                         : std::size_t{1} << (scales.precision - 1);
        code = std::max(code, smallest);
        return {static_cast<unsigned>(code), scales.values[code]};
    }
}

/// The magnitude code of an infinity or NaN by a projection that rounds to nearest, with its sign.
inline unsigned special_code(const number_table& table, double x, const mp::projection& p) {
    const bool negative = std::signbit(x);
    const std::size_t largest = table.values.size() - 1;
    const int nan = table.unsigned_zero ? table.sign : table.first_nan;
    if (std::isnan(x)) {
        if (nan >= 0)
            return table.unsigned_zero ? static_cast<unsigned>(nan)
                                       : table.with_sign(static_cast<std::size_t>(nan), negative);
        return p.without_nan == mp::nan_substitute::zero ? 0 : static_cast<unsigned>(largest);
    }
    if (p.saturate == mp::saturation::finite) return table.with_sign(largest, negative);
    if (table.infinity >= 0) return table.with_sign(static_cast<std::size_t>(table.infinity), negative);
    if (nan < 0) return table.with_sign(largest, negative);
    return table.unsigned_zero ? static_cast<unsigned>(nan)
                               : table.with_sign(static_cast<std::size_t>(nan), negative);
}

/// The code of x / divisor by a projection that rounds to nearest even.
inline unsigned element_code(const number_table& table, double x, double divisor, const mp::projection& p) {
    if (!std::isfinite(x)) return special_code(table, x, p);
    const double magnitude = std::fabs(x);
    const std::size_t code = nearest_code(table, magnitude, divisor);
    if (p.saturate == mp::saturation::none && code + 1 == table.values.size()) {
        // Half a unit beyond the largest number lies what overflows; that tie goes to the even code beyond.
        const std::size_t n = table.values.size();
        const double limit =
            (table.values[n - 1] + (table.values[n - 1] - table.values[n - 2]) / 2) * divisor;
        const bool beyond = n % 2 == 0 ? magnitude >= limit : magnitude > limit;
        if (beyond) return special_code(table, std::copysign(HUGE_VAL, x), p);
    }
    return table.with_sign(code, std::signbit(x));
}

inline double largest_magnitude(const std::vector<double>& values, bool finite_only) {
    double amax = 0;
    for (const double x : values) {
        if (std::isnan(x) && !finite_only) return x;
        if (std::isfinite(x) || (!finite_only && std::isinf(x))) amax = std::max(amax, std::fabs(x));
    }
    return amax;
}

inline bool is_four_over_six(mp::scale_rule rule) {
    return rule == mp::scale_rule::four_over_six_mse || rule == mp::scale_rule::four_over_six_mae;
}

/// The error of the finite values of a tile.
template <class Format>
long double error_of(const std::vector<std::vector<double>>& tile, double divisor, mp::scale_rule rule) {
    const number_table& table = table_of<typename Format::element_type>();
    long double sum = 0;
    for (const std::vector<double>& values : tile) {
        for (const double x : values) {
            if (!std::isfinite(x)) continue;
            const double value = table.values[nearest_code(table, std::fabs(x), divisor)] * divisor;
            const long double error = std::fabs(static_cast<long double>(std::fabs(x)) - value);
            sum += rule == mp::scale_rule::four_over_six_mse ? error * error : error;
        }
    }
    return sum;
}

/// Quantises the blocks that share a scale. Where two scales have errors that are equal except for their rounding,
/// the right one is that of `found`.
template <class Format>
std::vector<block> quantize(const std::vector<std::vector<double>>& tile, float tensor_scale,
                            const mp::quantize_options& options, unsigned found) {
    const number_table& table = table_of<typename Format::element_type>();
    double amax = 0;
    for (const std::vector<double>& values : tile) {
        const double x = largest_magnitude(values, options.nonfinite == mp::nonfinite_handling::by_element);
        amax =
            std::isnan(x) || std::isnan(amax) ? std::numeric_limits<double>::quiet_NaN() : std::max(amax, x);
    }
    auto chosen = scale_of<Format>(amax, tensor_scale, options, table.max());
    if (is_four_over_six(options.rule) && std::isfinite(amax)) {
        const auto other = scale_of<Format>(amax, tensor_scale, options, 4);
        const auto error = [&](double scale) {
            return error_of<Format>(tile, scale * static_cast<double>(tensor_scale), options.rule);
        };
        const long double first = error(chosen.second), second = error(other.second);
        const bool differ = std::fabs(first - second) > 1e-12L * first;
        if (differ ? second < first : (first > 0 && found == other.first)) chosen = other;
    }
    std::vector<block> result;
    const double divisor = chosen.second * static_cast<double>(tensor_scale);
    for (const std::vector<double>& values : tile) {
        block& to = result.emplace_back();
        to.scale = chosen.first;
        to.nan = std::isnan(chosen.second);
        to.largest = table.max() * divisor;
        for (const double x : values) {
            const bool becomes_zero = std::isfinite(x) && !(divisor > 0);
            to.elements.push_back(to.nan         ? 0
                                  : becomes_zero ? table.with_sign(0, std::signbit(x))
                                                 : element_code(table, x, divisor, options.element));
            to.values.push_back(table.value(to.elements.back()) * divisor);
        }
    }
    return result;
}

/// The tensor scale that is computed for a matrix with this largest finite magnitude. The quotient is rounded
/// to double first, which is innocuous for a quotient of numbers of 24 bits and fewer.
template <class Format>
float tensor_scale_of(double amax, const mp::quantize_options& options) {
    if constexpr (has_power_of_two<Format>) return 1;
    if (options.tensor_scale > 0) return options.tensor_scale;
    if (!(amax > 0)) return 1;
    double scale = table_of<typename Format::scale_type>().max();
    // One and a half times 256 is at most 448.
    if (is_four_over_six(options.rule)) scale = std::exp2(std::floor(std::log2(scale / 1.5)));
    const double most = table_of<typename Format::element_type>().max() * scale;
    return std::max(static_cast<float>(amax / most), std::numeric_limits<float>::min());
}

}  // namespace block_oracle
