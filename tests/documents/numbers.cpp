// SPDX-License-Identifier: MIT
// The code of docs/numbers.md, p3109.md, arrays.md and products.md: it compiles, and what its comments say is so.
#include <doctest/doctest.h>
#include <mp/array.hpp>
#include <mp/block_scaled.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/math.hpp>
#include <mp/mp.hpp>
#include <mp/packed_array.hpp>
#include <mp/tensor_core.hpp>

#include <array>
#include <complex>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "p3109_1.inl"

namespace {

/// What is written to std::cout while one lives.
class captured_output {
public:
    captured_output() : before_(std::cout.rdbuf(text_.rdbuf())) {}
    ~captured_output() { std::cout.rdbuf(before_); }
    captured_output(const captured_output&) = delete;
    captured_output& operator=(const captured_output&) = delete;

    std::string text() const { return text_.str(); }

private:
    std::ostringstream text_;
    std::streambuf* before_;
};

TEST_CASE("docs/numbers.md: numbers") {
    const captured_output output;
#include "numbers_1.inl"
    CHECK(output.text() == "65504 0.1");
    CHECK(f == float(x * y + 1_h));
    CHECK(w2 == mp::half(f) + 1_h);
    CHECK(i == 1);
    CHECK(b.bits() == 1);  // the nearest of the subnormals, 2^-133 apart
    CHECK(down == x);      // the nearest one lies below 0.1, too
    CHECK(e4m3 == 448.0F);
    CHECK(w == mp::half(float(x) * float(y) + float(z)));
}

TEST_CASE("docs/p3109.md: operations and blocks") {
#include "p3109_2.inl"
    CHECK(sum == 3.25F);
    CHECK(product == 0.75F);
    CHECK(up == 0.09375F);
    CHECK(fused == 1.75F);
    CHECK(less);
    CHECK(block.scale == 128.0F);
    CHECK(block.elements[3] == 0.75F);
    CHECK(squares.elements[3] == 2.25F);
    CHECK(norm == 9216.0F);
    CHECK(scaled == 12288.0F);
#include "p3109_3.inl"
}

TEST_CASE("docs/numbers.md: environments and random bits") {
    using namespace mp::literals;
    const std::uint64_t seed = 5, index = 3;
#include "numbers_2.inl"
    CHECK(root > mp::sqrt(2_h));
    CHECK(e >= mp::exp(1_h));
    CHECK_FALSE(exact);
    CHECK((noisy == mp::bfloat16(0.1F) || noisy == nextafter(mp::bfloat16(0.1F), mp::bfloat16(0.0F))));
}

TEST_CASE("docs/numbers.md: integers, compound assignment") {
    {
        const mp::half h{-2.5F};
#include "numbers_3.inl"
        CHECK(a == -2);
        CHECK(b == -2);
    }
    {
#include "numbers_4.inl"
        CHECK(h == 1.0F);
    }
    const std::complex<mp::half> a(mp::half(300.0F), mp::half(300.0F)), b(mp::half(300.0F), mp::half(100.0F));
#include "numbers_5.inl"
    CHECK(low == std::complex<mp::half>(mp::half(1.2F), mp::half(0.6F)));
}

TEST_CASE("docs/arrays.md: arrays") {
    const std::vector<float> values(100, 0.1F), gradients(100, 1e-9F);
    std::vector<float> activations(100, 1.0F);
    const std::vector<mp::half> a(100, mp::half(1.0F)), b(100, mp::half(2.0F)), x(100);
    std::vector<mp::half> sum(100), y(100);
#include "arrays_1.inl"
    CHECK(low[3] == mp::half(0.1F));
    CHECK(report.flushed_fraction() == 1.0);
    CHECK(sum[99] == 3.0F);
    CHECK(y[0] == 1.0F);
    CHECK(total == 0.0F);
}

TEST_CASE("docs/arrays.md: blocks") {
    const std::size_t rows = 4, columns = 64;
    const std::vector<float> weights(rows * columns, 0.75F);
    std::vector<float> floats(rows * columns);
#include "arrays_2.inl"
    CHECK(floats == weights);
    CHECK(report.relative_error() == 0.0);
    CHECK(mp::float4_e2m1fn(small[3]) == 1.5F);
    {
#include "arrays_3.inl"
        CHECK(nv.value(3, 63) == 0.75F);
    }
}

TEST_CASE("docs/products.md: on the CPU") {
    const mp::cpu exec;
    const std::size_t batch = 2, in = 3, out = 4, heads = 2, tokens = 2, stride = 6;
    const std::vector<mp::half> x(batch * in, mp::half(1.0F)), w(out * in, mp::half(0.5F));
    std::vector<mp::bfloat16> y(batch * out);
    const std::vector<float> bias(out, -0.5F), q(heads * stride, 1.0F), k(heads * stride, 2.0F);
    std::vector<float> s(heads * tokens * tokens);
    const auto queries = mp::row_major(q.data(), tokens, 3);
    const auto keys = mp::row_major(k.data(), tokens, 3);
    const auto scores = mp::row_major(s.data(), tokens, tokens);
#include "products_1.inl"
    CHECK(y[0] == 1.5F);  // the second product, without bias
    CHECK(s[7] == 6.0F);
}

TEST_CASE("docs/products.md: mixtures of experts") {
    const mp::cpu exec;
    const std::ptrdiff_t in = 4, out = 2;
    const std::vector<mp::half> x(8 * in, mp::half(1.0F)), w(3 * in * out, mp::half(0.5F)),
        dy(8 * out, mp::half(2.0F)), tokens(12 * in, mp::half(3.0F));
    std::vector<float> y(8 * out), dw(3 * in * out), results(12 * out, -1.0F);
#include "products_2.inl"
    CHECK(y[15] == 2.0F);
    CHECK(dw[0] == 6.0F);
    CHECK(dw[8] == 0.0F);
    CHECK(dw[16] == 10.0F);
    CHECK(results[0] == 6.0F);
    CHECK(results[8] == -1.0F);
    CHECK(results[17] == 6.0F);
    CHECK(results[18] == -1.0F);
}

TEST_CASE("docs/products.md: second outputs") {
    constexpr mp::cpu exec{};
    constexpr std::ptrdiff_t batch = 3, in = 2, out = 4;
    const std::vector<mp::half> x(batch * in, mp::half(1)), w(out * in, mp::half(-0.5F));
    const std::vector<float> bias = {0, 1, 2, 30};
    std::vector<mp::bfloat16> y(batch * out), before(batch * out);
    std::vector<mp::float8_e4m3fn> codes(batch * out);
#include "products_3.inl"
    CHECK(before[2] == mp::bfloat16(1));
    CHECK(y[1] == mp::bfloat16(0));
    CHECK(y[2] == mp::bfloat16(0.8413447F));
    CHECK(codes[3] == mp::float8_e4m3fn(28));  // 29 is a tie
    CHECK(history.scale() == 448.0F / 29);
}

TEST_CASE("docs/products.md: gradients through activations") {
    constexpr mp::cpu exec{};
    constexpr std::ptrdiff_t batch = 2, in = 3, out = 4;
    const std::vector<mp::half> dy(batch * out, mp::half(1)), w(out * in, mp::half(-0.5F));
    std::vector<mp::bfloat16> z(batch * in), expected(batch * in);
    mp::convert(exec, std::vector<float>{0, 9, -99, 9, 0, 0}, z);
    mp::convert(exec, std::vector<float>{-1, -2, 0, -2, -1, -1}, expected);
    std::vector<mp::bfloat16> dz(batch * in);
#include "products_4.inl"
    CHECK(dz == expected);
}

TEST_CASE("docs/products.md: what a GPU would return") {
    const std::size_t m = 2, n = 2, k = 4;
    const std::vector<mp::half> a(m * k, mp::half(1.0F)), b(k * n, mp::half(0.5F));
    std::vector<float> c(m * n);
#include "products_5.inl"
    CHECK(c[3] == 2.0F);
}

TEST_CASE("docs/products.md: block-scaled matrices") {
    const std::size_t m = 2, n = 3, k = 32;
    const std::vector<float> x(m * k, 2.625F), w(k * n, 0.65625F);  // 6 * 448 / 1024 and / 4096
    std::vector<float> c(m * n);
#include "products_6.inl"
    CHECK(c[5] == 55.125F);
}

}  // namespace
