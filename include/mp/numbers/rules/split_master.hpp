// SPDX-License-Identifier: MIT
/// \file
/// split_master.inl for every namespace that has a vec<T>.
#pragma once

#include <mp/numbers/simd/vec.hpp>

#include <cstdint>

#define MP_KERNEL_FILE <mp/numbers/rules/split_master.inl>
#include <mp/numbers/simd/for_each_vec.inl>
