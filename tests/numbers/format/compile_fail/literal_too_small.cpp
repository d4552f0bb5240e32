// expects: (refuse_literal|consteval)
// SPDX-License-Identifier: MIT
#include <mp/half.hpp>

using namespace mp::literals;
auto x = 1e-9_h;
