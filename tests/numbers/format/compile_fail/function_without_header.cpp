// expects: (include_mp_math_hpp)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

#include <cmath>

// Without <mp/math.hpp> this would be C's sine of a double.
auto sine = sin(mp::half(1));
