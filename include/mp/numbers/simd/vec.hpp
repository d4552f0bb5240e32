// SPDX-License-Identifier: MIT
/// \file
/// vec<T>: as many T as a register holds, in a namespace for each way to compute with them: mp::detail::avx2,
/// avx512, neon, portable_vectors (any g++ or clang: SSE2, NEON ...) and single_lane (GPUs). All have the same
/// functions with the same bits, so that a formula is written once, in a file that
/// <mp/numbers/simd/for_each_vec.inl> includes for each of them.
#pragma once

#include <mp/config.hpp>
#include <mp/numbers/simd/portable_vectors.hpp>
#include <mp/numbers/simd/select_target.hpp>
#include <mp/numbers/simd/single_lane.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if MP_PORTABLE_VECTORS
#define MP_TARGET portable_vectors
#include <mp/numbers/simd/vec.inl>
#undef MP_TARGET
#endif
#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#if MP_NEON_TARGET
#define MP_KERNEL_FILE <mp/numbers/simd/neon_vectors.inl>
#else
#define MP_KERNEL_FILE <mp/numbers/simd/x86_vectors.inl>
#endif
#include <mp/numbers/simd/for_each_target.inl>
#define MP_HIGHEST_TARGET MP_TARGET_AVX512_FP16
#define MP_KERNEL_FILE <mp/numbers/simd/vec.inl>
#include <mp/numbers/simd/for_each_target.inl>
