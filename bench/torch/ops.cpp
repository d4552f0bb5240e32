// SPDX-License-Identifier: MIT
// The ops that ops.py measures beside torch's, as functions of a shared library: mp_op_name(i) names them
// until it is null, and mp_op_seconds(i, times) runs one and says how long it took. One thread, float, 2048
// rows of 128 columns (512 in the hidden layer), 64 heads of 128 x 32; the buffers are made once.
#include <mp/autocast.hpp>
#include <mp/float8.hpp>
#include <mp/ops.hpp>

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace {

constexpr std::ptrdiff_t rows = 2048, columns = 128, hidden = 512, vocabulary = 256;
constexpr std::ptrdiff_t heads = 64, length = 128, head_size = 32;

/// Numbers of both signs below `bound`.
std::vector<float> numbers(std::ptrdiff_t count, float bound) {
    static std::uint32_t bits = 1;
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& x : result) {
        bits = bits * 1664525U + 1013904223U;
        x = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31F * bound;
    }
    return result;
}

/// From a cache line on, as torch's are.
struct matrix {
    std::unique_ptr<float, decltype(&std::free)> memory;
    mp::matrix_view<float> view;

    matrix(std::ptrdiff_t r, std::ptrdiff_t c, float bound)
        : memory(static_cast<float*>(std::aligned_alloc(64, sizeof(float) * static_cast<std::size_t>(r * c))),
                 &std::free),
          view(mp::row_major(memory.get(), r, c)) {
        const auto values = numbers(r * c, bound);
        std::copy(values.begin(), values.end(), memory.get());
    }
};

struct buffers {
    matrix x{rows, columns, 3}, dy{rows, columns, 1}, y{rows, columns, 0}, dx{rows, columns, 0};
    matrix h{rows, hidden, 3}, dh{rows, hidden, 1}, hy{rows, hidden, 0}, hdx{rows, hidden, 0};
    matrix table{vocabulary, columns, 1}, dtable{vocabulary, columns, 0};
    matrix weights{hidden, columns, 0.1F}, dweights{hidden, columns, 0};
    matrix q{heads * length, head_size, 1}, k{heads * length, head_size, 1}, v{heads * length, head_size, 1};
    matrix dattended{heads * length, head_size, 1}, attended{heads * length, head_size, 0};
    matrix dq{heads * length, head_size, 0}, dk{heads * length, head_size, 0},
        dv{heads * length, head_size, 0};
    matrix probabilities{rows, columns, 0};
    std::vector<mp::bfloat16> quantised = std::vector<mp::bfloat16>(rows * hidden);
    mp::host_workspace memory;
    std::vector<float> gamma = numbers(columns, 1), beta = numbers(columns, 1), bias = numbers(hidden, 1);
    std::vector<float> dgamma = gamma, dbeta = beta, dbias = bias;
    std::vector<mp::ops::normalization_statistics> of_norm{rows};
    std::vector<mp::ops::softmax_statistics> of_attention{heads * length}, of_loss{rows};
    std::vector<std::int64_t> indices, labels;
    float loss = 0;

    buffers() {
        for (std::int64_t i = 0; i < rows; ++i) {
            indices.push_back(i * 7919 % vocabulary);
            labels.push_back(i * 31 % columns);
        }
    }
};

struct named_op {
    std::string name;
    std::function<void()> run;
};

/// What a float8 region does to an operand of a product, alone.
template <class Format>
void quantise(buffers& b, const matrix& from) {
    const auto count = static_cast<std::size_t>(from.view.rows * from.view.columns);
    mp::detail::quantise_operand(mp::detail::quantised_to<Format>{}, mp::cpu{},
                                 std::span<const float>(from.view.data, count),
                                 std::span(b.quantised.data(), count));
}

const std::vector<named_op>& all_ops() {
    static buffers b;
    static const mp::cpu exec{};
    static const auto tanh = mp::ops::gelu_formula::tanh;
    static const mp::ops::attention_options attention{.heads = heads, .causal = true};
    static const mp::cpu with_memory{.workspace = &b.memory};
    namespace ops = mp::ops;
    static const std::vector<named_op> result = {
        {"gelu", [] { ops::gelu(exec, b.h.view, b.hy.view); }},
        {"gelu_backward", [] { ops::gelu_backward(exec, b.h.view, b.dh.view, b.hdx.view); }},
        {"gelu_tanh", [] { ops::gelu(exec, b.h.view, b.hy.view, tanh); }},
        {"gelu_tanh_backward", [] { ops::gelu_backward(exec, b.h.view, b.dh.view, b.hdx.view, tanh); }},
        {"silu", [] { ops::silu(exec, b.h.view, b.hy.view); }},
        {"silu_backward", [] { ops::silu_backward(exec, b.h.view, b.dh.view, b.hdx.view); }},
        {"tanh", [] { ops::tanh(exec, b.h.view, b.hy.view); }},
        {"tanh_backward", [] { ops::tanh_backward(exec, b.h.view, b.dh.view, b.hdx.view); }},
        {"relu", [] { ops::relu(exec, b.h.view, b.hy.view); }},
        {"relu_backward", [] { ops::relu_backward(exec, b.h.view, b.dh.view, b.hdx.view); }},
        {"add", [] { ops::add(exec, b.x.view, b.dy.view, b.y.view); }},
        {"multiply", [] { ops::multiply(exec, b.x.view, b.dy.view, b.y.view); }},
        {"embedding", [] { ops::embedding(exec, b.table.view, b.indices, b.y.view); }},
        {"embedding_backward", [] { ops::embedding_backward(exec, b.indices, b.dy.view, b.dtable.view); }},
        {"layer_norm", [] { ops::layer_norm(exec, b.x.view, b.gamma, b.beta, b.y.view, {}, b.of_norm); }},
        {"layer_norm_backward",
         [] {
             ops::layer_norm_backward(exec, b.x.view, b.gamma, b.dy.view, b.dx.view, b.dgamma, b.dbeta, {},
                                      b.of_norm);
         }},
        {"rms_norm", [] { ops::rms_norm(exec, b.x.view, b.gamma, b.y.view); }},
        {"softmax", [] { ops::softmax(exec, b.x.view, b.probabilities.view); }},
        {"softmax_backward", [] { ops::softmax_backward(exec, b.probabilities.view, b.dy.view, b.dx.view); }},
        {"log_softmax", [] { ops::log_softmax(exec, b.x.view, b.y.view); }},
        {"cross_entropy",
         [] { ops::softmax_cross_entropy(exec, b.x.view, b.labels, &b.loss, {}, {}, {}, b.of_loss); }},
        {"cross_entropy_backward",
         [] { ops::softmax_cross_entropy_backward(exec, b.x.view, b.labels, b.dx.view, {}, {}, b.of_loss); }},
        {"cross_entropy_with_gradient",
         [] { b.loss = ops::softmax_cross_entropy_with_gradient(exec, b.x.view, b.labels, b.dx.view); }},
        {"linear", [] { ops::linear(exec, b.x.view, b.weights.view, b.bias, b.hy.view); }},
        {"linear_backward",
         [] {
             ops::linear_backward(exec, b.x.view, b.weights.view, b.dh.view, b.dx.view, b.dweights.view,
                                  b.dbias);
         }},
        {"attention",
         [] {
             ops::scaled_dot_product_attention(exec, b.q.view, b.k.view, b.v.view, ops::absent,
                                               b.attended.view, attention, b.of_attention);
         }},
        {"attention_backward",
         [] {
             ops::scaled_dot_product_attention_backward(exec, b.q.view, b.k.view, b.v.view, ops::absent,
                                                        b.dattended.view, b.dq.view, b.dk.view, b.dv.view,
                                                        attention, b.of_attention);
         }},
        {"float8_step",
         [] {
             const mp::autocast_region region(mp::precision::fp8);
             ops::linear(with_memory, b.x.view, b.weights.view, b.bias, b.hy.view);
             ops::linear_backward(with_memory, b.x.view, b.weights.view, b.dh.view, b.dx.view,
                                  b.dweights.view, b.dbias);
         }},
        {"float8_quantisation",  // of the operands of that step, for each product
         [] {
             for (int pass = 0; pass < 2; ++pass) {
                 quantise<mp::float8_e4m3fn>(b, b.x);
                 quantise<mp::float8_e4m3fn>(b, b.weights);
             }
             quantise<mp::float8_e5m2>(b, b.dh);
         }},
    };
    return result;
}

/// Processor time of the calling thread.
double thread_seconds() {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

extern "C" const char* mp_op_name(int index) {
    const auto i = static_cast<std::size_t>(index);
    return i < all_ops().size() ? all_ops()[i].name.c_str() : nullptr;
}

extern "C" double mp_op_seconds(int index, int times) {
    const double start = thread_seconds();
    for (int i = 0; i < times; ++i) all_ops()[static_cast<std::size_t>(index)].run();
    return thread_seconds() - start;
}
