// SPDX-License-Identifier: MIT
/// \file
/// The same operations on the host and on the device, to compare bits. Included by one file that is compiled
/// as usual and by one that is compiled with --use_fast_math, which must not change a bit.
#pragma once

#include <mp/device/cuda/device_buffer.hpp>
#include <mp/device/cuda/stream.hpp>

#include <mp/base/bits.hpp>
#include <mp/bfloat16.hpp>
#include <mp/float4.hpp>
#include <mp/float6.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

/// What goes into one comparison: three codes and a float and a double to round.
struct operands {
    std::uint32_t a;
    std::uint32_t b;
    std::uint32_t c;
    float x;
    double y;
};

constexpr std::array names{"a + b",
                           "a - b",
                           "a * b",
                           "a / b",
                           "fma(a, b, c)",
                           "sqrt(a)",
                           "minimum(a, b)",
                           "maximum(a, b)",
                           "minimum_number(a, b)",
                           "maximum_number(a, b)",
                           "-a",
                           "a < b, a == b, a <= b",
                           "float(a)",
                           "double(a)",
                           "Number(x)",
                           "Number(y)",
                           "int64(a)",
                           "uint64(a)",
                           "int32(a)",
                           "uint32(a)",
                           "int8(a)",
                           "uint16(a)",
                           "Number(int32)",
                           "Number(uint32)",
                           "Number(int64)",
                           "Number(uint64)",
                           "x upward",
                           "x downward",
                           "x toward zero",
                           "x to odd",
                           "x nearest away",
                           "x saturated",
                           "x saturated but for infinity",
                           "x upward saturated",
                           "x with canonical NaN",
                           "a + b downward",
                           "a to half",
                           "a to e4m3fn",
                           "a to e4m3fn saturated",
                           "a to e5m2",
                           "a to e2m3fn",
                           "a to e3m2fn",
                           "a to e2m1fn",
                           "a to bfloat16 toward zero",
                           "x stochastic",
                           "remainder(a, b)",
                           "exp(a)",
                           "sin(a)",
                           "pow(a, b)",
                           "flags of a / b"};

/// Results of operations on NaN: which NaN is not specified, except for conversions.
constexpr std::size_t arithmetic = 10;

struct results {
    std::array<std::uint64_t, names.size()> bits;
};

template <class Number>
MP_HOST_DEVICE results evaluate(const operands& in) {
    using storage = typename Number::storage;
    const Number a = Number::from_bits(static_cast<storage>(in.a));
    const Number b = Number::from_bits(static_cast<storage>(in.b));
    const Number c = Number::from_bits(static_cast<storage>(in.c));
    const auto rounded = [&](mp::rounding round) {
        return mp::round_to<Number>(in.x, mp::projection{round, mp::saturation::none}).bits();
    };
    const auto code = static_cast<std::int32_t>(in.a * 65537u + in.b);
    const auto wide = mp::detail::bit_cast<std::int64_t>(in.y);
    constexpr auto finite = mp::saturation::finite;
    mp::projection canonical;
    canonical.nan = mp::nan_propagation::canonical;
    mp::environment env;
    const Number quotient = mp::divide(a, b, env);
    const std::uint64_t flags = env.raised.to_unsigned() + (mp::isnan(quotient) ? 32u : 0u);
    return {{(a + b).bits(),
             (a - b).bits(),
             (a * b).bits(),
             (a / b).bits(),
             mp::fma(a, b, c).bits(),
             mp::sqrt(a).bits(),
             mp::minimum(a, b).bits(),
             mp::maximum(a, b).bits(),
             mp::minimum_number(a, b).bits(),
             mp::maximum_number(a, b).bits(),
             (-a).bits(),
             static_cast<std::uint64_t>((a < b ? 1 : 0) + (a == b ? 2 : 0) + (a <= b ? 4 : 0)),
             mp::detail::bit_cast<std::uint32_t>(static_cast<float>(a)),
             mp::detail::bit_cast<std::uint64_t>(static_cast<double>(a)),
             Number(in.x).bits(),
             Number(in.y).bits(),
             static_cast<std::uint64_t>(static_cast<std::int64_t>(a)),
             static_cast<std::uint64_t>(a),
             static_cast<std::uint32_t>(static_cast<std::int32_t>(a)),
             static_cast<std::uint32_t>(a),
             static_cast<std::uint8_t>(static_cast<std::int8_t>(a)),
             static_cast<std::uint16_t>(a),
             Number(code).bits(),
             Number(static_cast<std::uint32_t>(code)).bits(),
             Number(static_cast<std::int64_t>(wide >> (code & 63))).bits(),
             Number(static_cast<std::uint64_t>(wide) >> (code & 63)).bits(),
             rounded(mp::rounding::upward),
             rounded(mp::rounding::downward),
             rounded(mp::rounding::toward_zero),
             rounded(mp::rounding::to_odd),
             rounded(mp::rounding::nearest_away),
             mp::round_to<Number>(in.x, {mp::rounding::nearest_even, finite}).bits(),
             mp::round_to<Number>(in.x, {mp::rounding::nearest_even, mp::saturation::propagate}).bits(),
             mp::round_to<Number>(in.x, {mp::rounding::upward, finite}).bits(),
             mp::round_to<Number>(in.x, canonical).bits(),
             mp::add(a, b, {mp::rounding::downward, mp::saturation::none}).bits(),
             mp::round_to<mp::half>(a).bits(),
             mp::round_to<mp::float8_e4m3fn>(a).bits(),
             mp::round_to<mp::float8_e4m3fn>(a, {mp::rounding::nearest_even, finite}).bits(),
             mp::round_to<mp::float8_e5m2>(a).bits(),
             mp::round_to<mp::float6_e2m3fn>(a).bits(),
             mp::round_to<mp::float6_e3m2fn>(a).bits(),
             mp::round_to<mp::float4_e2m1fn>(a).bits(),
             mp::round_to<mp::bfloat16>(a, {mp::rounding::toward_zero}).bits(),
             mp::round_to<Number>(in.x, mp::stochastic(mp::random_bits(in.a, in.b))).bits(),
             mp::remainder(a, b).bits(),
             mp::exp(a).bits(),
             mp::sin(a).bits(),
             mp::pow(a, b).bits(),
             flags}};
}

template <class Number>
__global__ void evaluate_kernel(const operands* in, results* out, std::size_t count) {
    const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < count) out[i] = evaluate<Number>(in[i]);
}

/// The device's results for these operands must be the host's; operations on NaN may differ in payload.
template <class Number>
void compare(const std::vector<operands>& in) {
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
            const auto is_nan = [](std::uint64_t bits) {
                return mp::isnan(Number::from_bits(static_cast<typename Number::storage>(bits)));
            };
            if (operation < arithmetic && is_nan(out[i].bits[operation]) &&
                is_nan(expected.bits[operation])) {
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

/// Every code as `a`, among them all NaNs, with others that make overflow, underflow and cancellation likely.
template <class Number>
std::vector<operands> make_operands(int rounds) {
    constexpr std::uint32_t codes = std::uint32_t{1} << Number::layout::width;
    std::mt19937_64 random(17);
    std::vector<operands> in;
    in.reserve(static_cast<std::size_t>(rounds) * codes);
    for (int round = 0; round < rounds; ++round) {
        for (std::uint32_t a = 0; a < codes; ++a) {
            const std::uint64_t bits = random();
            const auto random_code = [&](int shift) {
                return static_cast<std::uint32_t>(bits >> shift) % codes;
            };
            operands next{a, random_code(0), random_code(16), 0, 0};
            if (round % 4 == 1) next.b = (a ^ (codes >> 1)) + random_code(0) % 4;  // nearly -a
            if (round % 4 == 2)
                next.c =
                    mp::fma(-Number::from_bits(static_cast<typename Number::storage>(a)),
                            Number::from_bits(static_cast<typename Number::storage>(next.b)), Number(0.0F))
                        .bits();
            next.b %= codes;
            // Half of the floats near numbers of the format and the midpoints between them.
            const float near =
                static_cast<float>(Number::from_bits(static_cast<typename Number::storage>(a)));
            const auto noise = static_cast<std::uint32_t>(random());
            const std::uint32_t midpoint = mp::detail::bit_cast<std::uint32_t>(near) +
                                           ((noise & 3u) << (22 - Number::layout::fraction_bits)) +
                                           ((noise >> 2) & 3u) - 1u;
            next.x = mp::detail::bit_cast<float>(round % 2 == 0 ? noise : midpoint);
            next.y = round % 3 == 0
                         ? mp::detail::bit_cast<double>(random())
                         : static_cast<double>(next.x) * (1.0 + static_cast<double>(noise % 3) * 0x1p-40);
            in.push_back(next);
        }
    }
    return in;
}

}  // namespace
