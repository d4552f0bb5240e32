// expects: (deleted|can be converted to several common types)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// By way of float this would be a bool, true for 0.5.
auto choose(bool c, mp::half h) {
    return c ? h : false;
}
