// SPDX-License-Identifier: MIT
// Under accumulation::ordered, ops made of several products have the same bits on every instruction set and
// any number of threads: what the executor asks for reaches every product.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/numbers/simd/processor.hpp>
#include <mp/ops.hpp>

#include <cstddef>
#include <functional>
#include <random>
#include <vector>

namespace {

using mp::bfloat16;

std::vector<bfloat16> random_numbers(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<bfloat16> numbers;
    for (std::size_t i = 0; i < count; ++i) {
        numbers.push_back(bfloat16(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512.0F));
    }
    return numbers;
}

/// Calls `op` on every instruction set and with several numbers of threads; `op` returns its result in floats.
void check_instruction_sets(const std::function<std::vector<float>(mp::cpu)>& op) {
    std::vector<float> first;
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        for (const int threads : {1, 2, 16}) {
            const std::vector<float> result = op({.threads = threads,
                                                  .instructions = static_cast<mp::instruction_set>(isa),
                                                  .products = mp::accumulation::ordered});
            if (first.empty()) first = result;
            CAPTURE(isa);
            CAPTURE(threads);
            CHECK(result == first);
        }
    }
}

TEST_CASE("an ordered convolution has the same bits on every instruction set, and so have its gradients") {
    constexpr std::ptrdiff_t images = 3;
    constexpr std::ptrdiff_t channels = 9;
    const mp::ops::conv2d_geometry geometry{.channels = 5, .height = 11, .width = 9, .kernel = {3, 3}};
    const std::ptrdiff_t image = geometry.image_size();
    const std::ptrdiff_t patch = geometry.patch_size();
    const std::ptrdiff_t outputs = channels * geometry.output_positions();
    const auto x = random_numbers(static_cast<std::size_t>(images * image), 1);
    const auto w = random_numbers(static_cast<std::size_t>(channels * patch), 2);
    const auto dy = random_numbers(static_cast<std::size_t>(images * outputs), 3);
    const auto x_view = mp::row_major(x.data(), images, image);
    const auto w_view = mp::row_major(w.data(), channels, patch);
    check_instruction_sets([&](mp::cpu exec) {
        std::vector<float> y(static_cast<std::size_t>(images * outputs));
        mp::ops::conv2d(exec, x_view, w_view, mp::ops::absent, mp::row_major(y.data(), images, outputs),
                        geometry);
        return y;
    });
    check_instruction_sets([&](mp::cpu exec) {
        std::vector<float> dx(x.size());
        std::vector<float> dw(w.size());
        mp::ops::conv2d_backward(exec, x_view, w_view, mp::row_major(dy.data(), images, outputs),
                                 mp::row_major(dx.data(), images, image),
                                 mp::row_major(dw.data(), channels, patch), mp::ops::absent, geometry);
        dx.insert(dx.end(), dw.begin(), dw.end());
        return dx;
    });
}

TEST_CASE("ordered attention has the same bits on every instruction set") {
    constexpr std::ptrdiff_t heads = 4;
    constexpr std::ptrdiff_t tokens = 40;
    constexpr std::ptrdiff_t head_dim = 24;
    const auto q = random_numbers(heads * tokens * head_dim, 4);
    const auto k = random_numbers(heads * tokens * head_dim, 5);
    const auto v = random_numbers(heads * tokens * head_dim, 6);
    check_instruction_sets([&](mp::cpu exec) {
        std::vector<float> y(heads * tokens * head_dim);
        mp::ops::scaled_dot_product_attention(
            exec, mp::row_major(q.data(), heads * tokens, head_dim),
            mp::row_major(k.data(), heads * tokens, head_dim),
            mp::row_major(v.data(), heads * tokens, head_dim), mp::ops::absent,
            mp::row_major(y.data(), heads * tokens, head_dim), {.heads = heads});
        return y;
    });
}

}  // namespace
