// expects: (convert_operands_to_one_format_or_all_to_float)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <cmath>

// The exact power of a double can lie too close to a midpoint to be rounded surely; C's pow would be one of
// doubles.
auto power = pow(mp::half(1.5F), 0.1);
