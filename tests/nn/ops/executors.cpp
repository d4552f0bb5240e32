// SPDX-License-Identifier: MIT
// Ops have one door: on the CPU and on a GPU they follow the same region, with the same casts, and give the
// same bits where their documentation says so.
#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/frontends/compat/presets.hpp>
#include <mp/gpu.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "larger_error.hpp"

namespace {

using mp::bfloat16;
using mp::half;
using mp::row_major;
/// For which few kernels of products are compiled.
using simulated = mp::simulated_gpu<mp::arch::sm_75>;

constexpr std::ptrdiff_t rows = 5;
constexpr std::ptrdiff_t columns = 24;
constexpr std::size_t size = rows * columns;

std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<float> values(count);
    for (float& value : values) value = draw(random);
    return values;
}

template <class To>
std::vector<To> rounded(const std::vector<float>& from) {
    std::vector<To> to;
    for (const float value : from) to.push_back(static_cast<To>(value));
    return to;
}

/// What an op did: its results as floats, and what the ledger saw, a line each.
struct outcome {
    std::vector<float> results;
    std::string seen;
};

std::string text_of(const mp::autocast::cast_ledger& ledger) {
    std::string text;
    for (const auto& it : ledger.ops()) {
        text += it.op + " " + std::string(mp::name_of(it.category)) + " in " + it.compute_type + ", " +
                it.rule + "\n";
    }
    for (const auto& it : ledger.casts()) {
        text += it.argument + ": " + it.from + " to " + it.to + (it.scaled ? ", scaled, " : ", ") +
                std::to_string(it.losses.elements) + " elements, " + std::to_string(it.losses.inexact) +
                " inexact, " + std::to_string(it.losses.flushed) + " flushed\n";
    }
    for (const auto& it : ledger.inputs()) {
        text += it.argument + " " + it.type + ": " + std::to_string(it.elements) + " read\n";
    }
    for (const auto& it : ledger.products()) {
        text += it.type + " " + std::to_string(it.m) + " " + std::to_string(it.n) + " " +
                std::to_string(it.k) + "\n";
    }
    return text;
}

/// Calls op(exec, a, b, y) in the preset, where a, b and y are matrices of Value.
template <class Value, class Executor, class Op>
outcome run(const Executor& exec, const mp::autocast::preset& preset, Op op) {
    const std::vector<Value> a = rounded<Value>(random_floats(size, 1));
    const std::vector<Value> b = rounded<Value>(random_floats(size, 2));
    std::vector<Value> y(size);
    mp::autocast::cast_ledger ledger;
    {
        mp::autocast_region region(
            {.cpu = preset.value, .cuda = preset.value, .list = preset.ops, .ledger = &ledger});
        op(exec, row_major(a.data(), rows, columns), row_major(b.data(), rows, columns),
           row_major(y.data(), rows, columns));
    }
    outcome result;
    for (const Value value : y) result.results.push_back(static_cast<float>(value));
    result.seen = text_of(ledger);
    return result;
}

/// In every preset, on the CPU and on the simulated GPU.
template <class Value, class Op>
void check(float tolerance, Op op) {
    mp::host_workspace workspace;
    const simulated gpu{.workspace = &workspace};
    for (const mp::autocast::preset* preset : mp::autocast::presets::all) {
        CAPTURE(preset->name);
        const outcome expected = run<Value>(mp::cpu{.products = mp::accumulation::ordered}, *preset, op);
        const outcome found = run<Value>(gpu, *preset, op);
        CHECK(found.seen == expected.seen);
        CHECK(workspace.used() == 0);
        float worst = 0.0F;
        for (std::size_t i = 0; i < size; ++i) {
            worst = tests::larger_error(worst, std::abs(found.results[i] - expected.results[i]));
        }
        CHECK(worst <= tolerance);
    }
}

TEST_CASE("copies that convert: the same bits, and the same casts") {
    const auto concatenated = [](auto& on, auto a, auto b, auto y) {
        mp::ops::concatenate(on, mp::ops::parts_along::columns,
                             std::tuple(a.block(0, 0, rows, 10), b.block(0, 10, rows, 14)), y);
    };
    check<float>(0.0F, concatenated);
    check<bfloat16>(0.0F, concatenated);
    const auto taken_apart = [](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::split(on, mp::ops::parts_along::rows, a,
                       std::tuple(y.block(3, 0, 2, columns), y.block(0, 0, 3, columns)));
    };
    check<float>(0.0F, taken_apart);
    check<half>(0.0F, taken_apart);
}

TEST_CASE("rows that indices choose, and their sums: the same bits, and the same casts") {
    const std::vector<int> indices = {4, 0, 4, 1, 2};
    const auto chosen = [&](auto& on, auto a, auto /*b*/, auto y) { mp::ops::embedding(on, a, indices, y); };
    check<float>(0.0F, chosen);
    check<half>(0.0F, chosen);
    const auto summed = [&](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::embedding_backward(on, indices, a, y);
    };
    check<float>(0.0F, summed);
    check<half>(0.0F, summed);
}

TEST_CASE("dropout: the same mask, bits and casts") {
    const mp::ops::dropout_options options{.probability = 0.4F, .seed = 3, .offset = 1};
    const auto forward = [&](auto& on, auto a, auto /*b*/, auto y) { mp::ops::dropout(on, a, y, options); };
    const auto backward = [&](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::dropout_backward(on, a, y, options);
    };
    check<float>(0.0F, forward);
    check<half>(0.0F, forward);
    check<float>(0.0F, backward);
}

TEST_CASE("rotary embeddings: the same bits and casts") {
    const mp::ops::rotary_options options{.pairing = mp::ops::rotary_pairing::interleaved,
                                          .first_position = 3};
    const auto forward = [&](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::rotary_embedding(on, a, y, options);
    };
    const auto backward = [&](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::rotary_embedding_backward(on, a, y, options);
    };
    check<float>(0.0F, forward);
    check<half>(0.0F, forward);
    check<float>(0.0F, backward);
}

TEST_CASE("heads in the other layout: the same bits and casts") {
    check<float>(0.0F, [](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::permute_heads(on, a, row_major(y.data, rows * 3, columns / 3), {.heads = 3});
    });
    check<half>(0.0F, [](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::permute_heads_backward(on, row_major(a.data, rows * 3, columns / 3), y, {.heads = 3});
    });
}

TEST_CASE("functions of elements have the bits and the casts of the CPU in every preset") {
    check<float>(0.0F, [](auto& exec, auto a, auto, auto y) { mp::ops::silu(exec, a, y); });
    check<half>(0.0F, [](auto& exec, auto a, auto, auto y) { mp::ops::silu(exec, a, y); });
    check<float>(0.0F, [](auto& exec, auto a, auto b, auto y) { mp::ops::add(exec, a, b, y); });
}

TEST_CASE("and so have their gradients") {
    check<float>(0.0F, [](auto& exec, auto a, auto b, auto y) { mp::ops::silu_backward(exec, a, b, y); });
    check<float>(0.0F, [](auto& exec, auto a, auto b, auto y) {
        mp::ops::multiply_backward(exec, a, b, b, y, mp::ops::absent);
    });
}

TEST_CASE(
    "functions of rows have the casts of the CPU in every preset, and its results except for a few bits") {
    check<float>(0x1p-21F, [](auto& exec, auto a, auto, auto y) { mp::ops::softmax(exec, a, y); });
    check<float>(0x1p-18F,
                 [](auto& exec, auto a, auto b, auto y) { mp::ops::softmax_backward(exec, a, b, y); });
    check<float>(0x1p-19F, [](auto& exec, auto a, auto b, auto y) {
        mp::ops::layer_norm(exec, a, std::span(b.data, columns), mp::ops::absent, y);
    });
    check<float>(0x1p-19F, [](auto& exec, auto a, auto b, auto y) {
        mp::ops::rms_norm_backward(exec, a, mp::ops::absent, b, y, mp::ops::absent);
    });
}

TEST_CASE("and so has the loss of a classifier, with its options") {
    const std::vector<int> labels = {3, -100, 0, 23, 7};
    check<float>(0x1p-19F, [&](auto& exec, auto a, auto, auto y) {
        // The last gradients make place for the losses.
        std::vector<float> losses(rows);
        float loss = 0;
        mp::ops::softmax_cross_entropy_with_gradient(exec, a, labels, &loss, losses, y, {.scale = 4.0F},
                                                     {.ignore_index = -100, .label_smoothing = 0.1F});
        for (std::ptrdiff_t r = 0; r < rows; ++r) y(r, 23) = losses[static_cast<std::size_t>(r)];
        y(1, 0) = loss;
    });
    check<half>(0x1p-10F, [&](auto& exec, auto a, auto, auto y) {
        mp::ops::softmax_cross_entropy_backward(exec, a, labels, y, {}, {.ignore_index = -100});
    });
}

TEST_CASE("losses of numbers and their gradients: the same bits and casts") {
    const auto loss = [](auto& on, auto a, auto b, auto y) {
        float squared = 0, absolute = 0;
        mp::ops::mean_squared_error(on, a, b, &squared, {.weight = 0.5F});
        mp::ops::mean_absolute_error(on, a, b, &absolute);
        y(0, 0) = squared;
        y(0, 1) = absolute;
    };
    check<float>(0.0F, loss);
    const auto gradients = [](auto& on, auto a, auto b, auto y) {
        mp::ops::mean_squared_error_backward(on, a.block(0, 0, 2, columns), b.block(0, 0, 2, columns),
                                             y.block(0, 0, 2, columns), {.scale = 64.0F});
        mp::ops::mean_absolute_error_backward(on, a.block(2, 0, 3, columns), b.block(2, 0, 3, columns),
                                              y.block(2, 0, 3, columns), {.scale = 64.0F});
    };
    check<float>(0.0F, gradients);
    check<half>(0.0F, gradients);
}

TEST_CASE("pooling and the largest columns: the same bits and casts") {
    // An image of 2 channels of 3 x 4 in each row, pooled to 2 x 3 cells.
    const mp::ops::pool2d_geometry g{
        .channels = 2, .height = 3, .width = 4, .kernel = {2, 2}, .stride = {1, 1}};
    const auto forward = [&](auto& on, auto a, auto b, auto y) {
        mp::ops::max_pool2d(on, a, y.block(0, 0, rows, 12), g);
        mp::ops::average_pool2d(on, b, y.block(0, 12, rows, 12), g);
    };
    check<float>(0.0F, forward);
    check<half>(0.0F, forward);
    const auto largest = [&](auto& on, auto a, auto b, auto y) {
        mp::ops::max_pool2d_backward(on, a, b.block(0, 0, rows, 12), y, g);
        std::vector<int> indices(rows);
        mp::ops::argmax(on, a, indices);
        y(0, 0) = static_cast<float>(indices[0] + 32 * indices[1]);
    };
    check<float>(0.0F, largest);
    const auto average = [&](auto& on, auto a, auto /*b*/, auto y) {
        mp::ops::average_pool2d_backward(on, a.block(0, 0, rows, 12), y, g);
    };
    check<float>(0.0F, average);
    check<half>(0.0F, average);
}

TEST_CASE("sums and products have the casts of the CPU in every preset") {
    check<float>(0x1p-20F, [](auto& exec, auto a, auto, auto y) {
        mp::ops::sum(exec, a, std::span(y.data, columns), mp::ops::per::column);
        mp::ops::mean(exec, a, std::span(y.data + columns, rows), mp::ops::per::row);
    });
    check<float>(0x1p-4F, [](auto& exec, auto a, auto b, auto y) {
        mp::ops::linear(exec, a, b, mp::ops::absent, row_major(y.data, rows, rows));
    });
}

TEST_CASE("a step in a region is captured: without kept casts it needs no more workspace than before") {
    mp::simt::launch_recorder recorder;
    mp::host_workspace workspace;
    const simulated gpu{.workspace = &workspace, .recorder = &recorder};
    std::vector<float> a = random_floats(size, 1), b = random_floats(size, 2);
    std::vector<float> y(rows * rows), expected(rows * rows);
    const mp::autocast::buffer_version version;
    const auto product = [&](const auto& exec, std::vector<float>& to) {
        mp::ops::linear(exec, row_major<const float>(a.data(), rows, columns),
                        mp::autocast::cached(row_major<const float>(b.data(), rows, columns), version),
                        mp::ops::absent, row_major(to.data(), rows, rows));
    };
    const mp::autocast_region region(
        {.cpu = mp::precision::fp16, .cuda = mp::precision::fp16, .keep_casts = false});
    mp::replayed_step step(gpu);
    std::size_t bytes = 0;
    for (int i = 0; i < 4; ++i) {
        CAPTURE(i);
        step.run([&] { product(gpu, y); });
        if (i == 0) bytes = workspace.high_water();
        CHECK(workspace.high_water() == bytes);
        product(simulated{.workspace = &workspace}, expected);
        CHECK(y == expected);
        for (float& it : b) it += 1.0F;  // and nobody has to say so
    }
    CHECK(bytes >= 2 * size * sizeof(half));
}

TEST_CASE("attention has the casts of the CPU in every preset") {
    const auto attended = [](auto& exec, auto a, auto b, auto y) {
        mp::ops::scaled_dot_product_attention(exec, a, b, b, mp::ops::absent, y,
                                              {.heads = 3,
                                               .causal = true,
                                               .layout = mp::ops::head_layout::side_by_side,
                                               .dropout = {.probability = 0.25F, .seed = 1}});
    };
    check<float>(0x1p-4F, attended);
    check<half>(0x1p-4F, attended);
    const auto gradients = [](auto& exec, auto a, auto b, auto y) {
        mp::ops::scaled_dot_product_attention_backward(
            exec, a, b, b, mp::ops::absent, a, mp::ops::absent, mp::ops::absent, y,
            {.heads = 3, .causal = true, .layout = mp::ops::head_layout::side_by_side});
    };
    check<float>(0x1p-4F, gradients);
}

TEST_CASE("a mask of floats reaches attention of halves on a GPU") {
    const std::vector<float> q = {0}, k = {0, 0, 0}, v = {1, 2, 3}, mask = {2000.3F, 2000.0F, 1999.6F};
    const mp::autocast_region region({.cpu = mp::precision::fp16, .cuda = mp::precision::fp16});
    const auto attended = [&](const auto& exec) {
        std::vector<float> y(1);
        mp::ops::scaled_dot_product_attention(exec, row_major(q.data(), 1, 1), row_major(k.data(), 3, 1),
                                              row_major(v.data(), 3, 1), row_major(mask.data(), 1, 3),
                                              row_major(y.data(), 1, 1), {.scale = 1.0F});
        return y[0];
    };
    mp::host_workspace workspace;
    CHECK(std::fabs(attended(simulated{.workspace = &workspace}) - 1.77498F) < 2e-3F);
    CHECK(std::fabs(attended(mp::cpu{}) - 1.77498F) < 2e-3F);
}

TEST_CASE("the convolution has the casts of the CPU in every preset") {
    // Each row is an image of 2 x 4 x 3, and the weights are read from the other matrix.
    constexpr mp::ops::conv2d_geometry geometry{
        .channels = 2, .height = 4, .width = 3, .kernel = {3, 3}, .padding = {1, 1}};
    constexpr std::ptrdiff_t patch = 18;
    check<float>(0x1p-3F, [=](auto& exec, auto a, auto b, auto y) {
        mp::ops::conv2d(exec, a, row_major(b.data, 2, patch), std::span(b.data, 2), y, geometry);
    });
    check<half>(0x1p-3F, [=](auto& exec, auto a, auto b, auto y) {
        mp::ops::conv2d_backward(exec, a, row_major(b.data, 2, patch), b, y, mp::ops::absent, mp::ops::absent,
                                 geometry);
    });
    check<float>(0x1p-3F, [=](auto& exec, auto a, auto b, auto y) {
        mp::ops::conv2d_backward(exec, a, row_major(b.data, 2, patch), b, mp::ops::absent,
                                 row_major(y.data, 2, patch), std::span(y.data + 2 * patch, 2), geometry);
    });
}

TEST_CASE("linear layers of floats have the bits of ordered products on the CPU") {
    using mp::autocast::off;
    const std::vector<float> x = random_floats(size, 1), w = random_floats(size, 2),
                             b = random_floats(rows, 3);
    const auto in = row_major(x.data(), rows, columns), weights = row_major(w.data(), rows, columns);
    mp::host_workspace workspace;
    const simulated gpu{.workspace = &workspace};
    const mp::cpu host{.products = mp::accumulation::ordered};
    std::vector<float> y(rows * rows), expected(rows * rows);
    const auto out = row_major(y.data(), rows, rows), to = row_major(expected.data(), rows, rows);
    for (int act = 0; act <= static_cast<int>(mp::ops::activation::silu); ++act) {
        mp::ops::linear<off>(gpu, in, weights, b, out, static_cast<mp::ops::activation>(act));
        mp::ops::linear<off>(host, in, weights, b, to, static_cast<mp::ops::activation>(act));
        CAPTURE(act);
        CHECK(y == expected);
    }
    const auto check_preactivation = [&]<class Value>(std::vector<Value> z) {
        std::vector<Value> z0 = z;
        for (const auto act :
             {mp::ops::activation::gelu, mp::ops::activation::gelu_tanh, mp::ops::activation::silu}) {
            mp::ops::linear_with_preactivation<off>(gpu, in, weights, b, row_major(z.data(), rows, rows), out,
                                                    act);
            mp::ops::linear_with_preactivation<off>(host, in, weights, b, row_major(z0.data(), rows, rows),
                                                    to, act);
            CHECK(y == expected);
            CHECK(z == z0);
        }
    };
    check_preactivation(std::vector<float>(rows * rows));
    check_preactivation(std::vector<half>(rows * rows));
    std::vector<float> dx(size), dw(size), db(rows), dx0(size), dw0(size), db0(rows);
    const auto dy = row_major(std::as_const(y).data(), rows, rows);
    mp::ops::linear_backward<off>(gpu, in, weights, dy, row_major(dx.data(), rows, columns),
                                  row_major(dw.data(), rows, columns), db);
    mp::ops::linear_backward<off>(host, in, weights, dy, row_major(dx0.data(), rows, columns),
                                  row_major(dw0.data(), rows, columns), db0);
    CHECK(dx == dx0);
    CHECK(dw == dw0);
    CHECK(db == db0);
    for (const auto act : {mp::ops::activation::relu, mp::ops::activation::gelu, mp::ops::activation::silu}) {
        // x has the shape of what came before it.
        mp::ops::linear_backward_with_preactivation<off>(gpu, in, weights, dy, in,
                                                         row_major(dx.data(), rows, columns), mp::ops::absent,
                                                         mp::ops::absent, act);
        mp::ops::linear_backward_with_preactivation<off>(host, in, weights, dy, in,
                                                         row_major(dx0.data(), rows, columns),
                                                         mp::ops::absent, mp::ops::absent, act);
        CHECK(dx == dx0);
    }
    // Another mix of formats is widened.
    const std::vector<half> narrow = rounded<half>(w);
    const std::vector<float> wide(narrow.begin(), narrow.end());
    mp::ops::linear<off>(gpu, in, row_major(narrow.data(), rows, columns), b, out);
    mp::ops::linear<off>(host, in, row_major(wide.data(), rows, columns), b, to);
    CHECK(y == expected);
}

/// What a region says about an op on an executor and two matrices, except for the executor's own name.
template <class Executor, class Op>
std::string explained(mp::matrix_view<float> y) {
    using view = mp::matrix_view<const float>;
    return mp::autocast::explain<mp::autocast::by_region, Op, Executor, view,
                                 decltype(mp::autocast::out(y))>()
        .text();
}

template <class... Ops>
void check_explained() {
    std::vector<float> y(size);
    const auto out = row_major(y.data(), rows, columns);
    for (const mp::autocast::preset* preset : mp::autocast::presets::all) {
        const mp::autocast_region region(*preset);
        const std::vector<std::string> found{explained<simulated, Ops>(out)...};
        const std::vector<std::string> expected{explained<mp::cpu, Ops>(out)...};
        CHECK(found == expected);
    }
}

TEST_CASE("every op has the same types on a GPU as on the CPU in every preset") {
    using namespace mp::ops;  // NOLINT(google-build-using-namespace)
    check_explained<
        relu_op, relu_backward_op, gelu_op, gelu_backward_op, silu_op, silu_backward_op, tanh_op,
        tanh_backward_op, sigmoid_op, sigmoid_backward_op, softmax_op, softmax_backward_op, log_softmax_op,
        log_softmax_backward_op, layer_norm_op, layer_norm_backward_op, rms_norm_op, rms_norm_backward_op,
        add_op, add_backward_op, multiply_op, multiply_backward_op, embedding_op, embedding_backward_op,
        dropout_op, dropout_backward_op, mean_squared_error_to_memory_op, mean_squared_error_backward_op,
        mean_absolute_error_to_memory_op, mean_absolute_error_backward_op, max_pool2d_op,
        max_pool2d_backward_op, average_pool2d_op, average_pool2d_backward_op, concatenate_op, split_op,
        permute_heads_op, permute_heads_backward_op, rotary_embedding_op, rotary_embedding_backward_op,
        sum_op, mean_op, matmul_op, linear_op, linear_with_preactivation_op, linear_backward_op,
        linear_backward_with_preactivation_op, softmax_cross_entropy_op, softmax_cross_entropy_backward_op,
        softmax_cross_entropy_to_memory_op, softmax_cross_entropy_with_gradient_op,
        scaled_dot_product_attention_op, scaled_dot_product_attention_backward_op, conv2d_op,
        conv2d_backward_op>();
}

TEST_CASE("a region may have another precision on GPUs than on CPUs, and rules of their own") {
    std::vector<float> a = random_floats(size, 1), y(size);
    const auto in = row_major(a.data(), rows, columns), out = row_major(y.data(), rows, columns);
    mp::host_workspace workspace;
    mp::autocast::cast_ledger ledger;
    mp::autocast_region region({.cpu = mp::precision::bf16,
                                .cuda = mp::precision::fp16,
                                .rules = {{.op = "silu", .category = mp::op_category::lower_precision}},
                                .ledger = &ledger});
    mp::ops::silu(mp::cpu{}, in, out);
    mp::ops::silu(simulated{.workspace = &workspace}, in, out);
    REQUIRE(ledger.ops().size() == 2);
    CHECK(ledger.ops()[0].compute_type == "bfloat16");
    CHECK(ledger.ops()[1].compute_type == "half");
    using view = mp::matrix_view<const float>;
    CHECK(mp::autocast::explain<mp::autocast::by_region, mp::ops::silu_op, simulated, view>().compute_type ==
          "half");
    CHECK(mp::autocast::explain<mp::autocast::by_region, mp::ops::silu_op, mp::cpu, view>().compute_type ==
          "bfloat16");
}

TEST_CASE("a cast on a GPU without a workspace is refused, and with one that is too small, too") {
    std::vector<float> a = random_floats(size, 1), y(size, 7.0F);
    const auto in = row_major(a.data(), rows, columns), out = row_major(y.data(), rows, columns);
    std::vector<std::byte> memory(300);
    mp::workspace small(memory);
    mp::autocast_region region(mp::precision::fp16, mp::autocast::lists::keras);
    CHECK_THROWS_WITH_AS(
        mp::ops::silu(simulated{}, in, out),
        "mp::autocast::call: exec.workspace is 'null'; it must be a workspace of device memory, "
        "since an argument of the op is cast or added to",
        mp::argument_error);
    CHECK_THROWS_AS(mp::ops::silu(simulated{.workspace = &small}, in, out), mp::argument_error);
    CHECK(small.used() == 0);
    CHECK(y == std::vector<float>(size, 7.0F));
}

TEST_CASE("casts of cached weights are kept on a GPU as on a CPU") {
    std::vector<float> a = random_floats(size, 1), w = random_floats(size, 2), y(rows * rows);
    const auto x = row_major(a.data(), rows, columns), weights = row_major(w.data(), rows, columns);
    mp::host_workspace workspace;
    mp::autocast::buffer_version version;
    mp::autocast_region region(mp::precision::bf16);
    const simulated exec{.workspace = &workspace};
    for (int i = 0; i < 3; ++i) {
        mp::ops::linear(exec, x, mp::autocast::cached(weights, version), mp::ops::absent,
                        row_major(y.data(), rows, rows));
    }
    CHECK(mp::autocast_cache()->statistics().hits == 2);
    version.changed();
    mp::ops::linear(exec, x, mp::autocast::cached(weights, version), mp::ops::absent,
                    row_major(y.data(), rows, rows));
    CHECK(mp::autocast_cache()->statistics().invalidations == 1);
}

}  // namespace
