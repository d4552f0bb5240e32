// SPDX-License-Identifier: MIT
// Mathematical functions to nearest even take a path through double on the host. It gives the bits of the
// integers, which an environment asks for, in every rounding mode of the processor and where it flushes
// subnormals: all arguments of half, bfloat16, tfloat32, and of formats with other NaNs and infinities. That
// they are the same with -ffast-math is shown by the checksums of fast_math_math.cpp.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/p3109.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>
#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>

#include "numbers/format/flushing_scope.hpp"
#include "oracle/random.hpp"

namespace {

/// Calls visit(name, function) for every function of one operand that has a fast path.
template <class Visit>
void for_each_function(Visit visit) {
    visit("exp", [](auto x, auto&& c) { return mp::exp(x, c); });
    visit("exp2", [](auto x, auto&& c) { return mp::exp2(x, c); });
    visit("exp10", [](auto x, auto&& c) { return mp::exp10(x, c); });
    visit("expm1", [](auto x, auto&& c) { return mp::expm1(x, c); });
    visit("log", [](auto x, auto&& c) { return mp::log(x, c); });
    visit("log2", [](auto x, auto&& c) { return mp::log2(x, c); });
    visit("log10", [](auto x, auto&& c) { return mp::log10(x, c); });
    visit("log1p", [](auto x, auto&& c) { return mp::log1p(x, c); });
    visit("sin", [](auto x, auto&& c) { return mp::sin(x, c); });
    visit("cos", [](auto x, auto&& c) { return mp::cos(x, c); });
    visit("tan", [](auto x, auto&& c) { return mp::tan(x, c); });
    visit("sinpi", [](auto x, auto&& c) { return mp::sinpi(x, c); });
    visit("cospi", [](auto x, auto&& c) { return mp::cospi(x, c); });
    visit("tanpi", [](auto x, auto&& c) { return mp::tanpi(x, c); });
    visit("sinh", [](auto x, auto&& c) { return mp::sinh(x, c); });
    visit("cosh", [](auto x, auto&& c) { return mp::cosh(x, c); });
    visit("tanh", [](auto x, auto&& c) { return mp::tanh(x, c); });
    visit("asinh", [](auto x, auto&& c) { return mp::asinh(x, c); });
    visit("acosh", [](auto x, auto&& c) { return mp::acosh(x, c); });
    visit("atanh", [](auto x, auto&& c) { return mp::atanh(x, c); });
    visit("cbrt", [](auto x, auto&& c) { return mp::cbrt(x, c); });
    visit("rsqrt", [](auto x, auto&& c) { return mp::rsqrt(x, c); });
}

/// Compares both paths for all arguments of a format.
template <class Value>
void check_all_arguments() {
    for_each_function([](const char* name, auto function) {
        std::uint32_t differences = 0;
        std::uint32_t first = 0;
        for (std::uint32_t code = Value::layout::code_mask; code != ~std::uint32_t{0}; --code) {
            const Value x = Value::from_bits(static_cast<typename Value::storage>(code));
            mp::environment integers;
            if (function(x, mp::projection{}).bits() != function(x, integers).bits()) {
                ++differences;
                first = code;
            }
        }
        INFO(Value::format::name << ", " << name << ", first at code " << first);
        CHECK(differences == 0);
    });
}

/// Whether the results of a function, as the integers tell them to 53 bits, keep twice the distance from midpoints
/// that its accuracy asks for: all that are normal or subnormal numbers.
template <class Value, class Function>
void check_distances(const char* name, int accuracy, Function function) {
    using layout = typename Value::layout;
    std::uint32_t near = 0;
    std::uint32_t counted = 0;
    for (std::uint32_t code = 0; code <= layout::code_mask; ++code) {
        const Value x = Value::from_bits(static_cast<typename Value::storage>(code));
        const auto argument = std::bit_cast<std::uint64_t>(static_cast<double>(x));
        const std::uint64_t magnitude = function(argument) & 0x7fffffffffffffff;
        if (magnitude == 0 || magnitude >= 0x7ff0000000000000) continue;
        const auto result = std::bit_cast<double>(magnitude);
        // In units of half the last place midpoints are odd.
        const int exponent = std::max(std::ilogb(result), layout::min_exponent);
        const double halves = std::ldexp(result, layout::fraction_bits + 1 - exponent);
        if (exponent > layout::max_exponent) continue;
        const double midpoint = 2 * std::floor(halves / 2) + 1;
        ++counted;
        if (std::fabs(halves - midpoint) <= std::ldexp(std::min(halves, midpoint), 1 - accuracy)) ++near;
    }
    INFO(Value::format::name << ", " << name);
    CHECK(counted > 1000);
    CHECK(near == 0);
}

/// Compares both paths for random pairs, bases and exponents near one among them.
template <class Value>
void check_pairs(std::uint32_t count) {
    using storage = typename Value::storage;
    constexpr std::uint32_t code_mask = Value::layout::code_mask;
    const std::uint32_t one = Value(1.0f).bits();
    constexpr std::uint32_t window = 8 * Value::layout::hidden_bit;
    oracle::random_bits random(1);
    std::uint32_t differences = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto random_code = [&](bool near_one) {
            const auto any = static_cast<std::uint32_t>(random.below(std::uint64_t{code_mask} + 1));
            const auto near = one + static_cast<std::uint32_t>(random.below(2 * window)) - window;
            return static_cast<storage>(near_one ? near : any);
        };
        const Value x = Value::from_bits(random_code(i % 4 != 0));
        const Value y = Value::from_bits(random_code(i % 2 != 0));
        mp::environment integers;
        if (mp::pow(x, y).bits() != mp::pow(x, y, integers).bits()) ++differences;
        if (mp::hypot(x, y).bits() != mp::hypot(x, y, integers).bits()) ++differences;
    }
    CHECK(differences == 0);
}

/// Sets the rounding mode of the processor for a scope.
class rounding_scope {
public:
    explicit rounding_scope(int mode) { std::fesetround(mode); }
    ~rounding_scope() { std::fesetround(FE_TONEAREST); }
    rounding_scope(const rounding_scope&) = delete;
    rounding_scope& operator=(const rounding_scope&) = delete;
};

/// Numbers that lie on one side of one, or mostly so.
template <int Bias>
struct biased {
    static constexpr const char* name = "biased";
    static constexpr int exponent_bits = 5;
    static constexpr int fraction_bits = 6;
    static constexpr int bias = Bias;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
};

}  // namespace

TEST_CASE_TEMPLATE("functions through double are those of the integers for all biases", Value,
                   mp::basic_float<biased<-40>>, mp::basic_float<biased<-5>>, mp::basic_float<biased<0>>,
                   mp::basic_float<biased<2>>, mp::basic_float<biased<28>>, mp::basic_float<biased<50>>) {
    static_assert(mp::detail::has_fast_math<typename Value::format>);
    check_all_arguments<Value>();
    check_pairs<Value>(100000);
}

TEST_CASE_TEMPLATE("functions through double are those of the integers for all arguments", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, mp::basic_float<mp::formats::p3109<16, 11>>, mp::float8_e4m3fn,
                   mp::float8_e5m2fnuz) {
    static_assert(mp::detail::has_fast_math<typename Value::format>);
    check_all_arguments<Value>();
}

TEST_CASE_TEMPLATE("functions through double do not depend on the processor's rounding mode", Value, mp::half,
                   mp::bfloat16, mp::basic_float<mp::formats::p3109<16, 11>>) {
    for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
        const rounding_scope scope(mode);
        check_all_arguments<Value>();
    }
}

#if TEST_CAN_FLUSH
TEST_CASE_TEMPLATE("functions through double do not depend on the processor's treatment of subnormals", Value,
                   mp::half, mp::bfloat16) {
    const flushing_scope scope;
    check_all_arguments<Value>();
}
#endif

TEST_CASE_TEMPLATE("powers and hypotenuses through double are those of the integers", Value, mp::half,
                   mp::bfloat16, mp::tfloat32, mp::basic_float<mp::formats::p3109<16, 11>>) {
    check_pairs<Value>(300000);
    for (const int mode : {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
        const rounding_scope scope(mode);
        check_pairs<Value>(100000);
    }
}

TEST_CASE_TEMPLATE("functions that look for no midpoints have results far from all of them", Value, mp::half,
                   mp::bfloat16) {
    using namespace mp::detail;
    using binary64 = mp::formats::binary64;
    const auto exact = [](auto function) {
        return [=](std::uint64_t x) { return function_bits<binary64>(x, function, mp::projection{}); };
    };
    check_distances<Value>("exp", fast_accuracy, exact(evaluate_exp{}));
    check_distances<Value>("exp10", fast_accuracy, exact(evaluate_exp10{}));
    check_distances<Value>("log", fast_accuracy, exact(evaluate_log{}));
    check_distances<Value>("log2", fast_accuracy, exact(evaluate_log2{}));
    check_distances<Value>("log10", fast_accuracy, exact(evaluate_log10{}));
    check_distances<Value>("rsqrt", fast_accuracy, exact(evaluate_rsqrt{}));
    check_distances<Value>("sinpi", fast_wave_accuracy, exact(evaluate_half_turns<trigonometric::sine>{}));
    check_distances<Value>("cospi", fast_wave_accuracy, exact(evaluate_half_turns<trigonometric::cosine>{}));
    check_distances<Value>("sin", fast_wave_accuracy, exact(evaluate_trigonometric<trigonometric::sine>{}));
    check_distances<Value>("cos", fast_wave_accuracy, exact(evaluate_trigonometric<trigonometric::cosine>{}));
}

TEST_CASE("formats of more precision or range than double arithmetic is sure of stay with the integers") {
    CHECK_FALSE(mp::detail::has_fast_math<mp::formats::p3109<16, 12>>);
    CHECK_FALSE(mp::detail::has_fast_math<mp::formats::p3109<16, 6>>);
    CHECK_FALSE(mp::detail::has_fast_math<mp::formats::binary32>);
}
