// SPDX-License-Identifier: MIT
// A transformer block of the layers in double against central differences of itself, and its gradients in
// float, half and bfloat16 against the same differences.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>
#include <mp/training.hpp>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "larger_error.hpp"

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

/// Errors in norm of the gradients in T, with the same weights in double.
struct norm_errors {
    double worst = 0;  ///< of an array, against the differences
    double all = 0;    ///< of all gradients as one array, against those in double
};
template <class T>
norm_errors errors_in(float scale) {
    model<T> narrow;
    model<double> wide;
    narrow.store.build(7);
    wide.store.build(7);
    for (std::size_t i = 0; i < wide.store.weights().size(); ++i) {
        wide.store.mutable_weights()[i] = static_cast<double>(narrow.store.weights()[i]);
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
    norm_errors errors;
    for (const auto& it : report.arrays) errors.worst = tests::larger_error(errors.worst, it.norm_relative);
    static_cast<void>(wide.loss());
    wide.backward();
    double squares = 0, of_errors = 0;
    for (std::size_t i = 0; i < of_wide.size(); ++i) {
        for (std::size_t j = 0; j < of_wide[i].gradient.size(); ++j) {
            const double exact = of_wide[i].gradient[j];
            const double error = arrays[i].gradient[j] - exact;
            squares += exact * exact;
            of_errors += error * error;
        }
    }
    errors.all = std::sqrt(of_errors / squares);
    return errors;
}

TEST_CASE("gradients of narrow formats are as far from the differences as the formats round") {
    const auto check = [](const norm_errors& it, double worst, double all) {
        CHECK(it.worst < worst);
        CHECK(it.all < all);
        CHECK(it.all > all / 8);  // or the oracle is not in double
    };
    check(errors_in<float>(1), 4e-7, 2e-7);
    check(errors_in<mp::half>(1024), 2e-3, 7e-4);
    check(errors_in<mp::bfloat16>(1), 1e-2, 6e-3);
}

}  // namespace
