// SPDX-License-Identifier: MIT
#pragma once

#include <mp/arrays/analysis/runtime_format.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

/// Operands where roundings are close: of few bits, of many, near each other, and of all sizes.
inline std::vector<double> operands(std::mt19937_64& random, std::size_t count, const mp::runtime_format& f) {
    std::vector<double> result(count);
    const int range = std::min(60, f.emax);
    for (double& x : result) {
        const auto word = random();
        const int bits = word % 3 == 0 ? 53 : word % 3 == 1 ? f.precision : 2;
        const double fraction =
            1 +
            std::ldexp(static_cast<double>(word >> 20 & ((std::uint64_t{1} << (bits - 1)) - 1)), 1 - bits);
        const auto place = static_cast<int>(word >> 8 & 0xff) % 4;
        const int spread = static_cast<int>(word >> 12 & 0xff) % range;
        const int exponent = place == 0   ? f.emin + spread - ((word & 1) != 0 ? 8 : 70)
                             : place == 1 ? f.emax - spread / 8
                                          : spread / 4 - 4;
        x = std::ldexp((word >> 63) != 0 ? -fraction : fraction, exponent);
        if (word % 41 == 0) x = 0;
    }
    return result;
}

inline std::vector<mp::runtime_format> formats() {
    using enum mp::rounding;
    std::vector<mp::runtime_format> result;
    for (mp::runtime_format f :
         {mp::runtime_format{.precision = 11, .emin = -14, .emax = 15},
          mp::runtime_format{.precision = 8, .emin = -126, .emax = 127},
          mp::runtime_format{.precision = 3, .emin = -14, .emax = 15, .subnormals = false},
          mp::runtime_format{.precision = 2, .emin = 0, .emax = 2},
          mp::runtime_format{.precision = 26, .emin = -100, .emax = 100},
          mp::runtime_format{.precision = 52, .emin = -1022, .emax = 1023},
          mp::runtime_format{.precision = 53},
          mp::runtime_format{.precision = 40, .emin = -1000, .emax = 1000, .subnormals = false},
          mp::runtime_format{.precision = 1, .emin = -5, .emax = 5}}) {
        for (const auto round :
             {nearest_even, nearest_away, toward_zero, upward, downward, to_odd, stochastic_a}) {
            f.round = round;
            f.random_bits = std::min(9, 62 - f.precision);
            f.saturate = round == nearest_away ? mp::saturation::finite : mp::saturation::none;
            // Parity is that of the exponent there, which the definition above does not say.
            if (f.precision > 1 || (round != nearest_even && round != to_odd)) result.push_back(f);
        }
    }
    return result;
}
