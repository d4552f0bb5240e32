// SPDX-License-Identifier: MIT
/// \file
/// Transposition of lines of 32-bit words, and of squares of bytes. See square.inl.
#pragma once

#include <mp/numbers/simd/vec.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#define MP_KERNEL_FILE <mp/numbers/simd/square.inl>
#include <mp/numbers/simd/for_each_target.inl>
