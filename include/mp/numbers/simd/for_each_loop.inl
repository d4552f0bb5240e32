// SPDX-License-Identifier: MIT
/// \file
/// Includes the file that MP_KERNEL_FILE names once for each namespace with the walks of loops.inl: the
/// host's portable vectors and the instruction sets of for_each_target.inl. Unlike for_each_vec.inl, for what
/// does not run on GPUs.

#if !defined(MP_KERNEL_FILE)
#error "define MP_KERNEL_FILE before including <mp/numbers/simd/for_each_loop.inl>"
#endif

#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#if MP_PORTABLE_VECTORS
#define MP_TARGET portable_vectors
#else
#define MP_TARGET single_lane
#endif
#include MP_KERNEL_FILE
#undef MP_TARGET
#undef MP_TARGET_NUMBER
#include <mp/numbers/simd/for_each_target.inl>
