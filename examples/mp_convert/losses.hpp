// SPDX-License-Identifier: MIT
/// \file
/// What a conversion lost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace mp_convert {

/// Counts, and sums over the elements that are finite before and after.
struct losses {
    std::uint64_t count = 0;
    std::uint64_t not_finite = 0;  ///< before, or after: one NaN spoils its block
    std::uint64_t underflows = 0;  ///< not zero before, and zero after
    std::uint64_t saturated = 0;   ///< beyond the largest number
    std::uint64_t relative_count = 0;
    double max_relative = 0;
    double squared_relative = 0;
    double signal = 0;
    double noise = 0;

    /// \param limit  the largest number
    void add(std::span<const float> before, std::span<const float> after, double limit) {
        losses sum;  // in registers, and without branches that depend on the values
        for (std::size_t i = 0; i < before.size(); ++i) {
            const auto x = static_cast<double>(before[i]);
            const auto y = static_cast<double>(after[i]);
            const double magnitude = std::abs(x);
            const double error = std::abs(y - x);
            if (!(magnitude + std::abs(y) <= std::numeric_limits<double>::max())) {
                ++sum.not_finite;
                continue;
            }
            const bool is_zero = !(magnitude > 0);
            const double relative = error / (is_zero ? 1 : magnitude);
            sum.signal += x * x;
            sum.noise += error * error;
            sum.squared_relative += relative * relative;
            sum.max_relative = std::max(sum.max_relative, relative);
            sum.saturated += magnitude > limit ? 1 : 0;
            sum.underflows += static_cast<unsigned>(!is_zero) & static_cast<unsigned>(!(std::abs(y) > 0));
            sum.relative_count += is_zero ? 0 : 1;
        }
        sum.count = before.size();
        *this += sum;
    }
    losses& operator+=(const losses& other) {
        count += other.count;
        not_finite += other.not_finite;
        underflows += other.underflows;
        saturated += other.saturated;
        relative_count += other.relative_count;
        max_relative = std::max(max_relative, other.max_relative);
        squared_relative += other.squared_relative;
        signal += other.signal;
        noise += other.noise;
        return *this;
    }

    /// Root of the mean square of relative errors.
    [[nodiscard]] double rms_relative() const {
        return relative_count == 0 ? 0 : std::sqrt(squared_relative / static_cast<double>(relative_count));
    }
    /// The ratio of signal to noise in decibels; infinite where nothing was lost.
    [[nodiscard]] double decibels() const {
        if (!(noise > 0)) return std::numeric_limits<double>::infinity();
        return 10 * std::log10(signal / noise);
    }
};

}  // namespace mp_convert
