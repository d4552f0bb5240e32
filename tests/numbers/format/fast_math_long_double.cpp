// SPDX-License-Identifier: MIT
// long double and __float128 on both sides of formats with less and with more range than double: exact or
// rounded once, in every rounding direction of the caller, and with -ffast-math. What goes in and comes out
// is put together from bits here, since arithmetic and comparisons mean little under these conditions.
// alone: it specialises templates of the oracle
#include <doctest/doctest.h>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <limits>

#include "oracle/library.hpp"
#include "oracle/random.hpp"

namespace {

/// Numbers of two bits, from 2^-32768 on.
struct far_below {
    static constexpr const char* name = "far below";
    static constexpr int exponent_bits = 16;
    static constexpr int fraction_bits = 1;
    static constexpr int bias = 32768;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr mp::nan_encoding nans = mp::nan_encoding::ieee;
};

}  // namespace

template <>
inline constexpr oracle::format oracle::format_of<mp::basic_float<far_below>> = {16, 1, 32768, true,
                                                                                 oracle::nan_codes::ieee};

namespace {

using mp::half;
using wide = mp::p3109<16, 2>;
using widest = mp::p3109<16, 1, mp::signedness::is_unsigned>;
__extension__ using uint128 = unsigned __int128;

/// The fraction bits of a type of 15 exponent bits below its leading one.
template <class T>
constexpr int fraction_bits = 112;
template <>
constexpr int fraction_bits<long double> = std::numeric_limits<long double>::digits - 1;

template <class T>
constexpr bool is_testable = std::numeric_limits<long double>::digits == 113;
#if MP_HAS_COMPILER_BINARY128
template <>
constexpr bool is_testable<mp::detail::compiler_binary128> = true;
#endif
#if defined(__x86_64__) || defined(__i386__)
template <>
constexpr bool is_testable<long double> = std::numeric_limits<long double>::digits == 64;
#endif

/// The number with this sign, exponent field and significand; the leading one is among its bits.
template <class T>
T compose(bool negative, int field, uint128 significand) {
    T result{};
    const auto top = static_cast<std::uint16_t>((negative ? 0x8000 : 0) | field);
    if constexpr (fraction_bits<T> == 63) {
        const auto bits = static_cast<std::uint64_t>(significand);
        std::memcpy(&result, &bits, 8);
        std::memcpy(reinterpret_cast<char*>(&result) + 8, &top, 2);
    } else if constexpr (fraction_bits<T> == 112) {
        const uint128 bits = uint128{top} << 112 | (significand & ((uint128{1} << 112) - 1));
        std::memcpy(&result, &bits, 16);
    }
    return result;
}

/// The 16 or 10 bytes of a number, for comparison.
template <class T>
bool same_bytes(const T& a, const T& b) {
    return std::memcmp(&a, &b, fraction_bits<T> == 63 ? 10 : sizeof a) == 0;
}

template <class T>
oracle::natural natural_of(T x) {
    return (oracle::natural(static_cast<std::uint64_t>(x >> 64)) << 64) +
           oracle::natural(static_cast<std::uint64_t>(x));
}

template <class Value, class T>
void compare_from(oracle::disagreements& wrong, oracle::random_bits& random) {
    constexpr int bits = fraction_bits<T>;
    const bool negative = random.below(2) != 0;
    // Around one, where most formats have their numbers, or anywhere; few bits, or many.
    const int field = random.below(2) == 0 ? 16383 - 20 + static_cast<int>(random.below(40))
                                           : static_cast<int>(random.below(0x7fff));
    uint128 fraction = (uint128{random.next()} << 64 | random.next()) >> (128 - bits);
    if (random.below(2) == 0)
        fraction &= ~((uint128{1} << (bits - 2 - static_cast<int>(random.below(12)))) - 1);
    if (random.below(4) == 0) fraction |= 1;
    const uint128 significand = field == 0 ? fraction : fraction | uint128{1} << bits;
    const T x = compose<T>(negative, field, significand);
    const oracle::dyadic value{natural_of(significand), (field == 0 ? 1 : field) - 16383 - bits};
    const oracle::format& f = oracle::format_of<Value>;
    const auto exact = exact_from_dyadic(f, negative, value);
    for (const oracle::mode m : oracle::modes) {
        const auto expected = finish(f, exact, m, oracle::saturate::none);
        const auto result = mp::round_to<Value>(x, {.round = oracle::library_rounding(m)});
        if (!matches(f, expected, result.bits())) {
            wrong.add("from", negative, field, natural_of(significand).bit_length(), name_of(m), "gives",
                      +result.bits(), "instead of", expected.code);
        }
    }
}

/// The number of T nearest to the code of a format, by its definition: exact unless it is beyond the range.
template <class T>
T expected_of(const oracle::format& f, std::uint64_t code) {
    constexpr int bits = fraction_bits<T>;
    const bool negative = is_negative(f, code);
    const uint128 one = uint128{1} << bits;
    if (is_zero(f, code)) return compose<T>(negative, 0, 0);
    if (is_infinite(f, code)) return compose<T>(negative, 0x7fff, one);
    const std::uint64_t magnitude = magnitude_code(f, code);
    int exponent = static_cast<int>(magnitude >> f.fraction_bits) - f.bias - f.fraction_bits;
    std::uint64_t significand = magnitude & ((std::uint64_t{1} << f.fraction_bits) - 1);
    if (magnitude >> f.fraction_bits == 0 && f.has_zero) {
        ++exponent;
    } else {
        significand |= std::uint64_t{1} << f.fraction_bits;
    }
    int top = exponent;
    for (std::uint64_t rest = significand >> 1; rest != 0; rest >>= 1) ++top;
    if (top > 16383) return compose<T>(negative, 0x7fff, one);
    if (top > -16383)
        return compose<T>(negative, top + 16383, uint128{significand} << (bits - (top - exponent)));
    const int places = exponent - (-16382 - bits);
    if (places >= 0) return compose<T>(negative, 0, uint128{significand} << places);
    // The formats that come here have two bits at most. In units of the smallest number 1/2 is a tie, which
    // goes to zero, and 3/2 one that goes to the even 2; 2/2 is 1, and 3/4 goes there.
    if (places == -1) return compose<T>(negative, 0, significand - 1);
    return compose<T>(negative, 0, places == -2 && significand == 3 ? 1 : 0);
}

template <class T, class Value>
void compare_to(oracle::disagreements& wrong, std::uint64_t step, std::uint64_t first = 0,
                std::uint64_t last = ~std::uint64_t{0}) {
    const oracle::format& f = oracle::format_of<Value>;
    for (std::uint64_t code = first; code < code_count(f) && code <= last; code += step) {
        const T result = static_cast<T>(oracle::value_of<Value>(code));
        if (is_nan(f, code)) continue;
        if (!same_bytes(result, expected_of<T>(f, code))) wrong.add("to", code);
    }
}

template <class T>
void check_everything() {
    if constexpr (is_testable<T>) {
        oracle::disagreements wrong;
        oracle::random_bits random(5);
        for (const int direction : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
            std::fesetround(direction);
            for (int n = 0; n < 1000; ++n) {
                compare_from<half, T>(wrong, random);
                compare_from<mp::bfloat16, T>(wrong, random);
                compare_from<mp::float8_e8m0fnu, T>(wrong, random);
                compare_from<wide, T>(wrong, random);
                compare_from<widest, T>(wrong, random);
            }
            compare_to<T, half>(wrong, 7);
            compare_to<T, mp::bfloat16>(wrong, 7);
            compare_to<T, mp::float8_e8m0fnu>(wrong, 1);
            compare_to<T, wide>(wrong, 3);
            compare_to<T, widest>(wrong, 3);
            compare_to<T, mp::basic_float<far_below>>(wrong, 97);
            // Around the smallest numbers of long double and __float128.
            compare_to<T, mp::basic_float<far_below>>(wrong, 1, 2 * (32768 - 16500), 2 * (32768 - 16440));
        }
        std::fesetround(FE_TONEAREST);
        INFO(wrong.first());
        CHECK(wrong.count == 0);

        // NaNs, by their leading bits; one without the quiet bit is invalid where flags are kept.
        constexpr int bits = fraction_bits<T>;
        const uint128 one = uint128{1} << bits;
        const uint128 quiet = one >> 1;
        const auto flags_of = [](T x) {
            mp::environment env;
            CHECK(mp::isnan(mp::round_to<half>(x, env)));
            return env.raised.to_unsigned();
        };
        CHECK(flags_of(compose<T>(false, 0x7fff, one | quiet)) == 0);
        CHECK(flags_of(compose<T>(true, 0x7fff, one | quiet | 1)) == 0);
        CHECK(flags_of(compose<T>(false, 0x7fff, one | 1)) == 16);
        CHECK(flags_of(compose<T>(true, 0x7fff, one | quiet >> 1)) == 16);
        CHECK(half(compose<T>(true, 0x7fff, one | quiet | quiet >> 3)).bits() == 0xfe40);
        CHECK(half(compose<T>(false, 0x7fff, one | quiet >> 1)).bits() == 0x7f00);
        CHECK(half(compose<T>(true, 0x7fff, one)).bits() == 0xfc00);
    }
}

}  // namespace

TEST_CASE("long double is read and written by its bits, whatever the caller's environment") {
    check_everything<long double>();
#if MP_HAS_COMPILER_BINARY128
    check_everything<mp::detail::compiler_binary128>();
#endif
}

TEST_CASE("what is no number of x87 is NaN, and the small numbers that are written twice count the same") {
    if constexpr (fraction_bits<long double> == 63 && is_testable<long double>) {
        mp::environment env;
        CHECK(mp::isnan(mp::round_to<half>(compose<long double>(false, 16383, 0x4000000000000000), env)));
        CHECK(env.raised.test(mp::status_flag::invalid));
        const auto pseudo = mp::round_to<wide>(compose<long double>(false, 0, uint128{1} << 63));
        const auto normal = mp::round_to<wide>(compose<long double>(false, 1, uint128{1} << 63));
        CHECK(pseudo.bits() == normal.bits());
    }
}

#if !defined(__FAST_MATH__)
TEST_CASE("constant expressions have the same long doubles") {
    static_assert(half(1.5L).bits() == 0x3e00 && half(-0.0L).bits() == 0x8000);
    static_assert(half(std::numeric_limits<long double>::infinity()).bits() == 0x7c00);
    if constexpr (std::numeric_limits<long double>::max_exponent == 16384) {
        constexpr wide large(0x1p1900L);
        static_assert(static_cast<long double>(large) == 0x1p1900L);
        static_assert(static_cast<long double>(-wide(0x1.8p-1900L)) == -0x1.8p-1900L);
        static_assert(static_cast<long double>(std::numeric_limits<widest>::max()) ==
                      std::numeric_limits<long double>::infinity());
        CHECK(wide(0x1p1900L).bits() == large.bits());
        volatile long double x = 0x1p-8000L;
        CHECK(static_cast<long double>(mp::p3109<16, 1>(x)) == x);
    }
}
#endif
