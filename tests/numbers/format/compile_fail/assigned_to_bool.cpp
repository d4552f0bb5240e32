// expects: (compare_with_zero_or_write_static_cast)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// A condition may be a number; a variable has to be asked for: h != 0, or static_cast<bool>(h).
bool any(mp::half h) {
    return h;
}
