// SPDX-License-Identifier: MIT
/// \file
/// What the tests of the vectors of conversion share: instruction sets and values.
#pragma once

#include <mp/block_scaled.hpp>
#include <mp/convert.hpp>
#include <mp/numbers/simd/processor.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "numbers/simd/caller_modes.hpp"
#include "oracle/library.hpp"
#include "oracle/random.hpp"

/// The instruction_sets of this processor; vector_instruction_sets() leaves portable out.
inline std::vector<mp::instruction_set> all_instruction_sets() {
    std::vector<mp::instruction_set> instruction_sets;
    for (int i = 0; i <= static_cast<int>(mp::processor_instruction_set()); ++i) {
        if (!mp::processor_has(static_cast<mp::instruction_set>(i))) continue;
        if (i <= static_cast<int>(mp::instruction_set::avx512)) {
            instruction_sets.push_back(static_cast<mp::instruction_set>(i));
        }
    }
    return instruction_sets;
}
inline std::vector<mp::instruction_set> vector_instruction_sets() {
    auto instruction_sets = all_instruction_sets();
    instruction_sets.erase(instruction_sets.begin());
    return instruction_sets;
}

inline constexpr int block_value_kinds = 8;
inline constexpr const char* block_value_names[block_value_kinds] = {
    "random bits", "some not finite", "normal", "small", "around zero", "large", "few bits", "blocks alike"};

/// Values by which kernels for blocks are tried.
template <class Value>
std::vector<Value> block_values(std::size_t count, int kind, std::uint64_t seed) {
    oracle::random_bits random(seed);
    const oracle::format& format = oracle::format_of<Value>;
    std::vector<Value> values;
    const auto any = [&] { return oracle::value_of<Value>(random.next() % (2 * oracle::sign_bit(format))); };
    const auto fraction = [&] { return 2 * static_cast<float>(random.below(1u << 24)) * 0x1p-24f - 1; };
    const auto power = [&](int low, int high) {
        return std::ldexp(1.0f, low + static_cast<int>(random.below(static_cast<unsigned>(high - low + 1))));
    };
    float magnitude = 1;
    std::uint32_t choice = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 16 == 0) {
            magnitude = power(-30, 30);
            choice = random.below(6);
        }
        switch (kind) {
            case 0:
                values.push_back(any());
                break;
            case 1: {
                // One in a hundred is infinite or NaN or extreme.
                const bool special = random.below(100) == 0;
                values.push_back(special ? oracle::value_of<Value>(weighted_code(random, format))
                                         : Value(fraction()));
                break;
            }
            case 2:
                values.push_back(Value(fraction() * magnitude));
                break;
            case 3:
                values.push_back(Value(std::ldexp(fraction(), -100) * power(-49, 0)));
                break;
            case 4:
                // Subnormal codes, and zeros of both signs.
                values.push_back(oracle::value_of<Value>(
                    random.below(3) == 0 ? random.below(2) * oracle::sign_bit(format)
                                         : random.below(600) | random.below(2) * oracle::sign_bit(format)));
                break;
            case 5:
                values.push_back(Value(fraction() * power(100, 127)));
                break;
            case 6:
                values.push_back(Value(static_cast<float>(static_cast<int>(random.below(65)) - 32) *
                                       (i % 64 < 32 ? 1.0f : magnitude)));
                break;
            default: {
                // Blocks of nothing but zeros, infinities, NaNs, the largest or the smallest number.
                const std::uint64_t largest = oracle::sign_bit(format) - 1;
                const std::uint64_t exponent = std::uint64_t{1} << format.fraction_bits;
                const std::uint64_t infinity = oracle::sign_bit(format) - exponent;
                const std::uint64_t codes[] = {0, infinity, largest, infinity - 1, 1, exponent};
                values.push_back(oracle::value_of<Value>(codes[choice]));
            }
        }
    }
    return values;
}
