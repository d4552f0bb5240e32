// SPDX-License-Identifier: MIT
#include <mp/device/gpu/gemm.hpp>

#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/simt.hpp>
#include <mp/tensor_core.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using mp::arch;

template <class Value>
Value number(std::mt19937& random) {
    if constexpr (std::is_same_v<Value, std::int8_t>) {
        return static_cast<std::int8_t>(random());
    } else if constexpr (sizeof(Value) == 1) {
        for (;;) {  // any number that is one
            const auto x = Value::from_bits(static_cast<std::uint8_t>(random()));
            if (isfinite(x)) return x;
        }
    } else {
        return Value(static_cast<float>(static_cast<int>(random() % 4001) - 2000) * 0x1p-9F);
    }
}

/// A matrix that begins `shift` elements behind a multiple of 64 bytes, and the same numbers with 16 bits.
template <class Value, class Wide>
struct matrix {
    std::vector<Value> values;
    std::vector<Wide> wide;
    mp::matrix_view<const Value> view;
    mp::matrix_view<const Wide> wide_view;

    matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, bool by_rows, bool aligned, std::mt19937& random) {
        const std::ptrdiff_t length = by_rows ? columns : rows;
        const std::ptrdiff_t leading = aligned ? (length + 63) / 64 * 64 : length + 1;
        const auto order = by_rows ? mp::storage_order::row_major : mp::storage_order::column_major;
        values.resize(static_cast<std::size_t>(leading * (by_rows ? rows : columns)) + 128);
        for (Value& it : values) it = number<Value>(random);
        for (const Value it : values) wide.push_back(Wide(static_cast<float>(it)));
        const auto address = reinterpret_cast<std::uintptr_t>(values.data());
        const auto first = static_cast<std::ptrdiff_t>(((address + 63) / 64 * 64 - address) / sizeof(Value)) +
                           (aligned ? 0 : 3);
        view = {values.data() + first, rows, columns, leading, order};
        wide_view = {wide.data() + first, rows, columns, leading, order};
    }
};

template <arch Arch, class A, class B>
void check(std::ptrdiff_t m, std::ptrdiff_t n, std::ptrdiff_t k, unsigned layout) {
    using wide = std::conditional_t<sizeof(A) == 2, A, B>;
    std::mt19937 random(layout);
    const matrix<A, wide> a(m, k, layout % 2 == 0, layout / 8 % 2 == 0, random);
    const matrix<B, wide> b(k, n, layout / 2 % 2 == 0, layout / 8 % 2 == 0, random);
    std::vector<float> c(static_cast<std::size_t>(m * n), 2.0F), expected = c,
                                                                 scales(static_cast<std::size_t>(n));
    for (float& it : scales) it = static_cast<float>(random() % 100) * 0x1.1p-7F;
    const auto per_column = mp::scale_per_column(std::span<const float>(scales));
    const auto into = [&](std::vector<float>& to) {
        return layout / 4 % 2 == 0 ? mp::row_major(to.data(), m, n) : mp::column_major(to.data(), m, n);
    };
    mp::gemm(mp::emulated<Arch>{}, 1.5F, a.wide_view, b.wide_view, -0.5F, into(expected), per_column);
    CAPTURE(layout);
    CAPTURE(m);
    for (const int multiprocessors : {0, 1}) {  // with one of them tiles are large
        std::vector<float> result = c;
        mp::gemm(mp::simulated_gpu<Arch>{.seed = layout, .multiprocessors = multiprocessors}, 1.5F, a.view,
                 b.view, -0.5F, into(result), per_column);
        CHECK(std::memcmp(result.data(), expected.data(), result.size() * sizeof(float)) == 0);
    }
}

TEST_CASE(
    "operands of 16 and 8 bits on the simulated GPU: the bits of the converted operand, for all layouts") {
    for (unsigned layout = 0; layout < 16; ++layout) {
        check<arch::sm_80, mp::bfloat16, std::int8_t>(37, layout % 3 == 0 ? 48 : 45,
                                                      layout % 5 == 0 ? 160 : 150, layout);
        check<arch::sm_80, mp::float8_e4m3fn, mp::half>(21, 50, 100 + static_cast<int>(layout), layout);
    }
    for (unsigned layout = 0; layout < 8; ++layout)
        check<arch::sm_80, mp::bfloat16, std::int8_t>(200, 136, 64, layout);
    check<arch::sm_80, mp::bfloat16, std::int8_t>(3, 2, 0, 0);
}

template <class Wide, class Input>
int wrong_pairs() {
    int wrong = 0;
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        mp::detail::chunk<Input, 2> x;
        const std::uint8_t codes[2] = {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)};
        std::memcpy(static_cast<void*>(&x), codes, 2);
        const std::uint32_t pair = mp::detail::widened_pair<Wide>(x);
        for (unsigned i = 0; i < 2; ++i) {
            const float is = static_cast<float>(Wide::from_bits(static_cast<std::uint16_t>(pair >> 16 * i)));
            const float expected = static_cast<float>(x.values[i]);
            const bool both_nan = std::isnan(is) && std::isnan(expected);
            wrong += both_nan || std::memcmp(&is, &expected, sizeof is) == 0 ? 0 : 1;
        }
    }
    return wrong;
}

TEST_CASE("all pairs of numbers of 8 bits become the same numbers of 16") {
    CHECK(wrong_pairs<mp::half, std::int8_t>() == 0);
    CHECK(wrong_pairs<mp::half, mp::float8_e4m3fn>() == 0);
    CHECK(wrong_pairs<mp::half, mp::float8_e5m2>() == 0);
    CHECK(wrong_pairs<mp::bfloat16, std::int8_t>() == 0);
    CHECK(wrong_pairs<mp::bfloat16, mp::float8_e4m3fn>() == 0);
    CHECK(wrong_pairs<mp::bfloat16, mp::float8_e5m2>() == 0);
}

TEST_CASE("operands along k are read from shared memory without conflicts") {
    std::mt19937 random(1);
    const matrix<mp::bfloat16, mp::bfloat16> a(128, 128, true, true, random);
    const matrix<std::int8_t, mp::bfloat16> b(128, 128, false, true, random);
    std::vector<float> c(128 * 128);
    mp::simt::access_statistics statistics;
    mp::gemm(mp::simulated_gpu<arch::sm_80>{.statistics = &statistics, .multiprocessors = 1}, 1, a.view,
             b.view, 0, mp::row_major(c.data(), 128, 128));
    CHECK(statistics.bank_conflicts() == 0);
}

TEST_CASE("integers of 8 bits beside numbers of 16 want a device that copies ahead") {
    std::vector<mp::half> x(16);
    std::vector<std::int8_t> w(16);
    std::vector<float> y(16);
    std::string message;
    try {
        mp::gemm(mp::simulated_gpu<arch::sm_75>{}, 1, mp::row_major(x.data(), 4, 4),
                 mp::row_major(w.data(), 4, 4), 0, mp::row_major(y.data(), 4, 4));
    } catch (const mp::argument_error& error) {
        message = error.what();
    }
    CHECK(
        message ==
        "mp::gemm: exec's capability is 75; it must be 80 or more for operands of 16 bits and integers of 8");
}

}  // namespace
