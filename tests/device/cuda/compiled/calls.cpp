// SPDX-License-Identifier: MIT
// Calls of products from a source that nvcc does not compile; the kernels are in another one.
#include <mp/cuda_gemm.hpp>

#include <mp/gemm.hpp>
#include <mp/gpu.hpp>  // whose overloads any executor matches
#include <mp/half.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

/// Small integers, whose sums are exact in any order.
template <class Value>
std::vector<Value> small_integers(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Value> values(size);
    for (Value& value : values) value = static_cast<Value>(static_cast<float>(random() % 7) - 3.0F);
    return values;
}

constexpr std::ptrdiff_t rows = 70;
constexpr std::ptrdiff_t columns = 48;
constexpr std::ptrdiff_t k = 96;

TEST_CASE("compiled: a product with bias and activation has the bits of the CPU") {
    const auto x = small_integers<mp::half>(rows * k, 1);
    const auto w = small_integers<mp::half>(columns * k, 2);
    const auto bias = small_integers<float>(columns, 3);
    auto y = small_integers<float>(rows * columns, 4);
    const mp::unique_cuda_stream stream;
    const mp::device_buffer<mp::half> device_x(stream.get(), x), device_w(stream.get(), w);
    const mp::device_buffer<float> device_bias(stream.get(), bias);
    for (const auto act : {mp::activation::none, mp::activation::relu, mp::activation::silu}) {
        mp::device_buffer<float> device_y(stream.get(), y);
        mp::gemm(stream, 1.0F, mp::row_major(device_x.data(), rows, k),
                 mp::transposed(mp::row_major(device_w.data(), columns, k)), 2.0F,
                 mp::row_major(device_y.data(), rows, columns),
                 {.bias = device_bias.span(), .activation = act});
        const auto multiply = [&](auto ending) {
            mp::gemm(mp::cpu{}, 1.0F, mp::row_major(x.data(), rows, k),
                     mp::transposed(mp::row_major(w.data(), columns, k)), 2.0F,
                     mp::row_major(y.data(), rows, columns), mp::compose(mp::bias_per_column(bias), ending));
        };
        switch (act) {
            case mp::activation::relu:
                multiply(mp::relu_epilogue{});
                break;
            case mp::activation::silu:
                multiply(mp::silu_epilogue{});
                break;
            default:
                multiply(mp::identity_epilogue{});
        }
        const std::vector<float> found = device_y.to_host(stream.get());
        CHECK(std::memcmp(found.data(), y.data(), y.size() * sizeof(float)) == 0);
        y = small_integers<float>(rows * columns, 4);
    }
}

TEST_CASE("compiled: a batch of products has the bits of the CPU") {
    constexpr int count = 3;
    const auto a = small_integers<mp::half>(count * rows * k, 1);
    const auto b = small_integers<mp::half>(k * columns, 2);
    std::vector<float> c(count * rows * columns);
    const mp::unique_cuda_stream stream;
    const mp::device_buffer<mp::half> device_a(stream.get(), a), device_b(stream.get(), b);
    mp::device_buffer<float> device_c(stream.get(), c);
    const auto multiply = [&](auto exec, const mp::half* first_a, const mp::half* first_b, float* first_c) {
        mp::gemm_batched(exec, count, 1.0F, mp::matrix_batch{mp::row_major(first_a, rows, k), rows * k},
                         mp::matrix_batch{mp::row_major(first_b, k, columns)}, 0.0F,
                         mp::matrix_batch{mp::row_major(first_c, rows, columns), rows * columns});
    };
    multiply(stream.get(), device_a.data(), device_b.data(), device_c.data());
    multiply(mp::cpu{}, a.data(), b.data(), c.data());
    CHECK(device_c.to_host(stream.get()) == c);
}

TEST_CASE("docs/gpu.md: a product without nvcc") {
    const mp::unique_cuda_stream stream;
    const mp::device_buffer<mp::half> of_x(stream.get(), std::vector<mp::half>(rows * k, mp::half(1.0F)));
    const mp::device_buffer<mp::half> of_w(stream.get(), std::vector<mp::half>(columns * k, mp::half(1.0F)));
    const mp::device_buffer<float> bias(stream.get(), std::vector<float>(columns, 4.0F));
    mp::device_buffer<float> of_y(stream.get(), std::vector<float>(rows * columns));
    const auto x = mp::row_major(of_x.data(), rows, k);
    const auto w = mp::row_major(of_w.data(), columns, k);
    const auto y = mp::row_major(of_y.data(), rows, columns);
#include "gpu_6.inl"
    CHECK(of_y.to_host(stream.get())[0] == 100.0F);
}

TEST_SUITE_BEGIN("no device needed");

TEST_CASE("compiled: an argument that does not fit is an exception of the library") {
    const mp::half operand[1]{};
    float result[1]{};
    std::string message = "no error";
    try {
        mp::gemm(mp::cuda_stream{}, 1.0F, mp::row_major(operand, 1, 1), mp::row_major(operand, 1, 1), 0.0F,
                 mp::row_major(result, 1, 2));
    } catch (const mp::argument_error& error) {
        message = error.what();
    }
    CHECK(message == "mp::gemm: c.columns is 2; it must equal b.columns, which is 1");
}

TEST_SUITE_END();

}  // namespace
