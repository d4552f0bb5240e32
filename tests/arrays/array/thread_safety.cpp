// SPDX-License-Identifier: MIT
// Compiled with ThreadSanitizer, too: the threads of conversions, arithmetic, sums, products and optimizer
// steps write nothing that another one touches.
#include <mp/array.hpp>
#include <mp/convert.hpp>
#include <mp/gemm.hpp>
#include <mp/optim.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

constexpr std::size_t large = 600'007;  // beyond every grain, and no multiple of anything

std::vector<float> numbers(std::size_t count) {
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(i % 977) / 64 - 7;
    return result;
}

TEST_CASE("conversions, arithmetic and sums on four threads give the results of one") {
    const std::vector<float> x = numbers(large);
    std::vector<mp::half> results[2];
    float sums[2];
    for (const int threads : {1, 4}) {
        const mp::cpu exec{.threads = threads};
        std::vector<mp::half> a(large);
        std::vector<mp::half> b(large);
        mp::convert(exec, x, a);
        mp::convert_stochastic(exec, x, b, 5);
        mp::multiply(exec, a, b, b);
        mp::exp(exec, a, a);
        mp::add(exec, a, b, b);
        const int place = threads == 1 ? 0 : 1;
        sums[place] = mp::sum(exec, b) + mp::dot(exec, a, b) + mp::norm(exec, b);
        results[place] = b;
    }
    CHECK(results[0] == results[1]);
    CHECK(sums[0] == sums[1]);
}

TEST_CASE("products on four threads give the results of one, one by one, packed and in batches") {
    constexpr std::ptrdiff_t size = 200;
    std::vector<mp::bfloat16> a(size * size);
    std::vector<mp::bfloat16> b(size * size);
    mp::convert(mp::cpu{}, numbers(size * size), a);
    mp::convert(mp::cpu{}, numbers(size * size), b);
    std::vector<float> c[2];
    for (const int threads : {1, 4}) {
        const mp::cpu exec{.threads = threads};
        std::vector<float> y(3 * size * size);
        const auto first = mp::row_major(a.data(), size, size);
        const auto second = mp::row_major(b.data(), size, size);
        mp::gemm(exec, 1.0F, first, second, 0.0F, mp::row_major(y.data(), size, size));
        mp::gemm(exec, 1.0F, first, mp::packed_b(exec, second), 0.0F,
                 mp::row_major(y.data() + size * size, size, size));
        mp::gemm_batched(exec, 4, 1.0F, mp::matrix_batch{mp::row_major(a.data(), 50, size), 50 * size},
                         mp::matrix_batch{second, 0}, 0.0F,
                         mp::matrix_batch{mp::row_major(y.data() + 2 * size * size, 50, size), 50 * size});
        c[threads == 1 ? 0 : 1] = y;
    }
    CHECK(c[0] == c[1]);
}

TEST_CASE("optimizer steps on four threads give the weights of one") {
    std::vector<mp::bfloat16> weights[2];
    for (const int threads : {1, 4}) {
        std::vector<mp::bfloat16> w(large);
        std::vector<mp::bfloat16> g(large);
        mp::convert(mp::cpu{}, numbers(large), w);
        mp::convert(mp::cpu{}, numbers(large), g);
        mp::adamw<mp::bfloat16> optimizer(mp::cpu{.threads = threads}, {{"w", w, g}},
                                          {.learning_rate = 1e-2});
        static_cast<void>(optimizer.unscale_gradients(0.5F));
        optimizer.clip_gradient_norm(1.0);
        optimizer.step();
        weights[threads == 1 ? 0 : 1] = w;
    }
    CHECK(weights[0] == weights[1]);
}

}  // namespace
