// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "oracle/exact.hpp"

namespace oracle {

/// Reproducible 64-bit random numbers, the same on every platform: the output function of SplitMix64 (Steele,
/// Lea and Flood, "Fast splittable pseudorandom number generators", 2014) on a counter.
class random_bits {
public:
    explicit random_bits(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31);
    }

    /// A number below `limit`.
    std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>((next() >> 32) % limit); }

private:
    std::uint64_t state_;
};

/// A code of the format in which the edges are frequent: powers of two and their neighbours, subnormal
/// numbers, the largest numbers, infinities and NaNs, fractions with one bit or with all.
inline std::uint64_t weighted_code(random_bits& random, const format& f) {
    const std::uint64_t fraction = (std::uint64_t{1} << f.fraction_bits) - 1;
    const std::uint64_t all = code_count(f) - 1;
    const std::uint64_t bits = random.next() & all;
    switch (random.below(12)) {
        case 0:
            return bits & ~fraction;
        case 1:
            return bits | fraction;
        case 2:
            return bits & (sign_bit(f) | (2 * fraction + 1));
        case 3:
            return (bits | infinity_code(f)) & all;
        case 4:
            return (bits & ~fraction) |
                   (std::uint64_t{1} << random.below(static_cast<std::uint32_t>(f.fraction_bits) + 1) >> 1);
        case 5:
            return ((bits & sign_bit(f)) | max_finite_code(f)) - random.below(4);
        case 6:
            return (bits & sign_bit(f)) | random.below(4);
        default:
            return bits;
    }
}

/// A partner for `code`: near it in magnitude, so that sums cancel and quotients lie near one, or far from
/// it.
inline std::uint64_t weighted_partner(random_bits& random, const format& f, std::uint64_t code) {
    if (random.below(3) != 0) return weighted_code(random, f);
    const std::uint64_t exponent_step = std::uint64_t{random.below(5)} << f.fraction_bits;
    const std::uint64_t changed = random.next() & (sign_bit(f) | ((std::uint64_t{1} << f.fraction_bits) - 1));
    return ((code ^ changed) + exponent_step) & (code_count(f) - 1);
}

}  // namespace oracle
