// expects: (no match for|no viable overloaded)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// A float rounds to half only when asked to: x = mp::half{0.1f}.
void store(mp::half& x) {
    x = 0.1f;
}
