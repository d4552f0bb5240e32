// expects: (deleted|can be converted to several common types)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// By way of float the branches would meet in int, and 0.5 become 0.
float relu(mp::half x) {
    return x > 0 ? x : 0;
}
