// SPDX-License-Identifier: MIT
/// \file
/// A made-up trace, for a first look and for tests.
#pragma once

#include <mp/nn/scaling/trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace replay_scaling {

/// Gradients of a training run as they often look: a million values whose exponents spread like a bell, the
/// largest magnitude falls from a half to some hundredths of it, wavers by a bit or so, and now and then
/// jumps up, sometimes for several steps; a few steps have NaNs that no scale avoids. Always the same:
/// nothing but integers and the four operations make the numbers.
inline std::vector<mp::trace_step> made_up_trace(std::size_t steps) {
    std::uint64_t state = 1;
    // SplitMix64, see Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
    const auto random = [&state] {
        state += 0x9E37'79B9'7F4A'7C15U;
        std::uint64_t bits = state;
        bits = (bits ^ (bits >> 30)) * 0xBF58'476D'1CE4'E5B9U;
        bits = (bits ^ (bits >> 27)) * 0x94D0'49BB'1331'11EBU;
        return bits ^ (bits >> 31);
    };
    const auto uniform = [&random] { return static_cast<double>(random() >> 40) * 0x1p-24; };
    // 2^level, with straight lines between the powers of two.
    const auto magnitude = [](double level) {
        const double whole = std::floor(level);
        return std::ldexp(1.0 + (level - whole), static_cast<int>(whole));
    };
    // A binomial distribution of 100 throws: a standard deviation of 5 bits.
    constexpr int throws = 100;
    std::vector<std::uint64_t> bell;
    double part = std::ldexp(1e6, -throws);
    for (int k = 0; k <= throws; ++k) {
        bell.push_back(static_cast<std::uint64_t>(part + 0.5));
        part *= static_cast<double>(throws - k) / (k + 1);
    }

    std::vector<mp::trace_step> trace(steps);
    int burst = 0;
    double jump = 0.0;
    for (std::size_t i = 0; i < steps; ++i) {
        const double progress = static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(steps, 1));
        const double base = -1.0 - 7.0 * progress / (progress + 0.2);
        const double noise = 0.7 * (uniform() + uniform() + uniform() + uniform() - 2.0);
        if (burst > 0) {
            --burst;
        } else if (random() % 300 == 0) {
            // Every further bit half as likely: a heavy tail of the magnitude.
            jump = 2.0 + uniform();
            while (random() % 2 == 0 && jump < 30.0) jump += 1.0;
            burst = random() % 4 == 0 ? static_cast<int>(random() % 6) : 0;
        } else {
            jump = 0.0;
        }
        mp::trace_step& step = trace[i];
        step.largest = magnitude(base + noise + jump);
        step.nan = random() % 6000 == 0;
        step.zeros = 50000 + random() % 1000;
        const int middle = static_cast<int>(std::floor(base + noise)) - 14;
        const int top = static_cast<int>(std::floor(base + noise + jump));
        for (int k = 0; k <= throws; ++k) {
            const int exponent = middle + k - throws / 2;
            const auto count = bell[static_cast<std::size_t>(k)];
            if (count != 0 && exponent < top) step.exponents.push_back({exponent, count});
        }
        step.exponents.push_back({top, 1});
    }
    return trace;
}

}  // namespace replay_scaling
