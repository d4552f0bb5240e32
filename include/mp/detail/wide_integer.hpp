// SPDX-License-Identifier: MIT
/// \file
/// A fixed-size unsigned integer of many words, with the few operations that decimal conversion needs.
#pragma once

#include <mp/detail/bits.hpp>

#include <cstdint>

namespace mp::detail {

/// An unsigned integer of 32 * Words bits in 32-bit words, lowest first. The caller sees to it that results
/// fit.
template <int Words>
struct wide_integer {
    std::uint32_t word[Words]{};

    constexpr wide_integer() = default;
    MP_HOST_DEVICE constexpr explicit wide_integer(std::uint64_t x) {
        word[0] = static_cast<std::uint32_t>(x);
        word[1] = static_cast<std::uint32_t>(x >> 32);
    }

    /// this = this * factor + addend
    MP_HOST_DEVICE constexpr void multiply_add(std::uint32_t factor, std::uint32_t addend) {
        std::uint64_t carry = addend;
        for (std::uint32_t& w : word) {
            carry += std::uint64_t{w} * factor;
            w = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
    }

    MP_HOST_DEVICE constexpr void multiply_power_of_ten(int power) {
        for (; power >= 9; power -= 9) multiply_add(1000000000, 0);
        for (; power > 0; --power) multiply_add(10, 0);
    }

    MP_HOST_DEVICE constexpr void shift_left(int count) {
        const int words = count / 32;
        const int bits = count % 32;
        for (int i = Words - 1; i >= 0; --i) {
            const std::uint64_t high = i - words >= 0 ? word[i - words] : 0;
            const std::uint64_t low = i - words - 1 >= 0 ? word[i - words - 1] : 0;
            word[i] = static_cast<std::uint32_t>(((high << 32 | low) << bits) >> 32);
        }
    }

    MP_HOST_DEVICE constexpr void subtract(const wide_integer& other) {
        std::uint64_t borrow = 0;
        for (int i = 0; i < Words; ++i) {
            const std::uint64_t difference = std::uint64_t{word[i]} - other.word[i] - borrow;
            word[i] = static_cast<std::uint32_t>(difference);
            borrow = difference >> 63;
        }
    }

    MP_HOST_DEVICE constexpr void add(const wide_integer& other) {
        std::uint64_t carry = 0;
        for (int i = 0; i < Words; ++i) {
            carry += std::uint64_t{word[i]} + other.word[i];
            word[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
    }

    /// Negative, zero or positive as this is less than, equal to or greater than other.
    [[nodiscard]] MP_HOST_DEVICE constexpr int compare(const wide_integer& other) const {
        for (int i = Words - 1; i >= 0; --i) {
            if (word[i] != other.word[i]) return word[i] < other.word[i] ? -1 : 1;
        }
        return 0;
    }

    /// The number of bits up to the highest one bit.
    [[nodiscard]] MP_HOST_DEVICE constexpr int bit_length() const {
        for (int i = Words - 1; i >= 0; --i) {
            if (word[i] != 0) return 32 * i + 64 - leading_zeros(std::uint64_t{word[i]});
        }
        return 0;
    }
};

}  // namespace mp::detail
