// expects: (convert_operands_to_one_format_or_all_to_float)
// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

#include <cmath>

// Neither format holds the other's numbers, so the user must say which one is meant.
auto larger = fmax(mp::half(1), mp::bfloat16(1));
