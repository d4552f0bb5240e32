// SPDX-License-Identifier: MIT
/// \file
/// Includes the file that MP_KERNEL_FILE names once for each namespace that has a vec<T>: single_lane, the
/// portable vectors, and the instruction sets of for_each_target.inl. The file puts its functions, which are
/// MP_HOST_DEVICE, into namespace mp::detail::MP_TARGET.

#if !defined(MP_KERNEL_FILE)
#error "define MP_KERNEL_FILE before including <mp/numbers/simd/for_each_vec.inl>"
#endif

#define MP_TARGET_NUMBER MP_TARGET_PORTABLE
#define MP_TARGET single_lane
#include MP_KERNEL_FILE
#undef MP_TARGET
#if MP_PORTABLE_VECTORS
#define MP_TARGET portable_vectors
#include MP_KERNEL_FILE
#undef MP_TARGET
#endif
#undef MP_TARGET_NUMBER
#include <mp/numbers/simd/for_each_target.inl>
