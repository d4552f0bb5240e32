// expects: (mp_has_no_such_function)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>
#include <mp/math.hpp>

#include <math.h>

// A Bessel function of C, which the library does not have.
auto bessel = j0(mp::half(1));
