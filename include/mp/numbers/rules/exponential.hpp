// SPDX-License-Identifier: MIT
/// \file
/// The exponential function over vec<float>, and what its formulas are made of: for activation functions and
/// rows of softmax.
#pragma once

#include <mp/numbers/simd/vec.hpp>

#include <cstdint>

#define MP_KERNEL_FILE <mp/numbers/rules/exponential.inl>
#include <mp/numbers/simd/for_each_vec.inl>
