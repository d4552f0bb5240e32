// SPDX-License-Identifier: MIT
// Numbers convert explicitly to and from those of Boost.Multiprecision, exactly or rounded once.
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/frontends/interop/boost_multiprecision.hpp>
#include <mp/half.hpp>
#include <mp/p3109.hpp>

#include <boost/multiprecision/cpp_dec_float.hpp>

#include <doctest/doctest.h>
#include <concepts>
#include <cstdint>
#include <limits>
#include <ostream>

using boost::multiprecision::cpp_bin_float_50;
using boost::multiprecision::cpp_dec_float_50;
using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

static_assert(std::constructible_from<cpp_rational, mp::half> &&
              !std::convertible_to<mp::half, cpp_rational>);
static_assert(std::constructible_from<mp::half, cpp_rational> &&
              !std::convertible_to<cpp_rational, mp::half>);

TEST_CASE_TEMPLATE("every finite number has its value as a Boost number, and comes back", T, mp::half,
                   mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2fnuz, mp::p3109<8, 3>) {
    for (std::uint32_t code = 0; code <= mp::layout_of<typename T::format>::code_mask; ++code) {
        const T x = T::from_bits(static_cast<typename T::storage>(code));
        if (!mp::isfinite(x)) continue;
        const cpp_rational exact(x);
        REQUIRE(exact == cpp_rational(static_cast<double>(x)));
        REQUIRE(T{exact} == x);
        REQUIRE(static_cast<T>(static_cast<cpp_bin_float_50>(x)).bits() == x.bits());
        REQUIRE(T{cpp_dec_float_50(x)} == x);
        if (code % 64 == 0) REQUIRE(cpp_int(x) == cpp_int(static_cast<double>(x)));
    }
}

TEST_CASE("from Boost there is one rounding") {
    CHECK(mp::half{cpp_rational(1, 3)} == mp::half{1.0 / 3});
    // Just above a midpoint, by less than a double sees.
    const cpp_rational above = cpp_rational(1) + cpp_rational(1, 2048) + cpp_rational(1, pow(cpp_int(2), 90));
    CHECK(mp::half{above} == mp::half{1 + 0x1p-10});
    CHECK(mp::half{cpp_bin_float_50(above)} == mp::half{1 + 0x1p-10});
    CHECK(mp::bfloat16{cpp_int(1) << 200} == std::numeric_limits<mp::bfloat16>::infinity());
    CHECK(mp::half{cpp_dec_float_50("0.1")} == mp::half{0.1});
}

TEST_CASE("specials and integers") {
    constexpr auto infinity = std::numeric_limits<mp::half>::infinity();
    CHECK(isinf(cpp_bin_float_50(infinity)));
    CHECK(isnan(cpp_bin_float_50(std::numeric_limits<mp::half>::quiet_NaN())));
    CHECK(mp::half{-std::numeric_limits<cpp_bin_float_50>::infinity()} == -infinity);
    CHECK(cpp_int(mp::half{-2.75f}) == -2);
    CHECK(static_cast<cpp_int>(mp::bfloat16{0x1p100}) == cpp_int(1) << 100);
    CHECK_THROWS_AS((void)cpp_int(infinity), mp::argument_error);
    CHECK_THROWS_AS((void)cpp_rational(std::numeric_limits<mp::half>::quiet_NaN()), mp::argument_error);
}
