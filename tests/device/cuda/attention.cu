// SPDX-License-Identifier: MIT
// Attention on a device: of floats the bits of the simulated GPU, and of formats of the tensor cores, whose
// sums differ from one architecture to the next, its results up to rounding.
#include <mp/cuda.hpp>
#include <mp/device/cuda/launch_kernel.hpp>

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/nn/ops/attention.hpp>
#include <mp/nn/ops/attention/gpu.hpp>
#include <mp/simt.hpp>
#include <mp/workspace.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "device_results.hpp"
#include "larger_error.hpp"

namespace {

using device_test::random_values;
using mp::bfloat16;
using mp::half;
using mp::row_major;
using mp::ops::absent;

struct sizes {
    std::ptrdiff_t queries, keys, head_dim;
};

/// Arrays of a problem, one after the other in one allocation, with heads side by side: q, k, v, dy, and
/// the results y, dq, dk, dv.
template <class Value>
struct problem {
    sizes of;
    mp::ops::attention_options options;

    [[nodiscard]] std::ptrdiff_t width() const { return options.heads * of.head_dim; }
    [[nodiscard]] std::ptrdiff_t key_width() const { return options.key_heads * of.head_dim; }
    [[nodiscard]] std::size_t query_count() const {
        return static_cast<std::size_t>(options.batch * of.queries * width());
    }
    [[nodiscard]] std::size_t key_count() const {
        return static_cast<std::size_t>(options.batch * of.keys * key_width());
    }
    [[nodiscard]] std::size_t inputs() const { return 2 * query_count() + 2 * key_count(); }
    [[nodiscard]] std::size_t outputs() const { return 2 * query_count() + 2 * key_count(); }
    [[nodiscard]] std::size_t rows() const {
        return static_cast<std::size_t>(options.heads * options.batch * of.queries);
    }

    template <class Executor>
    void run(const Executor& exec, const Value* in, Value* out, mp::ops::softmax_statistics* of_rows) const {
        const std::ptrdiff_t query_rows = options.batch * of.queries, key_rows = options.batch * of.keys;
        const auto of_queries = [&](auto* at) { return row_major(at, query_rows, width()); };
        const auto of_keys = [&](auto* at) { return row_major(at, key_rows, key_width()); };
        const auto q = of_queries(in);
        const auto k = of_keys(in + query_count()), v = of_keys(in + query_count() + key_count());
        const std::span statistics(of_rows, rows());
        mp::ops::scaled_dot_product_attention<mp::autocast::off>(exec, q, k, v, absent, of_queries(out),
                                                                 options, statistics);
        Value* const dq = out + query_count();
        Value* const dk = dq + query_count();
        mp::ops::scaled_dot_product_attention_backward<mp::autocast::off>(
            exec, q, k, v, absent, of_queries(in + query_count() + 2 * key_count()), of_queries(dq),
            of_keys(dk), of_keys(dk + key_count()), options, statistics);
    }
};

template <class Value>
void check(const problem<Value>& it) {
    const std::vector<Value> in = random_values<Value>(it.inputs(), 1);
    std::vector<Value> expected(it.outputs());
    std::vector<mp::ops::softmax_statistics> expected_sums(it.rows());
    mp::host_workspace on_host;
    it.run(mp::simulated_gpu<mp::arch::sm_80>{.workspace = &on_host}, in.data(), expected.data(),
           expected_sums.data());
    mp::unique_cuda_stream stream;
    mp::device_workspace on_device(stream.get());
    mp::cuda_stream exec = stream.get();
    exec.workspace = &on_device;
    const mp::device_buffer<Value> device_in(stream, in);
    std::vector<Value> found, again;
    for (auto* results : {&found, &again}) {
        mp::device_buffer<Value> out(stream, std::vector<Value>(it.outputs()));
        mp::device_buffer<mp::ops::softmax_statistics> sums(it.rows());
        it.run(exec, device_in.span().data(), out.span().data(), sums.span().data());
        *results = out.to_host(stream);
    }
    const std::size_t bytes = found.size() * sizeof(Value);
    CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(again.data()),
                      bytes) == 0);
    if constexpr (std::is_same_v<Value, float>) {
        CHECK(std::memcmp(static_cast<const void*>(found.data()), static_cast<const void*>(expected.data()),
                          bytes) == 0);
    } else {
        const double unit = std::is_same_v<Value, half> ? 0x1p-11 : 0x1p-8;
        double worst = 0, largest = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const auto a = static_cast<double>(static_cast<float>(found[i]));
            const auto b = static_cast<double>(static_cast<float>(expected[i]));
            worst = tests::larger_error(worst, std::fabs(a - b));
            largest = std::fmax(largest, std::fabs(b));
        }
        CHECK(worst <= 8 * unit * largest);
    }
}

template <class Value>
void check_sizes() {
    using mp::ops::head_layout;
    for (const sizes& of : {sizes{65, 130, 64}, sizes{33, 33, 20}, sizes{7, 70, 130}}) {
        for (const bool causal : {false, true}) {
            check<Value>({of,
                          {.heads = 4,
                           .causal = causal,
                           .layout = head_layout::side_by_side,
                           .batch = 2,
                           .key_heads = 2,
                           .dropout = {.probability = causal ? 0.25F : 0.0F, .seed = 7}}});
        }
    }
}

TEST_CASE("attention on a device gives the results of the simulated GPU") {
    check_sizes<float>();
    check_sizes<half>();
    check_sizes<bfloat16>();
}

TEST_CASE("attention with a mask, and of several formats, on a device") {
    constexpr std::ptrdiff_t rows = 40, head_dim = 24;
    device_test::check_op<float, half>(
        static_cast<std::size_t>(2 * rows * head_dim), static_cast<std::size_t>(rows * head_dim), 0, 1,
        [](auto exec, const float* x, const float* z, half* out) {
            const auto view = [](auto* at) { return row_major(at, rows, head_dim); };
            mp::ops::scaled_dot_product_attention<mp::autocast::off>(exec, view(x), view(x + rows * head_dim),
                                                                     view(z), row_major(z, rows, rows),
                                                                     view(out), mp::ops::attention_options{});
        });
}

}  // namespace
