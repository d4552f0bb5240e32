// SPDX-License-Identifier: MIT
/// \file
/// Unsigned integers of 128 bits: the compiler's, or where it has none, as for most targets of 32 bits, a
/// pair of words with the same operators and the same results; and bit operations that work in constant expressions, on the host and on the device. The functions of <bit>
/// are host-only in the eyes of nvcc.
#pragma once

#include <mp/config.hpp>

#include <concepts>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Two words of 64 bits as one unsigned integer. Everything is modulo 2^128, as with built-in integers;
/// shifts are by 0 to 127 places, and divisors are not zero.
class word_pair {
public:
    constexpr word_pair() noexcept = default;
    MP_HOST_DEVICE constexpr word_pair(std::uint64_t high, std::uint64_t low) noexcept
        : low_(low), high_(high) {}
    /// Any integer, negative ones modulo 2^128; also those of 128 bits that strict C++ does not count as
    /// integers.
    template <class Integer>
        requires(std::integral<Integer> || sizeof(Integer) == 16)
    // NOLINTNEXTLINE(google-explicit-constructor): as among the built-in integers
    MP_HOST_DEVICE constexpr word_pair(Integer x) noexcept
        : low_(static_cast<std::uint64_t>(x)), high_(upper_half(x)) {}

    /// The lowest bits, as a conversion between built-in integers.
    template <class Integer>
        requires(std::integral<Integer> || sizeof(Integer) == 16)
    MP_HOST_DEVICE constexpr explicit operator Integer() const noexcept {
        if constexpr (sizeof(Integer) == 16) {
            return static_cast<Integer>(static_cast<Integer>(high_) << 64 | static_cast<Integer>(low_));
        } else if constexpr (std::same_as<Integer, bool>) {
            return (low_ | high_) != 0;
        } else {
            return static_cast<Integer>(low_);
        }
    }

    friend MP_HOST_DEVICE constexpr bool operator==(word_pair a, word_pair b) noexcept {
        return a.low_ == b.low_ && a.high_ == b.high_;
    }
    friend MP_HOST_DEVICE constexpr bool operator<(word_pair a, word_pair b) noexcept {
        return a.high_ != b.high_ ? a.high_ < b.high_ : a.low_ < b.low_;
    }
    friend MP_HOST_DEVICE constexpr bool operator>(word_pair a, word_pair b) noexcept { return b < a; }
    friend MP_HOST_DEVICE constexpr bool operator<=(word_pair a, word_pair b) noexcept { return !(b < a); }
    friend MP_HOST_DEVICE constexpr bool operator>=(word_pair a, word_pair b) noexcept { return !(a < b); }

    friend MP_HOST_DEVICE constexpr word_pair operator&(word_pair a, word_pair b) noexcept {
        return {a.high_ & b.high_, a.low_ & b.low_};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator|(word_pair a, word_pair b) noexcept {
        return {a.high_ | b.high_, a.low_ | b.low_};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator^(word_pair a, word_pair b) noexcept {
        return {a.high_ ^ b.high_, a.low_ ^ b.low_};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator~(word_pair a) noexcept { return {~a.high_, ~a.low_}; }

    friend MP_HOST_DEVICE constexpr word_pair operator<<(word_pair a, int count) noexcept {
        if (count == 0) return a;
        if (count >= 64) return {a.low_ << (count - 64), std::uint64_t{0}};
        return {a.high_ << count | a.low_ >> (64 - count), a.low_ << count};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator>>(word_pair a, int count) noexcept {
        if (count == 0) return a;
        if (count >= 64) return {std::uint64_t{0}, a.high_ >> (count - 64)};
        return {a.high_ >> count, a.low_ >> count | a.high_ << (64 - count)};
    }

    friend MP_HOST_DEVICE constexpr word_pair operator+(word_pair a, word_pair b) noexcept {
        const std::uint64_t low = a.low_ + b.low_;
        return {a.high_ + b.high_ + (low < a.low_ ? 1 : 0), low};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator-(word_pair a, word_pair b) noexcept {
        return {a.high_ - b.high_ - (a.low_ < b.low_ ? 1 : 0), a.low_ - b.low_};
    }
    friend MP_HOST_DEVICE constexpr word_pair operator*(word_pair a, word_pair b) noexcept {
        word_pair product = product_of_words(a.low_, b.low_);
        product.high_ += a.high_ * b.low_ + a.low_ * b.high_;
        return product;
    }
    friend MP_HOST_DEVICE constexpr word_pair operator/(word_pair a, word_pair b) noexcept {
        return divide(a, b);
    }
    friend MP_HOST_DEVICE constexpr word_pair operator%(word_pair a, word_pair b) noexcept {
        return a - divide(a, b) * b;
    }

    MP_HOST_DEVICE constexpr word_pair& operator<<=(int count) noexcept { return *this = *this << count; }
    MP_HOST_DEVICE constexpr word_pair& operator>>=(int count) noexcept { return *this = *this >> count; }
    MP_HOST_DEVICE constexpr word_pair& operator|=(word_pair x) noexcept { return *this = *this | x; }
    MP_HOST_DEVICE constexpr word_pair& operator&=(word_pair x) noexcept { return *this = *this & x; }
    MP_HOST_DEVICE constexpr word_pair& operator+=(word_pair x) noexcept { return *this = *this + x; }
    MP_HOST_DEVICE constexpr word_pair& operator-=(word_pair x) noexcept { return *this = *this - x; }
    MP_HOST_DEVICE constexpr word_pair& operator*=(word_pair x) noexcept { return *this = *this * x; }
    MP_HOST_DEVICE constexpr word_pair& operator/=(word_pair x) noexcept { return *this = *this / x; }

private:
    template <class Integer>
    MP_HOST_DEVICE static constexpr std::uint64_t upper_half(Integer x) noexcept {
        if constexpr (sizeof(Integer) == 16) {
            return static_cast<std::uint64_t>(x >> 64);
        } else if constexpr (std::signed_integral<Integer>) {
            return x < Integer{0} ? ~std::uint64_t{0} : 0;
        } else {
            return 0;
        }
    }

    /// From the products of halves. The sum in the middle cannot overflow: a product of two 32-bit numbers is
    /// at most 2^64 - 2^33 + 1, so that two more numbers of 32 bits can be added.
    MP_HOST_DEVICE static constexpr word_pair product_of_words(std::uint64_t a, std::uint64_t b) noexcept {
        constexpr std::uint64_t half = 0xffffffffu;
        const std::uint64_t lowest = (a & half) * (b & half);
        const std::uint64_t first = (a >> 32) * (b & half) + (lowest >> 32);
        const std::uint64_t second = (a & half) * (b >> 32) + (first & half);
        return {(a >> 32) * (b >> 32) + (first >> 32) + (second >> 32), second << 32 | (lowest & half)};
    }

    MP_HOST_DEVICE static constexpr word_pair divide(word_pair a, word_pair b) noexcept;

    std::uint64_t low_ = 0;
    std::uint64_t high_ = 0;
};

/// Restoring division, bit by bit below what the division of words covers. A remainder is less than the
/// divisor, so that with one more bit it is less than twice the divisor, and one subtraction is enough.
MP_HOST_DEVICE constexpr word_pair word_pair::divide(word_pair a, word_pair b) noexcept {
    if (a.high_ == 0 && b.high_ == 0) return a.low_ / b.low_;
    if (a < b) return {};
    if (b.high_ == 0) {
        const std::uint64_t divisor = b.low_;
        std::uint64_t rest = a.high_ % divisor;
        std::uint64_t low = 0;
        for (int i = 63; i >= 0; --i) {
            const bool carry = rest >> 63 != 0;
            rest = rest << 1 | (a.low_ >> i & 1);
            low <<= 1;
            if (carry || rest >= divisor) {
                rest -= divisor;
                low |= 1;
            }
        }
        return {a.high_ / divisor, low};
    }
    int shift = __builtin_clzll(b.high_) - __builtin_clzll(a.high_);
    std::uint64_t quotient = 0;
    for (b <<= shift; shift >= 0; --shift, b >>= 1) {
        quotient <<= 1;
        if (a >= b) {
            a -= b;
            quotient |= 1;
        }
    }
    return quotient;
}

#if MP_HAS_INT128
__extension__ using uint128 = unsigned __int128;
#else
using uint128 = word_pair;
#endif

/// Whether the highest bit is set: the sign of a difference modulo 2^128.
MP_HOST_DEVICE constexpr bool highest_bit(uint128 x) noexcept {
    return static_cast<std::uint64_t>(x >> 64) >> 63 != 0;
}

/// floor(a * b * 2^-shift) modulo 2^64 for signed words and 0 <= shift <= 64.
MP_HOST_DEVICE constexpr std::int64_t signed_product(std::int64_t a, std::int64_t b, int shift) noexcept {
#if MP_HAS_INT128
    __extension__ using int128 = __int128;
    return static_cast<std::int64_t>((static_cast<int128>(a) * b) >> shift);
#else
    // As a number without sign a negative factor is larger by 2^64, so the product by 2^64 times the other.
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    const std::uint64_t excess = (a < 0 ? y : 0) + (b < 0 ? x : 0);
    const uint128 product = static_cast<uint128>(x) * y - (static_cast<uint128>(excess) << 64);
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(product >> shift));
#endif
}

/// The object of type To with the same bytes as `from`, as std::bit_cast.
template <class To, class From>
MP_HOST_DEVICE constexpr To bit_cast(const From& from) noexcept {
    static_assert(sizeof(To) == sizeof(From));
    return __builtin_bit_cast(To, from);
}

/// static_cast, where From may be To itself on some targets or for some arguments of a template: no compiler
/// calls the cast useless.
template <class To, class From>
MP_HOST_DEVICE constexpr To as(From x) noexcept {
    return static_cast<To>(x);
}

/// a == b of floating-point numbers where exactly that is meant; warnings of == hold for all other places.
template <class Float>
MP_HOST_DEVICE constexpr bool same_value(Float a, Float b) noexcept {
    return a <= b && a >= b;
}

/// Zero bits above the highest one bit; x must not be zero.
MP_HOST_DEVICE constexpr int leading_zeros(std::uint64_t x) noexcept {
    return __builtin_clzll(x);
}

MP_HOST_DEVICE constexpr int leading_zeros(uint128 x) noexcept {
    const auto high = static_cast<std::uint64_t>(x >> 64);
    return high != 0 ? leading_zeros(high) : 64 + leading_zeros(static_cast<std::uint64_t>(x));
}

}}  // namespace mp::detail
