// expects: (write_static_cast_or_round_to_integer)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// An index is an integer.
float element(const float* values, mp::half i) {
    return values[i];
}
