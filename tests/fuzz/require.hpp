// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>

namespace fuzzing {

/// Ends the program by a signal, which libFuzzer and doctest report with the input, unless the condition holds.
inline void require(bool condition) {
    if (!condition) std::abort();
}

}  // namespace fuzzing
