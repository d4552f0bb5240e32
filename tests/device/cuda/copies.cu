// SPDX-License-Identifier: MIT
// Ops that choose, drop, turn and move elements.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/dropout/gpu.hpp>
#include <mp/nn/ops/embedding/gpu.hpp>
#include <mp/nn/ops/rearrange/gpu.hpp>
#include <mp/nn/ops/rotary_embedding/gpu.hpp>
#include <mp/simt.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <span>
#include <tuple>
#include <vector>

#include "device_results.hpp"

namespace {

using device_test::check_op;
using mp::bfloat16;
using mp::half;
using mp::row_major;

template <class X, class Y>
void check_embedding(std::ptrdiff_t table_rows, std::ptrdiff_t columns, std::size_t count,
                     std::size_t shift) {
    std::vector<int> indices(count);
    for (std::size_t i = 0; i < count; ++i)
        indices[i] = static_cast<int>(i * i % static_cast<std::size_t>(table_rows));
    mp::unique_cuda_stream stream;
    const mp::device_buffer<int> on_device(stream, indices);
    mp::synchronize(stream);
    const std::span<const int> host_indices(indices), device_indices = on_device.span();
    const auto chosen = static_cast<std::ptrdiff_t>(count);
    const auto of = [=](auto exec) {
        return std::same_as<decltype(exec), mp::cuda_stream> ? device_indices : host_indices;
    };
    const std::size_t size =
        static_cast<std::size_t>(columns) * (count + static_cast<std::size_t>(table_rows));
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* table, const X*, Y* y) {
        mp::ops::embedding(exec, row_major(table, table_rows, columns), of(exec),
                           row_major(y, chosen, columns));
    });
    check_op<X, Y>(size, size, mp::ops::embedding_backward_workspace(count), shift,
                   [=](auto exec, const X*, const X* dy, Y* dtable) {
                       mp::ops::embedding_backward(exec, of(exec), row_major(dy, chosen, columns),
                                                   row_major(dtable, table_rows, columns),
                                                   {.padding_index = 1});
                   });
}

TEST_CASE("embeddings on a device give the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_embedding<half, half>(300, 33, 100, shift);
        check_embedding<bfloat16, float>(7, 1500, 40, shift);
        check_embedding<float, float>(70000, 3, 9000, shift);
    }
}

template <class X, class Y>
void check_dropout(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const auto view = [=](auto* data) { return row_major(data, rows, columns); };
    const mp::ops::dropout_options options{.probability = 0.3F, .seed = 11, .offset = 5 + shift};
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X*, Y* y) {
        mp::ops::dropout(exec, view(x), view(y), options);
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X*, const X* dy, Y* dx) {
        mp::ops::dropout_backward(exec, mp::transposed(view(dy)), mp::transposed(view(dx)), options);
    });
}

TEST_CASE("dropout on a device gives the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_dropout<half, half>(33, 130, shift);
        check_dropout<bfloat16, float>(1, 3000, shift);
        check_dropout<float, float>(7, 31, shift);
    }
}

template <class X, class Y>
void check_rotary(std::ptrdiff_t rows, std::ptrdiff_t columns, std::size_t shift,
                  const mp::ops::rotary_options& options) {
    const auto size = static_cast<std::size_t>(rows * columns);
    const auto view = [=](auto* data) { return row_major(data, rows, columns); };
    const std::size_t workspace = mp::ops::rotary_embedding_workspace(rows, columns, options);
    check_op<X, Y>(size, size, workspace, shift, [=](auto exec, const X* x, const X*, Y* y) {
        mp::ops::rotary_embedding(exec, view(x), view(y), options);
    });
    check_op<X, Y>(size, size, workspace, shift, [=](auto exec, const X*, const X* dy, Y* dx) {
        mp::ops::rotary_embedding_backward(exec, view(dy), view(dx), options);
    });
}

TEST_CASE("rotary embeddings on a device give the bits of the simulated GPU") {
    using mp::ops::head_layout;
    using mp::ops::rotary_pairing;
    for (const std::size_t shift : {0u, 1u}) {
        check_rotary<half, half>(64, 192, shift,
                                 {.heads = 3, .layout = head_layout::side_by_side, .batch = 2});
        check_rotary<bfloat16, float>(130, 34, shift, {.heads = 10, .pairing = rotary_pairing::interleaved});
        check_rotary<float, float>(3, 600, shift, {.rotated = 598, .first_position = 100000});
    }
}

template <class X, class Y>
void check_heads(std::ptrdiff_t batch, std::ptrdiff_t heads, std::ptrdiff_t tokens, std::ptrdiff_t head_dim,
                 std::size_t shift) {
    const auto size = static_cast<std::size_t>(batch * heads * tokens * head_dim);
    const auto beside = [=](auto* data) { return row_major(data, batch * tokens, heads * head_dim); };
    const auto stacked = [=](auto* data) { return row_major(data, batch * heads * tokens, head_dim); };
    const mp::ops::permute_heads_options options{.heads = heads, .batch = batch};
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X* x, const X*, Y* y) {
        mp::ops::permute_heads(exec, beside(x), stacked(y), options);
    });
    check_op<X, Y>(size, size, 0, shift, [=](auto exec, const X*, const X* dy, Y* dx) {
        mp::ops::permute_heads_backward(exec, stacked(dy), beside(dx), options);
    });
    check_op<X, Y>(size, 2 * size, 0, shift, [=](auto exec, const X* x, const X* z, Y* y) {
        mp::ops::concatenate(exec, mp::ops::parts_along::columns, std::tuple(beside(x), beside(z)),
                             row_major(y, batch * tokens, 2 * heads * head_dim));
    });
}

TEST_CASE("moves of heads and parts on a device give the bits of the simulated GPU") {
    for (const std::size_t shift : {0u, 1u}) {
        check_heads<half, half>(2, 3, 33, 64, shift);
        check_heads<bfloat16, float>(1, 2, 130, 31, shift);
    }
}

}  // namespace
