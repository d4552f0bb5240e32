// SPDX-License-Identifier: MIT
/// \file
/// The exponentials of one row and their sum: what softmax, log_softmax, the cross entropy and attention are
/// made of.
#pragma once

#include <mp/detail/bits.hpp>
#include <mp/matrix_view.hpp>
#include <mp/ops/for_each_element.hpp>
#include <mp/rules/elementary.hpp>
#include <mp/rules/rounded_doubles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace mp::detail::inline MP_ISA_NAMESPACE {

/// The largest of some floats, -infinity if there are none, and whether NaN or +infinity is among them: then
/// the largest means nothing.
struct row_maximum {
    float value = -std::numeric_limits<float>::infinity();
    bool is_bad = false;
};
inline row_maximum maximum_of_row(const float* x, std::size_t count) {
    // Bits as integers that are in the order of the floats, so that compilers take several at a time.
    constexpr std::int32_t plus_infinity = 0x7F80'0000;
    constexpr std::int32_t minus_infinity = -0x7F80'0001;
    std::int32_t largest = minus_infinity;
    std::int32_t is_negative_nan = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = bit_cast<std::int32_t>(x[i]);
        const std::int32_t ordered = bits ^ ((bits >> 31) & 0x7FFF'FFFF);
        largest = ordered > largest ? ordered : largest;
        is_negative_nan |= ordered < minus_infinity ? 1 : 0;
    }
    const std::int32_t bits = largest ^ ((largest >> 31) & 0x7FFF'FFFF);
    return {bit_cast<float>(bits), largest >= plus_infinity || is_negative_nan != 0};
}

/// A sum whose terms come several at a time: in eight parts, of the terms whose numbers have the same
/// remainder, and these as a tree. So its bits depend on neither the width of vectors nor the compiler, and
/// an addition does not wait for the one before.
class sum_in_parts {
public:
    template <int Lanes>
    MP_ALWAYS_INLINE void add(rounded_doubles<Lanes> terms, std::size_t first) {
        double* const at = parts_ + first % 8;
        (rounded_doubles<Lanes>::load(static_cast<const double*>(at)) + terms).store(at);
    }
    [[nodiscard]] double value() const {
        using number = rounded_doubles<1>;
        const auto pair = [this](int i) { return number(parts_[i]) + number(parts_[i + 4]); };
        return ((pair(0) + pair(2)) + (pair(1) + pair(3))).value();
    }

private:
    double parts_[8] = {};
};

/// to[i] = e^(x[i] - reference), as floats or doubles, and their sum before they are rounded. No x[i]
/// may be more than 208 above the reference; 2^-300 stands for what is more than that below it.
template <class Result>
double exponentials_of_distances(const float* x, std::size_t count, double reference, Result* to) {
    sum_in_parts sum;
    for_each_double(count, [&](auto kind, std::size_t i) {
        using number = decltype(kind);
        const number distance = (number::load(x + i) - number(reference)).not_below(-208.0);
        const number power = exponential_parts_in_double<true>(distance).value();
        power.store(to + i);
        sum.add(power, i);
    });
    return sum.value();
}

/// Room for a row and for what is computed from it. One thread uses it for row after row.
class softmax_row {
public:
    explicit softmax_row(std::size_t columns) : values_(columns), powers_(columns) {}

    /// Reads a row and computes its exponentials.
    template <class Value>
    void load(matrix_view<const Value> matrix, std::ptrdiff_t row) {
        constexpr std::uint32_t minus_infinity = 0xFF80'0000U;
        load_row(matrix, row, values_.data());
        const row_maximum largest = maximum_of_row(values_.data(), values_.size());
        if (largest.is_bad || bit_cast<std::uint32_t>(largest.value) == minus_infinity) {
            std::fill(powers_.begin(), powers_.end(), std::numeric_limits<double>::quiet_NaN());
            largest_ = 0;
            sum_ = log_sum_ = std::numeric_limits<double>::quiet_NaN();
            return;
        }
        largest_ = static_cast<double>(largest.value);
        // For -infinity the power is 2^-300: nothing next to the 1 of the largest, and zero as a float.
        sum_ = exponentials_of_distances(values_.data(), values_.size(), largest_, powers_.data());
        log_sum_ = double_log(sum_);
    }

    /// exp(x_c) / sum_j exp(x_j), with a relative error below 2^-40.
    [[nodiscard]] rounded_doubles<1> probability(std::size_t c) const {
        return probabilities<rounded_doubles<1>>(c);
    }
    /// The same from column c on.
    template <class Number>
    [[nodiscard]] MP_ALWAYS_INLINE Number probabilities(std::size_t c) const {
        return Number::load(powers_.data() + c) / Number(sum_);
    }

    /// The logarithms of that from column c on, -infinity for -infinity; an absolute error below 2^-40 and a
    /// relative one of 2^-51.
    template <class Number>
    [[nodiscard]] MP_ALWAYS_INLINE Number log_probabilities(std::size_t c) const {
        return Number::load(values_.data() + c) - Number(largest_) - Number(log_sum_);
    }

private:
    std::vector<float> values_;
    std::vector<double> powers_;
    double largest_ = 0;
    double sum_ = 0;
    double log_sum_ = 0;
};

/// Writes the floats f(number, c) of a row, where f gives the columns from c on as rounded_doubles of any
/// number of lanes.
template <class Value, class Function>
void store_numbers(matrix_view<Value> matrix, std::ptrdiff_t row, Function f) {
    store_row_blocks(matrix, row, [&](std::size_t first, std::size_t count, float* to) {
        for_each_double(count, [&](auto kind, std::size_t i) { f(kind, first + i).store(to + i); });
    });
}

}  // namespace mp::detail::inline MP_ISA_NAMESPACE
