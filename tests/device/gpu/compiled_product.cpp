// SPDX-License-Identifier: MIT
// Products behind a declaration have the bits of mp::gemm with the epilogues that a product_epilogue stands for.
#include <mp/device/gpu/compiled_product_kernels.hpp>

#include <mp/bfloat16.hpp>
#include <mp/gemm.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using gpu = mp::simulated_gpu<mp::arch::sm_80>;

constexpr int rows = 20;
constexpr int columns = 24;
constexpr int k = 40;

template <class Value>
std::vector<Value> random_values(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Value> values(size);
    for (Value& value : values) {
        const float x = static_cast<float>(random() >> 8) * 0x1p-22F - 2.0F;
        if constexpr (std::is_integral_v<Value>) {
            value = static_cast<Value>(x * 40.0F);
        } else {
            value = static_cast<Value>(x);
        }
    }
    return values;
}

template <class A, class B, class C>
struct matrices {
    std::vector<A> a = random_values<A>(rows * k, 1);
    std::vector<B> b = random_values<B>(columns * k, 2);
    std::vector<C> expected = random_values<C>(rows * columns, 3);
    std::vector<C> found = expected;

    /// Compares the bits with those of mp::gemm on the same simulated GPU.
    template <class Epilogue>
    void check(float beta, const mp::product_epilogue& parts, const Epilogue& epilogue) {
        const auto a_view = mp::row_major<const A>(a.data(), rows, k);
        const auto b_view = mp::transposed(mp::row_major<const B>(b.data(), columns, k));
        mp::gemm(gpu{}, 0.5F, a_view, b_view, beta, mp::row_major(expected.data(), rows, columns), epilogue);
        mp::compiled_product<gpu, A, B, C>::multiply(gpu{}, 0.5F, a_view, b_view, beta,
                                                     mp::row_major(found.data(), rows, columns), parts);
        CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                          found.size() * sizeof(C)) == 0);
    }
};

/// The numbers as floats, which have the same values.
template <class Value>
std::vector<float> floats_of(const std::vector<Value>& values) {
    std::vector<float> floats(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
    return floats;
}

TEST_CASE("a compiled product has the bits of the epilogues that its parts stand for") {
    matrices<mp::half, mp::half, float> all;
    using mp::activation;
    const auto scale = random_values<float>(columns, 4);
    const auto bias = random_values<float>(columns, 5);
    const auto both = mp::compose(mp::scale_per_column(scale), mp::bias_per_column(bias));
    all.check(0.0F, {}, mp::identity_epilogue{});
    all.check(2.0F, {}, mp::identity_epilogue{});
    all.check(0.0F, {.scale = scale}, mp::scale_per_column(scale));
    all.check(0.0F, {.bias = bias}, mp::bias_per_column(bias));
    all.check(1.0F, {.scale = scale, .bias = bias}, both);
    all.check(0.0F, {scale, bias, activation::relu}, mp::compose(both, mp::relu_epilogue{}));
    all.check(0.0F, {.activation = activation::gelu}, mp::gelu_epilogue{});
    all.check(0.0F, {.activation = activation::gelu_tanh}, mp::gelu_tanh_epilogue{});
    all.check(0.0F, {.activation = activation::silu}, mp::silu_epilogue{});
}

TEST_CASE("scales and biases of a compiled product are floats, halves or bfloat16") {
    matrices<mp::half, mp::half, float> all;
    const auto check = [&](const auto& scale, const auto& bias) {
        const std::vector<float> scale_floats = floats_of(scale), bias_floats = floats_of(bias);
        all.check(0.0F, {.scale = scale, .bias = bias},
                  mp::compose(mp::scale_per_column(scale_floats), mp::bias_per_column(bias_floats)));
    };
    check(random_values<mp::half>(columns, 4), random_values<mp::bfloat16>(columns, 5));
    check(random_values<mp::bfloat16>(columns, 4), random_values<float>(columns, 5));
}

TEST_CASE("scales and biases of a compiled product run along columns or rows") {
    matrices<mp::bfloat16, mp::bfloat16, mp::bfloat16> all;
    const std::vector<float> scale = random_values<float>(rows, 4);
    const std::vector<float> bias = random_values<float>(rows, 5);
    all.check(0.0F,
              {.scale = mp::epilogue_vector::of_rows(scale), .bias = mp::epilogue_vector::of_rows(bias)},
              mp::compose(mp::scale_per_row(scale), mp::bias_per_row(bias)));
}

TEST_CASE("operands of 16 and of 8 bits are multiplied behind a declaration") {
    matrices<mp::half, std::int8_t, float> all;
    const std::vector<float> scale = random_values<float>(columns, 4);
    all.check(0.0F, {.scale = scale}, mp::scale_per_column(scale));
}

template <class B>
void check_batch() {
    constexpr int count = 3;
    const auto a = random_values<mp::half>(count * rows * k, 1);
    const auto b = random_values<B>(count * k * columns, 2);
    const auto bias = random_values<float>(columns, 3);
    std::vector<float> expected(count * rows * columns), found(expected.size());
    const mp::matrix_batch<const mp::half> of_a{mp::row_major(a.data(), rows, k), rows * k};
    const mp::matrix_batch<const B> of_b{mp::row_major(b.data(), k, columns), k * columns};
    for (int i = 0; i < count; ++i) {
        mp::gemm(gpu{}, 1.0F, of_a[i], of_b[i], 0.0F,
                 mp::row_major(expected.data() + i * rows * columns, rows, columns),
                 mp::bias_per_column(bias));
    }
    mp::compiled_product<gpu, mp::half, B, float>::multiply_batch(
        gpu{}, count, 1.0F, of_a, of_b, 0.0F, {mp::row_major(found.data(), rows, columns), rows * columns},
        {.bias = bias});
    CHECK(found == expected);
}

TEST_CASE("a batch of compiled products has the bits of each product") {
    check_batch<mp::half>();
    check_batch<std::int8_t>();
}

template <class Function>
std::string message_of(Function f) {
    try {
        f();
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "no error";
}

TEST_CASE("a compiled product rejects an epilogue that does not fit, and writes nothing") {
    using product = mp::compiled_product<gpu, mp::half, mp::half, float>;
    const std::vector<mp::half> a(rows * k), b(k * columns);
    std::vector<float> c(rows * columns, 7.0F);
    const std::vector<float> bias(columns);
    const auto multiply = [&](const mp::product_epilogue& parts) {
        product::multiply(gpu{}, 1.0F, mp::row_major(a.data(), rows, k), mp::row_major(b.data(), k, columns),
                          0.0F, mp::row_major(c.data(), rows, columns), parts);
    };
    CHECK(message_of([&] { multiply({.bias = std::span(bias).first(3)}); }) ==
          "mp::gemm: epilogue.bias.size() is 3; it must equal c.columns, which is 24");
    CHECK(message_of([&] { multiply({.scale = mp::epilogue_vector::of_rows(bias)}); }) ==
          "mp::gemm: epilogue.scale.size() is 24; it must equal c.rows, which is 20");
    CHECK(message_of([&] {
              multiply({.bias = std::span<const float>(static_cast<const float*>(nullptr), columns)});
          }) == "mp::gemm: epilogue.bias.data is null; it must point to 24 elements");
    CHECK(message_of([&] { multiply({.activation = static_cast<mp::activation>(9)}); }) ==
          "mp::gemm: epilogue.activation is 9; it must be an enumerator of mp::activation");
    CHECK(message_of([&] { multiply({.bias = std::span(c).subspan(4, columns)}); }).find("epilogue.bias") !=
          std::string::npos);
    CHECK(c == std::vector<float>(rows * columns, 7.0F));
    CHECK(message_of([&] { product::multiply_batch(gpu{}, -1, 1.0F, {}, {}, 0.0F, {}, {}); }) ==
          "mp::gemm_batched: count is -1; it must not be negative");
}

TEST_CASE("a batch of products of 16 and 8 bits is checked before the first is computed") {
    using product = mp::compiled_product<gpu, mp::half, std::int8_t, float>;
    const std::vector<mp::half> a(16, mp::half(1.0F));
    const std::vector<std::int8_t> b(16, 1);
    std::vector<float> c(48, 7.0F);
    const mp::matrix_batch<const mp::half> of_a{mp::row_major(a.data(), 4, 4)};
    const mp::matrix_batch<const std::int8_t> of_b{mp::row_major(b.data(), 4, 4)};
    const auto multiply = [&](std::ptrdiff_t stride, const mp::product_epilogue& parts) {
        product::multiply_batch(gpu{}, 3, 1.0F, of_a, of_b, 0.0F, {mp::row_major(c.data(), 4, 4), stride},
                                parts);
    };
    CHECK(message_of([&] { multiply(5, {}); }) ==
          "mp::gemm_batched: c.stride is 5; it must be at least the length of a matrix, which is 16");
    CHECK(message_of([&] { multiply(16, {.bias = std::span(c).subspan(40, 4)}); }).find("epilogue.bias") !=
          std::string::npos);
    CHECK(c == std::vector<float>(48, 7.0F));
}

TEST_CASE("an epilogue vector stands for any contiguous range") {
    const std::array<float, 3> values{1.0F, 2.0F, 3.0F};
    const std::span<const float, 3> fixed(values);
    CHECK(mp::epilogue_vector(values).size == 3);
    CHECK(mp::epilogue_vector(fixed).data == values.data());
    CHECK(mp::epilogue_vector::of_rows(fixed.first<2>()).per_row);
    CHECK(mp::epilogue_vector(std::vector<mp::bfloat16>(2)).type == mp::epilogue_vector::element::bfloat16);
}

}  // namespace
