// SPDX-License-Identifier: MIT
// Arithmetic on arrays of half and bfloat16, on one core: sums, products, fused multiply-adds and exponential
// functions of the elements, once in the second cache level and once in memory. The peers are Eigen's arrays
// and, for half, a loop over the compiler's own _Float16. How often they miss the correctly rounded result of
// random bit patterns is counted first, and told below the tables.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#if __has_include(<mp/array.hpp>)
#include <mp/array.hpp>
#define MP_BENCH_HAS_ARRAYS 1
#else
#define MP_BENCH_HAS_ARRAYS 0
#endif

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cells.hpp"
#include "copy_cells.hpp"
#include "peers.hpp"
#include "shared_memory.hpp"

namespace {

enum class operation { add, multiply, fma, exp };
constexpr operation all_operations[] = {operation::add, operation::multiply, operation::fma, operation::exp};

std::string text(operation it) {
    switch (it) {
        case operation::add:
            return "a + b";
        case operation::multiply:
            return "a * b";
        case operation::fma:
            return "a * b + c";
        case operation::exp:
            break;
    }
    return "exp(a)";
}

std::size_t argument_count(operation it) {
    return it == operation::exp ? 1 : it == operation::fma ? 3 : 2;
}

struct size {
    const char* name;
    std::size_t elements;
};
constexpr size sizes[] = {{"64 Ki", std::size_t{64} << 10}, {"16 Mi", std::size_t{16} << 20}};

/// Arrays of codes, as long as each other.
struct arguments {
    const std::uint16_t* a;
    const std::uint16_t* b;
    const std::uint16_t* c;
    std::uint16_t* to;
    std::size_t count;
};

using pass = std::function<void(const arguments&)>;

/// What the operators and functions of single numbers give, which tests prove right.
template <class Value>
Value exact(operation it, Value a, Value b, Value c) {
    switch (it) {
        case operation::add:
            return a + b;
        case operation::multiply:
            return a * b;
        case operation::fma:
            return fma(a, b, c);
        case operation::exp:
            break;
    }
    return exp(a);
}

template <class Value>
void count_errors(const std::string& table, operation it, const std::string& contender, const pass& run) {
    constexpr std::size_t count = 1 << 18;
    std::mt19937 engine(5);
    std::vector<std::uint16_t> codes[4];
    for (auto& array : codes) {
        array.resize(count);
        for (std::uint16_t& code : array) code = static_cast<std::uint16_t>(engine());
    }
    run({codes[0].data(), codes[1].data(), codes[2].data(), codes[3].data(), count});
    std::size_t different = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = [&](int which) { return Value::from_bits(codes[which][i]); };
        const Value expected = exact(it, value(0), value(1), value(2));
        const Value found = value(3);
        if (isnan(expected) ? !isnan(found) : expected.bits() != found.bits()) ++different;
    }
    if (different == 0) return;
    bench::add_note(table, contender + " differs from the correctly rounded " + text(it) + " for " +
                               std::to_string(different) + " of " + std::to_string(count) +
                               " random bit patterns.");
}

/// Normally distributed values in all arguments.
template <class Value>
void fill(std::uint16_t* to, std::size_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> distribution;
    constexpr std::size_t few = 1 << 16;
    for (std::size_t i = 0; i < count; ++i)
        to[i] = i < few ? Value(distribution(engine)).bits() : to[i - few];
}

/// Four arrays of `count` codes, of which three are filled; the same ones for all who ask for as many.
template <class Value>
std::uint16_t* numbers(std::size_t count) {
    static std::map<std::size_t, std::vector<std::uint16_t>> all;
    std::vector<std::uint16_t>& memory = all[count];
    if (memory.empty()) {
        memory.resize(4 * count);
        for (unsigned i = 0; i < 3; ++i) fill<Value>(memory.data() + i * count, count, i);
    }
    return memory.data();
}

/// Adds a contender to all rows of an operation; `slow` ones only in the cache.
template <class Value>
void add_pass(const std::string& table, operation it, const std::string& contender, bool slow,
              const pass& run) {
    count_errors<Value>(table, it, contender, run);
    for (const size& length : sizes) {
        if (length.elements > sizes[0].elements && (slow || bench::quick())) continue;
        bench::add(table, text(it) + ", " + length.name, contender, [=](benchmark::State& state) {
            const std::size_t count = length.elements;
            std::uint16_t* const memory = numbers<Value>(count);
            const arguments arrays{memory, memory + count, memory + 2 * count, memory + 3 * count, count};
            for (auto _ : state) {
                run(arrays);
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, count, static_cast<double>((argument_count(it) + 1) * 2 * count));
        });
    }
}

#if MP_BENCH_HAS_ARRAYS
template <class Value>
void run_mp(operation it, const arguments& on) {
    const auto values = [&](const std::uint16_t* codes) {
        return std::span(reinterpret_cast<const Value*>(codes), on.count);
    };
    const std::span to(reinterpret_cast<Value*>(on.to), on.count);
    switch (it) {
        case operation::add:
            return mp::add(mp::cpu{}, values(on.a), values(on.b), to);
        case operation::multiply:
            return mp::multiply(mp::cpu{}, values(on.a), values(on.b), to);
        case operation::fma:
            return mp::fma(mp::cpu{}, values(on.a), values(on.b), values(on.c), to);
        case operation::exp:
            return mp::exp(mp::cpu{}, values(on.a), to);
    }
}
#endif

#if MP_BENCH_HAS_EIGEN
template <class Peer>
void run_eigen(operation it, const arguments& on) {
    using array = Eigen::Array<Peer, Eigen::Dynamic, 1>;
    const auto size = static_cast<Eigen::Index>(on.count);
    const auto values = [&](const std::uint16_t* codes) {
        return Eigen::Map<const array>(reinterpret_cast<const Peer*>(codes), size);
    };
    Eigen::Map<array> to(reinterpret_cast<Peer*>(on.to), size);
    switch (it) {
        case operation::add:
            to = values(on.a) + values(on.b);
            return;
        case operation::multiply:
            to = values(on.a) * values(on.b);
            return;
        case operation::fma:
            to = values(on.a) * values(on.b) + values(on.c);
            return;
        case operation::exp:
            to = values(on.a).exp();
            return;
    }
}
#endif

#if MP_BENCH_HAS_FLOAT16
void run_native_half(operation it, const arguments& on) {
    using bench::native_half;
    const auto* __restrict const a = reinterpret_cast<const native_half*>(on.a);
    const auto* __restrict const b = reinterpret_cast<const native_half*>(on.b);
    const auto* __restrict const c = reinterpret_cast<const native_half*>(on.c);
    auto* __restrict const to = reinterpret_cast<native_half*>(on.to);
    const auto loop = [&](auto calculate) {
        for (std::size_t i = 0; i < on.count; ++i) to[i] = static_cast<native_half>(calculate(i));
    };
    switch (it) {
        case operation::add:
            return loop([=](std::size_t i) { return a[i] + b[i]; });
        case operation::multiply:
            return loop([=](std::size_t i) { return a[i] * b[i]; });
        case operation::fma:
            return loop([=](std::size_t i) {
                return std::fma(static_cast<float>(a[i]), static_cast<float>(b[i]), static_cast<float>(c[i]));
            });
        case operation::exp:
            return loop([=](std::size_t i) { return std::exp(static_cast<float>(a[i])); });
    }
}
#endif

/// The same in float: what the arithmetic costs without reduced formats, of twice the memory.
void run_float(operation it, const float* __restrict a, const float* __restrict b, const float* __restrict c,
               float* __restrict to, std::size_t count) {
    switch (it) {
        case operation::add:
            for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
            return;
        case operation::multiply:
            for (std::size_t i = 0; i < count; ++i) to[i] = a[i] * b[i];
            return;
        case operation::fma:
            for (std::size_t i = 0; i < count; ++i) to[i] = std::fma(a[i], b[i], c[i]);
            return;
        case operation::exp:
            for (std::size_t i = 0; i < count; ++i) to[i] = std::exp(a[i]);
            return;
    }
}

void add_float(const std::string& table, operation it) {
    for (const size& length : sizes) {
        if (length.elements > sizes[0].elements && bench::quick()) continue;
        const auto run = [=](benchmark::State& state) {
            const std::size_t count = length.elements;
            float* const memory = bench::shared_memory<float, 0>(4 * count);
            for (std::size_t i = 0; i < 3 * count; ++i)
                memory[i] = static_cast<float>(i % 1999) * 0.002F - 2.0F;
            for (auto _ : state) {
                run_float(it, memory, memory + count, memory + 2 * count, memory + 3 * count, count);
                benchmark::ClobberMemory();
            }
            bench::count_elements(state, count, static_cast<double>((argument_count(it) + 1) * 4 * count));
        };
        bench::add(table, text(it) + ", " + length.name, "float", run, bench::role::reference);
    }
}

void add_memcpy(const std::string& table, operation it) {
    for (const size& length : sizes) {
        if (length.elements > sizes[0].elements && bench::quick()) continue;
        const std::size_t written = 2 * length.elements;
        bench::add_copies(table, text(it) + ", " + length.name, argument_count(it) * written, written,
                          length.elements);
    }
}

}  // namespace

void bench::register_benchmarks() {
    using mp::bfloat16;
    using mp::half;
    const std::string halves = "arrays of half";
    const std::string bfloats = "arrays of bfloat16";
    for (const operation it : all_operations) {
#if MP_BENCH_HAS_ARRAYS
        add_pass<half>(halves, it, "mp", false, [=](const arguments& on) { run_mp<half>(it, on); });
        add_pass<bfloat16>(bfloats, it, "mp", false, [=](const arguments& on) { run_mp<bfloat16>(it, on); });
#endif
#if MP_BENCH_HAS_EIGEN
        add_pass<half>(halves, it, "Eigen", true,
                       [=](const arguments& on) { run_eigen<Eigen::half>(it, on); });
        add_pass<bfloat16>(bfloats, it, "Eigen", true,
                           [=](const arguments& on) { run_eigen<Eigen::bfloat16>(it, on); });
#endif
#if MP_BENCH_HAS_FLOAT16
        add_pass<half>(halves, it, "_Float16", true, [=](const arguments& on) { run_native_half(it, on); });
#endif
        for (const std::string& table : {halves, bfloats}) {
            add_float(table, it);
            add_memcpy(table, it);
        }
    }
}
