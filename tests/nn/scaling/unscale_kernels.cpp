// SPDX-License-Identifier: MIT
// Unscaling on every instruction set: bits, reports and the memory around the results.
#include <doctest/doctest.h>
#include <mp/bfloat16.hpp>
#include <mp/float8.hpp>
#include <mp/half.hpp>
#include <mp/loss_scaling.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "arrays/placed_array.hpp"
#include "numbers/simd/caller_modes.hpp"

namespace {

template <class Value>
Value random_value(std::mt19937& random) {
    const auto bits = static_cast<std::uint32_t>(random());
    if constexpr (std::is_same_v<Value, float>) {
        // Infinities and NaNs, quiet and signalling, often enough.
        return std::bit_cast<float>(bits % 16 == 0 ? bits | 0x7f800000U : bits);
    } else {
        return Value::from_bits(static_cast<decltype(Value{}.bits())>(bits));
    }
}

/// What the definition says, one by one.
template <class Value>
float expected_value(Value gradient, float inverse) {
    volatile float value = static_cast<float>(gradient);
    if (inverse == 1.0F) {
        if constexpr (std::is_same_v<Value, float>) return gradient;
        return value;
    }
    value = value * inverse;
    return value;
}

void add(mp::non_finite_report& report, float value, std::size_t index) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
    if (magnitude < 0x7f800000U) return;
    ++(magnitude == 0x7f800000U ? report.infinities : report.nans);
    if (report.first_index == mp::no_index) report.first_index = index;
}

template <class Function>
void on_every_instruction_set(Function function) {
    for (int isa = 0; isa <= static_cast<int>(mp::processor_instruction_set()); ++isa) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(isa))) continue;
        if (isa > static_cast<int>(mp::instruction_set::avx512)) break;  // there are no kernels beyond
        CAPTURE(isa);
        function(mp::cpu{1, static_cast<mp::instruction_set>(isa)});
    }
}

}  // namespace

TEST_CASE_TEMPLATE("all lengths and alignments are unscaled to the bit, and nothing beside them is written",
                   Value, float, mp::half, mp::bfloat16, mp::float8_e5m2, mp::float8_e4m3fnuz) {
    constexpr std::uint32_t guard = 0x7fa5a5a5U;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    on_every_instruction_set([&](mp::cpu exec) {
        std::mt19937 random(5);
        std::size_t wrong = 0;
        for (std::size_t size = 0; size <= 130; ++size) {
            for (const std::size_t shift : {size % 16, (size * 7 + 3) % 16}) {
                for (const float inverse : {1.0F, 1.0F / 3.0F, 0x1p100F, 0.0F, infinity}) {
                    std::vector<Value> memory(size + 32);
                    for (Value& value : memory) value = random_value<Value>(random);
                    const std::span<const Value> gradient = std::span(memory).subspan(shift, size);
                    std::vector<float> results(size + 40, std::bit_cast<float>(guard));
                    const std::size_t to = 1 + (shift + size) % 16;
                    mp::non_finite_report report;
                    for (std::size_t i = 0; i < size; ++i) {
                        add(report, expected_value(gradient[i], inverse), i);
                    }
                    wrong += mp::unscale_and_check(exec, gradient, std::span(results).subspan(to, size),
                                                   inverse) == report
                                 ? 0U
                                 : 1U;
                    wrong += mp::check_finite(exec, gradient, inverse) == report ? 0U : 1U;
                    for (std::size_t i = 0; i < results.size(); ++i) {
                        const bool inside = i >= to && i < to + size;
                        const auto bits = std::bit_cast<std::uint32_t>(results[i]);
                        const auto expected =
                            inside ? std::bit_cast<std::uint32_t>(expected_value(gradient[i - to], inverse))
                                   : guard;
                        wrong += bits != expected ? 1U : 0U;
                    }
                    if constexpr (std::is_same_v<Value, float>) {
                        std::vector<float> in_place = memory;
                        wrong += mp::unscale_and_check(exec, std::span(in_place).subspan(shift, size),
                                                       inverse) == report
                                     ? 0U
                                     : 1U;
                        wrong += std::memcmp(in_place.data() + shift, results.data() + to,
                                             size * sizeof(float)) != 0
                                     ? 1U
                                     : 0U;
                        for (std::size_t i = 0; i < in_place.size(); ++i) {
                            if (i >= shift && i < shift + size) continue;
                            wrong += std::memcmp(&in_place[i], &memory[i], sizeof(float)) != 0 ? 1U : 0U;
                        }
                    }
                }
            }
        }
        CHECK(wrong == 0);
    });
}

TEST_CASE("results so large that they are written past the caches are the same") {
    // Its own threshold is 64 MiB of results.
    const std::size_t size = (std::size_t{1} << 24) + 77;
    std::vector<mp::bfloat16> gradients(size);
    for (std::size_t i = 0; i < size; ++i) {
        gradients[i] = mp::bfloat16::from_bits(static_cast<std::uint16_t>(i * 40503U >> 8 & 0xbfffU));
    }
    gradients[size - 3] = mp::bfloat16::from_bits(0x7f80);
    gradients[12345678] = mp::bfloat16::from_bits(0xffc0);
    std::vector<float> memory(size + 20);
    on_every_instruction_set([&](mp::cpu exec) {
        for (const int threads : {1, 2}) {
            exec.threads = threads;
            for (const std::size_t shift : {0U, 1U, 13U}) {
                std::fill(memory.begin(), memory.end(), 3.0F);
                const std::span<float> unscaled = std::span(memory).subspan(shift, size);
                const mp::non_finite_report report = mp::unscale_and_check(exec, gradients, unscaled, 0.5F);
                CHECK(report == mp::non_finite_report{1, 1, 12345678});
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < size; ++i) {
                    const float expected = static_cast<float>(gradients[i]) * 0.5F;
                    wrong += std::memcmp(&unscaled[i], &expected, sizeof expected) != 0 ? 1U : 0U;
                }
                for (std::size_t i = 0; i < shift; ++i) wrong += memory[i] != 3.0F ? 1U : 0U;
                for (std::size_t i = shift + size; i < memory.size(); ++i) {
                    wrong += memory[i] != 3.0F ? 1U : 0U;
                }
                CHECK(wrong == 0);
            }
        }
    });
}

TEST_CASE("results that are written past the caches may lie at any byte") {
    constexpr std::size_t size = 5000;
    std::mt19937 random(11);
    std::vector<mp::half> gradients(size);
    for (mp::half& value : gradients) value = random_value<mp::half>(random);
    std::vector<float> expected(size);
    mp::unscale_and_check(mp::cpu{1, mp::instruction_set::portable}, gradients, expected, 0.5F);
    on_every_instruction_set([&](mp::cpu exec) {
        const auto pass =
            mp::detail::select_unscale(mp::detail::gradient_record<mp::half>::record, exec.instructions, 0.5F,
                                       false, mp::detail::large_result / sizeof(float));
        std::size_t wrong = 0;
        for (std::size_t offset = 0; offset < 64; offset += byte_step<float>) {
            placed_array<float> unscaled(offset, size);
            pass(gradients.data(), unscaled.span().data(), size, 0.5F, mp::detail::no_check_limit);
            const std::vector<float> found = unscaled.values();
            wrong += std::memcmp(found.data(), expected.data(), size * sizeof(float)) != 0 ? 1U : 0U;
            wrong += unscaled.is_alone() ? 0U : 1U;
        }
        CHECK(wrong == 0);
    });
}

#if TEST_HAS_MODES

TEST_CASE("modes of rounding and flushing of the caller neither matter nor change") {
    std::vector<mp::half> gradients(1000);
    std::mt19937 random(8);
    for (mp::half& value : gradients) value = random_value<mp::half>(random);
    std::vector<float> expected(gradients.size());
    mp::unscale_and_check(mp::cpu{1, mp::instruction_set::portable}, gradients, expected, 0x1.8p-120F);
    on_every_instruction_set([&](mp::cpu exec) {
        for (const mode_bits control : caller_modes) {
            std::vector<float> unscaled(gradients.size());
            mode_bits after = 0;
            {
                const modes_scope scope(control);
                mp::unscale_and_check(exec, gradients, unscaled, 0x1.8p-120F);
                after = current_modes();
            }
            CHECK(after == control);
            CHECK(std::memcmp(unscaled.data(), expected.data(), expected.size() * sizeof(float)) == 0);
        }
    });
}

#endif
