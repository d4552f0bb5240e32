// SPDX-License-Identifier: MIT
// The gradient of every op, with all of its options, against central differences of the op itself in double.
#include <doctest/doctest.h>
#include <mp/frontends/check/gradient_check.hpp>
#include <mp/ops.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace mp::ops;
using view = mp::matrix_view<double>;
using const_view = mp::matrix_view<const double>;
constexpr mp::cpu exec{};

/// An operand with its gradient. Values lie between 0.1 and 1.1 on either side of 0, so that no kink is near.
struct operand {
    std::string name;
    std::ptrdiff_t rows, columns;
    std::vector<double> x, dx;

    operand(std::string of, std::ptrdiff_t r, std::ptrdiff_t c, unsigned seed)
        : name(std::move(of)), rows(r), columns(c) {
        std::mt19937 generator(seed);
        for (std::ptrdiff_t i = 0; i < r * c; ++i) {
            const double u = static_cast<double>(generator()) / 2147483648.0 - 1.0;
            x.push_back(u + (u < 0 ? -0.1 : 0.1));
            dx.push_back(1e30);  // what is not written is found
        }
    }
    const_view in() const { return mp::row_major(x.data(), rows, columns); }
    view out() { return mp::row_major(dx.data(), rows, columns); }
};

/// What a loss multiplies the result of an op by: the gradient of the result.
struct weights {
    std::ptrdiff_t rows, columns;
    std::vector<double> w, y;

    weights(std::ptrdiff_t r, std::ptrdiff_t c) : rows(r), columns(c), y(static_cast<std::size_t>(r * c)) {
        std::mt19937 generator(99);
        for (std::size_t i = 0; i < y.size(); ++i) {
            w.push_back(static_cast<double>(generator()) / 2147483648.0 - 1.0);
        }
    }
    view result() { return mp::row_major(y.data(), rows, columns); }
    const_view known() const { return mp::row_major(y.data(), rows, columns); }
    const_view gradient() const { return mp::row_major(w.data(), rows, columns); }
    double loss() const {
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += w[i] * y[i];
        return sum;
    }
};

template <class Loss, class... Operands>
void check(const std::string& what, Loss loss, Operands&... operands) {
    const std::vector<mp::checked_gradient> arrays{{operands.name, operands.x, operands.dx}...};
    const auto report = mp::check_gradients(loss, arrays);
    INFO(what << "\n" << to_string(report));
    CHECK(report.passed(1e-7));
    CHECK(report.norms_passed(2e-9));
}

TEST_CASE("activations") {
    operand x("x", 4, 5, 1);
    weights y(4, 5);
    for (const auto formula : {gelu_formula::exact, gelu_formula::tanh}) {
        gelu_backward(exec, x.in(), y.gradient(), x.out(), formula);
        check("gelu", [&] { return gelu(exec, x.in(), y.result(), formula), y.loss(); }, x);
    }
    silu_backward(exec, x.in(), y.gradient(), x.out());
    check("silu", [&] { return silu(exec, x.in(), y.result()), y.loss(); }, x);
    tanh(exec, x.in(), y.result());
    tanh_backward(exec, y.known(), y.gradient(), x.out());
    check("tanh", [&] { return mp::ops::tanh(exec, x.in(), y.result()), y.loss(); }, x);
    sigmoid(exec, x.in(), y.result());
    sigmoid_backward(exec, y.known(), y.gradient(), x.out());
    check("sigmoid", [&] { return sigmoid(exec, x.in(), y.result()), y.loss(); }, x);
    relu_backward(exec, x.in(), y.gradient(), x.out());
    check("relu", [&] { return relu(exec, x.in(), y.result()), y.loss(); }, x);
}

TEST_CASE("sums and products of elements, with matrices and with rows") {
    operand a("a", 4, 5, 1), b("b", 4, 5, 2), row("row", 1, 5, 3);
    weights y(4, 5);
    add_backward(exec, y.gradient(), a.out(), b.out());
    check("add", [&] { return add(exec, a.in(), b.in(), y.result()), y.loss(); }, a, b);
    multiply_backward(exec, a.in(), b.in(), y.gradient(), a.out(), b.out());
    check("multiply", [&] { return multiply(exec, a.in(), b.in(), y.result()), y.loss(); }, a, b);
    add_backward(exec, y.gradient(), a.out(), row.dx);
    check("add a row", [&] { return add(exec, a.in(), row.x, y.result()), y.loss(); }, a, row);
    multiply_backward(exec, a.in(), row.x, y.gradient(), a.out(), row.dx);
    check("multiply by a row", [&] { return multiply(exec, a.in(), row.x, y.result()), y.loss(); }, a, row);
}

TEST_CASE("products") {
    operand x("x", 4, 5, 1), w("w", 3, 5, 2), b("b", 1, 3, 3);
    weights y(4, 3);
    matmul(exec, y.gradient(), w.in(), x.out());
    matmul(exec, transposed(y.gradient()), x.in(), w.out());
    check("matmul", [&] { return matmul(exec, x.in(), transposed(w.in()), y.result()), y.loss(); }, x, w);

    for (const auto act :
         {activation::none, activation::relu, activation::gelu, activation::gelu_tanh, activation::silu}) {
        std::vector<double> before(12), slopes(12);
        linear(exec, x.in(), w.in(), b.x, mp::row_major(before.data(), 4, 3));
        const const_view z = mp::row_major(static_cast<const double*>(before.data()), 4, 3);
        const view dz = mp::row_major(slopes.data(), 4, 3);
        if (act == activation::none) slopes = y.w;
        if (act == activation::relu) relu_backward(exec, z, y.gradient(), dz);
        if (act == activation::gelu) gelu_backward(exec, z, y.gradient(), dz);
        if (act == activation::gelu_tanh) gelu_backward(exec, z, y.gradient(), dz, gelu_formula::tanh);
        if (act == activation::silu) silu_backward(exec, z, y.gradient(), dz);
        linear_backward(exec, x.in(), w.in(), dz, x.out(), w.out(), b.dx);
        check(
            "linear", [&] { return linear(exec, x.in(), w.in(), b.x, y.result(), act), y.loss(); }, x, w, b);
    }
    std::vector<double> h(20);
    const view active = mp::row_major(h.data(), 4, 5);
    silu(exec, x.in(), active);
    linear_backward_with_preactivation(exec, active, w.in(), y.gradient(), x.in(), x.out(), w.out(), b.dx,
                                       activation::silu);
    check(
        "linear of an activation",
        [&] {
            silu(exec, x.in(), active);
            return linear(exec, active, w.in(), b.x, y.result()), y.loss();
        },
        x, w, b);
    linear_backward(exec, x.in(), w.in(), y.gradient(), x.out(), w.out(), absent);
    check(
        "linear without bias", [&] { return linear(exec, x.in(), w.in(), absent, y.result()), y.loss(); }, x,
        w);
}

TEST_CASE("convolutions") {
    conv2d_geometry geometry{.channels = 2, .height = 5, .width = 4, .kernel = {3, 2}};
    for (int options = 0; options < 4; ++options) {
        if (options == 1) geometry.padding = {1, 1};
        if (options == 2) geometry.stride = {2, 1};
        if (options == 3) geometry.groups = 2, geometry.dilation = {1, 2};
        operand x("x", 2, geometry.image_size(), 1), w("w", 4, geometry.patch_size(), 2), b("b", 1, 4, 3);
        weights y(2, 4 * geometry.output_positions());
        conv2d_backward(exec, x.in(), w.in(), y.gradient(), x.out(), w.out(), b.dx, geometry);
        check(
            "conv2d", [&] { return conv2d(exec, x.in(), w.in(), b.x, y.result(), geometry), y.loss(); }, x, w,
            b);
        conv2d_backward(exec, x.in(), w.in(), y.gradient(), x.out(), w.out(), absent, geometry);
        check(
            "conv2d without bias",
            [&] { return conv2d(exec, x.in(), w.in(), absent, y.result(), geometry), y.loss(); }, x, w);
    }
}

TEST_CASE("pooling") {
    const pool2d_geometry geometry{
        .channels = 2, .height = 5, .width = 6, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
    operand x("x", 2, 60, 1);
    const auto size = geometry.output_size();
    weights y(2, 2 * size.height * size.width);
    max_pool2d_backward(exec, x.in(), y.gradient(), x.out(), geometry);
    check("max_pool2d", [&] { return max_pool2d(exec, x.in(), y.result(), geometry), y.loss(); }, x);
    for (const auto over : {average_over::whole_window, average_over::pixels_inside}) {
        average_pool2d_backward(exec, y.gradient(), x.out(), geometry, over);
        check(
            "average_pool2d",
            [&] { return average_pool2d(exec, x.in(), y.result(), geometry, over), y.loss(); }, x);
    }
}

TEST_CASE("softmax and its logarithm") {
    operand x("x", 4, 7, 1);
    weights y(4, 7);
    softmax(exec, x.in(), y.result());
    softmax_backward(exec, y.known(), y.gradient(), x.out());
    check("softmax", [&] { return softmax(exec, x.in(), y.result()), y.loss(); }, x);
    log_softmax(exec, x.in(), y.result());
    log_softmax_backward(exec, y.known(), y.gradient(), x.out());
    check("log_softmax", [&] { return log_softmax(exec, x.in(), y.result()), y.loss(); }, x);
}

TEST_CASE("norms, with and without parameters and saved statistics") {
    operand x("x", 11, 6, 1), gamma("gamma", 1, 6, 2), beta("beta", 1, 6, 3);
    weights y(11, 6);
    std::vector<basic_normalization_statistics<double>> of_rows(11);
    const normalization_options options{.epsilon = 0.01};
    for (const bool saved : {false, true}) {
        const std::span statistics(of_rows.data(), saved ? 11 : 0);
        layer_norm(exec, x.in(), gamma.x, beta.x, y.result(), options, statistics);
        layer_norm_backward(exec, x.in(), gamma.x, y.gradient(), x.out(), gamma.dx, beta.dx, options,
                            statistics);
        check(
            "layer_norm",
            [&] { return layer_norm(exec, x.in(), gamma.x, beta.x, y.result(), options), y.loss(); }, x,
            gamma, beta);
        rms_norm(exec, x.in(), gamma.x, y.result(), options, statistics);
        rms_norm_backward(exec, x.in(), gamma.x, y.gradient(), x.out(), gamma.dx, options, statistics);
        check(
            "rms_norm", [&] { return rms_norm(exec, x.in(), gamma.x, y.result(), options), y.loss(); }, x,
            gamma);
    }
    layer_norm_backward(exec, x.in(), absent, y.gradient(), x.out(), absent, absent);
    check(
        "layer_norm without parameters",
        [&] { return layer_norm(exec, x.in(), absent, absent, y.result()), y.loss(); }, x);
    rms_norm_backward(exec, x.in(), absent, y.gradient(), x.out(), absent);
    check(
        "rms_norm without parameters", [&] { return rms_norm(exec, x.in(), absent, y.result()), y.loss(); },
        x);
}

TEST_CASE("losses") {
    operand x("x", 4, 5, 1), t("t", 4, 5, 2);
    const std::vector<int> labels{3, 0, 4, 1};
    for (const cross_entropy_options& options :
         {cross_entropy_options{}, cross_entropy_options{.ignore_index = 4},
          cross_entropy_options{.label_smoothing = 0.1F},
          cross_entropy_options{.ignore_index = 0, .label_smoothing = 0.25F}}) {
        const loss_factors factors{.weight = 0.7F};
        const auto loss = [&] { return softmax_cross_entropy(exec, x.in(), labels, factors, options); };
        softmax_cross_entropy_backward(exec, x.in(), labels, x.out(), factors, options);
        check("softmax_cross_entropy", loss, x);
        const std::vector<double> apart = x.dx;
        std::vector<double> rows(4);
        double both = 0;
        softmax_cross_entropy_with_gradient(exec, x.in(), labels, &both, rows, x.out(), factors, options);
        CHECK(x.dx == apart);
        CHECK(both == loss());
        softmax_cross_entropy_backward(exec, x.in(), labels, x.out(), {.weight = 0.7F, .scale = 8}, options);
        for (std::size_t i = 0; i < apart.size(); ++i) CHECK(x.dx[i] == doctest::Approx(8 * apart[i]));
    }
    mean_squared_error_backward(exec, x.in(), t.in(), x.out(), {.weight = 0.3F});
    check(
        "mean_squared_error", [&] { return mean_squared_error(exec, x.in(), t.in(), {.weight = 0.3F}); }, x);
    mean_absolute_error_backward(exec, x.in(), t.in(), x.out(), {.weight = 0.3F});
    check(
        "mean_absolute_error", [&] { return mean_absolute_error(exec, x.in(), t.in(), {.weight = 0.3F}); },
        x);
}

TEST_CASE("rows of a table") {
    operand table("table", 5, 3, 1);
    weights y(6, 3);
    const std::vector<int> indices{2, 0, 2, 4, 1, 2};
    embedding_backward(exec, indices, y.gradient(), table.out());
    check("embedding", [&] { return embedding(exec, table.in(), indices, y.result()), y.loss(); }, table);
    embedding_backward(exec, indices, y.gradient(), table.out(), {.padding_index = 2});
    CHECK(std::all_of(table.dx.begin() + 6, table.dx.begin() + 9, [](double x) { return x == 0.0; }));
}

TEST_CASE("dropout") {
    operand x("x", 6, 7, 1);
    weights y(6, 7);
    const dropout_options options{.probability = 0.3F, .seed = 5, .offset = 3};
    dropout_backward(exec, y.gradient(), x.out(), options);
    check("dropout", [&] { return dropout(exec, x.in(), y.result(), options), y.loss(); }, x);
}

TEST_CASE("attention") {
    // batch 2, 4 heads (2 of keys), 3 queries, 5 keys, head_dim 2, width of values 3
    for (const auto layout : {head_layout::stacked, head_layout::side_by_side}) {
        const bool stacked = layout == head_layout::stacked;
        for (int option = 0; option < 6; ++option) {
            for (const bool saved : {false, true}) {
                attention_options options{
                    .heads = stacked ? 8 : 4, .layout = layout, .batch = stacked ? 1 : 2};
                if (option == 1) options.causal = true;
                if (option == 2) options.causal = true, options.alignment = causal_alignment::last_key;
                if (option == 3) options.scale = 0.3F;
                if (option == 4) options.key_heads = stacked ? 4 : 2;
                if (option == 5) options.dropout = {.probability = 0.25F, .seed = 3, .offset = 17};
                const std::ptrdiff_t key_heads = option == 4 ? 2 : 4;
                const auto shaped = [&](const char* name, std::ptrdiff_t heads, std::ptrdiff_t tokens,
                                        std::ptrdiff_t width, unsigned seed) {
                    return stacked ? operand(name, 2 * heads * tokens, width, seed)
                                   : operand(name, 2 * tokens, heads * width, seed);
                };
                operand q = shaped("q", 4, 3, 2, 1), k = shaped("k", key_heads, 5, 2, 2),
                        v = shaped("v", key_heads, 5, 3, 3), mask("mask", 3, 5, 4);
                const operand like_y = shaped("y", 4, 3, 3, 5);
                weights y(like_y.rows, like_y.columns);
                std::vector<basic_softmax_statistics<double>> statistics(saved ? 24 : 0);
                const auto both = [&](const auto& m) {
                    scaled_dot_product_attention(exec, q.in(), k.in(), v.in(), m, y.result(), options,
                                                 statistics);
                    scaled_dot_product_attention_backward(exec, q.in(), k.in(), v.in(), m, y.gradient(),
                                                          q.out(), k.out(), v.out(), options, statistics);
                    check(
                        "attention " + std::to_string(option),
                        [&] {
                            scaled_dot_product_attention(exec, q.in(), k.in(), v.in(), m, y.result(),
                                                         options);
                            return y.loss();
                        },
                        q, k, v);
                };
                both(absent);
                both(mask.in());
            }
        }
    }
}

TEST_CASE("rotary embedding") {
    for (const auto layout : {head_layout::stacked, head_layout::side_by_side}) {
        for (const auto pairing : {rotary_pairing::half_split, rotary_pairing::interleaved}) {
            const bool stacked = layout == head_layout::stacked;
            const rotary_options options{.heads = 2,
                                         .layout = layout,
                                         .batch = stacked ? 1 : 2,
                                         .pairing = pairing,
                                         .rotated = 4,
                                         .base = 100,
                                         .first_position = 7};
            operand x("x", 6, stacked ? 6 : 12, 1);
            weights y(x.rows, x.columns);
            const auto loss = [&] { return rotary_embedding(exec, x.in(), y.result(), options), y.loss(); };
            rotary_embedding_backward(exec, y.gradient(), x.out(), options);
            check("rotary_embedding", loss, x);
            const std::vector<double> apart = x.dx;
            const basic_rotary_table<double> table(exec, 20, 6, options);
            rotary_embedding_backward(exec, y.gradient(), table, x.out(), options);
            CHECK(x.dx == apart);
        }
    }
}

TEST_CASE("rearrangements") {
    operand a("a", 4, 3, 1), b("b", 4, 2, 2), x("x", 6, 8, 3);
    weights y(4, 5), heads(24, 2);
    split(exec, parts_along::columns, y.gradient(), std::tuple(a.out(), b.out()));
    check(
        "concatenate",
        [&] {
            concatenate(exec, parts_along::columns, std::tuple(a.in(), b.in()), y.result());
            return y.loss();
        },
        a, b);
    permute_heads(exec, heads.gradient(), x.out(), {.heads = 4, .batch = 2, .from = head_layout::stacked});
    check(
        "permute_heads",
        [&] { return permute_heads(exec, x.in(), heads.result(), {.heads = 4, .batch = 2}), heads.loss(); },
        x);
}

TEST_CASE("sums and means") {
    operand x("x", 4, 5, 1);
    sum_backward(exec, 0.3, x.out());
    check("sum", [&] { return 0.3 * sum(exec, x.in()); }, x);
    mean_backward(exec, 0.3, x.out());
    check("mean", [&] { return 0.3 * mean(exec, x.in()); }, x);
    for (const auto axis : {per::row, per::column}) {
        weights y(1, axis == per::row ? 4 : 5);
        sum_backward(exec, y.w, x.out(), axis);
        check("sum", [&] { return sum(exec, x.in(), y.y, axis), y.loss(); }, x);
        mean_backward(exec, y.w, x.out(), axis);
        check("mean", [&] { return mean(exec, x.in(), y.y, axis), y.loss(); }, x);
    }
}

}  // namespace
