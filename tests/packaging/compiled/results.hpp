// SPDX-License-Identifier: MIT
// Results that sources with and without the compiled part must agree on.
#pragma once

#include <mp/autocast.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/ops.hpp>
#include <mp/optim.hpp>
#include <mp/training.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// A format that the library does not know.
struct narrow_format {
    static constexpr const char* name = "narrow";
    static constexpr int exponent_bits = 6;
    static constexpr int fraction_bits = 7;
    static constexpr int bias = 31;
    static constexpr bool is_signed = true;
    static constexpr bool has_infinity = true;
    static constexpr auto nans = mp::nan_encoding::ieee;
};

// Everything is static: each source has its own, whatever it is compiled with.

struct digest {
    std::uint64_t value = 14695981039346656037U;

    template <class Value>
    void add(const std::vector<Value>& values) {
        for (const Value& x : values) {
            std::uint64_t bits = 0;
            std::memcpy(&bits, &x, sizeof x);
            value = (value ^ bits) * 1099511628211U;
        }
    }
};

constexpr std::ptrdiff_t side = 24;

template <class Value>
static std::vector<Value> numbers(unsigned seed) {
    std::vector<float> floats(static_cast<std::size_t>(side * side));
    for (float& x : floats) {
        seed = seed * 1664525U + 1013904223U;
        x = static_cast<float>(static_cast<int>(seed >> 20) - 2048) / 512.0F;
    }
    std::vector<Value> values(floats.size());
    mp::convert(mp::cpu{}, std::span<const float>(floats), std::span<Value>(values));
    return values;
}

template <class A, class B, class C>
static void multiply(digest& sum) {
    const std::vector<A> a = numbers<A>(1);
    const std::vector<B> b = numbers<B>(2);
    std::vector<C> c = numbers<C>(3);
    const auto bias = numbers<float>(4);
    const std::span<const float> first_row = std::span(bias).first(static_cast<std::size_t>(side));
    // In order, which is the same on all processors.
    const mp::cpu exec{.products = mp::accumulation::ordered};
    const auto view = mp::row_major(c.data(), side, side);
    mp::gemm(exec, 1.0F, mp::row_major(a.data(), side, side), mp::column_major(b.data(), side, side), 0.5F,
             view, mp::compose(mp::bias_per_column(first_row), mp::gelu_epilogue{}));
    mp::gemm(
        exec, 2.0F, mp::row_major(a.data(), side, side),
        mp::packed_b(exec, mp::row_major(b.data(), side, side)), 1.0F, view,
        [](float value, std::ptrdiff_t row, std::ptrdiff_t /*column*/) { return row == 3 ? -value : value; });
    sum.add(c);
}

template <class X, class Y>
static void run_layer(digest& sum, mp::precision precision) {
    const mp::autocast_region region(precision);
    const std::vector<X> x = numbers<X>(5);
    const std::vector<float> w = numbers<float>(6);
    std::vector<Y> y = numbers<Y>(7);
    std::vector<float> dw = numbers<float>(8);
    const mp::cpu exec{.products = mp::accumulation::ordered};
    const auto input = mp::row_major(x.data(), side, side);
    const auto weights = mp::row_major(w.data(), side, side);
    const auto output = mp::row_major(y.data(), side, side);
    mp::ops::linear(exec, input, weights, mp::ops::absent, output, mp::ops::activation::silu);
    mp::ops::relu(exec, output, output);
    mp::ops::linear_backward(exec, input, weights, output, mp::ops::absent,
                             mp::ops::add_to(mp::row_major(dw.data(), side, side)), mp::ops::absent);
    sum.add(y);
    sum.add(dw);
}

/// What an error says.
static std::string message_of_an_error() {
    std::vector<float> values(6);
    try {
        mp::gemm(mp::cpu{}, 1.0F, mp::row_major(values.data(), 2, 3), mp::row_major(values.data(), 2, 3),
                 0.0F, mp::row_major(values.data(), 2, 3));
    } catch (const mp::argument_error& error) {
        return error.what();
    }
    return "no error";
}

/// Makes objects of the classes that the compiled part has, moves and destroys them.
static void train(digest& sum) {
    mp::autocast::cast_ledger ledger;
    mp::tensor<float> made(1, side);
    const mp::tensor<float> moved = std::move(made);
    sum.add(std::vector<float>(moved.values().begin(), moved.values().end()));
    std::vector<float> weights = numbers<float>(5);
    std::vector<float> gradients(weights.size());
    mp::adamw<float> optimizer({{"weights", weights, gradients}});
    mp::dynamic_loss_scaler scaler;
    {
        const mp::autocast_region region({.cpu = mp::precision::bf16, .ledger = &ledger});
        for (int i = 0; i < 3; ++i) {
            for (float& g : gradients) g = scaler.scale(i == 1 ? 1e38F : 0.5F);
            const std::string what = to_string(scaler.step(optimizer));
            sum.add(std::vector<char>(what.begin(), what.end()));
            scaler.update();
        }
    }
    sum.add(weights);
    sum.add(std::vector<std::size_t>{ledger.ops().size()});
}

static std::uint64_t results() {
    digest sum;
    multiply<float, float, float>(sum);
    multiply<mp::half, float, mp::bfloat16>(sum);
    multiply<mp::float8_e4m3fn, mp::bfloat16, double>(sum);
    multiply<mp::basic_float<narrow_format>, mp::half, mp::basic_float<narrow_format>>(sum);
    run_layer<float, float>(sum, mp::precision::bf16);
    run_layer<mp::half, float>(sum, mp::precision::fp8);
    run_layer<mp::bfloat16, mp::half>(sum, mp::precision::off);
    train(sum);
    const std::string message = message_of_an_error();
    sum.add(std::vector<char>(message.begin(), message.end()));
    return sum.value;
}
