// SPDX-License-Identifier: MIT
// Conversions of arrays at every byte of a cache line, also where that is no place for their type, large ones among them.
#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/packed_array.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "arrays/convert/instruction_sets.hpp"
#include "arrays/placed_array.hpp"

namespace {

/// Numbers of a type, among them many special ones.
template <class Value>
std::vector<Value> some_values(std::size_t count) {
    std::vector<Value> result = edge_values<Value, Value>(count);
    result.resize(count);
    return result;
}

template <class Value>
std::size_t count_different(const std::vector<Value>& a, const std::vector<Value>& b) {
    std::size_t wrong = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size(); ++i) wrong += bits_of(a[i]) != bits_of(b[i]) ? 1U : 0U;
    return wrong;
}

template <class From, class To>
void check_everywhere(mp::projection p = {}) {
    constexpr std::size_t count = 150;
    const std::vector<From> source = some_values<From>(count);
    std::vector<To> expected;
    for (const From x : source) expected.push_back(mp::round_to<To>(x, p));
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        CAPTURE(static_cast<int>(isa));
        std::size_t wrong = 0;
        for (std::size_t offset = 0; offset < 64; offset += byte_step<To>) {
            placed_array<From> from((64 - offset) / byte_step<From> * byte_step<From>, count);
            placed_array<To> to(offset, count);
            from.fill(source);
            mp::convert(mp::cpu{.instructions = isa}, from.span(), to.span(), p);
            wrong += count_different(to.values(), expected) + (to.is_alone() ? 0U : 1U);
        }
        CHECK(wrong == 0);
    }
}

/// More than what is written around the caches.
template <class From, class To>
void check_large() {
    const std::size_t count =
        std::min(mp::detail::streaming_threshold() / (sizeof(From) + sizeof(To)), std::size_t{1} << 22) +
        300'001;
    std::vector<From> source(count);
    oracle::random_bits random(3);
    for (From& x : source) x = oracle::value_of<From>(weighted_code(random, oracle::format_of<From>));
    std::vector<To> expected(count);
    mp::convert(mp::cpu{}, source, expected);
    for (const std::size_t offset : {std::size_t{1}, std::size_t{3}, 64 - sizeof(To) / 2}) {
        if (offset % byte_step<To> != 0) continue;
        for (const int threads : {1, 3}) {
            placed_array<To> to(offset, count);
            mp::convert(mp::cpu{.threads = threads}, source, to.span());
            CHECK(std::memcmp(static_cast<const void*>(to.values().data()), expected.data(),
                              count * sizeof(To)) == 0);
            CHECK(to.is_alone());
        }
    }
}

template <class Quantized>
void check_blocks() {
    constexpr std::ptrdiff_t rows = 3, columns = 160;
    constexpr std::size_t count = rows * columns;
    const std::vector<float> source = some_values<float>(count);
    const auto matrix = [&](auto* data) { return mp::row_major(data, rows, columns); };
    const auto expected = mp::quantize<Quantized>(mp::cpu{.instructions = mp::instruction_set::portable},
                                                  matrix(source.data()));
    std::vector<float> values(count);
    mp::dequantize(mp::cpu{.instructions = mp::instruction_set::portable}, expected, matrix(values.data()));
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        CAPTURE(static_cast<int>(isa));
        const mp::cpu exec{.instructions = isa};
        std::size_t wrong = 0;
        for (std::size_t offset = 0; offset < 64; offset += byte_step<float>) {
            placed_array<float> from(offset, count), to(64 - offset, count);
            from.fill(source);
            const auto found = mp::quantize<Quantized>(exec, matrix(from.span().data()));
            wrong += std::ranges::equal(found.bytes(), expected.bytes()) ? 0U : 1U;
            mp::dequantize(exec, found, matrix(to.span().data()));
            wrong += count_different(to.values(), values) + (to.is_alone() ? 0U : 1U);
        }
        CHECK(wrong == 0);
    }
}

template <class To>
void check_packed() {
    constexpr std::size_t count = 150;
    const std::vector<float> source = some_values<float>(count);
    for (const mp::instruction_set isa : instruction_sets_at_hand()) {
        CAPTURE(static_cast<int>(isa));
        const mp::cpu exec{.instructions = isa};
        std::size_t wrong = 0;
        for (std::size_t offset = 0; offset < 64; offset += byte_step<float>) {
            placed_array<float> from(offset, count), to(64 - offset, count);
            from.fill(source);
            mp::packed_array<To> packed(count);
            mp::pack(exec, from.span(), packed);
            mp::unpack(exec, packed, to.span());
            const std::vector<float> found = to.values();
            for (std::size_t i = 0; i < count; ++i) {
                const auto expected = static_cast<float>(mp::round_to<To>(source[i]));
                wrong += bits_of(found[i]) != bits_of(expected) ? 1U : 0U;
            }
            wrong += to.is_alone() ? 0U : 1U;
        }
        CHECK(wrong == 0);
    }
}

}  // namespace

TEST_CASE("arrays are converted from and to any byte") {
    check_everywhere<float, mp::half>();
    check_everywhere<float, mp::bfloat16>();
    check_everywhere<float, mp::float8_e4m3fn>();
    check_everywhere<float, double>();
    check_everywhere<double, float>();
    check_everywhere<double, mp::half>();
    check_everywhere<mp::half, float>();
    check_everywhere<mp::half, mp::bfloat16>();
    check_everywhere<mp::float8_e5m2, mp::half>();
    check_everywhere<float, mp::half>({mp::rounding::toward_zero});
}

TEST_CASE("large arrays that are not aligned for their type are converted") {
    check_large<float, mp::half>();
    check_large<mp::half, float>();
    check_large<mp::half, mp::bfloat16>();  // goes through a buffer
}

TEST_CASE("blocks are quantised from and to any byte") {
    check_blocks<mp::mxfp8_e4m3>();
    check_blocks<mp::mxfp4>();
}

TEST_CASE("packed arrays are made of numbers at any byte, and unpacked to any") {
    check_packed<mp::float4_e2m1fn>();
    check_packed<mp::float6_e3m2fn>();
}
