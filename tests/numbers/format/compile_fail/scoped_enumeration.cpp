// expects: (no matching)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

// A scoped enumeration converts to no number, and so to none of these.
enum class level { low, high };
auto x = mp::half(level::high);
