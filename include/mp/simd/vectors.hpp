// SPDX-License-Identifier: MIT
/// \file
/// Vectors for kernels, in namespace mp::detail::avx2 and so on. See vectors.inl.
#pragma once

#include <mp/config.hpp>
#include <mp/simd/levels.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#define MP_KERNEL_LEVELS MP_LEVEL_AVX512_FP16
#define MP_KERNEL_FILE <mp/simd/vectors.inl>
#include <mp/simd/for_each_target.inl>
