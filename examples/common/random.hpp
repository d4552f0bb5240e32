// SPDX-License-Identifier: MIT
/// \file
/// Random numbers that are the same on every machine, which the distributions of <random> are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace examples {

/// SplitMix64: the n-th number is a bijective hash of seed + n * an odd constant, so it has all 2^64 states
/// in its period and every seed is a good one. Constants: Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014, as in java.util.SplittableRandom.
class random_numbers {
public:
    explicit random_numbers(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() {
        state_ += 0x9E37'79B9'7F4A'7C15U;
        std::uint64_t bits = state_;
        bits = (bits ^ (bits >> 30)) * 0xBF58'476D'1CE4'E5B9U;
        bits = (bits ^ (bits >> 27)) * 0x94D0'49BB'1331'11EBU;
        return bits ^ (bits >> 31);
    }

    /// Uniform in [-1, 1): 24 random bits, so every value is exact in float.
    float symmetric() { return static_cast<float>(next() >> 40) * 0x1p-23F - 1.0F; }

    /// Uniform in [0, bound) up to a bias of bound / 2^64.
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

    /// Brings the values into a random order (Fisher and Yates).
    template <class Value>
    void shuffle(std::span<Value> values) {
        for (std::size_t left = values.size(); left > 1; --left) {
            std::swap(values[left - 1], values[below(left)]);
        }
    }

private:
    std::uint64_t state_;
};

}  // namespace examples
