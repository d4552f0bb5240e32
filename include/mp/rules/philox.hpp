// SPDX-License-Identifier: MIT
/// \file
/// philox_rounds for vectors: the text that <mp/format/philox.hpp> has for single words.
#pragma once

#include <mp/format/philox.hpp>
#include <mp/simd/vec.hpp>

#define MP_KERNEL_FILE <mp/format/philox_rounds.inl>
#include <mp/simd/for_each_target.inl>
