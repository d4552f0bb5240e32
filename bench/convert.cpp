// SPDX-License-Identifier: MIT
// Conversion of arrays between float or double and the reduced formats, on one core. The rows are amounts of
// memory traffic, read and written: small enough for the first and the second cache level, and more than
// caches usually hold. `memcpy` moves the same number of bytes, half of them read and half written; the
// fastest move reads and writes as many as the conversion and calculates nothing: the limit.
#include <mp/bfloat16.hpp>
#include <mp/convert.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cells.hpp"
#include "copy_cells.hpp"
#include "peers.hpp"
#include "shared_memory.hpp"

#if MP_BENCH_HAS_HIGHWAY
#include "peers/highway.hpp"
#endif
#if MP_BENCH_HAS_ONEDNN
#include "peers/onednn.hpp"
#endif

namespace {

struct traffic {
    const char* name;
    std::size_t bytes;
};
constexpr traffic sizes[] = {
    {"L1, 16 KiB", 16 << 10}, {"L2, 512 KiB", 512 << 10}, {"memory, 192 MiB", 192 << 20}};

/// Values as weights and gradients have them: normally distributed.
template <class Value>
const Value* normal_values(std::size_t count) {
    static std::size_t filled = 0;
    Value* const values = bench::shared_memory<Value, 0>(count);
    if (filled >= count) return values;
    std::mt19937 engine(1);
    std::normal_distribution<float> distribution;
    std::vector<Value> few(1 << 16);
    for (Value& x : few) x = Value(distribution(engine));
    for (std::size_t i = 0; i < count; ++i) values[i] = few[i % few.size()];
    filled = count;
    return values;
}

/// Random bit patterns: every exponent, subnormals, infinities and NaNs. Of the doubles, half have an
/// exponent near the range of half and a fraction near a tie, where rounding twice goes wrong.
template <class Value>
std::vector<Value> random_bits(std::size_t count) {
    std::mt19937_64 engine(2);
    std::vector<Value> values(count);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = engine();
        if (sizeof(Value) == 8 && i % 2 == 0) {
            const std::uint64_t exponent = 1023 - 26 + bits % 44;
            const std::uint64_t kept_and_tie = (bits >> 8) % 1024 * 2 + 1;
            bits = bits >> 63 << 63 | exponent << 52 | kept_and_tie << 41 | (bits >> 32) % 3;
        }
        std::memcpy(static_cast<void*>(&values[i]), &bits, sizeof(Value));
    }
    return values;
}

/// A way to convert `count` elements.
template <class From, class To>
struct contender {
    std::string name;
    std::function<void(const From*, To*, std::size_t)> convert;
    bool slow = false;  // a call an element, or worse: not run on large arrays
};

/// The bits, with one pattern for all NaNs: conversions differ in how they treat their payload.
template <class Value>
std::uint32_t comparable_bits(Value x) {
    if (mp::isnan(x)) return 0xffffffff;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, std::min(sizeof x, sizeof bits));
    return bits;
}

/// Compares the peers' results with mp's, which tests prove right, and notes how often they differ.
template <class From, class To>
void check(const std::string& table, const std::vector<contender<From, To>>& contenders) {
    const std::size_t count = 1 << 20;
    const std::vector<From> from = random_bits<From>(count);
    std::vector<To> expected(count);
    mp::convert(mp::cpu{}, from, expected);
    for (const contender<From, To>& it : contenders) {
        std::vector<To> result(count);
        it.convert(from.data(), result.data(), count);
        std::size_t different = 0;
        for (std::size_t i = 0; i < count; ++i) {
            if (comparable_bits(result[i]) != comparable_bits(expected[i])) ++different;
        }
        if (different != 0) {
            bench::add_note(table, it.name + " differs from the correctly rounded result for " +
                                       std::to_string(different) + " of " + std::to_string(count) +
                                       " random bit patterns, half of which lie near ties.");
        }
    }
}

template <class From, class To>
void add_table(const std::string& table, std::vector<contender<From, To>> contenders) {
    contenders.insert(contenders.begin(), {"mp", [](const From* from, To* to, std::size_t count) {
                                               mp::convert(mp::cpu{}, std::span(from, count),
                                                           std::span(to, count));
                                           }});
    check(table, contenders);
    for (const traffic& size : sizes) {
        const std::size_t count = size.bytes / (sizeof(From) + sizeof(To)) / 256 * 256;
        for (const contender<From, To>& it : contenders) {
            if (it.slow && size.bytes > (1 << 20)) continue;
            if (bench::quick() && it.slow) continue;
            bench::add(table, size.name, it.name, [=](benchmark::State& state) {
                const From* const from = normal_values<From>(count);
                To* const to = bench::shared_memory<To, 1>(count);
                for (auto _ : state) {
                    it.convert(from, to, count);
                    benchmark::ClobberMemory();
                }
                bench::count_elements(state, count, static_cast<double>(count * (sizeof(From) + sizeof(To))));
            });
        }
        bench::add_copies(table, size.name, count * sizeof(From), count * sizeof(To), count);
    }
}

#if MP_BENCH_HAS_EIGEN
/// Eigen's cast of an array, where its types have the layout of From and To.
template <class EigenFrom, class EigenTo, class From, class To>
void add_eigen(std::vector<contender<From, To>>& contenders) {
    static_assert(sizeof(EigenFrom) == sizeof(From) && sizeof(EigenTo) == sizeof(To));
    contenders.push_back(
        {"Eigen", [](const From* from, To* to, std::size_t count) {
             using source = Eigen::Map<const Eigen::Array<EigenFrom, Eigen::Dynamic, 1>>;
             using target = Eigen::Map<Eigen::Array<EigenTo, Eigen::Dynamic, 1>>;
             const auto size = static_cast<Eigen::Index>(count);
             target(reinterpret_cast<EigenTo*>(to), size) =
                 source(reinterpret_cast<const EigenFrom*>(from), size).template cast<EigenTo>();
         }});
}
#endif

#if MP_BENCH_HAS_HIGHWAY
/// Highway's loop; it takes codes in place of From or To where they are reduced.
template <class From, class To, class FromCode, class ToCode>
void add_highway(std::vector<contender<From, To>>& contenders,
                 void (*convert)(const FromCode*, ToCode*, std::size_t)) {
    static_assert(sizeof(FromCode) == sizeof(From) && sizeof(ToCode) == sizeof(To));
    contenders.push_back({"Highway", [=](const From* from, To* to, std::size_t count) {
                              convert(reinterpret_cast<const FromCode*>(from), reinterpret_cast<ToCode*>(to),
                                      count);
                          }});
}
#endif

#if MP_BENCH_HAS_ONEDNN
template <class Value>
constexpr bench::onednn::data_type onednn_type =
    std::is_same_v<Value, float>      ? bench::onednn::data_type::f32
    : std::is_same_v<Value, mp::half> ? bench::onednn::data_type::f16
                                      : bench::onednn::data_type::bf16;

/// oneDNN's reorder; `slow` where it has no kernel but a reference that takes one element at a time.
template <class From, class To>
void add_onednn(std::vector<contender<From, To>>& contenders, bool slow) {
    const auto convert = std::make_shared<bench::onednn::reorder>(onednn_type<From>, onednn_type<To>);
    contenders.push_back(
        {"oneDNN", [=](const From* from, To* to, std::size_t count) { (*convert)(from, to, count); }, slow});
}
#endif

/// The compiler's own binary16 in the place of half.
template <class From, class To>
void add_native_half([[maybe_unused]] std::vector<contender<From, To>>& contenders) {
#if MP_BENCH_HAS_FLOAT16
    const auto convert = [](const From* from, To* to, std::size_t count) {
        using source = std::conditional_t<sizeof(From) == 2, bench::native_half, From>;
        using target = std::conditional_t<sizeof(To) == 2, bench::native_half, To>;
        const auto* __restrict const in = reinterpret_cast<const source*>(from);
        auto* __restrict const out = reinterpret_cast<target*>(to);
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<target>(in[i]);
    };
    contenders.push_back({"_Float16", convert, !bench::native_half_converts});
#endif
}

}  // namespace

void bench::register_benchmarks() {
    using mp::bfloat16;
    using mp::half;
    std::vector<contender<float, half>> to_half;
    std::vector<contender<half, float>> from_half;
    std::vector<contender<float, bfloat16>> to_bfloat16;
    std::vector<contender<bfloat16, float>> from_bfloat16;
    std::vector<contender<double, half>> double_to_half;
#if MP_BENCH_HAS_EIGEN
    add_eigen<float, Eigen::half>(to_half);
    add_eigen<Eigen::half, float>(from_half);
    add_eigen<float, Eigen::bfloat16>(to_bfloat16);
    add_eigen<Eigen::bfloat16, float>(from_bfloat16);
    add_eigen<double, Eigen::half>(double_to_half);
#endif
#if MP_BENCH_HAS_FP16
    to_half.push_back({"FP16", [](const float* __restrict from, half* to, std::size_t count) {
                           auto* __restrict const codes = reinterpret_cast<std::uint16_t*>(to);
                           for (std::size_t i = 0; i < count; ++i) {
                               codes[i] = fp16_ieee_from_fp32_value(from[i]);
                           }
                       }});
    from_half.push_back({"FP16", [](const half* from, float* __restrict to, std::size_t count) {
                             const auto* __restrict const codes =
                                 reinterpret_cast<const std::uint16_t*>(from);
                             for (std::size_t i = 0; i < count; ++i) {
                                 to[i] = fp16_ieee_to_fp32_value(codes[i]);
                             }
                         }});
#endif
#if MP_BENCH_HAS_HIGHWAY
    add_highway(to_half, &bench::highway::float_to_half);
    add_highway(from_half, &bench::highway::half_to_float);
    add_highway(to_bfloat16, &bench::highway::float_to_bfloat16);
    add_highway(from_bfloat16, &bench::highway::bfloat16_to_float);
    add_highway(double_to_half, &bench::highway::double_to_half);
    add_note("float to half", "Highway is " + bench::highway::description() + ".");
    add_note("float to bfloat16", "Highway 1.0 cuts off bits instead of rounding.");
    add_note("double to half", "Highway and Eigen go through float and round twice.");
#endif
#if MP_BENCH_HAS_ONEDNN
    add_onednn(to_half, true);
    add_onednn(from_half, true);
    add_onednn(to_bfloat16, false);
    add_onednn(from_bfloat16, false);
    add_note("float to half", "oneDNN is " + bench::onednn::description() + ".");
    add_note("float to bfloat16", "oneDNN's instructions take subnormal numbers for zero.");
#endif
    add_native_half(to_half);
    add_native_half(from_half);
    add_native_half(double_to_half);
    add_table("float to half", to_half);
    add_table("half to float", from_half);
    add_table("float to bfloat16", to_bfloat16);
    add_table("bfloat16 to float", from_bfloat16);
    add_table("double to half", double_to_half);
    add_table<float, mp::float8_e4m3fn>("float to float8_e4m3fn", {});
    add_table<mp::float8_e4m3fn, float>("float8_e4m3fn to float", {});
}
