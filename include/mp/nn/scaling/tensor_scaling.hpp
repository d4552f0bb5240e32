// SPDX-License-Identifier: MIT
/// \file
/// Scales for tensors in 8 bits and fewer, as Transformer Engine, torchao and MS-AMP choose them: current
/// scaling from the tensor itself here, delayed scaling in amax_history.hpp, and power-of-two scales of
/// blocks. A value is multiplied by the scale before it is converted, and divided by it after.
#pragma once

#include <mp/arrays/convert/block_scale.hpp>
#include <mp/arrays/convert/bulk.hpp>
#include <mp/arrays/convert/convert.hpp>
#include <mp/arrays/convert/number_range.hpp>
#include <mp/base/bits.hpp>
#include <mp/base/contiguous.hpp>
#include <mp/base/parallel.hpp>
#include <mp/config.hpp>
#include <mp/error.hpp>
#include <mp/executor.hpp>
#include <mp/float8.hpp>
#include <mp/nn/scaling/amax.hpp>
#include <mp/nn/scaling/amax_history.hpp>
#include <mp/nn/scaling/scale_checks.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

inline constexpr float largest_float = 0x1.fffffep127F;

/// The largest power of two that is at most a positive finite scale. For a normal number that is its bits
/// without the significand; a subnormal one keeps its highest bit, where clearing them would leave 0.
MP_HOST_DEVICE constexpr float power_of_two_at_most(float scale) {
    const auto bits = bit_cast<std::uint32_t>(scale);
    if (bits >= 0x00800000U) return bit_cast<float>(bits & 0xff800000U);
    if (bits == 0) return 0.0F;
    return bit_cast<float>(0x80000000U >> (leading_zeros(std::uint64_t{bits}) - 32));
}

}}  // namespace mp::detail

namespace mp {

/// Transformer Engine's current scaling: the scale of a tensor, or of a block, from its own amax.
///
/// The amax is raised to epsilon if it is below. 0, infinity and NaN then have the scale 1. Otherwise it is
/// format_max / amax, rounded once to nearest (never by a reciprocal, whatever the compiler is told), with
/// infinity replaced by `largest_scale`; last, if asked for, rounded down to a power of two.
///
/// Source: transformer_engine/common/recipe/recipe_common.cuh.
///
///     constexpr mp::current_scaling recipe{.format_max = mp::largest_finite<mp::float8_e4m3fn>};
///     const float scale = recipe.scale(mp::amax(mp::cpu{}, weights));
struct current_scaling {
    float format_max = 448.0F;  ///< the largest number of the format; finite, at least 1. 448 is E4M3's
    float epsilon = 0.0F;       ///< the least amax; finite, not negative
    bool power_of_two = false;  ///< whether scales are powers of two; block scaling of E4M3 demands it
    /// What an infinite scale becomes: the largest number of the type of the tensor. Finite, at least 1.
    float largest_scale = detail::largest_float;

    friend constexpr bool operator==(const current_scaling&, const current_scaling&) = default;

    /// Throws mp::argument_error, naming parameter and value, if one makes no sense.
    constexpr void validate() const {
        constexpr std::string_view function = "mp::current_scaling";
        detail::require_format_max(function, format_max);
        if (detail::is_non_finite(epsilon) || !(epsilon >= 0.0F)) {
            detail::throw_argument(function, "epsilon", epsilon, "must be finite and not negative");
        }
        if (detail::is_non_finite(largest_scale) || !(largest_scale >= 1.0F)) {
            detail::throw_argument(function, "largest_scale", largest_scale, "must be finite and at least 1");
        }
    }

    /// The scale for an amax, which is not negative.
    [[nodiscard]] MP_HOST_DEVICE constexpr float scale(float amax) const {
        constexpr std::uint32_t infinity = 0x7f800000U;
        // As bits, which order as magnitudes do: fast-math must not lose a NaN, nor flush a tiny amax.
        auto bits = detail::bit_cast<std::uint32_t>(amax) & 0x7fffffffU;
        const auto least = detail::bit_cast<std::uint32_t>(epsilon) & 0x7fffffffU;
        if (bits < least) bits = least;
        if (bits == 0 || bits >= infinity) return 1.0F;
        using single = formats::binary32;
        auto quotient =
            detail::divide_bits<single>(detail::bit_cast<std::uint32_t>(format_max), bits, projection{});
        const float result = quotient == infinity ? largest_scale : detail::bit_cast<float>(quotient);
        return power_of_two ? detail::power_of_two_at_most(result) : result;
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("format_max", self.format_max);
        visitor("amax_epsilon", self.epsilon);
        visitor("power_of_two", self.power_of_two);
        visitor("largest_scale", self.largest_scale);
    }
};

/// torchao's current scaling: format_max / max(amax, epsilon), computed in double and then rounded to float;
/// if asked for, rounded down to a power of two. An infinite amax has the scale 0 and a NaN the scale NaN, as
/// there: tensors with such an amax cannot be scaled, and quantize_with_scale refuses them.
///
/// Source: torchao/float8/float8_utils.py.
struct torchao_scaling {
    float format_max = 448.0F;  ///< the largest number of the format; finite, at least 1. 448 is E4M3's
    double epsilon = 1e-12;     ///< the least amax; finite, at least 1e-30, so that no scale is infinite
    bool power_of_two = false;  ///< whether scales are powers of two, as in the rowwise recipe

    friend constexpr bool operator==(const torchao_scaling&, const torchao_scaling&) = default;

    /// Throws mp::argument_error, naming parameter and value, if one makes no sense.
    constexpr void validate() const {
        constexpr std::string_view function = "mp::torchao_scaling";
        detail::require_format_max(function, format_max);
        if (detail::is_non_finite(epsilon) || !(epsilon >= 1e-30)) {
            detail::throw_argument(function, "epsilon", epsilon, "must be finite and at least 1e-30");
        }
    }

    /// The scale for an amax, which is not negative.
    [[nodiscard]] MP_HOST_DEVICE constexpr float scale(float amax) const {
        using single = formats::binary32;
        using twice = formats::binary64;
        const auto magnitude = detail::bit_cast<std::uint32_t>(amax) & 0x7fffffffU;
        if (magnitude > 0x7f800000U) return detail::bit_cast<float>(0x7fc00000U);
        if (magnitude == 0x7f800000U) return 0.0F;
        auto bits = detail::convert_bits<twice, single>(magnitude, projection{});
        const auto least = detail::bit_cast<std::uint64_t>(epsilon);
        if (bits < least) bits = least;
        const auto numerator =
            detail::convert_bits<twice, single>(detail::bit_cast<std::uint32_t>(format_max), projection{});
        const auto quotient = detail::divide_bits<twice>(numerator, bits, projection{});
        const float result = detail::bit_cast<float>(detail::convert_bits<single, twice>(
            quotient, projection{rounding::nearest_even, saturation::finite}));
        return power_of_two ? detail::power_of_two_at_most(result) : result;
    }

    template <class Self, class Visitor>
    static constexpr void visit(Self& self, Visitor&& visitor) {
        visitor("format_max", self.format_max);
        visitor("amax_epsilon", self.epsilon);
        visitor("power_of_two", self.power_of_two);
    }
};

}  // namespace mp

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// The power-of-two scale of a block whose largest magnitude is `amax`, by one of the published rules
/// (see scale_rule; standard is floor): values are to be divided by it. These are the scales that
/// mp::quantize gives the blocks of the MX formats. 0 has the smallest scale, 2^-127; NaN the scale NaN; an
/// infinity the largest that the rule gives. Throws argument_error for four_over_six rules, which are not for
/// powers of two.
///
///     mp::power_of_two_block_scale<mp::float8_e4m3fn>(amax, mp::scale_rule::ceil)
template <block_element Element>
[[nodiscard]] constexpr float8_e8m0fnu power_of_two_block_scale(float amax,
                                                                scale_rule rule = scale_rule::standard) {
    if (detail::is_four_over_six(rule)) {
        detail::throw_argument(
            "mp::power_of_two_block_scale", "rule",
            rule == scale_rule::four_over_six_mse ? "four_over_six_mse" : "four_over_six_mae",
            "must be a rule for scales that are powers of two");
    }
    const auto bits = detail::bit_cast<std::uint32_t>(amax) & 0x7fffffffU;
    if (bits > 0x7f800000U) return float8_e8m0fnu::from_bits(layout_of<formats::float8_e8m0fnu>::nan_code);
    const scale_rule chosen = rule == scale_rule::standard ? scale_rule::floor : rule;
    const std::uint32_t code =
        bits == 0x7f800000U
            ? static_cast<std::uint32_t>(detail::infinite_scale_exponent<Element>(chosen) + 127)
            : detail::single_lane::scale_exponent_codes<detail::coding_format<Element>>(bits, chosen);
    return float8_e8m0fnu::from_bits(static_cast<std::uint8_t>(code));
}

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Fewest elements that are worth a thread.
inline constexpr std::size_t scaling_grain = std::size_t{1} << 16;

/// Brings a double down to the largest number of a format. What is NaN stays so.
template <reduced Number>
double clamped_to(double x) noexcept {
    constexpr std::uint64_t largest = bit_cast<std::uint64_t>(
        to_double<typename Number::format>(layout_of<typename Number::format>::max_finite_code));
    constexpr std::uint64_t sign = std::uint64_t{1} << 63;
    constexpr std::uint64_t infinity = 0x7ff0000000000000U;
    const auto bits = bit_cast<std::uint64_t>(x);
    const std::uint64_t magnitude = bits & ~sign;
    return magnitude > largest && magnitude <= infinity ? bit_cast<double>((bits & sign) | largest) : x;
}

/// Calls step(from, to, count) on chunks of a few cache lines, on all threads.
template <class From, class To, class Step>
void in_chunks(cpu exec, std::span<From> from, std::span<To> to, Step step) {
    parallel_for(exec, from.size(), scaling_grain, [&](std::size_t begin, std::size_t end) {
        const default_floating_point_modes modes;
        constexpr std::size_t chunk = 256;
        for (std::size_t at = begin; at < end; at += chunk) {
            const std::size_t count = (std::min)(chunk, end - at);
            double wide[chunk];
            convert_nearest(conversion_isa(), from.data() + at, wide, count);
            step(wide, count);
            convert_nearest(conversion_isa(), wide, to.data() + at, count);
        }
    });
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Converts an array of float, or of a reduced format, with a scale: to[i] = from[i] * scale, exact and
/// rounded once to nearest even; what is too large becomes the largest finite number, infinities included,
/// and NaN stays NaN where the format has one. The kernels that multiply in float round twice and can differ
/// in the last place, except for scales that are powers of two.
///
/// \param scale  what a recipe above returns; finite and greater than 0
/// \throws argument_error  sizes differ, null with a size other than zero, overlap, a scale out of range, or
///                         fewer than one thread; nothing is written then
template <detail::gradient_range Source, detail::writable_number_range Target>
    requires reduced<detail::element_value<Target>>
void quantize_with_scale(cpu exec, const Source& from, Target&& to, float scale) {
    using number_type = detail::element_value<Target>;
    constexpr std::string_view function = "mp::quantize_with_scale";
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_threads(function, exec);
    detail::require_tensor_scale(function, "scale", scale);
    detail::check_arrays(function, source, target);
    const double factor = round_to<double>(scale);
    // The product of two floats is exact in double.
    detail::in_chunks(exec, source, target, [factor](double* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            values[i] = detail::clamped_to<number_type>(values[i] * factor);
        }
    });
}

/// Converts back: to[i] = from[i] / scale, rounded once to nearest even to float or to a reduced format.
/// Kernels that multiply by 1 / scale rounded to float can differ in the last place.
///
/// \param scale  the scale that quantize_with_scale was given; finite and greater than 0
/// \throws argument_error  as quantize_with_scale
template <detail::gradient_range Source, detail::writable_number_range Target>
    requires reduced<detail::element_value<const Source>> &&
             detail::exact_in_float<detail::element_value<Target>>
void dequantize_with_scale(cpu exec, const Source& from, Target&& to, float scale) {
    constexpr std::string_view function = "mp::dequantize_with_scale";
    const std::span source = detail::as_span(from);
    const std::span target = detail::as_span(to);
    detail::check_threads(function, exec);
    detail::require_tensor_scale(function, "scale", scale);
    detail::check_arrays(function, source, target);
    const double divisor = round_to<double>(scale);
    // Rounded to double first, which is innocuous: a quotient of numbers of 24 bits that is not the midpoint
    // of two floats differs from it by at least 2^-49 of itself.
    detail::in_chunks(exec, source, target, [divisor](double* values, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) values[i] = values[i] / divisor;
    });
}

}}  // namespace mp
