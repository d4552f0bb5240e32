// SPDX-License-Identifier: MIT
/// \file
/// Exact sums and products of many closed extended reals, in integers whose size follows from the formats.
#pragma once

#include <mp/numbers/format/p3109/real_functions.hpp>

#include <cstddef>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The leading 64 bits of an integer of several words, the lowest first, times 2^exponent; sticky if there
/// are more.
template <std::size_t Words>
constexpr extended_real leading_bits(const std::uint64_t (&word)[Words], bool negative, int exponent) {
    std::size_t top = Words - 1;
    while (top > 0 && word[top] == 0) --top;
    const auto at = static_cast<int>(top);
    if (top == 0) return as_real(exact_value{negative, exponent, word[0]});
    const int shift = leading_zeros(word[top]);
    const std::uint64_t below = shift == 0 ? 0 : word[top - 1] >> (64 - shift);
    bool rest = (word[top - 1] << shift) != 0;
    for (std::size_t i = 0; i + 1 < top; ++i) rest = rest || word[i] != 0;
    return as_real(exact_value{negative, exponent + 64 * at - shift, word[top] << shift | below, rest});
}

/// The sum of `Count` products of an element of each of the formats, and of a scale factor that all have in
/// common: a fixed-point number in two's complement, whose lowest bit is the product of the quanta.
template <std::size_t Count, class... Elements>
class real_accumulator {
    static_assert(Count >= 1 && Count <= (std::size_t{1} << 20),
                  "mp: blocks of P3109 have 1 to 2^20 elements");

    static constexpr int lowest_exponent = (layout_of<format_of_t<Elements>>::quantum_exponent + ...);
    /// Products of elements, 48 bits of scale factors, 20 of a count, a sign.
    static constexpr int bits =
        ((layout_of<format_of_t<Elements>>::max_exponent + 1) + ...) - lowest_exponent + 48 + 20 + 1;
    static constexpr std::size_t words = static_cast<std::size_t>(bits) / 64 + 3;

public:
    /// The scale factor is that of all terms.
    explicit constexpr real_accumulator(const extended_real& scale)
        : exponent_(lowest_exponent + scale.value.exponent) {}

    /// Adds a term with its scale factor.
    constexpr void add(const extended_real& x) {
        if (x.kind != category::finite) {
            special_ = real_sum(special_, x);
            return;
        }
        const int position = x.value.exponent - exponent_;
        const int shift = position % 64;
        const std::uint64_t low = static_cast<std::uint64_t>(x.value.significand);
        const std::uint64_t high = static_cast<std::uint64_t>(x.value.significand >> 64);
        const auto carried = [&](std::uint64_t y) { return shift == 0 ? 0 : y >> (64 - shift); };
        const std::uint64_t term[3]{low << shift, high << shift | carried(low), carried(high)};
        bool carry = x.value.negative;
        for (std::size_t i = static_cast<std::size_t>(position) / 64, k = 0; i < words; ++i, ++k) {
            if (k >= 3 && carry == x.value.negative) break;  // nothing more to add or to take away
            const std::uint64_t digit = k < 3 ? term[k] : 0;
            const std::uint64_t summand = x.value.negative ? ~digit : digit;
            const std::uint64_t partial = word_[i] + summand;
            const std::uint64_t sum = partial + (carry ? 1 : 0);
            carry = partial < summand || sum < partial;
            word_[i] = sum;
        }
    }

    /// The sum.
    [[nodiscard]] constexpr extended_real result() const {
        if (!special_.is_zero()) return special_;
        const bool negative = word_[words - 1] >> 63 != 0;
        std::uint64_t magnitude[words]{};
        bool carry = negative;
        for (std::size_t i = 0; i < words; ++i) {
            magnitude[i] = (negative ? ~word_[i] : word_[i]) + (carry ? 1 : 0);
            carry = carry && magnitude[i] == 0;
        }
        return leading_bits(magnitude, negative, exponent_);
    }

private:
    std::uint64_t word_[words]{};
    int exponent_;
    extended_real special_;  ///< the sum of infinities and NaNs
};

/// The product of up to `Count` exact numbers of at most 48 bits.
template <std::size_t Count>
class real_factors {
    static_assert(Count >= 1 && Count <= (std::size_t{1} << 13),
                  "mp: products of P3109 have 1 to 2^13 factors");

public:
    constexpr void multiply(const extended_real& x) {
        special_ =
            real_product(special_, x.kind == category::finite ? real_integer(x.is_negative() ? -1 : 1) : x);
        if (x.kind != category::finite) return;
        const auto factor = static_cast<std::uint64_t>(x.value.significand);
        std::uint64_t carry = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const uint128 product = static_cast<uint128>(word_[i]) * factor + carry;
            word_[i] = static_cast<std::uint64_t>(product);
            carry = static_cast<std::uint64_t>(product >> 64);
        }
        if (carry != 0) word_[size_++] = carry;
        exponent_ += x.value.exponent;
    }

    /// The product.
    [[nodiscard]] constexpr extended_real result() const {
        if (special_.kind != category::finite) return special_;
        return leading_bits(word_, special_.is_negative(), exponent_);
    }

private:
    std::uint64_t word_[Count * 48 / 64 + 2]{1};
    std::size_t size_ = 1;
    int exponent_ = 0;
    extended_real special_ = real_integer(1);  ///< 1 or -1, or what an infinity, a NaN or a zero makes of it
};

}}  // namespace mp::detail
