// SPDX-License-Identifier: MIT
/// \file
/// Mean, deviation and extremes of an array in one pass: what adaptive loss scaling looks at.
#pragma once

#include <mp/arrays/convert/bulk.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/parallel.hpp>
#include <mp/executor.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/nn/scaling/unscale.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mp {

/// Statistics of an array. Infinities and NaNs are counted and have no part in the rest.
struct tensor_statistics {
    std::uint64_t count = 0;       ///< finite values
    std::uint64_t zeros = 0;       ///< of those, zeros
    std::uint64_t non_finite = 0;  ///< infinities and NaNs
    double mean = 0.0;             ///< 0 if there are no finite values
    double squares = 0.0;          ///< the sum of (value - mean)^2
    double lowest = 0.0;           ///< the smallest finite value; 0 if there is none
    double highest = 0.0;          ///< the largest finite value; 0 if there is none
    double least_magnitude = 0.0;  ///< the smallest magnitude that is not 0; 0 if there is none

    /// The standard deviation of the values, with the count as divisor; 0 if there are none.
    [[nodiscard]] double deviation() const {
        return detail::in_default_modes([this] { return detail::double_sqrt(variance()); });
    }
    [[nodiscard]] constexpr double variance() const {
        return count == 0 ? 0.0 : detail::double_divide(squares, static_cast<double>(count));
    }
    /// The largest finite magnitude.
    [[nodiscard]] constexpr double largest_magnitude() const { return highest > -lowest ? highest : -lowest; }

    /// Adds the statistics of other values.
    constexpr tensor_statistics& operator+=(const tensor_statistics& other) {
        zeros += other.zeros;
        non_finite += other.non_finite;
        if (other.count == 0) return *this;
        if (other.least_magnitude > 0.0 &&
            !(least_magnitude > 0.0 && least_magnitude <= other.least_magnitude)) {
            least_magnitude = other.least_magnitude;
        }
        if (count == 0 || other.lowest < lowest) lowest = other.lowest;
        if (count == 0 || other.highest > highest) highest = other.highest;
        // Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
        // variances", 1979.
        using number = detail::rounded_doubles<1>;
        const number mine = static_cast<double>(count);
        const number others = static_cast<double>(other.count);
        const number difference = number(other.mean) - mean;
        mean = (number(mean) + difference * (others / (mine + others))).value();
        const number between = difference * difference * (mine * others / (mine + others));
        squares = (number(squares) + (number(other.squares) + between)).value();
        count += other.count;
        return *this;
    }

    friend constexpr bool operator==(const tensor_statistics&, const tensor_statistics&) = default;
};

}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The statistics of a chunk that fits the first-level cache. Every value is visited twice, first for the
/// mean and then for the deviations from it, which does not cancel as sums of squares do.
template <class Value>
tensor_statistics statistics_of_chunk(const Value* values, std::size_t count) {
    double finite[unscale_block];
    double wide[unscale_block];
    convert_nearest(conversion_isa(), values, wide, count);
    tensor_statistics result;
    rounded_doubles<1> sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
        const double x = wide[i];
        if (is_non_finite(x)) {
            ++result.non_finite;
            continue;
        }
        if (result.count == 0) result.lowest = result.highest = x;
        if (x < result.lowest) result.lowest = x;
        if (x > result.highest) result.highest = x;
        const double magnitude = x < 0.0 ? -x : x;
        if (!(magnitude > 0.0)) {
            ++result.zeros;
        } else if (!(result.least_magnitude > 0.0) || magnitude < result.least_magnitude) {
            result.least_magnitude = magnitude;
        }
        sum += x;
        finite[result.count++] = x;
    }
    if (result.count == 0) return result;
    result.mean = (sum / static_cast<double>(result.count)).value();
    rounded_doubles<1> squares = 0.0;
    for (std::size_t i = 0; i < result.count; ++i) {
        const rounded_doubles<1> deviation = rounded_doubles<1>(finite[i]) - result.mean;
        squares += deviation * deviation;
    }
    result.squares = squares.value();
    return result;
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Measures an array in one pass over its memory, in double.
///
/// \param exec    mp::cpu; the result does not depend on the number of threads
/// \param values  contiguous range of float or of a reduced format; vector, span, array...
/// \throws argument_error  null with a size other than zero, or fewer than one thread
template <detail::gradient_range Values>
[[nodiscard]] tensor_statistics measure_statistics(cpu exec, const Values& values) {
    using value = detail::element_value<const Values>;
    const std::span<const value> in = detail::as_span(values);
    constexpr std::string_view function = "mp::measure_statistics";
    detail::check_threads(function, exec);
    detail::require_memory(function, "values.data()", in.data(), in.size());
    constexpr std::size_t chunk = detail::unscale_block;
    // Added in the order of the array, so that rounding is the same for every number of threads.
    std::vector<tensor_statistics> chunks((in.size() + chunk - 1) / chunk);
    detail::parallel_for(exec, chunks.size(), 16, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t at = i * chunk;
            const std::size_t count = (std::min)(chunk, in.size() - at);
            chunks[i] =
                detail::in_default_modes([&] { return detail::statistics_of_chunk(in.data() + at, count); });
        }
    });
    return detail::in_default_modes([&] {
        tensor_statistics result;
        for (const tensor_statistics& part : chunks) result += part;
        return result;
    });
}

/// As measure_statistics(), of ln |x| of the values that are neither zero nor infinite nor NaN, which are all
/// that count: for gradients whose logarithm is normally distributed. `zeros` says how many were left out as
/// zero.
template <detail::gradient_range Values>
[[nodiscard]] tensor_statistics measure_logarithms(cpu exec, const Values& values) {
    using value = detail::element_value<const Values>;
    const std::span<const value> in = detail::as_span(values);
    constexpr std::string_view function = "mp::measure_logarithms";
    detail::check_threads(function, exec);
    detail::require_memory(function, "values.data()", in.data(), in.size());
    return detail::in_default_modes([&] {
        // A logarithm of 1 is 0, so zeros of the result are not those of the array; count them here.
        tensor_statistics result;
        for (const value x : in) {
            const double wide = round_to<double>(x);
            tensor_statistics one;
            if (detail::is_non_finite(wide)) {
                one.non_finite = 1;
            } else if (const double magnitude = wide < 0.0 ? -wide : wide; magnitude > 0.0) {
                one.count = 1;
                one.mean = one.lowest = one.highest = detail::double_log(magnitude);
            } else {
                one.zeros = 1;
            }
            result += one;
        }
        return result;
    });
}

}}  // namespace mp
