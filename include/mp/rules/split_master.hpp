// SPDX-License-Identifier: MIT
/// \file
/// split_master.inl for every namespace that has a vec<T>.
#pragma once

#include <mp/simd/vec.hpp>

#include <cstdint>

#define MP_KERNEL_FILE <mp/rules/split_master.inl>
#include <mp/simd/for_each_vec.inl>
