// SPDX-License-Identifier: MIT
/// \file
/// update_rule<Coefficients>: one update of a weight and its states, for every kind of vec<float>.
#pragma once

#include <mp/numbers/rules/optimizer_coefficients.hpp>
#include <mp/numbers/simd/vec.hpp>

#define MP_KERNEL_FILE <mp/numbers/rules/optimizer_updates.inl>
#include <mp/numbers/simd/for_each_vec.inl>
