// SPDX-License-Identifier: MIT
// Literals of every format: decimal and hexadecimal, with separators, rounded once.
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mp::literals;

// 1 + 2^-11 is the middle between two halves; the last digit decides.
static_assert(1.00048828125_h == 1_h);
static_assert(1.000488281250000000000000000000000000000000000000000000001_h == 0x1.004p0_h);
static_assert(65'504_h == 0x1.ffcp15_h && 0xffe0_h == 65504_h && 0X1P4_h == 16_h);
static_assert(0.000'000'06_h == 0x1p-24_h && 5.9604645e-8_h == 0x1p-24_h);
static_assert(0_h == 0.0_h && 00.5_h == 0.5_h && .5_h == 5e-1_h && 5._h == 5_h);
static_assert(1'0e-1'0_bf16 == 1e-9_bf16 && 0x1.8'0p1_bf16 == 3_bf16);

static_assert((0.1_h).bits() == 0x2e66);
static_assert((0.1_bf16).bits() == 0x3dcd);
static_assert((0.1_tf32).bits() == 0x1ee66);
static_assert((0.1_e4m3).bits() == 0x1d);
static_assert((0.1_e4m3ieee).bits() == 0x1d);
static_assert((0.1_e5m2).bits() == 0x2e);
static_assert((0.1_e3m4).bits() == 0x06);
static_assert((0.1_e4m3fnuz).bits() == 0x25);
static_assert((0.1_e5m2fnuz).bits() == 0x32);
static_assert((0.1_e4m3b11fnuz).bits() == 0x3d);
static_assert((0.1_e8m0).bits() == 0x7c);
static_assert((0.1_e2m3).bits() == 0x01);
static_assert((0.1_e3m2).bits() == 0x02);
static_assert((0.3_e2m1).bits() == 0x01);

static_assert(0x1.8p1_tf32 == 3_tf32 && 1'0_tf32 == 10_tf32);
static_assert(0x1.8p1_e4m3 == 3_e4m3 && 4'48_e4m3 == 0x1cp4_e4m3);
static_assert(0x1.8p1_e5m2 == 3_e5m2 && 57'344_e5m2 == 0xep12_e5m2);
static_assert(0x1.8p1_e4m3ieee == 3_e4m3ieee && 0x1.8p1_e3m4 == 3_e3m4);
static_assert(0x1.8p1_e4m3fnuz == 3_e4m3fnuz && 0x1.8p1_e5m2fnuz == 3_e5m2fnuz);
static_assert(0x1.8p1_e4m3b11fnuz == 3_e4m3b11fnuz && 0x1p-127_e8m0 == mp::float8_e8m0fnu::from_bits(0));
static_assert(0x1.8p1_e2m3 == 3_e2m3 && 0x1.8p1_e3m2 == 3_e3m2 && 0x1.8p1_e2m1 == 3_e2m1);

TEST_CASE("literals have a sign by the operator in front of them") {
    CHECK((-0.1_h).bits() == 0xae66);
    CHECK((-0_h).bits() == 0x8000);
}
