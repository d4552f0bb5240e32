// SPDX-License-Identifier: MIT
// Quantisation to block-scaled formats gives the scales and elements that their definitions say, computed
// here with rational numbers from tables of values; back again it gives the exact products.
#include <mp/block_scaled.hpp>
#include <mp/half.hpp>

#include <boost/multiprecision/cpp_int.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "numbers/format/flushing_scope.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using rational = boost::multiprecision::cpp_rational;
using integer = boost::multiprecision::cpp_int;

rational power(int exponent) {
    const rational p(integer(pow(integer(2), static_cast<unsigned>(std::abs(exponent)))));
    return exponent < 0 ? rational(1) / p : p;
}

/// An element format as its non-negative values in the order of their codes.
struct element_table {
    std::vector<rational> values;
    int significand_bits;
    int emax;

    [[nodiscard]] const rational& max() const { return values.back(); }
};

/// Values of a format with `exponents` and `fractions` bits; `left_out` codes at the top are no numbers.
element_table floating(int exponents, int fractions, int bias, int left_out) {
    element_table table{{}, fractions + 1, 0};
    for (int code = 0; code < (1 << (exponents + fractions)) - left_out; ++code) {
        const int field = code >> fractions;
        const int fraction = code % (1 << fractions);
        table.values.push_back(field == 0
                                   ? rational(fraction) * power(1 - bias - fractions)
                                   : rational(fraction + (1 << fractions)) * power(field - bias - fractions));
        table.emax = std::max(field, 1) - bias;
    }
    return table;
}
element_table fixed_point() {
    element_table table{{}, 7, 0};
    for (int n = 0; n < 128; ++n) table.values.push_back(rational(n) / 64);
    return table;
}

template <class Element>
const element_table& table_of();
#define TABLE(Element, ...)                             \
    template <>                                         \
    const element_table& table_of<Element>() {          \
        static const element_table table = __VA_ARGS__; \
        return table;                                   \
    }
TABLE(mp::float8_e4m3fn, floating(4, 3, 7, 1))
TABLE(mp::float8_e5m2, floating(5, 2, 15, 4))
TABLE(mp::float6_e2m3fn, floating(2, 3, 1, 0))
TABLE(mp::float6_e3m2fn, floating(3, 2, 3, 0))
TABLE(mp::float4_e2m1fn, floating(2, 1, 1, 0))
TABLE(mp::mx_int8, fixed_point())

int floor_log2(const rational& x) {
    int k = static_cast<int>(msb(numerator(x))) - static_cast<int>(msb(denominator(x)));
    while (power(k) > x) --k;
    while (power(k + 1) <= x) ++k;
    return k;
}

/// Nearest integer, ties to even.
integer nearest_integer(const rational& x) {
    const integer below = numerator(x) / denominator(x);
    const rational rest = x - below;
    const bool up = rest > rational(1, 2) || (rest == rational(1, 2) && below % 2 != 0);
    return up ? integer(below + 1) : below;
}

enum class mode { nearest, toward_zero, upward, stochastic };

/// Magnitude code of |x|: the index in the table; what is too large becomes the largest.
std::size_t element_code(const element_table& table, const rational& x, bool negative, mode m,
                         std::uint32_t random) {
    const auto above = std::upper_bound(table.values.begin(), table.values.end(), x);
    if (above == table.values.end()) return table.values.size() - 1;
    const auto i = static_cast<std::size_t>(above - table.values.begin()) - 1;
    const rational part = (x - table.values[i]) / (table.values[i + 1] - table.values[i]);
    if (part == 0) return i;
    bool up = false;
    switch (m) {
        case mode::nearest:
            up = part > rational(1, 2) || (part == rational(1, 2) && i % 2 != 0);
            break;
        case mode::toward_zero:
            break;
        case mode::upward:
            up = !negative;
            break;
        case mode::stochastic: {
            const rational scaled = part * power(32);
            up = numerator(scaled) / denominator(scaled) + random >= integer(1) << 32;
            break;
        }
    }
    return i + (up ? 1 : 0);
}

/// The exponent of the scale of a block, from the rule in words.
int scale_exponent(const element_table& table, const rational& amax, mp::scale_rule rule) {
    if (amax == 0) return -127;
    int s = 0;
    const int k = floor_log2(amax);
    if (rule == mp::scale_rule::ceil) {
        s = floor_log2(amax / table.max());
        if (amax > table.max() * power(s)) ++s;
    } else if (rule == mp::scale_rule::even) {
        const integer significand = nearest_integer(amax * power(table.significand_bits - 1 - k));
        s = k + (msb(significand) == static_cast<unsigned>(table.significand_bits) ? 1 : 0) - table.emax;
    } else if (rule == mp::scale_rule::nearest) {
        s = floor_log2(amax / table.max());
        const rational rest = amax / table.max() * power(-s);
        if (rest > rational(3, 2) || (rest == rational(3, 2) && (s + 127) % 2 != 0)) ++s;
    } else {
        s = k - table.emax;
    }
    return std::clamp(s, -127, 127);
}

/// Values in which the corners of quantisation are frequent: each block has its own magnitude, some of its
/// values are near powers of two, midpoints and the largest, some far below, some zero.
template <class Value>
std::vector<Value> corner_values(std::size_t count, std::size_t block, oracle::random_bits& random) {
    constexpr int widest = std::is_same_v<Value, double> ? 300 : std::is_same_v<Value, float> ? 126 : 14;
    std::vector<Value> values;
    int exponent = 0;
    std::uint32_t kind = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % block == 0) {
            kind = random.below(10);
            const int range = kind < 6 ? std::min(widest, 20) : widest;
            exponent = static_cast<int>(random.below(static_cast<std::uint32_t>(2 * range + 1))) - range;
        }
        double x = 1 + static_cast<double>(random.next() >> 11) * 0x1p-53;
        switch (random.below(6)) {
            case 0:
                x = 1 + static_cast<double>(random.below(64)) / 64;
                break;
            case 1:
                x = 2 - std::ldexp(1.0, -static_cast<int>(random.below(24)));
                break;
            case 2:
                x = std::nextafter(static_cast<float>(1 + static_cast<double>(random.below(32)) / 32),
                                   random.below(2) != 0 ? 0.0f : 4.0f);
                break;
            case 3:
                x = std::ldexp(x, -static_cast<int>(random.below(24)));
                break;
            default:
                break;
        }
        if (kind == 0 || random.below(30) == 0) x = 0;
        if (random.below(2) != 0) x = -x;
        x = std::ldexp(x, exponent);
        values.push_back(Value(std::clamp(x, -static_cast<double>(std::numeric_limits<Value>::max()),
                                          static_cast<double>(std::numeric_limits<Value>::max()))));
    }
    return values;
}

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    bool row_major;
    mp::block_direction direction;
};

/// Quantises corner values and compares every scale and element with the reference, and every value with the
/// exact product.
template <class Quantized, class Value>
void compare(oracle::disagreements& wrong, const shape& s, mp::scale_rule rule, mode m, int threads,
             std::uint64_t seed) {
    using element = typename Quantized::element_type;
    using scale = typename Quantized::scale_type;
    const element_table& table = table_of<element>();
    oracle::random_bits random(seed);
    const auto count = static_cast<std::size_t>(s.rows * s.columns);
    // Corner blocks lie along the blocks if the vector is contiguous; else everything is mixed.
    const std::vector<Value> values = corner_values<Value>(count, Quantized::block_size, random);
    const mp::matrix_view<const Value> view = s.row_major
                                                  ? mp::row_major(values.data(), s.rows, s.columns)
                                                  : mp::column_major(values.data(), s.rows, s.columns);
    mp::quantize_options options{.rule = rule, .seed = 77, .direction = s.direction};
    options.element.round = m == mode::nearest       ? mp::rounding::nearest_even
                            : m == mode::toward_zero ? mp::rounding::toward_zero
                            : m == mode::upward      ? mp::rounding::upward
                                                     : mp::rounding::stochastic_a;
    if (m == mode::stochastic) options.element.random_bits = 32;
    const Quantized q = mp::quantize<Quantized>(mp::cpu{threads}, view, options);
    std::vector<float> back(count);
    mp::dequantize(mp::cpu{threads}, q, mp::row_major(back.data(), s.rows, s.columns));
    REQUIRE(q.rows() == s.rows);
    REQUIRE(q.columns() == s.columns);

    const auto value = [&](std::ptrdiff_t vector, std::ptrdiff_t i) {
        return s.direction == mp::block_direction::along_rows ? view(vector, i) : view(i, vector);
    };
    rational tensor = 1;
    if constexpr (Quantized::has_tensor_scale) {
        rational amax = 0;
        for (const Value x : values) amax = std::max(amax, rational(abs(rational(static_cast<double>(x)))));
        if (amax != 0) {
            const rational quotient = amax / (448 * 6);
            const int k = floor_log2(quotient);
            tensor = rational(nearest_integer(quotient * power(23 - k))) * power(k - 23);
            const rational largest(std::numeric_limits<float>::max());
            tensor = std::clamp(tensor, power(-126), largest);
        }
        if (rational(q.tensor_scale()) != tensor) wrong.add("tensor scale", q.tensor_scale());
    }
    for (std::ptrdiff_t vector = 0; vector < q.vector_count(); ++vector) {
        for (std::ptrdiff_t b = 0; b < q.blocks_per_vector(); ++b) {
            const std::ptrdiff_t begin = b * Quantized::block_size;
            const std::ptrdiff_t end = std::min(begin + Quantized::block_size, q.vector_length());
            rational amax = 0;
            for (std::ptrdiff_t i = begin; i < end; ++i) {
                amax = std::max(amax, rational(abs(rational(static_cast<double>(value(vector, i))))));
            }
            const scale chosen = q.scales()[static_cast<std::size_t>(vector * q.blocks_per_vector() + b)];
            rational expected_scale;
            if constexpr (Quantized::has_tensor_scale) {
                const element_table& scales = table_of<scale>();
                const mode towards = rule == mp::scale_rule::floor  ? mode::toward_zero
                                     : rule == mp::scale_rule::ceil ? mode::upward
                                                                    : mode::nearest;
                const std::size_t code = element_code(scales, amax / (6 * tensor), false, towards, 0);
                expected_scale = scales.values[std::max(code, std::size_t{1})];
            } else {
                expected_scale = power(scale_exponent(table, amax, rule));
            }
            if (rational(static_cast<double>(chosen)) != expected_scale) {
                wrong.add("scale of vector", vector, "block", b, "is", static_cast<double>(chosen));
                continue;
            }
            const rational divisor = expected_scale * tensor;
            for (std::ptrdiff_t i = begin; i < end; ++i) {
                const std::ptrdiff_t r = s.direction == mp::block_direction::along_rows ? vector : i;
                const std::ptrdiff_t c = s.direction == mp::block_direction::along_rows ? i : vector;
                const auto x = static_cast<double>(value(vector, i));
                const std::size_t code =
                    element_code(table, abs(rational(x)) / divisor, x < 0, m,
                                 mp::random_bits(77, static_cast<std::uint64_t>(r * s.columns + c)));
                const rational expected = table.values[code] * (x < 0 ? -1 : 1);
                const auto got = static_cast<double>(q.element(r, c));
                if (rational(got) != expected) wrong.add("element", r, c, x, "is", got);
                if (got == 0 && !std::is_same_v<element, mp::mx_int8> &&
                    std::signbit(got) != std::signbit(x)) {
                    wrong.add("sign of zero", r, c);
                }
                // The products are exact in double, so the cast rounds once.
                const auto product = static_cast<float>(got * static_cast<double>(chosen) *
                                                        static_cast<double>(q.tensor_scale()));
                if (back[static_cast<std::size_t>(r * s.columns + c)] != product ||
                    q.value(r, c) != product) {
                    wrong.add("value", r, c, product);
                }
            }
        }
    }
}

constexpr mp::scale_rule rules[] = {mp::scale_rule::standard, mp::scale_rule::floor, mp::scale_rule::ceil,
                                    mp::scale_rule::even, mp::scale_rule::nearest};

template <class Quantized, class Value>
void compare_all(oracle::disagreements& wrong) {
    using enum mp::block_direction;
    std::uint64_t seed = 1;
    for (const mp::scale_rule rule : rules) {
        for (const mode m : {mode::nearest, mode::toward_zero, mode::upward, mode::stochastic}) {
            compare<Quantized, Value>(wrong, {40, 64, true, along_rows}, rule, m, 1, ++seed);
        }
        compare<Quantized, Value>(wrong, {9, 83, true, along_rows}, rule, mode::nearest, 1, ++seed);
        compare<Quantized, Value>(wrong, {83, 21, true, along_columns}, rule, mode::nearest, 2, ++seed);
        compare<Quantized, Value>(wrong, {19, 45, false, along_rows}, rule, mode::stochastic, 2, ++seed);
        compare<Quantized, Value>(wrong, {45, 19, false, along_columns}, rule, mode::nearest, 1, ++seed);
        compare<Quantized, Value>(wrong, {37, 17, true, along_columns}, rule, mode::stochastic, 1, ++seed);
    }
}

template <class Function>
std::string message_of(Function function) {
    try {
        function();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "nothing thrown";
}

using own_blocks = mp::block_scaled<mp::float6_e3m2fn, 5>;

}  // namespace

TEST_CASE_TEMPLATE("quantised matrices have the scales and elements of the definitions", Quantized,
                   mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp6_e2m3, mp::mxfp6_e3m2, mp::mxfp4, mp::mxint8,
                   mp::nvfp4, own_blocks) {
    oracle::disagreements wrong;
    compare_all<Quantized, float>(wrong);
    compare<Quantized, double>(wrong, {9, 83, true, mp::block_direction::along_rows},
                               mp::scale_rule::standard, mode::nearest, 1, 500);
    compare<Quantized, double>(wrong, {9, 83, true, mp::block_direction::along_rows}, mp::scale_rule::ceil,
                               mode::stochastic, 1, 501);
    compare<Quantized, mp::half>(wrong, {64, 33, true, mp::block_direction::along_columns},
                                 mp::scale_rule::standard, mode::nearest, 1, 502);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("the rules for scales differ where they should") {
    // amax, and log2 of the scale for E2M1 (max 6, emax 2) under floor, ceil, even and nearest.
    struct row {
        float amax;
        int floor, ceil, even, nearest;
    };
    const row rows[] = {
        {4, 0, 0, 0, -1},         // 4/6 = 1.33 * 2^-1
        {4.5f, 0, 0, 0, 0},       // 4.5/6 = 1.5 * 2^-1: a tie, to the even field -1 + 127 = 126 or 0 + 127
        {6, 0, 0, 0, 0},          // the largest number itself
        {6.000001f, 0, 1, 0, 0},  // beyond it
        {6.999999f, 0, 1, 0, 0},  // 1.74 rounds to 1.5
        {7, 0, 1, 1, 0},          // 1.75 is halfway between 1.5 and 2
        {7.999999f, 0, 1, 1, 0},  // just below a power of two: floor clamps it to 6
        {8, 1, 1, 1, 0},         {9.000001f, 1, 1, 1, 1},  // 1.5 * 6
    };
    for (const row& r : rows) {
        const int expected[] = {r.floor, r.ceil, r.even, r.nearest};
        for (int i = 0; i < 4; ++i) {
            const std::vector<float> x{0.25f, r.amax};
            const auto q = mp::quantize<mp::mxfp4>(mp::cpu{}, x, {.rule = rules[i + 1]});
            INFO("amax ", r.amax, " rule ", i);
            if (r.amax == 4.5f && i == 3) {
                CHECK(q.scales()[0].bits() == 126);  // the even one of 126 and 127
            } else {
                CHECK(q.scales()[0].bits() == 127 + expected[i]);
            }
        }
    }
    const std::vector<float> below{std::nextafter(8.0f, 0.0f), 1.0f};
    const auto clamped = mp::quantize<mp::mxfp4>(mp::cpu{}, below);
    CHECK(clamped.value(0, 0) == 6);
    CHECK(clamped.value(0, 1) == 1);
}

TEST_CASE("blocks of zeros, of NaN and of infinity") {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x{0, -0.0f, 1, nan, 3, -infinity, 0x1p100f, 1};
    const auto options = [](mp::scale_rule rule, mp::nonfinite_handling handling) {
        return mp::quantize_options{.rule = rule, .nonfinite = handling};
    };
    using pairs = mp::block_scaled<mp::float8_e4m3fn, 2>;
    using enum mp::scale_rule;
    using enum mp::nonfinite_handling;
    SUBCASE("NaN spreads over its block, infinity takes the largest scale") {
        const auto q = mp::quantize<pairs>(mp::cpu{}, x, options(floor, propagate));
        CHECK(q.scales()[0].bits() == 0);
        CHECK(std::signbit(q.value(0, 1)));
        CHECK(mp::isnan(q.scales()[1]));
        CHECK(mp::isnan(q.value(0, 2)));
        CHECK(mp::isnan(q.value(0, 3)));
        CHECK(q.scales()[2].bits() == 127 + 128 - 8);
        CHECK(q.value(0, 4) == 0);
        CHECK(q.value(0, 5) == -infinity);  // -448 * 2^120 is beyond float
        CHECK(q.value(0, 6) == 0x1p100f);
        CHECK(mp::quantize<pairs>(mp::cpu{}, x, options(ceil, propagate)).scales()[2].bits() == 254);
        CHECK(mp::quantize<pairs>(mp::cpu{}, x, options(nearest, propagate)).scales()[2].bits() == 254);
        CHECK(mp::quantize<mp::block_scaled<mp::mx_int8, 2>>(mp::cpu{}, x).scales()[2].bits() == 254);
        std::vector<float> back(x.size());
        mp::dequantize(mp::cpu{}, q, back);
        CHECK(mp::isnan(back[2]));
        CHECK(back[5] == -infinity);
    }
    SUBCASE("each by itself") {
        const auto q = mp::quantize<pairs>(mp::cpu{}, x, options(floor, by_element));
        CHECK(q.value(0, 2) == 1);
        CHECK(mp::isnan(q.value(0, 3)));
        CHECK(q.value(0, 4) == 3);
        CHECK(q.scales()[2].bits() == 127 + 1 - 8);
        CHECK(q.value(0, 5) == -448 * 0x1p-7f);
    }
    SUBCASE("an infinite element, where the projection asks for it") {
        mp::quantize_options o = options(floor, by_element);
        o.element.saturate = mp::saturation::propagate;
        const auto q = mp::quantize<mp::block_scaled<mp::float8_e5m2, 2>>(mp::cpu{}, x, o);
        CHECK(q.value(0, 5) == -infinity);
    }
    SUBCASE("NVFP4") {
        using pairs_nv = mp::block_scaled<mp::float4_e2m1fn, 2, mp::float8_e4m3fn>;
        const auto q = mp::quantize<pairs_nv>(mp::cpu{}, x);
        CHECK(q.tensor_scale() == 0x1p100f / 2688);
        CHECK(q.scales()[0].bits() == 1);
        CHECK(mp::isnan(q.value(0, 2)));
        CHECK(q.scales()[2].bits() == 0x7e);
        CHECK(q.element(0, 5).bits() == 0xf);
        const std::vector<float> zeros(40);
        CHECK(mp::quantize<mp::nvfp4>(mp::cpu{}, zeros).tensor_scale() == 1);
        const auto given =
            mp::quantize<mp::nvfp4>(mp::cpu{}, std::vector<float>{1, 600}, {.tensor_scale = 0.25f});
        CHECK(given.tensor_scale() == 0.25f);
        CHECK(given.scales()[0] == mp::float8_e4m3fn{384});  // 400 is halfway to 416
        CHECK(mp::quantize<mp::nvfp4>(mp::cpu{}, std::vector<float>{6000}, {.tensor_scale = 0.25f})
                  .value(0, 0) == 448 * 6 * 0.25f);
    }
}

TEST_CASE("the codes are those of ml_dtypes' conversions") {
    // Computed in Python: scales by numpy's floor(log2(amax)) - emax, elements by ml_dtypes' casts of the
    // clipped quotients. NVFP4 in double, with the float tensor scale amax / 2688.
    const std::vector<float> x{
        0.75f,       1.328125f, 1.359375f,  0.609375f,  -0.75f,     -2.140625f, -2.8125f,   -2.09375f,
        0.0625f,     2.9375f,   5.140625f,  5.171875f,  2.25f,      -3.0f,      -8.34375f,  -10.796875f,
        -7.921875f,  0.5f,      11.578125f, 19.890625f, 19.734375f, 8.21875f,   -12.03125f, -32.484375f,
        -41.484375f, -29.875f,  2.890625f,  45.484375f, 76.921875f, 75.3125f,   30.015625f, -48.3125f};
    const auto check = [&]<class Quantized>(const Quantized& q, std::vector<unsigned> scales,
                                            const std::vector<unsigned>& codes) {
        for (std::size_t b = 0; b < scales.size(); ++b) CHECK(q.scales()[b].bits() == scales[b]);
        for (int i = 0; i < 32; ++i) CHECK(q.element(0, i).bits() == codes[static_cast<std::size_t>(i)]);
    };
    const mp::cpu exec{};
    check(mp::quantize<mp::mxfp8_e4m3>(exec, x), {125},
          {0x44, 0x4b, 0x4b, 0x42, 0xc4, 0xd1, 0xd3, 0xd0, 0x28, 0x54, 0x5a, 0x5a, 0x51, 0xd4, 0xe0, 0xe3,
           0xe0, 0x40, 0x64, 0x6a, 0x6a, 0x60, 0xe4, 0xf0, 0xf2, 0xef, 0x54, 0x73, 0x7a, 0x79, 0x6f, 0xf4});
    check(mp::quantize<mp::mxfp8_e5m2>(exec, x), {118},
          {0x5e, 0x61, 0x61, 0x5d, 0xde, 0xe4, 0xe6, 0xe4, 0x50, 0x66, 0x69, 0x69, 0x64, 0xe6, 0xec, 0xed,
           0xec, 0x5c, 0x6e, 0x71, 0x71, 0x6c, 0xee, 0xf4, 0xf5, 0xf3, 0x66, 0x76, 0x79, 0x79, 0x74, 0xf6});
    check(mp::quantize<mp::mxfp6_e2m3>(exec, x), {131},
          {0x00, 0x01, 0x01, 0x00, 0x20, 0x21, 0x21, 0x21, 0x00, 0x01, 0x03, 0x03, 0x01, 0x22, 0x24, 0x25,
           0x24, 0x00, 0x06, 0x0a, 0x0a, 0x04, 0x26, 0x30, 0x32, 0x2f, 0x01, 0x13, 0x1a, 0x19, 0x0f, 0x34});
    check(mp::quantize<mp::mxfp6_e3m2>(exec, x), {129},
          {0x03, 0x05, 0x05, 0x02, 0x23, 0x28, 0x2a, 0x28, 0x00, 0x0a, 0x0d, 0x0d, 0x08, 0x2a, 0x30, 0x31,
           0x30, 0x02, 0x12, 0x15, 0x15, 0x10, 0x32, 0x38, 0x39, 0x37, 0x0a, 0x1a, 0x1d, 0x1d, 0x18, 0x3a});
    check(mp::quantize<mp::mxfp4>(exec, x), {131},
          {0x0, 0x0, 0x0, 0x0, 0x8, 0x8, 0x8, 0x8, 0x0, 0x0, 0x1, 0x1, 0x0, 0x8, 0x9, 0x9,
           0x9, 0x0, 0x1, 0x2, 0x2, 0x1, 0xa, 0xc, 0xd, 0xc, 0x0, 0x5, 0x6, 0x6, 0x4, 0xd});
    const auto nv = mp::quantize<mp::nvfp4>(exec, x);
    CHECK(std::bit_cast<std::uint32_t>(nv.tensor_scale()) == 1021996471);
    check(nv, {0x68, 0x7e}, {0x1, 0x1, 0x1, 0x1, 0x9, 0xa, 0xb, 0xa, 0x0, 0x3, 0x5, 0x5, 0x2, 0xb, 0xe, 0xf,
                             0x9, 0x0, 0x2, 0x3, 0x3, 0x1, 0xa, 0xd, 0xd, 0xc, 0x0, 0x6, 0x7, 0x7, 0x4, 0xe});
}

TEST_CASE("MXINT8 counts 64ths, symmetrically") {
    const std::vector<float> x{1, 127.0f / 64, -127.5f / 64, -2 + 0x1p-20f, 0.5f / 64, 1.5f / 64};
    const auto q = mp::quantize<mp::mxint8>(mp::cpu{}, x);
    CHECK(q.scales()[0].bits() == 127);
    const int expected[] = {64, 127, -127, -127, 0, 2};
    for (int i = 0; i < 6; ++i) CHECK(q.element(0, i).count_of_64ths() == expected[i]);
    CHECK(float(mp::mx_int8::from_bits(0x80)) == -2);
    mp::mxint8 made(1, 2);
    made.bytes()[0] = std::byte{0x80};
    made.scales()[0] = mp::float8_e8m0fnu{4};
    CHECK(made.value(0, 0) == -8);
    std::vector<float> back(2);
    mp::dequantize(mp::cpu{}, made, back);
    CHECK(back[0] == -8);
}

TEST_CASE("values come back rounded once to any type, into any layout") {
    oracle::random_bits random(9);
    const std::vector<float> x = corner_values<float>(37 * 70, 32, random);
    const auto q = mp::quantize<mp::mxfp6_e2m3>(mp::cpu{}, mp::row_major(x.data(), 37, 70),
                                                {.direction = mp::block_direction::along_columns});
    const mp::projection p{mp::rounding::upward, mp::saturation::finite};
    std::vector<mp::half> halves(70 * 40);
    mp::dequantize(mp::cpu{.threads = 2}, q, mp::column_major(halves.data(), 37, 70, 40), p);
    std::vector<double> doubles(37 * 70);
    mp::dequantize(mp::cpu{}, q, mp::row_major(doubles.data(), 37, 70));
    for (int r = 0; r < 37; ++r) {
        for (int c = 0; c < 70; ++c) {
            const double exact = double(q.element(r, c)) * double(q.scale(r, c));
            CHECK(doubles[static_cast<std::size_t>(r * 70 + c)] == exact);
            CHECK(halves[static_cast<std::size_t>(c * 40 + r)].bits() ==
                  mp::round_to<mp::half>(exact, p).bits());
        }
    }
    for (int i = 0; i < 70; ++i) CHECK(halves[static_cast<std::size_t>(i * 40 + 38)].bits() == 0);
}

TEST_CASE("large matrices are the same for every number of threads") {
    oracle::random_bits random(10);
    const std::vector<float> x = corner_values<float>(300 * 1111, 32, random);
    for (const auto direction : {mp::block_direction::along_rows, mp::block_direction::along_columns}) {
        const mp::quantize_options options{.element = mp::stochastic(0), .seed = 3, .direction = direction};
        const auto view = mp::row_major(x.data(), 300, 1111);
        const auto one = mp::quantize<mp::nvfp4>(mp::cpu{}, view, options);
        const auto four = mp::quantize<mp::nvfp4>(mp::cpu{.threads = 4}, view, options);
        CHECK(std::ranges::equal(one.bytes(), four.bytes()));
        CHECK(std::ranges::equal(one.scales(), four.scales(), {}, &mp::float8_e4m3fn::bits,
                                 &mp::float8_e4m3fn::bits));
        CHECK(one.tensor_scale() == four.tensor_scale());
        const auto a = mp::report_quantization(mp::cpu{}, view, one);
        const auto b = mp::report_quantization(mp::cpu{.threads = 4}, view, one);
        CHECK(a.squared_error == b.squared_error);
        CHECK(a.clamped == b.clamped);
    }
    // One vector of all elements, cut into segments.
    const auto one = mp::quantize<mp::mxfp6_e3m2>(mp::cpu{}, x);
    const auto four = mp::quantize<mp::mxfp6_e3m2>(mp::cpu{.threads = 4}, x);
    CHECK(std::ranges::equal(one.bytes(), four.bytes()));
}

#if TEST_CAN_FLUSH
TEST_CASE_TEMPLATE("blocks of tiny numbers are the same on a processor that flushes them", Quantized,
                   mp::mxfp8_e4m3, mp::mxfp8_e5m2, mp::mxfp4, mp::mxint8, mp::nvfp4) {
    oracle::random_bits random(11);
    std::vector<float> x;
    for (int i = 0; i < 64 * 96; ++i) {
        const int exponent = -150 + i / 32 % 96 / 2 + static_cast<int>(random.below(16));
        x.push_back(std::ldexp(1 + static_cast<float>(random.below(1 << 20)) / (1 << 20), exponent));
    }
    std::vector<float> back(x.size());
    std::vector<float> back_flushing(x.size());
    const auto expected = mp::quantize<Quantized>(mp::cpu{}, x);
    mp::dequantize(mp::cpu{}, expected, back);
    Quantized quantized;
    {
        const flushing_scope flushing;
        quantized = mp::quantize<Quantized>(mp::cpu{}, x);
        mp::dequantize(mp::cpu{}, quantized, back_flushing);
    }
    CHECK(std::ranges::equal(quantized.bytes(), expected.bytes()));
    CHECK(std::bit_cast<std::uint32_t>(quantized.tensor_scale()) ==
          std::bit_cast<std::uint32_t>(expected.tensor_scale()));
    for (std::size_t i = 0; i < x.size(); ++i) {
        REQUIRE(std::bit_cast<std::uint32_t>(back[i]) == std::bit_cast<std::uint32_t>(back_flushing[i]));
    }
}
#endif

TEST_CASE("the report counts and measures") {
    const std::vector<float> x{7.9f, 1, 0.1f, 0, -2, std::numeric_limits<float>::infinity()};
    const auto q = mp::quantize<mp::mxfp4>(mp::cpu{}, x, {.nonfinite = mp::nonfinite_handling::by_element});
    const auto report = mp::report_quantization(mp::cpu{}, mp::row_major(x.data(), 1, 6), q);
    CHECK(report.count == 6);
    CHECK(report.nonfinite == 1);
    CHECK(report.clamped == 1);
    CHECK(report.flushed == 1);
    CHECK(report.max_error == double{7.9f} - 6);
    const double error = (double{7.9f} - 6) * (double{7.9f} - 6) + double{0.1f} * double{0.1f};
    const double square = double{7.9f} * double{7.9f} + 1 + double{0.1f} * double{0.1f} + 4;
    CHECK(report.relative_error() == doctest::Approx(std::sqrt(error / square)));
}

TEST_CASE("wrong arguments are refused by name") {
    std::vector<float> x(12);
    const auto view = mp::row_major(x.data(), 3, 4);
    CHECK(message_of([&] { (void)mp::mxfp4(-1, 2); }) ==
          "mp::block_scaled: rows is -1; it must not be negative");
    CHECK(message_of([&] { (void)mp::quantize<mp::mxfp4>(mp::cpu{.threads = 0}, view); }) ==
          "mp::quantize: exec.threads is 0; it must be at least 1");
    CHECK(message_of([&] { (void)mp::quantize<mp::mxfp4>(mp::cpu{}, mp::row_major(x.data(), 3, 4, 3)); }) ==
          "mp::quantize: from.leading_dimension is 3; it must be at least from.columns, which is 4");
    CHECK(message_of([&] { (void)mp::quantize<mp::mxfp4>(mp::cpu{}, view, {.tensor_scale = 1}); }) ==
          "mp::quantize: options.tensor_scale is 1; it must be 0, as the format has no tensor scale");
    CHECK(
        message_of([&] { (void)mp::quantize<mp::nvfp4>(mp::cpu{}, view, {.tensor_scale = -1}); }) ==
        "mp::quantize: options.tensor_scale is -1; it must be a positive normal float, or 0 to be computed");
    const auto q = mp::quantize<mp::mxfp4>(mp::cpu{}, view);
    std::vector<float> eleven(11, 5.0f);
    CHECK(message_of([&] { mp::dequantize(mp::cpu{}, q, mp::row_major(x.data(), 4, 3)); }) ==
          "mp::dequantize: to.rows is 4; it must equal the quantised matrix's rows, which is 3");
    CHECK(message_of([&] { mp::dequantize(mp::cpu{}, q, eleven); }) ==
          "mp::dequantize: to.rows is 11; it must equal the quantised matrix's rows, which is 3");
    CHECK(eleven[0] == 5);
    // Nothing to do is no error.
    CHECK(mp::quantize<mp::nvfp4>(mp::cpu{}, std::vector<float>{}).bytes().empty());
    CHECK(mp::quantize<mp::mxfp4>(mp::cpu{}, mp::row_major(x.data(), 5, 0)).scales().empty());
}
