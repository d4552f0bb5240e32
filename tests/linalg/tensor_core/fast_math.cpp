// SPDX-License-Identifier: MIT
// Compiled as every test, and once more with -ffast-math, where compilers assume that there are no NaNs and
// reorder products, and where the program flushes subnormal floats to zero. Emulated products keep their
// bits: all comparisons are of bits with checksums, and with mp::mma, which calculates in integers.
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using mp::arch;

/// Any bits at all in one of 16 numbers; in the others exponents around the middle, or around `low`.
template <class Value>
std::vector<Value> numbers(std::size_t count, std::mt19937& random, std::uint32_t low, std::uint32_t wild) {
    using layout = typename Value::layout;
    std::vector<Value> result(count);
    for (Value& it : result) {
        const auto any = static_cast<std::uint32_t>(random());
        const std::uint32_t field = low + (any >> 8 & 3U);
        const std::uint32_t tame =
            (any & (layout::fraction_mask | layout::sign_mask)) | (field << layout::fraction_bits);
        const bool is_wild = wild != 0 && random() % wild == 0;
        it = Value::from_bits(static_cast<typename Value::storage>(is_wild ? any >> 3 : tame));
    }
    return result;
}

/// A checksum of the bits (FNV-1a), and a comparison with mp::mma.
template <arch Arch, class Value, class Accumulator>
std::uint32_t checksum(std::uint32_t low, std::uint32_t wild) {
    constexpr std::ptrdiff_t m = 17;
    constexpr std::ptrdiff_t n = 35;
    constexpr std::ptrdiff_t k = 100;
    std::mt19937 random(low);
    const auto a = numbers<Value>(m * k, random, low, wild);
    const auto b = numbers<Value>(k * n, random, low, wild);
    std::vector<Accumulator> c(m * n);
    std::vector<Accumulator> expected(m * n);
    const auto left = mp::row_major(a.data(), m, k);
    const auto right = mp::row_major(b.data(), k, n);
    mp::gemm(mp::emulated<Arch, Accumulator>{.promotion_interval = 0}, 1.0F, left, right, 0.0F,
             mp::row_major(c.data(), m, n));
    mp::mma<Arch>(left, right, mp::row_major(expected.data(), m, n), mp::row_major(expected.data(), m, n));
    CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(Accumulator)) == 0);
    std::uint32_t sum = 2166136261U;
    for (const Accumulator& it : expected) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &it, sizeof it);
        sum = (sum ^ bits) * 16777619U;
    }
    return sum;
}

TEST_CASE(
    "emulated products have the same bits under -ffast-math, with subnormal sums, infinities and NaNs") {
    CHECK(checksum<arch::sm_90, mp::half, float>(14, 0) == 3841218202U);
    CHECK(checksum<arch::sm_90, mp::half, float>(14, 100) == 3681639849U);
    CHECK(checksum<arch::sm_70, mp::half, mp::half>(6, 200) == 1741871251U);
    CHECK(checksum<arch::sm_80, mp::bfloat16, float>(126, 0) == 3444112116U);
    CHECK(checksum<arch::sm_90, mp::bfloat16, float>(58, 0) == 1395545793U);  // sums around 2^-136
    CHECK(checksum<arch::sm_90, mp::bfloat16, float>(62, 50) == 1553111299U);
    CHECK(checksum<arch::sm_90, mp::tfloat32, float>(61, 50) == 3931119309U);
    CHECK(checksum<arch::sm_90, mp::float8_e4m3fn, float>(4, 100) == 1720173738U);
    CHECK(checksum<arch::sm_100, mp::float8_e5m2, float>(10, 100) == 350773025U);
}

/// Block-scaled matrices of any codes, compared with mp::scaled_block_fma.
template <class Matrix>
int wrong_block_scaled(unsigned first_scale, unsigned last_scale) {
    using element = typename Matrix::element_type;
    using scale = typename Matrix::scale_type;
    constexpr std::ptrdiff_t m = 5;
    constexpr std::ptrdiff_t n = 19;
    constexpr std::ptrdiff_t k = 192;
    constexpr int block = Matrix::block_size;
    std::mt19937 random(first_scale);
    Matrix a(m, k), b(k, n, mp::block_direction::along_columns);
    for (Matrix* const it : {&a, &b}) {
        for (std::byte& byte : it->bytes()) byte = static_cast<std::byte>(random());
        for (scale& one : it->scales()) {
            const unsigned code = first_scale + static_cast<unsigned>(random() % (last_scale - first_scale));
            one = scale::from_bits(static_cast<std::uint8_t>(random() % 100 == 0 ? random() : code));
        }
    }
    std::vector<float> c(m * n);
    mp::gemm(mp::emulated<arch::sm_100>{}, 1.0F, a, b, 0.0F, mp::row_major(c.data(), m, n));
    constexpr std::ptrdiff_t step = mp::block_scaled_rule_of<Matrix, Matrix>(arch::sm_100).products;
    int wrong = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            float sum = 0;
            for (std::ptrdiff_t p = 0; p < k; p += step) {
                std::vector<element> left, right;
                std::vector<scale> left_scales, right_scales;
                for (std::ptrdiff_t q = p; q < p + step; ++q) {
                    left.push_back(a.element(i, q));
                    right.push_back(b.element(q, j));
                    if (q % block != 0) continue;
                    left_scales.push_back(a.scale(i, q));
                    right_scales.push_back(b.scale(q, j));
                }
                sum = mp::scaled_block_fma<arch::sm_100, block, element, element, scale>(
                    left, left_scales, right, right_scales, sum);
            }
            wrong += std::bit_cast<std::uint32_t>(sum) ==
                             std::bit_cast<std::uint32_t>(c[static_cast<std::size_t>(i * n + j)])
                         ? 0
                         : 1;
        }
    }
    return wrong;
}

TEST_CASE("block-scaled products have the same bits under -ffast-math, too") {
    CHECK(wrong_block_scaled<mp::mxfp8_e4m3>(120, 130) == 0);
    CHECK(wrong_block_scaled<mp::mxfp8_e4m3>(50, 60) == 0);  // sums around 2^-140
    CHECK(wrong_block_scaled<mp::mxfp4>(120, 130) == 0);
    CHECK(wrong_block_scaled<mp::mxfp4>(50, 60) == 0);
    CHECK(wrong_block_scaled<mp::nvfp4>(0, 126) == 0);
}

TEST_CASE("promotion of a NaN and of infinities of both signs gives the NaN of GPUs under -ffast-math") {
    std::vector<mp::float8_e5m2> a(256);
    std::vector<mp::float8_e5m2> b(256, mp::float8_e5m2(1.0F));
    const auto product = [&] {
        float c = 0;
        mp::gemm(mp::emulated<arch::sm_90>{}, 1.0F, mp::row_major(a.data(), 1, 256),
                 mp::row_major(b.data(), 256, 1), 0.0F, mp::row_major(&c, 1, 1));
        return std::bit_cast<std::uint32_t>(c);
    };
    a[3] = mp::float8_e5m2::from_bits(0x7C);  // infinity
    CHECK(product() == 0x7F80'0000);
    a[200] = mp::float8_e5m2::from_bits(0xFC);
    CHECK(product() == 0x7FFF'FFFF);
    a[200] = mp::float8_e5m2::from_bits(0x7F);
    CHECK(product() == 0x7FFF'FFFF);
}

}  // namespace
