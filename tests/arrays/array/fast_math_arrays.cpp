// SPDX-License-Identifier: MIT
// With -ffast-math the kernels give the same bits: they are compared with integers, since the operators of
// such a program calculate in integers, and sums with numbers that another build has printed.
#include <mp/array.hpp>
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/tfloat32.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrays/array/arrays.hpp"

using arrays::count_wrong;

TEST_CASE_TEMPLATE("-ffast-math does not change arrays", Value, mp::half, mp::bfloat16, mp::tfloat32) {
    const auto a = arrays::values<Value>(30011, 1);
    auto b = arrays::values<Value>(30011, 2);
    auto c = arrays::values<Value>(30011, 3);
    mp::environment env;
    for (std::size_t i = 0; i < a.size(); i += 3) c[i] = -mp::multiply(a[i], b[i], env);
    std::vector<Value> out(a.size());
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        CAPTURE(static_cast<int>(isa));
        mp::add(exec, a, b, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::add(a[i], b[i], env); }) == 0);
        mp::multiply(exec, a, b, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::multiply(a[i], b[i], env); }) == 0);
        mp::divide(exec, a, b, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::divide(a[i], b[i], env); }) == 0);
        mp::fma(exec, a, b, c, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::fma(a[i], b[i], c[i], env); }) == 0);
        mp::sqrt(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::sqrt(a[i], env); }) == 0);
        mp::maximum(exec, a, b, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::maximum(a[i], b[i]); }) == 0);
        mp::exp(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::exp(a[i], env); }) == 0);
        mp::log(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::log(a[i], env); }) == 0);
        mp::tanh(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::tanh(a[i], env); }) == 0);
        mp::rsqrt(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::rsqrt(a[i], env); }) == 0);
        mp::sigmoid(exec, a, out);
        CHECK(count_wrong(out, [&](std::size_t i) { return mp::sigmoid(a[i]); }) == 0);
    }
}

TEST_CASE("-ffast-math does not change sums") {
    std::vector<float> x;
    oracle::random_bits random(1);
    for (std::size_t i = 0; i < 20011; ++i) {
        // Between 1 and 2, with both signs.
        const auto bits = 0x3f80'0000U | static_cast<std::uint32_t>(random.next() >> 41);
        x.push_back(oracle::value_of<float>(bits ^ (i % 2 == 0 ? 0x8000'0000U : 0U)));
    }
    for (const auto isa : arrays::instruction_sets()) {
        const mp::cpu exec{.instructions = isa};
        CHECK(oracle::code_of(mp::sum(exec, x)) == 0x412ab600);
        CHECK(oracle::code_of(mp::dot(exec, x, x)) == 0x47352e7e);
        CHECK(oracle::code_of(mp::sum(exec, x, mp::summation::in_double)) == 0x412ab647);
        CHECK(oracle::code_of(mp::norm(exec, x)) == 0x43575daf);
    }
}
