// expects: (refuse_literal|consteval)
// SPDX-License-Identifier: MIT
#include <mp/float4.hpp>

using namespace mp::literals;
auto x = 7_e2m1;
