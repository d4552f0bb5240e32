// SPDX-License-Identifier: MIT
/// \file
/// Conversions of arrays as a user of Google's Highway writes them, running with the best instructions of the
/// processor that Highway knows (its dynamic dispatch). Numbers are codes where C++ has no type for them.
/// Counts are multiples of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench::highway {

void float_to_half(const float* from, std::uint16_t* to, std::size_t count);
void half_to_float(const std::uint16_t* from, float* to, std::size_t count);
void float_to_bfloat16(const float* from, std::uint16_t* to, std::size_t count);
void bfloat16_to_float(const std::uint16_t* from, float* to, std::size_t count);

/// Through float: Highway 1.0 has no way from double to half.
void double_to_half(const double* from, std::uint16_t* to, std::size_t count);

/// Its version, and the instruction set that it picked: "1.0.3, AVX3_DL".
std::string description();

}  // namespace bench::highway
