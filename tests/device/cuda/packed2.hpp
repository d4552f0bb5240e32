// SPDX-License-Identifier: MIT
/// \file
/// The same operations on pairs of numbers on the host and on the device, to compare bits.
#pragma once

#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/stream.hpp>

#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/packed2.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace packed2_test {

struct operands {
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t c;
    float x;
    float y;
};

constexpr std::array names{
    "a + b",         "a - b",          "a * b",       "a * b + c",       "a / b",          "fma(a, b, c)",
    "sqrt(a)",       "minimum",        "maximum",     "minimum_number",  "maximum_number", "-a",
    "fabs(a)",       "equal_mask",     "less_mask",   "less_equal_mask", "a == b",         "select",
    "floats, first", "floats, second", "from floats", "a to half",       "a to bfloat16",  "a to e4m3fn",
    "a to e5m2",     "a to e3m2fn",    "a to e2m1fn"};

/// Results of operations on NaN: which NaN is not specified, except for conversions.
constexpr std::size_t arithmetic = 11;

struct results {
    std::array<std::uint32_t, names.size()> bits;
};

/// The bits of a conversion, which need none if the types are the same.
template <class To, class From>
MP_HOST_DEVICE std::uint32_t converted(mp::packed2<From> x) {
    return mp::packed2<To>(x).bits();
}

template <class Number>
MP_HOST_DEVICE results evaluate(const operands& in) {
    using pair = mp::packed2<Number>;
    const pair a = pair::from_bits(static_cast<typename pair::storage>(in.a));
    const pair b = pair::from_bits(static_cast<typename pair::storage>(in.b));
    const pair c = pair::from_bits(static_cast<typename pair::storage>(in.c));
    const mp::float_pair floats = a.floats();
    return {{(a + b).bits(),
             (a - b).bits(),
             (a * b).bits(),
             (a * b + c).bits(),
             (a / b).bits(),
             mp::fma(a, b, c).bits(),
             mp::sqrt(a).bits(),
             mp::minimum(a, b).bits(),
             mp::maximum(a, b).bits(),
             mp::minimum_number(a, b).bits(),
             mp::maximum_number(a, b).bits(),
             (-a).bits(),
             mp::fabs(a).bits(),
             mp::equal_mask(a, b),
             mp::less_mask(a, b),
             mp::less_equal_mask(a, b),
             a == b ? 1u : 0u,
             mp::select(mp::less_mask(a, b), a, c).bits(),
             mp::detail::bit_cast<std::uint32_t>(floats.first),
             mp::detail::bit_cast<std::uint32_t>(floats.second),
             pair(in.x, in.y).bits(),
             converted<mp::half>(a),
             converted<mp::bfloat16>(a),
             converted<mp::float8_e4m3fn>(a),
             converted<mp::float8_e5m2>(a),
             converted<mp::float6_e3m2fn>(a),
             converted<mp::float4_e2m1fn>(a)}};
}

template <class Number>
__global__ void evaluate_kernel(const operands* in, results* out, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) out[i] = evaluate<Number>(in[i]);
}

/// Pairs with every code of 16 bits in either place, and partners that cancel, are equal or are anything.
template <class Number>
std::vector<operands> make_operands() {
    std::mt19937_64 random(23);
    std::vector<operands> in;
    for (std::uint32_t code = 0; code < 65536; ++code) {
        for (int round = 0; round < 4; ++round) {
            const std::uint64_t bits = random();
            const auto other = static_cast<std::uint32_t>(bits);
            operands next{code | (other << 16), static_cast<std::uint32_t>(bits >> 32),
                          static_cast<std::uint32_t>(random()), 0, 0};
            if (round == 1) next.a = (code << 16) | (other & 0xffff);
            if (round == 2) next.b = next.a ^ 0x80000000u;
            if (round == 3) next.c = next.b ^ 0x8000u;
            const auto near =
                mp::packed2<Number>::from_bits(static_cast<typename mp::packed2<Number>::storage>(next.a))
                    .floats();
            const auto noise = static_cast<std::uint32_t>(random());
            next.x = round == 0 ? mp::detail::bit_cast<float>(noise)
                                : near.first * (1.0F + static_cast<float>(noise % 17) * 0x1p-8F);
            next.y = round == 1 ? mp::detail::bit_cast<float>(noise) : near.second;
            in.push_back(next);
        }
    }
    return in;
}

/// Whether results are the same except for which NaN a NaN is.
template <class Number>
bool same_but_for_nan(std::uint32_t a, std::uint32_t b) {
    using pair = mp::packed2<Number>;
    const pair x = pair::from_bits(static_cast<typename pair::storage>(a));
    const pair y = pair::from_bits(static_cast<typename pair::storage>(b));
    const auto same = [](Number u, Number v) {
        return u.bits() == v.bits() || (mp::isnan(u) && mp::isnan(v));
    };
    return same(x.first(), y.first()) && same(x.second(), y.second());
}

template <class Number>
void compare() {
    const std::vector<operands> in = make_operands<Number>();
    mp::unique_cuda_stream stream;
    const mp::device_buffer<operands> device_in(stream, in);
    mp::device_buffer<results> device_out(in.size());
    const auto blocks = static_cast<unsigned>(in.size() / 256 + 1);
    evaluate_kernel<Number>
        <<<blocks, 256, 0, stream.get().stream>>>(device_in.data(), device_out.data(), in.size());
    mp::check_cuda(cudaGetLastError(), "evaluate_kernel");
    const std::vector<results> out = device_out.to_host(stream);
    std::array<std::size_t, names.size()> wrong{};
    std::array<operands, names.size()> example{};
    for (std::size_t i = 0; i < in.size(); ++i) {
        const results expected = evaluate<Number>(in[i]);
        for (std::size_t operation = 0; operation < names.size(); ++operation) {
            if (out[i].bits[operation] == expected.bits[operation]) continue;
            if (operation < arithmetic &&
                same_but_for_nan<Number>(out[i].bits[operation], expected.bits[operation])) {
                continue;
            }
            if (wrong[operation]++ == 0) example[operation] = in[i];
        }
    }
    for (std::size_t operation = 0; operation < names.size(); ++operation) {
        CAPTURE(Number::format::name);
        const std::string name = names[operation];
        CAPTURE(name);
        CAPTURE(example[operation].a);
        CAPTURE(example[operation].b);
        CAPTURE(example[operation].c);
        CAPTURE(example[operation].x);
        CAPTURE(example[operation].y);
        CHECK(wrong[operation] == 0);
    }
}

}  // namespace packed2_test
