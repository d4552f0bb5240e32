// SPDX-License-Identifier: MIT
/// \file
/// A histogram of errors, which may be of any size: counts by logarithm, and quantiles from them.
#pragma once

#include <mp/arrays/io/csv.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/number_text.hpp>
#include <mp/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Counts of errors (magnitudes) in sixteen bins to each power of two, from (1 + k/16) 2^e to (1 + (k+1)/16) 2^e; a
/// quantile is so never less than the true one, and at most a sixteenth more.
///
///     mp::error_histogram errors;
///     for (std::size_t i = 0; i < n; ++i) errors.add(std::abs(y[i] - exact[i]));
///     double typical = errors.quantile(0.5), tail = errors.quantile(0.999);
class error_histogram {
public:
    /// The errors from one value to another.
    struct bin {
        double from;  ///< inclusive
        double to;    ///< exclusive
        std::uint64_t count;

        friend bool operator==(const bin&, const bin&) = default;
    };

    /// The sign does not count.
    void add(double error) {
        const std::uint64_t magnitude = detail::bit_cast<std::uint64_t>(error) & ~(std::uint64_t{1} << 63);
        ++count_;
        if (magnitude == 0) {
            ++zeros_;
        } else if (magnitude >= infinity) {
            ++not_finite_;
        } else {
            largest_ = (std::max)(largest_, magnitude);
            ++at(detail::as<std::size_t>(magnitude >> 48));
        }
    }
    error_histogram& operator+=(const error_histogram& other) {
        for (std::size_t i = 0; i < other.counts_.size(); ++i) {
            if (other.counts_[i] != 0) at(other.first_ + i) += other.counts_[i];
        }
        count_ += other.count_;
        zeros_ += other.zeros_;
        not_finite_ += other.not_finite_;
        largest_ = (std::max)(largest_, other.largest_);
        return *this;
    }

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t zeros() const noexcept { return zeros_; }
    /// Infinities and NaN, which no bin has and every quantile leaves out.
    [[nodiscard]] std::uint64_t not_finite() const noexcept { return not_finite_; }
    /// The largest finite error, exactly.
    [[nodiscard]] double largest() const noexcept { return detail::bit_cast<double>(largest_); }

    /// A bound that a share `part` of the finite errors does not exceed: the end of a bin, or largest(). 0 without errors.
    ///
    /// \throws argument_error  part is not from 0 to 1
    [[nodiscard]] double quantile(double part) const {
        if (!(part >= 0 && part <= 1)) {
            detail::throw_argument("mp::error_histogram::quantile", "part", part, "must be 0 to 1");
        }
        const double wanted = part * static_cast<double>(count_ - not_finite_);
        std::uint64_t seen = zeros_;
        if (static_cast<double>(seen) >= wanted) return 0;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            seen += counts_[i];
            if (static_cast<double>(seen) >= wanted) return (std::min)(edge(first_ + i + 1), largest());
        }
        return largest();
    }
    /// The bins that have anything, from small errors to large ones.
    [[nodiscard]] std::vector<bin> bins() const {
        std::vector<bin> result;
        for (std::size_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i] != 0) result.push_back({edge(first_ + i), edge(first_ + i + 1), counts_[i]});
        }
        return result;
    }

private:
    static constexpr std::uint64_t infinity = std::uint64_t{0x7ff} << 52;

    /// The beginning of a bin; its number is that of the leading 15 bits of a double.
    static double edge(std::size_t number) { return detail::bit_cast<double>(std::uint64_t{number} << 48); }
    std::uint64_t& at(std::size_t number) {
        if (counts_.empty()) first_ = number;
        if (number < first_) {
            counts_.insert(counts_.begin(), first_ - number, 0);
            first_ = number;
        }
        if (number - first_ >= counts_.size()) counts_.resize(number - first_ + 1);
        return counts_[number - first_];
    }

    std::vector<std::uint64_t> counts_;
    std::size_t first_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t zeros_ = 0;
    std::uint64_t not_finite_ = 0;
    std::uint64_t largest_ = 0;
};

/// The bins as lines of from,to,count, with a line 0,0 for errors that are zero, and one of inf,inf for what is not finite.
[[nodiscard]] inline std::string to_csv(const error_histogram& errors) {
    std::string text = "from,to,count\n";
    const auto line = [&](double from, double to, std::uint64_t count) {
        if (count == 0) return;
        detail::append_csv_number(text, from);
        text += ',';
        detail::append_csv_number(text, to);
        text.append(",").append(detail::error_text(count)).append("\n");
    };
    line(0, 0, errors.zeros());
    for (const auto& it : errors.bins()) line(it.from, it.to, it.count);
    const double infinity = detail::bit_cast<double>(std::uint64_t{0x7ff} << 52);
    line(infinity, infinity, errors.not_finite());
    return text;
}

/// One line: quantiles, and the largest error.
[[nodiscard]] inline std::string to_string(const error_histogram& errors) {
    std::string text = detail::error_text(errors.count()) + " errors, " + detail::error_text(errors.zeros()) +
                       " of them zero";
    if (errors.not_finite() != 0) text += ", " + detail::error_text(errors.not_finite()) + " not finite";
    for (const double part : {0.5, 0.9, 0.99, 0.999}) {
        text +=
            ", " + detail::fixed_text(100 * part, 1) + "% <= " + detail::short_text(errors.quantile(part));
    }
    return text + ", max " + detail::short_text(errors.largest());
}

}}  // namespace mp
