// SPDX-License-Identifier: MIT
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "message_of.hpp"
#include "slow_model.hpp"

namespace {

using mp::arch;
using mp::bfloat16;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::float8_unit;
using mp::half;
using mp::tfloat32;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

/// d = a b + c over any number of terms.
template <arch Arch, class A, class B, class Output>
Output sum_of(const std::vector<A>& a, const std::vector<B>& b, Output c,
              float8_unit unit = float8_unit::native) {
    const auto terms = static_cast<std::ptrdiff_t>(a.size());
    Output d{};
    mp::mma<Arch>(mp::row_major(a.data(), 1, terms), mp::row_major(b.data(), terms, 1),
                  mp::row_major(&c, 1, 1), mp::row_major(&d, 1, 1), unit);
    return d;
}

/// Terms (a, b) as numbers, filled up with zeros.
template <class Value>
struct terms {
    std::vector<Value> a;
    std::vector<Value> b;

    terms(std::size_t count, std::initializer_list<std::pair<double, double>> some) : a(count), b(count) {
        std::size_t i = 0;
        for (const auto& [left, right] : some) {
            a[i] = Value(left);
            b[i++] = Value(right);
        }
    }
    template <arch Arch, class Output>
    Output sum(Output c) const {
        return sum_of<Arch>(a, b, c);
    }
};

TEST_CASE("terms one bit below the largest one's last are kept on Hopper only") {
    terms<half> it(16, {});
    for (std::size_t i = 0; i < 16; ++i) it.a[i] = half(0.5);
    for (std::size_t i = 0; i < 16; ++i) it.b[i] = half(1);
    it.a[0] = half(4096);
    it.b[0] = half(4096);
    it.a[15] = half(-4096);
    it.b[15] = half(4096);
    CHECK(it.sum<arch::sm_70>(0.0F) == 0.0F);
    CHECK(it.sum<arch::sm_75>(0.0F) == 0.0F);
    CHECK(it.sum<arch::sm_80>(0.0F) == 0.0F);
    CHECK(it.sum<arch::sm_89>(0.0F) == 0.0F);
    CHECK(it.sum<arch::sm_90>(0.0F) == 7.0F);
    CHECK(it.sum<arch::sm_100>(0.0F) == 7.0F);
    CHECK(it.sum<arch::sm_120>(0.0F) == 7.0F);
}

TEST_CASE("kept bits: the smallest term beside one that is 23, 24 or 25 bits") {
    // 1 + 2^-f - 1, the last by way of another product, in one block of four.
    const auto kept = [](int f, auto sum) {
        return sum(terms<half>(4, {{1, 1}, {std::ldexp(1.0, -12), std::ldexp(1.0, 12 - f)}, {-1, 1}}));
    };
    const auto volta = [](const terms<half>& it) { return it.sum<arch::sm_70>(0.0F); };
    const auto turing = [](const terms<half>& it) { return it.sum<arch::sm_75>(0.0F); };
    const auto ampere = [](const terms<half>& it) { return it.sum<arch::sm_80>(0.0F); };
    const auto hopper = [](const terms<half>& it) { return it.sum<arch::sm_90>(0.0F); };
    CHECK(kept(23, volta) == 0x1p-23F);
    CHECK(kept(24, volta) == 0.0F);
    CHECK(kept(24, turing) == 0x1p-24F);
    CHECK(kept(25, turing) == 0.0F);
    CHECK(kept(24, ampere) == 0x1p-24F);
    CHECK(kept(25, ampere) == 0.0F);
    CHECK(kept(25, hopper) == 0x1p-25F);
    CHECK(kept(26, hopper) == 0.0F);
}

TEST_CASE("a block's terms are cut off one by one, toward zero") {
    // Fifteen times three quarters of what is kept: exact would be 11.25 units.
    terms<half> it(16, {{1, 1}});
    for (std::size_t i = 1; i < 16; ++i) {
        it.a[i] = half(0x1.8p-13);
        it.b[i] = half(0x1p-13);  // 1.5 * 2^-26
    }
    CHECK(it.sum<arch::sm_90>(0.0F) == 1.0F);
    for (std::size_t i = 1; i < 16; ++i) it.a[i] = half(-0x1.8p-13);
    CHECK(it.sum<arch::sm_90>(0.0F) == 1.0F);
    // Three halves of a unit leave one unit, of either sign; in the result 15 * 2^-25 is cut off again.
    for (std::size_t i = 1; i < 16; ++i) it.a[i] = half(0x1.8p-12);
    CHECK(it.sum<arch::sm_90>(0.0F) == 1.0F + 3 * 0x1p-23F);
    CHECK(it.sum<arch::sm_90>(-1.0F) == 15 * 0x1p-25F);
}

TEST_CASE("a larger addend can give a smaller sum") {
    terms<half> it(4, {});
    for (std::size_t i = 0; i < 4; ++i) {
        it.a[i] = half(0x1p-12);
        it.b[i] = half(0x1p-12);
    }
    CHECK(it.sum<arch::sm_70>(1.0F - 0x1p-24F) == 1.0F + 0x1p-23F);
    CHECK(it.sum<arch::sm_70>(1.0F) == 1.0F);
}

TEST_CASE("products are not normalised: a product of two significands near two shifts nothing else out") {
    // 1.5 * 1.5 = 2.25 has exponent 0 for the alignment, so 2^-25 beside it is kept.
    const terms<half> it(16, {{1.5, 1.5}, {0x1p-12, 0x1p-13}, {-1.5, 1.5}});
    CHECK(it.sum<arch::sm_90>(0.0F) == 0x1p-25F);
}

TEST_CASE("the exponent of zero: where a tiny term stops to count beside nothing but zeros") {
    const auto probe = [](auto sum, int d) {
        return sum(terms<bfloat16>(16, {{0x1p-74, 0x1p-75}, {-0x1p-70, std::ldexp(1.0, 70 - d)}}));
    };
    const auto hopper = [](const terms<bfloat16>& it) { return it.sum<arch::sm_90>(0.0F); };
    const auto blackwell = [](const terms<bfloat16>& it) { return it.sum<arch::sm_100>(0.0F); };
    const auto ampere = [](const terms<bfloat16>& it) { return it.sum<arch::sm_80>(0.0F); };
    CHECK(probe(hopper, 158) == 0.0F);
    CHECK(probe(hopper, 159) == 0x1p-149F);
    CHECK(probe(blackwell, 158) == 0.0F);
    CHECK(probe(blackwell, 159) == 0x1p-149F);
    CHECK(probe(ampere, 156) == 0.0F);
    CHECK(probe(ampere, 157) == 0x1p-149F);

    // Half: a tie that a tiny term decides.
    const auto tie = [](auto sum, int d) {
        return static_cast<float>(sum(
            terms<half>(16, {{0x1p-12, 0x1p-13}, {std::ldexp(1.0, -d / 2), std::ldexp(1.0, d / 2 - d)}})));
    };
    const auto volta = [](const terms<half>& it) {
        const terms<half> first(4, {{static_cast<double>(it.a[0]), static_cast<double>(it.b[0])},
                                    {static_cast<double>(it.a[1]), static_cast<double>(it.b[1])}});
        return first.sum<arch::sm_70>(half(0));
    };
    const auto ampere_half = [](const terms<half>& it) { return it.sum<arch::sm_80>(half(0)); };
    const auto hopper_half = [](const terms<half>& it) { return it.sum<arch::sm_90>(half(0)); };
    CHECK(tie(volta, 42) == 0x1p-24F);
    CHECK(tie(volta, 43) == 0.0F);
    CHECK(tie(ampere_half, 44) == 0x1p-24F);
    CHECK(tie(ampere_half, 45) == 0.0F);
    CHECK(tie(hopper_half, 46) == 0x1p-24F);
    CHECK(tie(hopper_half, 47) == 0.0F);
}

TEST_CASE("subnormal operands, addends and results are not flushed") {
    CHECK(terms<half>(16, {{0x1p-24, 0x1p-24}}).sum<arch::sm_90>(0.0F) == 0x1p-48F);
    CHECK(terms<half>(16, {{0x1p-24, 1}}).sum<arch::sm_70>(half(0)) == half(0x1p-24));
    CHECK(terms<bfloat16>(16, {{0x1p-133, 1}}).sum<arch::sm_80>(0.0F) == 0x1p-133F);
    CHECK(terms<bfloat16>(16, {{0x1p-133, 1}}).sum<arch::sm_80>(0x1p-149F) == 0x1p-133F + 0x1p-149F);
    CHECK(terms<bfloat16>(16, {{0x1p-133, 0x1p-17}}).sum<arch::sm_90>(0.0F) == 0.0F);  // cut off
    CHECK(terms<float8_e5m2>(32, {{0x1p-16, 0x1p-16}}).sum<arch::sm_90>(0.0F) == 0x1p-32F);
    CHECK(terms<float8_e4m3fn>(32, {{0x1p-9, 0x1p-9}}).sum<arch::sm_89>(0.0F) == 0x1p-18F);
}

TEST_CASE("zero is positive, whatever it was made of") {
    terms<half> it(16, {});
    for (std::size_t i = 0; i < 16; ++i) {
        it.a[i] = half::from_bits(0x8000);
        it.b[i] = half(1);
    }
    CHECK(bits_of(it.sum<arch::sm_70>(-0.0F)) == 0);
    CHECK(bits_of(it.sum<arch::sm_80>(-0.0F)) == 0);
    CHECK(bits_of(it.sum<arch::sm_90>(-0.0F)) == 0);
    CHECK(it.sum<arch::sm_90>(half::from_bits(0x8000)).bits() == 0);
    // Cut off from below, and rounded from below.
    CHECK(bits_of(terms<bfloat16>(16, {{-0x1p-75, 0x1p-76}}).sum<arch::sm_90>(0.0F)) == 0);
    CHECK(terms<half>(16, {{-0x1p-13, 0x1p-13}}).sum<arch::sm_90>(half(0)).bits() == 0);
}

TEST_CASE("NaN has the bits of a GPU's, and infinities follow the rules of arithmetic") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto bits = [](std::initializer_list<std::pair<double, double>> some, float c) {
        return bits_of(terms<half>(16, some).sum<arch::sm_90>(c));
    };
    CHECK(bits({{nan, 1}}, 0.0F) == 0x7FFF'FFFF);
    CHECK(bits({{0, nan}}, 0.0F) == 0x7FFF'FFFF);
    CHECK(bits({{1, 1}}, -std::numeric_limits<float>::quiet_NaN()) == 0x7FFF'FFFF);
    CHECK(bits({{inf, 0}}, 0.0F) == 0x7FFF'FFFF);
    CHECK(bits({{inf, 1}, {-inf, 1}}, 0.0F) == 0x7FFF'FFFF);
    CHECK(bits({{inf, 1}}, -infinity) == 0x7FFF'FFFF);
    CHECK(bits({{inf, 1}}, 5.0F) == 0x7F80'0000);
    CHECK(bits({{inf, -1}, {inf, -2}}, 5.0F) == 0xFF80'0000);
    CHECK(bits({{65504, -65504}}, infinity) == 0x7F80'0000);
    CHECK(terms<half>(16, {{nan, 1}}).sum<arch::sm_80>(half(0)).bits() == 0x7FFF);
    CHECK(terms<half>(16, {{inf, -1}}).sum<arch::sm_80>(half(0)).bits() == 0xFC00);
    CHECK(bits_of(terms<float8_e4m3fn>(32, {{nan, 0}}).sum<arch::sm_90>(0.0F)) == 0x7FFF'FFFF);
    const terms<float8_e5m2> fp8(32, {{inf, 1}, {-inf, 1}});
    CHECK(bits_of(sum_of<arch::sm_90>(fp8.a, fp8.b, 0.0F, float8_unit::through_half)) == 0x7FFF'FFFF);
    const terms<float8_e5m2> plain(32, {{inf, 1}});
    CHECK(bits_of(sum_of<arch::sm_90>(plain.a, plain.b, 0.0F, float8_unit::through_half)) == 0x7F80'0000);
    CHECK(bits_of(sum_of<arch::sm_90>(plain.a, plain.b, -infinity, float8_unit::through_half)) ==
          0x7FFF'FFFF);
}

TEST_CASE("overflow gives infinity although results are cut off") {
    const terms<bfloat16> large(16, {{0x1p60, 0x1p43}, {0x1p60, 0x1p43}});  // one unit of FLT_MAX in all
    CHECK(large.sum<arch::sm_90>(FLT_MAX) == infinity);
    CHECK(large.sum<arch::sm_90>(-FLT_MAX) == -FLT_MAX + 0x1p104F);
    const terms<bfloat16> small(16, {{0x1p60, 0x1p43}});
    CHECK(small.sum<arch::sm_90>(FLT_MAX) == FLT_MAX);
    CHECK(terms<bfloat16>(16, {{-0x1p100, 0x1p100}}).sum<arch::sm_80>(0.0F) == -infinity);
    // Half is rounded to nearest: from 65520 on.
    CHECK(terms<half>(16, {{1, 16}}).sum<arch::sm_90>(half(65504)).bits() == 0x7C00);
    CHECK(terms<half>(16, {{1, 15.9921875}}).sum<arch::sm_90>(half(65504)) == half(65504));
}

TEST_CASE("the last 13 bits of a float are ignored in a tfloat32") {
    const auto dirty = std::bit_cast<tfloat32>(bits_of(1.0F) | 0x1FFF);
    CHECK(sum_of<arch::sm_90>(std::vector{dirty}, std::vector{dirty}, 0.0F) == 1.0F);
    CHECK(sum_of<arch::sm_80>(std::vector{dirty}, std::vector{tfloat32(3)}, 0.0F) == 3.0F);
}

TEST_CASE("accumulators of 8-bit operands have 13 fraction bits on Ada and Hopper, and 23 on Blackwell") {
    const terms<float8_e4m3fn> it(32, {{1, 1}, {0x1p-7, 0x1p-6}, {0x1p-7, 0x1p-7}});
    CHECK(it.sum<arch::sm_89>(0.0F) == 1.0F + 0x1p-13F);
    CHECK(it.sum<arch::sm_90>(0.0F) == 1.0F + 0x1p-13F);
    CHECK(it.sum<arch::sm_100>(0.0F) == 1.0F + 0x1p-13F + 0x1p-14F);
    CHECK(it.sum<arch::sm_120>(0.0F) == 1.0F + 0x1p-13F + 0x1p-14F);
    // A caller's addend loses its last ten bits even to zeros; nowhere else do zeros change one.
    const float c = 1.0F + 0x1p-23F;
    CHECK(terms<float8_e4m3fn>(32, {}).sum<arch::sm_90>(c) == 1.0F);
    CHECK(terms<float8_e4m3fn>(32, {}).sum<arch::sm_100>(c) == c);
    CHECK(terms<half>(64, {}).sum<arch::sm_70>(c) == c);
    CHECK(terms<half>(64, {}).sum<arch::sm_90>(-0x1p-149F) == -0x1p-149F);
    CHECK(terms<half>(64, {}).sum<arch::sm_80>(half(0x1p-24)) == half(0x1p-24));
    CHECK(sum_of<arch::sm_90>(std::vector<float8_e5m2>(32), std::vector<float8_e5m2>(32), c,
                              float8_unit::through_half) == c);
}

TEST_CASE("through half, products are added in two passes by k mod 4, and the addend last, to nearest") {
    // 2^25 and -2^25 in the first pass; 2^-1, which is 26 bits below them, is lost in that one only.
    const auto with_small_term_at = [](std::size_t k) {
        terms<float8_e5m2> it(32, {{0x1p15, 0x1p10}});
        it.a[28] = float8_e5m2(-0x1p15);
        it.b[28] = float8_e5m2(0x1p10);
        it.a[k] = float8_e5m2(1);
        it.b[k] = float8_e5m2(0.5);
        return sum_of<arch::sm_90>(it.a, it.b, 0.0F, float8_unit::through_half);
    };
    CHECK(with_small_term_at(1) == 0.0F);
    CHECK(with_small_term_at(2) == 0.5F);
    CHECK(with_small_term_at(3) == 0.5F);
    CHECK(with_small_term_at(4) == 0.0F);
    CHECK(with_small_term_at(29) == 0.0F);
    CHECK(with_small_term_at(30) == 0.5F);
    const terms<float8_e5m2> small(32, {{0x1p-12, 0x1p-12}});
    CHECK(sum_of<arch::sm_100>(small.a, small.b, 1.0F + 0x1p-23F, float8_unit::through_half) ==
          1.0F + 0x1p-22F);
    // Accumulators of half: c + sum is one half addition.
    const terms<float8_e5m2> one(32, {{1, 0.75}});
    CHECK(sum_of<arch::sm_90>(one.a, one.b, half(2048), float8_unit::through_half) == half(2048));
    CHECK(sum_of<arch::sm_90>(one.a, one.b, half(1024), float8_unit::through_half) == half(1025));
}

template <class Value>
Value any(std::mt19937& random) {
    if constexpr (std::is_same_v<Value, tfloat32>) {
        return std::bit_cast<tfloat32>(static_cast<std::uint32_t>(random()));
    } else {
        return Value::from_bits(static_cast<typename Value::storage>(random()));
    }
}

/// Numbers around one, or around a tiny one, with zeros; or any bits at all.
template <class Value>
Value some(std::mt19937& random, int kind) {
    if (kind == 0) return any<Value>(random);
    if (random() % 8 == 0) return Value(random() % 2 == 0 ? 0.0F : -0.0F);
    const double magnitude =
        std::ldexp(1.0 + static_cast<double>(random() % 4096) / 4096.0, static_cast<int>(random() % 12) - 6);
    const bool wide = slow::layout<Value>::exponent == 8;
    const double scale = kind == 1                            ? 1.0
                         : wide                               ? 0x1p-70
                         : slow::layout<Value>::exponent == 5 ? 0x1p-12
                                                              : 0.0625;
    return Value((random() % 2 == 0 ? magnitude : -magnitude) * scale);
}

template <arch Arch, class Value, class Output>
void compare(const slow::rule& rule) {
    static_assert(std::is_same_v<Output, float> || std::is_same_v<Output, half>);
    std::mt19937 random(static_cast<unsigned>(Arch) * 8 + sizeof(Value));
    int wrong = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        const int kind = trial % 4;
        const int terms = trial % 2 == 0 ? rule.products : static_cast<int>(random() % 70);
        std::vector<Value> a;
        std::vector<Value> b;
        for (int i = 0; i < terms; ++i) {
            a.push_back(some<Value>(random, kind));
            b.push_back(some<Value>(random, kind));
        }
        Output c{};
        if constexpr (std::is_same_v<Output, half>) {
            c = some<half>(random, kind);
        } else {
            c = kind == 0   ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                : kind == 3 ? 0.0F
                : kind == 2 ? static_cast<float>(some<bfloat16>(random, kind)) * 0x1p-70F
                            : static_cast<float>(some<tfloat32>(random, kind));
        }
        const float expected = slow::sum<Value>(
            rule, terms, [&](std::ptrdiff_t i) { return a[static_cast<std::size_t>(i)]; },
            [&](std::ptrdiff_t i) { return b[static_cast<std::size_t>(i)]; }, static_cast<float>(c));
        const float got = static_cast<float>(sum_of<Arch>(a, b, c));
        // With no block at all c comes back as it is.
        wrong += slow::same(got, expected) || terms == 0 ? 0 : 1;
    }
    CHECK_MESSAGE(wrong == 0,
                  "sm_" << static_cast<int>(Arch) << ", operands of " << sizeof(Value) << " bytes");
}

TEST_CASE("random numbers and random bits give what the written rule gives, on all architectures") {
    compare<arch::sm_70, half, float>(slow::volta_half);
    compare<arch::sm_70, half, half>(slow::volta_half_half);
    compare<arch::sm_75, half, float>(slow::ampere_half);
    compare<arch::sm_75, half, half>(slow::ampere_half_half);
    compare<arch::sm_80, half, float>(slow::ampere_half);
    compare<arch::sm_80, half, half>(slow::ampere_half_half);
    compare<arch::sm_80, bfloat16, float>(slow::ampere_half);
    compare<arch::sm_80, tfloat32, float>(slow::ampere_tf32);
    compare<arch::sm_86, tfloat32, float>(slow::ampere_tf32);
    compare<arch::sm_89, bfloat16, float>(slow::ampere_half);
    compare<arch::sm_89, float8_e4m3fn, float>(slow::ada_fp8);
    compare<arch::sm_89, float8_e5m2, half>(slow::ada_fp8_half);
    compare<arch::sm_90, half, float>(slow::hopper_half);
    compare<arch::sm_90, half, half>(slow::hopper_half_half);
    compare<arch::sm_90, bfloat16, float>(slow::hopper_half);
    compare<arch::sm_90, tfloat32, float>(slow::hopper_tf32);
    compare<arch::sm_90, float8_e4m3fn, float>(slow::hopper_fp8);
    compare<arch::sm_90, float8_e5m2, float>(slow::hopper_fp8);
    compare<arch::sm_90, float8_e5m2, half>(slow::hopper_fp8_half);
    compare<arch::sm_100, tfloat32, float>(slow::hopper_tf32);
    compare<arch::sm_100, float8_e4m3fn, float>(slow::blackwell_fp8);
    compare<arch::sm_120, float8_e5m2, float>(slow::blackwell_fp8);
    compare<arch::sm_120, half, half>(slow::hopper_half_half);
}

TEST_CASE("formats of 8 bits mix, and a block can be computed by the compiler") {
    constexpr float sum = [] {
        const float8_e4m3fn a[] = {float8_e4m3fn(1.5F), float8_e4m3fn(-2.0F)};
        const float8_e5m2 b[] = {float8_e5m2(4.0F), float8_e5m2(0.25F)};
        return mp::block_fma<arch::sm_90, float8_e4m3fn, float8_e5m2>(a, b, 10.0F);
    }();
    static_assert(sum == 15.5F);
    CHECK(sum == 15.5F);
    static_assert(mp::block_rule_of(arch::sm_90, mp::operand_kind::fp16, false).products == 16);
    static_assert(mp::block_rule_of(arch::sm_70, mp::operand_kind::bf16, false).products == 0);
}

TEST_CASE("errors of blocks and fragments name the argument") {
    const std::vector<half> ones(17, half(1));
    const std::vector<float8_e4m3fn> fp8(32, float8_e4m3fn(1.0F));
    const std::span<const half> all(ones);
    CHECK(message_of([&] { (void)mp::block_fma<arch::sm_90>(all, all, 0.0F); }) ==
          "mp::block_fma: a.size() is 17; it must be at most the products of a block, which are 16");
    CHECK(message_of([&] { (void)mp::block_fma<arch::sm_90>(all.first(4), all.first(3), 0.0F); }) ==
          "mp::block_fma: b.size() is 3; it must equal a.size(), which is 4");
    const std::span<const float8_e4m3fn> all8(fp8);
    CHECK(
        message_of([&] { (void)mp::block_fma<arch::sm_89>(all8, all8, 0.0F, float8_unit::through_half); }) ==
        "mp::block_fma: unit is 'through_half'; it must be native on this architecture, whose mma.sync is");
    CHECK(message_of([&] {
              (void)mp::block_fma<arch::sm_100>(all8, all8, half(0));
          }).starts_with("mp::block_fma: unit is 'native'; it must be through_half"));
    float c[4] = {1, 2, 3, 4};
    const auto a = mp::row_major(ones.data(), 2, 3);
    const auto b = mp::row_major(ones.data(), 3, 2);
    const auto square = mp::row_major(c, 2, 2);
    CHECK(message_of([&] { mp::mma<arch::sm_90>(a, a, square, square); }) ==
          "mp::mma: b.rows is 2; it must equal a.columns, which is 3");
    CHECK(message_of([&] { mp::mma<arch::sm_90>(a, b, mp::row_major(c, 1, 2), square); }) ==
          "mp::mma: c.rows is 1; it must equal a.rows, which is 2");
    CHECK(message_of([&] { mp::mma<arch::sm_90>(a, b, square, mp::transposed(square)); }) ==
          "mp::mma: d.data makes d overlap c; it must not, since that is read while d is written");
    CHECK(c[0] == 1);
    mp::mma<arch::sm_90>(a, b, square, square);
    CHECK(c[0] == 4);
    CHECK(c[3] == 7);
}

}  // namespace
