// SPDX-License-Identifier: MIT
// A transformer block of the layers in double against central differences of itself, and its gradients in
// float, half and bfloat16 against the same differences.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/check/gradient_check.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

namespace layers = mp::layers;
using mp::ops::add_to;
constexpr mp::cpu exec{};
constexpr std::ptrdiff_t batch = 2, tokens = 4, rows = batch * tokens, width = 8, words = 11;

/// Embedding, causal attention of two heads over one of keys, an mlp, both behind norms and beside residuals,
/// and a head tied to nothing.
template <class T>
struct model {
    mp::parameter_store<T> store;
    layers::embedding<T> embed{store, "embed", words, width, {.initial = mp::initializers::normal(0.7)}};
    layers::layer_norm<T> first{store, "first", width};
    layers::attention<T> attend{store, "attend", width, {.heads = 2, .key_heads = 1}};
    layers::rms_norm<T> second{store, "second", width};
    layers::mlp<T> mlp{store, "mlp", width, 2 * width, {.formula = mp::ops::gelu_formula::exact}};
    layers::linear<T> head{store, "head", width, words, {.bias = false}};
    mp::tensor<T> x{rows, width}, h{rows, width}, z{rows, width}, dz{rows, width}, part{rows, width};
    mp::tensor<T> dlogits{rows, words};
    std::vector<int> ids{3, 1, 4, 1, 5, 9, 2, 6}, labels{1, 4, 1, 5, 9, 2, 6, 0};
    mp::ops::cross_entropy_options options{.ignore_index = 0, .label_smoothing = 0.1F};

    using const_view = mp::matrix_view<const T>;
    static const_view in(const mp::tensor<T>& t) { return t.view(); }

    auto loss() {
        embed.forward(exec, ids, x.view());
        const_view y = attend.forward(exec, first.forward(exec, in(x)), batch);
        mp::ops::add(exec, in(x), y, h.view());
        y = mlp.forward(exec, second.forward(exec, in(h)));
        mp::ops::add(exec, in(h), y, z.view());
        return mp::ops::softmax_cross_entropy(exec, head.forward(exec, in(z)), labels, {}, options);
    }
    /// After loss(); gradients are multiplied by the scale.
    void backward(float scale = 1) {
        mp::ops::softmax_cross_entropy_backward(exec, head.result(), labels, dlogits.view(), {.scale = scale},
                                                options);
        head.backward(exec, in(dlogits), dz.view());
        mlp.backward(exec, in(dz), part.view());
        second.backward(exec, in(part), add_to(dz.view()));
        attend.backward(exec, in(dz), part.view());
        first.backward(exec, in(part), add_to(dz.view()));
        embed.backward(exec, in(dz));
    }
};

TEST_CASE("gradients of a transformer block in double are its differences") {
    model<double> wide;
    wide.store.build(7);
    const double loss = wide.loss();
    wide.backward();
    const auto report = mp::check_gradients([&] { return wide.loss(); }, wide.store.parameters());
    INFO(to_string(report));
    CHECK(report.arrays.size() == 13);
    CHECK(report.passed(1e-7));
    CHECK(report.norms_passed(1e-8));
    CHECK(wide.loss() == loss);

    const auto sample =
        mp::check_gradients([&] { return wide.loss(); }, wide.store.parameters(), {.samples = 5});
    CHECK(sample.passed(1e-7));
}

TEST_CASE("a term that a backward pass leaves out is found in the layers before it") {
    model<double> wide;
    wide.store.build(7);
    static_cast<void>(wide.loss());
    wide.backward();
    // The residual around the mlp is forgotten.
    wide.mlp.backward(exec, model<double>::in(wide.dz), wide.part.view());
    wide.second.backward(exec, model<double>::in(wide.part), wide.dz.view());
    const auto report = mp::check_gradients([&] { return wide.loss(); }, wide.store.parameters());
    for (const auto& it : report.arrays) {
        CAPTURE(it.name);
        const bool is_wrong = it.name.starts_with("mlp") || it.name.starts_with("second");
        CHECK((it.max_relative > 1e-3) == is_wrong);
    }
}

/// The largest error in norm of the gradients in T, with the same weights in double.
template <class T>
double norm_error_in(float scale) {
    model<T> narrow;
    model<double> wide;
    narrow.store.build(7);
    wide.store.build(7);
    for (std::size_t i = 0; i < wide.store.weights().size(); ++i) {
        wide.store.weights()[i] = static_cast<double>(narrow.store.weights()[i]);
    }
    static_cast<void>(narrow.loss());
    narrow.backward(scale);
    std::vector<mp::checked_gradient> arrays;
    const auto of_wide = wide.store.parameters();
    const auto of_narrow = narrow.store.parameters();
    for (std::size_t i = 0; i < of_wide.size(); ++i) {
        arrays.emplace_back(of_wide[i].name, of_wide[i].weights, of_narrow[i].gradient);
        for (double& it : arrays.back().gradient) it /= static_cast<double>(scale);
    }
    const auto report = mp::check_gradients([&] { return wide.loss(); }, arrays);
    double worst = 0;
    for (const auto& it : report.arrays) worst = std::max(worst, it.norm_relative);
    return worst;
}

TEST_CASE("gradients of narrow formats are as far from the differences as the formats round") {
    CHECK(norm_error_in<float>(1) < 3e-7);
    CHECK(norm_error_in<mp::half>(1024) < 2e-3);
    CHECK(norm_error_in<mp::bfloat16>(1) < 1e-2);
}

}  // namespace
