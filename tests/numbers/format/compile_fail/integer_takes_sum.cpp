// expects: (write_static_cast_or_round_to_integer)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// The sum is a number, and i would drop its fraction.
void add(mp::half x, int& i) {
    i += x;
}
