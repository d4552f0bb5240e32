// SPDX-License-Identifier: MIT
/// \file
/// The counts of range reports, by vectors. See range_counts.inl.
#pragma once

#include <mp/arrays/convert/kernels/number_vectors.hpp>
#include <mp/arrays/convert/kernels/packed_codes.hpp>
#include <mp/numbers/simd/floating_point_modes.hpp>

#include <cstddef>
#include <cstdint>

namespace mp::detail { inline namespace MP_ISA_NAMESPACE {

/// Magnitude codes of floats at which the class of a value in some format changes, each the smallest one.
struct range_thresholds {
    std::uint32_t nonzero;   ///< that does not become zero
    std::uint32_t normal;    ///< that becomes a normal number
    std::uint32_t overflow;  ///< that is too large
};

/// Counts of floats; zeros are below all thresholds, infinities and NaNs above.
struct range_counts {
    std::uint64_t below_nonzero = 0;
    std::uint64_t below_normal = 0;
    std::uint64_t overflows = 0;
    std::uint64_t nans = 0;
    std::uint32_t largest = 0;          ///< the largest finite magnitude code
    std::uint64_t fields[256] = {};     ///< by the exponent field
    std::uint64_t subnormals[23] = {};  ///< by the highest bit of the fraction, with an exponent field of 0
};

}}  // namespace mp::detail

#define MP_KERNEL_FILE <mp/arrays/convert/kernels/range_counts.inl>
#include <mp/numbers/simd/for_each_target.inl>
