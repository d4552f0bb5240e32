// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace oracle {

/// A natural number of at most 135168 bits with schoolbook arithmetic.
///
/// Deliberately plain: every operation is the one taught with pencil and paper, on 32-bit digits, so that it
/// can be read and believed. A result that does not fit throws std::length_error.
class natural {
public:
    natural() = default;

    natural(std::uint64_t value) {
        while (value != 0) {
            append(static_cast<std::uint32_t>(value));
            value >>= 32;
        }
    }

    natural(const natural& other) : size_(other.size_) { std::copy_n(other.digit_, size_, digit_); }

    natural& operator=(const natural& other) {
        if (this == &other) return *this;  // std::copy_n must not get the same range twice
        size_ = other.size_;
        std::copy_n(other.digit_, size_, digit_);
        return *this;
    }

    bool is_zero() const { return size_ == 0; }

    bool is_odd() const { return size_ != 0 && (digit_[0] & 1U) != 0; }

    /// The number of bits up to the leading one; 0 for zero.
    int bit_length() const {
        if (size_ == 0) return 0;
        int bits = 32 * (size_ - 1);
        for (std::uint32_t top = digit_[size_ - 1]; top != 0; top >>= 1) ++bits;
        return bits;
    }

    /// The value modulo 2^64.
    std::uint64_t low_bits() const {
        const std::uint64_t low = size_ > 0 ? digit_[0] : 0;
        const std::uint64_t high = size_ > 1 ? digit_[1] : 0;
        return low | high << 32;
    }

    friend natural operator+(const natural& left, const natural& right) {
        natural sum;
        std::uint64_t carry = 0;
        for (int i = 0; i < std::max(left.size_, right.size_); ++i) {
            carry += std::uint64_t{left.at(i)} + right.at(i);
            sum.append(static_cast<std::uint32_t>(carry));
            carry >>= 32;
        }
        if (carry != 0) sum.append(static_cast<std::uint32_t>(carry));
        return sum;
    }

    /// The difference; `left` must not be less than `right`.
    friend natural operator-(const natural& left, const natural& right) {
        natural difference;
        std::int64_t carry = 0;
        for (int i = 0; i < left.size_; ++i) {
            carry += std::int64_t{left.at(i)} - std::int64_t{right.at(i)};
            difference.append(static_cast<std::uint32_t>(carry & 0xffffffff));
            carry >>= 32;
        }
        if (carry != 0 || right.size_ > left.size_)
            throw std::domain_error("oracle::natural: negative difference");
        difference.trim();
        return difference;
    }

    friend natural operator*(const natural& left, const natural& right) {
        natural product;
        if (left.is_zero() || right.is_zero()) return product;
        for (int i = 0; i < left.size_ + right.size_; ++i) product.append(0);
        for (int i = 0; i < left.size_; ++i) {
            std::uint64_t carry = 0;
            for (int j = 0; j < right.size_; ++j) {
                carry += std::uint64_t{left.digit_[i]} * right.digit_[j] + product.digit_[i + j];
                product.digit_[i + j] = static_cast<std::uint32_t>(carry);
                carry >>= 32;
            }
            product.digit_[i + right.size_] = static_cast<std::uint32_t>(carry);
        }
        product.trim();
        return product;
    }

    /// The value times 2^count.
    friend natural operator<<(const natural& value, int count) {
        natural shifted;
        if (value.is_zero()) return shifted;
        for (int i = 0; i < count / 32; ++i) shifted.append(0);
        std::uint64_t carry = 0;
        for (int i = 0; i < value.size_; ++i) {
            carry |= std::uint64_t{value.digit_[i]} << (count % 32);
            shifted.append(static_cast<std::uint32_t>(carry));
            carry >>= 32;
        }
        if (carry != 0) shifted.append(static_cast<std::uint32_t>(carry));
        return shifted;
    }

    /// Divides this number by `divisor` in place and returns the remainder.
    std::uint32_t divide(std::uint32_t divisor) {
        std::uint64_t rest = 0;
        for (int i = size_ - 1; i >= 0; --i) {
            rest = rest << 32 | digit_[i];
            digit_[i] = static_cast<std::uint32_t>(rest / divisor);
            rest %= divisor;
        }
        trim();
        return static_cast<std::uint32_t>(rest);
    }

    friend std::strong_ordering operator<=>(const natural& left, const natural& right) {
        if (left.size_ != right.size_) return left.size_ <=> right.size_;
        for (int i = left.size_ - 1; i >= 0; --i) {
            if (left.digit_[i] != right.digit_[i]) return left.digit_[i] <=> right.digit_[i];
        }
        return std::strong_ordering::equal;
    }

    friend bool operator==(const natural& left, const natural& right) { return (left <=> right) == 0; }

    /// base^exponent for a small base.
    static natural power(std::uint32_t base, int exponent) {
        natural result = 1;
        for (int i = 0; i < exponent; ++i) result = result * natural(base);
        return result;
    }

    /// The decimal digits, without leading zeros; "0" for zero.
    std::string decimal() const {
        natural rest = *this;
        std::string digits;
        do {
            digits.push_back(static_cast<char>('0' + rest.divide(10)));
        } while (!rest.is_zero());
        std::reverse(digits.begin(), digits.end());
        return digits;
    }

    /// The number written by decimal digits.
    static natural from_decimal(const std::string& digits) {
        natural result;
        for (const char digit : digits)
            result = result * natural(10) + natural(static_cast<std::uint64_t>(digit - '0'));
        return result;
    }

private:
    static constexpr int capacity = 4224;

    std::uint32_t at(int index) const { return index < size_ ? digit_[index] : 0; }

    void append(std::uint32_t digit) {
        if (size_ == capacity) throw std::length_error("oracle::natural: more than 135168 bits");
        digit_[size_++] = digit;
    }

    void trim() {
        while (size_ > 0 && digit_[size_ - 1] == 0) --size_;
    }

    std::uint32_t digit_[capacity];
    int size_ = 0;
};

}  // namespace oracle
