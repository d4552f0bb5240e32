// SPDX-License-Identifier: MIT
/// \file
/// The loops of bulk conversion. Every one gives the bits of the scalar conversion.
#pragma once

#include <mp/format/operations.hpp>

#include <cstddef>
#include <cstring>

namespace mp::detail {

#if MP_HARDWARE_F16C
/// Eight conversions an instruction, by the builtins: see hardware.hpp for why there is no <immintrin.h>.
using float_x8 = float __attribute__((vector_size(32)));

template <class Format>
std::size_t f16c_narrow_blocks(const float* from, basic_float<Format>* to, std::size_t count) noexcept {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        float_x8 block;
        std::memcpy(&block, from + i, sizeof block);
        const auto bits = __builtin_ia32_vcvtps2ph256(block, 0 /* nearest even */);
        std::memcpy(static_cast<void*>(to + i), &bits, sizeof bits);
    }
    return i;
}

template <class Format>
std::size_t f16c_widen_blocks(const basic_float<Format>* from, float* to, std::size_t count) noexcept {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        short_x8 bits;
        std::memcpy(&bits, from + i, sizeof bits);
        const float_x8 block = __builtin_ia32_vcvtph2ps256(bits);
        std::memcpy(to + i, &block, sizeof block);
    }
    return i;
}
#endif

/// Applies `convert_one` to each element. Blocks of a constant size let the compiler vectorise at -O2 as
/// well, where g++ 12 leaves loops of unknown length alone.
template <class From, class To, class Convert>
void convert_elements(const From* __restrict from, To* __restrict to, std::size_t count,
                      Convert convert_one) noexcept {
    constexpr std::size_t block = 64;
    std::size_t i = 0;
    for (; i + block <= count; i += block) {
        for (std::size_t j = 0; j < block; ++j) to[i + j] = convert_one(from[i + j]);
    }
    for (; i < count; ++i) to[i] = convert_one(from[i]);
}

/// Rounds to nearest even, overflow as saturation::none. The arrays must not overlap.
template <number From, number To>
void convert_nearest(const From* from, To* to, std::size_t count) noexcept {
    std::size_t done = 0;
    if constexpr (std::same_as<From, To>) {
        convert_elements(from, to, count, [](From x) { return round_to<To>(x); });
        return;
    } else if constexpr (reduced<To> && std::same_as<From, float>) {
#if MP_HARDWARE_F16C
        if constexpr (is_binary16<typename To::format>) done = f16c_narrow_blocks(from, to, count);
#endif
    } else if constexpr (reduced<From> && std::same_as<To, float>) {
#if MP_HARDWARE_F16C
        if constexpr (is_binary16<typename From::format>) done = f16c_widen_blocks(from, to, count);
#endif
    }
    convert_elements(from + done, to + done, count - done, [](From x) {
        if constexpr (reduced<From> && reduced<To>) {
            // Exact in float, so rounded once.
            return To(to_float<typename From::format>(x.bits()));
        } else if constexpr (reduced<From>) {
            return static_cast<To>(x);
        } else if constexpr (reduced<To>) {
            return To(x);
        } else {
            return round_to<To>(x);
        }
    });
}

/// Rounds as the projection says.
template <number From, number To>
void convert_projected(const From* from, To* to, std::size_t count, projection p) noexcept {
    if (p == projection{}) {
        convert_nearest(from, to, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) to[i] = round_to<To>(from[i], p);
    }
}

/// The values as floats, exactly.
template <reduced From>
void widen_to_float(const From* from, float* to, std::size_t count) noexcept {
    convert_nearest(from, to, count);
}

}  // namespace mp::detail
