// SPDX-License-Identifier: MIT
/// \file
/// Checksums of what every op computes, forward and backward: of values, in a fixed order of bytes, so that
/// they are the same on every machine, under every flag of the compiler and in every mode of the processor.
///
/// The inputs are made by integers alone. Products are accumulated in order, since otherwise the bits of
/// their sums are a matter of the instruction set. No test framework is needed here.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/ops.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace portability {

struct named_checksum {
    std::string name;
    std::uint64_t value;
};

/// FNV-1a of numbers, the lowest byte first; all NaNs are one.
class value_hash {
public:
    void add(std::uint64_t bits, int bytes) {
        for (int i = 0; i < bytes; ++i) value_ = (value_ ^ ((bits >> (8 * i)) & 0xFFU)) * 0x100000001b3U;
    }
    void add(float x) {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        add((bits & 0x7FFF'FFFFU) > 0x7F80'0000U ? 0x7FC0'0000U : bits, 4);
    }
    void add(double x) {
        const auto bits = std::bit_cast<std::uint64_t>(x);
        constexpr std::uint64_t infinity = std::uint64_t{0x7FF} << 52;
        add((bits & ~(std::uint64_t{1} << 63)) > infinity ? infinity + 1 : bits, 8);
    }
    template <std::integral Value>
    void add(Value x) {
        add(static_cast<std::uint64_t>(x), 8);
    }
    template <class Value>
        requires requires(Value x) { x.bits(); }
    void add(Value x) {
        add(mp::isnan(x) ? 0xFFFFU : std::uint64_t{x.bits()}, 2);
    }
    template <class Real>
    void add(const mp::ops::basic_softmax_statistics<Real>& row) {
        add(row.max);
        add(row.others);
    }
    template <class Real>
    void add(const mp::ops::basic_normalization_statistics<Real>& row) {
        for (const Real x : {row.center, row.center_tail, row.inverse, row.factor}) add(x);
    }
    template <class Value>
    void add(const std::vector<Value>& values) {
        for (const Value& x : values) add(x);
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 0xcbf29ce484222325U;
};

/// Numbers with eight bits and exponents from `lowest` on; every number of `tiny_every` is far smaller, a
/// subnormal one of its format.
class number_source {
public:
    template <class T>
    std::vector<T> take(std::size_t count, int lowest = -5, int exponents = 7, unsigned tiny_every = 11) {
        std::vector<T> result(count);
        for (T& x : result) {
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
            const auto word = static_cast<std::uint32_t>(state_ >> 33);
            const bool tiny = tiny_every != 0 && (word >> 8) % tiny_every == 0;
            x = make<T>(word, lowest + static_cast<int>((word >> 12) % static_cast<unsigned>(exponents)),
                        tiny);
        }
        return result;
    }
    std::vector<int> take_indices(std::size_t count, unsigned end) {
        std::vector<int> result(count);
        for (int& x : result) {
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
            x = static_cast<int>((state_ >> 33) % end);
        }
        return result;
    }

private:
    template <class T>
    static T make(std::uint32_t word, int exponent, bool tiny) {
        const std::uint32_t sign = word & 1U;
        const std::uint32_t fraction = (word >> 1) & 0x7FU;
        if constexpr (std::same_as<T, float>) {
            const std::uint32_t biased = tiny ? 0U : static_cast<std::uint32_t>(exponent + 127);
            return std::bit_cast<float>(sign << 31 | biased << 23 | fraction << 16);
        } else if constexpr (std::same_as<T, double>) {
            // All bits, since products of a few would be exact; and not subnormal, as x87 rounds those twice.
            const auto biased = static_cast<std::uint64_t>((tiny ? -140 : exponent) + 1023);
            return std::bit_cast<double>(std::uint64_t{sign} << 63 | biased << 52 |
                                         (std::uint64_t{word} * 0x9E3779B97F4A7C15U) >> 12);
        } else if constexpr (std::same_as<T, mp::bfloat16>) {
            const std::uint32_t biased = tiny ? 0U : static_cast<std::uint32_t>(exponent + 127);
            return T::from_bits(static_cast<std::uint16_t>(sign << 15 | biased << 7 | fraction));
        } else {
            const std::uint32_t biased = tiny ? 0U : static_cast<std::uint32_t>(exponent + 15);
            return T::from_bits(static_cast<std::uint16_t>(sign << 15 | biased << 10 | fraction << 3));
        }
    }

    std::uint64_t state_ = 12345;
};

/// The ops on one element type.
template <class T>
class op_checksums {
public:
    explicit op_checksums(std::string type) : type_(std::move(type)) {}

    std::vector<named_checksum> run() {
        elementwise();
        rows();
        losses();
        sums();
        images();
        products();
        attention();
        rearrangements();
        return std::move(found_);
    }

private:
    using policy = mp::autocast::off;
    using real = std::conditional_t<std::same_as<T, double>, double, float>;  // of losses and statistics
    static constexpr std::ptrdiff_t height = 7;
    static constexpr std::ptrdiff_t width = 37;
    static constexpr std::size_t size = static_cast<std::size_t>(height * width);
    static constexpr mp::cpu exec{.threads = 1, .products = mp::accumulation::ordered};

    template <class Value>
    static auto matrix(std::vector<Value>& values, std::ptrdiff_t rows = height) {
        return mp::row_major(values.data(), rows, static_cast<std::ptrdiff_t>(values.size()) / rows);
    }
    template <class... Values>
    void keep(const char* name, const Values&... values) {
        value_hash hash;
        (hash.add(values), ...);
        found_.push_back({std::string(name) + "/" + type_, hash.value()});
    }

    void elementwise() {
        auto x = source_.take<T>(size), dy = source_.take<T>(size), b = source_.take<T>(size);
        auto row = source_.take<T>(static_cast<std::size_t>(width));
        std::vector<T> y(size), dx(size), drow(row.size());
        const auto activation = [&](const char* name, auto forward, auto backward) {
            forward(matrix(x), matrix(y));
            backward(matrix(x), matrix(dy), matrix(dx));
            keep(name, y, dx);
        };
        namespace ops = mp::ops;
        for (const auto formula : {ops::gelu_formula::exact, ops::gelu_formula::tanh}) {
            activation(
                formula == ops::gelu_formula::exact ? "gelu" : "gelu_tanh",
                [&](auto from, auto to) { ops::gelu<policy>(exec, from, to, formula); },
                [&](auto from, auto g, auto to) { ops::gelu_backward<policy>(exec, from, g, to, formula); });
        }
        activation(
            "silu", [](auto from, auto to) { ops::silu<policy>(exec, from, to); },
            [](auto from, auto g, auto to) { ops::silu_backward<policy>(exec, from, g, to); });
        activation(
            "tanh", [](auto from, auto to) { ops::tanh<policy>(exec, from, to); },
            [](auto from, auto g, auto to) { ops::tanh_backward<policy>(exec, from, g, to); });
        activation(
            "sigmoid", [](auto from, auto to) { ops::sigmoid<policy>(exec, from, to); },
            [](auto from, auto g, auto to) { ops::sigmoid_backward<policy>(exec, from, g, to); });
        activation(
            "relu", [](auto from, auto to) { ops::relu<policy>(exec, from, to); },
            [](auto from, auto g, auto to) { ops::relu_backward<policy>(exec, from, g, to); });
        ops::add<policy>(exec, matrix(x), matrix(b), matrix(y));
        ops::add_backward<policy>(exec, matrix(dy), matrix(dx), drow);
        keep("add", y, dx, drow);
        ops::multiply<policy>(exec, matrix(x), row, matrix(y));
        ops::multiply_backward<policy>(exec, matrix(x), row, matrix(dy), matrix(dx), drow);
        keep("multiply", y, dx, drow);
        const ops::dropout_options dropped{.probability = 0.3F, .seed = 7};
        ops::dropout<policy>(exec, matrix(x), matrix(y), dropped);
        ops::dropout_backward<policy>(exec, matrix(dy), matrix(dx), dropped);
        keep("dropout", y, dx);
    }

    void rows() {
        auto x = source_.take<T>(size), dy = source_.take<T>(size);
        auto gamma = source_.take<T>(static_cast<std::size_t>(width)), beta = gamma;
        std::vector<T> y(size), dx(size), dgamma(gamma.size()), dbeta(gamma.size());
        namespace ops = mp::ops;
        ops::softmax<policy>(exec, matrix(x), matrix(y));
        ops::softmax_backward<policy>(exec, matrix(y), matrix(dy), matrix(dx));
        keep("softmax", y, dx);
        ops::log_softmax<policy>(exec, matrix(x), matrix(y));
        ops::log_softmax_backward<policy>(exec, matrix(y), matrix(dy), matrix(dx));
        keep("log_softmax", y, dx);
        std::vector<ops::basic_normalization_statistics<real>> statistics(static_cast<std::size_t>(height));
        ops::layer_norm<policy>(exec, matrix(x), gamma, beta, matrix(y), {}, statistics);
        ops::layer_norm_backward<policy>(exec, matrix(x), gamma, matrix(dy), matrix(dx), dgamma, dbeta);
        keep("layer_norm", y, statistics, dx, dgamma, dbeta);
        ops::rms_norm<policy>(exec, matrix(x), gamma, matrix(y), {}, statistics);
        ops::rms_norm_backward<policy>(exec, matrix(x), gamma, matrix(dy), matrix(dx), dgamma, {},
                                       statistics);
        keep("rms_norm", y, statistics, dx, dgamma);
        std::vector<int> columns(static_cast<std::size_t>(height));
        ops::argmax(exec, matrix(x), columns);
        keep("argmax", columns);
    }

    void losses() {
        auto x = source_.take<T>(size), target = source_.take<T>(size);
        const auto labels = source_.take_indices(static_cast<std::size_t>(height), unsigned{width});
        std::vector<T> dx(size);
        namespace ops = mp::ops;
        const ops::loss_factors factors{.weight = 0.7F, .scale = 1024.0F};
        real loss = ops::softmax_cross_entropy<policy>(exec, matrix(x), labels, factors);
        ops::softmax_cross_entropy_backward<policy>(exec, matrix(x), labels, matrix(dx), factors);
        keep("softmax_cross_entropy", loss, dx, ops::accuracy(exec, matrix(x), labels));
        const ops::cross_entropy_options options{.ignore_index = labels.front(), .label_smoothing = 0.1F};
        loss = ops::softmax_cross_entropy_with_gradient<policy>(exec, matrix(x), labels, matrix(dx), factors,
                                                                options);
        keep("softmax_cross_entropy_with_gradient", loss, dx);
        loss = ops::mean_squared_error<policy>(exec, matrix(x), matrix(target), factors);
        ops::mean_squared_error_backward<policy>(exec, matrix(x), matrix(target), matrix(dx), factors);
        keep("mean_squared_error", loss, dx);
        loss = ops::mean_absolute_error<policy>(exec, matrix(x), matrix(target), factors);
        ops::mean_absolute_error_backward<policy>(exec, matrix(x), matrix(target), matrix(dx), factors);
        keep("mean_absolute_error", loss, dx);
    }

    void sums() {
        auto x = source_.take<T>(size);
        std::vector<T> row(static_cast<std::size_t>(width)), dx(size);
        namespace ops = mp::ops;
        const real sum = ops::sum<policy>(exec, matrix(x));
        ops::sum<policy>(exec, matrix(x), row, ops::per::column);
        ops::sum_backward<policy>(exec, row, matrix(dx), ops::per::column);
        keep("sum", sum, row, dx);
        const real mean = ops::mean<policy>(exec, matrix(x));
        ops::mean<policy>(exec, matrix(x), row, ops::per::column);
        ops::mean_backward<policy>(exec, row, matrix(dx), ops::per::column);
        keep("mean", mean, row, dx);
        const auto indices = source_.take_indices(static_cast<std::size_t>(height), 3);
        auto table = source_.take<T>(static_cast<std::size_t>(3 * width));
        auto dtable = table;
        ops::embedding<policy>(exec, matrix(table, 3), indices, matrix(dx));
        ops::embedding_backward<policy>(exec, indices, matrix(x), matrix(dtable, 3));
        keep("embedding", dx, dtable);
    }

    void images() {
        namespace ops = mp::ops;
        const ops::pool2d_geometry windows{
            .channels = 2, .height = 6, .width = 7, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
        const std::size_t cells = 3 * 2 * 6 * 7;
        const std::size_t places = 3 * 2 * 3 * 4;
        auto x = source_.take<T>(cells), dy = source_.take<T>(places);
        std::vector<T> y(places), dx(cells);
        ops::max_pool2d<policy>(exec, matrix(x, 3), matrix(y, 3), windows);
        ops::max_pool2d_backward<policy>(exec, matrix(x, 3), matrix(dy, 3), matrix(dx, 3), windows);
        keep("max_pool2d", y, dx);
        const auto over = ops::average_over::pixels_inside;
        ops::average_pool2d<policy>(exec, matrix(x, 3), matrix(y, 3), windows, over);
        ops::average_pool2d_backward<policy>(exec, matrix(dy, 3), matrix(dx, 3), windows, over);
        keep("average_pool2d", y, dx);
        const ops::conv2d_geometry convolution{
            .channels = 2, .height = 6, .width = 7, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
        auto w = source_.take<T>(4 * 18), b = source_.take<T>(4);
        auto dw = w, db = b;
        dy = source_.take<T>(3 * 4 * 3 * 4);
        y.resize(dy.size());
        ops::conv2d<policy>(exec, matrix(x, 3), matrix(w, 4), b, matrix(y, 3), convolution);
        ops::conv2d_backward<policy>(exec, matrix(x, 3), matrix(w, 4), matrix(dy, 3), matrix(dx, 3),
                                     matrix(dw, 4), db, convolution);
        keep("conv2d", y, dx, dw, db);
    }

    void products() {
        namespace ops = mp::ops;
        auto x = source_.take<T>(size), w = source_.take<T>(static_cast<std::size_t>(5 * width));
        auto b = source_.take<T>(5), dy = source_.take<T>(static_cast<std::size_t>(height * 5));
        auto y = dy, dx = x, dw = w, db = b;
        ops::matmul<policy>(exec, matrix(x), mp::transposed(matrix(w, 5)), matrix(y));
        keep("matmul", y);
        ops::linear<policy>(exec, matrix(x), matrix(w, 5), b, matrix(y), ops::activation::gelu);
        ops::linear_backward<policy>(exec, matrix(x), matrix(w, 5), matrix(dy), matrix(dx), matrix(dw, 5),
                                     db);
        keep("linear", y, dx, dw, db);
        auto z = dy;
        ops::linear_with_preactivation<policy>(exec, matrix(x), matrix(w, 5), b, matrix(z), matrix(y),
                                               ops::activation::silu);
        keep("linear_with_preactivation", z, y);
        ops::linear_backward_with_preactivation<policy>(exec, matrix(x), matrix(w, 5), matrix(dy), matrix(x),
                                                        matrix(dx), matrix(dw, 5), db,
                                                        ops::activation::gelu_tanh);
        keep("linear_backward_with_preactivation", dx, dw, db);

        constexpr std::ptrdiff_t queries = 2 * 9, keys = 2 * 11;
        auto q = source_.take<T>(queries * 8, -3, 5), k = source_.take<T>(keys * 8, -3, 5);
        auto v = source_.take<T>(keys * 4), g = source_.take<T>(queries * 4);
        auto mask = source_.take<T>(9 * 11);
        auto out = g, dq = q, dk = k, dv = v;
        const ops::attention_options heads{.heads = 2, .causal = true};
        std::vector<ops::basic_softmax_statistics<real>> statistics(queries);
        ops::scaled_dot_product_attention<policy>(exec, matrix(q, queries), matrix(k, keys), matrix(v, keys),
                                                  matrix(mask, 9), matrix(out, queries), heads, statistics);
        value_hash hash;
        for (const bool saved : {true, false}) {
            if (!saved) statistics.clear();
            ops::scaled_dot_product_attention_backward<policy>(
                exec, matrix(q, queries), matrix(k, keys), matrix(v, keys), matrix(mask, 9),
                matrix(g, queries), matrix(dq, queries), matrix(dk, keys), matrix(dv, keys), heads,
                statistics);
            hash.add(statistics);
            hash.add(dq);
            hash.add(dk);
            hash.add(dv);
        }
        keep("scaled_dot_product_attention", out, hash.value());
    }

    /// Attention with these options, and with these sizes of queries, keys and values.
    void attend(const char* name, const mp::ops::attention_options& options, std::ptrdiff_t queries,
                std::ptrdiff_t keys, std::ptrdiff_t query_columns, std::ptrdiff_t key_columns,
                std::ptrdiff_t value_columns, std::ptrdiff_t result_columns) {
        namespace ops = mp::ops;
        const auto take = [&](std::ptrdiff_t rows, std::ptrdiff_t columns) {
            return source_.take<T>(static_cast<std::size_t>(rows * columns), -3, 5);
        };
        auto q = take(queries, query_columns), k = take(keys, key_columns), v = take(keys, value_columns);
        auto g = take(queries, result_columns), out = g, dq = q, dk = k, dv = v;
        ops::scaled_dot_product_attention<policy>(exec, matrix(q, queries), matrix(k, keys), matrix(v, keys),
                                                  ops::absent, matrix(out, queries), options);
        ops::scaled_dot_product_attention_backward<policy>(
            exec, matrix(q, queries), matrix(k, keys), matrix(v, keys), ops::absent, matrix(g, queries),
            matrix(dq, queries), matrix(dk, keys), matrix(dv, keys), options);
        keep(name, out, dq, dk, dv);
    }

    void attention() {
        using options = mp::ops::attention_options;
        using mp::ops::causal_alignment, mp::ops::head_layout;
        // Two sequences of 5 queries and 7 keys, 4 heads of 8 columns, values of 4.
        attend("attention_side_by_side",
               options{.heads = 4, .causal = true, .layout = head_layout::side_by_side, .batch = 2}, 10, 14,
               32, 32, 16, 16);
        attend("attention_side_by_side_key_heads",
               options{.heads = 4, .layout = head_layout::side_by_side, .batch = 2, .key_heads = 2}, 10, 14,
               32, 16, 8, 16);
        attend("attention_key_heads", options{.heads = 4, .key_heads = 2}, 20, 14, 8, 8, 4, 4);
        attend("attention_last_key",
               options{.heads = 2, .causal = true, .alignment = causal_alignment::last_key}, 10, 14, 8, 8, 4,
               4);
        attend("attention_dropout",
               options{.heads = 2, .dropout = {.probability = 0.3F, .seed = 7, .offset = 5}}, 10, 14, 8, 8, 4,
               4);
    }

    void rearrangements() {
        namespace ops = mp::ops;
        auto x = source_.take<T>(size), dy = x;
        std::vector<T> y(2 * size), dx(size);
        for (const auto along : {ops::parts_along::rows, ops::parts_along::columns}) {
            const bool rows = along == ops::parts_along::rows;
            const auto whole = matrix(y, rows ? 2 * height : height);
            ops::concatenate<policy>(exec, along, std::tuple(matrix(x), matrix(dy)), whole);
            ops::split<policy>(exec, along, whole, std::tuple(ops::add_to(matrix(dx)), matrix(dy)));
            keep(rows ? "concatenate_rows" : "concatenate_columns", y, dx, dy);
        }
        // Two sequences of 5 tokens, 3 heads of 8 elements, of which 6 are turned.
        constexpr std::ptrdiff_t tokens = 2 * 5;
        x = source_.take<T>(tokens * 3 * 8);
        dy = source_.take<T>(x.size());
        y = x;
        dx = x;
        const ops::permute_heads_options heads{.heads = 3, .batch = 2};
        ops::permute_heads<policy>(exec, matrix(x, tokens), matrix(y, 3 * tokens), heads);
        ops::permute_heads_backward<policy>(exec, matrix(y, 3 * tokens), ops::add_to(matrix(dx, tokens)),
                                            heads);
        keep("permute_heads", y, dx);
        for (const auto pairing : {ops::rotary_pairing::half_split, ops::rotary_pairing::interleaved}) {
            const ops::rotary_options turned{.heads = 3,
                                             .layout = ops::head_layout::side_by_side,
                                             .batch = 2,
                                             .pairing = pairing,
                                             .rotated = 6,
                                             .first_position = 1000};
            ops::rotary_embedding<policy>(exec, matrix(x, tokens), matrix(y, tokens), turned);
            ops::rotary_embedding_backward<policy>(exec, matrix(dy, tokens), matrix(dx, tokens), turned);
            keep(pairing == ops::rotary_pairing::half_split ? "rotary_half_split" : "rotary_interleaved", y,
                 dx);
        }
    }

    std::string type_;
    number_source source_;
    std::vector<named_checksum> found_;
};

/// A checksum for every op and each of four element types. In the modes of the calling thread.
inline std::vector<named_checksum> ops_checksums() {
    std::vector<named_checksum> all = op_checksums<float>("float").run();
    for (named_checksum& it : op_checksums<double>("double").run()) all.push_back(std::move(it));
    for (named_checksum& it : op_checksums<mp::half>("half").run()) all.push_back(std::move(it));
    for (named_checksum& it : op_checksums<mp::bfloat16>("bfloat16").run()) all.push_back(std::move(it));
    return all;
}

}  // namespace portability
