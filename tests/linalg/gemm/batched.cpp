// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "linalg/gemm/reference.hpp"

namespace {

template <class Value>
std::vector<Value> random_numbers(reference::generator& random, std::size_t count) {
    std::vector<Value> result(count);
    for (Value& x : result)
        x = static_cast<Value>(static_cast<float>(static_cast<int>(random() % 401) - 200) / 64);
    return result;
}

TEST_CASE("a batch gives the bits of its products one by one, on any number of threads") {
    reference::generator random(1);
    constexpr std::ptrdiff_t rows = 17, columns = 23, k = 40, count = 5;
    const auto a = random_numbers<mp::bfloat16>(random, count * rows * k + 9);
    const auto b = random_numbers<mp::half>(random, count * k * columns);
    const auto before = random_numbers<float>(random, count * (rows * columns + 3));
    for (const mp::cpu level : reference::executors()) {
        std::vector<float> expected = before;
        for (std::ptrdiff_t i = 0; i < count; ++i) {
            mp::gemm(level, 0.5F, mp::row_major(a.data() + i * rows * k, rows, k),
                     mp::column_major(b.data() + i * k * columns, k, columns), 2.0F,
                     mp::row_major(expected.data() + i * (rows * columns + 3), rows, columns),
                     mp::relu_epilogue{});
        }
        for (const int threads : {1, 3, 8}) {
            mp::cpu exec = level;
            exec.threads = threads;
            std::vector<float> c = before;
            mp::gemm_batched(exec, count, 0.5F, mp::matrix_batch{mp::row_major(a.data(), rows, k), rows * k},
                             mp::matrix_batch{mp::column_major(b.data(), k, columns), k * columns}, 2.0F,
                             mp::matrix_batch{mp::row_major(c.data(), rows, columns), rows * columns + 3},
                             mp::relu_epilogue{});
            CHECK(c == expected);
        }
    }
}

TEST_CASE("a stride of zero shares an operand, and batches of nothing touch nothing") {
    const std::vector<float> a = {1, 2, 3, 4};
    const std::vector<float> b = {2};
    std::vector<float> c(4, 7.0F);
    const auto rows = mp::matrix_batch{mp::row_major(a.data(), 1, 1), 1};
    const auto shared = mp::matrix_batch{mp::row_major(b.data(), 1, 1), 0};
    mp::gemm_batched(mp::cpu{}, 0, 1.0F, rows, shared, 0.0F,
                     mp::matrix_batch{mp::row_major(c.data(), 1, 1), 1});
    CHECK(c == std::vector<float>(4, 7.0F));
    mp::gemm_batched(mp::cpu{}, 4, 1.0F, rows, shared, 0.0F,
                     mp::matrix_batch{mp::row_major(c.data(), 1, 1), 1});
    CHECK(c == std::vector<float>{2, 4, 6, 8});
}

TEST_CASE("batches that would overwrite their own results are refused, and nothing is written") {
    const std::vector<float> a(16, 1.0F);
    std::vector<float> c(16, 7.0F);
    const auto operand = mp::matrix_batch{mp::row_major(a.data(), 2, 2), 4};
    CHECK_THROWS_WITH_AS(
        mp::gemm_batched(mp::cpu{}, 3, 1.0F, operand, operand, 0.0F,
                         mp::matrix_batch{mp::row_major(c.data(), 2, 2), 3}),
        "mp::gemm_batched: c.stride is 3; it must be at least the length of a matrix, which is 4",
        mp::argument_error);
    CHECK_THROWS_AS(mp::gemm_batched(mp::cpu{}, -1, 1.0F, operand, operand, 0.0F,
                                     mp::matrix_batch{mp::row_major(c.data(), 2, 2), 4}),
                    mp::argument_error);
    CHECK(c == std::vector<float>(16, 7.0F));
}

}  // namespace
