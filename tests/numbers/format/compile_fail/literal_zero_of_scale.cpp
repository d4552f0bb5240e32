// expects: (refuse_literal|consteval)
// SPDX-License-Identifier: MIT
#include <mp/float8.hpp>

using namespace mp::literals;
auto x = 0_e8m0;
