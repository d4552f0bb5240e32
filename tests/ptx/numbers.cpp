// SPDX-License-Identifier: MIT
// Arithmetic: results by the text of the instruction set, worked out by hand.
#include "run.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using ptx_test::result32;
using ptx_test::result64;

TEST_CASE("integers: halves of products, quotients by zero, shifts beyond the width") {
    CHECK(result32("mul.hi.u32 %r2, %r10, %r11;", {0xFFFFFFFF, 0xFFFFFFFF}) == 0xFFFFFFFE);
    CHECK(result32("mul.hi.s32 %r2, %r10, %r11;", {0xFFFFFFFF, 2}) == 0xFFFFFFFF);
    CHECK(result32("mad.lo.s32 %r2, %r10, %r11, %r12;", {7, 0xFFFFFFFF, 5}) == 0xFFFFFFFE);
    CHECK(result64("mul.hi.u64 %rd2, %rd10, %rd11;", {~0ULL, ~0ULL}) == ~0ULL - 1);
    CHECK(result64("{ .reg .b32 a, b; cvt.u32.u64 a, %rd10; cvt.u32.u64 b, %rd11; mul.wide.s32 %rd2, a, b; }",
                   {0xFFFFFFFF, 3}) == ~0ULL - 2);
    CHECK(result32("div.s32 %r2, %r10, %r11;", {0xFFFFFFF9, 2}) == 0xFFFFFFFD);
    CHECK(result32("rem.s32 %r2, %r10, %r11;", {0xFFFFFFF9, 2}) == 0xFFFFFFFF);
    CHECK(result32("div.s32 %r2, %r10, %r11;", {0x80000000, 0xFFFFFFFF}) == 0x80000000);
    CHECK(result32("div.u32 %r2, %r10, %r11;", {5, 0}) == 0xFFFFFFFF);
    CHECK(result32("shl.b32 %r2, %r10, %r11;", {1, 32}) == 0);
    CHECK(result32("shr.s32 %r2, %r10, %r11;", {0x80000000, 40}) == 0xFFFFFFFF);
    CHECK(result32("abs.s32 %r2, %r10;", {0xFFFFFFFB}) == 5);
    CHECK(result32("min.s32 %r2, %r10, %r11;", {0xFFFFFFFF, 1}) == 0xFFFFFFFF);
    CHECK(result32("min.u32 %r2, %r10, %r11;", {0xFFFFFFFF, 1}) == 1);
}

TEST_CASE("bits: fields, permutations, funnels, tables, counts") {
    CHECK(result32("bfe.u32 %r2, %r10, 8, 12;", {0x12345678}) == 0x456);
    CHECK(result32("bfe.s32 %r2, %r10, 4, 8;", {0x00000F80}) == 0xFFFFFFF8);
    CHECK(result32("bfe.s32 %r2, %r10, 28, 8;", {0x80000000}) == 0xFFFFFFF8);
    CHECK(result32("bfi.b32 %r2, %r10, %r11, 8, 8;", {0xAB, 0x11223344}) == 0x1122AB44);
    CHECK(result32("prmt.b32 %r2, %r10, %r11, 0x7410;", {0x33221100, 0x77665544}) == 0x77441100);
    CHECK(result32("prmt.b32 %r2, %r10, %r11, 0x9180;", {0x00008011, 0}) == 0xFF800011);
    CHECK(result32("shf.l.wrap.b32 %r2, %r10, %r11, 36;", {0xF0000000, 0x00000001}) == 0x1F);
    CHECK(result32("shf.r.clamp.b32 %r2, %r10, %r11, 36;", {0xF0000000, 0x12345678}) == 0x12345678);
    CHECK(result32("lop3.b32 %r2, %r10, %r11, %r12, 0xE8;", {0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA}) ==
          0xE8E8E8E8);
    CHECK(result32("popc.b32 %r2, %r10;", {0xF00F0001}) == 9);
    CHECK(result32("clz.b32 %r2, %r10;", {0x00010000}) == 15);
    CHECK(result32("bfind.u32 %r2, %r10;", {0x00010000}) == 16);
    CHECK(result32("bfind.s32 %r2, %r10;", {0xFFFFFFFF}) == 0xFFFFFFFF);
    CHECK(result32("brev.b32 %r2, %r10;", {0x00000013}) == 0xC8000000);
}

TEST_CASE("carries: sums of two words, and what is borrowed") {
    CHECK(result32("add.cc.u32 %r3, %r10, %r11; addc.u32 %r2, %r12, %r13;", {0xFFFFFFFF, 1, 2, 3}) == 6);
    CHECK(result32("sub.cc.u32 %r3, %r10, %r11; subc.u32 %r2, %r12, %r13;", {0, 1, 5, 2}) == 2);
    CHECK(result32("sub.cc.u32 %r3, %r10, %r11; subc.u32 %r2, %r12, %r13;", {1, 1, 5, 2}) == 3);
    CHECK(result32("mad.lo.cc.u32 %r3, %r10, %r11, %r12; addc.u32 %r2, 0, 0;", {0x80000000, 1, 0x80000000}) ==
          1);
    CHECK(result32("mad.hi.cc.u32 %r3, %r10, %r11, %r12; madc.lo.u32 %r2, 2, 3, 0;",
                   {0xFFFFFFFF, 0xFFFFFFFF, 2}) == 7);
}

std::uint32_t of_floats(std::string_view instruction, std::vector<std::uint32_t> in) {
    return result32("mov.b32 %f10, %r10; mov.b32 %f11, %r11; mov.b32 %f12, %r12; " +
                        std::string(instruction) + " mov.b32 %r2, %f2;",
                    std::move(in));
}

TEST_CASE("floats: directions, fused products, flushing, NaN") {
    constexpr std::uint32_t one = 0x3F800000, tiny = 0x33000000;  // 2^-25
    CHECK(of_floats("add.rn.f32 %f2, %f10, %f11;", {one, tiny}) == one);
    CHECK(of_floats("add.rp.f32 %f2, %f10, %f11;", {one, tiny}) == one + 1);
    CHECK(of_floats("add.rm.f32 %f2, %f10, %f11;", {one, tiny | 0x80000000}) == one - 1);
    CHECK(of_floats("add.rz.f32 %f2, %f10, %f11;", {one, tiny | 0x80000000}) == one - 1);
    CHECK(of_floats("sub.rm.f32 %f2, %f10, %f11;", {one, one}) == 0x80000000);
    CHECK(of_floats("sub.rn.f32 %f2, %f10, %f11;", {one, one}) == 0);
    // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46, which a product rounded by itself would lose.
    CHECK(of_floats("fma.rn.f32 %f2, %f10, %f11, %f12;", {one + 1, one + 1, 0xBF800002}) == 0x28800000);
    CHECK(of_floats("mul.rn.f32 %f2, %f10, %f11;", {0x00800000, 0x3F000000}) == 0x00400000);
    CHECK(of_floats("mul.rn.ftz.f32 %f2, %f10, %f11;", {0x80800000, 0x3F000000}) == 0x80000000);
    CHECK(of_floats("add.ftz.f32 %f2, %f10, %f11;", {0x00000001, 0x00000001}) == 0);
    CHECK(of_floats("add.sat.f32 %f2, %f10, %f11;", {one, one}) == one);
    CHECK(of_floats("add.rn.f32 %f2, %f10, %f11;", {0x7F800000, 0xFF800000}) == 0x7FFFFFFF);
    CHECK(of_floats("div.rz.f32 %f2, %f10, %f11;", {one, 0x40400000}) == 0x3EAAAAAA);
    CHECK(of_floats("div.rn.f32 %f2, %f10, %f11;", {one, 0x40400000}) == 0x3EAAAAAB);
    CHECK(of_floats("sqrt.rn.f32 %f2, %f10;", {0x40000000}) == 0x3FB504F3);
    CHECK(of_floats("min.f32 %f2, %f10, %f11;", {0, 0x80000000}) == 0x80000000);
    CHECK(of_floats("max.f32 %f2, %f10, %f11;", {0x7FC00000, one}) == one);
    CHECK(of_floats("max.NaN.f32 %f2, %f10, %f11;", {0x7FC00000, one}) == 0x7FFFFFFF);
}

TEST_CASE("comparisons: NaN, and two predicates") {
    const auto compares = [](std::string_view relation, std::uint32_t a, std::uint32_t b) {
        return of_floats("setp." + std::string(relation) +
                             ".f32 %p1, %f10, %f11; selp.f32 %f2, 0f3F800000, 0f00000000, %p1;",
                         {a, b}) != 0;
    };
    constexpr std::uint32_t one = 0x3F800000, nan = 0x7FC00000;
    CHECK(compares("eq", 0, 0x80000000));
    CHECK_FALSE(compares("lt", one, nan));
    CHECK(compares("ltu", one, nan));
    CHECK_FALSE(compares("ne", one, nan));
    CHECK(compares("neu", one, nan));
    CHECK(compares("nan", one, nan));
    CHECK(compares("num", one, one));
    CHECK(result32("setp.lt.s32 %p1|%p2, %r10, %r11; selp.b32 %r2, 1, 0, %p2;", {5, 3}) == 1);
    CHECK(
        result32("setp.gt.u32 %p3, %r12, 0; setp.lt.and.s32 %p1, %r10, %r11, !%p3; selp.b32 %r2, 1, 0, %p1;",
                 {3, 5, 1}) == 0);
}

std::uint32_t converted(std::string_view instruction, std::uint32_t bits, std::uint32_t other = 0) {
    return result32("mov.b32 %f10, %r10; mov.b32 %f11, %r11; mov.b32 {%h1, %h2}, %r10; mov.b32 %r2, 0; " +
                        std::string(instruction),
                    {bits, other});
}

TEST_CASE("conversions: ties, limits, subnormals, saturation") {
    const auto half = [](std::string_view how, std::uint32_t bits) {
        return converted("cvt." + std::string(how) + ".f16.f32 %h3, %f10; cvt.u32.u16 %r2, %h3;", bits);
    };
    CHECK(half("rn", 0x3F801000) == 0x3C00);  // halfway: to even
    CHECK(half("rn", 0x3F803000) == 0x3C02);
    CHECK(half("rp", 0x3F800001) == 0x3C01);
    CHECK(half("rm", 0xBF800001) == 0xBC01);
    CHECK(half("rz", 0x3F803FFF) == 0x3C01);
    CHECK(half("rn", 0x477FF000) == 0x7C00);  // 65520
    CHECK(half("rz", 0x477FF000) == 0x7BFF);
    CHECK(half("rn.satfinite", 0x7F800000) == 0x7BFF);
    CHECK(half("rn", 0x33000000) == 0x0000);  // 2^-25 is half of the smallest
    CHECK(half("rn", 0x33000001) == 0x0001);
    CHECK(half("rn", 0xFFC00000) == 0x7FFF);
    // e4m3 in the high byte, e5m2 as well; a comes first and is high.
    CHECK(converted("cvt.rn.satfinite.e4m3x2.f32 %h3, %f10, %f11; cvt.u32.u16 %r2, %h3;", 0x43E80000,
                    0xC4000000) == 0x7EFE);
    CHECK(converted("cvt.rn.satfinite.e5m2x2.f32 %h3, %f10, %f11; cvt.u32.u16 %r2, %h3;", 0x47600000,
                    0x7FC00000) == 0x7B7F);
    CHECK(converted("cvt.rn.f16x2.e4m3x2 %r2, %h1;", 0x0138) == 0x18003C00);
    CHECK(converted("cvt.rn.bf16x2.f32 %r2, %f10, %f11;", 0x3F808000, 0x3F818000) == 0x3F803F82);
    CHECK(converted("cvt.rn.relu.bf16x2.f32 %r2, %f10, %f11;", 0xBF800000, 0x3F800000) == 0x00003F80);
    CHECK(converted("cvt.rna.tf32.f32 %r2, %f10;", 0x3F801000) == 0x3F802000);
    CHECK(converted("cvt.rzi.s32.f32 %r2, %f10;", 0xC0200000) == 0xFFFFFFFE);
    CHECK(converted("cvt.rni.s32.f32 %r2, %f10;", 0x40200000) == 2);
    CHECK(converted("cvt.rzi.s32.f32 %r2, %f10;", 0x7F800000) == 0x7FFFFFFF);
    CHECK(converted("cvt.rzi.u32.f32 %r2, %f10;", 0xBF800000) == 0);
    CHECK(converted("cvt.rzi.s32.f32 %r2, %f10;", 0x7FC00000) == 0);
    CHECK(result64("mov.b64 %d1, %rd10; cvt.rzi.s64.f64 %rd2, %d1;", {0x7FF8000000000000}) ==
          0x8000000000000000);
    CHECK(converted("cvt.s32.s8 %r2, %r10;", 0x1234FF80) == 0xFFFFFF80);
    CHECK(converted("cvt.sat.u8.s32 %r2, %r10;", 0x00000123) == 0xFF);
    CHECK(converted("cvt.rn.f32.s32 %f2, %r10; mov.b32 %r2, %f2;", 0x01000001) == 0x4B800000);
    CHECK(converted("cvt.rp.f32.u32 %f2, %r10; mov.b32 %r2, %f2;", 0x01000001) == 0x4B800001);
}

TEST_CASE("numbers of 16 bits, alone and in pairs") {
    CHECK(result32("fma.rn.f16x2 %r2, %r10, %r11, %r12;", {0x3C013C00, 0x3C013C00, 0xBC023C00}) ==
          0x00104000);
    CHECK(result32("add.rn.bf16x2 %r2, %r10, %r11;", {0x3F803F80, 0x3B803C80}) == 0x3F803F82);
    CHECK(result32("min.f16x2 %r2, %r10, %r11;", {0x7E003C00, 0x3C007E00}) == 0x3C003C00);
    CHECK(result32("max.NaN.f16x2 %r2, %r10, %r11;", {0x7E003C00, 0x3C004000}) == 0x7FFF4000);
    CHECK(result32("set.lt.u32.f16x2 %r2, %r10, %r11;", {0x3C004000, 0x40003C00}) == 0xFFFF0000);
}

}  // namespace
