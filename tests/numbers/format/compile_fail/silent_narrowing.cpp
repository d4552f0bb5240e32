// expects: (conversion from .*double|no viable conversion)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// A double rounds to half only when asked to.
mp::half x = 0.1;
