// SPDX-License-Identifier: MIT
/// \file
/// Frequencies of the angles of rotary position embeddings.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/rules/trigonometric.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <vector>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// The frequencies of the angles, base^(-i / count) for i from 0 to count - 1: each from the one before, with
/// an error of some i 2^-90 of it.
inline std::vector<double_pair> rotary_frequencies(double base, std::ptrdiff_t count) {
    std::vector<double_pair> frequencies(static_cast<std::size_t>(count), {1.0, 0.0});
    const default_floating_point_modes modes;
    const double_pair root = inverse_root(base, count);
    for (std::size_t i = 1; i < frequencies.size(); ++i) frequencies[i] = frequencies[i - 1] * root;
    return frequencies;
}

}}  // namespace mp::detail
