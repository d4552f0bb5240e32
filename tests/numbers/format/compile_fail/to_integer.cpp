// expects: (write_static_cast_or_round_to_integer)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// An integer drops the fraction, so it has to be asked for: static_cast<int>(x).
int truncated(mp::half x) {
    return x;
}
