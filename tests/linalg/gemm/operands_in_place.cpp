// SPDX-License-Identifier: MIT
// Operands are read where they lie or packed first, as their sizes and addresses have it. No bit may tell
// which.
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "linalg/gemm/reference.hpp"

namespace {

using reference::generator;

/// A row-major matrix that begins `offset` elements after a cache line, with `padding` NaN after each row.
template <class Value>
class placed_matrix {
public:
    placed_matrix(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t padding, std::ptrdiff_t offset)
        : rows_(rows),
          columns_(columns),
          stride_(columns + padding),
          memory_(static_cast<std::size_t>(rows * stride_) + 128 / sizeof(Value),
                  Value(std::numeric_limits<float>::quiet_NaN())) {
        auto* const first = memory_.data();
        const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(first) % 64;
        start_ = first + (misaligned == 0 ? 0 : 64 - misaligned) / sizeof(Value) + offset;
    }
    placed_matrix(const placed_matrix&) = delete;
    placed_matrix& operator=(const placed_matrix&) = delete;

    Value& at(std::ptrdiff_t r, std::ptrdiff_t c) { return start_[r * stride_ + c]; }
    [[nodiscard]] mp::matrix_view<const Value> view() const { return {start_, rows_, columns_, stride_}; }

private:
    std::ptrdiff_t rows_;
    std::ptrdiff_t columns_;
    std::ptrdiff_t stride_;
    std::vector<Value> memory_;
    Value* start_;
};

template <class Value>
std::vector<Value> random_numbers(generator& random, std::ptrdiff_t count) {
    std::vector<Value> numbers;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        numbers.push_back(Value(static_cast<float>(reference::random_size(random, -1000, 1000)) / 256.0F));
    }
    return numbers;
}

struct shape {
    std::ptrdiff_t rows;
    std::ptrdiff_t columns;
    std::ptrdiff_t k;
};

/// Compares with the product of copies that are always packed: a column-major A, and a B whose rows are far
/// apart.
template <class Value>
void check_places(const mp::cpu& exec, generator& random, const shape& s) {
    const std::vector<Value> a = random_numbers<Value>(random, s.rows * s.k);
    const std::vector<Value> b = random_numbers<Value>(random, s.k * s.columns);
    std::vector<Value> a_by_column(a.size());
    constexpr std::ptrdiff_t far_apart = 8192;
    std::vector<Value> b_apart(static_cast<std::size_t>(s.k * far_apart));
    for (std::ptrdiff_t p = 0; p < s.k; ++p) {
        for (std::ptrdiff_t r = 0; r < s.rows; ++r) {
            a_by_column[static_cast<std::size_t>(p * s.rows + r)] = a[static_cast<std::size_t>(r * s.k + p)];
        }
        for (std::ptrdiff_t c = 0; c < s.columns; ++c) {
            b_apart[static_cast<std::size_t>(p * far_apart + c)] =
                b[static_cast<std::size_t>(p * s.columns + c)];
        }
    }
    std::vector<float> expected(static_cast<std::size_t>(s.rows * s.columns));
    mp::gemm(exec, 1.0F, mp::column_major(a_by_column.data(), s.rows, s.k),
             mp::row_major(b_apart.data(), s.k, s.columns, far_apart), 0.0F,
             mp::row_major(expected.data(), s.rows, s.columns));

    for (const std::ptrdiff_t offset : {0, 8}) {
        for (const std::ptrdiff_t padding : {0, 3, 32}) {
            placed_matrix<Value> placed_a(s.rows, s.k, padding, offset);
            placed_matrix<Value> placed_b(s.k, s.columns, padding, offset);
            for (std::ptrdiff_t i = 0; i < s.rows * s.k; ++i) {
                placed_a.at(i / s.k, i % s.k) = a[static_cast<std::size_t>(i)];
            }
            for (std::ptrdiff_t i = 0; i < s.k * s.columns; ++i) {
                placed_b.at(i / s.columns, i % s.columns) = b[static_cast<std::size_t>(i)];
            }
            std::vector<float> c(expected.size(), -1.0F);
            mp::gemm(exec, 1.0F, placed_a.view(), placed_b.view(), 0.0F,
                     mp::row_major(c.data(), s.rows, s.columns));
            std::size_t different = 0;
            for (std::size_t i = 0; i < c.size(); ++i) different += c[i] == expected[i] ? 0U : 1U;
            CAPTURE(s.rows);
            CAPTURE(s.columns);
            CAPTURE(s.k);
            CAPTURE(offset);
            CAPTURE(padding);
            CHECK(different == 0);
        }
    }
}

template <class Value>
void check_shapes() {
    generator random(1);
    for (mp::cpu exec : reference::executors()) {
        if (exec.instructions == mp::instruction_set::portable) continue;  // packs everything
        const std::string kernel(mp::gemm_kernel_name<Value, Value>(exec));
        CAPTURE(kernel);
        for (const int threads : {1, 3}) {
            exec.threads = threads;
            for (const shape s : {shape{12, 32, 32}, shape{13, 33, 33}, shape{64, 64, 64}, shape{33, 95, 96},
                                  shape{100, 70, 256}, shape{40, 160, 1056}}) {
                check_places<Value>(exec, random, s);
            }
        }
    }
}

TEST_CASE("float products have the same bits wherever and however the operands lie") {
    check_shapes<float>();
}

TEST_CASE("half products have the same bits wherever and however the operands lie") {
    check_shapes<mp::half>();
}

TEST_CASE("bfloat16 products have the same bits wherever and however the operands lie") {
    check_shapes<mp::bfloat16>();
}

TEST_CASE("rows of A that are too long to be read where they lie give the same bits") {
    generator random(2);
    for (const mp::cpu& exec : reference::executors()) {
        if (exec.products == mp::accumulation::ordered) continue;
        check_places<mp::bfloat16>(exec, random, {32, 32, 4128});
        check_places<float>(exec, random, {12, 32, 1056});
    }
}

}  // namespace
