// SPDX-License-Identifier: MIT
// Compiled twice: as the rest of the tests, and with -ffast-math. The results of mathematical functions are
// the same bits either way, and with every compiler: sums over all codes, recorded from a build whose every
// result was compared with MPFR.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <doctest/doctest.h>
#include <cstdint>

namespace {

/// A hash of the results for all codes of a format, in two rounding modes.
template <class Value, class Function>
std::uint32_t checksum(Function function) {
    std::uint32_t sum = 2166136261;
    const auto add = [&](Value x) { sum = (sum ^ (mp::isnan(x) ? 0xffffU : x.bits())) * 16777619U; };
    for (std::uint32_t code = 0; code < 65536; ++code) {
        const Value x = Value::from_bits(static_cast<std::uint16_t>(code));
        add(function(x, mp::projection{}));
        add(function(x, mp::projection{.round = mp::rounding::upward}));
    }
    return sum;
}

}  // namespace

TEST_CASE("mathematical functions are the same bits whatever the compiler assumes about floats") {
    using mp::bfloat16;
    using mp::half;
    using mp::projection;
    CHECK(checksum<half>([](half x, projection p) { return mp::cbrt(x, p); }) == 0x3199a0c0U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::cbrt(x, p); }) == 0x607174daU);
    CHECK(checksum<half>([](half x, projection p) { return mp::rsqrt(x, p); }) == 0xd4405df5U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::rsqrt(x, p); }) == 0x3c8d3f51U);
    CHECK(checksum<half>([](half x, projection p) { return mp::exp(x, p); }) == 0x9a0c2b7fU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::exp(x, p); }) == 0xe5a550adU);
    CHECK(checksum<half>([](half x, projection p) { return mp::exp2(x, p); }) == 0xe96217caU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::exp2(x, p); }) == 0xc9911a6bU);
    CHECK(checksum<half>([](half x, projection p) { return mp::exp10(x, p); }) == 0x29196124U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::exp10(x, p); }) == 0x85eaebbfU);
    CHECK(checksum<half>([](half x, projection p) { return mp::expm1(x, p); }) == 0x65a99490U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::expm1(x, p); }) == 0x113afb9fU);
    CHECK(checksum<half>([](half x, projection p) { return mp::log(x, p); }) == 0xd9ab9e3eU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log(x, p); }) == 0x22eee359U);
    CHECK(checksum<half>([](half x, projection p) { return mp::log2(x, p); }) == 0x1a62cc9bU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log2(x, p); }) == 0xd791d307U);
    CHECK(checksum<half>([](half x, projection p) { return mp::log10(x, p); }) == 0xde311d86U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log10(x, p); }) == 0x5ee56920U);
    CHECK(checksum<half>([](half x, projection p) { return mp::log1p(x, p); }) == 0xfe01170dU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log1p(x, p); }) == 0xf87187b5U);
    CHECK(checksum<half>([](half x, projection p) { return mp::sin(x, p); }) == 0x69200350U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::sin(x, p); }) == 0xf972ef0eU);
    CHECK(checksum<half>([](half x, projection p) { return mp::cos(x, p); }) == 0x6b4e7bd5U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::cos(x, p); }) == 0x55f92465U);
    CHECK(checksum<half>([](half x, projection p) { return mp::tan(x, p); }) == 0x262cbe9eU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::tan(x, p); }) == 0x676b35caU);
    CHECK(checksum<half>([](half x, projection p) { return mp::asin(x, p); }) == 0x8e63c841U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::asin(x, p); }) == 0x692c4921U);
    CHECK(checksum<half>([](half x, projection p) { return mp::acos(x, p); }) == 0x7d731993U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::acos(x, p); }) == 0xa884e6feU);
    CHECK(checksum<half>([](half x, projection p) { return mp::atan(x, p); }) == 0xb899985fU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::atan(x, p); }) == 0x006c1d77U);
    CHECK(checksum<half>([](half x, projection p) { return mp::sinpi(x, p); }) == 0x1dcc45bdU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::sinpi(x, p); }) == 0x7251c1d3U);
    CHECK(checksum<half>([](half x, projection p) { return mp::cospi(x, p); }) == 0xa6429b45U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::cospi(x, p); }) == 0x42d2753dU);
    CHECK(checksum<half>([](half x, projection p) { return mp::tanpi(x, p); }) == 0x21e91c0dU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::tanpi(x, p); }) == 0x37e4d9c9U);
    CHECK(checksum<half>([](half x, projection p) { return mp::sinh(x, p); }) == 0xc0bbe3a6U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::sinh(x, p); }) == 0x241d3448U);
    CHECK(checksum<half>([](half x, projection p) { return mp::cosh(x, p); }) == 0x28122e95U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::cosh(x, p); }) == 0xc224cc01U);
    CHECK(checksum<half>([](half x, projection p) { return mp::tanh(x, p); }) == 0x5991bcc6U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::tanh(x, p); }) == 0x85a29850U);
    CHECK(checksum<half>([](half x, projection p) { return mp::asinh(x, p); }) == 0xd6deb210U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::asinh(x, p); }) == 0x3378c73aU);
    CHECK(checksum<half>([](half x, projection p) { return mp::acosh(x, p); }) == 0x840d8859U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::acosh(x, p); }) == 0x4b9440eeU);
    CHECK(checksum<half>([](half x, projection p) { return mp::atanh(x, p); }) == 0x186a32b8U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::atanh(x, p); }) == 0xdedd89eaU);
    CHECK(checksum<half>([](half x, projection p) { return mp::erf(x, p); }) == 0x9397addeU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::erf(x, p); }) == 0xfc743402U);
    CHECK(checksum<half>([](half x, projection p) { return mp::erfc(x, p); }) == 0xc5da39b8U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::erfc(x, p); }) == 0x58628e2cU);
    CHECK(checksum<half>([](half x, projection p) { return mp::tgamma(x, p); }) == 0x896c93aeU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::tgamma(x, p); }) == 0xba293076U);
    CHECK(checksum<half>([](half x, projection p) { return mp::lgamma(x, p); }) == 0x5357355bU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::lgamma(x, p); }) == 0x009e436dU);
    CHECK(checksum<half>([](half x, projection p) { return mp::pow(x, half{1.7f}, p); }) == 0x706fdf86U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::pow(x, bfloat16{1.7f}, p); }) ==
          0xdaf79cb3U);
    CHECK(checksum<half>([](half x, projection p) { return mp::atan2(x, half{-0.3f}, p); }) == 0xd4680ee8U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::atan2(x, bfloat16{-0.3f}, p); }) ==
          0xc15ec176U);
    CHECK(checksum<half>([](half x, projection p) { return mp::hypot(x, half{2.1f}, p); }) == 0x70785dd9U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::hypot(x, bfloat16{2.1f}, p); }) ==
          0x204c88e5U);
    CHECK(checksum<half>([](half x, projection p) { return mp::asinpi(x, p); }) == 0x76b3031eU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::asinpi(x, p); }) == 0xe308c9d4U);
    CHECK(checksum<half>([](half x, projection p) { return mp::acospi(x, p); }) == 0xf7d5514cU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::acospi(x, p); }) == 0x3f457452U);
    CHECK(checksum<half>([](half x, projection p) { return mp::atanpi(x, p); }) == 0x1b40c3c1U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::atanpi(x, p); }) == 0x7c45a7b7U);
    CHECK(checksum<half>([](half x, projection p) { return mp::exp2m1(x, p); }) == 0x36c68c98U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::exp2m1(x, p); }) == 0x4f941f27U);
    CHECK(checksum<half>([](half x, projection p) { return mp::exp10m1(x, p); }) == 0x23588d24U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::exp10m1(x, p); }) == 0x1ecde0e8U);
    CHECK(checksum<half>([](half x, projection p) { return mp::log2p1(x, p); }) == 0x284ba38dU);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log2p1(x, p); }) == 0x66355f67U);
    CHECK(checksum<half>([](half x, projection p) { return mp::log10p1(x, p); }) == 0xa599fae8U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) { return mp::log10p1(x, p); }) == 0x9daa7f52U);
    CHECK(checksum<half>([](half x, projection) { return hypot(pow(x, 1.1F), fmod(0x1.23456789p20, x)); }) ==
          0x5759c2b7U);
    CHECK(checksum<bfloat16>([](bfloat16 x, projection p) {
              return mp::rootn(mp::compoundn(x, 3, p), -5, p);
          }) == 0x6546368eU);
}
