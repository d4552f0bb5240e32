// SPDX-License-Identifier: MIT
#pragma once

#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/gemm.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/math.hpp>

#include <charconv>
#include <cstdint>

// Static functions: each source has its own. No containers: those of the standard library have one copy, too,
// and it is not ours to give them more.

struct hash {
    std::uint64_t value = 14695981039346656037U;

    void add(std::uint64_t bits) { value = (value ^ bits) * 1099511628211U; }
};

template <class Value>
static void use_numbers(hash& sum) {
    Value x(0.375F);
    for (int i = 0; i < 100; ++i) {
        x = mp::fma(x, Value(1.5F), Value(-0.125F)) / mp::sqrt(x * x + Value(0.5F)) - Value(i & 3);
        sum.add(x.bits());
        sum.add(mp::exp(x).bits());
        sum.add(mp::tanh(x).bits());
        char text[64] = {};
        const auto [end, error] = mp::to_chars(text, text + sizeof text, x);
        Value back{};
        mp::from_chars(text, end, back);
        sum.add(back.bits());
        sum.add(mp::round_to<Value>(static_cast<double>(i) * 0.7, {.round = mp::rounding::upward}).bits());
    }
}

template <class Value>
static void use_arrays(hash& sum) {
    constexpr std::size_t count = 256;
    static float values[count];
    static float sums[count];
    static Value narrow[count];
    static Value other[count];
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 37) * 0.13F - 2.0F;
    const mp::cpu exec{};
    mp::convert(exec, values, narrow);
    mp::multiply(exec, narrow, narrow, other);
    mp::add(exec, narrow, other, other);
    mp::exp(exec, narrow, narrow);
    for (const Value x : narrow) sum.add(x.bits());
    for (const Value x : other) sum.add(x.bits());
    const mp::cpu ordered{.products = mp::accumulation::ordered};
    mp::gemm(ordered, 1.0F, mp::row_major(narrow, 16, 16), mp::row_major(other, 16, 16), 0.0F,
             mp::row_major(sums, 16, 16));
    for (const float x : sums) sum.add(static_cast<std::uint64_t>(x * 64.0F));
}

static std::uint64_t results() {
    hash sum;
    use_numbers<mp::half>(sum);
    use_numbers<mp::bfloat16>(sum);
    use_numbers<mp::float8_e4m3fn>(sum);
    use_arrays<mp::half>(sum);
    use_arrays<mp::bfloat16>(sum);
    mp::dynamic_loss_scaler scaler({.initial_scale = 1024.0F});
    sum.add(static_cast<std::uint64_t>(scaler.current_scale()));
    return sum.value;
}
