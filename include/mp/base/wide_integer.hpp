// SPDX-License-Identifier: MIT
/// \file
/// An unsigned integer of up to many words, with the few operations that decimal conversion needs.
#pragma once

#include <mp/base/bits.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// 5^n for 0 <= n <= 27, the powers of five that 64 bits hold.
MP_HOST_DEVICE constexpr std::uint64_t power_of_five(int n) {
    // Without branches, which would be mispredicted.
    const std::uint64_t low =
        ((n & 1) != 0 ? 5U : 1U) * ((n & 2) != 0 ? 25U : 1U) * ((n & 4) != 0 ? 625U : 1U);
    return low * ((n & 8) != 0 ? 390625U : 1U) * ((n & 16) != 0 ? 152587890625U : 1U);
}

/// floor(n * log10(2)) and the ceiling, for |n| <= 80000. 1323943922167 / 2^42 is too small by 1.5e-13, so the
/// product by less than 1.2e-8, and no |n| * log10(2) but zero lies closer to an integer than 3.1e-6.
MP_HOST_DEVICE constexpr int floor_log10_of_power_of_two(int n) {
    return static_cast<int>((std::int64_t{n} * 1323943922167) >> 42);
}
MP_HOST_DEVICE constexpr int ceil_log10_of_power_of_two(int n) {
    return -floor_log10_of_power_of_two(-n);
}

/// An unsigned integer of at most 32 * Capacity bits in 32-bit words, lowest first. Only the words in use are
/// ever touched, so a large capacity costs nothing but stack. The caller sees to it that results fit.
template <int Capacity>
struct wide_integer {
    std::uint32_t word[std::size_t{Capacity}];
    int size = 0;  ///< words in use; the highest of them is not zero

    MP_HOST_DEVICE constexpr explicit wide_integer(std::uint64_t x = 0) {
        for (; x != 0; x >>= 32) word[size++] = static_cast<std::uint32_t>(x);
    }
    MP_HOST_DEVICE constexpr wide_integer(const wide_integer& other) { *this = other; }
    // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): onto itself it changes nothing
    MP_HOST_DEVICE constexpr wide_integer& operator=(const wide_integer& other) {
        for (int i = 0; i < other.size; ++i) word[i] = other.word[i];
        size = other.size;
        return *this;
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr bool is_zero() const { return size == 0; }

    MP_HOST_DEVICE constexpr void trim() {
        while (size > 0 && word[size - 1] == 0) --size;
    }

    /// this = this * factor + addend
    MP_HOST_DEVICE constexpr void multiply_add(std::uint32_t factor, std::uint32_t addend) {
        std::uint64_t carry = addend;
        for (int i = 0; i < size; ++i) {
            carry += std::uint64_t{word[i]} * factor;
            word[i] = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
        if (carry != 0) word[size++] = static_cast<std::uint32_t>(carry);
    }

    MP_HOST_DEVICE constexpr void multiply_power_of_five(int power) {
        for (; power >= 13; power -= 13) multiply_add(1220703125, 0);  // 5^13 < 2^32
        if (power > 0) multiply_add(static_cast<std::uint32_t>(power_of_five(power)), 0);
    }

    MP_HOST_DEVICE constexpr void shift_left(int count) {
        if (size == 0 || count == 0) return;
        const int words = count / 32;
        const int bits = count % 32;
        const int top = size + words;
        word[top] = 0;
        for (int i = size - 1; i >= 0; --i) {
            const std::uint64_t shifted = std::uint64_t{word[i]} << bits;
            word[i + words + 1] = (i == size - 1 ? 0 : word[i + words + 1]) | std::uint32_t(shifted >> 32);
            word[i + words] = static_cast<std::uint32_t>(shifted);
        }
        for (int i = 0; i < words; ++i) word[i] = 0;
        size = top + 1;
        trim();
    }

    // As for built-in integers.
    MP_HOST_DEVICE constexpr void operator*=(std::uint32_t factor) { multiply_add(factor, 0); }
    MP_HOST_DEVICE constexpr void operator<<=(int count) { shift_left(count); }

    /// this = this - other * factor * 2^(32 * offset), modulo 2^(32 * size); returns whether that is
    /// negative.
    MP_HOST_DEVICE constexpr bool subtract_product(const wide_integer& other, std::uint32_t factor,
                                                   int offset) {
        std::uint64_t carry = 0;
        std::uint64_t borrow = 0;
        for (int i = 0; i + offset < size; ++i) {
            carry += i < other.size ? std::uint64_t{other.word[i]} * factor : 0;
            const std::uint64_t difference =
                std::uint64_t{word[i + offset]} - static_cast<std::uint32_t>(carry) - borrow;
            word[i + offset] = static_cast<std::uint32_t>(difference);
            borrow = difference >> 63;
            carry >>= 32;
        }
        return borrow != 0 || carry != 0;
    }

    /// this = this + other * 2^(32 * offset), modulo 2^(32 * size); returns whether a one was carried out.
    MP_HOST_DEVICE constexpr bool add_back(const wide_integer& other, int offset) {
        std::uint64_t carry = 0;
        for (int i = 0; i + offset < size; ++i) {
            carry += std::uint64_t{word[i + offset]} + (i < other.size ? other.word[i] : 0);
            word[i + offset] = static_cast<std::uint32_t>(carry);
            carry >>= 32;
        }
        return carry != 0;
    }

    [[nodiscard]] MP_HOST_DEVICE constexpr wide_integer operator+(const wide_integer& other) const {
        wide_integer result = *this;
        while (result.size < other.size) result.word[result.size++] = 0;
        if (result.add_back(other, 0)) result.word[result.size++] = 1;
        return result;
    }

    /// Takes other * q * 2^(32 * offset) away, with the largest q for which that is possible, and returns q.
    /// The highest bit of the highest word of `other` must be set, and q must be less than 2^32.
    ///
    /// (Knuth, The Art of Computer Programming, volume 2, algorithm 4.3.1 D. The estimate from the highest
    /// words is never too small, and with that bit set too large by at most 2: theorems A and B there.)
    MP_HOST_DEVICE constexpr std::uint32_t divide_step(const wide_integer& other, int offset) {
        const int top = other.size + offset;
        const std::uint64_t high = top < size ? word[top] : 0;
        const std::uint64_t low = top - 1 < size ? word[top - 1] : 0;
        std::uint64_t estimate = (high << 32 | low) / other.word[other.size - 1];
        if (estimate > 0xffffffffu) estimate = 0xffffffffu;
        auto quotient = static_cast<std::uint32_t>(estimate);
        if (quotient != 0 && subtract_product(other, quotient, offset)) {
            do {
                --quotient;
            } while (!add_back(other, offset));
        }
        trim();
        return quotient;
    }

    /// Divides by a small number, and returns the remainder.
    MP_HOST_DEVICE constexpr std::uint32_t divide(std::uint32_t divisor) {
        std::uint64_t rest = 0;
        for (int i = size - 1; i >= 0; --i) {
            rest = rest << 32 | word[i];
            word[i] = static_cast<std::uint32_t>(rest / divisor);
            rest %= divisor;
        }
        trim();
        return static_cast<std::uint32_t>(rest);
    }

    /// Negative, zero or positive as this is less than, equal to or greater than other.
    [[nodiscard]] MP_HOST_DEVICE constexpr int compare(const wide_integer& other) const {
        if (size != other.size) return size < other.size ? -1 : 1;
        for (int i = size - 1; i >= 0; --i) {
            if (word[i] != other.word[i]) return word[i] < other.word[i] ? -1 : 1;
        }
        return 0;
    }

    /// The number of bits up to the highest one bit.
    [[nodiscard]] MP_HOST_DEVICE constexpr int bit_length() const {
        return size == 0 ? 0 : 32 * size + 32 - leading_zeros(std::uint64_t{word[size - 1]});
    }
};

}}  // namespace mp::detail
