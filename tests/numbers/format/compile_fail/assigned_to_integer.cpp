// expects: (write_static_cast_or_round_to_integer)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// A float would do this silently.
void store(mp::half x, int& i) {
    i = x;
}
