// expects: (deleted|use of deleted)
// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>
#include <mp/half.hpp>

// Neither format holds the other's numbers, so the user must say which one is meant.
auto sum = mp::half(1.0f) + mp::bfloat16(1.0f);
