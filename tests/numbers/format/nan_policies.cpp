// SPDX-License-Identifier: MIT
// What a projection says about NaN: which one comes out where the format has NaN, and what stands for it
// where the format has none. The expected codes are written down from the formats' definitions.
#include <doctest/doctest.h>

#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>
#include <mp/numbers/format/operations.hpp>

#include <cstdint>
#include <vector>

#include "oracle/library.hpp"

namespace {

constexpr mp::projection canonical{.nan = mp::nan_propagation::canonical};
constexpr mp::projection zero{.without_nan = mp::nan_substitute::zero};

constexpr mp::half negative_payload = mp::half::from_bits(0xfe15);

}  // namespace

TEST_CASE("a NaN keeps sign and payload by default and loses both by the canonical policy") {
    CHECK(mp::round_to<mp::half>(negative_payload).bits() == 0xfe15);
    CHECK(mp::round_to<mp::half>(negative_payload, canonical).bits() == 0x7e00);
    CHECK(mp::round_to<mp::bfloat16>(negative_payload).bits() == 0xffc2);
    CHECK(mp::round_to<mp::bfloat16>(negative_payload, canonical).bits() == 0x7fc0);
    // The row "-NaN -> E4M3" of the field's disagreements: kept by ONNX and ml_dtypes, 7f in CUDA.
    CHECK(mp::round_to<mp::float8_e4m3fn>(negative_payload).bits() == 0xff);
    CHECK(mp::round_to<mp::float8_e4m3fn>(negative_payload, canonical).bits() == 0x7f);
    CHECK(mp::round_to<mp::float8_e5m2>(static_cast<float>(negative_payload), canonical).bits() == 0x7e);
    CHECK(mp::round_to<mp::float8_e5m2>(static_cast<double>(negative_payload), canonical).bits() == 0x7e);
    CHECK(mp::round_to<mp::half>(static_cast<long double>(negative_payload), canonical).bits() == 0x7e00);
    CHECK(mp::round_to<mp::float8_e4m3fnuz>(negative_payload, canonical).bits() == 0x80);
}

TEST_CASE("the canonical policy holds for every operation on a NaN") {
    const mp::half one(1);
    const mp::half nan = negative_payload;
    CHECK(mp::add(nan, one, canonical).bits() == 0x7e00);
    CHECK(mp::subtract(one, nan, canonical).bits() == 0x7e00);
    CHECK(mp::multiply(nan, nan, canonical).bits() == 0x7e00);
    CHECK(mp::divide(one, nan, canonical).bits() == 0x7e00);
    CHECK(mp::fma(one, one, nan, canonical).bits() == 0x7e00);
    CHECK(mp::fma(nan, one, one, canonical).bits() == 0x7e00);
    CHECK(mp::sqrt(nan, canonical).bits() == 0x7e00);
    CHECK(mp::remainder(nan, one, canonical).bits() == 0x7e00);
    CHECK(mp::exp(nan, canonical).bits() == 0x7e00);
    CHECK(mp::atan2(one, nan, canonical).bits() == 0x7e00);
    // Arithmetic otherwise leaves the choice to the processor: x86 and ARM keep an operand, RISC-V has a NaN
    // of its own.
    const auto by_processor = [](mp::half result) {
        return result.bits() == 0xfe15 || result.bits() == 0x7e00;
    };
    CHECK(by_processor(mp::add(nan, one)));
    CHECK(by_processor(mp::fma(one, one, nan)));
    CHECK(mp::exp(nan).bits() == 0xfe15);
}

TEST_CASE("a signalling NaN is quieted and raises invalid under either policy") {
    for (const mp::nan_propagation policy : {mp::nan_propagation::keep, mp::nan_propagation::canonical}) {
        mp::environment env{.project = {.nan = policy}};
        const auto result = mp::round_to<mp::half>(mp::half::from_bits(0x7c01), env);
        CHECK(result.bits() == (policy == mp::nan_propagation::keep ? 0x7e01 : 0x7e00));
        CHECK(env.raised == mp::status_flag::invalid);
    }
}

TEST_CASE_TEMPLATE("formats without NaN take the largest number or zero for it", Value, mp::float4_e2m1fn,
                   mp::float6_e2m3fn, mp::float6_e3m2fn) {
    const Value largest = std::numeric_limits<Value>::max();
    for (const mp::half nan : {negative_payload, mp::half::from_bits(0x7e00)}) {
        CHECK(mp::round_to<Value>(nan).bits() == largest.bits());
        CHECK(mp::round_to<Value>(static_cast<float>(nan)).bits() == largest.bits());
        CHECK(mp::round_to<Value>(nan, zero).bits() == 0);
        CHECK(mp::round_to<Value>(static_cast<float>(nan), zero).bits() == 0);
    }
    // The same for the results of invalid operations, which raise their flag.
    mp::environment env{.project = zero};
    CHECK(mp::sqrt(Value(-1), env).bits() == 0);
    CHECK(mp::divide(Value(0), Value(0), env).bits() == 0);
    CHECK(env.raised == mp::status_flag::invalid);
    CHECK(mp::divide(Value(0), Value(0)).bits() == largest.bits());
}

TEST_CASE_TEMPLATE("formats with NaN are not touched by the substitute, nor numbers by either policy", Value,
                   mp::half, mp::bfloat16, mp::float8_e4m3fn, mp::float8_e5m2, mp::float8_e4m3fnuz,
                   mp::float6_e3m2fn, mp::float4_e2m1fn) {
    CHECK(mp::isnan(mp::round_to<Value>(std::numeric_limits<float>::quiet_NaN(), zero)) ==
          std::numeric_limits<Value>::has_quiet_NaN);
    for (unsigned code = 0; code <= 0xffff; ++code) {
        const mp::half x = mp::half::from_bits(static_cast<std::uint16_t>(code));
        if (mp::isnan(x)) continue;
        REQUIRE(mp::round_to<Value>(x, canonical).bits() == mp::round_to<Value>(x).bits());
        REQUIRE(mp::round_to<Value>(x, zero).bits() == mp::round_to<Value>(x).bits());
    }
}

TEST_CASE("conversion of arrays follows the policy") {
    const std::vector<float> from(37, static_cast<float>(negative_payload));
    std::vector<mp::float8_e4m3fn> to(from.size());
    mp::convert(mp::cpu{}, from, to, canonical);
    for (const auto x : to) CHECK(x.bits() == 0x7f);
    std::vector<mp::float4_e2m1fn> four(from.size());
    mp::convert(mp::cpu{}, from, four, zero);
    for (const auto x : four) CHECK(x.bits() == 0);
}
