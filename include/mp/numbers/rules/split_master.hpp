// SPDX-License-Identifier: MIT
/// \file
/// split_master.inl for every namespace that has a vec<T>.
#pragma once

#include <mp/config.hpp>

#include <cstdint>

#if MP_CORE_BODIES
#include <mp/numbers/simd/vec.hpp>

#define MP_KERNEL_FILE <mp/numbers/rules/split_master.inl>
#include <mp/numbers/simd/for_each_vec.inl>
#else
// Scalars are all that is used outside of the compiled part.
#include <mp/numbers/simd/single_lane.hpp>

#define MP_TARGET single_lane
#include <mp/numbers/rules/split_master.inl>
#undef MP_TARGET
#endif
