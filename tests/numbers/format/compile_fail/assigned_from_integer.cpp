// expects: (no match for|no viable overloaded)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// Not every integer is a half: x = mp::half{2049}.
void store(mp::half& x) {
    x = 2049;
}
