// SPDX-License-Identifier: MIT
/// \file
/// mp::packed2: two neighbouring numbers in one register, with the arithmetic that GPUs have for them.
#pragma once

#include <mp/bfloat16.hpp>
#include <mp/half.hpp>
#include <mp/numbers/format/packed2.hpp>

namespace mp {

/// Two halves in 32 bits, as CUDA's type of this name.
using half2 = packed2<half>;

/// Two bfloat16 in 32 bits, as CUDA's __nv_bfloat162.
using bfloat162 = packed2<bfloat16>;

}  // namespace mp
