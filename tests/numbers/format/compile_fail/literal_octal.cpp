// expects: (refuse_literal|consteval)
// SPDX-License-Identifier: MIT
#include <mp/bfloat16.hpp>

using namespace mp::literals;
auto x = 010_bf16;
