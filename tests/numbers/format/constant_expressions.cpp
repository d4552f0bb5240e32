// SPDX-License-Identifier: MIT
// Everything works in constant expressions, where the integer core computes: the compiler is the test. What
// types can and cannot do is asserted as well.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>
#include <concepts>
#include <functional>
#include <limits>
#include <ostream>
#include <string_view>
#include <type_traits>

namespace {

using namespace mp::literals;  // NOLINT(google-build-using-namespace): what the namespace is for
using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::half;

// Literals, decimal and hexadecimal, rounded once from their digits.
static_assert((0.1_h).bits() == 0x2e66);
static_assert((1.00048828125_h).bits() == 0x3c00);
static_assert((1.00048828125000001_h).bits() == 0x3c01);
static_assert((1.000488281250000000000000000000000000000000000000000000000000000000000000000001_h).bits() ==
              0x3c01);
static_assert((65504_h).bits() == 0x7bff);
static_assert((65'504_h).bits() == 0x7bff);
static_assert((65519.999999_h).bits() == 0x7bff);
static_assert((0x1p-24_h).bits() == 1);
static_assert((0x1.8p0_h).bits() == 0x3e00);
static_assert((0XFFep4_h).bits() == 0x7bff);
static_assert((5.96e-8_h).bits() == 1);
static_assert((-1.5_h).bits() == 0xbe00);
static_assert((0.1_bf16).bits() == 0x3dcd);
static_assert((1.00390625_bf16).bits() == 0x3f80);
static_assert((1.00390625000001_bf16).bits() == 0x3f81);
static_assert((3.3895e38_bf16).bits() == 0x7f7f);
static_assert((448_e4m3).bits() == 0x7e);
static_assert((464_e4m3).bits() == 0x7e);
static_assert((57344_e5m2).bits() == 0x7b);
static_assert((0.25_e5m2).bits() == 0x34);

// Arithmetic.
static_assert(1.5_h + 2.25_h == 3.75_h);
static_assert(1.5_bf16 - 2.25_bf16 == -0.75_bf16);
static_assert(1.5_e4m3 * 2.25_e4m3 == 3.5_e4m3);
static_assert(1_e5m2 / 3_e5m2 == 0.3125_e5m2);
static_assert((65504_h + 16_h).bits() == 0x7c00);
static_assert((65504_h + 0x1p-24_h).bits() == 0x7bff);
static_assert(mp::add(65504_h, 0x1p-24_h, {.round = mp::rounding::upward}).bits() == 0x7c00);
static_assert(mp::add(65504_h, 65504_h, {.saturate = mp::saturation::finite}) == 65504_h);
static_assert(mp::subtract(1_h, 1_h, {.round = mp::rounding::downward}).bits() == 0x8000);
static_assert(mp::multiply(3_h, 0x1p-24_h, {.round = mp::rounding::toward_zero}).bits() == 3);
static_assert(mp::divide(1_h, 3_h, {.round = mp::rounding::upward}).bits() == 0x3556);
static_assert(mp::fma(3_h, 5_h, 7_h) == 22_h);
static_assert(mp::fma(half::from_bits(0x520b), half::from_bits(0x00e9), half::from_bits(0x2ff6)).bits() ==
              0x3001);
static_assert(mp::sqrt(2_h).bits() == 0x3da8);
static_assert(mp::sqrt(2_bf16, {.round = mp::rounding::upward}).bits() == 0x3fb6);
constexpr half compound() {
    half x = 1_h;
    x += 2_h;
    x *= 3_h;
    x -= 1_h;
    x /= 4_h;
    ++x;
    x--;
    return -x;
}
static_assert(compound() == -2_h);

// Conversions.
static_assert(half(0.1f).bits() == 0x2e66);
static_assert(half(0.1).bits() == 0x2e66);
static_assert(half(0.1L).bits() == 0x2e66);
static_assert(half(1 + 0x1p-11 + 0x1p-30).bits() == 0x3c01);
static_assert(half(1 + 0x1p-11L + 0x1p-60L).bits() ==
              (std::numeric_limits<long double>::digits > 60 ? 0x3c01 : 0x3c00));
static_assert(half(std::numeric_limits<long double>::infinity()).bits() == 0x7c00);
static_assert(half(std::numeric_limits<long double>::max()).bits() == 0x7c00);
static_assert(half(std::numeric_limits<long double>::denorm_min()).bits() == 0);
static_assert(bfloat16((1 << 30) + (1 << 22) + 1).bits() == 0x4e81);
static_assert(bfloat16(0.1_h).bits() == 0x3dcd);
static_assert(half(true) == 1_h);
static_assert(half('A') == 65_h);
static_assert(static_cast<float>(0.1_h) == 0x1.998p-4f);
static_assert(static_cast<double>(-0.1_bf16) == -0x1.9ap-4);
static_assert(static_cast<long double>(1.5_e5m2) == 1.5L);
static_assert(static_cast<int>(-2.75_h) == -2);
static_assert(static_cast<unsigned char>(300_h) == 255);
static_assert(static_cast<unsigned>(-1_h) == 0);
static_assert(static_cast<int>(std::numeric_limits<half>::quiet_NaN()) == 0);
static_assert(static_cast<long long>(std::numeric_limits<half>::infinity()) ==
              std::numeric_limits<long long>::max());
static_assert(static_cast<bool>(0.5_h) && !static_cast<bool>(-0_h));
static_assert(mp::round_to<float8_e4m3fn>(1000.0, {.saturate = mp::saturation::finite}) == 448_e4m3);
static_assert(mp::isnan(mp::round_to<float8_e4m3fn>(1000.0)));
static_assert(mp::round_to<half>(1.0f / 3, {.round = mp::rounding::to_odd}).bits() == 0x3555);
static_assert(mp::round_to<float>(1.0 / 3, {.round = mp::rounding::upward}) > 1.0 / 3);
static_assert(mp::round_to<double>(0.1_h) == 0x1.998p-4);

// Comparisons, classification, limits, hash.
static_assert(1_h < 2_h && 2_h > 1_h && 1_h <= 1_h && 1_h >= 1_h && 1_h != 2_h && 0_h == -0_h);
static_assert((1_h <=> 2_h) < 0);
static_assert(!(std::numeric_limits<half>::quiet_NaN() == std::numeric_limits<half>::quiet_NaN()));
static_assert(mp::isnan(std::numeric_limits<bfloat16>::signaling_NaN()) &&
              mp::isinf(-std::numeric_limits<half>::infinity()));
static_assert(mp::isfinite(1_h) && mp::isnormal(1_h) && !mp::isnormal(0x1p-24_h) && mp::signbit(-0_h));
static_assert(mp::isnan(std::numeric_limits<float>::quiet_NaN()) &&
              mp::isinf(std::numeric_limits<double>::infinity()));
static_assert(mp::fabs(-1_h) == 1_h && mp::copysign(1_h, -2_h) == -1_h);
static_assert(mp::nextafter(1_h, 2_h).bits() == 0x3c01);
static_assert(std::numeric_limits<half>::max() == 65504_h);

// Text.
constexpr bool prints_and_reads() {
    char text[24]{};
    const std::to_chars_result end = mp::to_chars(text, text + 24, 0.1_h);
    half x = 0_h;
    const std::from_chars_result read = mp::from_chars(text, end.ptr, x);
    return std::string_view(text, static_cast<std::size_t>(end.ptr - text)) == "0.1" &&
           read.ec == std::errc{} && x == 0.1_h;
}
static_assert(prints_and_reads());

// What the types are.
template <class Value, std::size_t Size>
constexpr bool is_a_plain_number =
    sizeof(Value) == Size && alignof(Value) == Size && std::is_trivially_copyable_v<Value> &&
    std::is_trivially_default_constructible_v<Value> && std::is_standard_layout_v<Value> &&
    std::has_unique_object_representations_v<Value> && std::is_nothrow_constructible_v<Value, float> &&
    std::regular<Value> && mp::number<Value> && mp::reduced<Value> && Value{}.bits() == 0;
static_assert(is_a_plain_number<half, 2> && is_a_plain_number<bfloat16, 2>);
static_assert(is_a_plain_number<float8_e4m3fn, 1> && is_a_plain_number<float8_e5m2, 1>);
static_assert(mp::number<float> && mp::number<double> && !mp::number<int> && !mp::number<long double>);
static_assert(!mp::reduced<float> && !mp::reduced<int>);

// What is implicit: only what is exact.
static_assert(std::is_convertible_v<half, float>);
static_assert(!std::is_convertible_v<float, half> && std::is_constructible_v<half, float>);
static_assert(!std::is_convertible_v<double, half> && !std::is_convertible_v<int, half>);
static_assert(!std::is_convertible_v<half, bfloat16> && std::is_constructible_v<half, bfloat16>);
static_assert(std::is_constructible_v<int, half> && std::is_constructible_v<half, int>);

// Two formats do not mix, and a format with a float is float.
template <class A, class B>
concept add_compiles = requires(A a, B b) { a + b; };
template <class A, class B>
concept multiply_compiles = requires(A a, B b) { a* b; };
template <class A, class B>
concept equality_compiles = requires(A a, B b) { a == b; };
template <class A, class B>
concept order_compiles = requires(A a, B b) { a < b; };
template <class A, class B>
constexpr bool mixes =
    add_compiles<A, B> || multiply_compiles<A, B> || equality_compiles<A, B> || order_compiles<A, B>;
static_assert(!mixes<half, bfloat16> && !mixes<bfloat16, half> && !mixes<float8_e4m3fn, float8_e5m2>);
static_assert(add_compiles<half, half> && order_compiles<half, half>);
static_assert(std::same_as<decltype(1_h + 1_h), half>);
static_assert(std::same_as<decltype(1_h + 1.0f), float>);
static_assert(std::same_as<decltype(1.0 * 1_h), double>);
static_assert(std::same_as<decltype(1_h + 1), half> && std::same_as<decltype(1_h + 1.0f), float>);

}  // namespace

TEST_CASE("what holds in constant expressions holds at run time") {
    CHECK(compound() == -2_h);
    CHECK(prints_and_reads());
    CHECK(std::hash<half>{}(0_h) == std::hash<half>{}(-0_h));
}
