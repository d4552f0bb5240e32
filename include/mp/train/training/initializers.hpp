// SPDX-License-Identifier: MIT
/// \file
/// Initial weights: functions of a seed and an index, so the same bits everywhere.
#pragma once

#include <mp/error.hpp>
#include <mp/numbers/format/operations.hpp>
#include <mp/numbers/format/philox.hpp>
#include <mp/numbers/rules/elementary.hpp>
#include <mp/numbers/rules/rounded_doubles.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// A distribution of weights. Made by the functions of mp::initializers.
struct initializer {
    /// Of what kind it is.
    enum class distribution : unsigned char { constant, uniform, normal };

    distribution kind = distribution::constant;
    double scale = 0.0;  ///< the constant; half the width of the interval around 0; the standard deviation
};

/// The usual ones, in torch's words.
namespace initializers {
/// All 0.
constexpr initializer zeros() {
    return {};
}
/// All 1.
constexpr initializer ones() {
    return {initializer::distribution::constant, 1.0};
}
/// All of one value.
constexpr initializer constant(double value) {
    return {initializer::distribution::constant, value};
}
/// Uniform in [-bound, bound).
constexpr initializer uniform(double bound) {
    return {initializer::distribution::uniform, bound};
}
/// Normal, around 0.
constexpr initializer normal(double deviation) {
    return {initializer::distribution::normal, deviation};
}
/// Keeps the variance of a layer's outputs and gradients alike (Glorot and Bengio 2010).
inline initializer xavier_uniform(std::ptrdiff_t in, std::ptrdiff_t out) {
    return uniform(detail::in_default_modes([in, out] {
        return detail::double_sqrt(
            detail::double_divide(6.0, static_cast<double>(in) + static_cast<double>(out)));
    }));
}
/// Keeps the variance of the outputs of a layer before a relu (He et al. 2015).
inline initializer kaiming_normal(std::ptrdiff_t in) {
    return normal(detail::in_default_modes(
        [in] { return detail::double_sqrt(detail::double_divide(2.0, static_cast<double>(in))); }));
}
/// Uniform within 1 / sqrt(in): what torch gives to weights and biases of nn.Linear.
inline initializer fan_in_uniform(std::ptrdiff_t in) {
    return uniform(detail::in_default_modes(
        [in] { return detail::double_divide(1.0, detail::double_sqrt(static_cast<double>(in))); }));
}
}  // namespace initializers

}}  // namespace mp

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Random words, disjoint from those of random_bits(): the fourth word of the counter differs.
inline philox4x32 initial_words(std::uint64_t seed, std::uint64_t index, std::uint32_t attempt) {
    return random_block(seed, index, attempt, 0x696e6974U);
}

/// From -1 to 1 without the ends, the middles of 2^32 intervals; exact.
inline double symmetric_double(std::uint32_t word) {
    return static_cast<double>(2 * static_cast<std::int64_t>(word) + 1 - (std::int64_t{1} << 32)) * 0x1p-32;
}

/// A number of the standard normal distribution, by Marsaglia's polar method: of the points of the square
/// those in the circle are taken, 79 of 100.
inline double standard_normal(std::uint64_t seed, std::uint64_t index) {
    using number = rounded_doubles<1>;
    for (std::uint32_t attempt = 0;; ++attempt) {
        const philox4x32 words = initial_words(seed, index, attempt);
        for (int pair = 0; pair < 2; ++pair) {
            const number u = symmetric_double(words.word[2 * pair]);
            const number v = symmetric_double(words.word[2 * pair + 1]);
            const double square = (u * u + v * v).value();
            if (!(square < 1.0)) continue;  // it is at least 2^-63
            const number length = double_sqrt((number(-2.0) * double_log(square) / square).value());
            return (u * length).value();
        }
    }
}

}}  // namespace mp::detail

namespace mp { inline namespace MP_ISA_NAMESPACE {

/// Draws values: element i is a function of the seed and first_index + i, computed in double and rounded
/// once, so the same bits on every platform whatever else is drawn.
///
///     mp::initialize(weights, mp::initializers::normal(0.02), seed);
///
/// \throws argument_error  a scale that is not finite or, other than a constant, negative; nothing is written
template <class Element>
void initialize(std::span<Element> values, const initializer& how, std::uint64_t seed,
                std::uint64_t first_index = 0) {
    using distribution = initializer::distribution;
    if (!isfinite(how.scale) || (how.kind != distribution::constant && how.scale < 0.0)) {
        detail::throw_argument(
            "mp::initialize", "how.scale", how.scale,
            how.kind == distribution::constant ? "must be finite" : "must be finite and not negative");
    }
    const detail::default_floating_point_modes modes;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t index = first_index + i;
        double value = 1.0;
        if (how.kind == distribution::uniform) {
            value = detail::symmetric_double(detail::initial_words(seed, index, 0).word[0]);
        } else if (how.kind == distribution::normal) {
            value = detail::standard_normal(seed, index);
        }
        values[i] = round_to<Element>(detail::double_multiply(value, how.scale));
    }
}

}}  // namespace mp
