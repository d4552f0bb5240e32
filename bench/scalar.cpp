// SPDX-License-Identifier: MIT
// Operations on single numbers in plain loops over arrays of 65 536 elements, few enough for the cache and
// too many for the branch predictor to learn. "Random bits" are all codes alike: subnormals, infinities, NaNs
// and results that over- or underflow, in every other element or so; "normal" values are normally
// distributed. `float` does the same in float: the price of the narrow formats where the processor has no
// such arithmetic.
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <benchmark/benchmark.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cells.hpp"
#include "peers.hpp"

namespace {

// For float; those of the other types are found by their arguments.
using std::from_chars;
using std::to_chars;

constexpr std::size_t element_count = 65536;

enum class data { random_bits, normal };
constexpr data all_data[] = {data::random_bits, data::normal};

std::string text(data kind) {
    return kind == data::random_bits ? "random bits" : "normal";
}

/// The same values for every contender: codes of Reduced, or what they stand for in float.
template <class Value, class Reduced>
std::vector<Value> values(data kind, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> distribution;
    std::vector<Value> result(element_count);
    for (Value& x : result) {
        const auto code = static_cast<std::uint16_t>(engine());
        const Reduced reduced =
            kind == data::random_bits ? Reduced::from_bits(code) : Reduced(distribution(engine));
        if constexpr (std::is_same_v<Value, float>) {
            x = reduced;
        } else {
            static_assert(sizeof(Value) == sizeof(Reduced));
            std::memcpy(static_cast<void*>(&x), &reduced, sizeof x);
        }
    }
    return result;
}

template <class Result, class Value, class Operation>
void run(benchmark::State& state, const std::vector<Value>& a, const std::vector<Value>& b,
         const std::vector<Value>& c, Operation operation) {
    std::vector<Result> results(element_count);
    for (auto _ : state) {
        const Value* __restrict const x = a.data();
        const Value* __restrict const y = b.data();
        const Value* __restrict const z = c.data();
        Result* __restrict const r = results.data();
        for (std::size_t i = 0; i < element_count; ++i) r[i] = operation(x[i], y[i], z[i]);
        benchmark::DoNotOptimize(r);
        benchmark::ClobberMemory();
    }
    bench::count_elements(state, element_count);
}

/// Floats are no peer: they show what the arithmetic costs where the processor has it.
template <class Value>
constexpr bench::role role_of =
    std::is_same_v<Value, float> ? bench::role::reference : bench::role::contender;

template <class Value, class Reduced, class Operation>
void add_operation(const std::string& table, const std::string& name, const std::string& contender,
                   Operation operation) {
    using result = std::decay_t<decltype(operation(Value{}, Value{}, Value{}))>;
    for (const data kind : all_data) {
        const auto loop = [=](benchmark::State& state) {
            run<result>(state, values<Value, Reduced>(kind, 1), values<Value, Reduced>(kind, 2),
                        values<Value, Reduced>(kind, 3), operation);
        };
        bench::add(table, name + ", " + text(kind), contender, loop, role_of<Value>);
    }
}

// What fma and functions mean for each contender; those of mp, Eigen and half.hpp are found by their
// arguments.
using std::exp;
using std::log;
using std::sin;
using std::sqrt;

template <class Format>
mp::basic_float<Format> multiply_add(mp::basic_float<Format> a, mp::basic_float<Format> b,
                                     mp::basic_float<Format> c) {
    return fma(a, b, c);
}
float multiply_add(float a, float b, float c) {
    return std::fma(a, b, c);
}
#if MP_BENCH_HAS_HALF
half_float::half multiply_add(half_float::half a, half_float::half b, half_float::half c) {
    return half_float::fma(a, b, c);
}
#endif
#if MP_BENCH_HAS_FLOAT16
using bench::native_half;
native_half multiply_add(native_half a, native_half b, native_half c) {
    return static_cast<native_half>(
        std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
}
native_half sqrt(native_half a) {
    return static_cast<native_half>(std::sqrt(static_cast<float>(a)));
}
native_half exp(native_half a) {
    return static_cast<native_half>(std::exp(static_cast<float>(a)));
}
native_half log(native_half a) {
    return static_cast<native_half>(std::log(static_cast<float>(a)));
}
native_half sin(native_half a) {
    return static_cast<native_half>(std::sin(static_cast<float>(a)));
}
#endif

#if MP_BENCH_HAS_SOFTFLOAT
/// SoftFloat's half with operators, so that it fits in the place of the others.
struct soft_half {
    float16_t value;

    friend soft_half operator+(soft_half a, soft_half b) { return {f16_add(a.value, b.value)}; }
    friend soft_half operator-(soft_half a, soft_half b) { return {f16_sub(a.value, b.value)}; }
    friend soft_half operator*(soft_half a, soft_half b) { return {f16_mul(a.value, b.value)}; }
    friend soft_half operator/(soft_half a, soft_half b) { return {f16_div(a.value, b.value)}; }
    friend bool operator<(soft_half a, soft_half b) { return f16_lt(a.value, b.value); }
    friend soft_half multiply_add(soft_half a, soft_half b, soft_half c) {
        return {f16_mulAdd(a.value, b.value, c.value)};
    }
    friend soft_half sqrt(soft_half a) { return {f16_sqrt(a.value)}; }
};
#endif

template <class Value, class Reduced>
void add_contender(const std::string& table, const std::string& contender) {
    const auto add = [&](const std::string& name, auto operation) {
        add_operation<Value, Reduced>(table, name, contender, operation);
    };
    add("a + b", [](Value a, Value b, Value) { return static_cast<Value>(a + b); });
    add("a - b", [](Value a, Value b, Value) { return static_cast<Value>(a - b); });
    add("a * b", [](Value a, Value b, Value) { return static_cast<Value>(a * b); });
    add("a / b", [](Value a, Value b, Value) { return static_cast<Value>(a / b); });
    if constexpr (requires(Value a) {
                      { multiply_add(a, a, a) } -> std::same_as<Value>;
                  }) {
        add("fma(a, b, c)", [](Value a, Value b, Value c) { return multiply_add(a, b, c); });
    }
    add("sqrt(a)", [](Value a, Value, Value) { return static_cast<Value>(sqrt(a)); });
    if constexpr (requires(Value a) {
                      { exp(a) } -> std::convertible_to<Value>;
                  }) {
        add("exp(a)", [](Value a, Value, Value) { return static_cast<Value>(exp(a)); });
        add("log(a)", [](Value a, Value, Value) { return static_cast<Value>(log(a)); });
        add("sin(a)", [](Value a, Value, Value) { return static_cast<Value>(sin(a)); });
    }
    add("a < b", [](Value a, Value b, Value) { return static_cast<unsigned char>(a < b); });
}

/// Numbers of half's range that need rounding: those that the codes stand for, and random bits behind theirs.
template <class Native>
std::vector<Native> unrounded_values(data kind) {
    std::mt19937_64 engine(4);
    std::vector<Native> result = [&] {
        const std::vector<float> exact = values<float, mp::half>(kind, 1);
        return std::vector<Native>(exact.begin(), exact.end());
    }();
    for (Native& x : result) {
        std::conditional_t<sizeof(Native) == 8, std::uint64_t, std::uint32_t> bits = 0;
        constexpr int behind = sizeof(Native) == 8 ? 42 : 13;
        std::memcpy(&bits, &x, sizeof x);
        bits |= static_cast<decltype(bits)>(engine() & ((std::uint64_t{1} << behind) - 1));
        std::memcpy(&x, &bits, sizeof x);
    }
    return result;
}

/// A conversion to or from half, of the numbers that `inputs(kind)` makes.
template <class From, class Inputs, class Operation>
void add_conversion(const std::string& name, const std::string& contender, Inputs inputs,
                    Operation operation) {
    using result = decltype(operation(From{}));
    for (const data kind : all_data) {
        bench::add("half", name + ", " + text(kind), contender, [=](benchmark::State& state) {
            const std::vector<From> numbers = inputs(kind);
            run<result>(state, numbers, numbers, numbers, [=](From a, From, From) { return operation(a); });
        });
    }
}

template <class Half>
Half from_double(double a) {
#if MP_BENCH_HAS_HALF
    // Its constructor takes a float and would round twice.
    if constexpr (std::is_same_v<Half, half_float::half>)
        return half_float::half_cast<half_float::half>(a);
    else
#endif
        return static_cast<Half>(a);
}

/// The conversions of a class that is explicitly converted.
template <class Half>
void add_conversions(const std::string& contender) {
    add_conversion<float>("float to half", contender, unrounded_values<float>,
                          [](float a) { return static_cast<Half>(a); });
    add_conversion<double>("double to half", contender, unrounded_values<double>,
                           [](double a) { return from_double<Half>(a); });
    add_conversion<Half>(
        "half to float", contender, [](data kind) { return values<Half, mp::half>(kind, 1); },
        [](Half a) { return static_cast<float>(a); });
}

/// Text both ways, of all finite codes; the peers have nothing for the narrow formats, so float's own text is
/// compared with.
template <class Value, class Reduced>
void add_text(const std::string& table, const std::string& contender) {
    const auto finite_values = [] {
        std::vector<Value> result;
        for (std::uint32_t code = 0; code < 65536; ++code) {
            const Reduced x = Reduced::from_bits(static_cast<std::uint16_t>(code));
            if (isfinite(x)) result.push_back(static_cast<Value>(x));
        }
        return result;
    };
    const auto print = [=](benchmark::State& state) {
        const std::vector<Value> numbers = finite_values();
        char buffer[64];
        for (auto _ : state) {
            for (const Value x : numbers) {
                benchmark::DoNotOptimize(to_chars(buffer, buffer + sizeof buffer, x).ptr);
            }
        }
        bench::count_elements(state, numbers.size());
    };
    const auto parse = [=](benchmark::State& state) {
        std::vector<std::string> texts;
        for (const Value x : finite_values()) {
            char buffer[64];
            texts.emplace_back(buffer, to_chars(buffer, buffer + sizeof buffer, x).ptr);
        }
        for (auto _ : state) {
            for (const std::string& it : texts) {
                Value x{};
                from_chars(it.data(), it.data() + it.size(), x);
                benchmark::DoNotOptimize(x);
            }
        }
        bench::count_elements(state, texts.size());
    };
    bench::add(table, "to_chars, shortest", contender, print, role_of<Value>);
    bench::add(table, "from_chars", contender, parse, role_of<Value>);
}

}  // namespace

void bench::register_benchmarks() {
    using mp::bfloat16;
    using mp::half;
    add_contender<half, half>("half", "mp");
    add_contender<bfloat16, bfloat16>("bfloat16", "mp");
#if MP_BENCH_HAS_EIGEN
    add_contender<Eigen::half, half>("half", "Eigen");
    add_contender<Eigen::bfloat16, bfloat16>("bfloat16", "Eigen");
#endif
#if MP_BENCH_HAS_HALF
    add_contender<half_float::half, half>("half", "half 2.2");
#endif
#if MP_BENCH_HAS_FLOAT16
    add_contender<native_half, half>("half", "_Float16");
    add_note("half", "_Float16's fma goes through float and rounds twice.");
#endif
#if MP_BENCH_HAS_SOFTFLOAT
    add_contender<soft_half, half>("half", "SoftFloat");
#endif
    add_note(
        "half",
        "exp, log and sin of Eigen, _Float16 and float are those of the C library in float: after rounding, "
        "some are not correctly rounded. mp's are, in every mode: to nearest even by double arithmetic with "
        "a proven error, in integers where that cannot tell and in the other modes.");
    add_note(
        "bfloat16",
        "mp takes results near float's underflow through double, so that they stay right where the "
        "processor flushes subnormals, and compares bits, so that -ffast-math does not change the outcome.");
    add_contender<float, half>("half", "float");
    add_conversions<half>("mp");
#if MP_BENCH_HAS_EIGEN
    add_conversions<Eigen::half>("Eigen");
#endif
#if MP_BENCH_HAS_HALF
    add_conversions<half_float::half>("half 2.2");
#endif
#if MP_BENCH_HAS_FLOAT16
    add_conversions<native_half>("_Float16");
#endif
#if MP_BENCH_HAS_SOFTFLOAT
    add_conversion<float>("float to half", "SoftFloat", unrounded_values<float>, [](float a) {
        return soft_half{f32_to_f16({mp::detail::bit_cast<std::uint32_t>(a)})};
    });
    add_conversion<double>("double to half", "SoftFloat", unrounded_values<double>, [](double a) {
        return soft_half{f64_to_f16({mp::detail::bit_cast<std::uint64_t>(a)})};
    });
    add_conversion<soft_half>(
        "half to float", "SoftFloat", [](data kind) { return values<soft_half, half>(kind, 1); },
        [](soft_half a) { return mp::detail::bit_cast<float>(f16_to_f32(a.value).v); });
#endif
    add_contender<float, bfloat16>("bfloat16", "float");
    add_text<half, half>("text of all finite half numbers", "mp");
    add_text<float, half>("text of all finite half numbers", "float");
    add_text<bfloat16, bfloat16>("text of all finite bfloat16 numbers", "mp");
    add_text<float, bfloat16>("text of all finite bfloat16 numbers", "float");
}
