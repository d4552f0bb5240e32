// SPDX-License-Identifier: MIT
#include <mp/block_scaled.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>
#include <boost/multiprecision/cpp_int.hpp>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "message_of.hpp"

namespace {

using mp::arch;
using mp::emulated;
using mp::instruction_set;

/// The instructions once more, from their written rules, in integers of any size. Shares no code with the library.
namespace oracle {

using integer = boost::multiprecision::cpp_int;

/// A number with the exponent that the alignment sees.
struct number {
    double value = 0;
    int exponent = 0;
};

number decode(unsigned bits, int exponent_bits, int fraction_bits, bool is_ieee, bool one_nan) {
    const unsigned fraction = bits & ((1U << fraction_bits) - 1);
    const unsigned top = (1U << exponent_bits) - 1;
    const unsigned field = bits >> fraction_bits & top;
    const bool negative = (bits >> (fraction_bits + exponent_bits) & 1U) != 0;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(field == 0 ? 1 : field) - bias;
    double value =
        std::ldexp(static_cast<double>(fraction) + (field == 0 ? 0 : std::ldexp(1.0, fraction_bits)),
                   exponent - fraction_bits);
    if (is_ieee && field == top) {
        value = fraction == 0 ? std::numeric_limits<double>::infinity()
                              : std::numeric_limits<double>::quiet_NaN();
    }
    if (one_nan && field == top && fraction == (1U << fraction_bits) - 1)
        value = std::numeric_limits<double>::quiet_NaN();
    return {negative ? -value : value, exponent};
}

number of(mp::float8_e4m3fn x) {
    return decode(x.bits(), 4, 3, false, true);
}
number of(mp::float8_e5m2 x) {
    return decode(x.bits(), 5, 2, true, false);
}
number of(mp::float6_e2m3fn x) {
    return decode(x.bits(), 2, 3, false, false);
}
number of(mp::float6_e3m2fn x) {
    return decode(x.bits(), 3, 2, false, false);
}
number of(mp::float4_e2m1fn x) {
    return decode(x.bits(), 2, 1, false, false);
}
number scale_of(mp::float8_e8m0fnu x) {
    if (x.bits() == 255) return {std::numeric_limits<double>::quiet_NaN(), 0};
    return {std::ldexp(1.0, x.bits() - 127), x.bits() - 127};
}
number scale_of(mp::float8_e4m3fn x) {
    return decode(x.bits() & 0x7FU, 4, 3, false, true);
}

/// Every number is a multiple of 2^-grain.
constexpr int grain = 700;
integer exactly(double x) {
    if (x == 0) return 0;
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    integer result(static_cast<std::int64_t>(std::ldexp(fraction, 53)));
    const int shift = exponent - 53 + grain;
    return shift >= 0 ? integer(result << shift) : integer(result / (integer(1) << -shift));
}

struct term {
    integer value;
    int exponent;
};

/// Terms cut off at 2^-fraction_bits of the largest exponent, and their sum cut off to a float.
float sum_of(const std::vector<term>& terms, int fraction_bits) {
    int largest = -100000;
    for (const term& it : terms) largest = std::max(largest, it.exponent);
    const int unit = largest - fraction_bits;
    integer sum = 0;
    for (const term& it : terms) sum += it.value / (integer(1) << (grain + unit));  // toward zero
    if (sum == 0) return 0;
    integer magnitude = abs(sum);
    const int top = static_cast<int>(msb(magnitude)) + unit;
    if (top > 127) return sum < 0 ? -HUGE_VALF : HUGE_VALF;
    const int last = std::max(top - 23, -149);
    magnitude = unit >= last ? integer(magnitude << (unit - last)) : integer(magnitude >> (last - unit));
    const double value = std::ldexp(magnitude.convert_to<double>(), last);
    return static_cast<float>(sum < 0 ? -value : value) + 0.0F;
}

term addend(float c, int zero_exponent) {
    if (c == 0) return {0, zero_exponent};
    return {exactly(static_cast<double>(c)), std::max(std::ilogb(c), -126)};
}

float nan() {
    return std::bit_cast<float>(0x7FFF'FFFFU);
}

/// 32 products whose exponents the scales are added to.
template <class A, class B, class Scale>
float mxf8f6f4(std::span<const A> a, std::span<const Scale> sa, std::span<const B> b,
               std::span<const Scale> sb, float c) {
    std::vector<term> terms = {addend(std::isfinite(c) ? c : 1.0F, -133)};
    double special = std::isfinite(c) ? 0 : static_cast<double>(c);
    for (std::size_t i = 0; i < 32; ++i) {
        if (i >= a.size()) {
            terms.push_back({0, -133});
            continue;
        }
        const number x = of(a[i]), y = of(b[i]), s = scale_of(sa[0]), t = scale_of(sb[0]);
        const double product = x.value * y.value * s.value * t.value;  // exact
        if (!std::isfinite(product)) {
            special += product;
        } else if (product == 0) {
            terms.push_back({0, -133});
        } else {
            terms.push_back({exactly(product), x.exponent + y.exponent + s.exponent + t.exponent});
        }
    }
    if (special != 0) return std::isnan(special) ? nan() : static_cast<float>(special);
    return sum_of(terms, 25);
}

/// 64 products in groups of 16.
template <class Scale>
float mxf4nvf4(std::size_t block, std::span<const mp::float4_e2m1fn> a, std::span<const Scale> sa,
               std::span<const mp::float4_e2m1fn> b, std::span<const Scale> sb, float c) {
    std::vector<term> terms = {addend(std::isfinite(c) ? c : 1.0F, -139)};
    bool is_nan = std::isnan(c);
    for (std::size_t g = 0; g < 64; g += 16) {
        double sum = 0;
        bool all_zero = true;
        for (std::size_t i = g; i < std::min(g + 16, a.size()); ++i) {
            const double product = of(a[i]).value * of(b[i]).value;
            sum += product;
            all_zero = all_zero && product == 0;
        }
        if (g < a.size()) {
            const number s = scale_of(sa[g / block]), t = scale_of(sb[g / block]);
            if (std::isnan(s.value) || std::isnan(t.value)) {
                is_nan = true;
            } else if (!all_zero && s.value != 0 && t.value != 0) {
                terms.push_back({exactly(sum * s.value * t.value), s.exponent + t.exponent});
                continue;
            }
        }
        terms.push_back({0, -139});
    }
    if (is_nan) return nan();
    if (std::isinf(c)) return c;
    return sum_of(terms, 35);
}

template <int Block, class A, class B, class Scale>
float block(std::span<const A> a, std::span<const Scale> sa, std::span<const B> b, std::span<const Scale> sb,
            float c) {
    if constexpr (std::is_same_v<A, mp::float4_e2m1fn> && std::is_same_v<B, mp::float4_e2m1fn>) {
        return mxf4nvf4<Scale>(Block, a, sa, b, sb, c);
    } else {
        return mxf8f6f4<A, B, Scale>(a, sa, b, sb, c);
    }
}

}  // namespace oracle

bool same(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Scales of a test: all near one; anything at all; or such that sums are around the end of float.
enum class scales { plain, any, tiny, huge };

template <class Scale>
Scale random_scale(std::mt19937& random, scales kind) {
    const auto any = static_cast<std::uint8_t>(random());
    if (std::is_same_v<Scale, mp::float8_e4m3fn>) {
        if (kind == scales::any) return Scale::from_bits(any);
        const unsigned base = kind == scales::plain ? 0x30 : kind == scales::tiny ? 0 : 0x70;
        return Scale::from_bits(static_cast<std::uint8_t>(base + any % 15));
    }
    if (kind == scales::any) return Scale::from_bits(any);
    const unsigned base = kind == scales::plain ? 123 : kind == scales::tiny ? 50 : 187;
    return Scale::from_bits(static_cast<std::uint8_t>(base + any % 8));
}

template <class Element>
Element random_element(std::mt19937& random, bool special) {
    using layout = typename Element::layout;
    for (;;) {
        const auto bits = static_cast<std::uint8_t>(random() & ((1U << layout::width) - 1));
        const auto x = Element::from_bits(random() % 6 == 0 ? std::uint8_t{0} : bits);
        if (special || std::isfinite(oracle::of(x).value)) return x;
    }
}

template <arch Arch, int Block, class A, class B, class Scale>
int wrong_blocks(int count, unsigned seed) {
    constexpr std::size_t most =
        std::is_same_v<A, mp::float4_e2m1fn> && std::is_same_v<B, mp::float4_e2m1fn> ? 64 : 32;
    std::mt19937 random(seed);
    int wrong = 0;
    for (int test = 0; test < count; ++test) {
        const auto kind = static_cast<scales>(test % 4);
        const std::size_t size = test % 5 == 0 ? random() % (most + 1) : most;
        std::vector<A> a(size);
        std::vector<B> b(size);
        std::vector<Scale> sa((size + Block - 1) / Block), sb(sa);
        const bool special = test % 7 == 0;
        for (A& it : a) it = random_element<A>(random, special);
        for (B& it : b) it = random_element<B>(random, special);
        for (Scale& it : sa) it = random_scale<Scale>(random, kind);
        for (Scale& it : sb) it = random_scale<Scale>(random, kind);
        float c = 0;
        if (test % 3 == 1) c = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (test % 3 == 2)
            c = std::ldexp(static_cast<float>(static_cast<int>(random()) >> 8),
                           static_cast<int>(random() % 30) - 35);
        const float expected = oracle::block<Block, A, B, Scale>(a, sa, b, sb, c);
        wrong += same(expected, mp::scaled_block_fma<Arch, Block, A, B, Scale>(a, sa, b, sb, c)) ? 0 : 1;
    }
    return wrong;
}

using mp::float4_e2m1fn;
using mp::float6_e2m3fn;
using mp::float6_e3m2fn;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::float8_e8m0fnu;

TEST_CASE("single blocks are those of the written rules, in exact arithmetic") {
    constexpr auto sm_100 = arch::sm_100;
    CHECK(wrong_blocks<sm_100, 32, float8_e4m3fn, float8_e4m3fn, float8_e8m0fnu>(4000, 1) == 0);
    CHECK(wrong_blocks<sm_100, 32, float8_e5m2, float8_e4m3fn, float8_e8m0fnu>(4000, 2) == 0);
    CHECK(wrong_blocks<sm_100, 32, float6_e2m3fn, float6_e3m2fn, float8_e8m0fnu>(4000, 3) == 0);
    CHECK(wrong_blocks<arch::sm_120, 32, float8_e5m2, float4_e2m1fn, float8_e8m0fnu>(4000, 4) == 0);
    CHECK(wrong_blocks<sm_100, 32, float4_e2m1fn, float4_e2m1fn, float8_e8m0fnu>(4000, 5) == 0);
    CHECK(wrong_blocks<sm_100, 16, float4_e2m1fn, float4_e2m1fn, float8_e8m0fnu>(4000, 6) == 0);
    CHECK(wrong_blocks<arch::sm_121, 16, float4_e2m1fn, float4_e2m1fn, float8_e4m3fn>(8000, 7) == 0);
}

template <int Block, class Element, class Scale>
int wrong_scales(float c) {
    constexpr std::size_t size = std::is_same_v<Element, float4_e2m1fn> ? 64 : 32;
    std::mt19937 random(9);
    std::vector<Element> a(size), b(size);
    for (Element& it : a) it = random_element<Element>(random, false);
    for (Element& it : b) it = random_element<Element>(random, false);
    std::vector<Scale> sa(size / Block, Scale::from_bits(Block == 16 ? 0x38 : 127)), sb(sa);
    int wrong = 0;
    for (unsigned i = 0; i < 256; ++i) {
        for (unsigned j = 0; j < 256; ++j) {
            sa[0] = Scale::from_bits(static_cast<std::uint8_t>(i));
            sb[0] = Scale::from_bits(static_cast<std::uint8_t>(j));
            const float expected = oracle::block<Block, Element, Element, Scale>(a, sa, b, sb, c);
            wrong += same(expected,
                          mp::scaled_block_fma<arch::sm_100, Block, Element, Element, Scale>(a, sa, b, sb, c))
                         ? 0
                         : 1;
        }
    }
    return wrong;
}

TEST_CASE("all pairs of scales, NaN and subnormal ones and those with a sign among them") {
    CHECK(wrong_scales<32, float8_e4m3fn, float8_e8m0fnu>(0.0F) == 0);
    CHECK(wrong_scales<32, float8_e4m3fn, float8_e8m0fnu>(-0x1.2345p3F) == 0);
    CHECK(wrong_scales<32, float4_e2m1fn, float8_e8m0fnu>(0x1p-130F) == 0);
    CHECK(wrong_scales<16, float4_e2m1fn, float8_e4m3fn>(0.0F) == 0);
}

TEST_CASE("what tells the rules from others") {
    // A group that cancels keeps the exponent of its scales; one of zeros has that of zero.
    std::vector<float4_e2m1fn> a(64), b(64);
    std::vector<float8_e8m0fnu> sa(2, float8_e8m0fnu::from_bits(127)), sb(sa);
    const auto sum = [&](float c) {
        return mp::scaled_block_fma<arch::sm_100, 32, float4_e2m1fn, float4_e2m1fn, float8_e8m0fnu>(a, sa, b,
                                                                                                    sb, c);
    };
    for (const std::size_t i : {0, 1}) a[i] = b[i] = float4_e2m1fn(1.0F);
    a[1] = float4_e2m1fn(-1.0F);
    CHECK(sum(0x1p-35F) == 0x1p-35F);
    CHECK(sum(0x1p-36F) == 0.0F);
    a[1] = a[0] = float4_e2m1fn(0.0F);
    CHECK(sum(0x1p-36F) == 0x1p-36F);
    // 35 bits are kept behind the point, not 25.
    a[0] = float4_e2m1fn(1.0F);
    a[32] = float4_e2m1fn(1.0F);
    b[32] = float4_e2m1fn(-1.0F);
    CHECK(sum(0x1p-35F) == 0x1p-35F);
    // The exponent of zero: where 2^-149 less a tiny term is no longer seen to be less, beside groups or products of nothing.
    const auto tiny = [&](int d) {
        a.assign(64, float4_e2m1fn(0.0F));
        a[0] = float4_e2m1fn(1.0F);
        a[32] = float4_e2m1fn(-1.0F);
        b.assign(64, float4_e2m1fn(1.0F));
        sa = {float8_e8m0fnu::from_bits(27), float8_e8m0fnu::from_bits(27)};  // 2^-100
        sb = {float8_e8m0fnu::from_bits(78), float8_e8m0fnu::from_bits(static_cast<std::uint8_t>(227 - d))};
        return sum(0.0F);
    };
    CHECK(tiny(174) == 0.0F);
    CHECK(tiny(175) == 0x1p-149F);
    const auto tiny_8 = [](int d) {
        std::vector<float8_e5m2> x(32), y(32);
        x[0] = y[0] = float8_e5m2(1.0F);
        x[1] = float8_e5m2(-1.0F);
        y[1] = float8_e5m2(std::ldexp(1.0F, 149 - d));
        const std::vector<float8_e8m0fnu> s = {float8_e8m0fnu::from_bits(27)},
                                          t = {float8_e8m0fnu::from_bits(78)};
        return mp::scaled_block_fma<arch::sm_100, 32, float8_e5m2, float8_e5m2, float8_e8m0fnu>(x, s, y, t,
                                                                                                0.0F);
    };
    CHECK(tiny_8(158) == 0.0F);
    CHECK(tiny_8(159) == 0x1p-149F);
    CHECK(mp::block_scaled_rule_of<mp::nvfp4, mp::nvfp4>(arch::sm_100).known == mp::evidence::published);
    CHECK(mp::block_scaled_rule_of<mp::nvfp4, mp::nvfp4>(arch::sm_121).known == mp::evidence::assumed);
    CHECK(mp::block_scaled_rule_of<mp::mxfp6_e2m3, mp::mxfp8_e5m2>(arch::sm_120).known ==
          mp::evidence::assumed);
    CHECK(mp::block_scaled_rule_of<mp::mxfp8_e4m3, mp::mxfp4>(arch::sm_120).products == 32);
    CHECK(mp::block_scaled_rule_of<mp::mxfp4, mp::mxfp4>(arch::sm_103).products == 64);
    CHECK(mp::block_scaled_rule_of<mp::mxfp4, mp::mxfp4>(arch::sm_90).products == 0);
    CHECK(mp::block_scaled_rule_of<mp::mxfp4, mp::nvfp4>(arch::sm_100).products == 0);
    CHECK(mp::block_scaled_rule_of<mp::mxint8, mp::mxint8>(arch::sm_100).products == 0);
}

/// Products of matrices with any codes, compared with sums over blocks of the oracle.
template <arch Arch, class A, class B>
int wrong_results(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, scales kind, bool special,
                  unsigned seed) {
    using a_element = typename A::element_type;
    using b_element = typename B::element_type;
    using scale = typename A::scale_type;
    constexpr int block = A::block_size;
    std::mt19937 random(seed);
    A a(m, k, mp::block_direction::along_rows);
    B b(k, n, mp::block_direction::along_columns);
    std::vector<a_element> left(static_cast<std::size_t>(m * k));
    std::vector<b_element> right(static_cast<std::size_t>(n * k));  // column after column
    const auto fill = [&](auto& to, auto& elements, std::ptrdiff_t count) {
        using element = typename std::remove_reference_t<decltype(to)>::element_type;
        constexpr int width = std::remove_reference_t<decltype(to)>::element_width;
        bool nothing = false;
        for (std::ptrdiff_t v = 0; v < count; ++v) {
            for (std::ptrdiff_t p = 0; p < k; ++p) {
                // Groups of nothing are likely, too.
                if (p % 16 == 0) nothing = random() % 4 == 0;
                const auto x =
                    nothing ? element{} : random_element<element>(random, special && random() % 64 == 0);
                elements[static_cast<std::size_t>(v * k + p)] = x;
                const std::span<std::byte> bytes = to.bytes(v);
                for (int bit = 0; bit < width; ++bit) {
                    const auto at = static_cast<std::size_t>(p * width + bit);
                    if ((x.bits() >> bit & 1U) != 0) bytes[at / 8] |= std::byte{1} << (at % 8);
                }
            }
        }
        for (scale& it : to.scales()) {
            it = random_scale<scale>(random, kind);
            while (!special && std::isnan(oracle::scale_of(it).value)) it = random_scale<scale>(random, kind);
        }
    };
    fill(a, left, m);
    fill(b, right, n);
    std::vector<float> expected;
    constexpr std::ptrdiff_t step = mp::block_scaled_rule_of<A, B>(Arch).products;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::ptrdiff_t p = 0; p < k; p += step) {
                const auto size = static_cast<std::size_t>(std::min(step, k - p));
                const auto blocks = (size + block - 1) / block;
                const auto scale_at = [&](const auto& of, std::ptrdiff_t v) {
                    return std::span<const scale>(of.scales())
                        .subspan(static_cast<std::size_t>(v * of.blocks_per_vector() + p / block), blocks);
                };
                sum = oracle::block<block, a_element, b_element, scale>(
                    std::span<const a_element>(left).subspan(static_cast<std::size_t>(i * k + p), size),
                    scale_at(a, i),
                    std::span<const b_element>(right).subspan(static_cast<std::size_t>(j * k + p), size),
                    scale_at(b, j), sum);
            }
            expected.push_back(sum);
        }
    }
    int wrong = 0;
    for (const auto isa :
         {instruction_set::portable, instruction_set::neon, instruction_set::avx2, instruction_set::avx512}) {
        if (!mp::processor_has(isa)) continue;
        std::vector<float> c(expected.size(), 77.0F);
        mp::gemm(emulated<Arch>{.threads = 2, .instructions = isa}, 1.0F, a, b, 0.0F,
                 mp::row_major(c.data(), m, n));
        for (std::size_t i = 0; i < c.size(); ++i) wrong += same(c[i], expected[i]) ? 0 : 1;
    }
    return wrong;
}

template <arch Arch, class A, class B>
void compare(unsigned seed) {
    for (const auto kind : {scales::plain, scales::any, scales::tiny, scales::huge}) {
        CAPTURE(static_cast<int>(kind));
        CHECK(wrong_results<Arch, A, B>(3, 18, 200, kind, false, seed) == 0);
        CHECK(wrong_results<Arch, A, B>(2, 17, 77, kind, true, seed + 1) == 0);
    }
}

TEST_CASE("products of matrices have the bits of the rules, on every instruction set") {
    compare<arch::sm_100, mp::mxfp8_e4m3, mp::mxfp8_e4m3>(11);
    compare<arch::sm_100, mp::mxfp8_e5m2, mp::mxfp6_e3m2>(12);
    compare<arch::sm_120, mp::mxfp6_e2m3, mp::mxfp4>(13);
    compare<arch::sm_100, mp::mxfp4, mp::mxfp4>(14);
    compare<arch::sm_100, mp::nvfp4, mp::nvfp4>(15);
    CHECK(wrong_results<arch::sm_100, mp::nvfp4, mp::nvfp4>(130, 66, 300, scales::plain, false, 16) == 0);
    CHECK(wrong_results<arch::sm_100, mp::mxfp8_e4m3, mp::mxfp8_e4m3>(130, 66, 140, scales::plain, false,
                                                                      17) == 0);
}

TEST_CASE("quantised matrices, their tensor scales, alpha, beta and the epilogue") {
    constexpr std::ptrdiff_t m = 5, n = 7, k = 96;
    std::mt19937 random(3);
    std::vector<float> x(m * k), w(n * k), bias(n, 1.0F);
    for (float& it : x) it = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.37F;
    for (float& it : w) it = static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 0.0011F;
    const mp::cpu host;
    const auto a = mp::quantize<mp::nvfp4>(host, mp::row_major(x.data(), m, k));
    const auto b = mp::quantize<mp::nvfp4>(host, mp::column_major(w.data(), k, n),
                                           {.direction = mp::block_direction::along_columns});
    REQUIRE(a.tensor_scale() != 1.0F);
    std::vector<float> c(m * n, 3.0F), sums(m * n), exact(m * n);
    const float alpha = 0.7F;
    mp::gemm(emulated<arch::sm_100>{}, alpha, a, b, -2.0F, mp::row_major(c.data(), m, n),
             mp::bias_per_column(bias));
    const float factor = alpha * (a.tensor_scale() * b.tensor_scale());
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::ptrdiff_t p = 0; p < k; ++p)
                sum += static_cast<double>(a.value(i, p)) * static_cast<double>(b.value(p, j));
            const double expected = static_cast<double>(alpha) * sum - 6 + 1;
            CHECK(std::fabs(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]) - expected) <
                  1e-4 * (10 + std::fabs(expected)));
        }
    }
    auto unscaled = a;
    auto other = b;
    unscaled.set_tensor_scale(1.0F);
    other.set_tensor_scale(1.0F);
    std::fill(sums.begin(), sums.end(), 3.0F);
    mp::gemm(emulated<arch::sm_100>{}, factor, unscaled, other, -2.0F, mp::row_major(sums.data(), m, n),
             mp::bias_per_column(bias));
    CHECK(sums == c);
    // The caller's rounding direction has no say.
    std::fill(sums.begin(), sums.end(), 3.0F);
    std::fesetround(FE_UPWARD);
    mp::gemm(emulated<arch::sm_100>{}, alpha, a, b, -2.0F, mp::row_major(sums.data(), m, n),
             mp::bias_per_column(bias));
    std::fesetround(FE_TONEAREST);
    CHECK(sums == c);
}

TEST_CASE("errors of block-scaled products name the argument, and nothing is written") {
    std::vector<float> c(12, 5.0F);
    const auto out = mp::row_major(c.data(), 3, 4);
    const auto error = [&](const mp::mxfp4& a, const mp::mxfp4& b, auto to) {
        return message_of([&] { mp::gemm(emulated<arch::sm_100>{}, 1.0F, a, b, 0.0F, to); });
    };
    const auto rows = mp::block_direction::along_rows;
    const auto columns = mp::block_direction::along_columns;
    CHECK(error({3, 64, rows}, {32, 4, columns}, out) ==
          "mp::gemm: b.rows is 32; it must equal a.columns, which is 64");
    CHECK(error({3, 64, rows}, {64, 5, columns}, out) ==
          "mp::gemm: c.columns is 4; it must equal b.columns, which is 5");
    CHECK(error({2, 64, rows}, {64, 4, columns}, out) ==
          "mp::gemm: c.rows is 3; it must equal a.rows, which is 2");
    CHECK(
        error({3, 64, columns}, {64, 4, columns}, out) ==
        "mp::gemm: a.direction() is 'along_columns'; it must be along_rows: scales are for neighbours in k");
    CHECK(
        error({3, 64, rows}, {64, 4, rows}, out) ==
        "mp::gemm: b.direction() is 'along_rows'; it must be along_columns: scales are for neighbours in k");
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 5.0F; }));
    const std::vector<float4_e2m1fn> numbers(65);
    const std::vector<float8_e8m0fnu> ones(3);
    const auto fma = [&](std::size_t size, std::size_t more, std::size_t left, std::size_t right) {
        return message_of([&] {
            static_cast<void>(
                mp::scaled_block_fma<arch::sm_100, 32, float4_e2m1fn, float4_e2m1fn, float8_e8m0fnu>(
                    {numbers.data(), size}, {ones.data(), left}, {numbers.data(), more}, {ones.data(), right},
                    0.0F));
        });
    };
    CHECK(fma(65, 65, 3, 3) ==
          "mp::scaled_block_fma: a.size() is 65; it must be at most the products of a block, which are 64");
    CHECK(fma(64, 63, 2, 2) == "mp::scaled_block_fma: b.size() is 63; it must equal a.size(), which is 64");
    CHECK(fma(64, 64, 2, 1) ==
          "mp::scaled_block_fma: b_scales.size() is 1; it must be one for every block of a, 2");
    CHECK(fma(64, 64, 2, 2) == "nothing thrown");
}

}  // namespace
