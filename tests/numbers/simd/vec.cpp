// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <mp/numbers/format/classification.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/numbers/simd/vec.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#define MP_KERNEL_FILE <numbers/simd/vec_operations.inl>
#include <mp/numbers/simd/for_each_vec.inl>

namespace {

namespace d = mp::detail;

float from_bits(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}

/// Operands of a kind: any bits; products near a middle between two floats; numbers with few bits, whose sums
/// are middles; products and sums around the subnormal numbers; sums that cancel; and sums so near to a
/// middle that doubles do not tell them from it, normal ones and subnormal ones.
struct operands {
    float a, b, c;

    operands(std::mt19937_64& random, int kind) {
        auto x = static_cast<std::uint32_t>(random());
        auto y = static_cast<std::uint32_t>(random());
        auto z = static_cast<std::uint32_t>(random());
        if (kind == 1) {
            x = (x & 0x8000'0FFFU) | 0x3F80'0000U | ((x >> 3) & 0x07F0'0000U);
            y = (y & 0x807F'F000U) | 0x3F00'0000U;
            z = (z & 0x80FF'FFFFU) | 0x3F00'0000U;
        } else if (kind == 2) {
            x = (x & 0x83F0'0000U) | 0x3C00'0000U;
            y = (y & 0x83F0'0000U) | 0x3C00'0000U;
            z = (z & 0x83FF'0000U) | 0x3C00'0000U;
        } else if (kind == 3) {
            x &= 0x9FFF'FFFFU;
            y = (y & 0x9FFF'FFFFU) | 0x1000'0000U;
            z &= 0x81FF'FFFFU;
        }
        a = from_bits(x);
        b = from_bits(y);
        c = kind == 4 ? -(a * b) : from_bits(z);
        if (kind >= 5) {
            // 2^46 + 1 is the product of these, which is a little more than half a unit of c.
            const float scale = kind == 5 ? std::ldexp(1.0F, -20) : std::ldexp(1.0F, -73);
            a = 8392705.0F * scale * ((x & 1) != 0 ? 1.0F : -1.0F);
            b = 8384513.0F * (kind == 5 ? 0x1p-26F : 0x1p-123F);
            c = kind == 5 ? from_bits((z & 0x807F'FFFFU) | 0x4B80'0000U) : from_bits(z & 0x80FF'FFFFU);
        }
    }
};

/// The functions of one kind of vector.
struct vector_kind {
    std::string name;
    decltype(&d::single_lane::apply_to_floats) floats = &d::single_lane::apply_to_floats;
    decltype(&d::single_lane::apply_to_doubles) doubles = &d::single_lane::apply_to_doubles;
    decltype(&d::single_lane::sum_lanes_of) sum = &d::single_lane::sum_lanes_of;
    decltype(&d::single_lane::largest_lane_of) largest = &d::single_lane::largest_lane_of;
    decltype(&d::single_lane::copy_first) copy_first = &d::single_lane::copy_first;
};

/// All that this processor has.
std::vector<vector_kind> vector_kinds() {
    namespace p = d::portable_vectors;
    std::vector<vector_kind> kinds = {{"single_lane"},
                                      {"portable_vectors", &p::apply_to_floats, &p::apply_to_doubles,
                                       &p::sum_lanes_of, &p::largest_lane_of, &p::copy_first}};
    for (const mp::instruction_set isa :
         {mp::instruction_set::neon, mp::instruction_set::avx2, mp::instruction_set::avx512}) {
        if (!mp::processor_has(isa)) continue;
        kinds.push_back({std::string(mp::name_of(isa)),
                         MP_SELECT_TARGET(isa, &p::apply_to_floats, apply_to_floats),
                         MP_SELECT_TARGET(isa, &p::apply_to_doubles, apply_to_doubles),
                         MP_SELECT_TARGET(isa, &p::sum_lanes_of, sum_lanes_of),
                         MP_SELECT_TARGET(isa, &p::largest_lane_of, largest_lane_of),
                         MP_SELECT_TARGET(isa, &p::copy_first, copy_first)});
    }
    return kinds;
}

template <class Float>
bool same(Float a, Float b) {
    if (mp::isnan(a) || mp::isnan(b)) return mp::isnan(a) && mp::isnan(b);
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The compiler neither folds nor fuses what goes through it.
template <class Float>
Float stored(Float x) {
    volatile Float kept = x;
    return kept;
}

constexpr std::array float_operations = {"a + b",
                                         "a - b",
                                         "a * b",
                                         "a / b",
                                         "fma(a, b, c)",
                                         "fma(a, 3, c)",
                                         "0.1 + a",
                                         "sqrt(a)",
                                         "max_or_nan(a)",
                                         "a > 1",
                                         "a < 1",
                                         "select_by_sign(a, b, c)",
                                         "b where a is above -2.5 or NaN",
                                         "min of words",
                                         "min of integers",
                                         "max of integers",
                                         "other sign",
                                         "broadcast(b)",
                                         "broadcast",
                                         "narrow(widen(a) * widen(b))"};

std::array<float, float_operations.size()> expected_of(float a, float b, float c) {
    const auto x = std::bit_cast<std::uint32_t>(a);
    const auto y = std::bit_cast<std::uint32_t>(b);
    const bool negative = x >> 31 != 0;
    return {stored(a + b),
            stored(a - b),
            stored(a * b),
            stored(a / b),
            std::fma(a, b, c),
            std::fma(a, 3.0F, c),
            stored(0.1F + a),
            std::sqrt(a),
            a < -2.5F ? -2.5F : a,
            a > 1.0F ? b : c,
            a < 1.0F ? b : c,
            negative ? b : c,
            a <= -2.5F ? 0.0F : b,
            from_bits(std::min(x, y)),
            from_bits(std::bit_cast<std::uint32_t>(
                std::min(std::bit_cast<std::int32_t>(a), std::bit_cast<std::int32_t>(b)))),
            from_bits(std::bit_cast<std::uint32_t>(
                std::max(std::bit_cast<std::int32_t>(a), std::bit_cast<std::int32_t>(b)))),
            from_bits(x ^ 0x8000'0001U),
            b,
            -0.0F,
            static_cast<float>(stored(static_cast<double>(a) * static_cast<double>(b)))};
}

constexpr std::size_t element_count = 16 * 7 * 3000;

TEST_CASE("every kind of vector rounds each operation on floats by itself, fma once") {
    std::mt19937_64 random(1);
    std::vector<float> a(element_count), b(element_count), c(element_count);
    for (std::size_t i = 0; i < element_count; ++i) {
        const operands of(random, static_cast<int>(i / 16 % 7));
        a[i] = of.a;
        b[i] = of.b;
        c[i] = of.c;
    }
    const float special[] = {0.0F,        1.0F, -2.5F, from_bits(0x7f80'0000U), from_bits(0x7fc0'0001U),
                             from_bits(1)};
    for (std::size_t i = 0; i < 144; ++i) {
        a[i] = special[i % 6] * (i >= 72 ? -1.0F : 1.0F);
        b[i] = special[i / 6 % 6] * (i >= 36 ? -1.0F : 1.0F);
    }
    std::vector<std::array<float, float_operations.size()>> expected(element_count);
    for (std::size_t i = 0; i < element_count; ++i) expected[i] = expected_of(a[i], b[i], c[i]);
    for (const vector_kind& kind : vector_kinds()) {
        CAPTURE(kind.name);
        std::vector<std::vector<float>> results(float_operations.size(), std::vector<float>(element_count));
        std::vector<float*> to;
        for (auto& result : results) to.push_back(result.data());
        kind.floats(a.data(), b.data(), c.data(), element_count, to.data());
        for (std::size_t o = 0; o < float_operations.size(); ++o) {
            std::size_t different = 0;
            for (std::size_t i = 0; i < element_count; ++i) {
                different += same(results[o][i], expected[i][o]) ? 0U : 1U;
            }
            CAPTURE(float_operations[o]);
            CHECK(different == 0);
        }
    }
}

constexpr std::array double_operations = {"widen(a)", "load_wide(a)", "a + b", "a - b",
                                          "a * b",    "broadcast",    "a / b", "sqrt(b)"};

TEST_CASE("every kind of vector rounds each operation on doubles by itself") {
    std::mt19937_64 random(2);
    std::vector<float> a(element_count);
    std::vector<double> b(element_count);
    for (std::size_t i = 0; i < element_count; ++i) {
        a[i] = operands(random, static_cast<int>(i / 16 % 7)).a;
        b[i] = i % 3 == 0 ? std::bit_cast<double>(random())
                          : static_cast<double>(a[i]) * std::ldexp(static_cast<double>(random()), -70);
    }
    for (const vector_kind& kind : vector_kinds()) {
        CAPTURE(kind.name);
        std::vector<std::vector<double>> results(double_operations.size(),
                                                 std::vector<double>(element_count));
        std::vector<double*> to;
        for (auto& result : results) to.push_back(result.data());
        kind.doubles(a.data(), b.data(), element_count, to.data());
        std::array<std::size_t, double_operations.size()> different{};
        for (std::size_t i = 0; i < element_count; ++i) {
            const auto x = static_cast<double>(a[i]);
            const double expected[] = {x,
                                       x,
                                       stored(x + b[i]),
                                       stored(x - b[i]),
                                       stored(x * b[i]),
                                       0.1,
                                       stored(x / b[i]),
                                       std::sqrt(b[i])};
            for (std::size_t o = 0; o < double_operations.size(); ++o) {
                different[o] += same(results[o][i], expected[o]) ? 0U : 1U;
            }
        }
        for (std::size_t o = 0; o < double_operations.size(); ++o) {
            CAPTURE(double_operations[o]);
            CHECK(different[o] == 0);
        }
    }
}

TEST_CASE("the lanes of a vector of doubles are added by halves") {
    std::mt19937_64 random(3);
    for (const vector_kind& kind : vector_kinds()) {
        CAPTURE(kind.name);
        for (int round = 0; round < 100; ++round) {
            std::vector<double> x(16);
            for (double& value : x)
                value = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 60));
            double found = 0;
            const std::size_t lanes = kind.sum(x.data(), &found);
            for (std::size_t half = lanes / 2; half > 0; half /= 2) {
                for (std::size_t i = 0; i < half; ++i) x[i] = stored(x[i] + x[i + half]);
            }
            CHECK(same(found, x[0]));
        }
    }
}

TEST_CASE("the largest lane of a vector is found wherever it is") {
    for (const vector_kind& kind : vector_kinds()) {
        CAPTURE(kind.name);
        double unused = 0;
        const double numbers[16] = {};
        const std::size_t lanes = kind.sum(numbers, &unused);
        for (const int largest : {-5, 7}) {
            for (std::size_t at = 0; at < lanes; ++at) {
                float bits[16];
                for (std::size_t i = 0; i < 16; ++i) {
                    const int value = i == at ? largest : i < lanes ? -6 - static_cast<int>(i) : 100;
                    bits[i] = std::bit_cast<float>(value);
                }
                CHECK(kind.largest(bits) == largest);
            }
        }
    }
}

TEST_CASE("parts of a vector leave the memory behind them alone, and the other lanes are zero") {
    const float floats[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    const double numbers[17] = {-1, -2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
    for (const vector_kind& kind : vector_kinds()) {
        CAPTURE(kind.name);
        double unused = 0;
        const std::size_t lanes = kind.sum(numbers, &unused);
        for (std::size_t n = 0; n < lanes; ++n) {
            float to[17], all[17];
            double to_numbers[17], all_numbers[17], filled[17];
            std::fill(std::begin(to), std::end(to), 42.0F);
            std::fill(std::begin(to_numbers), std::end(to_numbers), 42.0);
            kind.copy_first(n, floats, numbers, to, to_numbers, all, all_numbers, filled);
            bool right = true;
            for (std::size_t i = 0; i < 17; ++i) {
                right = right && same(to[i], i < n ? floats[i] : 42.0F);
                right = right && same(to_numbers[i], i < n ? numbers[i] : 42.0);
                if (i >= lanes) continue;
                right = right && same(all[i], i < n ? floats[i] : 0.0F);
                right = right && same(all_numbers[i], i < n ? numbers[i] : 0.0);
                right = right && same(filled[i], i < n ? numbers[i] : -3.0);
            }
            CAPTURE(n);
            CHECK(right);
        }
    }
}

}  // namespace
