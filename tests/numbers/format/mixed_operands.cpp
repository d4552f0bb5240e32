// SPDX-License-Identifier: MIT
// Numbers beside built-in types: comparisons by exact values, arithmetic with integers in the format, and
// compound assignment rounded once, against the oracle's exact integers; and what converts to what.
#include <doctest/doctest.h>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

using mp::bfloat16;
using mp::half;

enum unscoped { three = 3, minus_two = -2 };
enum small_unscoped : signed char { minus_one = -1 };
enum yes_or_no : bool { yes = true };
enum class scoped { a = 1 };

/// What the oracle knows of an operand.
struct operand {
    bool nan = false;
    bool infinite = false;
    bool negative = false;
    oracle::dyadic magnitude{};
    [[nodiscard]] bool zero() const { return !infinite && magnitude.significand.is_zero(); }
};

operand operand_of_code(const oracle::format& f, std::uint64_t code) {
    if (is_nan(f, code)) return {true};
    if (is_infinite(f, code)) return {false, true, is_negative(f, code)};
    return {false, false, is_negative(f, code), value_of_magnitude(f, magnitude_code(f, code))};
}

template <class X>
operand operand_of(X x) {
    if constexpr (std::is_integral_v<X>) {
        const bool negative = x < X{0};
        const auto magnitude = static_cast<std::uint64_t>(x);
        return {false, false, negative, {oracle::natural(negative ? 0 - magnitude : magnitude), 0}};
    } else {
        return operand_of_code(oracle::format_of<X>, oracle::code_of(x));
    }
}

oracle::exact_result exact_sum(const oracle::format& f, const operand& a, operand b, bool negate_b) {
    b.negative = b.negative != negate_b;
    if (a.nan || b.nan) return oracle::exact_nan();
    if (a.infinite && b.infinite)
        return a.negative == b.negative ? oracle::exact_infinity(a.negative) : oracle::exact_nan();
    if (a.infinite || b.infinite) return oracle::exact_infinity(a.infinite ? a.negative : b.negative);
    return add_terms(f, a.negative, a.magnitude, b.negative, b.magnitude);
}

oracle::exact_result exact_product(const oracle::format& f, const operand& a, const operand& b) {
    const bool negative = a.negative != b.negative;
    if (a.nan || b.nan) return oracle::exact_nan();
    if (a.infinite || b.infinite)
        return a.zero() || b.zero() ? oracle::exact_nan() : oracle::exact_infinity(negative);
    return exact_from_dyadic(f, negative, product(a.magnitude, b.magnitude));
}

oracle::exact_result exact_quotient(const oracle::format& f, const operand& a, const operand& b) {
    const bool negative = a.negative != b.negative;
    if (a.nan || b.nan || (a.infinite && b.infinite) || (b.zero() && (a.zero() || f.is_p3109)))
        return oracle::exact_nan();
    if (a.infinite || b.zero()) return oracle::exact_infinity(negative);
    if (b.infinite || a.zero()) return oracle::exact_zero(negative, false);
    return locate(f, negative,
                  [&](const oracle::dyadic& y) { return compare(a.magnitude, product(y, b.magnitude)); });
}

/// -1, 0 or 1; 2 where they are not ordered.
int exact_order(const operand& a, const operand& b) {
    if (a.nan || b.nan) return 2;
    const auto sign = [](const operand& x) { return x.zero() ? 0 : x.negative ? -1 : 1; };
    if (sign(a) != sign(b)) return sign(a) < sign(b) ? -1 : 1;
    if (sign(a) == 0 || (a.infinite && b.infinite)) return 0;
    if (a.infinite || b.infinite) return a.infinite ? sign(a) : -sign(a);
    const auto order = compare(a.magnitude, b.magnitude);
    return order == 0 ? 0 : (order < 0) == (sign(a) > 0) ? -1 : 1;
}

template <class Value, class X>
void compare_once(oracle::disagreements& wrong, Value h, X x) {
    const oracle::format& f = oracle::format_of<Value>;
    const operand a = operand_of_code(f, h.bits());
    const operand b = operand_of(x);
    const auto check = [&](const char* what, const oracle::exact_result& exact, Value result) {
        const auto expected = finish(f, exact, oracle::mode::nearest_even, oracle::saturate::none);
        if (!matches(f, expected, result.bits()))
            wrong.add(h.bits(), what, x, "gives", +result.bits(), "instead of", expected.code);
    };
    Value result = h;
    check("+=", exact_sum(f, a, b, false), result += x);
    result = h;
    check("-=", exact_sum(f, a, b, true), result -= x);
    result = h;
    check("*=", exact_product(f, a, b), result *= x);
    result = h;
    check("/=", exact_quotient(f, a, b), result /= x);

    const int order = exact_order(a, b);
    const bool right = (h == x) == (order == 0) && (x == h) == (order == 0) && (h != x) == (order != 0) &&
                       (h < x) == (order == -1) && (x > h) == (order == -1) &&
                       (h <= x) == (order == -1 || order == 0) && (x >= h) == (order == -1 || order == 0) &&
                       (h > x) == (order == 1) && (x < h) == (order == 1) &&
                       (h >= x) == (order == 1 || order == 0) && (x <= h) == (order == 1 || order == 0) &&
                       ((h <=> x) < 0) == (order == -1) && ((x <=> h) < 0) == (order == 1) &&
                       ((h <=> x) == std::partial_ordering::unordered) == (order == 2);
    if (!right) wrong.add("order of", h.bits(), "and", x);

    if constexpr (std::is_integral_v<X>) {
        // First the integer is rounded to the format, then the result of the operation.
        const auto rounded = finish(f, exact_from_dyadic(f, b.negative, b.magnitude),
                                    oracle::mode::nearest_even, oracle::saturate::none);
        const operand c = operand_of_code(f, rounded.code);
        check("+", exact_sum(f, a, c, false), h + x);
        check("+ from the left", exact_sum(f, c, a, false), x + h);
        check("-", exact_sum(f, a, c, true), h - x);
        check("- from the left", exact_sum(f, c, a, true), x - h);
        check("*", exact_product(f, a, c), h * x);
        check("* from the left", exact_product(f, c, a), x * h);
        check("/", exact_quotient(f, a, c), h / x);
        check("/ from the left", exact_quotient(f, c, a), x / h);
    }
}

/// A float or double that lies on or near a number of the format, or half-way between two: where one rounding
/// and two give different results.
template <class X, class Value>
X near(oracle::random_bits& random, Value h) {
    const oracle::format& f = oracle::format_of<X>;
    std::uint64_t code = oracle::code_of(mp::round_to<X>(h));
    if (random.below(3) == 0) code ^= sign_bit(f);
    const std::uint32_t shift = random.below(static_cast<std::uint32_t>(f.fraction_bits));
    code += (std::uint64_t{random.below(9)} << shift) -
            (std::uint64_t{random.below(9)} << random.below(shift + 1));
    return oracle::value_of<X>(code & (code_count(f) - 1));
}

template <class X, class Value>
X some_operand(oracle::random_bits& random, Value h) {
    if constexpr (std::is_integral_v<X>) {
        if (random.below(3) == 0) return static_cast<X>(random.next() >> random.below(64));
        // In 64 unsigned bits, where nothing overflows.
        const auto x = static_cast<std::uint64_t>(static_cast<X>(h)) + random.below(5) - 2;
        return static_cast<X>(random.below(2) == 0 ? x : 0 - x);
    } else {
        const oracle::format& f = oracle::format_of<X>;
        const std::uint64_t specials[] = {0, 1, infinity_code(f), infinity_code(f) + 1, max_finite_code(f)};
        if (random.below(8) == 0)
            return oracle::value_of<X>(specials[random.below(5)] | (random.below(2) == 0 ? 0 : sign_bit(f)));
        return random.below(3) == 0 ? oracle::value_of<X>(weighted_code(random, oracle::format_of<X>))
                                    : near<X>(random, h);
    }
}

template <class Value, class X>
void compare_many(oracle::disagreements& wrong, int count) {
    oracle::random_bits random(7);
    for (int n = 0; n < count; ++n) {
        const Value h = oracle::value_of<Value>(weighted_code(random, oracle::format_of<Value>));
        compare_once(wrong, h, some_operand<X>(random, h));
    }
}

}  // namespace

TEST_CASE_TEMPLATE("numbers beside built-in types give what the oracle says", Value, half, bfloat16,
                   mp::tfloat32, mp::float8_e4m3fn, mp::float8_e5m2fnuz, mp::float8_e8m0fnu,
                   mp::float4_e2m1fn, mp::p3109<16, 1>) {
    oracle::disagreements wrong;
    constexpr int count = std::is_same_v<Value, mp::p3109<16, 1>> ? 500 : 2000;
    compare_many<Value, float>(wrong, count);
    compare_many<Value, double>(wrong, count);
    compare_many<Value, std::int32_t>(wrong, count);
    compare_many<Value, std::uint32_t>(wrong, count);
    compare_many<Value, std::int64_t>(wrong, count);
    compare_many<Value, std::uint64_t>(wrong, count);
    compare_many<Value, signed char>(wrong, count);
    compare_many<Value, unsigned short>(wrong, count);
    INFO(wrong.first());
    CHECK(wrong.count == 0);
}

TEST_CASE("rounding to float on the way would be seen") {
    // 1 + (2^-11 + 2^-40) lies above the middle of two numbers of half, and on it once it is a float.
    half h{1};
    h += 0x1p-11 + 0x1p-40;
    CHECK(h.bits() == 0x3c01);
    h = half{1};
    h += 0x1.000002p-11f;
    CHECK(h.bits() == 0x3c01);
    CHECK(half(half{1} + 0x1.000002p-11f).bits() == 0x3c00);
    // 1 + 2049 exactly is 2050; 2049 is no number of half.
    h = half{1};
    CHECK((h += 2049) == 2050);
    CHECK(half{1} + 2049 == 2048);
}

TEST_CASE("comparisons with integers are by value") {
    CHECK(half(2049) == 2048);
    CHECK(half(2049) != 2049);
    CHECK(half(2048) < 2049);
    CHECK(std::numeric_limits<half>::infinity() > std::numeric_limits<std::uint64_t>::max());
    CHECK(-std::numeric_limits<half>::infinity() < std::numeric_limits<std::int64_t>::min());
    CHECK_FALSE(std::numeric_limits<half>::quiet_NaN() == 0);
    CHECK_FALSE(std::numeric_limits<half>::quiet_NaN() < 0);
    CHECK(std::numeric_limits<half>::quiet_NaN() != 0);
    CHECK(std::numeric_limits<bfloat16>::denorm_min() > 0.0f);
    CHECK(std::numeric_limits<bfloat16>::denorm_min() > 0);
    CHECK(std::numeric_limits<bfloat16>::denorm_min() < std::numeric_limits<float>::min());
    CHECK(half(-0.0f) == 0);
    CHECK(half(1) == true);
    CHECK(half(3) == three);
    CHECK(half(-1) == minus_one);
    CHECK(half(1) < 1.5L);
}

TEST_CASE("every bit of a long operand counts") {
    __extension__ using int128 = __int128;
    const bfloat16 x{0x1p100};
    const int128 same = int128{1} << 100;
    CHECK(x == same);
    CHECK(x < same + 1);
    CHECK(x > same - 1);
    CHECK(-x > -same - 1);
    CHECK_FALSE(x == same + 1);
#if MP_HAS_COMPILER_BINARY128
    const mp::detail::compiler_binary128 slightly_more = 1 + mp::detail::compiler_binary128{0x1p-100};
    CHECK(half(1) < slightly_more);
    CHECK(half(-1) > -slightly_more);
    CHECK_FALSE(half(1) == slightly_more);
#endif
}

TEST_CASE("types of mixed expressions") {
    const half h{2.5f};
    static_assert(std::is_same_v<decltype(h + 1), half> && std::is_same_v<decltype(1u - h), half>);
    static_assert(std::is_same_v<decltype(h * 1LL), half> && std::is_same_v<decltype('a' / h), half>);
    static_assert(std::is_same_v<decltype(h + true), half> && std::is_same_v<decltype(three * h), half>);
    static_assert(std::is_same_v<decltype(h + 1.0f), float> && std::is_same_v<decltype(1.0f / h), float>);
    static_assert(std::is_same_v<decltype(h - 1.0), double> && std::is_same_v<decltype(1.0 * h), double>);
    static_assert(std::is_same_v<decltype(h + 1.0L), long double>);
#if MP_HAS_COMPILER_BINARY16
    static_assert(std::is_same_v<decltype(h + mp::detail::compiler_binary16{}), float>);
#endif
    CHECK(h + 1.0f == 3.5f);
    CHECK(1.0 - h == -1.5);
    CHECK(h * 2.0L == 5.0L);
    CHECK(h + true == 3.5f);
    CHECK(h + minus_two == 0.5f);

    float f = 1;
    CHECK((f += h) == 3.5f);
    CHECK((f -= h) == 1.0f);
    CHECK((f *= h) == 2.5f);
    CHECK((f /= h) == 1.0f);
    double d = 0.1;
    CHECK((d += h) == 0.1 + 2.5);
    long double l = 1;
    CHECK((l *= h) == 2.5L);

    half sum{};
    sum += true;
    sum += three;
    sum -= yes;
    sum *= minus_one;
    CHECK(sum == -3);
}

TEST_CASE("what converts to what") {
    // Exact, so silently; a number never becomes an integer unless it is asked to.
    static_assert(std::is_convertible_v<half, float> && std::is_convertible_v<half, double> &&
                  std::is_convertible_v<half, long double>);
    static_assert(!std::is_convertible_v<half, int> && !std::is_convertible_v<half, unsigned char> &&
                  !std::is_convertible_v<half, long long> && !std::is_convertible_v<half, std::size_t>);
    static_assert(std::is_constructible_v<int, half> && std::is_constructible_v<long long, half>);
    static_assert(!std::is_convertible_v<float, half> && !std::is_convertible_v<int, half> &&
                  !std::is_convertible_v<unscoped, half>);
    static_assert(!std::is_assignable_v<half&, float> && !std::is_assignable_v<half&, int>);
    static_assert(std::is_constructible_v<half, unscoped> && !std::is_constructible_v<half, scoped>);
    static_assert(half(three) == 3 && half(minus_one) == -1 && half(yes) == 1 && half(true) == 1);

    const half h{2.75f};
    CHECK(static_cast<int>(h) == 2);
    CHECK(static_cast<int>(-h) == -2);
    CHECK(static_cast<signed char>(std::numeric_limits<half>::infinity()) == 127);
    CHECK(static_cast<int>(std::numeric_limits<half>::quiet_NaN()) == 0);
    CHECK(static_cast<long double>(h) == 2.75L);
    CHECK(std::sqrt(h * h) == 2.75f);  // of float: the conversion to it is the only one that is silent
    if (h) CHECK(static_cast<bool>(h));
    if (half(0)) CHECK(false);
    const std::vector<half> numbers{half(1.5f), half(-2.5f)};
    CHECK(std::vector<float>(numbers.begin(), numbers.end()) == std::vector<float>{1.5f, -2.5f});
    CHECK(std::vector<double>(numbers.begin(), numbers.end()) == std::vector<double>{1.5, -2.5});
    const auto relu = [](half x) -> float { return x > 0 ? x : 0.0f; };
    CHECK(relu(half(0.5f)) == 0.5f);
    CHECK(relu(half(-0.5f)) == 0);
}

TEST_CASE("mixed expressions are constant expressions") {
    constexpr half h = [] {
        half x{3};
        x += 0.1f;
        x *= 2;
        x -= 1.0;
        x /= 3u;
        return x;
    }();
    static_assert(h > 1 && h < 2.0f && 2 * h + 1 > 4.0);
    static_assert(half(2048) != 2049 && half(2048) < 0x1p100L);
}
