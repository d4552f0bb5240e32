// SPDX-License-Identifier: MIT
// Arrays: conversion in every projection, arithmetic, functions, sums, range reports and packed numbers.
#include <mp/array.hpp>
#include <mp/convert.hpp>
#include <mp/packed_array.hpp>

#include "formats.hpp"

namespace portability {

namespace {

constexpr std::size_t length = 1543;

template <class T>
void add_array_conversions(report& to, const std::string& name) {
    const std::vector<float> floats = hard_floats(length, 11);
    std::vector<double> doubles(length);
    generator random(13);
    for (std::size_t i = 0; i < length; ++i) {
        // Next to the floats, but no NaN
        const std::uint64_t word =
            (random.next() & 0x800fffffffffffffU) | (std::uint64_t{1023 - 140 + i % 280} << 52);
        std::memcpy(&doubles[i], &word, sizeof word);
    }
    checksum in;
    checksum out;
    std::vector<T> values(length);
    for (int round = 0; round < 9; ++round) {
        const mp::projection p{static_cast<mp::rounding>(round), static_cast<mp::saturation>(round % 3), 12,
                               0x5b3};
        mp::convert(portable_cpu, floats, values, p);
        in.add_code(values);
        mp::convert(portable_cpu, doubles, values, p);
        in.add_code(values);
    }
    mp::convert(portable_cpu, floats, values);
    in.add_code(values);
    mp::convert(portable_cpu, doubles, values);
    in.add_code(values);
    mp::convert_stochastic(portable_cpu, floats, values, 99);
    in.add_code(values);
    to.add(name + ".convert_from", in);
    const std::vector<T> all = codes<T>(length);
    std::vector<float> wide(all.size());
    std::vector<double> wider(all.size());
    mp::convert(portable_cpu, all, wide);
    mp::convert(portable_cpu, all, wider);
    out.add(wide);
    out.add(wider);
    std::vector<mp::half> halves(all.size());
    mp::convert(portable_cpu, all, halves);
    out.add_code(halves);
    mp::convert(portable_cpu, all, halves,
                {.round = mp::rounding::upward, .saturate = mp::saturation::finite});
    out.add_code(halves);
    to.add(name + ".convert_to", out);

    checksum ranges;
    const auto add_range = [&](const mp::range_report& it) {
        for (const std::uint64_t count :
             {it.count, it.zeros, it.flushed, it.subnormals, it.overflows, it.infinities, it.nans}) {
            ranges.add(count);
        }
        ranges.add(it.largest_magnitude);
        ranges.add(it.exponents);
        ranges.add(it.flushed_fraction());
    };
    add_range(mp::report_range<T>(portable_cpu, floats));
    add_range(mp::report_range<T>(portable_cpu, doubles));
    add_range(mp::convert_and_report(portable_cpu, floats, values));
    ranges.add_code(values);
    to.add(name + ".range_report", ranges);
}

template <class T>
void add_array_arithmetic(report& to, const std::string& name) {
    std::vector<T> a(length);
    std::vector<T> b(length);
    std::vector<T> c(length);
    mp::convert(portable_cpu, hard_floats(length, 21), a);
    mp::convert(portable_cpu, plain_floats(length, 22), b);
    mp::convert(portable_cpu, plain_floats(length, 23, 100, 50), c);
    std::vector<T> out(length);
    const auto add = [&](const char* operation, auto f) {
        f();
        checksum sum;
        sum.add(out);
        to.add(name + ".array_" + operation, sum);
    };
    add("add", [&] { mp::add(portable_cpu, a, b, out); });
    add("subtract", [&] { mp::subtract(portable_cpu, a, b, out); });
    add("multiply", [&] { mp::multiply(portable_cpu, a, b, out); });
    add("divide", [&] { mp::divide(portable_cpu, a, b, out); });
    add("fma", [&] { mp::fma(portable_cpu, a, b, c, out); });
    add("scale", [&] { mp::scale(portable_cpu, b[7], a, out); });
    add("axpy", [&] {
        out = c;
        mp::axpy(portable_cpu, b[3], a, out);
    });
    add("minimum", [&] { mp::minimum(portable_cpu, a, b, out); });
    add("maximum", [&] { mp::maximum(portable_cpu, a, b, out); });
    add("clamp", [&] { mp::clamp(portable_cpu, a, mp::round_to<T>(-1.5F), mp::round_to<T>(2.5F), out); });
    add("negate", [&] { mp::negate(portable_cpu, a, out); });
    add("abs", [&] { mp::abs(portable_cpu, a, out); });
    add("sqrt", [&] { mp::sqrt(portable_cpu, a, out); });
    if constexpr (!std::same_as<T, float>) {
        add("exp", [&] { mp::exp(portable_cpu, a, out); });
        add("log", [&] { mp::log(portable_cpu, a, out); });
        add("tanh", [&] { mp::tanh(portable_cpu, a, out); });
        add("rsqrt", [&] { mp::rsqrt(portable_cpu, a, out); });
        add("sigmoid", [&] { mp::sigmoid(portable_cpu, a, out); });
    }
    checksum sums;
    for (const mp::summation how : {mp::summation::in_float, mp::summation::in_double}) {
        sums.add(mp::sum(portable_cpu, b, how));
        sums.add(mp::sum(portable_cpu, c, how));
        sums.add(mp::dot(portable_cpu, b, c, how));
    }
    sums.add(mp::norm(portable_cpu, c));
    to.add(name + ".array_sums", sums);
}

template <class T>
void add_packed(report& to, const std::string& name) {
    checksum sum;
    mp::packed_array<T> packed(length);
    for (const mp::rounding round : {mp::rounding::nearest_even, mp::rounding::upward}) {
        mp::pack(portable_cpu, hard_floats(length, 31), packed,
                 {.round = round, .saturate = mp::saturation::finite});
        for (std::size_t i = 0; i < length; ++i) sum.add_code(T(packed[i]));
        std::vector<float> floats(length);
        mp::unpack(portable_cpu, packed, floats);
        sum.add(floats);
        std::vector<mp::bfloat16> numbers(length);
        mp::unpack(portable_cpu, packed, numbers);
        sum.add(numbers);
    }
    to.add(name + ".packed_array", sum);
}

}  // namespace

void add_array_checksums(report& to) {
    // One format of each kind; each costs some seconds of compile time.
    add_array_conversions<mp::half>(to, "half");
    add_array_arithmetic<float>(to, "float");
    add_array_arithmetic<mp::half>(to, "half");
    add_packed<mp::float6_e3m2fn>(to, "float6_e3m2fn");
#if !defined(MP_FEW_CHECKSUMS)
    add_array_conversions<mp::bfloat16>(to, "bfloat16");
    add_array_conversions<mp::tfloat32>(to, "tfloat32");
    add_array_conversions<mp::float8_e4m3fn>(to, "float8_e4m3fn");
    add_array_conversions<mp::float8_e5m2fnuz>(to, "float8_e5m2fnuz");
    add_array_conversions<mp::float8_e8m0fnu>(to, "float8_e8m0fnu");
    add_array_conversions<mp::float4_e2m1fn>(to, "float4_e2m1fn");
    add_array_arithmetic<mp::bfloat16>(to, "bfloat16");
    add_array_arithmetic<mp::float8_e4m3fn>(to, "float8_e4m3fn");
    add_packed<mp::float4_e2m1fn>(to, "float4_e2m1fn");
    add_packed<mp::float6_e2m3fn>(to, "float6_e2m3fn");
#endif
}

}  // namespace portability
