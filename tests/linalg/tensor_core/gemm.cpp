// SPDX-License-Identifier: MIT
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "message_of.hpp"
#include "slow_model.hpp"

namespace {

using mp::arch;
using mp::bfloat16;
using mp::emulated;
using mp::float8_e4m3fn;
using mp::float8_e5m2;
using mp::float8_unit;
using mp::half;
using mp::instruction_set;
using mp::tfloat32;

/// What the numbers of a test are like.
enum class values { plain, wide, tiny, special };

template <class Value>
Value number(std::mt19937& random, values kind) {
    const int spread = kind == values::wide ? 60 : 4;
    const bool many_exponents = slow::layout<Value>::exponent == 8;
    const double magnitude =
        std::ldexp(1.0 + static_cast<double>(random() % 4096) / 4096.0,
                   static_cast<int>(random() % static_cast<unsigned>(2 * spread)) - spread);
    const double scale = kind != values::tiny ? 1.0 : many_exponents ? 0x1p-66 : 0x1p-11;
    if (random() % 16 == 0) return Value(0.0F);
    if (kind == values::special && random() % 32 == 0) {
        return Value(std::array{std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN(), 57344.0F}[random() % 4]);
    }
    return Value((random() % 2 == 0 ? magnitude : -magnitude) * scale);
}

/// A matrix in any order, with padding behind its lines that must stay as it is.
template <class Value>
struct matrix {
    std::vector<Value> data;
    mp::matrix_view<Value> view;

    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, mp::storage_order order, std::ptrdiff_t padding = 0) {
        const std::ptrdiff_t length = order == mp::storage_order::row_major ? columns : rows;
        const std::ptrdiff_t lines = order == mp::storage_order::row_major ? rows : columns;
        data.resize(static_cast<std::size_t>(lines * (length + padding)) + 1);
        view = {data.data(), rows, columns, length + padding, order};
    }
    void fill(std::mt19937& random, values kind) {
        for (Value& it : data) it = number<Value>(random, kind);
    }
};

constexpr auto rows_first = mp::storage_order::row_major;
constexpr auto columns_first = mp::storage_order::column_major;

/// The accumulator that the rule gives, promotion included.
template <class Value>
float expected_sum(const slow::rule& rule, mp::matrix_view<Value> a, mp::matrix_view<Value> b,
                   std::ptrdiff_t row, std::ptrdiff_t column, std::ptrdiff_t interval) {
    const auto part = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        return slow::sum<Value>(
            rule, end - begin, [&](std::ptrdiff_t p) { return a(row, begin + p); },
            [&](std::ptrdiff_t p) { return b(begin + p, column); }, 0.0F);
    };
    if (interval == 0) return part(0, a.columns);
    float total = 0;
    for (std::ptrdiff_t p = 0; p < a.columns; p += interval) {
        total = static_cast<float>(static_cast<double>(total) +
                                   static_cast<double>(part(p, std::min(p + interval, a.columns))));
    }
    return total;
}

/// Plain products with float results, compared with the rule.
template <arch Arch, class Accumulator, class Value>
int wrong_results(emulated<Arch, Accumulator> exec, const slow::rule& rule, std::ptrdiff_t m,
                  std::ptrdiff_t n, std::ptrdiff_t p, values kind, unsigned seed,
                  std::ptrdiff_t interval = 0) {
    std::mt19937 random(seed);
    matrix<Value> a(m, p, seed % 2 == 0 ? rows_first : columns_first, seed % 3);
    matrix<Value> b(p, n, seed / 2 % 2 == 0 ? rows_first : columns_first, seed % 5);
    a.fill(random, kind);
    b.fill(random, kind);
    matrix<float> c(m, n, seed / 4 % 2 == 0 ? rows_first : columns_first, seed % 4);
    std::fill(c.data.begin(), c.data.end(), 77.0F);
    mp::gemm(exec, 1.0F, a.view, b.view, 0.0F, c.view);
    int wrong = 0;
    for (std::ptrdiff_t i = 0; i < m; ++i) {
        for (std::ptrdiff_t j = 0; j < n; ++j) {
            wrong += slow::same(c.view(i, j), expected_sum(rule, a.view, b.view, i, j, interval)) ? 0 : 1;
            c.view(i, j) = 77.0F;
        }
    }
    for (const float it : c.data) wrong += it == 77.0F ? 0 : 1;  // the padding
    return wrong;
}

template <arch Arch, class Accumulator, class Value>
void compare(const slow::rule& rule, std::string_view name, std::ptrdiff_t interval = 0) {
    for (instruction_set isa :
         {instruction_set::portable, instruction_set::neon, instruction_set::avx2, instruction_set::avx512}) {
        if (!mp::processor_has(isa)) continue;
        const emulated<Arch, Accumulator> exec{.instructions = isa};
        std::mt19937 random(static_cast<unsigned>(isa));
        int wrong = 0;
        for (unsigned trial = 0; trial < 24; ++trial) {
            const auto size = [&] { return static_cast<std::ptrdiff_t>(random() % 40 + 1); };
            const std::ptrdiff_t m = size();
            const std::ptrdiff_t n = size();
            const std::ptrdiff_t p = trial % 6 == 0 ? 5 * size() : size();
            wrong += wrong_results<Arch, Accumulator, Value>(exec, rule, m, n, p,
                                                             static_cast<values>(trial % 4), trial, interval);
        }
        CHECK_MESSAGE(wrong == 0, name << ", isa " << static_cast<int>(isa));
    }
}

TEST_CASE(
    "an emulated product has the bits of the written rule: any size, order, instruction set and kind of "
    "numbers") {
    compare<arch::sm_70, float, half>(slow::volta_half, "sm_70 half");
    compare<arch::sm_70, half, half>(slow::volta_half_half, "sm_70 half into half");
    compare<arch::sm_75, float, half>(slow::ampere_half, "sm_75 half");
    compare<arch::sm_80, float, half>(slow::ampere_half, "sm_80 half");
    compare<arch::sm_80, half, half>(slow::ampere_half_half, "sm_80 half into half");
    compare<arch::sm_80, float, bfloat16>(slow::ampere_half, "sm_80 bfloat16");
    compare<arch::sm_80, float, tfloat32>(slow::ampere_tf32, "sm_80 tfloat32");
    compare<arch::sm_89, float, float8_e5m2>(slow::ada_fp8, "sm_89 e5m2", 128);
    compare<arch::sm_89, half, float8_e4m3fn>(slow::ada_fp8_half, "sm_89 e4m3 into half");
    compare<arch::sm_90, float, half>(slow::hopper_half, "sm_90 half");
    compare<arch::sm_90, half, half>(slow::hopper_half_half, "sm_90 half into half");
    compare<arch::sm_90, float, bfloat16>(slow::hopper_half, "sm_90 bfloat16");
    compare<arch::sm_90, float, tfloat32>(slow::hopper_tf32, "sm_90 tfloat32");
    compare<arch::sm_90, float, float8_e4m3fn>(slow::hopper_fp8, "sm_90 e4m3", 128);
    compare<arch::sm_90, half, float8_e5m2>(slow::hopper_fp8_half, "sm_90 e5m2 into half");
    compare<arch::sm_100, float, float8_e4m3fn>(slow::blackwell_fp8, "sm_100 e4m3");
    compare<arch::sm_120, float, float8_e5m2>(slow::blackwell_fp8, "sm_120 e5m2");
}

TEST_CASE("sums that need more than the vectors' 32 bits are the rule's, too") {
    const auto wrong_of = [](auto exec, auto value, const slow::rule& rule, float first, bool mixed_signs) {
        using number_type = decltype(value);
        constexpr std::ptrdiff_t size = 33;
        constexpr std::ptrdiff_t k = 96;
        matrix<number_type> a(size, k, rows_first);
        matrix<number_type> b(k, size, columns_first);
        std::fill(a.data.begin(), a.data.end(), value);
        std::fill(b.data.begin(), b.data.end(), mixed_signs ? -value : value);
        for (std::ptrdiff_t j = 0; j < size; j += 2) b.view(0, j) = number_type(first);
        // And columns whose first block leaves an addend of the same exponent as the products that follow.
        for (std::ptrdiff_t j = 1; j < size; j += 4) {
            for (std::ptrdiff_t p = 0; p < rule.products - 1; ++p) b.view(p, j) = number_type(0.0F);
            b.view(rule.products - 1, j) = number_type(mixed_signs ? -0.75F : 0.75F);
        }
        matrix<float> c(size, size, rows_first);
        mp::gemm(exec, 1.0F, a.view, b.view, 0.0F, c.view);
        int wrong = 0;
        for (std::ptrdiff_t i = 0; i < size; ++i) {
            for (std::ptrdiff_t j = 0; j < size; ++j) {
                wrong += slow::same(c.view(i, j), expected_sum(rule, a.view, b.view, i, j, 0)) ? 0 : 1;
            }
        }
        return wrong;
    };
    for (const bool mixed : {false, true}) {
        for (const float first : {0.0F, 1.875F, 16.0F}) {
            CHECK(wrong_of(emulated<arch::sm_90>{}, half(0x1.FFCp0F), slow::hopper_half, first, mixed) == 0);
            CHECK(wrong_of(emulated<arch::sm_90>{}, half(0x1.FFCp15F), slow::hopper_half, first, mixed) == 0);
            CHECK(wrong_of(emulated<arch::sm_90, half>{}, half(0x1.FFCp0F), slow::hopper_half_half, first,
                           mixed) == 0);
            CHECK(wrong_of(emulated<arch::sm_90>{}, bfloat16(0x1.FEp127F), slow::hopper_half, first, mixed) ==
                  0);
            CHECK(wrong_of(emulated<arch::sm_90>{}, bfloat16(0x1.FEp60F), slow::hopper_half, first, mixed) ==
                  0);
            CHECK(wrong_of(emulated<arch::sm_100>{}, float8_e4m3fn(1.875F), slow::blackwell_fp8, first,
                           mixed) == 0);
            CHECK(wrong_of(emulated<arch::sm_100>{}, float8_e5m2(1.75F), slow::blackwell_fp8, first, mixed) ==
                  0);
        }
    }
}

TEST_CASE(
    "promotion starts the narrow accumulators again from zero, where there are such, and by default every "
    "128") {
    const auto wrong = [](auto exec, const slow::rule& rule, std::ptrdiff_t interval) {
        return wrong_results<decltype(exec)::architecture, float, float8_e4m3fn>(exec, rule, 5, 7, 500,
                                                                                 values::plain, 3, interval);
    };
    CHECK(wrong(emulated<arch::sm_90>{}, slow::hopper_fp8, 128) == 0);
    CHECK(wrong(emulated<arch::sm_90>{.promotion_interval = 32}, slow::hopper_fp8, 32) == 0);
    CHECK(wrong(emulated<arch::sm_90>{.promotion_interval = 192}, slow::hopper_fp8, 192) == 0);
    CHECK(wrong(emulated<arch::sm_90>{.promotion_interval = 1024}, slow::hopper_fp8, 0) == 0);
    CHECK(wrong(emulated<arch::sm_90>{.promotion_interval = 0}, slow::hopper_fp8, 0) == 0);
    CHECK(wrong(emulated<arch::sm_90>{.promotion_interval = 0}, slow::hopper_fp8, 128) != 0);
    CHECK(wrong(emulated<arch::sm_89>{}, slow::ada_fp8, 128) == 0);
    CHECK(wrong(emulated<arch::sm_100>{.promotion_interval = 32}, slow::blackwell_fp8, 0) == 0);
}

TEST_CASE("8-bit operands through half: each step of 32 as mma.sync, as mp::mma has them") {
    std::mt19937 random(5);
    matrix<float8_e5m2> a(9, 75, rows_first, 2);
    matrix<float8_e4m3fn> b(75, 21, rows_first);
    a.fill(random, values::plain);
    b.fill(random, values::plain);
    matrix<float> c(9, 21, columns_first);
    matrix<float> expected(9, 21, rows_first);
    mp::gemm(emulated<arch::sm_90>{.float8 = float8_unit::through_half}, 1.0F, a.view, b.view, 0.0F, c.view);
    mp::mma<arch::sm_90>(a.view, b.view, expected.view, expected.view, float8_unit::through_half);
    int wrong = 0;
    int exact = 0;
    for (std::ptrdiff_t i = 0; i < 9; ++i) {
        for (std::ptrdiff_t j = 0; j < 21; ++j) {
            wrong += slow::same(c.view(i, j), expected.view(i, j)) ? 0 : 1;
            double sum = 0;
            for (std::ptrdiff_t p = 0; p < 75; ++p)
                sum += slow::value_of(a.view(i, p)) * slow::value_of(b.view(p, j));
            exact +=
                std::fabs(sum - static_cast<double>(c.view(i, j))) <= 1e-5 * std::fabs(sum) + 1e-3 ? 1 : 0;
        }
    }
    CHECK(wrong == 0);
    CHECK(exact == 9 * 21);

    // Into half, where sm_100 has no other unit in the model.
    std::vector<half> into(9 * 21);
    std::vector<half> expected_half(9 * 21);
    const auto halves = mp::row_major(expected_half.data(), 9, 21);
    mp::gemm(emulated<arch::sm_100, half>{.float8 = float8_unit::through_half}, 1.0F, a.view, b.view, 0.0F,
             mp::row_major(into.data(), 9, 21));
    mp::mma<arch::sm_100>(a.view, b.view, halves, halves, float8_unit::through_half);
    CHECK(std::memcmp(into.data(), expected_half.data(), into.size() * sizeof(half)) == 0);
}

TEST_CASE("8-bit operands through half: every code, tiles and instruction sets have the bits of mma.sync") {
    std::mt19937 random(11);
    for (const bool special : {false, true}) {
        matrix<float8_e5m2> a(131, 200, rows_first, 1);
        matrix<float8_e5m2> b(200, 70, columns_first);
        for (const auto& view : {a.view, b.view}) {
            for (std::ptrdiff_t i = 0; i < view.rows; ++i) {
                for (std::ptrdiff_t j = 0; j < view.columns; ++j) {
                    // Infinities and NaNs are rare, so that most sums have none.
                    std::uint8_t code = 0;
                    do {
                        code = static_cast<std::uint8_t>(random());
                    } while ((code & 0x7F) >= 0x7C && !(special && random() % 50 == 0));
                    view(i, j) = float8_e5m2::from_bits(code);
                }
            }
        }
        std::vector<float> expected(131 * 70), c(131 * 70);
        const auto into = [](std::vector<float>& to) { return mp::row_major(to.data(), 131, 70); };
        mp::mma<arch::sm_90>(a.view, b.view, into(expected), into(expected), float8_unit::through_half);
        for (const auto isa : {mp::instruction_set::portable, mp::instruction_set::best}) {
            mp::gemm(emulated<arch::sm_90>{.instructions = isa, .float8 = float8_unit::through_half}, 1.0F,
                     a.view, b.view, 0.0F, into(c));
            CHECK(std::memcmp(c.data(), expected.data(), c.size() * sizeof(float)) == 0);
        }
        int nans = 0;
        for (const float sum : expected) nans += std::isnan(sum) ? 1 : 0;
        CHECK((nans > 100) == special);
        CHECK(nans < 131 * 70 - 100);
    }
}

TEST_CASE("an architecture without a model of its own has that of its family, and says so") {
    using mp::block_rule_of;
    using mp::operand_kind;
    for (const auto& [variant, model] :
         {std::pair{arch::sm_87, arch::sm_86}, std::pair{arch::sm_103, arch::sm_100},
          std::pair{arch::sm_110, arch::sm_100}, std::pair{arch::sm_121, arch::sm_120}}) {
        for (const auto kind :
             {operand_kind::fp16, operand_kind::bf16, operand_kind::tf32, operand_kind::fp8}) {
            const mp::block_rule rule = block_rule_of(variant, kind, false);
            const mp::block_rule same = block_rule_of(model, kind, false);
            CHECK(rule.products == same.products);
            CHECK(rule.fraction_bits == same.fraction_bits);
            CHECK((rule.products == 0 || rule.known == mp::evidence::assumed));
        }
        CHECK(mp::has_float8_through_half(variant) == mp::has_float8_through_half(model));
    }
    std::mt19937 random(3);
    matrix<half> a(5, 70, rows_first);
    matrix<half> b(70, 6, rows_first);
    a.fill(random, values::plain);
    b.fill(random, values::plain);
    std::vector<float> thor(30), b200(30);
    const auto into = [](std::vector<float>& to) { return mp::row_major(to.data(), 5, 6); };
    mp::gemm(emulated<arch::sm_110>{}, 1.0F, a.view, b.view, 0.0F, into(thor));
    mp::gemm(emulated<arch::sm_100>{}, 1.0F, a.view, b.view, 0.0F, into(b200));
    CHECK(thor == b200);
}

TEST_CASE("the last of 26 bits decides a tie between two halves") {
    const half a[] = {half(2048), half(1), half(0x1p-7)};
    const half b[] = {half(1), half(1), half(0x1p-7)};
    half c{};
    const auto product = [&](std::ptrdiff_t k) {
        mp::gemm(emulated<arch::sm_90, half>{}, 1.0F, mp::row_major(a, 1, k), mp::column_major(b, k, 1), 0.0F,
                 mp::row_major(&c, 1, 1));
        return static_cast<float>(c);
    };
    CHECK(product(2) == 2048.0F);
    CHECK(product(3) == 2050.0F);
}

TEST_CASE("the unit for 8-bit operands means nothing to others") {
    std::mt19937 random(6);
    matrix<half> a(5, 70, rows_first);
    matrix<half> b(70, 6, rows_first);
    a.fill(random, values::plain);
    b.fill(random, values::plain);
    std::vector<float> with(30), without(30), fragments(30);
    const auto into = [](std::vector<float>& to) { return mp::row_major(to.data(), 5, 6); };
    mp::gemm(emulated<arch::sm_90>{.float8 = float8_unit::through_half}, 1.0F, a.view, b.view, 0.0F,
             into(with));
    mp::gemm(emulated<arch::sm_90>{}, 1.0F, a.view, b.view, 0.0F, into(without));
    mp::mma<arch::sm_90>(a.view, b.view, into(fragments), into(fragments), float8_unit::through_half);
    CHECK(std::memcmp(with.data(), without.data(), 30 * sizeof(float)) == 0);
    CHECK(std::memcmp(fragments.data(), without.data(), 30 * sizeof(float)) == 0);
}

TEST_CASE("alpha, beta and the epilogue work on the accumulators as on the CPU") {
    constexpr std::ptrdiff_t m = 19;
    constexpr std::ptrdiff_t n = 37;
    constexpr std::ptrdiff_t p = 50;
    std::mt19937 random(8);
    matrix<half> a(m, p, columns_first, 1);
    matrix<half> b(p, n, rows_first, 3);
    a.fill(random, values::plain);
    b.fill(random, values::plain);
    std::vector<float> bias(n);
    for (float& it : bias) it = static_cast<float>(random() % 1000) - 500.0F;
    for (const auto order : {rows_first, columns_first}) {
        matrix<bfloat16> c(m, n, order, 2);
        c.fill(random, values::plain);
        const matrix<bfloat16> before = c;
        const auto kept =
            mp::matrix_view<const bfloat16>{before.data.data(), m, n, c.view.leading_dimension, order};
        mp::gemm(emulated<arch::sm_80>{}, 0.3F, a.view, b.view, -1.7F, c.view,
                 mp::compose(mp::bias_per_column(bias), mp::relu_epilogue{}));
        int wrong = 0;
        for (std::ptrdiff_t i = 0; i < m; ++i) {
            for (std::ptrdiff_t j = 0; j < n; ++j) {
                const double sum =
                    static_cast<double>(expected_sum(slow::ampere_half, a.view, b.view, i, j, 0));
                const double scaled = static_cast<double>(0.3F) * sum;
                const auto value =
                    static_cast<float>(scaled + static_cast<double>(-1.7F) * slow::value_of(kept(i, j)));
                const float expected = std::max(value + bias[static_cast<std::size_t>(j)], 0.0F);
                wrong += c.view(i, j).bits() == bfloat16(expected).bits() ? 0 : 1;
            }
        }
        CHECK(wrong == 0);
        // Nothing but beta * c is left; a NaN in a is not looked at. And beta zero does not read c.
        a.view(0, 0) = std::numeric_limits<half>::quiet_NaN();
        c = before;
        c.view.data = c.data.data();
        mp::gemm(emulated<arch::sm_80>{}, 0.0F, a.view, b.view, 2.0F, c.view);
        CHECK(slow::value_of(c.view(3, 4)) == 2 * slow::value_of(kept(3, 4)));
        a.view(0, 0) = half(1);
        c.view(0, 0) = std::numeric_limits<bfloat16>::quiet_NaN();
        mp::gemm(emulated<arch::sm_80>{}, 1.0F, a.view, b.view, 0.0F, c.view);
        CHECK(std::isfinite(static_cast<float>(c.view(0, 0))));
    }
}

TEST_CASE("threads and instruction sets change no bit of a product of several tiles") {
    constexpr std::ptrdiff_t m = 300;
    constexpr std::ptrdiff_t n = 150;
    constexpr std::ptrdiff_t p = 260;
    std::mt19937 random(9);
    matrix<bfloat16> a(m, p, rows_first);
    matrix<bfloat16> b(p, n, columns_first);
    a.fill(random, values::wide);
    b.fill(random, values::special);
    matrix<float> first(m, n, rows_first);
    mp::gemm(emulated<arch::sm_90>{}, 1.0F, a.view, b.view, 0.0F, first.view);
    for (const int threads : {1, 2, 3, 8}) {
        matrix<float> c(m, n, rows_first);
        const emulated<arch::sm_90> exec{
            .threads = threads,
            .instructions = threads % 2 == 0 ? instruction_set::portable : instruction_set::best};
        mp::gemm(exec, 1.0F, a.view, b.view, 0.0F, c.view);
        CHECK(std::memcmp(c.data.data(), first.data.data(), c.data.size() * sizeof(float)) == 0);
    }
    int wrong = 0;
    for (std::ptrdiff_t i = 0; i < m; i += 7) {
        for (std::ptrdiff_t j = 0; j < n; j += 11) {
            wrong += slow::same(first.view(i, j), expected_sum(slow::hopper_half, a.view, b.view, i, j, 0))
                         ? 0
                         : 1;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("numbers are cut off, so sums of positive numbers drift down, on older architectures more") {
    constexpr std::ptrdiff_t p = 4096;
    std::mt19937 random(10);
    matrix<half> a(1, p, rows_first);
    matrix<half> b(p, 16, rows_first);
    for (half& it : a.data) it = half(static_cast<float>(random() >> 8) * 0x1p-24F);
    for (half& it : b.data) it = half(static_cast<float>(random() >> 8) * 0x1p-24F);
    const auto mean_error = [&](auto exec) {
        matrix<float> c(1, 16, rows_first);
        mp::gemm(exec, 1.0F, a.view, b.view, 0.0F, c.view);
        double error = 0;
        for (std::ptrdiff_t j = 0; j < 16; ++j) {
            double sum = 0;
            for (std::ptrdiff_t i = 0; i < p; ++i)
                sum += slow::value_of(a.view(0, i)) * slow::value_of(b.view(i, j));
            error += (static_cast<double>(c.view(0, j)) - sum) / 16;
        }
        return error;
    };
    const double volta = mean_error(emulated<arch::sm_70>{});
    const double ampere = mean_error(emulated<arch::sm_80>{});
    const double hopper = mean_error(emulated<arch::sm_90>{});
    CHECK(volta < 1.4 * ampere);
    CHECK(ampere < 1.4 * hopper);
    CHECK(hopper < -0.005);
    CHECK(volta > -0.5);
}

TEST_CASE("errors of an emulated product name the argument, and nothing is written") {
    std::vector<half> numbers(64, half(1));
    std::vector<float8_e4m3fn> small(64);
    std::vector<float> c(64, 5.0F);
    const auto a = mp::row_major(numbers.data(), 4, 8);
    const auto b = mp::row_major(numbers.data(), 8, 3);
    const auto out = mp::row_major(c.data(), 4, 3);
    const auto error = [&](auto exec, auto left, auto right, auto to) {
        return message_of([&] { mp::gemm(exec, 1.0F, left, right, 0.0F, to); });
    };
    CHECK(error(emulated<arch::sm_90>{.threads = 0}, a, b, out) ==
          "mp::gemm: exec.threads is 0; it must be at least 1");
    CHECK(error(emulated<arch::sm_90>{}, a, a, out) ==
          "mp::gemm: b.rows is 4; it must equal a.columns, which is 8");
    CHECK(error(emulated<arch::sm_90>{}, a, b, mp::row_major(c.data(), 5, 3)) ==
          "mp::gemm: c.rows is 5; it must equal a.rows, which is 4");
    CHECK(error(emulated<arch::sm_90>{.promotion_interval = 48}, a, b, out) ==
          "mp::gemm: exec.promotion_interval is 48; it must be zero or a positive multiple of 32");
    CHECK(error(emulated<arch::sm_90>{.promotion_interval = -32}, a, b, out)
              .starts_with("mp::gemm: exec.promotion"));
    CHECK(
        error(emulated<arch::sm_120>{.float8 = float8_unit::through_half}, mp::row_major(small.data(), 4, 8),
              mp::row_major(small.data(), 8, 3), out) ==
        "mp::gemm: exec.float8 is 'through_half'; it must be native on this architecture, whose mma.sync is");
    CHECK(message_of([&] {
              mp::gemm(emulated<arch::sm_90>{}, 1.0F, a, b, 0.0F, out,
                       mp::bias_per_column(std::vector<float>(2)));
          }) == "mp::gemm: bias.size() is 2; it must equal c.columns, which is 3");
    CHECK(error(emulated<arch::sm_90>{}, a, b, mp::row_major(numbers.data() + 30, 4, 3))
              .find("must not make c overlap a") != std::string::npos);
    CHECK(std::all_of(c.begin(), c.end(), [](float x) { return x == 5.0F; }));
    // Empty matrices are fine; without products, c is what is left.
    mp::gemm(emulated<arch::sm_90>{}, 1.0F, mp::row_major(numbers.data(), 4, 0),
             mp::row_major(numbers.data(), 0, 3), 2.0F, out);
    CHECK(c[0] == 10.0F);
    mp::gemm(emulated<arch::sm_90>{}, 1.0F, mp::row_major(numbers.data(), 0, 8), b, 0.0F,
             mp::row_major(c.data(), 0, 3));
}

}  // namespace
